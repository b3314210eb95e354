"""What bodies and the deformables that touch them have in common: rows and columns of one matrix. Not taped.

A deformable's points feel bodies through contacts, springs, and vertices that bodies carry; all of them see Jq̈ at one
point of a body, J from the start of the step. So the Hessian of both has the deformable's own matrix, the bodies' own,
and between them a border B whose columns are the dofs of bodies that touch now.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import mat33, real, vec3, vec6
from warpsim.core.spatial import angular, point_rate, spatial
from warpsim.deformable.contact import Contacts, contact_gradient, contact_hessian, row_motion, row_weight
from warpsim.deformable.inertia import Inertia, inertia_at
from warpsim.deformable.matrix import Factor
from warpsim.deformable.newton import NewtonVectors
from warpsim.deformable.self_contact import SelfContacts
from warpsim.deformable.springs import Springs, pull_of, spring_weight
from warpsim.deformable.terms import Elements
from warpsim.rigid.model.topology import Topology


@wp.struct
class System:
    """One deformable among the unknowns of a step, with copies of what the step's slot holds."""

    inertia: Inertia
    elements: Elements
    contacts: Contacts
    springs: Springs
    pairs: SelfContacts
    factor: Factor
    vectors: NewtonVectors
    tolerance: real
    x: wp.array2d(dtype=vec3)  # (W, n) m
    v: wp.array2d(dtype=vec3)  # (W, n) m/s
    force: wp.array2d(dtype=vec3)  # (W, n) N
    target: wp.array2d(dtype=vec3)  # (W, pins) m: pinned vertices at the end of the step, where q̈ is zero
    hold: wp.array2d(dtype=vec3)  # (W, pins) m: where bodies hold them at its start
    shape_body: wp.array(dtype=wp.int32)  # (shapes,)
    spring_body: wp.array(dtype=wp.int32)  # (springs,)
    pin: wp.array(dtype=wp.int32)  # (pins,) vertex
    pin_body: wp.array(dtype=wp.int32)  # (pins,) 0 or less: no body carries it
    carried: int
    carried_pin: wp.array(dtype=wp.int32)  # (carried,) place among the pins, in the order of their blocks
    carried_block: int  # the first of their diagonal blocks
    coupling: wp.array2d(dtype=wp.int32)  # (m, 3) block of two vertices: carried one, row of the other or −1 − carried
    border: wp.array3d(dtype=vec3)  # (W, dofs that touch, size) B
    multiplier: wp.array2d(dtype=vec3)  # (W, n) λ
    adj_end: wp.array2d(dtype=vec3)  # (W, n)
    adj_velocity: wp.array2d(dtype=vec3)  # (W, n)
    status: wp.array2d(dtype=wp.int32)  # (W, 4) iterations, code, edge and face that are tangled
    error: wp.array(dtype=real)  # (W,) m/s²
    room: wp.array(dtype=wp.int32)  # (W,) 0: not enough for the pairs of self-contact


@wp.struct
class Border:
    """The bodies' side of all systems of a world; T and the small matrices are over the dofs that touch."""

    count: wp.array(dtype=wp.int32)  # (W,) how many dofs touch
    active: wp.array2d(dtype=wp.int32)  # (W, nv) these
    column: wp.array2d(dtype=wp.int32)  # (W, nv) place of each dof among them, −1: does not touch
    own: wp.array3d(dtype=real)  # (W, nv, nv) T: what the systems add to H, eliminated
    inverse: wp.array3d(dtype=real)  # (nv, W, nv) columns of the bodies' H⁻¹
    root: wp.array3d(dtype=real)  # (W, nv, nv) Cholesky factor of H⁻¹ over them
    middle: wp.array3d(dtype=real)  # (W, nv, nv) that of 1 + LᵀTL
    right: wp.array2d(dtype=real)  # (W, nv) right-hand side of the bodies
    small: wp.array2d(dtype=real)  # (W, nv)
    reduced: wp.array2d(dtype=real)  # (W, nv)


@wp.struct
class Chain:
    """How dofs move points of bodies at the start of a step."""

    t: Topology
    origin: wp.array2d(dtype=vec3)
    axis: wp.array2d(dtype=vec6)


@wp.func
def arm_of(c: Chain, w: int, b: int, point: vec3) -> vec3:
    """A point from the reference point of a body's tree."""
    return point - c.origin[w, c.t.body_tree[b]]


@wp.func
def first_of(c: Chain, b: int) -> int:
    """Where the list of dofs that move a body begins in `row_column`."""
    last = c.t.body_last_dof[b]
    if last > 0:
        return c.t.row_start[last - 1]
    return 0


@wp.func
def end_of(c: Chain, b: int) -> int:
    """Where that list ends."""
    last = c.t.body_last_dof[b]
    if last > 0:
        return c.t.row_start[last]
    return 0


