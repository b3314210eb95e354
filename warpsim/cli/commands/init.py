"""`warpsim init`: a robot's file → a scene with a task to start from, which lists everything that may vary."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from pxr import Sdf, Tf, Usd, UsdGeom, UsdPhysics

from warpsim.cli.commands.outputs import check_outputs
from warpsim.core.errors import InputError
from warpsim.io.load import ledger_told, load_scene
from warpsim.io.scene_files import is_usd
from warpsim.io.usd import author
from warpsim.io.usd.export import export_scene
from warpsim.io.usd.layer_files import export_layer, mark_layer
from warpsim.sim.attributes.meaning import not_set
from warpsim.sim.attributes.value_type import value_type
from warpsim.version import __version__

_SECONDS, _KNOTS, _LIFT, _TOLERANCE = 1.0, 5, 0.1, 0.01
"""Of the starter task: duration, control knots, how far its body shall rise, and how exactly, m."""
_STAGE_SETTINGS = ("defaultPrim", "metersPerUnit", "kilogramsPerUnit", "upAxis", "timeCodesPerSecond")
_HELP = (
    "Starter task. `Reach` says what is wanted and `Controls` what acts; edit both. Each Variable below is one "
    "attribute that physics reads: delete `active = false` of those that shall vary, and give them bounds "
    "(lower, upper)."
)


def run(arguments: argparse.Namespace) -> int:
    """Writes the files and says what to do next."""
    robot, folder = Path(arguments.robot), Path(arguments.output)
    if not robot.is_file():
        raise InputError(f"no file {arguments.robot!r}")
    scene = robot if is_usd(robot) else folder / f"{robot.stem}_scene.usda"
    target = folder / f"{robot.stem}_task.usda"
    check_outputs({target, scene} - {robot}, [robot], force=arguments.force, make_folder=True)
    folder.mkdir(parents=True, exist_ok=True)
    if scene != robot:
        _convert(robot, scene)
    source = Usd.Stage.Open(str(scene))
    variables = list(_variables(source, scene))
    _write_task(source, scene, target, variables)
    print(f"wrote {target}: {len(variables)} attributes that may vary, all switched off; the controls are what varies")
    print(f"edit it, then: warpsim optimize {target} -o {folder / 'out'}")
    return 0


def _convert(robot: Path, scene: Path) -> None:
    stage, notes = export_scene(load_scene(robot))
    mark_layer(stage.GetRootLayer(), {"converted from": robot.name, "version": __version__})
    export_layer(stage.GetRootLayer(), scene)
    print(f"wrote {scene}")
    for note in notes:
        print(f"  {note}")


def _variables(stage: Usd.Stage, scene: Path) -> Iterator[Usd.Attribute]:
    """Attributes that the reader used and that hold real numbers; one that cannot vary at its value says so later."""
    with ledger_told():
        ledger = load_scene(scene).ledger
    for path in dict.fromkeys(f"{entry.path}.{entry.attribute}" for entry in ledger if entry.status == "used"):
        attribute = stage.GetAttributeAtPath(path) if Sdf.Path.IsValidPathString(path) else None
        if not attribute or attribute.GetPrim().IsInstanceProxy():
            continue
        kind = value_type(attribute)
        if kind is not None:
            value = kind.numbers(attribute.Get())
            if np.isfinite(value).all() and (value.any() or not not_set(attribute.GetName())):
                yield attribute


def _write_task(source: Usd.Stage, scene: Path, target: Path, variables: list[Usd.Attribute]) -> None:
    stage = Usd.Stage.CreateInMemory()
    layer = stage.GetRootLayer()
    layer.subLayerPaths = [str(scene.absolute())]
    for name in _STAGE_SETTINGS:
        if source.HasAuthoredMetadata(name):
            stage.SetMetadata(name, source.GetMetadata(name))
    world = stage.GetDefaultPrim() or next(iter(stage.GetPseudoRoot().GetChildren()))
    task = author.task(world, _free_name(world, "Task"), duration=_SECONDS)
    task.SetDocumentation(_HELP)
    _write_goal(task)
    author.task_part(task, "Knots", "Controls", count=_KNOTS, interpolation="linear")
    for variable in variables:
        _write_variable(task, variable)
    mark_layer(layer, {"starter task for": scene.name, "version": __version__})
    written = Sdf.Layer.CreateAnonymous(".usda")  # a stage would look for the scene beside itself, in memory, and warn
    written.TransferContent(layer)
    written.subLayerPaths = [Path(os.path.relpath(scene, target.parent)).as_posix()]
    export_layer(written, target)


def _write_goal(task: Usd.Prim) -> None:
    """The last body of the tree shall rise a little, and be there at the end."""
    stage = task.GetStage()
    bodies = [prim for prim in stage.Traverse() if prim.HasAPI(UsdPhysics.RigidBodyAPI)]
    if not bodies:
        raise InputError("the scene has no body that could move")
    unit = UsdGeom.GetStageMetersPerUnit(stage)
    place = UsdGeom.XformCache().GetLocalToWorldTransform(bodies[-1]).ExtractTranslation()
    place["XYZ".index(UsdGeom.GetStageUpAxis(stage))] += _LIFT / unit
    goal = {"subject": bodies[-1], "position": tuple(place), "tolerance": _TOLERANCE / unit}
    author.task_part(task, "Reach", "Reach", **goal)


def _write_variable(task: Usd.Prim, variable: Usd.Attribute) -> None:
    stem = Tf.MakeValidIdentifier(f"{variable.GetPrim().GetName()}_{variable.GetName()}")
    prim = author.task_part(task, "Variable", _free_name(task, stem), attributes=variable)
    prim.SetDocumentation(f"now {variable.Get()}")
    prim.SetActive(False)


def _free_name(parent: Usd.Prim, stem: str) -> str:
    taken = {child.GetName() for child in parent.GetAllChildren()}
    numbered = (f"{stem}{number}" for number in range(2, len(taken) + 3))
    return next(name for name in (stem, *numbered) if name not in taken)
