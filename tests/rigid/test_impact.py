"""Bounces and landings with `Options.impacts`: against closed forms, and against slopes of the motion over large steps.

A difference over a step far larger than what a body travels in a time step sees the motion, not where within a step it
touched; the adjoint has to agree with it, as well as with differences over tiny steps, which it is the limit of.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from contact_support import ContactRollout, object_scene, solid
from finite_differences import relative_error
from flight_support import Flight, end_slopes, on_rails
from warpsim.check.gradcheck.stage_blame import _walk
from warpsim.core.errors import SceneError
from warpsim.io.usd.export import export_scene
from warpsim.rigid.compile.compile import compile_model
from warpsim.rigid.compile.derive import Derivation
from warpsim.rigid.step.program import RigidProgram
from warpsim.scene import Body, Joint, Options, Scene, Shape
from warpsim.scene.validate import validate
from warpsim.sim.simulator import Simulator
from warpsim.solve.newton import TOO_FEW_ITERATIONS
from warpsim.tape import CheckpointedTape, FullTape, Memory, Revolve
from warpsim.tape.arena import Arenas, measure

GRAVITY = 9.81
NONE = np.zeros(3)
LARGE, TINY = (1e-2, 3e-3), 1e-6
INTEGRATORS = ("euler", "implicitfast", "rk4")


def options(h: float, **changes) -> Options:
    return Options(timestep=h, solver_tolerance=1e-13, impacts=True, **changes)


def ball_on_floor(h: float, restitution: float, **changes) -> Scene:
    """A ball of radius 0.1 on a vertical rail; q is the height of its lowest point."""
    material = dict(condim=1, restitution=restitution)
    ball = Shape("ball", "sphere", size=np.array([0.1, 0.0, 0.0]), position=np.array([0.0, 0.0, 0.1]), **material)
    return on_rails(ball, "z", options(h, **changes), Shape("floor", "plane", **material))


@pytest.mark.parametrize("integrator", ["euler", *(pytest.param(i, marks=pytest.mark.long) for i in INTEGRATORS[1:])])
def test_bounce(integrator):
    """e = 0.8, z₀ = 1 m, v₀ = 0.3 m/s, T = 0.7 s: height and gradient tend to the ideal bounce's, as the step falls."""
    exact, errors = np.array([0.53954, 0.06254042, -0.143273, 0.96277447]), []
    for h in (4e-3, 1e-3):
        flight = Flight(ball_on_floor(h, 0.8, integrator=integrator), round(0.7 / h), ("shape.restitution",), segment=4)
        found = flight.gradient("q", 0, q=np.array([1.0]), qd=np.array([0.3]))
        restitution = found.parameters["shape.restitution"].sum()  # the pair's is the mean of two
        errors.append(np.abs([found.value, found.q[0], found.qd[0], restitution] - exact))
    assert errors[1].max() < 5e-3, errors
    assert errors[1].max() < 0.4 * errors[0].max() or integrator == "rk4", errors


def test_elastic_wall():
    """x₀ = 1 m, v₀ = −1 m/s, T = 2 s: slopes −1 and −2, where a step that merely flips the velocity gives +1."""
    for h in (0.02, 1e-3):
        flight = Flight(ball_on_floor(h, 1.0, gravity=NONE), round(2 / h), segment=2)
        found = flight.gradient("q", 0, q=np.array([1.0]), qd=np.array([-1.0]))
        assert found.q[0] == pytest.approx(-1.0, abs=1e-5)
        assert found.qd[0] == pytest.approx(-2.0, abs=1e-5)
        assert found.value == pytest.approx(1.0, abs=50.0 * h * h)


def test_saltation_matrix():
    """Of (z, v): [[−e, 0], [−(1 + e) g/v⁻, −e]] between two short flights."""
    e, z0, v0, time, h = 0.7, 0.02, -2.0, 0.02, 1e-4
    touch = (v0 + np.sqrt(v0**2 + 2.0 * GRAVITY * z0)) / GRAVITY
    before = v0 - GRAVITY * touch
    saltation = np.array([[-e, 0.0], [-(1.0 + e) * GRAVITY / before, -e]])
    exact = np.array([[1.0, time - touch], [0.0, 1.0]]) @ saltation @ np.array([[1.0, touch], [0.0, 1.0]])
    flight = Flight(ball_on_floor(h, e), round(time / h), segment=2)
    rows = [flight.gradient(field, 0, q=np.array([z0]), qd=np.array([v0])) for field in ("q", "qd")]
    found = np.array([[row.q[0], row.qd[0]] for row in rows])
    assert np.abs(found - exact).max() < 2e-3, (found, exact)


