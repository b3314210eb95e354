"""Values of USD attributes → everything physics starts from: authored parameters, drive targets and the initial state.

The map is the reader and the compiler themselves, run with some values replaced in double precision, so it knows every
unit, frame and precedence that they know. What is no real number (topology, kinds, flags, which values are set at all)
comes along as `discrete`: an attribute that changes it has no derivative.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from os import PathLike
from typing import Any

import numpy as np
from pxr import Sdf, Tf, Usd

from warpsim.core.errors import InputError
from warpsim.coupling.compiled import CompiledScene, compile_scene
from warpsim.io.usd.reader import open_stage, read_usd, read_with
from warpsim.rigid.model.topology import Layout
from warpsim.scene import Mesh, Scene
from warpsim.scene.description import JOINT_Q_SIZE

_GROUPS = (
    "bodies",
    "joints",
    "shapes",
    "sites",
    "tendons",
    "actuators",
    "drives",
    "equalities",
    "sensors",
    "contact_overrides",
)
_SET_OR_NOT = {("bodies", "mass"), ("bodies", "com"), ("bodies", "inertia"), ("shapes", "mass")}
_SETTINGS = {("shapes", "gap"), ("sensors", "noise"), ("sensors", "cutoff"), ("contact_overrides", "gap")}
_LOOKS = {"color", "visible"}
_FLAGS = ("has_tendon_forces", "has_tendon_armature", "has_medium", "has_force_limits", "drives_loops", "damped")
_SAME_MESH = 1e-9
MOVED_MESH = "a mesh's own geometry, which carries no gradient (its pose and a uniform scale do), of"

Values = Mapping[str, Any]
"""By "/prim.attribute", as `read_with` takes them."""


@dataclass(frozen=True)
class Point:
    """What the stage gives for some values.

    Attributes:
        numbers: (M,) all of them, in the order of `SceneMap.slices`.
        discrete: Place in the scene → what is there.
    """

    numbers: np.ndarray
    discrete: dict[tuple[str, ...], Any]

    def jump(self, other: Point) -> str | None:
        """Where the two differ in something that is no number; None if nowhere."""
        for place in {**self.discrete, **other.discrete}:
            a, b = self.discrete.get(place), other.discrete.get(place)
            if a != b:
                return f"{' '.join(place)} ({_shown(a)} → {_shown(b)})"
        return None


def _shown(value: Any) -> str:
    text = str(value)
    return text if len(text) < 40 else "…"


class SceneMap:
    """Reads one stage again and again.

    Attributes:
        stage: A stage of our own over the source's layers, with an anonymous session layer.
        slices: Parameter or "state.…" name → its place in `Point.numbers`.
        shapes: Name → (n, …).
        base: The stage as it is.
    """

    def __init__(self, path: str | PathLike[str], compiled: CompiledScene) -> None:
        """Opens the source anew.

        Args:
            path: The file that was simulated.
            compiled: From it.
        """
        source = open_stage(path)
        self.stage = Usd.Stage.Open(source.GetRootLayer(), Sdf.Layer.CreateAnonymous("attributes.usda"))
        self.scene = read_usd(self.stage)
        self._path = path
        self._ours = self._stale = False
        self._listener = Tf.Notice.Register(Usd.Notice.ObjectsChanged, self._note_change, self.stage)
        self._constrained = compiled.model.has_constraints
        self._meshes: dict[str, Mesh] = dict(self.scene.meshes)
        tables = _tables(self._compiled(self.scene))
        _check_same(path, tables, _tables(compiled))
        self.shapes = {name: table.shape for name, table in tables.items()}
        ends = np.cumsum([table.size for table in tables.values()])
        self.slices = {
            name: slice(int(end) - table.size, int(end))
            for (name, table), end in zip(tables.items(), ends, strict=True)
        }
        self._quaternions = _quaternion_places(self.slices, self.shapes, compiled.model.layout)
        self._first: np.ndarray | None = None
        self.base = self.read({})
        self._first = self.base.numbers

    def read(self, values: Values) -> Point:
        """The stage with some values replaced.

        Raises:
            SceneError: The values cannot be simulated.
        """
        if self._stale:
            raise _changed(self._path)
        scene = read_with(self.stage, values)
        discrete = _discrete(scene)
        self._settle_meshes(scene, discrete)
        compiled = self._compiled(scene)
        model = compiled.model
        for flag in _FLAGS:
            discrete["the model's", flag] = getattr(model, flag)
        discrete["the model's", "has_constraints"] = self._constrained or model.has_constraints
        tables = _tables(compiled)
        numbers = np.concatenate([table.ravel() for table in tables.values()])
        finite = np.isfinite(numbers)
        for name, place in self.slices.items():
            discrete["finite numbers in", name] = finite[place].tobytes()
        return Point(self._near_base(numbers), discrete)

    def author(self, attribute: Usd.Attribute, value: Any) -> None:
        """Authors a value in the session layer, or clears it there (None); the ledger of `scene` follows."""
        self._ours = True
        with Usd.EditContext(self.stage, self.stage.GetSessionLayer()):
            if value is None:
                attribute.Clear()
            else:
                attribute.Set(value)
        self._ours = False
        self.scene = read_usd(self.stage)

    def names(self, changed: np.ndarray) -> list[str]:
        """Names of the parameters that hold at least one of some places; `changed` is an (M,) mask."""
        return [name for name, place in self.slices.items() if changed[place].any()]

    def _note_change(self, *_: Any) -> None:
        """Layers are shared by all stages of a process: somebody may edit the source in memory."""
        self._stale = self._stale or not self._ours

    def _compiled(self, scene: Scene) -> CompiledScene:
        """Without contacts: pairs hold no authored numbers, and their hulls and grids take long."""
        return compile_scene(replace(scene, options=replace(scene.options, contacts=False)), device="cpu")

    def _near_base(self, numbers: np.ndarray) -> np.ndarray:
        """Of the two quaternions of each rotation the one nearer the base's: the reader's choice of sign may jump."""
        if self._first is None or not len(self._quaternions):
            return numbers
        turned = (numbers[self._quaternions] * self._first[self._quaternions]).sum(axis=1) < 0
        numbers[self._quaternions[turned]] *= -1.0
        return numbers

    def _settle_meshes(self, scene: Scene, discrete: dict[tuple[str, ...], Any]) -> None:
        """Meshes keep their vertices and take a uniform scale as their shape's size; other changes are discrete."""
        for name, mesh in scene.meshes.items():
            known = self._meshes.get(name)
            scale = None if known is None else _uniform_scale(known, mesh)
            if known is None or scale is None:
                discrete[MOVED_MESH, name] = float(np.abs(mesh.vertices).sum())
                continue
            scene.meshes[name] = known
            for shape in scene.shapes:
                if shape.mesh == name and shape.kind in ("mesh", "hull"):
                    shape.size = np.full(3, scale)


