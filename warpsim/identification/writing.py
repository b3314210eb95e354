"""Fitted values out again: as a USD layer over the source, or as MJCF that runs in MuJoCo itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from warpsim.core.errors import InputError
from warpsim.core.files import MARK, refuse_sources, replacing
from warpsim.core.registry import provided
from warpsim.identification.prediction import Contacts
from warpsim.io.load import load_scene
from warpsim.io.scene_files import MJCF_SUFFIXES, is_usd, scene_files
from warpsim.io.usd.export import export_scene
from warpsim.io.usd.layer_files import export_layer, mark_layer
from warpsim.io.usd.writer import OptimizedValue, write_result
from warpsim.scene import Body, Scene
from warpsim.sim.attributes.attribute import Attribute


@dataclass(frozen=True)
class FittedValue:
    """What a parameter sets.

    Attributes:
        name: Of the array, or the attribute's path.
        attribute: The handle; None: an array.
        item: Place in the array.
        numbers: The whole item, flattened.
    """

    name: str
    attribute: Attribute | None
    item: tuple[int, ...]
    numbers: np.ndarray


def write_fitted(
    folder: Path,
    source: str | PathLike[str] | Scene,
    scene: Scene,
    values: Sequence[FittedValue],
    contacts: Contacts,
    timestep: float,
) -> list[Path]:
    """Writes the fitted scene.

    Args:
        folder: Where.
        source: What was fitted.
        scene: As read from it.
        values: What the fit found.
        contacts: With which it ended.
        timestep: That it was simulated with, s.

    Returns:
        fitted.usda over a USD source; fitted.xml and fitted.usda from an MJCF source; () for a scene from Python.
    """
    if isinstance(source, Scene):
        return []
    path = Path(fspath(source))
    if is_usd(path):
        return _write_layer(folder / "fitted.usda", path, scene, values)
    if path.suffix.lower() in MJCF_SUFFIXES:
        made = write_mjcf(folder / "fitted.xml", path, scene, values, timestep, contacts.softening)
        fitted = load_scene(made)
        fitted = replace(fitted, options=replace(fitted.options, contact_softening=contacts.softening))
        stage, _ = export_scene(fitted)
        mark_layer(stage.GetRootLayer(), {"fitted from": path.name})
        export_layer(stage.GetRootLayer(), folder / "fitted.usda")
        return [made, folder / "fitted.usda"]
    return []


def _write_layer(target: Path, source: Path, scene: Scene, values: Sequence[FittedValue]) -> list[Path]:
    """The values of attributes as a layer; arrays have no attribute of their own."""
    lost = [value.name for value in values if value.attribute is None]
    if lost:
        raise InputError(f'{", ".join(lost)}: fit USD attributes ("/prim.attribute"), not arrays, to write a layer')
    written = []
    for value in values:
        assert value.attribute is not None
        stored = value.attribute.kind.stored(value.numbers.reshape(value.attribute.shape))
        initial = value.attribute.kind.stored(value.attribute.numbers)
        written.append(OptimizedValue(value.attribute.prim_path, value.attribute.name, stored, initial=initial))
    return write_result(target, source, scene, values=written)


def write_mjcf(
    target: Path, source: Path, scene: Scene, values: Sequence[FittedValue], timestep: float, softening: float = 0.0
) -> Path:
    """The source as MJCF with the fitted values in it; softening, which MJCF cannot hold, is told in a comment.

    Raises:
        InputError: A value has no place in MJCF, or a thing no name by which it could be found.
        WarpsimError: MuJoCo is not installed.
    """
    refuse_sources([target], scene_files(source), str(source))
    spec = provided("mjcf_spec")(source)
    spec.option.timestep = timestep
    for value in values:
        _set_mjcf(spec, scene, value)
    try:
        spec.compile()
    except ValueError as error:
        raise InputError(f"MuJoCo refuses the fitted values: {str(error).strip()}") from error
    text, said = spec.to_xml(), f"{MARK.decode()}: fitted from {source.name}"
    if softening:
        said += f", with contacts softened by {softening:g} m: MuJoCo has none of it, and moves somewhat otherwise"
    with replacing(target) as temporary:
        temporary.write_text(f"<!-- {said} -->\n{text}", encoding="utf-8")
    return target


def _set_mjcf(spec: Any, scene: Scene, value: FittedValue) -> None:
    group, _, what = value.name.partition(".")
    setter = _MJCF.get(value.name)
    if setter is None or value.attribute is not None:
        raise InputError(f"{value.name}: not known how to write it as MJCF; known: {', '.join(_MJCF)}")
    if group == "world":
        setter(spec.option, value.numbers)
        return
    if not value.item:
        raise InputError(f'{value.name}: fit its items one by one ("{value.name}:ITEM") to write them as MJCF')
    place = value.item[0]
    if group == "body":
        body = scene.bodies[place - 1]  # body 0 is the world
        thing = spec.body(body.name)
        if thing is not None and not thing.explicitinertial:
            _state_inertia(spec, thing, body)
    elif group == "shape":
        thing = spec.geom(scene.shapes[place].name)
    elif group == "actuator":
        thing = spec.actuator(scene.actuators[place].name)
    else:
        thing = spec.joint(_joint_of_dof(scene, place))
    if thing is None:
        raise InputError(f"{value.name}: item {place} has no name in the MJCF file by which it could be found")
    setter(thing, value.numbers)


def _joint_of_dof(scene: Scene, dof: int) -> str:
    sizes = {"free": 6, "ball": 3}
    at = 0
    for joint in scene.joints:
        at += sizes.get(joint.kind, 1)
        if dof < at:
            return joint.name
    raise InputError(f"there is no dof {dof}")


def _assign(name: str, count: int | None = None) -> Callable[[Any, np.ndarray], None]:
    def assign(thing: Any, numbers: np.ndarray) -> None:
        if numbers.size == 1:
            setattr(thing, name, float(numbers[0]))
        else:
            getattr(thing, name)[: len(numbers) if count is None else count] = numbers[:count]

    return assign


def _assign_first(name: str) -> Callable[[Any, np.ndarray], None]:
    """Fields of which MJCF joints hold one number per polynomial order."""

    def assign(thing: Any, numbers: np.ndarray) -> None:
        held = getattr(thing, name)
        if np.ndim(held):
            held[0] = float(numbers[0])
        else:
            setattr(thing, name, float(numbers[0]))

    return assign


def _inertia(body: Any, numbers: np.ndarray) -> None:
    """(xx, yy, zz, xy, xz, yz) in the body's axes."""
    body.explicitinertial = True
    body.iquat[:] = (1.0, 0.0, 0.0, 0.0)
    if np.abs(numbers[3:]).max() == 0:
        body.inertia[:] = numbers[:3]
    else:
        body.fullinertia[:] = numbers


