"""One step of bodies and deformables: Newton's method on all their accelerations, one thread per world. Not taped.

    min ½(q̈ − a₀)ᵀM(q̈ − a₀) + s(Jq̈ − aref) + Σ [½(a − a₀)ᵀM(a − a₀) + h⁻²Ψ(x⁺) + s(a − Jq̈)]

The first two terms are those of bodies alone, with their own contacts, limits and equalities; the sum is over the
deformables. Directions are those of the whole Hessian, lengths those of the whole objective along them.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.indexing import natural
from warpsim.core.precision import EPSILON, real, vec3, vec6
from warpsim.deformable.border import Border, Chain, System, add_columns, move_along, push_bodies, touch_all
from warpsim.deformable.contact import prepare_contacts, row_weight
from warpsim.deformable.elimination import (
    clear_own,
    complete_bodies,
    complete_system,
    eliminate,
    factor_middle,
    factor_systems,
    load_right,
    reduce_right,
    start_border,
    unit_column,
)
from warpsim.deformable.fold import fold_line
from warpsim.deformable.inertia import inertia_at, load_at, place_after
from warpsim.deformable.near import first_tangle, prepare_self
from warpsim.deformable.newton import (
    COST_ROUNDING,
    MAXIMUM_LINE_STEPS,
    ROUNDING,
    SLOPE_SHARE,
    add_contacts,
    advance_free,
    assemble,
    contact_line,
    judged,
    next_trial,
    polynomial,
    prepare_matrix,
    quadratic_line,
    residual_and_rounding,
)
from warpsim.deformable.self_contact import add_self, self_line
from warpsim.deformable.springs import add_springs, spring_weight
from warpsim.deformable.terms import energy_line
from warpsim.deformable.types import CONVERGED, SADDLE, UNCONVERGED
from warpsim.solve.hessian import ENVELOPE, FOREST, HessianKernels, HessianStorage
from warpsim.solve.native import dot, jacobian_product, mass_product, row_cost
from warpsim.solve.newton import NewtonVectors, evaluate, trace_of
from warpsim.solve.rows import Rows
from warpsim.solve.sparsity import TreeSparsity

_EPSILON = wp.constant(real(EPSILON))


@wp.func
def begin_all(systems: wp.array(dtype=System), w: int):
    """Nothing accelerates; contacts of the start of the step."""
    for k in range(systems.shape[0]):
        s = systems[k]
        for i in range(s.x.shape[1]):
            s.vectors.acceleration[w, i] = vec3()
        prepare_matrix(s.inertia, s.elements, s.factor, w)
        prepare_contacts(s.contacts, w, s.inertia.time_step[w], s.x, s.v)
        s.room[w] = prepare_self(s.pairs, w, s.inertia.time_step[w], s.x, s.v)


@wp.func
def assemble_system(s: System, c: Chain, w: int, a: wp.array2d(dtype=real), convex: int):
    """Gradient and Hessian of one system at its accelerations and q̈."""
    h = s.inertia.time_step[w]
    for i in range(s.x.shape[1]):
        s.vectors.end[w, i] = place_after(s.inertia, w, i, s.x, s.v, s.target, s.vectors.acceleration[w, i])
    move_along(s, c, w, a, 1)
    for i in range(s.x.shape[1]):
        s.vectors.gradient[w, i] = load_at(s.inertia, w, i, s.v, s.force, s.vectors.acceleration[w, i])
    assemble(s.inertia, s.elements, s.factor, w, s.x, s.vectors.end, convex, s.vectors.gradient)
    add_contacts(s.contacts, s.inertia, s.factor, w, s.vectors.acceleration, s.vectors.gradient)
    add_self(s.pairs, w, h, s.vectors.acceleration, s.vectors.gradient)
    add_springs(s.springs, s.inertia.node, w, h, s.x, s.v, s.vectors.acceleration, s.vectors.gradient, s.factor.blocks)


@wp.func
def stiffness_on_bodies(s: System, w: int) -> real:
    """Σ k² of all through which bodies feel a system."""
    h, total = s.inertia.time_step[w], real(0.0)
    if s.contacts.count > 0:
        for k in range(s.contacts.pairs[w]):
            if s.shape_body[s.contacts.pair[w, k] // s.contacts.samples] > 0:
                stiff = row_weight(s.contacts, w, s.contacts.pair[w, k] % s.contacts.samples, h) / (h * h)
                total += stiff * stiff
    for k in range(s.springs.count):
        stiff = spring_weight(s.springs, w, k, h) / (h * h)
        total += stiff * stiff
    for j in range(s.carried):
        stiff = wp.trace(s.factor.blocks[w, s.carried_block + j]) / (h * h)
        total += stiff * stiff
    return total


@wp.func
def measure(systems: wp.array(dtype=System), w: int) -> vec3:
    """Whether all systems are solved (1, or 0, or −1 for numbers that are none), Σ k² on bodies, and the extent."""
    solved, stiff, extent = real(1.0), real(0.0), real(0.0)
    for k in range(systems.shape[0]):
        s = systems[k]
        found = residual_and_rounding(s.inertia, s.pairs, s.vectors, s.factor, w)
        s.error[w] = found[0]
        if not found[0] <= wp.max(s.tolerance, found[1]):
            solved = wp.min(solved, real(0.0))
        if not found[0] < real(1e30):
            solved = real(-1.0)
        stiff += stiffness_on_bodies(s, w)
        for i in range(s.x.shape[1]):
            extent = wp.max(extent, wp.length(s.vectors.end[w, i]))
    return vec3(solved, stiff, extent)


@wp.func
def couple(systems: wp.array(dtype=System), c: Chain, nv: int, b: Border, w: int):
    """Which dofs touch, B, and T; the systems' matrices must have been factored."""
    start_border(nv, b, w)
    for k in range(systems.shape[0]):
        s = systems[k]
        touch_all(s, b, c, w)
    clear_own(b, w)
    for k in range(systems.shape[0]):
        s = systems[k]
        add_columns(s, b, c, w)
        eliminate(s, b, w)
    for d in range(b.count[w]):
        unit_column(nv, b, w, d)


