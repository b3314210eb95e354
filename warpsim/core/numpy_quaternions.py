"""Quaternions (w, x, y, z) as NumPy arrays, (4,)."""

from __future__ import annotations

import numpy as np


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
