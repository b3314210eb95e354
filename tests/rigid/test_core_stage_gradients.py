"""Each stage alone: its tape against central differences, with respect to everything it could read."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import warp as wp

from core_scenes import rich_scene, rich_state
from isolated_stage import IsolatedStage, check_direction, direction_for
from rigid_support import INTEGRATORS, Evaluation, components, evaluation, to_arrays
from shape_mass import body_mass
from warpsim.core.precision import vec6
from warpsim.core.stages import observe
from warpsim.rigid import query
from warpsim.rigid.compile.compile import compile_model, sym6
from warpsim.rigid.compile.derive import Derivation
from warpsim.rigid.dynamics.actuation import actuation
from warpsim.rigid.dynamics.chart_rates import chart_rate
from warpsim.rigid.dynamics.implicit import implicit_residual, implicit_slopes
from warpsim.rigid.dynamics.integrate import semi_implicit
from warpsim.rigid.dynamics.inverse_dynamics import residual_at_solution
from warpsim.rigid.dynamics.kinematics import kinematics
from warpsim.rigid.dynamics.passive import passive
from warpsim.rigid.model.fields import control_fields
from warpsim.rigid.step import step
from warpsim.rigid.work.state import state_fields

STATES = ("random", "rest", "identity")


def rich_evaluation(integrator: str, kind: str = "random") -> Evaluation:
    """The rich scene with random controls, evaluated once, so that all intermediates hold sensible numbers."""
    scene = rich_scene(integrator)
    rng = np.random.default_rng(5)
    values = rich_state(kind)
    for f in control_fields(compile_model(scene)).values():
        values[f.name] = rng.normal(size=components(f)[1:])
    e = evaluation(scene, values, gradients=True)
    for group in (e.state, e.control):
        for array in group.values():
            array.requires_grad = True
    e.arena.zero_accumulators()
    with wp.Tape() as tape:
        step.forward(e.model, e.state, e.control, e.work, e.scratch, tape)
    return e


@pytest.mark.parametrize("kind", STATES)
def test_kinematics(kind):
    """By quantities that do not depend on the trees' reference points, which carry no gradient on purpose."""
    e = rich_evaluation("euler", kind)
    m = e.model
    twists = wp.zeros((m.worlds, m.nv), dtype=vec6, requires_grad=True)
    scalars = {
        n: wp.zeros(m.worlds, dtype=m.world.timestep.dtype, requires_grad=True) for n in ("kinetic", "potential")
    }
    vectors = {n: wp.zeros(m.worlds, dtype=m.world.gravity.dtype, requires_grad=True) for n in ("linear", "angular")}
    outputs = {"out.twists": twists} | {f"out.{n}": a for n, a in (scalars | vectors).items()}

    def run(tape: wp.Tape | None) -> None:
        kinematics(m, e.state, e.work)
        found = query.momentum(m, e.state, about="origin", motion=e.work)
        wp.copy(twists, query.dof_twists(m, e.state, (0.1, 0.2, 0.3), motion=e.work))
        wp.copy(vectors["linear"], found.linear)
        wp.copy(vectors["angular"], found.angular)
        wp.copy(scalars["kinetic"], query.kinetic_energy(m, e.state, motion=e.work))
        wp.copy(scalars["potential"], query.potential_energy(m, e.state, motion=e.work))

    written = ("work.link_position", "work.link_rotation", "work.inertia", *outputs)
    # The others are about the reference points; what stands in them before is overwritten.
    reached = set(IsolatedStage(e, run, written, extra=outputs).check())
    assert {"state.q", "body.position", "body.rotation", "body.com", "body.inertia", "joint.anchor"} <= reached
    assert {"joint.axis", "joint.reference"} <= reached


