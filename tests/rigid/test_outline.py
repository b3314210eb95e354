"""What is told of a scene before it is compiled, against the compiled scene."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.core_scenes import rich_scene
from tests.support.export_scenes import everything
from tests.support.shape_mass import solid
from warpsim.coupling.compiled import compile_scene
from warpsim.coupling.outline import outline_scene
from warpsim.io.load import load_scene
from warpsim.rigid.compile.derive import Derivation
from warpsim.rigid.model.outline import outline_bodies
from warpsim.scene import Body, Joint, Scene, Shape

SCENES = Path(__file__).resolve().parents[2] / "scenes"
NAMES = ("humanoid", "bowl", "stack", "quadrotor")


def _cases() -> dict[str, Scene]:
    cases = {"rich": rich_scene("euler"), "everything": everything()}
    cases |= {name: load_scene(SCENES / f"{name}.usda") for name in NAMES}
    stack = cases["stack"]
    cases["limited"] = replace(stack, options=replace(stack.options, max_contacts=7))
    cases["no contacts"] = replace(stack, options=replace(stack.options, contacts=False))
    return cases


@pytest.mark.parametrize(("name", "scene"), _cases().items())
def test_an_outline_says_what_compiling_gives(name, scene):
    outline, compiled = outline_scene(scene), compile_scene(scene)
    model = compiled.model
    Derivation(model).run()
    assert outline.model.layout.body_names == model.layout.body_names
    assert np.allclose(outline.model.body_mass, model.body.mass.numpy()[0], rtol=1e-12, atol=0.0)
    assert (outline.model.npair, outline.model.max_contacts) == (model.npair, model.max_contacts)
    for told, true in ((outline.outputs, compiled.outputs), (outline.controls, compiled.controls)):
        assert {n: (f.shape, f.dtype) for n, f in told.items()} == {n: (f.shape, f.dtype) for n, f in true.items()}


@pytest.mark.parametrize("kind", ["sphere", "capsule", "box", "cylinder", "cone", "ellipsoid"])
def test_masses_are_those_of_closed_forms(kind):
    size = np.array([0.2, 0.3, 0.5])
    body = Body("a", position=np.zeros(3))
    shape = Shape("s", kind=kind, body="a", size=size, density=700.0)
    scene = Scene(bodies=[body], joints=[Joint("j", kind="free", body="a")], shapes=[shape])
    assert np.isclose(outline_bodies(scene).body_mass[1], 700.0 * solid(kind, size)[0], rtol=1e-12)
    authored = replace(scene, bodies=[replace(body, mass=2.5, inertia=np.eye(3))])
    assert outline_bodies(authored).body_mass[1] == 2.5
