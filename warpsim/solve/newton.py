"""Newton's method on the convex contact problem, one thread per world. Not taped.

    a* = argmin ½ (a − a₀)ᵀ M (a − a₀) + s(J a − aref),     M a₀ = all smooth forces

Each iteration forms g = M a − M a₀ + Jᵀ∇s and H = M + JᵀWJ, steps along p = −H⁻¹g by an exact line search (1-D Newton
within a bracket on the sign of the slope), and stops when the scaled gradient falls below the tolerance.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.indexing import natural
from warpsim.core.precision import EPSILON, real
from warpsim.solve.hessian import ENVELOPE, FOREST, HessianKernels, HessianStorage
from warpsim.solve.native import dot, jacobian_product, jacobian_transpose, mass_product, row_cost
from warpsim.solve.rows import Rows
from warpsim.solve.sparsity import TreeSparsity

CONVERGED = wp.constant(0)
TOO_FEW_ITERATIONS = wp.constant(1)
NOT_DEFINITE = wp.constant(2)
AT_ROUNDING = wp.constant(3)
_RUNNING = wp.constant(4)
STATUS_TEXT = {
    0: "converged",
    1: "stopped at the largest number of iterations",
    2: "the Hessian is not positive definite",
    3: "stopped at rounding error, above the tolerance",
}

_SLOPE_TOLERANCE = wp.constant(real(1e-4))
_MAX_LINE_SEARCH = wp.constant(50)
_EPSILON = wp.constant(real(EPSILON))


@wp.struct
class NewtonVectors:
    """Scratch vectors of the solver."""

    y: wp.array2d(dtype=real)  # (W, R) J a − aref
    z: wp.array2d(dtype=real)  # (W, R) J p
    force: wp.array2d(dtype=real)  # (W, R) −∇s
    gradient: wp.array2d(dtype=real)  # (W, nv)
    direction: wp.array2d(dtype=real)  # (W, nv) p
    mass_a: wp.array2d(dtype=real)  # (W, nv) M a
    mass_p: wp.array2d(dtype=real)  # (W, nv) M p
    curve: wp.array2d(dtype=real)  # (W, 3) cost, slope, curvature


def allocate_vectors(worlds: int, rows: int, nv: int, device: wp.Device) -> NewtonVectors:
    """Space for the solver's vectors."""
    vectors = NewtonVectors()
    sizes = dict(y=rows, z=rows, force=rows, gradient=nv, direction=nv, mass_a=nv, mass_p=nv, curve=3)
    for name, size in sizes.items():
        setattr(vectors, name, wp.zeros((worlds, size), dtype=real, device=device))
    return vectors


@wp.func
def evaluate(
    t: TreeSparsity,
    rows: Rows,
    v: NewtonVectors,
    w: int,
    matrix: wp.array2d(dtype=real),
    implicit: wp.array2d(dtype=real),
    rest: wp.array2d(dtype=real),
    a: wp.array2d(dtype=real),
) -> real:
    """Cost at a, up to a constant; leaves y, M a, the force and the gradient."""
    jacobian_product(rows, w, a, 1, v.y)
    mass_product(t, w, matrix, implicit, a, v.mass_a)
    row_cost(rows, w, v.y, v.z, real(0.0), 1, v.force, v.curve)
    cost = v.curve[w, 0]
    for d in range(t.nv):
        cost += a[w, d] * (real(0.5) * v.mass_a[w, d] + rest[w, d])
        v.gradient[w, d] = v.mass_a[w, d] + rest[w, d]
        if t.dof_prescribed[d] == 1:
            v.gradient[w, d] = real(0.0)  # a stays as it comes in, which is 0
    jacobian_transpose(rows, w, v.force, real(-1.0), v.gradient)
    return cost


@wp.func
def _line_search(rows: Rows, v: NewtonVectors, w: int, slope0: real, slope_mass: real, curve_mass: real) -> real:
    """The step length at which the cost's slope vanishes.

    Args:
        rows: Constraint rows.
        v: With y and z = J p.
        w: World.
        slope0: Slope at 0, negative.
        slope_mass: Of the quadratic part at 0.
        curve_mass: pᵀMp.
    """
    low = real(0.0)
    high = real(-1.0)  # none yet
    alpha = real(1.0)
    for _k in range(_MAX_LINE_SEARCH):
        row_cost(rows, w, v.y, v.z, alpha, 0, v.force, v.curve)
        slope = slope_mass + alpha * curve_mass + v.curve[w, 1]
        if wp.abs(slope) <= _SLOPE_TOLERANCE * wp.abs(slope0):
            return alpha
        if slope < real(0.0):
            low = alpha
        else:
            high = alpha
        step = alpha - slope / (curve_mass + v.curve[w, 2])
        if high < real(0.0):
            alpha = wp.min(wp.max(step, low * real(1.1)), low * real(8.0))
        elif step > low and step < high:
            alpha = step
        else:
            alpha = real(0.5) * (low + high)
    return alpha


@wp.func
def trace_of(t: TreeSparsity, w: int, matrix: wp.array2d(dtype=real)) -> real:
    """Trace of M, the scale of the gradient's norm."""
    total = real(0.0)
    for d in range(t.nv):
        total += matrix[w, t.row_start[d]]
    return total


