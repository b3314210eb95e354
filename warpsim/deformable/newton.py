"""The implicit step of one matter: Newton's method with the true Hessian, one thread per world. Not taped.

    a* = argmin ½(a − a₀)ᵀM(a − a₀) + h⁻²Ψ(x⁺) + s(a),     x⁺ = x + hv + h²a

Where the Hessian is not positive definite, a direction is found with the part of it that is: compression left out.
Along a direction the objective is a polynomial of degree six, whose minimum is found without evaluating an element
again, unless it has rows or hinges with angles of rest. It ends when √(rᵀM⁻¹r / Σm) is below the tolerance, or below
what rounding leaves of it.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.indexing import natural
from warpsim.core.precision import EPSILON, mat33, real, vec2, vec3, vec6
from warpsim.deformable.bend import bend_hessian
from warpsim.deformable.contact import (
    Contacts,
    contact_cost,
    contact_gradient,
    contact_hessian,
    prepare_contacts,
    row_motion,
    row_weight,
    velocity_at,
)
from warpsim.deformable.fold import Folds, fold_line
from warpsim.deformable.inertia import Inertia, inertia_at, load_at, place_after, velocity_after
from warpsim.deformable.krylov import solve_with_pairs
from warpsim.deformable.matrix import Factor, factor_matrix
from warpsim.deformable.near import first_tangle, prepare_self
from warpsim.deformable.self_contact import SelfContacts, add_self, self_line
from warpsim.deformable.springs import Springs, add_springs, spring_weight
from warpsim.deformable.terms import Elements, energy_line, energy_terms
from warpsim.deformable.types import CONVERGED, CROWDED, PINNED, SADDLE, TANGLED, UNCONVERGED

MAXIMUM_LINE_STEPS = wp.constant(60)
SLOPE_SHARE = wp.constant(real(1e-3))
COST_ROUNDING = wp.constant(real(500.0 * EPSILON))
ROUNDING = wp.constant(real(0.5 * EPSILON))


@wp.struct
class NewtonVectors:
    """Scratch of the solver, (W, n) each."""

    acceleration: wp.array2d(dtype=vec3)
    end: wp.array2d(dtype=vec3)  # x⁺
    gradient: wp.array2d(dtype=vec3)  # r, N
    step: wp.array2d(dtype=vec3)  # h²p


@wp.func
def prepare_matrix(m: Inertia, elements: Elements, f: Factor, w: int):
    """The part of the Hessian that is the same throughout a step: masses and flat bending."""
    h = m.time_step[w]
    for k in range(f.constant.shape[1]):
        f.constant[w, k] = mat33()
    for i in range(m.node.shape[0]):
        node = m.node[i]
        if node >= 0:
            inertia = inertia_at(m, w, i)
            for d in range(3):
                f.constant[w, node][d, d] = inertia
    bend_hessian(elements.bends, w, h * h, f.constant)


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
        f.blocks[w, k] = f.constant[w, k]
    energy_terms(elements, w, h, x, end, h * h, convex, gradient, f.blocks)


@wp.func
def add_contacts(
    c: Contacts, m: Inertia, f: Factor, w: int, a: wp.array2d(dtype=vec3), gradient: wp.array2d(dtype=vec3)
):
    """Adds the rows of all contacts to the gradient and to the Hessian.

    Blocks of a row are symmetric, so it does not matter which of its corners comes first in the matrix.
    """
    if c.count > 0:
        for k in range(c.pairs[w]):
            s, i = c.pair[w, k] // c.samples, c.pair[w, k] % c.samples
            if c.place[i, 0] >= 0:
                n, y = c.normal[w, k], row_motion(c, w, k, a)
                weight, mu = row_weight(c, w, i, m.time_step[w]), c.friction[w, s]
                row = contact_gradient(n, y, weight, mu)
                block = contact_hessian(n, y, weight, mu)
                pair = int(0)
                for p in range(3):
                    gradient[w, c.corner[i, p]] += c.share[i, p] * row
                    for q in range(p + 1):
                        if c.place[i, pair] >= 0:
                            f.blocks[w, c.place[i, pair] // 2] += (c.share[i, p] * c.share[i, q]) * block
                        pair += 1


@wp.func
def contact_line(
    c: Contacts, m: Inertia, f: Factor, w: int, a: wp.array2d(dtype=vec3), alpha: real, base: real
) -> vec3:
    """Cost of all rows at a + αp, less `base`, its slope and its curvature along p, which is the factor's vector."""
    cost, slope, curvature = -base, real(0.0), real(0.0)
    for k in range(c.pairs[w]):
        s, i = c.pair[w, k] // c.samples, c.pair[w, k] % c.samples
        if c.place[i, 0] >= 0:
            p = -velocity_at(c.step[w, s], c.position[w, s], c.at[w, k])
            for q in range(3):
                p += c.share[i, q] * f.vector[w, m.node[c.corner[i, q]]]
            n, y = c.normal[w, k], row_motion(c, w, k, a) + alpha * p
            weight, mu = row_weight(c, w, i, m.time_step[w]), c.friction[w, s]
            cost += contact_cost(n, y, weight, mu)
            slope += wp.dot(p, contact_gradient(n, y, weight, mu))
            curvature += wp.dot(p, contact_hessian(n, y, weight, mu) @ p)
    return vec3(cost, slope, curvature)