@wp.func
def rows_line(systems: wp.array(dtype=System), rows: Rows, v: NewtonVectors, w: int, alpha: real, base: real) -> vec3:
    """Cost of all rows, less `base`, slope and curvature."""
    row_cost(rows, w, v.y, v.z, alpha, 0, v.force, v.curve)
    total = vec3(v.curve[w, 0] - base, v.curve[w, 1], v.curve[w, 2])
    for k in range(systems.shape[0]):
        s = systems[k]
        h = s.inertia.time_step[w]
        if s.elements.folds.count > 0:
            total += fold_line(s.elements.folds, w, s.vectors.end, s.vectors.step, alpha) / (h * h)
        if s.contacts.count > 0:
            total += contact_line(s.contacts, s.inertia, s.factor, w, s.vectors.acceleration, alpha, real(0.0))
        if s.pairs.count > 0:
            h = s.inertia.time_step[w]
            total += self_line(s.pairs, w, h, s.vectors.acceleration, s.factor.vector, alpha)
    return total


@wp.func
def joint_minimum(c: vec6, systems: wp.array(dtype=System), rows: Rows, v: NewtonVectors, w: int) -> real:
    """As `newton.line_minimum`, with the rows of bodies and of all systems."""
    start = rows_line(systems, rows, v, w, real(0.0), real(0.0))
    slack = COST_ROUNDING * start[0]
    alpha, low, high = real(1.0), real(0.0), real(-1.0)
    for _turn in range(MAXIMUM_LINE_STEPS):
        found = rows_line(systems, rows, v, w, alpha, start[0])
        line = polynomial(c, alpha) + vec3(found[0] - alpha * start[1], found[1] - start[1], found[2])
        if line[0] <= slack and wp.abs(line[1]) <= SLOPE_SHARE * wp.abs(c[0]):
            return alpha
        if line[0] > slack or line[1] > real(0.0):
            high = alpha
        else:
            low = alpha
        alpha = next_trial(alpha, low, high, line[1], line[2])
    return low


