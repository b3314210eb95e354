"""Impacts at their own moment within a step, so that a bounce has the motion's own derivative (`Options.impacts`).

A compliant contact starts at whichever step first finds the bodies overlapping. Where in the step they touched then
changes what follows, and the derivative of those changes, though exact for the steps taken, is not that of the motion:
it lacks the change of the moment of touch. So with impacts, a step runs as follows, tree by tree.

1. It is taken as usual, but contacts that close faster than `impact_speed` are left without force ("pending").
2. Such a contact, found to overlap at the step's end with distance φ and rate φ̇ < 0, began s = φ/φ̇ before. The
   trees it joins go back to that moment, along the step's own velocities and accelerations.
3. There the solver finds the jump Δv of velocities with Newton's restitution and Coulomb's friction:
   argmin ½ Δvᵀ M Δv + s(J Δv − ref), ref = −(1 + e) φ̇ along the normal and −v across it; contacts and limits that hold
   already, and equalities, pass impulses on with ref = 0.
4. From there the trees go the rest of the way, s seconds, with the forces after the impact.

s is differentiated, and so are all four parts: the derivative of the step has the saltation matrix in it. Impacts that
follow each other within a step are taken in turn, each step going back to the one it finds. `DEPTH` lets bodies sink
in by that many h² before they count as touching, so that what stays in touch is found to be.

The cone of a convex solver lifts what slides: the rebound grows by ‖friction · sliding velocity⁺‖ (Anitescu 2006). As
de Saxcé and Feng (1998) do, that `lift` is subtracted from the reference, and the solve repeated with the sliding
velocity just found, `PASSES` times in all. Repeated as such, the error falls by a μ²/(1 + a μ²) each time, a being the
inverse inertia across the normal over that along it, between 1 for what does not turn and 3.5 for a ball. Taking 1 +
2μ² times the change instead brings that down to a quarter or so for all of these.
"""

from __future__ import annotations

import warp as wp

from warpsim.collision.contacts import Contacts
from warpsim.core.indexing import natural
from warpsim.core.precision import mat33, real, vec3, vec5, vec6
from warpsim.core.stages import stage
from warpsim.rigid.constraint.contact_law import COMPLIANT, HELD, PENDING, STRUCK, relative_rates
from warpsim.rigid.model.model import Model
from warpsim.rigid.model.parameters import PairParameters
from warpsim.rigid.model.topology import Topology
from warpsim.rigid.work.constraint_work import ConstraintWork
from warpsim.rigid.work.row_settings import ContactSettings
from warpsim.rigid.work.state import Motion

PASSES = 5
"""Solves of an impact with friction."""
DEPTH = wp.constant(real(20.0))
"""m/s²: bodies touch when they overlap by this times h²."""
_SLACK = wp.constant(real(0.25))
"""Steps ahead of its own touch that a contact is taken along in another's impact."""
LONGEST = wp.constant(real(2.0))
"""Steps that a tree goes back at most."""
_ROUNDS = wp.constant(4)
"""Trees in a row that go back together because they strike each other."""


@wp.func
def _closing_rate(
    t: Topology,
    c: ContactSettings,
    w: int,
    i: int,
    point: vec3,
    frame: mat33,
    origin: wp.array2d(dtype=vec3),
    velocity: wp.array2d(dtype=vec6),
) -> real:
    """Rate of a contact's distance, m/s."""
    a = c.shape_body[c.pair_shapes[i, 0]]
    b = c.shape_body[c.pair_shapes[i, 1]]
    arm_a = point - origin[w, t.body_tree[a]]
    arm_b = point - origin[w, t.body_tree[b]]
    va = velocity[w, t.body_last_dof[a]]
    vb = velocity[w, t.body_last_dof[b]]
    return relative_rates(frame, va, vb, arm_a, arm_b, 1)[0]


@wp.func
def _tree(t: Topology, c: ContactSettings, i: int, side: int) -> int:
    """The tree of one of a pair's bodies; −1 where it cannot move."""
    b = c.shape_body[c.pair_shapes[i, side]]
    if t.body_last_dof[b] == 0:
        return -1
    return t.body_tree[b]


@wp.kernel(enable_backward=False)
def _pending_kernel(
    t: Topology,
    c: ContactSettings,
    count: wp.array(dtype=wp.int32),
    pair: wp.array2d(dtype=wp.int32),
    point: wp.array2d(dtype=vec3),
    frame: wp.array2d(dtype=mat33),
    origin: wp.array2d(dtype=vec3),
    velocity: wp.array2d(dtype=vec6),
    role: wp.array2d(dtype=wp.int32),
):
    w = natural(wp.tid())
    for k in range(wp.min(count[w], pair.shape[1])):
        rate = _closing_rate(t, c, w, pair[w, k], point[w, k], frame[w, k], origin, velocity)
        role[w, k] = wp.where(rate < -c.impact_speed, PENDING, COMPLIANT)


