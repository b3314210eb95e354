"""The implicit step of one matter: Newton's method with the true Hessian, one thread per world. Not taped.

    a* = argmin ½(a − a₀)ᵀM(a − a₀) + h⁻²Ψ(x⁺),     x⁺ = x + hv + h²a

Where the Hessian is not positive definite, a direction is found with the part of it that is: compression left out.
Along a direction the objective is a polynomial of degree six, whose minimum is found without evaluating an element
again. It ends when √(rᵀM⁻¹r / Σm) is below the tolerance, or below what rounding leaves of it.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.indexing import natural
from warpsim.core.precision import EPSILON, mat33, real, vec2, vec3, vec6
from warpsim.deformable.block_ldl import Factor, block_factor, block_solve
from warpsim.deformable.inertia import Inertia, inertia_at, load_at, place_after, velocity_after
from warpsim.deformable.terms import Elements, energy_line, energy_terms
from warpsim.deformable.types import CONVERGED, SADDLE, UNCONVERGED

_MAXIMUM_LINE_STEPS = wp.constant(60)
_SLOPE_SHARE = wp.constant(real(1e-3))
_ROUNDING = wp.constant(real(0.5 * EPSILON))


@wp.struct
class NewtonVectors:
    """Scratch of the solver, (W, n) each."""

    acceleration: wp.array2d(dtype=vec3)
    end: wp.array2d(dtype=vec3)  # x⁺
    gradient: wp.array2d(dtype=vec3)  # r, N
    step: wp.array2d(dtype=vec3)  # h²p


@wp.func
def assemble(
    m: Inertia,
    elements: Elements,
    f: Factor,
    w: int,
    x: wp.array2d(dtype=vec3),
    end: wp.array2d(dtype=vec3),
    convex: int,
    gradient: wp.array2d(dtype=vec3),
):
    """The Hessian at x⁺ in the factor's blocks; ∇Ψ is added to `gradient`."""
    h = m.time_step[w]
    for k in range(f.blocks.shape[1]):
        f.blocks[w, k] = mat33()
    for i in range(end.shape[1]):
        node = m.node[i]
        if node >= 0:
            inertia = inertia_at(m, w, i)
            f.inertia[w, node] = inertia
            f.blocks[w, f.start[node]] = mat33(
                inertia, real(0.0), real(0.0), real(0.0), inertia, real(0.0), real(0.0), real(0.0), inertia
            )
    energy_terms(elements, w, h, x, end, h * h, convex, gradient, f.blocks)


@wp.func
def line_minimum(c: vec6) -> real:
    """A minimum of Σ cₖαᵏ beyond 0 and no higher than there, given that it falls at 0; from α = 1 on."""
    alpha, low, high = real(1.0), real(0.0), real(-1.0)
    for _turn in range(_MAXIMUM_LINE_STEPS):
        value, slope, curvature = real(0.0), real(0.0), real(0.0)
        for j in range(6):
            k = 6 - j
            curvature = curvature * alpha + real(k * (k - 1)) * c[k - 1]
            slope = slope * alpha + real(k) * c[k - 1]
            value = value * alpha + c[k - 1]
        value *= alpha
        curvature /= alpha  # Horner's scheme has run one power too far
        if value <= real(0.0) and wp.abs(slope) <= _SLOPE_SHARE * wp.abs(c[0]):
            return alpha
        if value > real(0.0) or slope > real(0.0):
            high = alpha
        else:
            low = alpha
        trial = real(-1.0)
        if curvature > real(0.0):
            trial = alpha - slope / curvature
        if high < real(0.0):
            if trial <= low or trial > real(4.0) * alpha:
                trial = real(2.0) * alpha
        elif trial <= low or trial >= high:
            trial = real(0.5) * (low + high)
        alpha = trial
    return low


