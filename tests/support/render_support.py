"""Pictures of small stages, and how much of them is covered by things."""

from __future__ import annotations

import numpy as np
from pxr import Gf, Usd, UsdGeom

from warpsim.io.usd import author
from warpsim.view.raycast import Camera, render_stage

WIDTH, HEIGHT = 120, 80
BLACK = (0.0, 0.0, 0.0)
SIZE = {"width": WIDTH, "height": HEIGHT}


def top_view(half_height: float = 2.0, position=(0.0, 0.0, 10.0)) -> Camera:
    """Orthographic, straight down, +x to the right and +y up in the picture."""
    x, y, _ = np.eye(3)
    return Camera(np.array(position), x, y, half_height * WIDTH / HEIGHT, half_height, orthographic=True)


def new_stage(**options) -> tuple[Usd.Stage, Usd.Prim]:
    stage = author.new_stage(**options)
    return stage, author.world(stage)


def picture(stage: Usd.Stage, camera: str | Camera | None, **options) -> np.ndarray:
    return render_stage(stage, times=[0.0], camera=camera, **{**SIZE, **options})[0]


def coverage(image: np.ndarray, background: np.ndarray) -> np.ndarray:
    """(height, width) fraction of each pixel that black things cover: light adds up linearly over a pixel's samples."""
    return 1.0 - (decoded(image) / decoded(background)).mean(axis=2)


def silhouette(stage: Usd.Stage, camera: Camera, **options) -> np.ndarray:
    """Coverage by everything on a stage."""
    for prim in stage.Traverse(Usd.TraverseInstanceProxies()):
        if prim.IsA(UsdGeom.Gprim) and not prim.IsInstanceProxy():
            UsdGeom.Gprim(prim).CreateDisplayColorAttr([Gf.Vec3f(*BLACK)])
    return coverage(picture(stage, camera, **options), backdrop(camera, **options))


def backdrop(camera: Camera, **options) -> np.ndarray:
    """What the camera sees of the sky: a picture of something far behind it."""
    stage, world = new_stage()
    author.sphere(world, "Behind", 0.01, position=camera.position - 5.0 * camera.forward)
    return picture(stage, camera, **options)


def decoded(image: np.ndarray) -> np.ndarray:
    """sRGB bytes → linear."""
    value = image / 255.0
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)
