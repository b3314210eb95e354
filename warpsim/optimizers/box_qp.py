"""Small quadratic programs within a box, by projected Newton steps.

After Tassa, Mansard and Todorov, "Control-limited differential dynamic programming" (2014), section IV: components at a
bound that the gradient pushes against are held, a Newton step is taken in the others, and its path is bent back onto
the box. The set of held components settles after a few steps, and the last one is exact.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

_MOST_STEPS = 100


class BoxSolution(NamedTuple):
    """The minimum.

    Attributes:
        x: (n,).
        free: (n,): components that no bound holds.
        factor: Cholesky factor of the free block of H, lower triangle.
    """

    x: np.ndarray
    free: np.ndarray
    factor: np.ndarray


def box_qp(
    hessian: np.ndarray, gradient: np.ndarray, lower: np.ndarray, upper: np.ndarray, start: np.ndarray
) -> BoxSolution:
    """Minimizes ½·xᵀHx + gᵀx over lower ≤ x ≤ upper.

    Args:
        hessian: H (n, n), symmetric.
        gradient: g (n,).
        lower: (n,).
        upper: (n,).
        start: (n,): a guess.

    Raises:
        numpy.linalg.LinAlgError: H is not positive definite in the free components.
    """
    if len(gradient) == 1:
        return _on_a_line(hessian, gradient, lower, upper)
    x = np.clip(start, lower, upper)
    held: np.ndarray | None = None
    exact = False  # whether the last step was a whole Newton step that met no bound
    factor = np.zeros((0, 0))
    for _ in range(_MOST_STEPS):
        slope = hessian @ x + gradient
        now_held = ((x <= lower) & (slope > 0)) | ((x >= upper) & (slope < 0))
        free = ~now_held
        if held is None or (now_held != held).any():
            exact = False
            factor = np.linalg.cholesky(hessian[np.ix_(free, free)])
            held = now_held
        if exact:
            break
        step = np.zeros_like(x)
        step[free] = -_solve(factor, slope[free])
        moved = _bent_step(hessian, lower, upper, x, step, slope)
        if (moved == x).all():
            break
        exact = bool((moved == x + step).all())
        x = moved
    return BoxSolution(x, ~held if held is not None else np.ones(len(x), bool), factor)


def _on_a_line(hessian: np.ndarray, gradient: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> BoxSolution:
    """The closed form for one component."""
    if not hessian[0, 0] > 0:
        raise np.linalg.LinAlgError("the curvature is not positive")
    wanted = -gradient / hessian[0]
    x = np.minimum(np.maximum(wanted, lower), upper)
    free = x == wanted
    return BoxSolution(x, free, np.sqrt(hessian) if free[0] else np.zeros((0, 0)))


def _bent_step(
    hessian: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    x: np.ndarray,
    step: np.ndarray,
    slope: np.ndarray,
) -> np.ndarray:
    """The first point along the bent path, halving the step, that is low enough; x if there is none."""
    length = 1.0
    while length > 1e-10:
        moved = np.clip(x + length * step, lower, upper)
        change = moved - x
        fall = slope @ change
        if fall + 0.5 * change @ hessian @ change <= 0.1 * fall:
            return moved
        length *= 0.6
    return x


def _solve(factor: np.ndarray, right: np.ndarray) -> np.ndarray:
    """H⁻¹·right from H's Cholesky factor."""
    return np.linalg.solve(factor.T, np.linalg.solve(factor, right))
