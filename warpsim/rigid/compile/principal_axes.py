"""Principal axes of inertias, as near as can be to given ones.

Where moments are equal (every sphere, capsule and cube) the axes are a choice, and the drag of a medium, which acts
along them, depends on it. Jacobi's method, started from the axes that were meant, keeps them unless the inertia says
otherwise.
"""

from __future__ import annotations

import numpy as np

from warpsim.core.precision import EPSILON

_PAIRS = ((0, 1), (0, 2), (1, 2))
_ROTATIONS = 60
"""Many more than needed: convergence is quadratic."""
_ZERO = 100.0 * EPSILON
"""Products of inertia below this share of the trace are rounding."""


def principal_axes(inertia: np.ndarray, near: np.ndarray) -> np.ndarray:
    """Rotations to the principal axes.

    Args:
        inertia: (…, 6) xx, yy, zz, xy, xz, yz.
        near: (…, 4) unit quaternions, where to begin.

    Returns:
        (…, 4) unit quaternions; `near` itself where it diagonalizes the inertia already.
    """
    xx, yy, zz, xy, xz, yz = np.moveaxis(np.asarray(inertia, np.float64), -1, 0)
    full = np.stack([np.stack([xx, xy, xz], -1), np.stack([xy, yy, yz], -1), np.stack([xz, yz, zz], -1)], -2)
    start = np.broadcast_to(np.asarray(near, np.float64), (*full.shape[:-2], 4))
    axes = _matrices(start)
    turned = np.zeros(full.shape[:-2], bool)
    for _ in range(_ROTATIONS):
        products = np.stack([np.abs(_moment(full, axes, i, j)) for i, j in _PAIRS], -1)
        needed = products.max(axis=-1) > _ZERO * np.trace(full, axis1=-2, axis2=-1)
        if not needed.any():
            break
        # The largest first: then a symmetric inertia that has been tilted takes two turns and none within its plane.
        largest = products.argmax(axis=-1)
        for k, (i, j) in enumerate(_PAIRS):
            _rotate(full, axes, i, j, needed & (largest == k))
        turned |= needed
    found = _quaternions(axes)
    found *= np.where((found * start).sum(axis=-1, keepdims=True) < 0.0, -1.0, 1.0)  # of the two signs, the nearer
    return np.where(turned[..., None], found, start)


def _moment(full: np.ndarray, axes: np.ndarray, i: int, j: int) -> np.ndarray:
    """Entry (i, j) of the inertia in the given axes."""
    return np.einsum("...k,...kl,...l->...", axes[..., i], full, axes[..., j])


def _rotate(full: np.ndarray, axes: np.ndarray, i: int, j: int, where: np.ndarray) -> None:
    """Turns axes i and j in place by the smaller angle that makes their product vanish (Jacobi 1846)."""
    gap = _moment(full, axes, j, j) - _moment(full, axes, i, i)
    ratio = gap / np.where(where, 2.0 * _moment(full, axes, i, j), 1.0)
    tangent = np.where(ratio < 0.0, -1.0, 1.0) / (np.abs(ratio) + np.sqrt(1.0 + ratio**2))
    tangent = np.where(where, tangent, 0.0)[..., None]
    cosine = 1.0 / np.sqrt(1.0 + tangent**2)
    sine = tangent * cosine
    a, b = axes[..., i], axes[..., j]
    axes[..., i], axes[..., j] = cosine * a - sine * b, sine * a + cosine * b


def _matrices(q: np.ndarray) -> np.ndarray:
    w, x, y, z = np.moveaxis(q, -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.stack([np.stack(row, -1) for row in rows], -2)


def _quaternions(r: np.ndarray) -> np.ndarray:
    # The 4×4 matrix whose largest eigenvector is the quaternion: no branch loses accuracy at half turns.
    k = np.zeros((*r.shape[:-2], 4, 4))
    trace = np.trace(r, axis1=-2, axis2=-1)
    skew = np.stack([r[..., 2, 1] - r[..., 1, 2], r[..., 0, 2] - r[..., 2, 0], r[..., 1, 0] - r[..., 0, 1]], -1)
    k[..., 0, 0] = trace
    k[..., 0, 1:] = skew
    k[..., 1:, 0] = skew
    k[..., 1:, 1:] = r + np.swapaxes(r, -1, -2) - trace[..., None, None] * np.eye(3)
    return np.linalg.eigh(k)[1][..., :, -1]
