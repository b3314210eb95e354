"""Pages taken apart again, as a browser does it, and small ones to look at."""

from __future__ import annotations

import base64
import json
import re
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image
from pxr import Sdf, Usd, UsdGeom, UsdShade

from warpsim.io.usd.motion import Motion
from warpsim.view.items.item import BOX, ENDLESS, PLANE, SPHERE, Item
from warpsim.view.page import Page, Take
from warpsim.view.page.content import BodyInfo, RigidDrawable
from warpsim.view.page.series import restored


@dataclass(frozen=True)
class Unpacked:
    """What a page holds."""

    header: dict[str, Any]
    data: bytes

    def floats(self, at: int, count: int) -> np.ndarray:
        return np.frombuffer(self.data, "<f8", count, at)

    def series(self, info: dict[str, Any]) -> np.ndarray:
        """(frames, channels)."""
        frames, channels = info["frames"], info["channels"]
        size = frames * channels
        levels = restored(self.data[info["at"] : info["at"] + 2 * size], frames, channels)
        low, high = (self.floats(info[name], info["ranges"]) for name in ("low", "high"))
        repeat = channels // info["ranges"]
        return np.tile(low, repeat) + np.tile(high - low, repeat) / 65535 * levels

    def rotations(self, take: int) -> np.ndarray:
        """(frames, bodies, 4) unit quaternions."""
        values = self.series(self.header["takes"][take]["rotations"])
        turns = values.reshape(len(values), -1, 4)
        return turns / np.linalg.norm(turns, axis=-1, keepdims=True)

    def positions(self, take: int) -> np.ndarray:
        """(frames, bodies, 3)."""
        values = self.series(self.header["takes"][take]["positions"])
        return values.reshape(len(values), -1, 3)


def block(text: str, name: str) -> bytes:
    """The bytes of one of a page's parts."""
    found = re.search(rf'id="{name}">([^<]*)<', text)
    assert found is not None
    return zlib.decompress(base64.b64decode(found[1]), -15)


def unpacked(text: str) -> Unpacked:
    """Takes a page apart."""
    data = block(text, "data")
    length = int.from_bytes(data[:4], "little")
    return Unpacked(json.loads(data[4 : 4 + length]), data[4 + length :])


RED, BLUE = np.array([0.8, 0.02, 0.02]), np.array([0.02, 0.05, 0.8])
BALL, RADIUS = "/World/Ball", 0.25
PLACES = np.array([[-1.0, 0.0, 0.5], [0.0, 0.0, 1.5], [1.0, 0.0, 0.5]])
"""Of the ball, at 0, 1 and 2 s."""


def ball_page() -> Page:
    """A red ball that moves over a floor beside a blue box that stands; a ghost that lags behind it."""
    floor = Item("/World/Floor", PLANE, np.array([ENDLESS, ENDLESS, 0.0]), np.eye(4), np.full(3, 0.5), None)
    place = np.eye(4)
    place[:3, 3] = (0.0, 1.0, 0.2)
    box = Item("/World/Box", BOX, np.full(3, 0.2), place, BLUE, None)
    ball = Item(f"{BALL}/Shape", SPHERE, np.array([RADIUS, 0.0, 0.0]), np.eye(4), RED, BALL)
    upright = np.tile([1.0, 0.0, 0.0, 0.0], (3, 1, 1))
    times = np.arange(3.0)
    ghost = PLACES + np.array([0.0, -1.0, 0.0])
    return Page(
        "ball",
        [BodyInfo(BALL, 2.0, np.zeros(3))],
        [RigidDrawable(floor, True, True), RigidDrawable(box, True, True), RigidDrawable(ball, True, True)],
        [
            Take("before", times, ghost[:, None], upright, ghost=True),
            Take("after", times, PLACES[:, None].copy(), upright),
        ],
    )


def tumbling(frames: int, bodies: int, rng: np.random.Generator) -> Motion:
    """Smooth motions in a world of about 2 m, with whole turns in them."""
    times = np.linspace(0.0, 2.0, frames)
    rates, phases = rng.uniform(1.0, 9.0, (bodies, 3)), rng.uniform(0.0, 6.28, (bodies, 3))
    positions = np.sin(times[:, None, None] * rates + phases)
    axes = rng.normal(size=(bodies, 3))
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    half = times[:, None] * rng.uniform(2.0, 12.0, bodies)
    rotations = np.concatenate([np.cos(half)[..., None], np.sin(half)[..., None] * axes], axis=-1)
    flipped = rng.random((frames, bodies)) < 0.2  # the opposite quaternion is the same rotation
    rotations[flipped] *= -1.0
    return Motion(times, np.zeros((frames, 0)), np.zeros((frames, 0)), positions, rotations)


def textured_stage(folder) -> Usd.Stage:
    """A square of 2 m in the x-z plane, facing −y, with a picture: red on its left, green on its right half."""
    picture = np.zeros((64, 64, 3), dtype=np.uint8)
    picture[:, :32, 0], picture[:, 32:, 1] = 255, 255
    Image.fromarray(picture).save(folder / "two.png")
    stage = Usd.Stage.CreateNew(str(folder / "square.usda"))
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    mesh = UsdGeom.Mesh.Define(stage, "/Square")
    mesh.CreatePointsAttr([(-1, 0, 0), (1, 0, 0), (1, 0, 2), (-1, 0, 2)])
    mesh.CreateFaceVertexCountsAttr([4])
    mesh.CreateFaceVertexIndicesAttr([0, 1, 2, 3])
    primvars = UsdGeom.PrimvarsAPI(mesh)
    primvar = primvars.CreatePrimvar("place", Sdf.ValueTypeNames.TexCoord2fArray, UsdGeom.Tokens.faceVarying)
    primvar.Set([(0, 0), (1, 0), (1, 1), (0, 1)])
    material = UsdShade.Material.Define(stage, "/Paint")
    surface = UsdShade.Shader.Define(stage, "/Paint/Surface")
    surface.CreateIdAttr("UsdPreviewSurface")
    surface.CreateInput("roughness", Sdf.ValueTypeNames.Float).Set(0.9)
    material.CreateSurfaceOutput().ConnectToSource(surface.ConnectableAPI(), "surface")
    image = UsdShade.Shader.Define(stage, "/Paint/Image")
    image.CreateIdAttr("UsdUVTexture")
    image.CreateInput("file", Sdf.ValueTypeNames.Asset).Set("two.png")
    reader = UsdShade.Shader.Define(stage, "/Paint/Place")
    reader.CreateIdAttr("UsdPrimvarReader_float2")
    reader.CreateInput("varname", Sdf.ValueTypeNames.String).Set("place")
    image.CreateInput("st", Sdf.ValueTypeNames.Float2).ConnectToSource(reader.ConnectableAPI(), "result")
    surface.CreateInput("diffuseColor", Sdf.ValueTypeNames.Color3f).ConnectToSource(image.ConnectableAPI(), "rgb")
    UsdShade.MaterialBindingAPI.Apply(mesh.GetPrim()).Bind(material)
    stage.Save()
    return stage
