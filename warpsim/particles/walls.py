"""Walls: signed distance primitives that stand or move."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import warp as wp

from warpsim.collision.kinds import KIND_CODE
from warpsim.collision.sdf import primitive_sdf
from warpsim.core.errors import InputError, UnsupportedError
from warpsim.core.indexing import natural
from warpsim.core.precision import mat33, numpy_real, quat, real, vec3, vec6
from warpsim.core.spatial import angular, linear, quat_exp, quat_matrix, quat_mul, quat_unit

KINDS = ("plane", "sphere", "capsule", "box", "cylinder", "cone", "ellipsoid")
"""Shapes that can be walls."""


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
def wall_distance(kind: int, size: vec3, position: vec3, frame: mat33, x: vec3) -> tuple[real, vec3]:
    """Signed distance (m) and unit normal, in the world, at x; `frame` rotates from the shape to the world."""
    distance, gradient = primitive_sdf(kind, size, wp.transpose(frame) * (x - position))
    return distance, frame * gradient


@wp.func
def wall_velocity(twist: vec6, position: vec3, x: vec3) -> vec3:
    """Velocity (m/s) of the wall's material at x."""
    return linear(twist) + wp.cross(angular(twist), x - position)


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


@wp.kernel
def _frames_kernel(rotation: wp.array2d(dtype=quat), frame: wp.array2d(dtype=mat33)):
    w, s = wp.tid()
    w = natural(w)
    s = natural(s)
    frame[w, s] = quat_matrix(quat_unit(rotation[w, s]))


def wall_frames(motion: WallMotion, frame: wp.array) -> None:
    """Rotations of walls as matrices, (W, s)."""
    wp.launch(_frames_kernel, dim=frame.shape, inputs=[motion.rotation], outputs=[frame], device=frame.device)
