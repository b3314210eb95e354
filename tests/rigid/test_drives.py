"""Joint drives: acceleration drives scale with inertia, stiff drives stay stable, controls that drive nothing raise."""

import numpy as np
import pytest

from finite_differences import central_difference, relative_error
from rigid_support import Rollout, initial_state
from warpsim.core.errors import InputError
from warpsim.rigid.compile.compile import compile_model
from warpsim.rigid.step.program import RigidProgram
from warpsim.scene import Body, Drive, Joint, Scene


def _pendulum(mass: float, **drive) -> Scene:
    scene = Scene()
    scene.options.gravity = np.zeros(3)
    scene.options.timestep = 0.01
    scene.bodies.append(Body("rod", mass=mass, com=np.array([0.5, 0.0, 0.0]), inertia=0.02 * mass * np.eye(3)))
    scene.joints.append(Joint("hinge", "hinge", "rod"))
    scene.drives.append(Drive("drive", "hinge", **drive))
    return scene


def _angle(scene: Scene, steps: int) -> np.ndarray:
    rollout = Rollout(scene, steps, ("drive_target",))
    state = initial_state(rollout.model, np.zeros(1), np.zeros(1), np.zeros(0))
    run = rollout._run({**state, "drive_target": np.ones((steps, 1, 1))})
    return run.states["q"].numpy()[:, 0, 0]


def test_acceleration_drives_do_not_feel_the_mass():
    light, heavy = (_angle(_pendulum(m, stiffness=20.0, damping=2.0, acceleration=True), 50) for m in (1.0, 7.0))
    np.testing.assert_allclose(light, heavy, rtol=1e-12)
    force = _angle(_pendulum(1.0, stiffness=20.0 * 0.27, damping=2.0 * 0.27), 50)  # the rod's inertia about the hinge
    np.testing.assert_allclose(light, force, rtol=1e-12)


@pytest.mark.parametrize("stiffness", [1e3, 1e6, 1e9])
def test_stiff_drives_reach_their_target_without_ringing(stiffness):
    angle = _angle(_pendulum(1.0, stiffness=stiffness, damping=2.0 * np.sqrt(stiffness * 0.27)), 400)
    assert np.abs(angle[-1] - 1.0) < 1e-3
    assert angle.max() < 1.05


@pytest.mark.parametrize("name", ["drive.stiffness", "drive.damping", "body.mass", "body.inertia"])
def test_gradients_of_acceleration_drives(name):
    scene = _pendulum(1.3, stiffness=20.0, damping=2.0, acceleration=True)
    scene.options.gravity = np.array([0.0, -9.81, 0.0])
    rollout = Rollout(scene, 10, ("drive_target",), (name,))
    inputs = initial_state(rollout.model, np.array([0.3]), np.array([0.1]), np.zeros(0))
    inputs.update(rollout.random_controls())
    inputs.update(rollout.parameter_values())
    expected = central_difference(lambda value: rollout.loss({**inputs, name: value}), inputs[name])
    assert relative_error(rollout.gradient(inputs)[name], expected) < 1e-6


def test_a_control_that_drives_nothing_raises():
    with pytest.raises(InputError, match="actuator.*leave it out"):
        RigidProgram(compile_model(_pendulum(1.0)), controls=("actuator",))
