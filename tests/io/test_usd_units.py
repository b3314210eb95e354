"""One scene in meters, centimeters and millimeters, kilograms and grams, Y-up and Z-up is one SI scene."""

from __future__ import annotations

import numpy as np
import pytest

from scene_compare import differences
from warpsim.core.errors import SceneError
from warpsim.core.numpy_quaternions import quat_to_matrix
from warpsim.io.usd import author
from warpsim.io.usd.reader import read_usd
from warpsim.io.usd.units import DEGREE, StageUnits, axis_rotation, axis_vector
from warpsim.scene import validate

# Powers of two and ten that float32 holds in m, cm and mm, kg and g alike: 2, 0.5 and 0.25 m are 2000, 500, 250 mm.
UNITS = [(length, mass, up) for length in (1.0, 0.01, 0.001) for mass in (1.0, 0.001) for up in ("Z", "Y")]


DENSITY = 5.0**9 / 1024
"""kg/m³; exact in every unit used but g/m³, for which float32 has too few bits."""


def scene_in(length: float, mass: float, up: str):
    """A jointed, driven, actuated, colliding, moving scene authored in given units, its world turned to the up axis."""
    u, k = 1.0 / length, 1.0 / mass
    stage = author.new_stage(meters_per_unit=length, kilograms_per_unit=mass, up_axis=up)
    turn = (1, 0, 0, 0) if up == "Z" else (np.sqrt(0.5), -np.sqrt(0.5), 0, 0)
    world = author.frame(author.world(stage), "Turned", rotation=turn)
    author.physics_scene(
        stage,
        gravity=8 * u,
        steps_per_second=500,
        attributes={"mjc:option:density": 1.25 * k / u**3, "mjc:option:viscosity": 0.5 * k / u},
    )
    steel = author.material(
        author.world(stage),
        "Steel",
        friction=0.5,
        restitution=0.25,
        density=DENSITY * k / u**3,
        attributes={"newton:torsionalFriction": 0.5 * u, "newton:contactStiffness": 4096, "newton:contactDamping": 64},
    )
    author.box(world, "Floor", (4 * u, 4 * u, 0.5 * u), position=(0, 0, -0.5 * u), material=steel)
    base = author.body(world, "Base", position=(0.5 * u, 0, 2 * u), mass=4 * k, center_of_mass=(0, 0, 0.25 * u))
    author.set_attribute(base, "physics:diagonalInertia", np.array([0.5, 0.25, 0.375]) * k * u * u)
    author.set_attribute(base, "physics:principalAxes", (1, 0, 0, 0))
    author.sphere(base, "Ball", 0.25 * u, material=steel)
    slide = author.prismatic(
        base,
        "Slide",
        None,
        base,
        "X",
        limits=(-2 * u, 2 * u),
        drive={"stiffness": 64 * k, "damping": 8 * k, "target": 0.5 * u},
    )
    arm = author.body(base, "Arm", position=(0, 0, 0.5 * u))
    author.capsule(
        arm, "Rod", 0.125 * u, 0.5 * u, axis="X", material=steel, attributes={"newton:contactMargin": 0.0625 * u}
    )
    hinge = author.revolute(
        arm,
        "Hinge",
        base,
        arm,
        "Y",
        limits=(-90, 45),
        drive={"stiffness": 2 * k * u * u, "damping": 0.5 * k * u * u, "max_force": 16 * k * u * u},
        attributes={"newton:armature": 0.25 * k * u * u, "newton:damping": 0.125 * k * u * u},
    )
    author.actuator(world, "Motor", hinge, gain=(2 * k * u * u,), control_range=(-1, 1))
    author.actuator(world, "Pusher", slide, gain=(2 * k * u,), force_range=(-4 * k * u, 4 * k * u))
    free = author.body(
        world, "Free", position=(2 * u, 0, 2 * u), velocity=(0.5 * u, 0, 0.25 * u), angular_velocity=(0, 90, 0)
    )
    author.cylinder(free, "Disc", 0.5 * u, 0.25 * u, mass=2 * k)
    rotor = author.site(free, "Rotor", position=(0.25 * u, 0, 0))
    author.actuator(world, "Thrust", rotor, gear=(0, 0, 1, 0, 0, 0.5 * u), gain=(4 * k * u,))
    return stage