@pytest.mark.parametrize("kind", STATES)
@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_passive(integrator, kind):
    """Springs of all joint kinds, dampers, tendons, drag, gravity compensation, applied forces."""
    e = rich_evaluation(integrator, kind)
    outputs = ("work.wrench", "work.dof_force", "work.dof_integrator")
    reached = set(IsolatedStage(e, lambda tape: passive(e.model, e.state, e.control, e.work), outputs).check())
    assert {"state.q", "control.joint_force", "control.wrench", "work.com", "work.velocity"} <= reached
    assert {"joint.stiffness", "joint.rest", "tendon.stiffness", "tendon.coefficient", "tendon.spring_range"} <= reached
    assert {"world.gravity", "body.gravity_compensation", "body.mass"} <= reached
    assert {"world.wind", "world.medium_density", "world.medium_viscosity", "fluid.box", "fluid.rotation"} <= reached
    if kind == "random":
        assert {"state.qd", "joint.damping", "tendon.damping"} <= reached


@pytest.mark.parametrize("kind", STATES)
@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_actuation(integrator, kind):
    """All transmissions, dynamics, ranges and drives."""
    e = rich_evaluation(integrator, kind)

    def run(tape: wp.Tape | None) -> None:
        e.arena.zero_accumulators()
        actuation(e.model, e.state, e.control, e.work)

    outputs = ("work.dof_force", "work.dof_implicit", "work.actuator_force", "work.actuator_slope")
    outputs += ("work.activation_rate",)
    zeroed = ("work.dof_actuation", "work.dof_implicit")
    reached = set(IsolatedStage(e, run, outputs).check(without=zeroed))
    assert {
        "control.actuator",
        "control.drive_target",
        "control.drive_velocity",
        "state.q",
        "state.activation",
    } <= reached
    assert {"actuator.gear", "actuator.gain", "actuator.bias", "actuator.time_constant"} <= reached
    assert {"actuator.control_range", "actuator.force_range", "joint.force_range", "drive.max_force"} <= reached
    assert {"drive.stiffness", "tendon.coefficient", "site.position", "site.rotation", "work.axis"} <= reached


def test_implicit_slopes():
    e = rich_evaluation("implicitfast")
    outputs = ("work.tendon_slope", "work.dof_integrator")
    reached = set(IsolatedStage(e, lambda tape: implicit_slopes(e.model, e.work), outputs).check())
    assert {"work.actuator_slope", "actuator.gear", "tendon.damping", "world.timestep"} <= reached


def test_implicit_residual():
    e = rich_evaluation("implicitfast")
    run = IsolatedStage(
        e, lambda tape: implicit_residual(e.model, e.state, e.work), ("work.residual",), fixed=("work.qdd",)
    )
    reached = set(run.check())
    assert {"work.tendon_slope", "work.actuator_slope", "work.axis", "work.com", "work.velocity"} <= reached
    assert {"world.timestep", "site.position", "fluid.box", "world.wind"} <= reached


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_residual(integrator):
    e = rich_evaluation(integrator)
    run = IsolatedStage(
        e, lambda tape: residual_at_solution(e.model, e.state, e.work), ("work.residual",), fixed=("work.qdd",)
    )
    reached = set(run.check())
    assert {"work.axis", "work.com", "work.inertia", "work.velocity", "work.wrench", "work.dof_force"} <= reached
    assert {"body.mass", "joint.armature", "world.gravity", "state.qd"} <= reached


@pytest.mark.parametrize("kind", STATES)
@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_acceleration(integrator, kind):
    """Everything after the forces: mass matrix, factor and solve forward, the implicit adjoint backward."""
    e = rich_evaluation(integrator, kind)
    forces = ("dynamics.kinematics", "dynamics.passive", "dynamics.actuation", "dynamics.implicit.implicit_slopes")

    def run(tape: wp.Tape | None) -> None:
        def solve(name: str, stage: Callable[[], None]) -> None:
            if name not in forces:
                stage()

        with observe(solve):
            step.forward(e.model, e.state, e.control, e.work, e.scratch, tape)

    stage = IsolatedStage(e, run, ("work.qdd",))
    # Intermediates of the adjoint, overwritten before they are read.
    own = ("work.qdd", "work.residual", "work.acceleration", "work.body_force", "work.qdd_twist")
    deviations = stage.check(without=own)
    assert {"work.axis", "work.com", "work.inertia", "work.wrench", "work.dof_force", "body.mass"} <= set(deviations)
    assert {"joint.armature", "world.gravity"} <= set(deviations)


