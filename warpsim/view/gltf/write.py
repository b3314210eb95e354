"""`write_glb`: what a page shows of its first take, as an animation in one .glb file.

Bodies are nodes with animated translation and rotation; shapes under them have their own transforms in their vertices.
Things whose points move are morph targets, one for each of a few frames.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from warpsim.core.errors import InputError
from warpsim.core.files import replacing
from warpsim.core.numpy_quaternions import matrix_to_quat
from warpsim.view.gltf.document import LINES, TRIANGLES, VERTICES, Document
from warpsim.view.gltf.shapes import Surface, item_surface, joined, smooth_normals
from warpsim.view.items.camera import FIELD_OF_VIEW, fit_camera
from warpsim.view.items.item import PLANE, Look
from warpsim.view.page.content import (
    BodyInfo,
    CloudDrawable,
    CurveDrawable,
    Drawable,
    Page,
    RigidDrawable,
    SurfaceDrawable,
    Take,
)
from warpsim.view.page.pack import continuous

UPRIGHT = [-float(np.sqrt(0.5)), 0.0, 0.0, float(np.sqrt(0.5))]
"""Quaternion (x, y, z, w) that turns z, up here, to y, up in glTF."""
MAXIMUM_SHAPES = 60
"""Morph targets of a thing whose points move."""
MORPH_BYTES = 24_000_000
"""That the morph targets of one thing may take."""
_OCTAHEDRON = np.array([[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]], dtype=float)
_OCTAHEDRON_FACES = np.array([[0, 2, 4], [2, 1, 4], [1, 3, 4], [3, 0, 4], [2, 0, 5], [1, 2, 5], [3, 1, 5], [0, 3, 5]])
_ASPECT = 16.0 / 9.0


def write_glb(path: str | PathLike[str], page: Page) -> Path:
    """Writes the first take of a page that is neither a ghost nor an iterate of a search.

    Args:
        path: The .glb file.
        page: What it shows.

    Returns:
        The file.
    """
    target = Path(fspath(path))
    if not target.parent.is_dir():
        raise InputError(f"{target}: there is no folder {str(target.parent)!r}; make it first")
    data = glb_bytes(page)
    with replacing(target) as temporary:
        Path(temporary).write_bytes(data)
    return target


def glb_bytes(page: Page) -> bytes:
    """The whole file; the same content gives the same bytes."""
    shown = [number for number, take in enumerate(page.takes) if not take.ghost and take.iteration is None]
    if not shown:
        raise InputError("there is no take to write: all are ghosts or iterates of a search")
    return _Writer(page, shown[0]).run()


class _Writer:
    """One take's way into a document."""

    def __init__(self, page: Page, number: int) -> None:
        self._page, self._number, self._take = page, number, page.takes[number]
        self._file = Document()
        self._channels: list[dict[str, Any]] = []
        self._samplers: list[dict[str, Any]] = []
        self._moves = len(self._take.times) > 1
        self._times = self._file.floats(self._take.times - self._take.times[0], bounds=True) if self._moves else -1
        self._box = _bounds(page.drawables, self._take, page.bodies)
        self._reach = 4.0 * float(np.ptp(self._box, axis=0).max())

    def run(self) -> bytes:
        bodies = {body.path: self._body(place, body) for place, body in enumerate(self._page.bodies)}
        loose = []
        for drawable in self._page.drawables:
            node = self._drawable(drawable)
            if node is None:
                continue
            owner = drawable.item.body if isinstance(drawable, RigidDrawable) else None
            if owner is None:
                loose.append(node)
            else:
                self._file.content["nodes"][bodies[owner]].setdefault("children", []).append(node)
        children = [*bodies.values(), *loose, self._camera()]
        root = self._file.add("nodes", {"name": self._page.title, "rotation": UPRIGHT, "children": children})
        self._file.add("scenes", {"nodes": [root]})
        if self._channels:
            self._file.add(
                "animations", {"name": self._take.name, "channels": self._channels, "samplers": self._samplers}
            )
        return self._file.to_bytes()

    def _body(self, place: int, body: BodyInfo) -> int:
        positions = self._take.positions[:, place]
        turns = continuous(self._take.rotations)[:, place][:, [1, 2, 3, 0]]
        extras = {"path": body.path, **({} if body.mass is None else {"mass": body.mass})}
        node = self._file.add(
            "nodes",
            {
                "name": body.path.rpartition("/")[2] or body.path,
                "translation": positions[0].tolist(),
                "rotation": _unit(turns[0]),
                "extras": extras,
            },
        )
        if self._moves:
            self._animate(node, "translation", self._file.floats(positions), self._times)
            self._animate(node, "rotation", self._file.floats(turns), self._times)
        return node

    def _animate(self, node: int, path: str, output: int, times: int) -> None:
        self._samplers.append({"input": times, "output": output, "interpolation": "LINEAR"})
        self._channels.append({"sampler": len(self._samplers) - 1, "target": {"node": node, "path": path}})

    def _drawable(self, drawable: Drawable) -> int | None:
        """The node of something that is shown in this take; None: it is not."""
        if isinstance(drawable, RigidDrawable):
            hidden = not drawable.visual or (drawable.takes is not None and self._number not in drawable.takes)
            return None if hidden else self._rigid(drawable)
        track = self._take.points.get(drawable.path)
        if track is None or not track.shape[1]:
            return None
        return self._deforming(drawable, np.asarray(track, dtype=float))

    def _rigid(self, drawable: RigidDrawable) -> int:
        item = drawable.item
        surface = item_surface(item, self._reach)
        textured = item.look.texture is not None and surface.uvs is not None
        primitive = self._primitive(surface)
        if textured and surface.uvs is not None:
            uvs = surface.uvs * [1.0, -1.0] + [0.0, 1.0]  # pictures begin at their upper edge in glTF
            primitive["attributes"]["TEXCOORD_0"] = self._file.floats(uvs, target=VERTICES)
        primitive["material"] = self._file.material(item.color, item.look, textured=textured)
        return self._node(item.name, {"primitives": [primitive]})

    def _primitive(self, surface: Surface) -> dict[str, Any]:
        return {
            "attributes": {
                "POSITION": self._file.floats(surface.points, target=VERTICES, bounds=True),
                "NORMAL": self._file.floats(surface.normals, target=VERTICES),
            },
            "indices": self._file.indices(surface.faces),
            "mode": TRIANGLES,
        }

    def _node(self, path: str, mesh: dict[str, Any]) -> int:
        index = self._file.add("meshes", {"name": path, **mesh})
        name = path.rpartition("/")[2] or path
        return self._file.add("nodes", {"name": name, "mesh": index, "extras": {"path": path}})

    def _deforming(self, drawable: SurfaceDrawable | CloudDrawable | CurveDrawable, track: np.ndarray) -> int:
        keys = self._keys(drawable, track.shape[1])
        look = drawable.look if isinstance(drawable, SurfaceDrawable) else Look()
        rest = track[keys[0]]
        if isinstance(drawable, CurveDrawable):
            primitive: dict[str, Any] = {
                "attributes": {"POSITION": self._file.floats(rest, target=VERTICES, bounds=True)},
                "indices": self._file.indices(_segments(drawable.counts)),
                "mode": LINES,
            }
            shapes = [{"POSITION": track[key] - rest} for key in keys[1:]]
        elif isinstance(drawable, SurfaceDrawable):
            normals = [smooth_normals(track[key], drawable.faces) for key in keys]
            primitive = self._primitive(Surface(rest, normals[0], drawable.faces))
            shapes = [
                {"POSITION": track[key] - rest, "NORMAL": normal - normals[0]}
                for key, normal in zip(keys[1:], normals[1:], strict=True)
            ]
        else:
            grains = [Surface(at + drawable.radius * _OCTAHEDRON, _OCTAHEDRON, _OCTAHEDRON_FACES) for at in rest]
            primitive = self._primitive(joined(grains))
            shapes = [{"POSITION": np.repeat(track[key] - rest, len(_OCTAHEDRON), axis=0)} for key in keys[1:]]
        primitive["material"] = self._file.material(drawable.color, look, textured=False)
        if not shapes:
            return self._node(drawable.path, {"primitives": [primitive]})
        primitive["targets"] = [
            {name: self._file.floats(rows, target=VERTICES, bounds=name == "POSITION") for name, rows in shape.items()}
            for shape in shapes
        ]
        node = self._node(drawable.path, {"primitives": [primitive], "weights": [0.0] * len(shapes)})
        times = self._file.floats(self._take.times[keys] - self._take.times[0], bounds=True)
        weights = np.eye(len(keys))[:, 1:]  # at key 0 none, at key k the k-th alone
        self._animate(node, "weights", self._file.floats(weights.reshape(-1)), times)
        return node

    def _keys(self, drawable: Drawable, points: int) -> np.ndarray:
        """Frames that become morph targets, the first and the last among them."""
        vertices = points * (len(_OCTAHEDRON) if isinstance(drawable, CloudDrawable) else 1)
        room = int(MORPH_BYTES // (24 * max(vertices, 1)))
        count = max(2, min(len(self._take.times), MAXIMUM_SHAPES, room))
        return np.unique(np.linspace(0, len(self._take.times) - 1, count).round().astype(int))

    def _camera(self) -> int:
        """The page's view of everything, to open with."""
        low, high = self._box
        corners = np.array([[x, y, z] for x in (low[0], high[0]) for y in (low[1], high[1]) for z in (low[2], high[2])])
        camera = fit_camera(corners, aspect=_ASPECT)
        size = float(np.ptp(self._box, axis=0).max())
        index = self._file.add(
            "cameras",
            {
                "type": "perspective",
                "perspective": {
                    "yfov": float(FIELD_OF_VIEW),
                    "aspectRatio": _ASPECT,
                    "znear": size / 500.0,
                    "zfar": 200.0 * size,
                },
            },
        )
        turn = matrix_to_quat(np.stack([camera.right, camera.up, -camera.forward], axis=1)[None])[0]
        return self._file.add(
            "nodes",
            {
                "name": "Camera",
                "camera": index,
                "translation": camera.position.tolist(),
                "rotation": _unit(turn[[1, 2, 3, 0]]),
            },
        )


def _unit(quaternion: np.ndarray) -> list[float]:
    return (quaternion / np.linalg.norm(quaternion)).tolist()


def _segments(counts: np.ndarray) -> np.ndarray:
    """Pairs of neighboring points of polylines."""
    starts = np.cumsum(counts) - counts
    pairs = [np.arange(n - 1)[:, None] + [0, 1] + start for n, start in zip(counts, starts, strict=True)]
    return np.concatenate(pairs) if pairs else np.zeros((0, 2), dtype=int)


def _bounds(drawables: Sequence[Drawable], take: Take, bodies: Sequence[BodyInfo]) -> np.ndarray:
    """(2, 3) m: corners of the box around what moves and what stands, without planes."""
    place = {body.path: k for k, body in enumerate(bodies)}
    clouds = [np.asarray(points).reshape(-1, 3) for points in take.points.values()]
    for drawable in drawables:
        if not isinstance(drawable, RigidDrawable) or drawable.item.kind == PLANE or not drawable.visual:
            continue
        corners = drawable.item.corners()
        if drawable.item.body is None:
            clouds.append(corners)
            continue
        at = take.positions[:, place[drawable.item.body]]
        reach = np.linalg.norm(corners, axis=1).max()
        clouds += [at - reach, at + reach]
    if not clouds:
        return np.array([[-0.5, -0.5, 0.0], [0.5, 0.5, 0.5]])
    every = np.concatenate(clouds)
    return np.stack([every.min(axis=0), every.max(axis=0)])
