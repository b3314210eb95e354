"""Rigid frames in NumPy: poses with (w, x, y, z) quaternions, and affine matrices split into pose and scale."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warpsim.core.numpy_quaternions import matrix_to_quat, quat_conjugate, quat_log, quat_multiply, quat_to_matrix, unit

SHEAR_TOLERANCE = 1e-5
"""Largest cosine between two columns of a matrix that still counts as free of shear (float32 orient ops reach 1e-7)."""


@dataclass(frozen=True)
class Pose:
    """A rigid transform: x ↦ R·x + p."""

    position: np.ndarray
    """(3,)"""
    rotation: np.ndarray
    """(4,) unit quaternion (w, x, y, z)."""

    def __matmul__(self, other: Pose) -> Pose:
        return Pose(self.apply(other.position), unit(quat_multiply(self.rotation, other.rotation)))

    def apply(self, point: np.ndarray) -> np.ndarray:
        """The point (…, 3), given in this frame, in the outer frame."""
        return np.asarray(point) @ self.matrix.T + self.position

    @property
    def matrix(self) -> np.ndarray:
        """(3, 3) rotation matrix."""
        return quat_to_matrix(self.rotation)

    def inverse(self) -> Pose:
        """The transform that undoes this one."""
        back = quat_conjugate(self.rotation)
        return Pose(-(quat_to_matrix(back) @ self.position), back)

    def distance(self, other: Pose) -> tuple[float, float]:
        """How far another pose is: (length in the poses' unit, angle in rad)."""
        turn = quat_multiply(quat_conjugate(self.rotation), other.rotation)
        return float(np.linalg.norm(self.position - other.position)), float(np.linalg.norm(quat_log(turn)))


IDENTITY = Pose(np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0]))


@dataclass(frozen=True)
class Frame:
    """A prim's world transform, split: world = pose ∘ scale (∘ shear, if any)."""

    pose: Pose
    """In the Z-up world, m."""
    scale: np.ndarray
    """(3,) positive, dimensionless."""
    mirrored: bool
    """The transform turns a right hand into a left one; `pose` then holds the rotation with the x axis turned back."""
    sheared: bool
    """The axes are not at right angles, so `pose` and `scale` do not tell all."""
    linear: np.ndarray
    """(3, 3) what acts on the prim's points (in stage units) before the stage's rotation and unit."""


def split_affine(linear: np.ndarray, position: np.ndarray) -> Frame:
    """Splits x ↦ linear·x + position; `linear` must be invertible."""
    scale = np.linalg.norm(linear, axis=0)
    axes = linear / scale
    cosines = axes.T @ axes - np.eye(3)
    sheared = bool(np.abs(cosines).max() > SHEAR_TOLERANCE)
    mirrored = bool(np.linalg.det(axes) < 0)
    if mirrored:
        axes = axes * np.array([-1.0, 1.0, 1.0])
    if sheared:
        left, _, right = np.linalg.svd(axes)  # the nearest rotation (polar decomposition)
        axes = left @ right
    return Frame(Pose(position, matrix_to_quat(axes)), scale, mirrored, sheared, linear)