def _check_same(path: str | PathLike[str], now: dict[str, np.ndarray], then: dict[str, np.ndarray]) -> None:
    same = all(now[name].shape == table.shape and np.array_equal(now[name], table) for name, table in then.items())
    if not same:
        raise _changed(path)


def _changed(path: str | PathLike[str]) -> InputError:
    return InputError(f"{path} is not what it was when this simulator read it; make the simulator anew")


def _uniform_scale(known: Mesh, mesh: Mesh) -> float | None:
    """The number by which all vertices have been multiplied; None if they changed otherwise."""
    if known.vertices.shape != mesh.vertices.shape or not np.array_equal(known.faces, mesh.faces):
        return None
    scale = float(np.vdot(known.vertices, mesh.vertices) / np.vdot(known.vertices, known.vertices))
    off = np.abs(mesh.vertices - scale * known.vertices).max()
    if not off <= _SAME_MESH * np.abs(mesh.vertices).max():
        return None
    return 1.0 if abs(scale - 1.0) < 1e-14 else scale


def _tables(compiled: CompiledScene) -> dict[str, np.ndarray]:
    return {**compiled.described, **{f"state.{name}": value for name, value in compiled.initial.items()}}


def _comparable(value: Any) -> Any:
    return (value.shape, value.tobytes()) if isinstance(value, np.ndarray) else value


def _quaternion_places(
    slices: Mapping[str, slice], shapes: Mapping[str, tuple[int, ...]], layout: Layout
) -> np.ndarray:
    """(n, 4) places of all quaternions in `Point.numbers`."""
    places = []
    for name in ("body.rotation", "shape.rotation", "site.rotation", "equality.relative_rotation", "equality.axes"):
        first = slices[name].start
        places += [np.arange(first + 4 * i, first + 4 * i + 4) for i in range(shapes[name][0])]
    for name in ("joint.reference", "joint.rest", "state.q"):
        first = slices[name].start
        for kind, q in zip(layout.joint_kinds, layout.joint_q, strict=True):
            if kind in ("free", "ball"):
                end = first + int(q) + JOINT_Q_SIZE[kind]
                places.append(np.arange(end - 4, end))
    return np.array(places, dtype=np.intp).reshape(-1, 4)


def _discrete(scene: Scene) -> dict[tuple[str, ...], Any]:
    """Everything about a scene that is not a number physics could be differentiated by."""
    found: dict[tuple[str, ...], Any] = {}
    for group in _GROUPS:
        items = getattr(scene, group)
        found[group, "count"] = len(items)
        for place, item in enumerate(items):
            name = getattr(item, "name", str(place))
            for field in fields(item):
                key, value = (group, field.name), getattr(item, field.name)
                if field.name in _LOOKS:
                    continue
                if key in _SET_OR_NOT:
                    found[name, field.name, "given"] = value is not None
                elif key in _SETTINGS or isinstance(value, str | bool | int | list):
                    found[name, field.name] = value
    for field in fields(scene.options):
        if field.name not in ("gravity", "timestep", "contacts"):
            found["options", field.name] = getattr(scene.options, field.name)
    for matter in scene.matters:
        found[matter.name, "kind"] = matter.kind
        found[matter.name, "data"] = {key: _comparable(value) for key, value in matter.data.items()}
    found["excluded_pairs",] = scene.excluded_pairs
    found["excluded_bodies",] = scene.excluded_bodies
    found["filter_parent",] = scene.filter_parent
    return found