@wp.func
def twist_of(c: Chain, w: int, b: int, rates: wp.array2d(dtype=real)) -> vec6:
    """Twist of a body about its tree's reference point if the dofs had these rates."""
    total = vec6()
    for e in range(first_of(c, b), end_of(c, b)):
        d = c.t.row_column[e]
        total += rates[w, d] * c.axis[w, d]
    return total


@wp.func
def push(c: Chain, w: int, b: int, point: vec3, force: vec3, out: wp.array2d(dtype=real)):
    """Adds Jᵀ of a force at a point of a body."""
    arm = arm_of(c, w, b, point)
    wrench = spatial(wp.cross(arm, force), force)
    for e in range(first_of(c, b), end_of(c, b)):
        d = c.t.row_column[e]
        out[w, d] += wp.dot(c.axis[w, d], wrench)


@wp.func
def move_along(s: System, c: Chain, w: int, rates: wp.array2d(dtype=real), accelerates: int):
    """J of rates at all that bodies carry: as accelerations, or as the change of these along a direction."""
    for k in range(s.contacts.count):
        if s.shape_body[k] > 0:
            twist = twist_of(c, w, s.shape_body[k], rates)
            arm = arm_of(c, w, s.shape_body[k], s.contacts.position[w, k])
            motion = spatial(angular(twist), point_rate(twist, arm))
            if accelerates == 1:
                s.contacts.acceleration[w, k] = motion
            else:
                s.contacts.step[w, k] = motion
    for k in range(s.springs.count):
        if s.spring_body[k] > 0:
            twist = twist_of(c, w, s.spring_body[k], rates)
            rate = point_rate(twist, arm_of(c, w, s.spring_body[k], s.springs.place[w, k]))
            if accelerates == 1:
                s.springs.acceleration[w, k] = rate
            else:
                s.springs.step[w, k] = rate
    h = s.inertia.time_step[w]
    for j in range(s.carried):
        k = s.carried_pin[j]
        i = s.pin[k]
        twist = twist_of(c, w, s.pin_body[k], rates)
        rate = point_rate(twist, arm_of(c, w, s.pin_body[k], s.hold[w, k]))
        if accelerates == 1:
            s.vectors.end[w, i] = s.target[w, k] + (h * h) * rate
            s.vectors.acceleration[w, i] = ((s.vectors.end[w, i] - s.x[w, i]) / h - s.v[w, i]) / h
        else:
            s.vectors.step[w, i] = (h * h) * rate


@wp.func
def push_bodies(s: System, c: Chain, w: int, gradient: wp.array2d(dtype=real)):
    """Adds the gradient by q̈ of all that bodies carry, given that of the vertices."""
    h = s.inertia.time_step[w]
    if s.contacts.count > 0:
        for k in range(s.contacts.pairs[w]):
            shape, i = s.contacts.pair[w, k] // s.contacts.samples, s.contacts.pair[w, k] % s.contacts.samples
            if s.contacts.place[i, 0] >= 0 and s.shape_body[shape] > 0:
                y = row_motion(s.contacts, w, k, s.vectors.acceleration)
                weight, mu = row_weight(s.contacts, w, i, h), s.contacts.friction[w, shape]
                row = contact_gradient(s.contacts.normal[w, k], y, weight, mu)
                push(c, w, s.shape_body[shape], s.contacts.at[w, k], -row, gradient)
    for k in range(s.springs.count):
        if s.spring_body[k] > 0 and s.inertia.node[s.springs.vertex[k]] >= 0:
            force = pull_of(s.springs, w, k, h, s.x, s.v, s.vectors.acceleration)
            push(c, w, s.spring_body[k], s.springs.place[w, k], -force, gradient)
    for j in range(s.carried):
        k = s.carried_pin[j]
        push(c, w, s.pin_body[k], s.hold[w, k], s.vectors.gradient[w, s.pin[k]], gradient)


@wp.func
def touch(b: Border, c: Chain, w: int, body: int):
    """Lists the dofs that move a body."""
    for e in range(first_of(c, body), end_of(c, body)):
        d = c.t.row_column[e]
        if b.column[w, d] < 0 and c.t.dof_prescribed[d] == 0:
            b.column[w, d] = b.count[w]
            b.active[w, b.count[w]] = d
            b.count[w] = b.count[w] + 1


@wp.func
def row_block(s: System, w: int, k: int) -> mat33:
    """Second derivative of the cost of pair k; zero where it does not touch."""
    shape, i = s.contacts.pair[w, k] // s.contacts.samples, s.contacts.pair[w, k] % s.contacts.samples
    if s.contacts.place[i, 0] < 0:
        return mat33()
    y = row_motion(s.contacts, w, k, s.vectors.acceleration)
    weight = row_weight(s.contacts, w, i, s.inertia.time_step[w])
    return contact_hessian(s.contacts.normal[w, k], y, weight, s.contacts.friction[w, shape])


