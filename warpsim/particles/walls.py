"""Walls: signed distance primitives that stand or move; which of them are near a node or a particle, and how near."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import warp as wp

from warpsim.collision.kinds import KIND_CODE
from warpsim.collision.sdf import primitive_sdf
from warpsim.core.errors import InputError, UnsupportedError
from warpsim.core.indexing import natural
from warpsim.core.precision import numpy_real, quat, real, vec3, vec6
from warpsim.core.spatial import angular, linear, quat_exp, quat_mul, quat_rotate, quat_rotate_back, quat_unit
from warpsim.particles.cells import CROWDED, NODES, Cells
from warpsim.particles.domain import Domain
from warpsim.particles.transfer_native import received

KINDS = ("plane", "sphere", "capsule", "box", "cylinder", "cone", "ellipsoid")
"""Shapes that can be walls."""

NODE_WALLS = wp.constant(6)
PARTICLE_WALLS = wp.constant(8)
"""Walls that can be near one node or particle at the same time."""

_REACH = 3.0
"""Cells; half the width of the density's kernel."""

LEAST_MASS = wp.constant(real(1e-24))
"""kg; a node with less has no velocity of its own."""


@dataclass(frozen=True)
class WallShape:
    """One primitive.

    Attributes:
        kind: One of `KINDS`.
        size: Up to three numbers, m, as `Shape.size` of a scene.
        body: Whose wrench its share is added to.
        stick: 0: the liquid slips along it; 1: it sticks to it.
    """

    kind: str
    size: Sequence[float] = ()
    body: int = 0
    stick: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UnsupportedError(f"a {self.kind!r} cannot be a wall of particles yet; use one of {', '.join(KINDS)}")
        if len(self.size) > 3 or not np.all(np.asarray(self.size, dtype=np.float64) >= 0.0):
            raise InputError(f"a wall's size is up to three lengths in m, not {self.size}")
        if not 0.0 <= self.stick <= 1.0:
            raise InputError(f"a wall's stick is between 0 (slip) and 1 (no slip), not {self.stick}")
        if self.body < 0:
            raise InputError(f"a wall's body is a number from 0 on, not {self.body}")


@dataclass
class WallSet:
    """The walls of all worlds; W worlds, s shapes (at least one place, even if there are none).

    Attributes:
        shapes: Number of shapes.
        bodies: Number of bodies.
        kind: (s,) codes.
        body: (s,).
        size: (W, s) m, with gradient.
        stick: (W, s), with gradient.
    """

    shapes: int
    bodies: int
    kind: wp.array
    body: wp.array
    size: wp.array
    stick: wp.array

    @staticmethod
    def make(shapes: Sequence[WallShape], worlds: int, device: wp.Device) -> WallSet:
        """The same shapes in all worlds."""
        given = list(shapes) or [WallShape("plane")]
        size = np.zeros((worlds, len(given), 3), dtype=numpy_real)
        for s, shape in enumerate(given):
            size[:, s, : len(shape.size)] = shape.size
        stick = np.broadcast_to(np.array([shape.stick for shape in given], dtype=numpy_real), size.shape[:2])
        return WallSet(
            len(shapes),
            1 + max((shape.body for shape in shapes), default=0),
            wp.array([KIND_CODE[shape.kind] for shape in given], dtype=wp.int32, device=device),
            wp.array([shape.body for shape in given], dtype=wp.int32, device=device),
            wp.array(size, dtype=vec3, device=device, requires_grad=True),
            wp.array(stick, dtype=real, device=device, requires_grad=True),
        )


@dataclass
class WallMotion:
    """Where walls are and how they move: arrays (W, s) which may carry gradients.

    Attributes:
        position: m, of each shape's origin.
        rotation: (w, x, y, z) from its frame to the world.
        twist: (ω, v): angular velocity, and velocity of its origin, in world axes.
    """

    position: wp.array
    rotation: wp.array
    twist: wp.array

    @property
    def arrays(self) -> list[wp.array]:
        """As kernels take them."""
        return [self.position, self.rotation, self.twist]


@wp.func
def wall_distance(kind: int, size: vec3, position: vec3, rotation: quat, x: vec3) -> tuple[real, vec3]:
    """Signed distance (m) and unit normal, in the world, at x."""
    r = quat_unit(rotation)
    distance, gradient = primitive_sdf(kind, size, quat_rotate_back(r, x - position))
    return distance, quat_rotate(r, gradient)


@wp.func
def wall_velocity(twist: vec6, position: vec3, x: vec3) -> vec3:
    """Velocity (m/s) of the wall's material at x."""
    return linear(twist) + wp.cross(angular(twist), x - position)


@wp.func
def node_point(lower: vec3, spacing: real, place: wp.vec3i) -> vec3:
    """Where a node is, m."""
    return lower + spacing * vec3(real(place[0]), real(place[1]), real(place[2]))


@wp.func
def centroid(at: vec3, node: received) -> vec3:
    """Mass centroid of the particles that a node sees."""
    return at + vec3(node[8], node[9], node[10]) / node[7]


