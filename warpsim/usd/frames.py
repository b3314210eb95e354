"""Rigid frames in NumPy: poses with (w, x, y, z) quaternions, and affine matrices split into pose and scale."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

SHEAR_TOLERANCE = 1e-5
"""Largest cosine between two columns of a matrix that still counts as free of shear (float32 orient ops reach 1e-7)."""


def unit(vector: np.ndarray) -> np.ndarray:
    """The vector divided by its length."""
    return vector / np.linalg.norm(vector)


def quat_multiply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Rotation `b` followed by rotation `a`."""
    aw, ax, ay, az = a
    bw, bx, by, bz = b
    return np.array(
        [
            aw * bw - ax * bx - ay * by - az * bz,
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
        ]
    )


def quat_conjugate(q: np.ndarray) -> np.ndarray:
    """The inverse of a unit quaternion."""
    return q * np.array([1.0, -1.0, -1.0, -1.0])


def quat_to_matrix(q: np.ndarray) -> np.ndarray:
    """(3, 3) rotation matrix of a unit quaternion, or (n, 3, 3) of (n, 4)."""
    w, x, y, z = np.asarray(q).T
    columns = [
        [1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)],
        [2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)],
        [2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.array(columns).T


def matrix_to_quat(matrix: np.ndarray) -> np.ndarray:
    """(4,) unit quaternion with w ≥ 0 of a (3, 3) rotation matrix, or (n, 4) of (n, 3, 3).

    Row i of the matrix 4·q·qᵀ, which is linear in the rotation, is q times 4·qᵢ: the longest row loses no digits
    (Shepperd, 1978).
    """
    m = np.asarray(matrix)
    a, b, c = (m[..., i, i] for i in range(3))
    x, y, z = m[..., 2, 1] - m[..., 1, 2], m[..., 0, 2] - m[..., 2, 0], m[..., 1, 0] - m[..., 0, 1]
    xy, xz, yz = m[..., 1, 0] + m[..., 0, 1], m[..., 0, 2] + m[..., 2, 0], m[..., 2, 1] + m[..., 1, 2]
    rows = [
        [1 + a + b + c, x, y, z],
        [x, 1 + a - b - c, xy, xz],
        [y, xy, 1 - a + b - c, yz],
        [z, xz, yz, 1 - a - b + c],
    ]
    outer = np.array(rows).T  # symmetric, so the transpose only brings n to the front
    longest = np.argmax(np.einsum("...ii->...i", outer), axis=-1)
    q = np.take_along_axis(outer, longest[..., None, None], axis=-2)[..., 0, :]
    q = q / np.linalg.norm(q, axis=-1, keepdims=True)
    return np.where(q[..., :1] < 0, -q, q)


def quat_about(axis: np.ndarray, angle: float) -> np.ndarray:
    """Rotation by `angle` (rad) about a unit axis."""
    return np.concatenate([[np.cos(0.5 * angle)], np.sin(0.5 * angle) * np.asarray(axis)])


def quat_log(q: np.ndarray) -> np.ndarray:
    """Rotation vector, rad, of length at most π."""
    q = -q if q[0] < 0 else q
    sine = float(np.linalg.norm(q[1:]))
    if sine < 1e-12:
        return 2.0 * q[1:]
    return (2.0 * np.arctan2(sine, q[0]) / sine) * q[1:]


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
