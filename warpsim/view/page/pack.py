"""A page's content as one block of bytes: a header in JSON, then the numbers it points into.

uint32 (little endian) length of the header · header · data. A series is `{"at", "frames", "channels", "low", "high"}`
with `low` and `high` the places of its ranges, float64 each; channel c has range c modulo their number.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from warpsim.core.errors import InputError
from warpsim.io.usd.motion import ContactFrame
from warpsim.view.items.forces import usual_force
from warpsim.view.items.item import BOX, CAPSULE, MESH, PLANE, SPHERE, TAPERED, Item, Look
from warpsim.view.items.textures import Texture
from warpsim.view.items.triangles import Triangles
from warpsim.view.page.content import (
    BodyInfo,
    CloudDrawable,
    CurveDrawable,
    Drawable,
    JointInfo,
    Page,
    RigidDrawable,
    SurfaceDrawable,
    Take,
    Target,
)
from warpsim.view.page.focus import page_focus
from warpsim.view.page.meshes import pack_mesh
from warpsim.view.page.pictures import picture_url
from warpsim.view.page.series import quantized, squeezed

KIND_NAMES = {SPHERE: "sphere", BOX: "box", CAPSULE: "capsule", TAPERED: "tapered", PLANE: "plane", MESH: "mesh"}


class Packer:
    """Collects numbers and remembers meshes, which several shapes may share."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._meshes: dict[int, int] = {}
        self.meshes: list[dict[str, Any]] = []
        self.textures: dict[str, str] = {}

    @property
    def data(self) -> bytes:
        """All numbers."""
        return b"".join(self._parts)

    def put(self, part: bytes) -> int:
        """Stores bytes; returns where."""
        at = self._size
        self._parts.append(part)
        self._size += len(part)
        return at

    def series(self, values: np.ndarray, *, shared: bool = False) -> dict[str, Any]:
        """Stores (frames, …, n).

        Args:
            values: The numbers.
            shared: One range for each of the n, instead of one for every channel.
        """
        frames, last = len(values), values.shape[-1]
        flat = np.asarray(values, dtype=float).reshape(frames, -1)
        if not np.isfinite(flat).all():
            frame = int(np.argwhere(~np.isfinite(flat))[0][0])
            raise InputError(f"the motion is not finite from frame {frame} on; show the frames before it alone")
        ranged = flat.reshape(-1, last) if shared else flat
        low, high = ranged.min(axis=0), ranged.max(axis=0)
        repeat = flat.shape[1] // len(low)
        levels = quantized(flat, np.tile(low, repeat), np.tile(high, repeat))
        return {
            "at": self.put(squeezed(levels)),
            "frames": frames,
            "channels": flat.shape[1],
            "low": self.floats(low),
            "high": self.floats(high),
            "ranges": len(low),
        }

    def floats(self, values: np.ndarray) -> int:
        """Stores float64; returns where."""
        return self.put(np.asarray(values, dtype="<f8").tobytes())

    def mesh(self, triangles: Triangles) -> int:
        """Number of a mesh."""
        key = id(triangles)
        if key not in self._meshes:
            packed = pack_mesh(triangles)
            self._meshes[key] = len(self.meshes)
            self.meshes.append(
                {
                    "at": self.put(packed.to_bytes()),
                    "vertices": len(packed.vertices),
                    "faces": len(packed.faces),
                    "low": packed.low.tolist(),
                    "high": packed.high.tolist(),
                    "uv": None if packed.uv_range is None else [_list(side) for side in packed.uv_range],
                }
            )
        return self._meshes[key]

    def texture(self, texture: Texture) -> int:
        """Number of a texture."""
        if texture.path not in self.textures:
            self.textures[texture.path] = picture_url(texture)
        return list(self.textures).index(texture.path)


def pack(page: Page) -> bytes:
    """The block of bytes that a page decodes."""
    packer = Packer()
    bodies = {body.path: index for index, body in enumerate(page.bodies)}
    focus = page_focus(page)
    header = {
        "title": page.title,
        "focus": {"low": _list(focus.box[0]), "high": _list(focus.box[1]), "enclosed": focus.enclosed},
        "notes": list(page.notes),
        "bodies": [_body(body) for body in page.bodies],
        "joints": [_joint(joint, bodies) for joint in page.joints],
        "drawables": [_drawable(packer, drawable, bodies) for drawable in page.drawables],
        "targets": [_target(target, bodies) for target in page.targets],
        "takes": [_take(packer, take) for take in page.takes],
        "meshes": packer.meshes,
        "textures": list(packer.textures.values()),
        "loss": None
        if page.loss is None
        else {"iterations": _list(page.loss.iterations), "losses": _list(page.loss.losses)},
        "live": None if page.live is None else asdict(page.live),
    }
    text = json.dumps(header, separators=(",", ":"), allow_nan=False).encode()
    return len(text).to_bytes(4, "little") + text + packer.data