def two_balls(y: float, h: float) -> Scene:
    """Of radius 0.1, the first 0.205 before the second, without gravity or friction."""
    scene = object_scene(
        solid("sphere", (0.1,), (0.0, 0.0, 5.0)),
        solid("sphere", (0.1,), (0.205, 0.0, 5.0)),
        options=options(h, gravity=NONE),
        condim=1,
        restitution=1.0,
    )
    scene.bodies[1].position[1] = y
    return scene


def test_equal_balls_swap_velocities():
    flight = Flight(two_balls(0.0, 2e-3), 10, segment=2)
    qd = np.zeros(12)
    qd[0] = 1.0
    jacobian = np.array([flight.gradient("qd", i, qd=qd).qd[[0, 6]] for i in (0, 6)])
    assert np.abs(jacobian - [[0.0, 1.0], [1.0, 0.0]]).max() < 1e-5, jacobian
    assert np.abs(flight.final(qd=qd)[1][0, [0, 6]] - [0.0, 1.0]).max() < 1e-5


def test_glancing_balls_turn_with_their_normal():
    """dθ/dy = 1/2r = 5 rad/m at y = 0."""
    qd = np.zeros(12)
    qd[0] = 1.0
    found = Flight(two_balls(0.0, 2e-3), 10, segment=2).gradient("qd", 7, qd=qd)
    assert found.q[8] == pytest.approx(5.0, rel=1e-3)
    assert found.q[8] - found.q[1] == pytest.approx(10.0, rel=1e-3)


@pytest.mark.parametrize(("friction", "speed"), [(0.2, 3.0), (0.6, 3.0), (0.6, 10.0)])
def test_oblique_bounce(friction, speed):
    """A solid sphere that slides through its impact, or comes to roll in it (μ = 0.6, 3 m/s), by Coulomb's law."""
    e, drop, radius = 0.6, 2.0, 0.1
    scene = object_scene(
        solid("sphere", (radius,), (0.0, 0.0, radius + 1e-3)),
        options=options(1e-3, gravity=NONE),
        friction=np.array([friction, 0.0, 0.0]),
        restitution=e,
    )
    qd = Flight(scene, 3, segment=1).final(qd=np.array([speed, 0.0, -drop, 0.0, 0.0, 0.0]))[1][0]
    braked = min(friction * (1.0 + e) * drop, speed * 2.0 / 7.0)
    expected = [speed - braked, 0.0, e * drop, 0.0, 2.5 * braked / radius, 0.0]
    assert np.abs(qd - expected).max() < 1e-3 * np.abs(expected).max(), (qd, expected)
    assert qd[2] == pytest.approx(e * drop, rel=3e-3)


def test_impacts_take_turns_and_trees_their_own_time():
    """Three balls of one world fall from different heights: each as if it were alone."""
    heights, h, steps = np.array([1.0, 1.003, 0.4]), 2e-3, 350
    single = Flight(ball_on_floor(h, 0.8), steps, segment=2, worlds=3)
    alone = single.final(heights[:, None], np.zeros((3, 1)))[0][:, 0]
    scene = Scene(options=options(h), shapes=[Shape("floor", "plane", condim=1, restitution=0.8)])
    for k in range(3):
        ball = Shape(f"ball{k}", "sphere", f"body{k}", size=np.array([0.1, 0.0, 0.0]), condim=1, restitution=0.8)
        ball.position = np.array([k, 0.0, 0.1])
        scene.shapes.append(ball)
        scene.bodies.append(Body(f"body{k}"))
        scene.joints.append(Joint(f"rail{k}", "slide", f"body{k}", axis=np.array([0.0, 0.0, 1.0])))
    together = Flight(scene, steps, segment=2).final(heights[None], np.zeros((1, 3)))[0][0]
    assert np.abs(together - alone).max() < 1e-9, (together, alone)