@wp.func
def advance_along(m: Inertia, s: NewtonVectors, f: Factor, w: int, c: vec6):
    """Goes to the minimum along the step."""
    h = m.time_step[w]
    coefficients = c / (h * h)
    coefficients[0] = real(0.0)
    for i in range(s.end.shape[1]):
        node = m.node[i]
        if node >= 0:
            p = f.vector[w, node]
            coefficients[0] += wp.dot(p, s.gradient[w, i])
            coefficients[1] += real(0.5) * inertia_at(m, w, i) * wp.dot(p, p)
    alpha = line_minimum(coefficients)
    for i in range(s.end.shape[1]):
        node = m.node[i]
        if node >= 0:
            s.acceleration[w, i] += alpha * f.vector[w, node]


@wp.func
def residual_and_rounding(m: Inertia, s: NewtonVectors, f: Factor, w: int) -> vec2:
    """√(rᵀM⁻¹r / Σm), m/s², and what rounding of the places leaves of it: each force is off by ε|x| times a stiffness.

    The Hessian must have been assembled.
    """
    h = m.time_step[w]
    residual, noise, total, extent = real(0.0), real(0.0), real(0.0), real(0.0)
    for i in range(s.end.shape[1]):
        extent = wp.max(extent, wp.length(s.end[w, i]))
        node = m.node[i]
        if node >= 0:
            mass = m.mass[w, i]
            stiffness = (wp.trace(f.blocks[w, f.start[node]]) / real(3.0) - inertia_at(m, w, i)) / (h * h)
            residual += wp.length_sq(s.gradient[w, i]) / mass
            noise += stiffness * stiffness / mass
            total += mass
    total = wp.max(total, real(1e-30))
    return vec2(wp.sqrt(residual / total), _ROUNDING * extent * wp.sqrt(noise / total))


@wp.kernel(enable_backward=False)
def newton_kernel(
    m: Inertia,
    elements: Elements,
    f: Factor,
    s: NewtonVectors,
    tolerance: real,
    maximum_iterations: int,
    # state and control
    x: wp.array2d(dtype=vec3),
    v: wp.array2d(dtype=vec3),
    force: wp.array2d(dtype=vec3),
    target: wp.array2d(dtype=vec3),
    # out
    status: wp.array2d(dtype=wp.int32),  # iterations, code
    error: wp.array(dtype=real),
    next_x: wp.array2d(dtype=vec3),
    next_v: wp.array2d(dtype=vec3),
):
    """One step of each world."""
    w = natural(wp.tid())
    h = m.time_step[w]
    count = s.end.shape[1]
    for i in range(count):
        s.acceleration[w, i] = vec3()
    code, iterations, shifted, residual = int(UNCONVERGED), int(0), int(1), real(0.0)
    for turn in range(maximum_iterations + 1):
        for i in range(count):
            s.end[w, i] = place_after(m, w, i, x, v, target, s.acceleration[w, i])
            s.gradient[w, i] = load_at(m, w, i, v, force, s.acceleration[w, i])
        assemble(m, elements, f, w, x, s.end, 0, s.gradient)
        measured = residual_and_rounding(m, s, f, w)
        residual = measured[0]
        iterations = turn
        if residual <= wp.max(tolerance, measured[1]):
            if turn == 0 or shifted > 0:
                shifted = block_factor(f, w, 0)
            code = int(CONVERGED)
            if shifted > 0:
                code = int(SADDLE)
            break
        if turn == maximum_iterations or not residual < real(1e30):
            break
        shifted = block_factor(f, w, 0)
        if shifted > 0:
            assemble(m, elements, f, w, x, s.end, 1, s.step)
            block_factor(f, w, 1)
        for i in range(count):
            if m.node[i] >= 0:
                f.vector[w, m.node[i]] = -s.gradient[w, i]
        block_solve(f, w)
        for i in range(count):
            s.step[w, i] = vec3()
            if m.node[i] >= 0:
                s.step[w, i] = (h * h) * f.vector[w, m.node[i]]
        advance_along(m, s, f, w, energy_line(elements, w, h, x, s.end, s.step))
    for i in range(count):
        end = place_after(m, w, i, x, v, target, s.acceleration[w, i])
        next_x[w, i] = end
        next_v[w, i] = velocity_after(m, w, i, x, v, end, s.acceleration[w, i])
    status[w, 0] = iterations
    status[w, 1] = code
    error[w] = residual
