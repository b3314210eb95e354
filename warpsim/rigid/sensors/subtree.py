"""Sensors of a body and all that hangs on it: center of mass, its velocity, angular momentum about it."""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import real, vec3, vec6
from warpsim.core.spatial import angular, point_rate, sym_mul
from warpsim.rigid.model.model import Model
from warpsim.rigid.model.topology import Topology
from warpsim.rigid.sensors.layout import SensorTopology
from warpsim.rigid.work.state import Work

_LEAST = wp.constant(real(1e-15))


@wp.func
def _mass(c: SensorTopology, mass: wp.array2d(dtype=real), w: int, i: int) -> real:
    total = real(0.0)
    for k in range(c.subtree_start[i], c.subtree_start[i + 1]):
        total += mass[w, c.subtree_body[k]]
    return total


@wp.func
def _center(
    c: SensorTopology,
    t: Topology,
    mass: wp.array2d(dtype=real),
    origin: wp.array2d(dtype=vec3),
    com: wp.array2d(dtype=vec3),
    w: int,
    i: int,
) -> vec3:
    """Σ m p, kg·m."""
    total = vec3()
    for k in range(c.subtree_start[i], c.subtree_start[i + 1]):
        b = c.subtree_body[k]
        total += (origin[w, t.body_tree[b]] + com[w, b]) * mass[w, b]
    return total


@wp.func
def _impulse(
    c: SensorTopology,
    t: Topology,
    mass: wp.array2d(dtype=real),
    com: wp.array2d(dtype=vec3),
    velocity: wp.array2d(dtype=vec6),
    w: int,
    i: int,
) -> vec3:
    """Σ m v, N·s."""
    total = vec3()
    for k in range(c.subtree_start[i], c.subtree_start[i + 1]):
        b = c.subtree_body[k]
        total += point_rate(velocity[w, t.body_last_dof[b]], com[w, b]) * mass[w, b]
    return total


@wp.func
def _spin(
    c: SensorTopology,
    t: Topology,
    mass: wp.array2d(dtype=real),
    origin: wp.array2d(dtype=vec3),
    com: wp.array2d(dtype=vec3),
    inertia: wp.array2d(dtype=vec6),
    velocity: wp.array2d(dtype=vec6),
    center: vec3,
    w: int,
    i: int,
) -> vec3:
    """Σ I ω + m (p − center) × v, N·m·s."""
    total = vec3()
    for k in range(c.subtree_start[i], c.subtree_start[i + 1]):
        b = c.subtree_body[k]
        twist = velocity[w, t.body_last_dof[b]]
        arm = origin[w, t.body_tree[b]] + com[w, b] - center
        total += sym_mul(inertia[w, b], angular(twist)) + wp.cross(arm, point_rate(twist, com[w, b]) * mass[w, b])
    return total


@wp.kernel
def _subtree_kernel(
    # topology, parameters
    c: SensorTopology,
    t: Topology,
    mass: wp.array2d(dtype=real),
    # work in
    origin: wp.array2d(dtype=vec3),
    com: wp.array2d(dtype=vec3),
    inertia: wp.array2d(dtype=vec6),
    velocity: wp.array2d(dtype=vec6),
    # out
    out: wp.array2d(dtype=real),
):
    # One thread per world: subtrees overlap, and add to the adjoints of the same bodies in a fixed order.
    w = wp.tid()
    for i in range(c.kind.shape[0]):
        kind = c.kind[i]
        if kind >= 22 and kind <= 24:
            whole = wp.max(_LEAST, _mass(c, mass, w, i))
            value = vec3()
            if kind == 23:
                value = _impulse(c, t, mass, com, velocity, w, i) / whole
            else:
                center = _center(c, t, mass, origin, com, w, i) / whole
                value = center
                if kind == 24:
                    value = _spin(c, t, mass, origin, com, inertia, velocity, center, w, i)
            for e in range(3):
                out[w, c.start[i] + e] = value[e]


def measure_subtrees(m: Model, c: SensorTopology, work: Work, out: wp.array) -> None:
    """Writes them to the measurement vector (W, size)."""
    wp.launch(
        _subtree_kernel,
        dim=m.worlds,
        inputs=[c, m.topology, m.body.mass, work.origin, work.com, work.inertia, work.velocity],
        outputs=[out],
        device=m.device,
    )
