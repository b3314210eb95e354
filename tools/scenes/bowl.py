"""A mesh object in a concave bowl, both colliding as signed distance fields."""

from __future__ import annotations

import numpy as np
from common import BLUE, GRAY, WHITE, stiff, write
from pxr import Usd

from warpsim.io.usd import author

DOCUMENTATION = """A bowl (half a hollow sphere, 0.3 m inside, 0.04 m thick) and in it an egg-shaped mesh of 0.3 kg
that starts near the rim, rolls down and settles at the bottom. Both collide as signed distance fields of their
meshes: as a convex hull the bowl would be full."""


def _rings(radii: np.ndarray, heights: np.ndarray, sides: int) -> np.ndarray:
    turns = 2 * np.pi * np.arange(sides) / sides
    circle = np.stack([np.cos(turns), np.sin(turns)], axis=1)
    return np.concatenate(
        [np.column_stack([r * circle, np.full(sides, h)]) for r, h in zip(radii, heights, strict=True)]
    )


def lathe(radii: np.ndarray, heights: np.ndarray, sides: int) -> tuple[np.ndarray, np.ndarray]:
    """A closed surface of revolution: a pole, rings, a pole.

    Args:
        radii: Of the profile, the first and last zero.
        heights: Of the profile, such that the surface lies on its left.
        sides: Of each ring.
    """
    rings = _rings(radii[1:-1], heights[1:-1], sides)
    points = np.concatenate([[[0, 0, heights[0]]], rings, [[0, 0, heights[-1]]]])
    faces, last = [], len(points) - 1
    for k in range(sides):
        n = (k + 1) % sides
        faces.append((0, 1 + n, 1 + k))
        for ring in range(len(radii) - 3):
            a, b = 1 + ring * sides, 1 + (ring + 1) * sides
            faces += [(a + k, a + n, b + n), (a + k, b + n, b + k)]
        faces.append((last, last - sides + k, last - sides + n))
    return points, np.array(faces)


def bowl(inner: float, thickness: float, rings: int = 10, sides: int = 32) -> tuple[np.ndarray, np.ndarray]:
    """Half a hollow sphere, open upwards, centered at the origin; its profile runs round the rim and inwards."""
    outer = inner + thickness
    down = np.linspace(-np.pi / 2, 0, rings)
    radii = np.concatenate([outer * np.cos(down), inner * np.cos(down[::-1])])
    heights = np.concatenate([outer * np.sin(down), inner * np.sin(down[::-1])])
    radii[[0, -1]] = 0.0
    return lathe(radii, heights, sides)


def egg(length: float, width: float, rings: int = 11, sides: int = 16) -> tuple[np.ndarray, np.ndarray]:
    """An egg along z: an ellipsoid that is blunter below."""
    angles = np.linspace(-np.pi / 2, np.pi / 2, rings)
    radii = width * np.cos(angles) * (1 - 0.2 * np.sin(angles))
    radii[[0, -1]] = 0.0
    return lathe(radii, length * np.sin(angles), sides)


def build() -> Usd.Stage:
    """The scene."""
    stage = author.new_stage(documentation=DOCUMENTATION)
    world = author.world(stage)
    author.physics_scene(stage, gravity=9.81, steps_per_second=1000)
    clay = author.material(world, "Clay", friction=0.4, attributes=stiff(0.002))
    author.ground(world, color=WHITE, material=clay)
    points, faces = bowl(0.3, 0.04)
    author.mesh(world, "Bowl", points, faces, approximation="sdf", position=(0, 0, 0.34), color=GRAY, material=clay)
    points, faces = egg(0.06, 0.045)
    thing = author.body(world, "Egg", position=(0.18, 0, 0.189), rotation=(0.9238795325, 0, 0.3826834324, 0))
    author.mesh(thing, "Shape", points, faces, approximation="sdf", mass=0.3, color=BLUE, material=clay)
    return stage


if __name__ == "__main__":
    print(write(build(), "bowl"))
