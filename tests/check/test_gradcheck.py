"""The gradient check itself: clean code raises no alarm, planted errors are found and located, verdicts are right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from contact_support import object_scene, solid
from core_scenes import rich_scene, rich_state
from planted_errors import AdjointFault, Fault, scale
from warpsim.check.gradcheck.coverage import AT_AN_EDGE, OF_THE_WORLD
from warpsim.check.gradcheck.modes import ModeObserver
from warpsim.check.gradcheck.stage_blame import BETWEEN, DERIVE, SOLVE
from warpsim.rigid.compile.derive import Derivation
from warpsim.rigid.constraint.contact_law import HELD, STRUCK
from warpsim.scene import Actuator, Body, Equality, Joint, Options, Scene, Shape
from warpsim.sim.simulator import Simulator
from warpsim.tape.arena import Arena

FEW = ("body.mass", "joint.damping", "shape.friction", "shape.size")
WINDOW = 4


def rich(integrator: str) -> Simulator:
    """Free motion with every joint, spring, tendon, actuator and drive."""
    sim = Simulator(rich_scene(integrator))
    state = rich_state("random")
    sim.reset(start=state)
    return sim


def floor(integrator: str = "euler", **options) -> Simulator:
    """A box and a sphere that slide and press on the floor, a hinged arm with a motor beside them."""
    scene = object_scene(
        solid("box", (0.1, 0.2, 0.15), (0.0, 0.7, 0.148), (0.01, 0.008, 0.3)),
        solid("sphere", (0.1,), (0.0, 0.0, 0.098)),
        solid("sphere", (0.1,), (0.06, 0.02, 0.285)),
        options=Options(integrator=integrator, solver_tolerance=1e-12, **options),
        condim=4,
        friction=np.array([0.5, 0.02, 0.01]),
        solref=np.array([0.03, 0.9]),
        solimp=np.array([0.8, 0.96, 0.003, 0.4, 2.5]),
    )
    scene.bodies.append(Body("arm", position=np.array([1.0, 0.0, 1.0])))
    scene.joints.append(Joint("hinge", "hinge", "arm", axis=np.array([0.0, 1.0, 0.0]), damping=0.2, limit=(-0.1, 0.5)))
    scene.shapes.append(Shape("rod", "capsule", "arm", np.array([0.0, 0.0, 0.3]), size=np.array([0.03, 0.2, 0.0])))
    scene.actuators.append(Actuator("motor", "joint", "hinge", control_range=(-1.0, 1.0)))
    scene.joints[-1].initial_q = np.array([0.51])
    sim = Simulator(scene)
    rng = np.random.default_rng(4)
    sim.reset(qd=0.3 * rng.normal(size=sim.nv))
    return sim


def welded() -> Simulator:
    """Two bodies held together, which is what reads bias accelerations."""
    scene = Scene(options=Options(solver_tolerance=1e-12))
    for name, parent in (("a", None), ("b", None), ("c", "b")):
        scene.bodies.append(Body(name, parent, position=np.array([0.5 if parent is None else 0.1, 0.0, 1.0])))
        scene.joints.append(Joint(name, "hinge", name, axis=np.array([0.6, 0.8, 0.0] if parent else [0.0, 0.8, 0.6])))
        scene.shapes.append(Shape(name, "box", name, np.array([0.2, 0.0, 0.1]), size=np.array([0.2, 0.05, 0.1])))
        scene.shapes[-1].collides = False
    scene.equalities.append(Equality("pin", "connect", "a", "c", anchor=np.array([0.3, 0.0, 0.0])))
    sim = Simulator(scene)
    sim.reset(qd=np.array([0.7, -0.4, 0.5]))
    return sim


SCENES = {
    "rich euler": lambda: rich("euler"),
    "rich implicitfast": lambda: rich("implicitfast"),
    "rich rk4": lambda: rich("rk4"),
    "floor euler": floor,
    "floor implicitfast": lambda: floor("implicitfast"),
    "floor pyramidal": lambda: floor(cone="pyramidal"),
    "floor rk4": lambda: floor("rk4"),
    "welded": welded,
}


def check(sim: Simulator, parameters: tuple[str, ...] = FEW):
    known = tuple(name for name in parameters if sim.model.authored[name].size)
    return sim.gradcheck(3 * WINDOW, parameters=known, window=WINDOW)


CLEAN_QUICK = ("rich euler", "floor euler")


@pytest.mark.parametrize("name", [n if n in CLEAN_QUICK else pytest.param(n, marks=pytest.mark.long) for n in SCENES])
def test_clean_code_raises_no_alarm(name):
    report = check(SCENES[name]())
    assert report.ok, str(report)
    assert report.sections
    exact = [f for s in report.sections for found in s.findings.values() for f in found if f.verdict == "exact"]
    assert len(exact) >= 3


def work(name: str):
    return lambda a: getattr(a["work"], name)


def contact(name: str):
    return lambda a: getattr(a["c"].contacts, name)


KINEMATICS, PASSIVE, ACTUATION = "dynamics.kinematics", "dynamics.passive", "dynamics.actuation"
RESIDUAL = "dynamics.inverse_dynamics.residual_at_solution"
OPTIMUM = "dynamics.inverse_dynamics.residual_at_optimum"
COLLIDE, FORCES = "constraint.stage.collide", "constraint.stage.constraint_forces"
INTEGRATE = "dynamics.integrate"

PLANTED = {
    # sign
    "kinematics, sign of the axes": ("rich euler", Fault("kinematics", "scale", work("axis"), -1.0), KINEMATICS),
    "passive, sign of the wrench": ("rich euler", Fault("passive", "scale", work("wrench"), -1.0), PASSIVE),
    "residual, sign": ("rich euler", Fault("residual_at_solution", "scale", work("residual"), -1.0), RESIDUAL),
    "integrate, sign of qd": (
        "floor euler",
        Fault("semi_implicit", "scale", lambda a: a["s_out"].qd, -1.0),
        f"{INTEGRATE}.semi_implicit",
    ),
    "contact distance, sign": ("floor euler", Fault("collide", "scale", contact("distance"), -1.0), COLLIDE),
    "smooth solve, sign": (
        "rich euler",
        AdjointFault("acceleration_adjoint", lambda a: a["work"].residual, -1.0),
        SOLVE,
    ),
    # factor
    "actuation, factor on forces": ("rich euler", Fault("actuation", "scale", work("dof_force"), 2.0), ACTUATION),
    "actuation, activation rate": ("rich euler", Fault("actuation", "scale", work("activation_rate"), 0.5), ACTUATION),
    "kinematics, inertia off by 1 %": ("rich euler", Fault("kinematics", "scale", work("inertia"), 1.01), KINEMATICS),
    "contact solve, factor": (
        "floor implicitfast",
        AdjointFault("solver_adjoint", lambda a: a["c"].residual, 1.1),
        SOLVE,
    ),
    "contact forces, factor": (
        "floor euler",
        Fault("constraint_forces", "scale", lambda a: a["work"].wrench, 1.2),
        FORCES,
    ),
    "implicit slopes, factor": (
        "rich implicitfast",
        Fault("implicit_slopes", "scale", work("tendon_slope"), 3.0),
        "dynamics.implicit.implicit_slopes",
    ),
    "averaged rate, factor": ("rich rk4", Fault("average", "scale", lambda a: a["out"], 0.9), f"{INTEGRATE}.average"),
    "chart rate, factor": (
        "rich rk4",
        Fault("chart_rate", "scale", lambda a: a["rate"], 0.7),
        "dynamics.chart_rates.chart_rate",
    ),
    "advance, factor": ("floor rk4", Fault("advance", "scale", lambda a: a["q_out"], 1.05), f"{INTEGRATE}.advance"),
    "contact forces, pyramid": ("floor pyramidal", Fault("constraint_forces", "scale", work("wrench"), 0.5), FORCES),
    # missing term
    "kinematics, q forgotten": ("rich euler", Fault("kinematics", "forget", lambda a: a["s"].q), KINEMATICS),
    "passive, velocity forgotten": ("rich euler", Fault("passive", "forget", work("velocity")), PASSIVE),
    "passive, damping forgotten": ("rich euler", Fault("passive", "forget", lambda a: a["m"].joint.damping), PASSIVE),
    "residual, mass forgotten": (
        "rich euler",
        Fault("residual_at_solution", "forget", lambda a: a["m"].body.mass),
        RESIDUAL,
    ),
    "residual, Coriolis forgotten": ("rich euler", Fault("residual_at_solution", "forget", work("velocity")), RESIDUAL),
    "contact forces, friction forgotten": (
        "floor euler",
        Fault("constraint_forces", "forget", lambda a: a["m"].pair.friction),
        FORCES,
    ),
    "contact forces, rates forgotten": ("floor euler", Fault("constraint_forces", "forget", work("velocity")), FORCES),
    "integrate, q forgotten": (
        "floor euler",
        Fault("semi_implicit", "forget", lambda a: a["s"].q),
        f"{INTEGRATE}.semi_implicit",
    ),
    "residual at the optimum, axes forgotten": (
        "floor euler",
        Fault("residual_at_optimum", "forget", work("axis")),
        OPTIMUM,
    ),
    "implicit residual forgotten": (
        "rich implicitfast",
        Fault("implicit_residual", "forget", work("velocity")),
        "dynamics.implicit.implicit_residual",
    ),
    "bias accelerations dropped": (
        "welded",
        Fault("bias_accelerations", "scale", lambda a: a["c"].bias, 0.0),
        "constraint.stage.bias_accelerations",
    ),
    # frozen normal
    "frozen normal": ("floor euler", Fault("collide", "scale", contact("frame"), 0.0), COLLIDE),
    "frozen contact point": ("floor euler", Fault("collide", "scale", contact("point"), 0.0), COLLIDE),
    # overwritten buffer
    "velocities overwritten": (
        "rich euler",
        Fault("residual_at_solution", "overwrite", work("velocity"), 0.0),
        RESIDUAL,
    ),
    "contact points overwritten": (
        "floor euler",
        Fault("constraint_forces", "overwrite", contact("point"), 1.1),
        FORCES,
    ),
    "axes overwritten": (
        "rich euler",
        Fault("actuation", "overwrite", lambda a: a["work"].axis, 0.5),
        ACTUATION,
    ),
}
QUICK = ("kinematics, inertia off by 1 %", "frozen normal")


def assert_located(monkeypatch, name: str) -> None:
    scene, fault, expected = PLANTED[name]
    sim = SCENES[scene]()
    fault.plant(monkeypatch)
    report = check(sim)
    assert not report.ok, "not caught"
    assert [b.stage for b in report.guilty] == [expected], str(report)


@pytest.mark.parametrize("name", QUICK)
def test_a_planted_error_is_caught_and_located(monkeypatch, name):
    assert_located(monkeypatch, name)


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in PLANTED if name not in QUICK])
def test_every_planted_error_is_caught_and_located(monkeypatch, name):
    assert_located(monkeypatch, name)


@pytest.mark.long
def test_an_error_of_the_derivation_is_located(monkeypatch):
    """Gradients of authored parameters come from physical ones by an adjoint of their own."""
    healthy = Derivation.backward

    def faulty(self):
        scale(self.model.body.inertia.grad, 2.0)
        healthy(self)

    monkeypatch.setattr(Derivation, "backward", faulty)
    report = check(rich("euler"), ("shape.size",))
    assert not report.ok
    assert [b.stage for b in report.guilty] == [DERIVE]


@pytest.mark.long
def test_an_error_between_stages_is_told_from_one_in_a_stage(monkeypatch):
    """Adjoints of intermediates that are not cleared between steps: every stage is right, the tape is not."""
    monkeypatch.setattr(Arena, "zero_adjoints", lambda self: None)
    report = check(rich("euler"), ())
    assert not report.ok
    assert [b.stage for b in report.guilty] == [BETWEEN]


def test_saturated_controls_and_unread_parameters_are_zero_and_say_why():
    sim = floor()
    controls = torch.full((8, 1), 3.0, dtype=sim.torch_dtype)  # the motor's range ends at 1
    report = sim.gradcheck(controls=controls, parameters=("shape.density", "shape.friction"), window=WINDOW)
    reasons = {f.reason for s in report.sections for f in s.findings["actuator"]}
    assert {s.verdict("actuator") for s in report.sections} == {"zero"}
    assert all("saturated" in reason for reason in reasons)


def test_a_control_at_the_edge_of_its_range_is_at_a_switch():
    sim = floor()
    controls = torch.full((8, 1), 1.0, dtype=sim.torch_dtype)
    report = sim.gradcheck(controls=controls, parameters=(), window=WINDOW)
    assert {s.verdict("actuator") for s in report.sections} == {"unreliable across a mode switch"}
    assert report.ok


@pytest.mark.parametrize("where", [pytest.param("both", marks=pytest.mark.long), "backward"])
def test_softened_contacts_are_called_smoothed(where):
    report = floor(contact_softening=0.01, softening_pass=where).gradcheck(12, parameters=(), window=WINDOW)
    assert report.ok, str(report)
    assert report.verdicts()["contact", "q"] == "smoothed"


def test_a_users_loss_is_checked_over_the_whole_rollout():
    sim = rich("euler")
    report = sim.gradcheck(
        6, parameters=(), loss=lambda t: t.body_position("tip")[-1].square().sum(), outputs=("body_position",)
    )
    whole = report.sections[-1]
    assert whole.window.name == "whole rollout" and whole.window.steps == 6
    assert whole.verdict("q") == "exact"


@pytest.mark.parametrize(("timestep", "steps"), [(0.05, 40), (5.0, 1)])
def test_without_a_length_two_seconds_are_checked_or_one_step(timestep, steps):
    scene = Scene(options=Options(timestep=timestep, gravity=np.zeros(3)))
    scene.bodies.append(Body("b", mass=1.0, inertia=np.eye(3)))
    scene.joints.append(Joint("slide", "slide", "b"))
    report = Simulator(scene).gradcheck(parameters=(), loss=lambda t: t.qd[-1].sum())
    assert report.sections[-1].window.steps == steps


def test_the_report_opens_with_what_is_differentiated_and_closes_with_the_settings():
    report = check(floor())
    lines = str(report).splitlines()
    assert "differentiated:" in lines[1]
    tail = "\n".join(lines[-8:])
    for word in ("smoothing", "regularization", "tolerance 1e-12", "horizon", "loss", "gradient norm"):
        assert word in tail


def test_a_loose_tolerance_makes_no_gradient_wrong():
    sim = floor()
    loose = Simulator(replace(sim.scene, options=replace(sim.scene.options, solver_tolerance=1e-2)))
    loose.reset(qd=sim.state.qd)
    report = loose.gradcheck(12, parameters=(), window=WINDOW)
    assert report.ok, str(report)


def hinges(*damping: float) -> Simulator:
    """Rods on hinges: the first upright and at rest, which no damping can reach; the others swing."""
    scene = Scene()
    for i, value in enumerate(damping):
        axis = np.array([0.0, 0.0, 1.0] if i == 0 else [0.0, 1.0, 0.0])
        scene.bodies.append(Body(f"rod{i}", position=np.array([0.0, 2.0 * i, 0.0])))
        scene.joints.append(Joint(f"hinge{i}", "hinge", f"rod{i}", axis=axis, damping=value))
        place = np.array([0.0, 0.0, 0.3] if i == 0 else [0.3, 0.0, 0.0])
        scene.shapes.append(Shape(f"rod{i}", "sphere", f"rod{i}", place, size=np.array([0.1, 0.0, 0.0])))
        scene.shapes[-1].collides = False
    return Simulator(scene)


def test_the_report_says_which_entries_a_verdict_is_about():
    """The one hinge that is damped does not move; the gradient by the others is not zero, and nobody judged it."""
    report = hinges(0.3, 0.0, 0.0).gradcheck(4, parameters=("joint.damping", "body.mass"), window=2)
    (section,) = report.sections
    damping = section.judged["joint.damping"]
    assert section.verdict("joint.damping") == "zero"
    assert (damping.judged, damping.total, damping.norm) == (1, 3, 0.0)
    assert dict(damping.skipped) == {AT_AN_EDGE: 2}
    whole = section.norms["joint.damping"]
    assert whole > 0.0
    lines = str(report).splitlines()
    at = next(i for i, line in enumerate(lines) if line.lstrip().startswith("joint.damping"))
    assert lines[at].endswith(f"norm 0, of all entries {whole:.3g}")
    assert lines[at + 1].strip() == f"judged 1 of 3 entries (skipped: 2 {AT_AN_EDGE})"
    mass = section.judged["body.mass"]
    assert mass.total == 4 and mass.skipped[OF_THE_WORLD] == 1
    assert section.judged["q"].judged == section.judged["q"].total == 3
    assert section.judged["q"].norm == pytest.approx(section.norms["q"], rel=1e-12)


def test_an_input_of_which_nothing_is_judged_is_named():
    report = hinges(0.0, 0.0).gradcheck(2, parameters=("joint.damping",), window=1)
    (section,) = report.sections
    assert "joint.damping" not in section.findings
    text = str(report)
    assert f"judged 0 of 2 entries (skipped: 2 {AT_AN_EDGE})" in text
    assert f"not judged; norm of all entries {section.norms['joint.damping']:.3g}" in text


def bouncing(height: float) -> Simulator:
    """A ball on a vertical rail that bounces off a floor at the moment of its touch."""
    material = dict(condim=1, restitution=0.8)
    scene = Scene(options=Options(timestep=0.01, impacts=True), shapes=[Shape("floor", "plane", **material)])
    scene.bodies.append(Body("ball"))
    scene.joints.append(Joint("rail", "slide", "ball", initial_q=np.array([height])))
    scene.shapes.append(
        Shape("ball", "sphere", "ball", np.array([0.0, 0.0, 0.1]), size=np.array([0.1, 0.0, 0.0]), **material)
    )
    return Simulator(scene)


def impact_steps(sim: Simulator, heights: np.ndarray) -> np.ndarray:
    """The step in which it bounces, by height; one height per world."""
    made = sim.rollout(40, q=torch.as_tensor(heights)[:, None], outputs=())
    return (made.qd[..., 0] > 0.0).int().argmax(0).numpy() - 1


def height_at_a_switch() -> float:
    """The largest height, to rounding, whose bounce is not in a later step than that of 0.3 m."""
    many = bouncing(0.3).with_worlds(33)
    low, high = 0.3, 0.33
    while True:
        heights = np.linspace(low, high, 33)
        later = impact_steps(many, heights) > impact_steps(many, np.full(33, 0.3))
        k = int(later.argmax())
        assert k > 0
        if (low, high) == (heights[k - 1], heights[k]):
            return low
        low, high = float(heights[k - 1]), float(heights[k])


def test_impacts_are_decisions():
    """Exact where the bounce stays in its step, at a switch where every move takes it to another one."""
    low = height_at_a_switch()
    switching = bouncing(low).gradcheck(40, parameters=("shape.restitution",), window=WINDOW)
    inside = bouncing(low - 0.01).gradcheck(40, parameters=("shape.restitution",), window=WINDOW)
    for report in (inside, switching):
        assert report.ok, str(report)
        assert len(report.sections[1].window.switches) >= 1
    for name in ("q", "qd", "joint_force"):
        assert inside.verdicts()["contact", name] == "exact", str(inside)
        assert switching.verdicts()["contact", name] == "unreliable across a mode switch", str(switching)
    assert inside.verdicts()["contact", "shape.restitution"] == "exact"


def test_roles_of_contacts_are_decisions():
    """A contact that is held instead of struck is another mode, with the same contacts and zones."""
    sim = bouncing(0.3)
    made = sim.rollout(40, outputs=())
    actions = sim.all_controls(40, None)
    modes = list(ModeObserver(sim.compiled, tuple(actions)).modes(made, actions))
    step = int(impact_steps(sim, np.array([0.3]))[0])
    assert next(k for k, m in enumerate(modes) if m.impacts[0][0, 0] >= 0) == step
    struck = modes[step]
    held = replace(
        struck, impacts=(*struck.impacts[:3], np.full_like(struck.impacts[3], int(HELD)), *struck.impacts[4:])
    )
    assert struck.impacts[3][0, 0] == int(STRUCK)
    assert held.signature(0) != struck.signature(0)
