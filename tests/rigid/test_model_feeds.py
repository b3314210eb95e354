"""Which physical arrays an authored one reaches: found by moving each, compared with the declared table."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from core_scenes import rich_scene
from derive_support import DerivedLoss
from rigid_support import scene_of
from tendon_models import arm
from warpsim.rigid.compile.compile import compile_model
from warpsim.rigid.compile.derive import Derivation
from warpsim.rigid.model.model import FEEDS, INERTIAL_FEEDS, SPATIAL_FEEDS, Model
from warpsim.scene import ContactOverride, Equality, Muscle, Scene


def scene_with_everything(impacts: bool) -> Scene:
    """The rich scene with all that is derived: drives per unit of inertia, pairs mixed and given, bounces, loops."""
    scene = rich_scene("euler")
    scene.options = replace(scene.options, constraints=True, impacts=impacts)
    scene.drives[0] = replace(scene.drives[0], acceleration=True)
    scene.bodies[2] = replace(scene.bodies[2], com=np.array([0.02, 0.01, -0.03]))  # its inertia is that of its shapes
    scene.joints[1] = replace(scene.joints[1], limit=(-1.0, 1.0))
    scene.tendons[0] = replace(scene.tendons[0], limit=(-1.0, 1.0), armature=0.05)
    scene.shapes = [replace(shape, solmix=1.0 + 0.1 * place) for place, shape in enumerate(scene.shapes)]
    scene.shapes[0].restitution = scene.shapes[7].restitution = 0.5  # of one pair: the others keep their solref
    for place, shape in enumerate(scene.shapes):
        shape.solref = np.array([-900.0 - 50.0 * place, -20.0 - place] if place % 2 else [0.02 + 0.001 * place, 0.9])
        shape.solimp = shape.solimp + 0.001 * place
    scene.shapes[3].margin = 0.02
    scene.contact_overrides = [
        ContactOverride("box", "hull", margin=0.01, solref=np.array([-800.0, -15.0])),
        ContactOverride("box", "ride", solref_friction=np.array([0.03, 1.0])),
    ]
    free = np.array([[-np.inf, np.inf]] * 5 + [[-1.0, 1.0]])
    scene.equalities = [
        Equality("hold", "axes", "tip", "pole", locked=(True,) * 5 + (False,), limits=free),
        Equality("weld", "weld", "arm", "rider"),
    ]
    place = next(i for i, actuator in enumerate(scene.actuators) if actuator.transmission == "joint")
    scene.actuators[place] = replace(scene.actuators[place], muscle=Muscle())
    return scene


def moved(value: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Every number changed a little, by another share each; open bounds stay open."""
    step = rng.uniform(1e-3, 2e-3, value.shape) * (1.0 + np.abs(np.where(np.isfinite(value), value, 0.0)))
    return np.where(np.isfinite(value), value + step, value)


def physical(model: Model, derivation: Derivation) -> dict[str, np.ndarray]:
    derivation.run()
    return {name: array.numpy().copy() for name, array in model.physical.items()}


def reached(scene: Scene) -> dict[str, set[str]]:
    """Authored name → physical arrays whose bits change with it."""
    rng = np.random.default_rng(4)
    model = compile_model(scene)
    derivation = Derivation(model)
    base = physical(model, derivation)
    found = {}
    for name, array in model.authored.items():
        if not array.size:
            continue
        own = array.numpy().copy()
        there = moved(own, rng)
        if name == "shape.restitution":
            there = np.where(own > 0.0, there, own)  # the first bit of it switches the springs: a jump, not a path
        array.assign(there.astype(own.dtype))
        now = physical(model, derivation)
        found[name] = {other for other in now if not np.array_equal(now[other], base[other], equal_nan=True)}
        array.assign(own)
    again = physical(model, derivation)
    assert all(np.array_equal(again[name], base[name], equal_nan=True) for name in base)
    return found


@pytest.fixture(scope="module")
def found() -> dict[str, set[str]]:
    """What was seen to change, whether restitution is a spring's or an impact's."""
    table: dict[str, set[str]] = {}
    for impacts in (False, True):
        for name, changed in reached(scene_with_everything(impacts)).items():
            table.setdefault(name, set()).update(changed)
    return table


def test_the_scene_has_every_parameter(found):
    assert set(FEEDS) <= set(found)
    assert set(compile_model(scene_with_everything(False)).authored) == set(found)


def test_no_path_is_missing_from_the_table(found):
    """A path that is not declared is a gradient that is silently zero."""
    known = {name: {*FEEDS.get(name, (name,)), *INERTIAL_FEEDS.get(name, ())} for name in found}
    missing = {name: changed - known[name] for name, changed in found.items()}
    assert [f"{name} → {other}" for name, names in missing.items() for other in names] == []


def test_every_declared_path_exists(found):
    """A path that does not exist costs an adjoint for nothing, or hides a derivation that was forgotten."""
    idle = {name: set(FEEDS.get(name, (name,))) - changed for name, changed in found.items()}
    assert [f"{name} → {other}" for name, names in idle.items() for other in names] == []


def test_weights_differentiate_by_the_reference_of_balls():
    """Their coordinates at the reference configuration are authored; hinges and slides stand at theirs in any case."""
    loss = DerivedLoss(
        scene_with_everything(False), ["joint.reference"], ["weight.body", "weight.dof", "weight.tendon"]
    )
    gradient = loss.gradients(["joint.reference"])["joint.reference"]
    assert loss.error("joint.reference", gradient, 1e-3) < 1e-7


def test_paths_of_spatial_tendons():
    """Besides the others, and all of them."""
    found = reached(scene_of(arm()))
    for name, changed in found.items():
        known = {*FEEDS.get(name, (name,)), *SPATIAL_FEEDS.get(name, ())}
        assert changed <= known, name
    lengths = {name for name, changed in found.items() if "weight.tendon_length" in changed}
    assert lengths == {name for name, others in SPATIAL_FEEDS.items() if "weight.tendon_length" in others}


def test_joints_and_tendons_without_limits_are_open_to_both_sides():
    scene = rich_scene("euler")
    scene = replace(scene, options=replace(scene.options, constraints=False))
    model = compile_model(scene)
    for name in ("limit.range", "tendon_limit.range"):
        ranges = model.described[name]
        assert len(ranges)
        assert (ranges == (-np.inf, np.inf)).all(), name