def cube(h: float, restitution: float) -> Scene:
    return object_scene(
        solid("box", (0.1, 0.1, 0.1), (0.0, 0.0, 0.3), (0.2, 0.3, 0.1)),
        options=options(h),
        friction=np.array([0.6, 0.0, 0.0]),
        restitution=restitution,
    )


def deviations(slopes: np.ndarray, adjoint: np.ndarray) -> tuple[float, float]:
    """Of the adjoint (ways,) from slopes (ways, sizes) over large steps and a tiny last one, over the largest."""
    errors = np.abs(slopes - adjoint[:, None]) / np.abs(slopes).max()
    return float(errors[:, :-1].max()), float(errors[:, -1].max())


TOSS = np.array([2.0, 0.3, 1.0, 3.0, 6.0, -2.0])
TOSS_WAYS = [("qd", np.array(way)) for way in ([-0.4, 0.8, 0.3, 0.5, -0.2, 0.6], [0, 0, 1.0, 0, 0, 0])]


def check_toss(h: float, restitution: float, seconds: float, tolerance: float) -> None:
    """How far a thrown and spinning cube gets, by its initial velocity."""
    scene, steps = cube(h, restitution), round(seconds / h)
    slopes = end_slopes(scene, steps, compile_model(scene).initial_q, TOSS, TOSS_WAYS, (*LARGE, TINY))[:, :, 0]
    gradient = Flight(scene, steps, segment=4).gradient("q", 0, qd=TOSS).qd
    large, tiny = deviations(slopes, np.array([gradient @ way for _, way in TOSS_WAYS]))
    assert tiny < 1e-5
    assert large < tolerance


@pytest.mark.parametrize("restitution", [0.0, 0.5])
def test_tumbling_cube(restitution):
    check_toss(1e-3, restitution, 0.35, 0.01)


def leg(h: float, integrator: str = "euler") -> Scene:
    """A hip that slides along x and z, a thigh, a springy knee, and a ball for a foot."""
    ground = dict(friction=np.array([0.8, 0.0, 0.0]))
    limb = dict(size=np.array([0.03, 0.17, 0.0]), position=np.array([0.0, 0.0, -0.2]), collides=False)
    pitch = np.array([0.0, 1.0, 0.0])
    return Scene(
        bodies=[
            Body("hip", position=np.array([0.0, 0.0, 1.2])),
            Body("thigh", parent="hip"),
            Body("shank", parent="thigh", position=np.array([0.0, 0.0, -0.4])),
        ],
        joints=[
            Joint("forward", "slide", "hip", axis=np.array([1.0, 0.0, 0.0])),
            Joint("up", "slide", "hip", axis=np.array([0.0, 0.0, 1.0])),
            Joint("hip", "hinge", "thigh", axis=pitch, damping=0.5),
            Joint("knee", "hinge", "shank", axis=pitch, damping=0.5, stiffness=30.0),
        ],
        shapes=[
            Shape("floor", "plane", **ground),
            Shape("trunk", "sphere", "hip", size=np.array([0.1, 0.0, 0.0]), density=2000.0, collides=False),
            Shape("upper", "capsule", "thigh", **limb),
            Shape("lower", "capsule", "shank", **limb),
            Shape("foot", "sphere", "shank", size=np.array([0.04, 0.0, 0.0]), position=2 * limb["position"], **ground),
        ],
        options=options(h, integrator=integrator),
    )


LEG_START = np.array([0.0, 0.0, 0.5, -1.0]), np.array([0.5, -0.5, 0.0, 0.0])
LEG_WAYS = [
    ("q", np.array([0.0, 1.0, 0.0, 0.0])),
    ("q", np.array([0.3, -0.2, 0.5, 1.0])),
    ("qd", np.array([1.0, 0.5, -1.0, 0.3])),
]


def leg_errors(h: float, integrator: str = "euler", sizes: tuple[float, ...] = LARGE) -> tuple[float, float]:
    """Deviation of the adjoint from large and from tiny differences: where the hip and the knee are 0.7 s later."""
    q, qd = LEG_START
    scene, steps = leg(h, integrator), round(0.7 / h)
    slopes = end_slopes(scene, steps, q, qd, LEG_WAYS, (*sizes, TINY))
    flight, found = Flight(scene, steps, segment=4), []
    for index in (0, 1, 3):
        gradient = flight.gradient("q", index, q=q, qd=qd)
        adjoint = np.array([getattr(gradient, of) @ way for of, way in LEG_WAYS])
        found.append(deviations(slopes[:, :, index], adjoint))
    return tuple(np.max(found, axis=0))


