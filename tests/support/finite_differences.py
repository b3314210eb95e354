"""Central differences with a swept step: the truth that gradient tests compare with.

One fixed step is either too large (truncation, a contact that switches on) or too small (round-off), and which one
differs from case to case. So the difference quotient is taken at several steps, extrapolated to step zero, and the
value is kept that its neighbors in the extrapolation table confirm best.

Everything here is float64. To differentiate on a manifold, differentiate a function of the tangent at zero, e.g.
`central_difference(lambda t: f(integrate(q, t)), np.zeros(nv))`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

Function = Callable[[np.ndarray], ArrayLike]

DEFAULT_STEPS = (1e-3, 1e-4, 1e-5, 1e-6)
"""Relative to the scale of the argument. Eight evaluations of the function per direction."""


class Estimate(NamedTuple):
    """A derivative and how well it is known."""

    value: np.ndarray
    error: float
    """Largest deviation over the outputs from the neighbors in the extrapolation table, plus round-off; absolute. A
    figure to judge the reference by, not a bound."""


def directional_estimate(
    f: Function, x: ArrayLike, direction: ArrayLike, steps: Sequence[float] = DEFAULT_STEPS
) -> Estimate:
    """Derivative of `f` at `x` along `direction`, with an error estimate.

    The central quotient is (f(x + h·d) − f(x − h·d)) / 2h = f′ + c₁h² + c₂h⁴ + …, so Neville's scheme in h² removes one
    term per column (Ridders 1982, "Accurate computation of F′(x) and F′(x)F″(x)"). Two things keep an agreement by
    chance from winning: the round-off ε|f|/h counts as error, and one entry of the table is chosen for all outputs.

    Args:
        f: Function of an array of x's shape; returns a scalar or an array of any fixed shape. It may overwrite its
            argument.
        x: Where to differentiate.
        direction: Of x's shape, not normalized: the result is linear in it.
        steps: Multiples h of `direction`, falling strictly, at least two.

    Returns:
        Value of f's shape and its error estimate.
    """
    x, direction = np.asarray(x, dtype=np.float64), np.asarray(direction, dtype=np.float64)
    if direction.shape != x.shape:
        raise ValueError(f"direction has shape {direction.shape}, x has {x.shape}")
    if len(steps) < 2 or any(b >= a for a, b in zip(steps, steps[1:], strict=False)) or steps[-1] <= 0.0:
        raise ValueError(f"steps must be two or more positive numbers that fall, not {tuple(steps)}")

    candidates: list[Estimate] = []
    previous: list[np.ndarray] = []
    for i, h in enumerate(steps):
        quotient, round_off = _central_quotient(f, x, direction, h)
        row = [quotient]
        for k in range(1, i + 1):
            ratio = (steps[i - k] / h) ** 2
            row.append(row[k - 1] + (row[k - 1] - previous[k - 1]) / (ratio - 1.0))
            spread = max(_largest(row[k] - row[k - 1]), _largest(row[k] - previous[k - 1]))
            candidates.append(Estimate(row[k], spread + round_off))
        if i > 0:
            # The plain quotient too: beside a kink only the smallest steps are right, and extrapolating harms.
            candidates.append(Estimate(row[0], _largest(row[0] - previous[0]) + round_off))
        previous = row
    return min(candidates, key=lambda estimate: estimate.error)


def directional_difference(
    f: Function, x: ArrayLike, direction: ArrayLike, steps: Sequence[float] = DEFAULT_STEPS
) -> np.ndarray:
    """Derivative of `f` at `x` along `direction`: `directional_estimate` without its error."""
    return directional_estimate(f, x, direction, steps).value


def central_difference(
    f: Function, x: ArrayLike, steps: Sequence[float] = DEFAULT_STEPS, *, scale: ArrayLike | None = None
) -> np.ndarray:
    """Gradient or Jacobian of `f` at `x`, entry by entry of `x`.

    Args:
        f: Function of an array of x's shape; returns a scalar or an array of any fixed shape.
        x: Where to differentiate.
        steps: As in `directional_estimate`, relative to `scale`.
        scale: Typical size of the entries, broadcast to x's shape; default max(1, |x|). Give it where entries are
            small, e.g. inertias of 1e-4 kg·m², which an absolute step of 1e-3 would make negative.

    Returns:
        Derivatives, of shape f's shape + x's shape; for a scalar `f` the gradient in x's shape.
    """
    x = np.asarray(x, dtype=np.float64)
    sizes = np.broadcast_to(np.maximum(1.0, np.abs(x)) if scale is None else np.asarray(scale), x.shape)
    columns = []
    for index in np.ndindex(x.shape):
        direction = np.zeros_like(x)
        direction[index] = sizes[index]
        columns.append(directional_difference(f, x, direction, steps) / sizes[index])
    return np.stack(columns, axis=-1).reshape(columns[0].shape + x.shape)


def relative_error(actual: ArrayLike, expected: ArrayLike, *, floor: float = 1e-12) -> float:
    """Largest deviation over the largest expected magnitude.

    Norm-wise on purpose: an entry that is 1e-9 of its neighbors carries no more digits than they leave it. A NaN
    anywhere gives NaN, which fails every `<` comparison.

    Args:
        actual: What is tested.
        expected: The truth, of the same shape.
        floor: Least magnitude to divide by, so that two zeros agree.
    """
    actual, expected = np.asarray(actual, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    if actual.shape != expected.shape:
        raise ValueError(f"shapes differ: actual {actual.shape}, expected {expected.shape}")
    return _largest(actual - expected) / max(_largest(expected), floor)


def _central_quotient(f: Function, x: np.ndarray, direction: np.ndarray, h: float) -> tuple[np.ndarray, float]:
    """The quotient at one step and the round-off it cannot be free of."""
    # Fresh arguments and copied results: f may work in place or return a view of a buffer it reuses.
    plus = np.array(f(x + h * direction), dtype=np.float64)
    minus = np.array(f(x - h * direction), dtype=np.float64)
    if not (np.isfinite(plus).all() and np.isfinite(minus).all()):
        raise ValueError(f"f is not finite at step {h:g}; use smaller steps or a smaller scale")
    return (plus - minus) / (2.0 * h), float(np.finfo(np.float64).eps) * _largest(plus) / h


def _largest(a: np.ndarray) -> float:
    return float(np.max(np.abs(a), initial=0.0))