@wp.func
def polynomial(c: vec6, alpha: real) -> vec3:
    """Σ cₖαᵏ, its slope and its curvature."""
    value, slope, curvature = real(0.0), real(0.0), real(0.0)
    for j in range(6):
        k = 6 - j
        curvature = curvature * alpha + real(k * (k - 1)) * c[k - 1]
        slope = slope * alpha + real(k) * c[k - 1]
        value = value * alpha + c[k - 1]
    return vec3(value * alpha, slope, curvature / alpha)  # Horner's scheme has run one power too far


@wp.func
def next_trial(alpha: real, low: real, high: real, slope: real, curvature: real) -> real:
    """Where to look after α: Newton's step within the bracket, which has no upper end yet where `high` is negative."""
    trial = real(-1.0)
    if curvature > real(0.0):
        trial = alpha - slope / curvature
    if high < real(0.0):
        if trial <= low or trial > real(4.0) * alpha:
            trial = real(2.0) * alpha
    elif trial <= low or trial >= high:
        trial = real(0.5) * (low + high)
    return trial


@wp.func
def rows_line(
    folds: Folds,
    contacts: Contacts,
    pairs: SelfContacts,
    m: Inertia,
    s: NewtonVectors,
    f: Factor,
    w: int,
    alpha: real,
    base: real,
) -> vec3:
    """`contact_line` of shapes and of the matter itself, and what else is no polynomial."""
    a = s.acceleration
    total = vec3(-base, real(0.0), real(0.0))
    if contacts.count > 0:
        total = contact_line(contacts, m, f, w, a, alpha, base)
    if pairs.count > 0:
        total += self_line(pairs, w, m.time_step[w], a, f.vector, alpha)
    if folds.count > 0:
        total += fold_line(folds, w, s.end, s.step, alpha) / (m.time_step[w] * m.time_step[w])
    return total


@wp.func
def line_minimum(
    c: vec6, folds: Folds, contacts: Contacts, pairs: SelfContacts, m: Inertia, s: NewtonVectors, f: Factor, w: int
) -> real:
    """A minimum of Σ cₖαᵏ and the cost of rows and folds, beyond 0 and no higher than there; from α = 1 on.

    c₁ is the slope of both at 0, and negative.
    """
    start = vec3()
    touching = contacts.count + pairs.count + folds.count
    if touching > 0:
        start = rows_line(folds, contacts, pairs, m, s, f, w, real(0.0), real(0.0))
    slack = COST_ROUNDING * start[0]
    alpha, low, high = real(1.0), real(0.0), real(-1.0)
    for _turn in range(MAXIMUM_LINE_STEPS):
        line = polynomial(c, alpha)
        if touching > 0:
            rows = rows_line(folds, contacts, pairs, m, s, f, w, alpha, start[0])
            line += vec3(rows[0] - alpha * start[1], rows[1] - start[1], rows[2])
        if line[0] <= slack and wp.abs(line[1]) <= SLOPE_SHARE * wp.abs(c[0]):
            return alpha
        if line[0] > slack or line[1] > real(0.0):
            high = alpha
        else:
            low = alpha
        alpha = next_trial(alpha, low, high, line[1], line[2])
    return low


@wp.func
def quadratic_line(springs: Springs, m: Inertia, s: NewtonVectors, f: Factor, w: int) -> vec2:
    """Along the factor's vector: the slope by free vertices, and half the curvature of masses and springs."""
    slope, half = real(0.0), real(0.0)
    for i in range(s.end.shape[1]):
        node = m.node[i]
        if node >= 0:
            p = f.vector[w, node]
            slope += wp.dot(p, s.gradient[w, i])
            half += real(0.5) * inertia_at(m, w, i) * wp.dot(p, p)
    for k in range(springs.count):
        node = m.node[springs.vertex[k]]
        if node >= 0:
            p = f.vector[w, node] - springs.step[w, k]
            half += real(0.5) * spring_weight(springs, w, k, m.time_step[w]) * wp.length_sq(p)
    return vec2(slope, half)


@wp.func
def advance_free(m: Inertia, s: NewtonVectors, f: Factor, w: int, alpha: real):
    """Moves free vertices along the factor's vector."""
    for i in range(s.end.shape[1]):
        node = m.node[i]
        if node >= 0:
            s.acceleration[w, i] += alpha * f.vector[w, node]


