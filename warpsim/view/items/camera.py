"""Where a picture is taken from: by hand, or fitted around things."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warpsim.core.errors import InputError

AZIMUTH, ELEVATION, STEEP_ELEVATION = np.radians((-60.0, 22.0, 45.0))
"""The automatic camera looks from here: about the up axis from +x, and above the horizon; steeply into a bowl."""
FIELD_OF_VIEW = np.radians(35.0)
"""Vertical, of cameras made here."""
MARGIN = 1.2
"""The automatic camera's window over what has to fit in it."""


@dataclass(frozen=True)
class Camera:
    """A window that looks along `forward`, in the SI, Z-up world.

    The window is measured at unit distance for a perspective camera and in meters for an orthographic one.
    """

    position: np.ndarray
    """(3,) m."""
    right: np.ndarray
    """(3,) unit vector toward the picture's right edge."""
    up: np.ndarray
    """(3,) unit vector toward the picture's upper edge."""
    half_width: float
    half_height: float
    center: tuple[float, float] = (0.0, 0.0)
    """Middle of the window along `right` and `up`."""
    orthographic: bool = False

    @property
    def forward(self) -> np.ndarray:
        """(3,) unit vector into the picture."""
        return np.cross(self.up, self.right)

    def widened(self, aspect: float) -> Camera:
        """The same view in a window of another shape (width / height) that still shows all of the old one."""
        width = max(self.half_width, self.half_height * aspect)
        height = max(self.half_height, self.half_width / aspect)
        return Camera(self.position, self.right, self.up, width, height, self.center, self.orthographic)


def look_at(
    position: np.ndarray, target: np.ndarray, *, field_of_view: float = FIELD_OF_VIEW, aspect: float = 1.0
) -> Camera:
    """A camera at `position` that looks at `target` with the world's z axis upward in the picture.

    Args:
        position: (3,) m.
        target: (3,) m.
        field_of_view: Vertical angle of the whole window, rad.
        aspect: Width / height of the picture.

    Raises:
        InputError: The two points coincide.
    """
    toward = np.asarray(target, dtype=float) - position
    distance = np.linalg.norm(toward)
    if distance == 0.0:
        raise InputError("the camera stands on its target; move one of them")
    right, up = _axes(toward / distance)
    tangent = float(np.tan(0.5 * field_of_view))
    return Camera(np.asarray(position, dtype=float), right, up, aspect * tangent, tangent)


def fit_camera(points: np.ndarray, *, aspect: float, elevation: float = ELEVATION) -> Camera:
    """The nearest three-quarter view that shows all points.

    In camera axes (x right, y up, z forward) a point is inside the left and right edges if |x − px| ≤ t·(z − pz), with
    the camera at p and t the tangent of half the view. With a = max(x − t·z), b = max(−x − t·z) both hold for
    px = (a − b)/2 and every pz ≤ −(a + b)/(2t); so for the other two edges, and the smaller pz serves all four.

    Args:
        points: (n, 3) m.
        aspect: Width / height of the picture.
        elevation: Of the camera above the horizon, rad.
    """
    level = np.cos(elevation) * np.array([np.cos(AZIMUTH), np.sin(AZIMUTH), 0.0])
    outward = level + np.array([0.0, 0.0, np.sin(elevation)])
    right, up = _axes(-outward)
    depth = -points @ outward
    tangents = np.tan(0.5 * FIELD_OF_VIEW) * np.array([aspect, 1.0])
    sides, depths = [], []
    for axis, tangent in zip((right, up), tangents / MARGIN, strict=True):
        across = points @ axis
        a, b = (across - tangent * depth).max(), (-across - tangent * depth).max()
        sides.append(0.5 * (a - b))
        depths.append(-0.5 * (a + b) / tangent)
    size = np.ptp(points, axis=0).max()
    back = min(*depths, depth.min() - 0.5 * size)  # a flat or tiny thing still keeps its distance
    position = sides[0] * right + sides[1] * up - back * outward
    return Camera(position, right, up, float(tangents[0]), float(tangents[1]))


def _axes(forward: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Right and up axes of a view; straight up or down, the picture's upper edge is toward +y."""
    vertical = np.hypot(forward[0], forward[1]) < 1e-9
    right = np.array([1.0, 0.0, 0.0]) if vertical else np.array([forward[1], -forward[0], 0.0])
    right /= np.linalg.norm(right)
    return right, np.cross(right, forward)