def test_landing_leg():
    large, tiny = leg_errors(1e-3)
    assert tiny < 1e-5
    assert large < 0.01


@pytest.mark.long
@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_landing_leg_converges(integrator):
    """Over 2 and 4 mm, more than a step's travel or nearly; over 1 cm, differences are off by 0.3 % themselves."""
    errors = [leg_errors(h, integrator, (4e-3, 2e-3)) for h in (2e-3, 1e-3, 5e-4, 2.5e-4)]
    assert max(tiny for _, tiny in errors) < 1e-5, errors
    assert errors[-1][0] < 3e-3 and errors[-1][0] < 0.4 * errors[0][0], errors


@pytest.mark.long
@pytest.mark.parametrize("restitution", [0.0, 0.3, 0.6])
@pytest.mark.parametrize("h", [2e-3, 1e-3, 5e-4])
def test_tumbling_cubes(h, restitution):
    check_toss(h, restitution, 0.45, 0.02)


def struck_objects(integrator: str = "euler") -> ContactRollout:
    """Shapes that strike the floor and one another within the first steps, and slide and spin as they do."""
    scene = object_scene(
        solid("sphere", (0.1,), (0.0, 0.0, 0.103)),
        solid("sphere", (0.08,), (0.05, 0.02, 0.281)),
        solid("box", (0.1, 0.2, 0.15), (0.0, 0.9, 0.21), (0.3, 0.2, 0.3)),
        solid("capsule", (0.06, 0.1), (0.6, 0.0, 0.1), (0.3, 1.3, 0.2)),
        options=options(2e-3, integrator=integrator, solver_iterations=200),
        condim=6,
        friction=np.array([0.5, 0.02, 0.01]),
        restitution=0.6,
        solref=np.array([0.015, 0.9]),
    )
    for joint, shape in zip(scene.joints, scene.shapes[1:], strict=True):
        joint.initial_qd = np.array([1.0, 0.5, -2.0, 2.0, 1.0, 3.0]) + 0.1 * len(shape.name)
    return ContactRollout(scene, 12, ("joint_force",))


@pytest.mark.parametrize("integrator", ["euler", pytest.param("implicitfast", marks=pytest.mark.long)])
def test_gradient_by_every_input_through_impacts(integrator):
    """State, controls and all parameters against tiny differences, over twelve steps with impacts."""
    rollout = struck_objects(integrator)
    found = rollout.compare((1e-5, 1e-6, 1e-7))
    assert {"shape.restitution", "shape.friction", "shape.size", "world.timestep"} <= {c.name for c in found}
    kept = [c for c in found if not c.switching(1e-5)]
    assert len(kept) >= 0.9 * len(found), [c for c in found if c.switching(1e-5)]
    assert max(c.deviation for c in kept) < 1e-5, max(kept, key=lambda c: c.deviation)


def test_without_impacts_nothing_changes():
    """Bodies that touch slowly move as by compliant contacts that start from zero."""
    paths = []
    for impacts in (False, True):
        scene = object_scene(
            solid("box", (0.1, 0.1, 0.1), (0.0, 0.0, 0.1)),
            options=options(1e-3),
            solimp=np.array([0.0, 0.95, 0.001, 0.5, 2.0]),
        )
        scene.options.impacts = impacts
        end = Flight(scene, 100, segment=2).final(qd=np.array([0.3, 0.0, 0.0, 0.0, 0.0, 0.0]))
        paths.append(np.concatenate(end, axis=1))
    assert relative_error(paths[1], paths[0]) < 1e-9