@wp.func
def system_line(s: System, c: Chain, w: int, direction: wp.array2d(dtype=real)) -> vec6:
    """Coefficients of one system's energy and masses along the direction; the first, the slope by free vertices."""
    h = s.inertia.time_step[w]
    for i in range(s.x.shape[1]):
        s.vectors.step[w, i] = vec3()
        if s.inertia.node[i] >= 0:
            s.vectors.step[w, i] = (h * h) * s.factor.vector[w, s.inertia.node[i]]
    move_along(s, c, w, direction, 0)
    line = energy_line(s.elements, w, h, s.x, s.vectors.end, s.vectors.step) / (h * h)
    quadratic = quadratic_line(s.springs, s.inertia, s.vectors, s.factor, w)
    line[0] = quadratic[0]
    line[1] += quadratic[1]
    for j in range(s.carried):
        i = s.pin[s.carried_pin[j]]
        p = s.vectors.step[w, i] / (h * h)
        line[1] += real(0.5) * inertia_at(s.inertia, w, i) * wp.dot(p, p)
    return line


@wp.func
def advance_all(
    systems: wp.array(dtype=System),
    c: Chain,
    t: TreeSparsity,
    rows: Rows,
    v: NewtonVectors,
    w: int,
    matrix: wp.array2d(dtype=real),
    implicit: wp.array2d(dtype=real),
    direction: wp.array2d(dtype=real),
    a: wp.array2d(dtype=real),
) -> real:
    """Goes to the minimum along the direction; how far, of that of bodies."""
    jacobian_product(rows, w, direction, 0, v.z)
    mass_product(t, w, matrix, implicit, direction, v.mass_p)
    line = vec6()
    line[0] = dot(t.nv, w, direction, v.gradient)
    line[1] = real(0.5) * dot(t.nv, w, direction, v.mass_p)
    for k in range(systems.shape[0]):
        s = systems[k]
        line += system_line(s, c, w, direction)
    alpha = joint_minimum(line, systems, rows, v, w)
    for d in range(t.nv):
        a[w, d] = a[w, d] + alpha * direction[w, d]
    for k in range(systems.shape[0]):
        s = systems[k]
        advance_free(s.inertia, s.vectors, s.factor, w, alpha)
    return alpha * wp.sqrt(dot(t.nv, w, direction, direction))


@wp.func
def assemble_all(
    systems: wp.array(dtype=System),
    c: Chain,
    t: TreeSparsity,
    v: NewtonVectors,
    w: int,
    a: wp.array2d(dtype=real),
    convex: int,
):
    """Gradients and Hessians of all systems; adds their part to the bodies' gradient."""
    for k in range(systems.shape[0]):
        s = systems[k]
        assemble_system(s, c, w, a, convex)
        push_bodies(s, c, w, v.gradient)
    for d in range(t.nv):
        if t.dof_prescribed[d] == 1:
            v.gradient[w, d] = real(0.0)


@wp.func
def reduce_all(systems: wp.array(dtype=System), b: Border, w: int, sign: real):
    """b.right less what eliminating the systems takes of it; their right-hand sides are sign times their gradients."""
    for k in range(systems.shape[0]):
        s = systems[k]
        load_right(s, w, s.vectors.gradient, sign)
        reduce_right(s, b, w)


@wp.func
def complete_all(systems: wp.array(dtype=System), nv: int, b: Border, w: int, sign: real):
    """The solution, of bodies in b.right, of systems in their factors' vectors, from the bodies' own one."""
    complete_bodies(nv, b, w)
    for k in range(systems.shape[0]):
        s = systems[k]
        complete_system(s, b, w, s.vectors.gradient, sign)


@wp.func
def finish_systems(systems: wp.array(dtype=System), w: int, iterations: int, code: int):
    """The report of each."""
    for k in range(systems.shape[0]):
        s = systems[k]
        s.status[w, 0] = iterations
        tangle = first_tangle(s.pairs, w, s.vectors.end)
        s.status[w, 1] = judged(code, s.room[w], tangle)
        s.status[w, 2] = tangle[0]
        s.status[w, 3] = tangle[1]


