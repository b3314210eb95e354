"""`write_result`: a rollout, and optimized values, as layers over an untouched source.

`out.usda` is a small root layer (units, time range, provenance) with these sublayers, strongest first:

- `out.animation.usdc`: time samples of poses, joint states, velocities, contacts
- `out.values.usda`: optimized attribute values as sparse overrides, if any
- the source, never written

The root has a camera that sees the motion, where the source has none.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
from pxr import Sdf, Usd, UsdGeom, UsdPhysics, Vt

from warpsim.core.errors import InputError
from warpsim.core.files import refuse_sources
from warpsim.io.usd.animation import write_animation
from warpsim.io.usd.attributes import AttributeReader
from warpsim.io.usd.contact_prims import write_contacts
from warpsim.io.usd.context import Context
from warpsim.io.usd.layer_files import export_layer, layer_paths, mark_layer
from warpsim.io.usd.ledger_scan import Ledger
from warpsim.io.usd.motion import Motion
from warpsim.io.usd.reader import open_stage
from warpsim.io.usd.units import stage_units
from warpsim.io.usd.view_camera import write_camera
from warpsim.scene import Scene


@dataclass
class OptimizedValue:
    """A new value of a USD attribute, in the attribute's own units."""

    path: str
    attribute: str
    value: Any
    initial: Any = None
    """What it was before; kept as customData."""
    gradient: Any = None
    """dL/d(attribute) at the end; kept as customData."""
    type_name: str | None = None
    """USD type, for an attribute that the source may lack."""


def write_result(
    path: str | PathLike[str],
    source: str | PathLike[str] | Usd.Stage,
    scene: Scene,
    motion: Motion | None = None,
    *,
    values: list[OptimizedValue] | None = None,
    provenance: Mapping[str, Any] | None = None,
    states: bool = True,
    start_code: float | None = None,
    meters_per_newton: float = 0.002,
) -> list[Path]:
    """Writes a result that opens in any USD viewer and loads again as an initial state.

    Args:
        path: The result's root layer, .usda or .usdc; its other layers go beside it.
        source: What was simulated: a USD file, or a stage whose root layer is a file.
        scene: As read from the source.
        motion: The rollout; None writes values only.
        values: Optimized attributes.
        provenance: Plain data (seed, configuration, versions, loss …) for the root's customLayerData.
        states: Write joint coordinates and velocities too. They are where the result starts when it is loaded; without
            them it starts as the source and the values say, so that these can be edited further.
        start_code: Time code at which the motion starts, at the source's rate, so that it runs beside what the source
            animates. None: a rate of its own, from 0, so that frames have whole numbers.
        meters_per_newton: Length of contact force lines.

    Returns:
        The files written, the root first.

    Raises:
        InputError: The motion does not fit the scene.
        OutputError: The result would overwrite a file that the source is composed of, or cannot be written.
    """
    root_path = Path(fspath(path))
    stage = open_stage(source)
    used = layer_paths(stage.GetUsedLayers(includeClipLayers=True))
    source_path = _source_path(stage)
    root = Sdf.Layer.CreateAnonymous(".usda")
    _copy_stage_metadata(stage, root)
    layers: dict[str, Sdf.Layer] = {}
    if values:
        layers["values.usda"] = _values(stage, values)
        stage = _over(layers["values.usda"], source_path)
    if motion is not None:
        motion.check(scene)
        rate, codes = _time_codes(motion.times)
        if start_code is not None:
            rate = root.timeCodesPerSecond
            codes = start_code + motion.times * rate
        animation = _animation(stage, scene, motion, rate, codes, meters_per_newton, states)
        layers = {"animation.usdc": animation, **layers}
        seen = [*(body.name for body in scene.bodies), *(matter.path for matter in scene.matters)]
        write_camera(root, [*(layer.identifier for layer in layers.values()), str(source_path)], seen, codes)
        root.timeCodesPerSecond = root.framesPerSecond = rate
        root.startTimeCode, root.endTimeCode = float(codes[0]), float(codes[-1])
    names = [f"{root_path.stem}.{suffix}" for suffix in layers]
    root.subLayerPaths = [*(f"./{name}" for name in names), _relative(source_path, root_path.parent)]
    mark_layer(root, _plain(provenance or {}))
    written = [root_path.parent / name for name in names]
    refuse_sources([root_path, *written], used, str(source_path))
    for file, layer in zip(written, layers.values(), strict=True):  # first, for who holds the root open reads it anew
        mark_layer(layer, {"part of": root_path.name})
        export_layer(layer, file)
    export_layer(root, root_path)
    return [root_path, *written]


def animated_stage(stage: Usd.Stage, scene: Scene, motion: Motion) -> Usd.Stage:
    """A stage in memory that shows a motion over another stage: poses alone, at whole time codes from 0.

    Args:
        stage: What was simulated.
        scene: As read from it.
        motion: The rollout.

    Raises:
        InputError: The motion does not fit the scene.
    """
    motion.check(scene)
    rate, codes = _time_codes(motion.times)
    animation = _animation(stage, scene, motion, rate, codes, 0.0, states=False)
    root = Sdf.Layer.CreateAnonymous(".usda")
    _copy_stage_metadata(stage, root)
    root.timeCodesPerSecond = root.framesPerSecond = rate
    root.startTimeCode, root.endTimeCode = float(codes[0]), float(codes[-1])
    root.subLayerPaths = [animation.identifier, stage.GetRootLayer().identifier]
    return Usd.Stage.Open(root)