@wp.kernel(enable_backward=False)
def _near_nodes_kernel(
    # topology
    lower: vec3,
    spacing: real,
    shapes: int,
    kind: wp.array(dtype=wp.int32),
    # parameters
    size: wp.array2d(dtype=vec3),
    # state
    position: wp.array2d(dtype=vec3),
    rotation: wp.array2d(dtype=quat),
    # work read
    place: wp.array2d(dtype=wp.vec3i),
    node_sum: wp.array2d(dtype=received),
    # work written
    count: wp.array2d(dtype=wp.int32),
    near: wp.array3d(dtype=wp.int32),
):
    w, i = wp.tid()
    if i >= wp.min(count[w, NODES], node_sum.shape[1]):
        return
    found = int(0)
    node = node_sum[w, i]
    if node[7] > LEAST_MASS:
        at = node_point(lower, spacing, place[w, i])
        middle = centroid(at, node)
        for s in range(shapes):
            distance, normal = wall_distance(kind[s], size[w, s], position[w, s], rotation[w, s], middle)
            if distance + wp.dot(normal, at - middle) < real(1.5) * spacing:
                if found < NODE_WALLS:
                    near[w, i, found] = s
                else:
                    wp.atomic_add(count, w, CROWDED, 1)
                found += 1
    for k in range(found, NODE_WALLS):
        near[w, i, k] = -1


@wp.kernel(enable_backward=False)
def _near_particles_kernel(
    # topology
    reach: real,
    substeps: int,
    shapes: int,
    kind: wp.array(dtype=wp.int32),
    # parameters
    timestep: wp.array(dtype=real),
    size: wp.array2d(dtype=vec3),
    # state
    position: wp.array2d(dtype=vec3),
    rotation: wp.array2d(dtype=quat),
    twist: wp.array2d(dtype=vec6),
    x: wp.array2d(dtype=vec3),
    v: wp.array2d(dtype=vec3),
    # work written
    count: wp.array2d(dtype=wp.int32),
    near: wp.array3d(dtype=wp.int32),
):
    w, p = wp.tid()
    step = timestep[w] / real(substeps)
    found = int(0)
    at = x[w, p]
    for s in range(shapes):
        distance, _normal = wall_distance(kind[s], size[w, s], position[w, s], rotation[w, s], at)
        speed = wp.length(v[w, p] - wall_velocity(twist[w, s], position[w, s], at))
        if distance < reach + real(2.0) * step * speed:
            if found < PARTICLE_WALLS:
                near[w, p, found] = s
            else:
                wp.atomic_add(count, w, CROWDED, 1)
            found += 1
    for k in range(found, PARTICLE_WALLS):
        near[w, p, k] = -1


def find_near_nodes(
    domain: Domain, walls: WallSet, motion: WallMotion, cells: Cells, node_sum: wp.array, near: wp.array
) -> None:
    """Walls within reach of each node in use, (W, nodes, `NODE_WALLS`), −1 where there are fewer. Not taped."""
    wp.launch(
        _near_nodes_kernel,
        dim=node_sum.shape,
        inputs=[vec3(*domain.lower), real(domain.spacing), walls.shapes, walls.kind, walls.size]
        + [motion.position, motion.rotation, cells.place, node_sum],
        outputs=[cells.count, near],
        device=near.device,
        record_tape=False,
    )


def find_near_particles(
    domain: Domain,
    walls: WallSet,
    motion: WallMotion,
    timestep: wp.array,
    substeps: int,
    x: wp.array,
    v: wp.array,
    cells: Cells,
    near: wp.array,
) -> None:
    """Walls within reach of each particle, (W, n, `PARTICLE_WALLS`), −1 where there are fewer. Not taped."""
    wp.launch(
        _near_particles_kernel,
        dim=x.shape,
        inputs=[real(_REACH * domain.spacing), substeps, walls.shapes, walls.kind, timestep, walls.size]
        + [*motion.arrays, x, v],
        outputs=[cells.count, near],
        device=near.device,
        record_tape=False,
    )


@wp.kernel
def _moved_kernel(
    share: real,
    # parameters
    timestep: wp.array(dtype=real),
    # state
    position: wp.array2d(dtype=vec3),
    rotation: wp.array2d(dtype=quat),
    twist: wp.array2d(dtype=vec6),
    # work written
    moved: wp.array2d(dtype=vec3),
    rotated: wp.array2d(dtype=quat),
):
    w, s = wp.tid()
    w = natural(w)
    s = natural(s)
    time = share * timestep[w]
    moved[w, s] = position[w, s] + time * linear(twist[w, s])
    rotated[w, s] = quat_mul(quat_exp(time * angular(twist[w, s])), quat_unit(rotation[w, s]))


def move_walls(share: float, timestep: wp.array, walls: WallMotion, moved: WallMotion) -> None:
    """Where walls are after a share of the time step (W,) s of their twist; `moved` has the same twist."""
    wp.launch(
        _moved_kernel,
        dim=walls.position.shape,
        inputs=[real(share), timestep, *walls.arrays],
        outputs=[moved.position, moved.rotation],
        device=walls.position.device,
    )