def _joint_newton_kernel(storage: HessianStorage) -> wp.Kernel:
    factor_hessian, solve_hessian = storage.factor, storage.solve

    # a module for each form: a scene compiles the one that it needs
    @wp.kernel(enable_backward=False, name=f"joint_newton_{storage.name}_kernel", module=f"{__name__}_{storage.name}")
    def joint_newton_kernel(
        systems: wp.array(dtype=System),
        c: Chain,
        t: TreeSparsity,
        rows: Rows,
        v: NewtonVectors,
        b: Border,
        iterations: int,
        tolerance: real,
        # the bodies' quadratic part: M, its diagonal terms, and −M a₀
        matrix: wp.array2d(dtype=real),
        implicit: wp.array2d(dtype=real),
        rest: wp.array2d(dtype=real),
        # out: a₀ comes in, a* goes out
        a: wp.array2d(dtype=real),
        factor: wp.array2d(dtype=real),
        envelope: wp.array2d(dtype=wp.int32),
        status: wp.array2d(dtype=wp.int32),
        error: wp.array(dtype=real),
    ):
        w = natural(wp.tid())
        if rows.overflow[w] == 1:
            for d in range(t.nv):
                a[w, d] = real(wp.static(float("nan")))
        inertia = trace_of(t, w, matrix)
        begin_all(systems, w)
        code, count, convex, shifted, still, running = int(UNCONVERGED), int(0), int(0), int(1), int(0), int(1)
        # each function stands once in the loop: they are long
        while running == 1:
            evaluate(t, rows, v, w, matrix, implicit, rest, a)
            assemble_all(systems, c, t, v, w, a, convex)
            if convex == 0:
                found = measure(systems, w)
                norm = wp.sqrt(dot(t.nv, w, v.gradient, v.gradient)) / inertia
                floor = real(8.0) * _EPSILON * wp.sqrt(dot(t.nv, w, v.mass_a, v.mass_a)) / inertia
                floor += ROUNDING * found[2] * (real(1.0) + found[2]) * wp.sqrt(found[1]) / inertia
                error[w] = norm
                if found[0] > real(0.0) and (norm <= wp.max(tolerance, floor) or still == 1):
                    code = int(CONVERGED)
                elif count >= iterations or found[0] < real(0.0) or not norm < real(1e30):
                    running = 0
            wrong = factor_hessian(rows, t, w, v.y, matrix, implicit, 0, factor, envelope)
            if wrong > 0 or (code == CONVERGED and shifted == 0):
                running = 0
            if running == 1:
                wrong = factor_systems(systems, w, convex)
                couple(systems, c, t.nv, b, w)
                for d in range(b.count[w]):
                    solve_hessian(t, w, factor, envelope, b.inverse[d])
                wrong += factor_middle(b, w)
                if code == CONVERGED:
                    running = 0
                    if wrong > 0:
                        code = int(SADDLE)
                elif wrong > 0 and convex == 0:
                    convex = 1
                else:
                    if wrong > 0:  # without the border: a direction that goes down all the same
                        start_border(t.nv, b, w)
                    shifted = convex
                    for d in range(t.nv):
                        b.right[w, d] = -v.gradient[w, d]
                    reduce_all(systems, b, w, real(-1.0))
                    solve_hessian(t, w, factor, envelope, b.right)
                    complete_all(systems, t.nv, b, w, real(-1.0))
                    size = wp.sqrt(dot(t.nv, w, a, a))
                    moved = advance_all(systems, c, t, rows, v, w, matrix, implicit, b.right, a)
                    still = wp.where(moved <= real(16.0) * _EPSILON * size, 1, 0)
                    convex = 0
                    count += 1
        finish_systems(systems, w, count, code)
        status[w, 0] = count
        status[w, 1] = wp.where(code == UNCONVERGED, 1, 0)

    return joint_newton_kernel


_joint_newton_envelope_kernel = _joint_newton_kernel(ENVELOPE)
_joint_newton_forest_kernel = _joint_newton_kernel(FOREST)
JOINT_NEWTON_KERNELS = HessianKernels(_joint_newton_envelope_kernel, _joint_newton_forest_kernel)
