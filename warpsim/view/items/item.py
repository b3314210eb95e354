"""`Item`: one thing to draw, in the SI, Z-up world of a `Scene`."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from warpsim.view.items.textures import Texture
from warpsim.view.items.triangles import Triangles

# Kinds of items; the kernels branch on them.
SPHERE = 0
"""A ball."""
BOX = 1
"""A box."""
CAPSULE = 2
"""A cylinder along z with half balls at its ends."""
TAPERED = 3
"""A cylinder or a cone along z."""
PLANE = 4
"""A rectangle, or the endless ground."""
MESH = 5
"""Triangles."""

ENDLESS = 1.0e6
"""m: half edge of a plane that stands for an endless one; haze hides its rim."""

_CORNERS = np.array(list(product((-1.0, 1.0), repeat=3)))


@dataclass(frozen=True)
class Look:
    """How a surface takes light besides its color, as UsdPreviewSurface has it."""

    roughness: float = 0.6
    metallic: float = 0.0
    opacity: float = 1.0
    texture: Texture | None = None
    """Of the base color, instead of the item's; drawn by pages."""


@dataclass(frozen=True, eq=False)
class Item:
    """A shape in its own frame and where that frame is.

    `size` by kind, along the frame's axes: sphere (radius, 0, 0); box half edges; capsule (radius, half height without
    caps, 0), along z; tapered, a cylinder or a cone along z, (radius at −z, radius at +z, half height); plane (half
    edge along x, half edge along y, 0), normal z; mesh (0, 0, 0).
    """

    name: str
    """USD path, or the shape's name."""
    kind: int
    size: np.ndarray
    """(3,)."""
    to_world: np.ndarray
    """(4, 4) affine, shape frame → world, m; scale, mirror and shear are allowed."""
    color: np.ndarray
    """(3,) linear RGB."""
    body: str | None
    """The rigid body that it belongs to; None: none."""
    mesh: Triangles | None = None
    look: Look = Look()

    @property
    def movable(self) -> bool:
        """Belongs to a rigid body."""
        return self.body is not None

    def corners(self) -> np.ndarray:
        """(8, 3) m: corners in the world of the box around the shape along its own axes."""
        middle, half = self._box()
        local = middle + half * _CORNERS
        return local @ self.to_world[:3, :3].T + self.to_world[:3, 3]

    def _box(self) -> tuple[np.ndarray, np.ndarray]:
        """Middle and half edges, in the shape's frame."""
        a, b, c = self.size
        if self.mesh is not None:
            low, high = self.mesh.bounds
            return 0.5 * (low + high), 0.5 * (high - low)
        half = {
            SPHERE: (a, a, a),
            BOX: (a, b, c),
            CAPSULE: (a, a, a + b),
            TAPERED: (max(a, b), max(a, b), c),
            PLANE: (a, b, 0.0),
        }[self.kind]
        return np.zeros(3), np.array(half)