@pytest.mark.parametrize(("length", "mass", "up"), UNITS[1:])
def test_one_scene_in_all_units(length, mass, up):
    expected = read_usd(scene_in(*UNITS[0]), strict=True)
    found = read_usd(scene_in(length, mass, up), strict=True)
    validate(found)
    tolerance = 1e-6 if (length, mass) == (1.0, 0.001) else 1e-9
    assert differences(expected, found, tolerance=tolerance) == []


def test_si_values():
    """The scene in millimeters, grams and Y-up, against numbers written down by hand."""
    scene = read_usd(scene_in(0.001, 0.001, "Y"), strict=True)
    base, arm, free = (next(b for b in scene.bodies if b.name.endswith(n)) for n in ("Base", "Arm", "Free"))
    np.testing.assert_allclose(scene.options.gravity, [0, 0, -8], atol=1e-12)
    assert scene.options.timestep == 0.002
    assert (scene.medium.density, scene.medium.viscosity) == pytest.approx((1.25, 0.5))
    assert base.mass == pytest.approx(4)
    np.testing.assert_allclose(base.inertia, np.diag([0.5, 0.25, 0.375]), atol=1e-9)
    np.testing.assert_allclose(free.position, [2, 0, 2], atol=1e-12)
    np.testing.assert_allclose(arm.position, [0, 0, 0.5], atol=1e-12)
    joints = {joint.name.rsplit("/", 1)[-1]: joint for joint in scene.joints}
    np.testing.assert_allclose(joints["Free:free"].initial_qd, [0.5, 0, 0.25, 0, np.pi / 2, 0], atol=1e-9)
    assert joints["Hinge"].limit == pytest.approx((-np.pi / 2, np.pi / 4))
    assert joints["Hinge"].damping == pytest.approx(0.125 / DEGREE)
    assert joints["Hinge"].armature == pytest.approx(0.25)
    assert joints["Slide"].limit == pytest.approx((-2, 2))
    drives = {drive.name.rsplit("/", 1)[-1]: drive for drive in scene.drives}
    assert drives["Hinge"].stiffness == pytest.approx(2 / DEGREE)
    assert drives["Hinge"].max_force == pytest.approx(16)
    assert (drives["Slide"].stiffness, drives["Slide"].target) == pytest.approx((64, 0.5))
    shapes = {shape.name.rsplit("/", 1)[-1]: shape for shape in scene.shapes}
    np.testing.assert_allclose(shapes["Rod"].size, [0.125, 0.25, 0], atol=1e-12)
    assert shapes["Rod"].density == pytest.approx(DENSITY)
    assert shapes["Rod"].margin == pytest.approx(0.0625)
    np.testing.assert_allclose(shapes["Ball"].friction, [0.5, 0.5, 1e-4], rtol=1e-9)
    np.testing.assert_allclose(shapes["Ball"].solref, [-4096, -64])
    actuators = {actuator.name.rsplit("/", 1)[-1]: actuator for actuator in scene.actuators}
    assert actuators["Motor"].gain[0] == pytest.approx(2)
    assert actuators["Pusher"].force_range == pytest.approx((-4, 4))
    np.testing.assert_allclose(actuators["Thrust"].gear, [0, 0, 1, 0, 0, 0.5])


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_bad_units_are_refused(value):
    stage = author.new_stage()
    stage.GetRootLayer().pseudoRoot.SetInfo("metersPerUnit", value)
    with pytest.raises(SceneError, match="metersPerUnit"):
        read_usd(stage)


def test_factors_of_units():
    units = StageUnits(0.01, 0.001, "Y")
    assert units.force(angular=False) == pytest.approx(1e-5)
    assert units.force(angular=True) == pytest.approx(1e-7)
    assert units.density == pytest.approx(1000)
    assert units.gain(angular=True, degrees=True) == pytest.approx(1e-7 / DEGREE)
    np.testing.assert_array_equal(units.to_world @ units.up, [0, 0, 1])
    for token in "XYZ":
        np.testing.assert_allclose(quat_to_matrix(axis_rotation(token))[:, 2], axis_vector(token), atol=1e-15)