def _state_inertia(spec: Any, thing: Any, body: Body) -> None:
    """Writes down what MuJoCo derived from a body's geoms: of what is stated, all must be."""
    assert body.mass is not None and body.com is not None and body.inertia is not None
    provided("mjcf_infer_missing_inertias")(spec)
    thing.mass, thing.ipos[:] = float(body.mass), body.com
    i = np.asarray(body.inertia)
    _inertia(thing, np.array([i[0, 0], i[1, 1], i[2, 2], i[0, 1], i[0, 2], i[1, 2]]))


def _inertial(name: str) -> Callable[[Any, np.ndarray], None]:
    plain = _assign(name)

    def assign(body: Any, numbers: np.ndarray) -> None:
        body.explicitinertial = True
        plain(body, numbers)

    return assign


_MJCF: dict[str, Callable[[Any, np.ndarray], None]] = {
    "body.mass": _inertial("mass"),
    "body.com": _inertial("ipos"),
    "body.inertia": _inertia,
    "shape.friction": _assign("friction", 3),
    "shape.solref": _assign("solref"),
    "shape.solimp": _assign("solimp"),
    "shape.margin": _assign("margin"),
    "shape.size": _assign("size"),
    "actuator.gain": _assign("gainprm"),
    "actuator.bias": _assign("biasprm"),
    "joint.damping": _assign_first("damping"),
    "joint.stiffness": _assign_first("stiffness"),
    "joint.armature": _assign_first("armature"),
    "limit.friction_loss": _assign_first("frictionloss"),
    "world.gravity": _assign("gravity"),
    "world.medium_density": _assign("density"),
    "world.medium_viscosity": _assign("viscosity"),
}
"""Parameter array → how its item is set on MuJoCo's specification."""
