"""`Motion`: what the USD writer needs of a rollout of one world."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from warpsim.core.errors import InputError
from warpsim.scene import Scene
from warpsim.scene.description import JOINT_DOF_SIZE, JOINT_Q_SIZE


@dataclass
class ContactFrame:
    """The contacts of one frame."""

    points: np.ndarray
    """(n, 3) m, world."""
    forces: np.ndarray
    """(n, 3) N, world, on the second shape."""


@dataclass
class Motion:
    """A rollout of one world, frame by frame, in the scene's SI, Z-up world.

    Joints are in the order of `scene.joints`, bodies in the order of `scene.bodies`.
    """

    times: np.ndarray
    """(frames,) s, increasing."""
    q: np.ndarray
    """(frames, sum of the joints' q sizes)."""
    qd: np.ndarray
    """(frames, dofs)."""
    positions: np.ndarray
    """(frames, bodies, 3) of body origins."""
    rotations: np.ndarray
    """(frames, bodies, 4) unit quaternions (w, x, y, z)."""
    velocities: np.ndarray | None = None
    """(frames, bodies, 3) of body origins, world axes, m/s."""
    angular_velocities: np.ndarray | None = None
    """(frames, bodies, 3) world axes, rad/s."""
    contacts: Sequence[ContactFrame] | None = None
    points: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Path of a prim that other matter moves → (frames, n, 3) m, world."""
    matter_states: Mapping[str, Mapping[str, np.ndarray]] = field(default_factory=dict)
    """Path of a matter's prim → its state, (frames, …) by field."""

    def check(self, scene: Scene) -> None:
        """Refuses arrays that do not fit the scene.

        Raises:
            InputError: Names the array, its shape and the one needed.
        """
        frames, bodies = len(self.times), len(scene.bodies)
        sizes = {
            "times": (frames,),
            "q": (frames, sum(JOINT_Q_SIZE[joint.kind] for joint in scene.joints)),
            "qd": (frames, sum(JOINT_DOF_SIZE[joint.kind] for joint in scene.joints)),
            "positions": (frames, bodies, 3),
            "rotations": (frames, bodies, 4),
            "velocities": (frames, bodies, 3),
            "angular_velocities": (frames, bodies, 3),
        }
        for name, needed in sizes.items():
            value = getattr(self, name)
            if value is None and name.endswith("velocities"):
                continue
            if np.shape(value) != needed:
                raise InputError(f"motion.{name} has shape {np.shape(value)}; this scene needs {needed}")
            if not np.isfinite(value).all():
                frame = int(np.argwhere(~np.isfinite(np.asarray(value)))[0][0])
                raise InputError(f"motion.{name} is not finite from frame {frame} on; it cannot be written")
        for path, points in self.points.items():
            if np.ndim(points) != 3 or len(points) != frames or not np.isfinite(points).all():
                raise InputError(f"motion.points of {path} must be finite, (frames, n, 3); got {np.shape(points)}")
        if frames == 0 or (np.diff(self.times) <= 0).any():
            raise InputError("motion.times must hold at least one frame and increase")
        if self.contacts is not None and len(self.contacts) != frames:
            raise InputError(f"motion.contacts holds {len(self.contacts)} frames; there are {frames}")
