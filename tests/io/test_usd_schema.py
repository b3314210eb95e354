"""The codeless schemas: made from their source, known to USD, complete, and no concern of the physics ledger."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from pxr import Usd, UsdValidation

from warpsim.core.errors import InputError, UnknownNameError
from warpsim.io.usd import author
from warpsim.io.usd.reader import read_usd
from warpsim.io.usd.schema import FOLDER
from warpsim.io.usd.schema.definitions import definitions

PROJECT = Path(__file__).resolve().parents[2]


def test_made_files_are_those_of_the_source():
    spec = importlib.util.spec_from_file_location("make_schema", PROJECT / "tools" / "make_schema.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    for name, text in tool.make().items():
        assert (FOLDER / name).read_text(encoding="utf-8") == text, f"run tools/make_schema.py: {name} is old"


def test_usd_knows_every_type_with_its_fallbacks_and_documentation():
    registry = Usd.SchemaRegistry()
    for kind, properties in definitions().items():
        definition = registry.FindConcretePrimDefinition(kind)
        assert definition and definition.GetDocumentation()
        assert set(definition.GetPropertyNames()) == set(properties)
        for name, item in properties.items():
            assert definition.GetPropertyDocumentation(name), f"{kind}.{name} has no doc"
            if item.kind is not None:
                assert definition.GetAttributeFallbackValue(name) == item.fallback
    stage = Usd.Stage.CreateInMemory()
    prim = stage.DefinePrim("/Hit", "WarpsimReach")
    assert prim.IsA("WarpsimTerm") and prim.GetAttribute("weight").Get() == 1.0


def scene_with_task() -> Usd.Stage:
    stage = author.new_stage()
    world = author.world(stage)
    ball = author.body(world, "Ball", position=(0, 0, 1), velocity=(1, 0, 0))
    author.sphere(ball, "Shape", 0.1)
    task = author.task(world, duration=0.5, method="lbfgs")
    author.task_part(
        task, "Variable", "Speed", attributes=f"{ball.GetPath()}.physics:velocity", lower=[-3], positive=False
    )
    author.task_part(task, "Reach", "Hit", subject=ball, position=(1, 0, 0.5), axes=["x", "z"], tolerance=0.01)
    return stage


def test_a_task_validates_and_the_ledger_leaves_it_alone():
    stage = scene_with_task()
    registry = UsdValidation.ValidationRegistry()
    errors = UsdValidation.ValidationContext(registry.GetOrLoadAllValidators()).Validate(stage)
    assert [e.GetErrorAsString() for e in errors] == []
    scene = read_usd(stage, strict=True)
    assert not [entry for entry in scene.ledger if entry.path.startswith("/World/Task")]
    target = stage.GetPrimAtPath("/World/Task/Speed").GetRelationship("attributes").GetTargets()
    assert [str(path) for path in target] == ["/World/Ball.physics:velocity"]


def test_authoring_refuses_what_the_schema_lacks():
    stage = author.new_stage()
    world = author.world(stage)
    with pytest.raises(UnknownNameError, match="did you mean 'Reach'"):
        author.task_part(world, "Reech", "A")
    with pytest.raises(UnknownNameError, match="did you mean 'tolerance'"):
        author.task_part(world, "Reach", "B", tolerence=0.1)
    with pytest.raises(InputError, match="use one of end, time, running"):
        author.task_part(world, "Reach", "C", when="later")
