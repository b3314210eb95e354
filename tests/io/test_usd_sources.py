"""`Scene.sources`: every number of a scene that was read knows the USD attribute and the unit factor it came from."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from pxr import Usd

import attribute_stages
from export_scenes import everything
from loop_support import crank_stage
from warpsim.io.usd.export.scene import export_scene
from warpsim.io.usd.reader import read_usd
from warpsim.scene import Scene
from warpsim.scene.checks import named_kinds

DERIVED = {
    ("equality", "locked"): "which axes a joint holds follows from its type and from limits that cross: no number",
    ("drive", "axis"): "which coordinate of a loop is driven: no number",
    ("shape", "density"): "of a collider with a mass of its own, whose density matters to nothing",
    ("shape", "size"): "of meshes: ones, for their scale is in the vertices",
}
"""Numbers that come from no attribute by themselves."""

STAGES = {
    "everything": lambda: export_scene(everything())[0],
    "mechanism in cm and g": lambda: attribute_stages.mechanism(*attribute_stages.CENTIMETERS),
    "contacts in cm and g": lambda: attribute_stages.contacts(*attribute_stages.CENTIMETERS),
    "crank": lambda: crank_stage("Wrist", {"Wrist": (-30, 30)}, {"Wrist": {"stiffness": 1.0}}),
}


def numbers(scene: Scene):
    """(kind, name, field, value) of each number or array of numbers that is not its dataclass's default."""
    for kind, items in {**named_kinds(scene), "medium": [scene.medium], "options": [scene.options]}.items():
        for item in items:
            for field in dataclasses.fields(item):
                value = getattr(item, field.name)
                if value is None or isinstance(value, str | bool | list):
                    continue
                made = field.default_factory is not dataclasses.MISSING
                default = field.default_factory() if made else field.default
                plain = default is not dataclasses.MISSING and default is not None
                if not (plain and np.array_equal(np.asarray(default, float), np.asarray(value, float))):
                    yield kind, getattr(item, "name", kind), field.name, np.asarray(value, float)


@pytest.fixture(params=STAGES.values(), ids=STAGES)
def stage(request) -> Usd.Stage:
    return request.param()


def test_every_number_has_a_source(stage):
    scene = read_usd(stage)
    known = {(kind, name, field.partition(":")[0]) for kind, name, field in scene.sources}
    found = list(numbers(scene))
    assert len(found) > 20
    missing = [(kind, name, field) for kind, name, field, _ in found if (kind, name, field) not in known]
    assert [item for item in missing if (item[0], item[2]) not in DERIVED] == []


def test_sources_point_at_attributes_of_the_stage(stage):
    for key, source in read_usd(stage).sources.items():
        prim = stage.GetPrimAtPath(source.path)
        assert prim.HasAttribute(source.attribute) or not source.others, key
        assert source.factor != 0 and np.isfinite(source.factor)
        for other in source.others:
            assert stage.GetAttributeAtPath(other).HasAuthoredValue(), key


def test_linear_sources_give_values_back(stage):
    """Of all kinds but bodies and gravity, whose frames `test_usd_units` checks."""
    scene, checked = read_usd(stage), 0
    values = {(kind, name, field): value for kind, name, field, value in numbers(scene)}
    for (kind, name, field), source in scene.sources.items():
        attribute = stage.GetAttributeAtPath(f"{source.path}.{source.attribute}")
        field, *places = field.split(":")
        value = values.get((kind, name, field))
        if not (source.linear and attribute and attribute.HasAuthoredValue()):
            continue
        if value is None or kind == "body" or field == "gravity":
            continue
        if places in (["linear"], ["angular"]):
            value = value[slice(3) if places == ["linear"] else slice(3, 6)]
        else:
            value = value[tuple(map(int, places))]
        authored = np.array(attribute.Get(), dtype=float)
        frame = None if source.frame is None else np.asarray(source.frame)
        if frame is not None and frame.ndim == 2:
            authored = frame @ np.pad(authored, (0, max(0, len(frame) - authored.size)))[: len(frame)]
        elif frame is not None:
            authored = frame * authored
        expected = np.resize(source.factor * authored, value.shape) if authored.size >= value.size else None
        np.testing.assert_allclose(value, expected, rtol=1e-6, atol=1e-9, err_msg=f"{kind} {name} {field}")
        checked += 1
    assert checked > 5