def test_schedules_give_the_same_bits():
    model = compile_model(cube(2e-3, 0.5))
    model.require_gradients(["shape.restitution", "body.mass"])
    Derivation(model).run()
    program, found = RigidProgram(model, controls=()), []
    q = model.initial_q - [0, 0, 0.14, 0, 0, 0, 0]  # strikes the floor in the fourth step
    start = {"q": q[None], "qd": TOSS[None] - [0, 0, 3.0, 0, 0, 0], "warm_start": np.zeros((1, 6))}
    cuts = (
        (Memory(schedule=FullTape()), True),
        (Memory(segment=7), True),
        (Memory(segment=5, schedule=Revolve(2)), False),
    )
    for memory, capture in cuts:
        tape = CheckpointedTape(program, steps=12, memory=memory, capture=capture)
        gradient = tape.backward(tape.forward(start), state_seeds={"q": {-1: np.ones((1, 7))}})
        names = ("pair.restitution", "body.mass")
        parameters = [model.physical[name].grad.numpy().tobytes() for name in names]
        found.append([gradient.initial_state["qd"].numpy().tobytes(), *parameters])
        assert np.abs(model.physical["pair.restitution"].grad.numpy()).max() > 0.0
    assert found[0] == found[1] == found[2]


def test_intermediates_of_slots_lie_one_stride_apart():
    """Graphs of later slots are made from those of the first few by that stride; what has no place in it is shared."""
    model = compile_model(ball_on_floor(1e-3, 0.8), worlds=2)
    Derivation(model).run()
    program = RigidProgram(model, controls=())
    arenas = Arenas(program.device, measure(program), 4, gradients=True)
    places = [{name: array.ptr or 0 for name, array in _walk(program.make_work(arena), "")} for arena in arenas]
    assert len(places[0]) > 100
    for name in places[0]:
        assert len(set(np.diff([place[name] for place in places]))) == 1, name


def test_the_status_of_a_step_is_that_of_its_worst_solve():
    """A cube that strikes the floor with one solver iteration allowed: the impact needs more."""
    scene = cube(2e-3, 0.5)
    scene.options.solver_iterations, scene.options.solver_stop = 1, "authored"
    model = compile_model(scene)
    Derivation(model).run()
    tape = CheckpointedTape(
        RigidProgram(model, controls=(), outputs=("solver_status",)), steps=12, memory=Memory(segment=2)
    )
    start = {"q": model.initial_q[None] - [0, 0, 0.14, 0, 0, 0, 0], "qd": TOSS[None] - [0, 0, 3.0, 0, 0, 0]}
    start["warm_start"] = np.zeros((1, 6))
    with tape.forward(start, keep_outputs=True, differentiate=False) as run:
        status = run.outputs["solver_status"].numpy()[:, 0]
    assert status[0] == 0
    assert (status == int(TOO_FEW_ITERATIONS)).any(), status


def test_a_direct_solref_rebounds_as_its_spring_would():
    """MJCF has no restitution: solref = (−k, −b) gives that of its damping ratio."""
    beta = np.arccos(0.2)
    for ratio, restitution in ((0.0, 1.0), (0.2, np.exp(-2.0 * beta / np.tan(beta))), (1.0, np.exp(-2.0))):
        scene = ball_on_floor(1e-3, 0.0, gravity=NONE)
        for shape in scene.shapes:
            shape.solref = np.array([-1e4, -2.0 * ratio * 100.0])
        qd = Flight(scene, 20, segment=2).final(np.array([[0.01]]), np.array([[-2.0]]))[1]
        assert qd[0, 0] == pytest.approx(2.0 * restitution, rel=1e-3)


def test_from_usd_to_torch(tmp_path):
    """The option and the restitution as a file says, its gradient through the simulator."""
    path = tmp_path / "bounce.usda"
    export_scene(ball_on_floor(2e-3, 0.8, impact_speed=0.05))[0].Export(str(path))
    sim = Simulator(path)
    assert sim.scene.options.impacts
    assert sim.scene.options.impact_speed == 0.05
    assert not Simulator(path, impacts=False).scene.options.impacts
    height = torch.tensor([1.0], dtype=sim.torch_dtype, requires_grad=True)
    end = sim.rollout(steps=350, q=height, qd=torch.tensor([0.3]), memory=Memory(segment=4)).q[-1, 0, 0]
    end.backward()
    assert float(end.detach()) == pytest.approx(0.53954, abs=5e-3)
    assert float(height.grad) == pytest.approx(0.06254, abs=0.015)


@pytest.mark.parametrize(
    ("changes", "text"),
    [(dict(contact_softening=0.01), "not both"), (dict(impact_speed=0.0), "impact_speed")],
)
def test_options_that_make_no_sense(changes, text):
    with pytest.raises(SceneError, match=text):
        validate(Scene(options=options(1e-3, **changes)))