@pytest.mark.parametrize("kind", STATES)
def test_semi_implicit_integration(kind):
    e = rich_evaluation("euler", kind)
    fields = state_fields(e.model)
    after = to_arrays("state", fields, {f.name: np.zeros(f.shape) for f in fields}, e.model.device)
    for array in after.values():
        array.requires_grad = True
    stage = IsolatedStage(
        e,
        lambda tape: semi_implicit(e.model, e.state, e.work, after),
        tuple(f"next.{name}" for name in after),
        extra={f"next.{name}": array for name, array in after.items()},
    )
    reached = set(stage.check())
    assert {"state.q", "state.qd", "state.activation", "work.qdd", "work.activation_rate", "world.timestep"} <= reached
    assert "actuator.time_constant" in reached


@pytest.mark.parametrize("kind", STATES)
def test_chart_rates(kind):
    e = rich_evaluation("rk4", kind)
    before, rate = (wp.zeros_like(e.state.qd, requires_grad=True) for _ in range(2))
    wp.copy(before, e.state.qd)
    stage = IsolatedStage(
        e,
        lambda tape: chart_rate(e.model, before, e.state.qd, rate, fraction=200.0),  # large turns
        ("rate",),
        extra={"before": before, "rate": rate},
    )
    assert "state.qd" in stage.check()


def test_derived_masses_are_those_of_closed_forms():
    scene = rich_scene("euler")
    e = evaluation(scene, {})
    for body in scene.bodies:
        index = e.model.layout.body(body.name)
        mass, com, inertia = body_mass(scene, body)
        assert e.model.body.mass.numpy()[0, index] == pytest.approx(mass, rel=1e-12)
        np.testing.assert_allclose(e.model.body.com.numpy()[0, index], com, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(
            e.model.body.inertia.numpy()[0, index], sym6(inertia), rtol=1e-10, atol=1e-12 * np.abs(inertia).max()
        )


def test_derive():
    """Authored → physical: every shape kind's mass, unit axes and rotations, the boxes that feel the medium."""
    model = compile_model(rich_scene("euler"))
    model.require_gradients(list(model.authored))
    derivation = Derivation(model)
    derivation.run(record=True)
    rng = np.random.default_rng(1)
    start = {name: array.numpy().copy() for name, array in model.authored.items()}
    derived = {
        name: a for name, a in model.physical.items() if name not in model.authored or a is not model.authored[name]
    }
    derived = {name: a for name, a in derived.items() if a.size and a.grad is not None}
    weights = {name: rng.normal(size=a.numpy().shape) for name, a in derived.items()}

    def loss(changed: dict[str, np.ndarray]) -> float:
        for name, array in model.authored.items():
            array.assign(np.ascontiguousarray(changed.get(name, start[name])))
        derivation.run()
        return float(sum((weight * derived[name].numpy()).sum() for name, weight in weights.items()))

    loss({})
    derivation.run(record=True)
    for array in model.authored.values():
        if array.grad is not None:
            array.grad.zero_()
    for name, weight in weights.items():
        derived[name].grad.assign(weight)
    derivation.backward()
    gradients = {n: a.grad.numpy().copy() for n, a in model.authored.items() if a.size and a.grad is not None}
    for name, gradient in gradients.items():
        direction = direction_for(name, start[name], rng)
        check_direction(name, gradient, direction, lambda x, n=name: loss({n: x}), start[name])
    assert {"body.mass", "fluid.box", "joint.axis", "site.rotation"} <= set(derived)
    for name in ("shape.size", "shape.density", "shape.mass", "shape.position", "shape.rotation", "body.mass"):
        assert gradients[name].any(), name
