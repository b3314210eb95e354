"""A range that cuts gives a zero gradient, and the step says so."""

from __future__ import annotations

import numpy as np
import pytest

from rigid_support import INTEGRATORS, Rollout, evaluation
from warpsim.scene import Actuator, Body, Drive, Joint, Options, Scene

GEAR = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0])


def scene(integrator: str) -> Scene:
    """Five sliders: a free motor, a cut control, a cut force, a drive within its limit, a drive at its limit."""
    names = "abcde"
    return Scene(
        bodies=[Body(n, mass=1.0, com=np.zeros(3), inertia=0.1 * np.eye(3)) for n in names],
        joints=[Joint(n, "slide", n) for n in names],
        actuators=[
            Actuator("free", "joint", "a", gear=GEAR, control_range=(-2.0, 2.0), force_range=(-9.0, 9.0)),
            Actuator("control", "joint", "b", gear=GEAR, control_range=(-1.0, 1.0)),
            Actuator("force", "joint", "c", gear=GEAR, gain=np.array([10.0, 0.0, 0.0]), force_range=(-3.0, 3.0)),
        ],
        drives=[
            Drive("within", "d", stiffness=5.0, damping=0.5, max_force=100.0),
            Drive("at limit", "e", stiffness=5.0, damping=0.5, max_force=0.1),
        ],
        options=Options(gravity=np.zeros(3), timestep=0.01, integrator=integrator, constraints=False),
    )


CONTROL = np.array([1.5, 1.5, -1.5])
TARGET = np.array([1.0, 1.0])


def test_saturation_is_reported_with_its_side():
    e = evaluation(scene("euler"), {"actuator": CONTROL, "drive_target": TARGET})
    work = e.forward()
    np.testing.assert_array_equal(work.saturated.numpy()[0], [0, 1, -1, 0, 1])
    np.testing.assert_allclose(work.actuator_force.numpy()[0], [1.5, 1.0, -3.0])
    e = evaluation(scene("euler"), {"actuator": -CONTROL, "drive_target": -TARGET})
    np.testing.assert_array_equal(e.forward().saturated.numpy()[0], [0, -1, 1, 0, -1])


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_cut_gives_a_zero_gradient(integrator):
    rollout = Rollout(scene(integrator), 3, ("actuator", "drive_target", "drive_velocity"), ("drive.max_force",))
    model = rollout.model
    inputs = {"q": np.zeros((1, model.nq)), "qd": np.zeros((1, model.nv))}
    inputs |= {"actuator": np.tile(CONTROL, (3, 1, 1)), "drive_target": np.tile(TARGET, (3, 1, 1))}
    inputs |= {"drive_velocity": np.zeros((3, 1, 2))} | rollout.parameter_values()
    gradients = rollout.gradient(inputs)
    assert gradients["actuator"][:, 0, 0].all() and not gradients["actuator"][:, 0, 1:].any()
    for name in ("drive_target", "drive_velocity"):
        assert gradients[name][:, 0, 0].all() and not gradients[name][:, 0, 1].any(), name
    # The limit itself is what counts there.
    assert gradients["drive.max_force"][0, 0] == 0.0 and gradients["drive.max_force"][0, 1] != 0.0