def _list(values: np.ndarray) -> list[Any]:
    """Numbers for JSON; null where not finite."""
    return [x if np.isfinite(x) else None for x in np.asarray(values).tolist()]


def _body(body: BodyInfo) -> dict[str, Any]:
    return {"path": body.path, "mass": body.mass, "com": None if body.com is None else _list(body.com)}


def _joint(joint: JointInfo, bodies: dict[str, int]) -> dict[str, Any]:
    return {
        "path": joint.path,
        "kind": joint.kind,
        "body": bodies[joint.body],
        "anchor": _list(joint.anchor),
        "axis": _list(joint.axis),
        "column": joint.column,
        "limit": None if joint.limit is None else _list(np.array(joint.limit, dtype=float)),
    }


def _look(look: Look) -> dict[str, Any]:
    return {"roughness": look.roughness, "metallic": look.metallic, "opacity": look.opacity}


def _drawable(packer: Packer, drawable: Drawable, bodies: dict[str, int]) -> dict[str, Any]:
    if isinstance(drawable, RigidDrawable):
        return _rigid(packer, drawable, drawable.item, bodies)
    common = {"path": drawable.path, "color": _list(drawable.color)}
    if isinstance(drawable, SurfaceDrawable):
        faces = packer.put(np.asarray(drawable.faces, dtype="<i4").tobytes())
        return {**common, "kind": "surface", "faces": len(drawable.faces), "at": faces, **_look(drawable.look)}
    if isinstance(drawable, CloudDrawable):
        return {**common, "kind": "cloud", "radius": drawable.radius}
    assert isinstance(drawable, CurveDrawable)
    return {**common, "kind": "curves", "counts": _list(drawable.counts), "width": drawable.width}


def _rigid(packer: Packer, drawable: RigidDrawable, item: Item, bodies: dict[str, int]) -> dict[str, Any]:
    return {
        "path": item.name,
        "kind": KIND_NAMES[item.kind],
        "size": _list(item.size),
        "matrix": _list(item.to_world.T.reshape(-1)),
        "color": _list(item.color),
        **_look(item.look),
        "body": -1 if item.body is None else bodies[item.body],
        "mesh": None if item.mesh is None else packer.mesh(item.mesh),
        "texture": None
        if item.look.texture is None or item.mesh is None or item.mesh.uvs is None
        else packer.texture(item.look.texture),
        "visual": drawable.visual,
        "collider": drawable.collider,
        "takes": None if drawable.takes is None else list(drawable.takes),
    }


def _target(target: Target, bodies: dict[str, int]) -> dict[str, Any]:
    return {
        "name": target.name,
        "times": _list(target.times),
        "positions": [_list(position) for position in target.positions],
        "subject": None if target.subject is None else bodies[target.subject],
        "offset": None if target.offset is None else _list(target.offset),
        "tolerance": target.tolerance,
    }


def _take(packer: Packer, take: Take) -> dict[str, Any]:
    return {
        "name": take.name,
        "ghost": take.ghost,
        "over": take.over,
        "iteration": take.iteration,
        "loss": take.loss if take.loss is not None and np.isfinite(take.loss) else None,
        "frames": len(take.times),
        "times": packer.floats(take.times),
        "positions": packer.series(take.positions) if take.positions.size else None,
        "rotations": packer.series(continuous(take.rotations)) if take.rotations.size else None,
        "values": None if take.values is None or not take.values.size else packer.series(take.values),
        "points": {path: packer.series(points, shared=True) for path, points in take.points.items()},
        "contacts": None if take.contacts is None else _contacts(packer, take.contacts),
    }


def continuous(rotations: np.ndarray) -> np.ndarray:
    """(frames, bodies, 4) with signs chosen so that no quaternion jumps to its opposite."""
    flips = np.einsum("fbi,fbi->fb", rotations[1:], rotations[:-1]) < 0.0
    odd = np.cumsum(flips, axis=0) % 2 == 1
    signed = np.array(rotations, dtype=float)
    signed[1:][odd] *= -1.0
    return signed


def _contacts(packer: Packer, frames: Sequence[ContactFrame]) -> dict[str, Any] | None:
    """Points and forces of all frames in one row; `counts` says how many each frame has."""
    counts = np.array([len(frame.points) for frame in frames], dtype="<u2")
    if not counts.sum():
        return None
    cut = [frame for frame in frames if len(frame.points)]
    points = np.concatenate([frame.points for frame in cut])
    forces = np.concatenate([frame.forces for frame in cut])
    return {
        "counts": packer.put(counts.tobytes()),
        "points": packer.series(points, shared=True),
        "forces": packer.series(forces, shared=True),
        "usual": usual_force(cut),
    }
