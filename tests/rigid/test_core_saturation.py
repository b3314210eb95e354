"""A range that cuts gives a zero gradient, and the step says so."""

from __future__ import annotations

import numpy as np
import pytest

from rigid_support import INTEGRATORS, Rollout, evaluation
from warpsim.rigid.compile.compile import compile_model
from warpsim.rigid.compile.derive import Derivation
from warpsim.rigid.step.program import RigidProgram
from warpsim.scene import Actuator, Body, Drive, Joint, Options, Scene, Tendon
from warpsim.tape import CheckpointedTape

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


def joined_scene(integrator: str) -> Scene:
    """Sliders whose actuators meet a joint's range of summed force, or a range of their own activation.

    Motors "one" and "two" push slider a, which takes 2 N; a tendon motor pulls a and b, of which b takes all; "lag",
    "exact" and "early" have activations in a range of ±0.02, the last one pushes by the activation at the step's end.
    """
    names = "abcde"
    lag = dict(time_constant=0.1, activation_range=(-0.02, 0.02))
    return Scene(
        bodies=[Body(n, mass=1.0, com=np.zeros(3), inertia=0.1 * np.eye(3)) for n in names],
        joints=[Joint(n, "slide", n, actuator_force_limit=(-2.0, 2.0) if n == "a" else None) for n in names],
        tendons=[Tendon("rope", ["a", "b"], np.array([1.0, 0.5]))],
        actuators=[
            Actuator("one", "joint", "a", gear=GEAR),
            Actuator("two", "joint", "a", gear=GEAR),
            Actuator("rope", "tendon", "rope", gear=GEAR),
            Actuator("lag", "joint", "c", gear=GEAR, dynamics="filter", **lag),
            Actuator("exact", "joint", "d", gear=GEAR, dynamics="filterexact", **lag),
            Actuator(
                "early", "joint", "e", dynamics="integrator", activation_early=True, activation_range=(-0.02, 0.02)
            ),
        ],
        options=Options(gravity=np.zeros(3), timestep=0.01, integrator=integrator, constraints=False),
    )


WITHIN = [0.3, 0.2, 0.4, 0.1, 0.1, 1.0]
ONE_STEP_CASES = {
    # controls, then what is reported of the six actuators and of slider a
    "nothing": (WITHIN, [0, 0, 0, 0, 0, 0], 0),
    "joint": ([1.5, 1.5, *WITHIN[2:]], [1, 1, 0, 0, 0, 0], 1),
    "joint from below": ([-1.5, -1.5, -1.0, *WITHIN[3:]], [-1, -1, 0, 0, 0, 0], -1),
    "activations": ([*WITHIN[:3], 1.5, -1.5, 3.0], [0, 0, 0, 1, -1, 1], 0),
}


@pytest.mark.parametrize("case", ONE_STEP_CASES)
@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_shared_ranges_are_reported_where_differences_vanish(integrator, case):
    """One step: an actuator is reported exactly where central differences of the step's result in its control are 0.

    Between the stages of RK4 activations move on freely, and with them forces: there the activation itself is compared.
    """
    controls, actuators, slider = ONE_STEP_CASES[case]
    model = compile_model(joined_scene(integrator))
    Derivation(model).run()
    tape = CheckpointedTape(RigidProgram(model, controls=("actuator",), outputs=("saturated",)), steps=1)

    def step(control: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        start = {"q": np.zeros((1, model.nq)), "qd": np.zeros((1, model.nv)), "activation": np.zeros((1, model.na))}
        given = {"actuator": control[None, None]}
        run = tape.forward(start, given, keep_states=True, keep_outputs=True, differentiate=False)
        after = np.concatenate([array.numpy()[-1, 0].copy() for array in run.states.values()])
        reported = run.outputs.saturated.numpy()[0, 0].copy()
        run.release()
        return after, reported

    _, reported = step(np.array(controls))
    dofs = [slider] + [0] * (model.nv - 1)
    np.testing.assert_array_equal(reported, [*actuators, *dofs])
    for i in range(model.nu):
        up, down = (step(np.array(controls) + sign * 1e-4 * np.eye(model.nu)[i])[0] for sign in (1, -1))
        moved = up != down
        if integrator == "rk4" and i >= model.nu - model.na:
            moved = moved[-model.na :]
        assert (reported[i] == 0) == bool(moved.any()), model.layout.actuator_names[i]


@pytest.mark.parametrize("integrator", ["euler", "implicitfast"])
def test_shared_ranges_give_a_zero_gradient(integrator):
    """Reverse mode agrees: nothing by the motors of a joint at its range, nothing by an activation at its range."""
    rollout = Rollout(joined_scene(integrator), 1, ("actuator",))
    model = rollout.model
    inputs = {"q": np.zeros((1, model.nq)), "qd": np.zeros((1, model.nv)), "activation": np.zeros((1, model.na))}
    for controls, actuators, _ in ONE_STEP_CASES.values():
        gradient = rollout.gradient({**inputs, "actuator": np.array(controls)[None, None]})["actuator"][0, 0]
        np.testing.assert_array_equal(gradient == 0.0, np.array(actuators) != 0)