@wp.func
def touch_all(s: System, b: Border, c: Chain, w: int):
    """Lists the dofs of bodies that this system touches."""
    if s.contacts.count > 0:
        for k in range(s.contacts.pairs[w]):
            body = s.shape_body[s.contacts.pair[w, k] // s.contacts.samples]
            if body > 0:
                if wp.trace(row_block(s, w, k)) > real(0.0):
                    touch(b, c, w, body)
    for k in range(s.springs.count):
        if s.spring_body[k] > 0 and s.inertia.node[s.springs.vertex[k]] >= 0:
            touch(b, c, w, s.spring_body[k])
    for j in range(s.carried):
        touch(b, c, w, s.pin_body[s.carried_pin[j]])


@wp.func
def add_pair(b: Border, c: Chain, w: int, body: int, at: vec3, d: int, change: vec3):
    """Row of T: what a force that changes by `change` with dof d does at a point of a body."""
    arm = arm_of(c, w, body, at)
    for e in range(first_of(c, body), end_of(c, body)):
        other = b.column[w, c.t.row_column[e]]
        if other >= 0:
            value = wp.dot(point_rate(c.axis[w, c.t.row_column[e]], arm), change)
            b.own[w, d, other] = b.own[w, d, other] + value


@wp.func
def add_contact_columns(s: System, b: Border, c: Chain, w: int, k: int):
    """B and T of one contact."""
    shape, i = s.contacts.pair[w, k] // s.contacts.samples, s.contacts.pair[w, k] % s.contacts.samples
    body = s.shape_body[shape]
    block = row_block(s, w, k)
    if wp.trace(block) > real(0.0):
        arm = arm_of(c, w, body, s.contacts.at[w, k])
        for e in range(first_of(c, body), end_of(c, body)):
            d = b.column[w, c.t.row_column[e]]
            if d >= 0:
                change = block @ point_rate(c.axis[w, c.t.row_column[e]], arm)
                for p in range(3):
                    node = s.inertia.node[s.contacts.corner[i, p]]
                    s.border[w, d, node] = s.border[w, d, node] - s.contacts.share[i, p] * change
                add_pair(b, c, w, body, s.contacts.at[w, k], d, change)


@wp.func
def add_spring_columns(s: System, b: Border, c: Chain, w: int, k: int):
    """B and T of one spring."""
    body, node = s.spring_body[k], s.inertia.node[s.springs.vertex[k]]
    if body > 0 and node >= 0:
        at = s.springs.place[w, k]
        weight, arm = spring_weight(s.springs, w, k, s.inertia.time_step[w]), arm_of(c, w, body, at)
        for e in range(first_of(c, body), end_of(c, body)):
            d = b.column[w, c.t.row_column[e]]
            if d >= 0:
                change = weight * point_rate(c.axis[w, c.t.row_column[e]], arm)
                s.border[w, d, node] = s.border[w, d, node] - change
                add_pair(b, c, w, body, at, d, change)


@wp.func
def add_carried_columns(s: System, b: Border, c: Chain, w: int, block: mat33, mine: int, node: int, other: int):
    """B or T of a block: rows of one carried vertex, columns of a free one (node) or of another carried one."""
    k = s.carried_pin[mine]
    body = s.pin_body[k]
    arm = arm_of(c, w, body, s.hold[w, k])
    for e in range(first_of(c, body), end_of(c, body)):
        d = b.column[w, c.t.row_column[e]]
        if d >= 0:
            change = wp.transpose(block) @ point_rate(c.axis[w, c.t.row_column[e]], arm)
            if node >= 0:
                s.border[w, d, node] = s.border[w, d, node] + change
            else:
                p = s.carried_pin[other]
                add_pair(b, c, w, s.pin_body[p], s.hold[w, p], d, change)


@wp.func
def add_columns(s: System, b: Border, c: Chain, w: int):
    """B, and T before elimination, of one system; its Hessian must have been assembled."""
    for d in range(b.count[w]):
        for i in range(s.factor.size):
            s.border[w, d, i] = vec3()
    if s.contacts.count > 0:
        for k in range(s.contacts.pairs[w]):
            if s.shape_body[s.contacts.pair[w, k] // s.contacts.samples] > 0:
                add_contact_columns(s, b, c, w, k)
    for k in range(s.springs.count):
        add_spring_columns(s, b, c, w, k)
    for j in range(s.carried):
        mass = inertia_at(s.inertia, w, s.pin[s.carried_pin[j]]) * wp.identity(n=3, dtype=real)
        add_carried_columns(s, b, c, w, s.factor.blocks[w, s.carried_block + j] + mass, j, -1, j)
    for j in range(s.coupling.shape[0]):
        block, mine, other = s.factor.blocks[w, s.coupling[j, 0]], s.coupling[j, 1], s.coupling[j, 2]
        add_carried_columns(s, b, c, w, block, mine, other, -1 - other)
        if other < 0:
            add_carried_columns(s, b, c, w, wp.transpose(block), -1 - other, -1, mine)