def _over(layer: Sdf.Layer, source: Path) -> Usd.Stage:
    """The source as a layer of values changes it: what an animation moves."""
    root = Sdf.Layer.CreateAnonymous(".usda")
    root.subLayerPaths = [layer.identifier, str(source)]
    stage = Usd.Stage.Open(root)
    _copy_stage_metadata(Usd.Stage.Open(layer), root)
    return stage


def _animation(
    stage: Usd.Stage,
    scene: Scene,
    motion: Motion,
    rate: float,
    codes: np.ndarray,
    meters_per_newton: float,
    states: bool,
) -> Sdf.Layer:
    layer = Sdf.Layer.CreateAnonymous(".usdc")
    _copy_stage_metadata(stage, layer)
    layer.timeCodesPerSecond = rate
    ledger = Ledger()
    context = Context(stage, stage_units(stage), ledger, AttributeReader(ledger, None))
    write_animation(context, scene, motion, layer, codes, states=states)
    if motion.contacts is not None and stage.GetDefaultPrim():
        write_contacts(layer, stage.GetDefaultPrim().GetPath(), motion, context.units, codes, meters_per_newton)
    return layer


def result_files(path: str | PathLike[str]) -> list[Path]:
    """Every file that `write_result` may write for a root layer."""
    root = Path(fspath(path))
    return [root, *(root.with_name(f"{root.stem}.{suffix}") for suffix in ("animation.usdc", "values.usda"))]


def _source_path(stage: Usd.Stage) -> Path:
    layer = stage.GetRootLayer()
    if layer.anonymous or not layer.realPath:
        raise InputError("the source stage is not a file; save it first, so that the result can refer to it")
    return Path(layer.realPath)


def _time_codes(times: np.ndarray) -> tuple[float, np.ndarray]:
    """(time codes per second, code of each frame): frame numbers where frames are evenly spaced."""
    if len(times) == 1:
        return 24.0, 24.0 * times
    rate = (len(times) - 1) / float(times[-1] - times[0])
    rate = round(rate) if abs(rate - round(rate)) < 1e-6 * rate else rate
    codes = times * rate
    whole = np.round(codes)
    return float(rate), np.where(np.abs(codes - whole) < 1e-6, whole, codes)


def _relative(source: Path, folder: Path) -> str:
    relative = os.path.relpath(source, folder.resolve())
    return relative if relative.startswith(".") else f"./{relative}"


def _copy_stage_metadata(stage: Usd.Stage, layer: Sdf.Layer) -> None:
    target = Usd.Stage.Open(layer)
    UsdGeom.SetStageUpAxis(target, UsdGeom.GetStageUpAxis(stage))
    UsdGeom.SetStageMetersPerUnit(target, UsdGeom.GetStageMetersPerUnit(stage))
    UsdPhysics.SetStageKilogramsPerUnit(target, UsdPhysics.GetStageKilogramsPerUnit(stage))
    layer.timeCodesPerSecond = stage.GetTimeCodesPerSecond()
    if stage.GetDefaultPrim():
        layer.defaultPrim = stage.GetDefaultPrim().GetPath().pathString.lstrip("/")


def _values(stage: Usd.Stage, values: list[OptimizedValue]) -> Sdf.Layer:
    """Sparse overrides, typed as in the source, with the value before and the gradient as customData."""
    layer = Sdf.Layer.CreateAnonymous(".usda")
    _copy_stage_metadata(stage, layer)
    for item in values:
        attribute = stage.GetAttributeAtPath(f"{item.path}.{item.attribute}")
        if not attribute and item.type_name is None:
            raise InputError(f"{item.path}.{item.attribute} is not an attribute of the source; nothing to override")
        kind = attribute.GetTypeName() if attribute else Sdf.ValueTypeNames.Find(item.type_name)
        prim = Sdf.CreatePrimInLayer(layer, item.path)
        variability = attribute.GetVariability() if attribute else Sdf.VariabilityVarying
        spec = Sdf.AttributeSpec(prim, item.attribute, kind, variability)
        spec.default = _typed(kind, item.value)
        notes = {"initial": item.initial, "gradient": item.gradient}
        spec.customData = {"warpsim": _plain({key: value for key, value in notes.items() if value is not None})}
    return layer


def _typed(kind: Sdf.ValueTypeName, value: Any) -> Any:
    make = kind.type.pythonClass
    if np.ndim(value) == 0:
        return value.item() if isinstance(value, np.generic | np.ndarray) else value
    numbers = np.asarray(value, dtype=float).ravel().tolist()
    return make(numbers) if kind.isArray else make(*numbers)


def _plain(value: Any) -> Any:
    """Nested data as USD dictionaries can hold it: arrays become lists of numbers, anything strange its text."""
    if isinstance(value, Mapping):
        return {str(key).replace(":", "_"): _plain(item) for key, item in value.items()}
    if isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray | list | tuple) and np.asarray(value).dtype.kind in "fiu":
        return Vt.DoubleArray([float(number) for number in np.asarray(value).ravel()])
    return str(value)
