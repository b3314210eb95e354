"""Gradients on USD attributes against differences through the USD file: edit, save, load, simulate."""

from __future__ import annotations

import numpy as np
import pytest

import warpsim as ws
from attribute_stages import CENTIMETERS, SI, contacts, derivative_through_files, loss_of, mechanism, meshes

STEPS = 24

MECHANISM = [
    "/World/Physics.physics:gravityMagnitude",
    "/World/Physics.physics:gravityDirection",
    "/World/Physics.mjc:option:density",
    "/World/Physics.mjc:option:viscosity",
    "/World/Physics.mjc:option:wind",
    *(f"/World/Turned/Authored.physics:{name}" for name in (
        "velocity", "angularVelocity", "mass", "centerOfMass", "diagonalInertia", "principalAxes",
    )),
    "/World/Turned/Authored.xformOp:translate",
    "/World/Turned/Authored.xformOp:orient",
    "/World/Turned.xformOp:orient",
    "/World/Turned/Dense.physics:density",
    "/World/Turned/Dense/ByBody.size",
    "/World/Turned/Dense/ByBody.xformOp:scale",
    "/World/Turned/Dense/ByBody.xformOp:translate",
    "/World/Turned/Dense/ByItself.physics:density",
    "/World/Turned/Dense/ByItself.radius",
    "/World/Turned/Dense/ByItself.height",
    "/World/Turned/Dense/Weighed.physics:mass",
    "/World/Turned/Dense/Weighed.xformOp:orient",
    "/World/Steel.physics:density",
    "/World/Turned/Made/OfSteel.size",
    "/World/Turned/Made/OfSteel.xformOp:scale",
    "/World/Turned/Made/Cone.radius",
    "/World/Turned/Made/Cone.height",
    *(f"/World/Turned/Base/Arm/Hinge.{name}" for name in (
        "physics:localPos0", "physics:localPos1", "physics:localRot0", "physics:localRot1",
        "physics:lowerLimit", "drive:angular:physics:stiffness", "drive:angular:physics:damping",
        "drive:angular:physics:targetPosition", "drive:angular:physics:targetVelocity",
        "newton:armature", "newton:damping", "newton:friction", "mjc:stiffness", "mjc:springref",
        "state:angular:physics:position", "state:angular:physics:velocity",
    )),
    *(f"/World/Turned/Base/Slide.{name}" for name in (
        "physics:localPos0", "physics:upperLimit", "drive:linear:physics:maxForce",
        "state:linear:physics:position", "state:linear:physics:velocity",
    )),
    *(f"/World/Turned/Motor.mjc:{name}" for name in ("gainPrm", "biasPrm", "gear")),
    "/World/Turned/Pusher.mjc:forceRange:max",
    "/World/Turned/Base/Arm/Rod.radius",
]  # fmt: skip
CONTACTS = [
    *(f"/World/Rubber.{name}" for name in (
        "physics:dynamicFriction", "newton:contactStiffness", "newton:contactDamping", "newton:torsionalFriction",
    )),
    "/World/Bouncy.physics:restitution",
    "/World/Bouncy.physics:dynamicFriction",
    "/World/Turned/Floor.xformOp:translate",
    "/World/Turned/Ramp.xformOp:orient",
    "/World/Turned/Ball.physics:velocity",
    "/World/Turned/Ball/Shape.radius",
    "/World/Turned/Ball/Shape.newton:contactMargin",
    "/World/Turned/Rod/Shape.height",
    "/World/Turned/Rod/Shape.radius",
    "/World/Physics.physics:gravityMagnitude",
]  # fmt: skip
CASES = [(mechanism, path) for path in MECHANISM] + [(contacts, path) for path in CONTACTS]


QUICK = {
    "/World/Turned/Dense.physics:density",
    "/World/Turned/Base/Arm/Hinge.physics:localRot1",
    "/World/Turned/Base/Arm/Hinge.drive:angular:physics:stiffness",
    "/World/Turned/Base/Arm/Hinge.drive:angular:physics:targetPosition",
    "/World/Turned/Rod/Shape.radius",
}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """(build, units) → stage and simulator of it, each made once."""
    made = {}

    def build(make, units):
        if (make, units) not in made:
            folder = tmp_path_factory.mktemp(make.__name__)
            stage = make(*units)
            stage.GetRootLayer().Export(str(folder / "scene.usda"))
            made[make, units] = stage, ws.Simulator(folder / "scene.usda"), folder
        return made[make, units]

    return build


def _direction(value: np.ndarray, single: bool) -> np.ndarray:
    """Different powers of two for the components, small beside the value; larger where it has single precision."""
    size = np.abs(value).max() or 1.0
    unit = 2.0 ** np.floor(np.log2(size))
    weights = np.array([1.0, -0.5, 2.0, 1.0, -1.0, 0.5, 1.0, 1.0])[: value.size].reshape(value.shape)
    return (2.0**-14 if single else 2.0**-20) * unit * weights


def check(built, make, path: str, units: tuple[float, float, str], steps: int = STEPS) -> None:
    stage, sim, folder = built(make, units)
    handle = sim.attribute(path)
    value = handle.value.requires_grad_()
    loss_of(sim, steps, {handle: value}).backward()
    direction = _direction(handle.numbers, handle.kind.scalar == np.float32)
    found = float((value.grad.numpy() * direction).sum())
    expected = derivative_through_files(stage, path, direction, folder, steps)
    assert abs(expected) > 1e-9, "rounding of the loss hides what the case tests"
    assert found == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("make, path", [case for case in CASES if case[1] in QUICK])
def test_gradient_equals_differences_through_the_file(built, make, path):
    check(built, make, path, CENTIMETERS)


@pytest.mark.long
@pytest.mark.parametrize("units", [CENTIMETERS, SI], ids=["cm, g, Y up", "m, kg, Z up"])
@pytest.mark.parametrize("make, path", CASES)
def test_gradient_of_every_kind_equals_differences_through_the_file(built, make, path, units):
    check(built, make, path, units)


@pytest.mark.parametrize(
    ("approximation", "free", "units"),
    [
        ("convexHull", True, CENTIMETERS),
        *(pytest.param(*case, marks=pytest.mark.long) for case in [
            ("convexHull", False, SI), ("sdf", True, SI), ("sdf", False, CENTIMETERS),
            ("convexDecomposition", True, CENTIMETERS), ("convexDecomposition", False, SI),
        ]),
    ],
)  # fmt: skip
def test_the_uniform_scale_of_a_mesh(approximation, free, units, tmp_path):
    """Three equal components vary as one number: size, and by the density mass, center and inertia."""
    stage = meshes(*units, approximation, free)
    stage.GetRootLayer().Export(str(tmp_path / "scene.usda"))
    sim = ws.Simulator(tmp_path / "scene.usda")
    handle = sim.attribute("/World/Turned/Rock/Shape.xformOp:scale" if free else "/World/Turned/Shape.xformOp:scale")
    assert handle.shape == ()
    value = handle.value.requires_grad_()
    loss_of(sim, STEPS, {handle: value}).backward()
    step = 2.0**-14
    expected = derivative_through_files(stage, handle.path, np.full(3, step), tmp_path, STEPS)
    assert value.grad.item() * step == pytest.approx(expected, rel=1e-5)