@stage
def leave_pending(m: Model, work: Motion, c: ConstraintWork, settings: ContactSettings) -> None:
    """`c.role` of an ordinary evaluation: what closes fast has no force yet. Not taped."""
    x = c.contacts
    inputs = [m.topology, settings, x.count, x.pair, x.point, x.frame, work.origin, work.velocity]
    wp.launch(_pending_kernel, dim=m.worlds, inputs=inputs, outputs=[c.role], device=m.device, record_tape=False)


@wp.func
def _go_back(tree: int, w: int, s: real, k: int, span: wp.array2d(dtype=real), first: wp.array2d(dtype=wp.int32)):
    if tree >= 0 and s > span[w, tree]:
        span[w, tree] = s
        first[w, tree] = k


@wp.kernel(enable_backward=False)
def _first_touch_kernel(
    # topology, parameters
    t: Topology,
    c: ContactSettings,
    margin: wp.array2d(dtype=real),
    timestep: wp.array(dtype=real),
    # contacts
    count: wp.array(dtype=wp.int32),
    pair: wp.array2d(dtype=wp.int32),
    distance: wp.array2d(dtype=real),
    point: wp.array2d(dtype=vec3),
    frame: wp.array2d(dtype=mat33),
    # work in
    origin: wp.array2d(dtype=vec3),
    velocity: wp.array2d(dtype=vec6),
    # out
    span: wp.array2d(dtype=real),
    first: wp.array2d(dtype=wp.int32),
    reach: wp.array2d(dtype=real),
):
    w = natural(wp.tid())
    depth = DEPTH * timestep[w] * timestep[w]
    fastest = real(0.0)
    for tree in range(first.shape[1]):
        span[w, tree] = real(0.0)
        first[w, tree] = -1
    for _round in range(_ROUNDS):
        for k in range(wp.min(count[w], pair.shape[1])):
            i = pair[w, k]
            violation = distance[w, k] - margin[w, i] + depth
            rate = _closing_rate(t, c, w, i, point[w, k], frame[w, k], origin, velocity)
            if violation < real(0.0) and rate < -c.impact_speed:
                fastest = wp.max(fastest, -rate)
                s = violation / rate
                earliest = k
                for side in range(2):
                    tree = _tree(t, c, i, side)
                    if tree >= 0:
                        if span[w, tree] > s:
                            s = span[w, tree]
                            earliest = first[w, tree]
                _go_back(_tree(t, c, i, 0), w, s, earliest, span, first)
                _go_back(_tree(t, c, i, 1), w, s, earliest, span, first)
    for i in range(reach.shape[1]):
        reach[w, i] = margin[w, i] + _SLACK * timestep[w] * fastest


@wp.kernel
def _time_back_kernel(
    # topology, parameters
    t: Topology,
    c: ContactSettings,
    margin: wp.array2d(dtype=real),
    timestep: wp.array(dtype=real),
    # contacts
    count: wp.array(dtype=wp.int32),
    pair: wp.array2d(dtype=wp.int32),
    distance: wp.array2d(dtype=real),
    point: wp.array2d(dtype=vec3),
    frame: wp.array2d(dtype=mat33),
    # work in
    origin: wp.array2d(dtype=vec3),
    velocity: wp.array2d(dtype=vec6),
    first: wp.array2d(dtype=wp.int32),
    # out
    back: wp.array2d(dtype=real),
):
    w = natural(wp.tid())
    h = timestep[w]
    for tree in range(first.shape[1]):
        k = first[w, tree]
        if count[w] > pair.shape[1]:
            # contacts were dropped, and one of them may have touched first: make the step fail
            back[w, tree] = real(wp.static(float("nan")))
        elif k >= 0:
            i = pair[w, k]
            rate = _closing_rate(t, c, w, i, point[w, k], frame[w, k], origin, velocity)
            s = (distance[w, k] - margin[w, i] + DEPTH * h * h) / rate
            if s > LONGEST * h:
                back[w, tree] = LONGEST * h
            else:
                back[w, tree] = s
        else:
            back[w, tree] = real(0.0)


@stage
def time_of_touch(
    m: Model,
    work: Motion,
    x: Contacts,
    settings: ContactSettings,
    span: wp.array,
    first: wp.array,
    reach: wp.array,
    back: wp.array,
) -> None:
    """`back` (W, ntree), s: how long ago each tree was struck; 0 where it was not. Taped but for which contact says so.

    Args:
        m: The model.
        work: Motion at the step's end.
        x: Contacts there.
        settings: Of contacts.
        span: Scratch of back's shape.
        first: (W, ntree) int32: the contact whose touch each tree goes back to, or −1.
        reach: (W, np), m: within which contacts are to be looked for at the moment of touch.
        back: Written.
    """
    parameters = [m.topology, settings, m.pair.margin, m.world.timestep]
    places, motion = [x.count, x.pair, x.distance, x.point, x.frame], [work.origin, work.velocity]
    wp.launch(
        _first_touch_kernel,
        dim=m.worlds,
        inputs=[*parameters, *places, *motion],
        outputs=[span, first, reach],
        device=m.device,
        record_tape=False,
    )
    inputs = [*parameters, *places, *motion, first]
    wp.launch(_time_back_kernel, dim=m.worlds, inputs=inputs, outputs=[back], device=m.device)