@wp.func
def advance_along(
    folds: Folds,
    contacts: Contacts,
    springs: Springs,
    pairs: SelfContacts,
    m: Inertia,
    s: NewtonVectors,
    f: Factor,
    w: int,
    c: vec6,
):
    """Goes to the minimum along the step."""
    h = m.time_step[w]
    quadratic = quadratic_line(springs, m, s, f, w)
    coefficients = c / (h * h)
    coefficients[0] = quadratic[0]
    coefficients[1] += quadratic[1]
    advance_free(m, s, f, w, line_minimum(coefficients, folds, contacts, pairs, m, s, f, w))


@wp.func
def residual_and_rounding(m: Inertia, pairs: SelfContacts, s: NewtonVectors, f: Factor, w: int) -> vec2:
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
            stiffness = (wp.trace(f.blocks[w, node]) / real(3.0) - inertia_at(m, w, i)) / (h * h)
            if pairs.count > 0:
                stiffness += pairs.stiff[w, i] / (h * h)
            residual += wp.length_sq(s.gradient[w, i]) / mass
            noise += stiffness * stiffness / mass
            total += mass
    total = wp.max(total, real(1e-30))
    return vec2(wp.sqrt(residual / total), ROUNDING * extent * wp.sqrt(noise / total))


@wp.func
def judged(code: int, room: int, tangle: wp.vec2i) -> int:
    """The code of a step, with what self-contact says of it."""
    if room == 0:
        return int(CROWDED)
    if code == CONVERGED and tangle[0] >= 0:
        return int(TANGLED)
    return code


@wp.kernel(enable_backward=False)
def newton_kernel(
    m: Inertia,
    elements: Elements,
    contacts: Contacts,
    springs: Springs,
    pairs: SelfContacts,
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
    status: wp.array2d(dtype=wp.int32),  # iterations, code, edge and face that are tangled
    error: wp.array(dtype=real),
    next_x: wp.array2d(dtype=vec3),
    next_v: wp.array2d(dtype=vec3),
    elastic: wp.array2d(dtype=vec3),  # ∇Ψ of pinned vertices, N
):
    """One step of each world."""
    w = natural(wp.tid())
    h = m.time_step[w]
    count = s.end.shape[1]
    for i in range(count):
        s.acceleration[w, i] = vec3()
    prepare_matrix(m, elements, f, w)
    prepare_contacts(contacts, w, h, x, v)
    room = prepare_self(pairs, w, h, x, v)
    code, iterations, shifted, residual = int(UNCONVERGED), int(0), int(1), real(0.0)
    for turn in range(maximum_iterations + 1):
        for i in range(count):
            s.end[w, i] = place_after(m, w, i, x, v, target, s.acceleration[w, i])
            s.gradient[w, i] = load_at(m, w, i, v, force, s.acceleration[w, i])
        assemble(m, elements, f, w, x, s.end, 0, s.gradient)
        add_contacts(contacts, m, f, w, s.acceleration, s.gradient)
        add_self(pairs, w, h, s.acceleration, s.gradient)
        add_springs(springs, m.node, w, h, x, v, s.acceleration, s.gradient, f.blocks)
        measured = residual_and_rounding(m, pairs, s, f, w)
        residual = measured[0]
        iterations = turn
        if residual <= wp.max(tolerance, measured[1]):
            if turn == 0 or shifted > 0:
                shifted = factor_matrix(f, w, 0)
            code = int(CONVERGED)
            if shifted > 0:
                code = int(SADDLE)
            break
        if turn == maximum_iterations or not residual < real(1e30):
            break
        shifted = factor_matrix(f, w, 0)
        if shifted > 0:
            assemble(m, elements, f, w, x, s.end, 1, s.step)
            add_contacts(contacts, m, f, w, s.acceleration, s.step)
            add_springs(springs, m.node, w, h, x, v, s.acceleration, s.step, f.blocks)
            factor_matrix(f, w, 1)
        for i in range(count):
            if m.node[i] >= 0:
                f.vector[w, m.node[i]] = -s.gradient[w, i]
        solve_with_pairs(f, pairs, w, 0)
        for i in range(count):
            s.step[w, i] = vec3()
            if m.node[i] >= 0:
                s.step[w, i] = (h * h) * f.vector[w, m.node[i]]
        line = energy_line(elements, w, h, x, s.end, s.step)
        advance_along(elements.folds, contacts, springs, pairs, m, s, f, w, line)
    for i in range(count):
        end = place_after(m, w, i, x, v, target, s.acceleration[w, i])
        next_x[w, i] = end
        next_v[w, i] = velocity_after(m, w, i, x, v, end, s.acceleration[w, i])
        if m.kind[i] == PINNED:
            elastic[w, m.pin[i]] = s.gradient[w, i] - load_at(m, w, i, v, force, s.acceleration[w, i])
    tangle = first_tangle(pairs, w, next_x)
    status[w, 0] = iterations
    status[w, 1] = judged(code, room, tangle)
    status[w, 2] = tangle[0]
    status[w, 3] = tangle[1]
    error[w] = residual