@wp.func
def _try_warm_start(
    rows: Rows,
    v: NewtonVectors,
    w: int,
    n: int,
    rest: wp.array2d(dtype=real),
    warm_start: wp.array2d(dtype=real),
    a: wp.array2d(dtype=real),
) -> real:
    """Cost at a₀, which goes to `v.direction`; a becomes the warm start, which must first prove better."""
    jacobian_product(rows, w, a, 1, v.y)
    row_cost(rows, w, v.y, v.z, real(0.0), 0, v.force, v.curve)
    best = v.curve[w, 0] + real(0.5) * dot(n, w, a, rest)  # M a₀ is −rest
    for d in range(n):
        v.direction[w, d] = a[w, d]
        a[w, d] = warm_start[w, d]
    return best


@wp.func
def _verdict(norm: real, last: real, floor: real, tolerance: real, still: int, count: int, iterations: int) -> int:
    """Whether to stop, after `count` iterations, and why."""
    if norm <= tolerance:
        return CONVERGED
    if count > 0 and norm >= real(0.5) * last and (norm <= floor or still == 1):
        return AT_ROUNDING
    if count >= iterations:
        return TOO_FEW_ITERATIONS
    return _RUNNING


@wp.func
def _advance(
    t: TreeSparsity,
    rows: Rows,
    v: NewtonVectors,
    w: int,
    matrix: wp.array2d(dtype=real),
    implicit: wp.array2d(dtype=real),
    rest: wp.array2d(dtype=real),
    a: wp.array2d(dtype=real),
):
    """Moves a along the direction, to where the cost is least."""
    n = t.nv
    jacobian_product(rows, w, v.direction, 0, v.z)
    mass_product(t, w, matrix, implicit, v.direction, v.mass_p)
    slope0 = dot(n, w, v.direction, v.gradient)
    slope_mass = dot(n, w, v.direction, v.mass_a) + dot(n, w, v.direction, rest)
    curve_mass = dot(n, w, v.direction, v.mass_p)
    alpha = _line_search(rows, v, w, slope0, slope_mass, curve_mass)
    for d in range(n):
        a[w, d] = a[w, d] + alpha * v.direction[w, d]


def _newton_kernel(storage: HessianStorage) -> wp.Kernel:
    factor_hessian, solve_hessian = storage.factor, storage.solve

    @wp.kernel(enable_backward=False, name=f"newton_{storage.name}_kernel")
    def newton_kernel(
        # topology
        t: TreeSparsity,
        rows: Rows,
        iterations: int,
        tolerance: real,
        keep_factor: int,
        # the quadratic part: M, its diagonal terms, and −M a₀
        matrix: wp.array2d(dtype=real),
        implicit: wp.array2d(dtype=real),
        rest: wp.array2d(dtype=real),
        warm_start: wp.array2d(dtype=real),
        # scratch
        v: NewtonVectors,
        # out: a₀ comes in, a* goes out
        a: wp.array2d(dtype=real),
        factor: wp.array2d(dtype=real),
        envelope: wp.array2d(dtype=wp.int32),
        status: wp.array2d(dtype=wp.int32),
        error: wp.array(dtype=real),
    ):
        w = natural(wp.tid())
        n = t.nv
        status[w, 0] = 0
        status[w, 1] = CONVERGED
        error[w] = real(0.0)
        if rows.overflow[w] == 1:
            for d in range(n):
                a[w, d] = real(wp.static(float("nan")))
            return
        inertia = trace_of(t, w, matrix)
        free = wp.sqrt(dot(n, w, a, a))
        best = real(0.0)
        trial = int(0)  # 1: a is the warm start
        if rows.used[w, 0] > 0:
            best = _try_warm_start(rows, v, w, n, rest, warm_start, a)
            trial = 1
        code = int(_RUNNING)
        count = int(0)
        last = real(0.0)
        still = int(0)
        # each function stands once in the loop: they are long, and copies would not stay in the processor's cache
        while code == _RUNNING:
            norm = real(0.0)
            if rows.used[w, 0] > 0:
                cost = evaluate(t, rows, v, w, matrix, implicit, rest, a)
                if trial == 1:
                    trial = 0
                    if cost >= best or cost != cost:
                        for d in range(n):
                            a[w, d] = v.direction[w, d]
                        continue
                norm = wp.sqrt(dot(n, w, v.gradient, v.gradient)) / inertia
            error[w] = norm
            # rounding in g = M a − M a₀ − Jᵀf is of the order of ε times its terms
            floor = real(8.0) * _EPSILON * wp.sqrt(dot(n, w, v.mass_a, v.mass_a)) / inertia
            code = _verdict(norm, last, floor, tolerance, still, count, iterations)
            if code == _RUNNING or keep_factor == 1:
                failed = factor_hessian(rows, t, w, v.y, matrix, implicit, wp.min(count, 1), factor, envelope)
                if failed != 0 and code == _RUNNING:
                    code = int(NOT_DEFINITE)
            if code == _RUNNING:
                last = norm
                for d in range(n):
                    v.direction[w, d] = -v.gradient[w, d]
                solve_hessian(t, w, factor, envelope, v.direction)
                # stiff rows round at ε D |aref|, above the floor; a direction at the rounding of a says so instead
                size = free + wp.sqrt(dot(n, w, a, a))
                still = wp.where(wp.sqrt(dot(n, w, v.direction, v.direction)) <= real(16.0) * _EPSILON * size, 1, 0)
                _advance(t, rows, v, w, matrix, implicit, rest, a)
                count += 1
        status[w, 0] = count
        status[w, 1] = code

    return newton_kernel


_newton_envelope_kernel = _newton_kernel(ENVELOPE)
_newton_forest_kernel = _newton_kernel(FOREST)
NEWTON_KERNELS = HessianKernels(_newton_envelope_kernel, _newton_forest_kernel)