@wp.kernel(enable_backward=False)
def _struck_kernel(
    # topology, parameters
    t: Topology,
    c: ContactSettings,
    margin: wp.array2d(dtype=real),
    timestep: wp.array(dtype=real),
    # contacts
    count: wp.array(dtype=wp.int32),
    pair: wp.array2d(dtype=wp.int32),
    distance: wp.array2d(dtype=real),
    point: wp.array2d(dtype=vec3),
    frame: wp.array2d(dtype=mat33),
    # work in
    origin: wp.array2d(dtype=vec3),
    velocity: wp.array2d(dtype=vec6),
    first: wp.array2d(dtype=wp.int32),
    # out
    role: wp.array2d(dtype=wp.int32),
):
    w = natural(wp.tid())
    h = timestep[w]
    for k in range(wp.min(count[w], pair.shape[1])):
        i = pair[w, k]
        violation = distance[w, k] - margin[w, i]
        rate = _closing_rate(t, c, w, i, point[w, k], frame[w, k], origin, velocity)
        fresh = int(0)
        for side in range(2):
            tree = _tree(t, c, i, side)
            if tree >= 0:
                if first[w, tree] >= 0:
                    fresh = int(1)
        if fresh == 1 and rate < -c.impact_speed and violation + DEPTH * h * h < -_SLACK * h * rate:
            role[w, k] = STRUCK
        elif violation < real(0.0):
            role[w, k] = HELD
        else:
            role[w, k] = PENDING


@stage
def find_struck(m: Model, work: Motion, c: ConstraintWork, settings: ContactSettings, first: wp.array) -> None:
    """`c.role` at the moment of touch: which contacts rebound, which pass impulses on. Not taped."""
    x = c.contacts
    parameters = [m.topology, settings, m.pair.margin, m.world.timestep]
    inputs = [*parameters, x.count, x.pair, x.distance, x.point, x.frame, work.origin, work.velocity, first]
    wp.launch(_struck_kernel, dim=m.worlds, inputs=inputs, outputs=[c.role], device=m.device, record_tape=False)


@wp.func
def _sliding(friction: vec5, v: vec6) -> real:
    """‖friction · velocity‖ across the normal."""
    a = friction[0] * v[1]
    b = friction[1] * v[2]
    c = friction[2] * v[3]
    d = friction[3] * v[4]
    e = friction[4] * v[5]
    square = a * a + b * b + c * c + d * d + e * e
    if square > real(0.0):
        return wp.sqrt(square)
    return real(0.0)


@wp.func
def _next_lift(lift: real, sliding: real, friction: real) -> real:
    x = lift + (real(1.0) + real(2.0) * friction * friction) * (sliding - lift)
    if x > real(0.0):
        return x
    return real(0.0)  # it came to stick


@wp.kernel
def _lift_kernel(
    # topology, parameters
    t: Topology,
    c: ContactSettings,
    pair: PairParameters,
    # contacts
    role: wp.array2d(dtype=wp.int32),
    count: wp.array(dtype=wp.int32),
    contact_pair: wp.array2d(dtype=wp.int32),
    point: wp.array2d(dtype=vec3),
    frame: wp.array2d(dtype=mat33),
    # work in
    origin: wp.array2d(dtype=vec3),
    velocity: wp.array2d(dtype=vec6),
    change: wp.array2d(dtype=vec6),
    last: wp.array2d(dtype=real),
    # out
    lift: wp.array2d(dtype=real),
):
    w = natural(wp.tid())
    for k in range(wp.min(count[w], contact_pair.shape[1])):
        if role[w, k] == STRUCK:
            i = contact_pair[w, k]
            a = c.shape_body[c.pair_shapes[i, 0]]
            b = c.shape_body[c.pair_shapes[i, 1]]
            arm_a = point[w, k] - origin[w, t.body_tree[a]]
            arm_b = point[w, k] - origin[w, t.body_tree[b]]
            la = t.body_last_dof[a]
            lb = t.body_last_dof[b]
            va = velocity[w, la] + change[w, la]
            vb = velocity[w, lb] + change[w, lb]
            friction = pair.friction[w, i]
            sliding = _sliding(friction, relative_rates(frame[w, k], va, vb, arm_a, arm_b, c.pair_dim[i]))
            lift[w, k] = _next_lift(last[w, k], sliding, friction[0])
        else:
            lift[w, k] = real(0.0)


@stage
def lift_of_sliding(
    m: Model, work: Motion, c: ConstraintWork, settings: ContactSettings, change: wp.array, lift: wp.array
) -> None:
    """`lift` (W, mc), m/s, of struck contacts, for the next solve, from the twists an impact adds. Taped."""
    x = c.contacts
    inputs = [m.topology, settings, m.pair, c.role, x.count, x.pair, x.point, x.frame]
    motion = [work.origin, work.velocity, change, c.lift]
    wp.launch(_lift_kernel, dim=m.worlds, inputs=[*inputs, *motion], outputs=[lift], device=m.device)
