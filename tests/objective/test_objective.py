"""Terms and success: known values on a real rollout, gradients against central differences, errors in words."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import warp as wp

from finite_differences import directional_difference
from simulator_support import arm, compiled
from warpsim.core.errors import InputError, UnknownNameError
from warpsim.core.precision import real, vec3
from warpsim.io.mjcf import scene_from_mjmodel
from warpsim.objective import (
    CenterOfMass,
    Clearance,
    ContactForce,
    ControlLimitsKept,
    Cost,
    Duration,
    Effort,
    Energy,
    Episode,
    Fixed,
    Function,
    JointLimitsKept,
    Kernel,
    Keyframes,
    OnBody,
    Pose,
    Posture,
    Reach,
    Smoothness,
    StaysAbove,
    Velocity,
    Within,
    at,
    episode_of,
    running,
    succeeded,
)
from warpsim.sim.simulator import Simulator

STEPS = 12
PUCK = """<mujoco>
  <option timestep="0.005"/>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1"/>
    <geom name="wall" type="box" size=".05 .5 .5" pos="1 0 .5"/>
    <body name="puck" pos="0 0 .0499"><freejoint/><geom name="disc" type="sphere" size=".05" mass=".2"/></body>
  </worldbody>
</mujoco>"""
"""A ball that lies on a plane, some way from a wall."""


@wp.kernel
def _height_kernel(position: wp.array3d(dtype=vec3), errors: wp.array3d(dtype=real)):
    t, w = wp.tid()
    p = position[t, w, 2]
    errors[t, w, 0] = p[2] * p[0]


TIP = OnBody("fore", (0.3, 0.02, 0.0), (0.8, 0.6, 0.0, 0.0))
MOVING = Keyframes(
    np.array([0.0, 0.05, 0.2]),
    np.array([[0.0, 0, 0], [0.3, 0.2, 0.1], [0.5, 0, -0.2]]),
    np.array([[1.0, 0, 0, 0], [0.8, 0.6, 0, 0], [0.0, 0, 1, 0]]),
)
ARM_TERMS = {
    "reach a point": Reach(subject=TIP, target=(0.3, 0.1, -0.4), weight=3.0),
    "reach along axes": Reach(subject="fore", target=(0.3, 0.1, -0.4), axes="xz", when=at(0.06)),
    "reach another body": Reach(subject=TIP, target=OnBody("upper", (0.1, 0, 0.1)), when=running()),
    "track keyframes": Reach(subject=TIP, target=MOVING, when=running(0.02, 0.1)),
    "pose": Pose(subject=TIP, target=Fixed((0.2, 0, 0.1), (0.5, 0.5, 0.5, 0.5)), lever_arm=0.3),
    "track poses": Pose(subject="fore", target=MOVING, when=running()),
    "velocity": Velocity(subject=TIP, velocity=(0.1, 0, 0.2)),
    "angular velocity": Velocity(subject="fore", angular=True, axes="y", when=running()),
    "posture": Posture(joints=["elbow"], position=[0.4]),
    "posture from the start": Posture(when=running()),
    "reference motion": Posture(position=[[0.0, 0.1], [0.5, 0.2]], times=[0.0, 0.1], when=running()),
    "center of mass": CenterOfMass(target=(0.1, 0, 0.1), weight=0.5),
    "total energy": Energy(energy=1.0),
    "kinetic energy": Energy(kind="kinetic", when=running()),
    "effort": Effort(when=running()),
    "smoothness": Smoothness(when=running(0.03)),
    "torch": Function(function=lambda e: e.trajectory["q"].sin() * e.trajectory["qd"], when=running()),
    "cost": Cost(function=lambda e: e.trajectory["qd"][-1].abs().sum(-1)),
    "kernel": Kernel(kernel=_height_kernel, inputs=["body_position"], when=running()),
}
PUCK_TERMS = {
    "contact force": ContactForce(subject="puck", force=(0, 0, 2.0), when=running(0.01)),
    "force at most": ContactForce(subject="disc", at_most=1.0, when=running()),
    "clearance": Clearance(subject="puck", obstacles=["wall"], distance=1.2, when=running()),
}


def rolled(sim: Simulator, x: torch.Tensor, terms) -> Episode:
    """An episode of the arm or the puck from initial velocities and controls, flat in `x`."""
    controls = x[sim.nv :].reshape(STEPS, sim.control_size)
    outputs = tuple(dict.fromkeys(name for term in terms for name in term.outputs))
    trajectory = sim.rollout(controls=controls, qd=x[: sim.nv], outputs=outputs)
    return episode_of(sim, trajectory, {sim.control_names[0]: controls[:, None]})


@pytest.fixture(scope="module")
def arm_sim() -> Simulator:
    return Simulator(arm())


@pytest.fixture(scope="module")
def puck_sim() -> Simulator:
    return Simulator(scene_from_mjmodel(compiled(PUCK)))


def check_gradient(sim: Simulator, term, rng, spread: float) -> None:
    term.check(sim)
    size = sim.nv + STEPS * sim.control_size
    x0, direction = spread * rng.standard_normal(size), rng.standard_normal(size)

    def loss(x: np.ndarray) -> float:
        return float(term.loss(rolled(sim, torch.as_tensor(x), [term]))[0])

    x = torch.tensor(x0, requires_grad=True)
    value = term.loss(rolled(sim, x, [term]))[0]
    value.backward()
    expected = directional_difference(loss, x0, direction, (1e-4, 1e-5, 1e-6))
    assert abs(float(expected)) > 1e-9
    assert float(x.grad @ torch.as_tensor(direction)) == pytest.approx(float(expected), rel=1e-6)


@pytest.mark.parametrize("name", ARM_TERMS)
def test_gradients(name, arm_sim, rng):
    check_gradient(arm_sim, ARM_TERMS[name], rng, 0.5)


@pytest.mark.parametrize("name", PUCK_TERMS)
def test_gradients_in_contact(name, puck_sim, rng):
    check_gradient(puck_sim, PUCK_TERMS[name], rng, 0.01)  # it keeps touching the ground


def test_values_are_those_of_the_definitions(arm_sim):
    """Loss = weight/2 Σ error², running terms as the mean over rows; residuals give the loss."""
    x = torch.linspace(-0.5, 0.5, arm_sim.nv + STEPS * arm_sim.control_size, dtype=torch.float64)
    terms = list(ARM_TERMS.values())
    e = rolled(arm_sim, x, terms)
    tip = e.trajectory.body_position("fore")[:, 0]
    target = torch.tensor([0.3, 0.1, -0.4], dtype=torch.float64)
    expected = 0.5 * (tip[6] - target)[[0, 2]].square().sum()
    assert float(ARM_TERMS["reach along axes"].loss(e)[0]) == pytest.approx(float(expected), rel=1e-12)
    q = e.trajectory["q"][:, 0]
    posture = 0.5 * (q - q[0]).square().sum(-1).mean()
    assert float(ARM_TERMS["posture from the start"].loss(e)[0]) == pytest.approx(float(posture), rel=1e-12)
    used = x[arm_sim.nv :].reshape(STEPS, -1)
    assert float(ARM_TERMS["effort"].loss(e)[0]) == pytest.approx(float(0.5 * used.square().sum(-1).mean()), rel=1e-12)
    rate = (used[1:] - used[:-1]) / arm_sim.timestep
    assert float(Smoothness(when=running()).loss(e)[0]) == pytest.approx(
        float(0.5 * rate.square().sum(-1).mean()), rel=1e-12
    )
    assert float(Duration(weight=2.0).loss(e)[0]) == pytest.approx((STEPS * arm_sim.timestep) ** 2, rel=1e-12)
    for term in terms:
        if not isinstance(term, Cost):
            half = 0.5 * term.residuals(e).square().sum(-1)
            assert torch.allclose(half, term.loss(e), rtol=1e-12)


def test_a_turned_place_on_a_body_moves_as_the_body_does(arm_sim):
    """The velocity of an offset place is the difference quotient of its position."""
    term = Velocity(subject=TIP)
    short = Simulator(arm(), outputs=("body_position", "body_rotation", "body_velocity"))
    qd = torch.tensor([0.7, -0.4], dtype=torch.float64)
    e = episode_of(short, short.rollout(steps=2, qd=qd))
    delta = 1e-6

    def place(q: torch.Tensor) -> torch.Tensor:
        return TIP.position(episode_of(short, short.rollout(steps=1, q=q)), slice(0, 1))[0, 0]

    moved = (place(delta * qd) - place(-delta * qd)) / (2 * delta)
    assert torch.allclose(term.errors(e, slice(0, 1))[0, 0], moved, atol=1e-9)


def test_keyframes_are_interpolated(arm_sim):
    e = rolled(arm_sim, torch.zeros(arm_sim.nv + STEPS * arm_sim.control_size, dtype=torch.float64), [])
    position, rotation = MOVING.position(e, slice(0, 13))[:, 0], MOVING.rotation(e, slice(0, 13))[:, 0]
    assert torch.allclose(position[2], torch.tensor([0.12, 0.08, 0.04], dtype=torch.float64))
    angle = 2 * np.arctan2(0.6, 0.8) * 2 / 5  # evenly along the shortest turn
    assert np.allclose(rotation[2].numpy(), [np.cos(angle / 2), np.sin(angle / 2), 0, 0], atol=1e-12)
    assert torch.allclose(torch.linalg.vector_norm(rotation, dim=-1), torch.ones(13, dtype=torch.float64))


def test_clearance_is_the_distance(puck_sim):
    e = rolled(
        puck_sim,
        torch.zeros(puck_sim.nv + STEPS * puck_sim.control_size, dtype=torch.float64),
        [PUCK_TERMS["clearance"]],
    )
    term = PUCK_TERMS["clearance"]
    gap = 1.0 - 0.05 - e.trajectory.body_position("puck")[:, 0, 0] - 0.05
    assert torch.allclose(term.distances(e, slice(0, 13))[:, 0, 0], gap, atol=1e-9)


def test_clearance_follows_sizes_and_places_that_vary(puck_sim):
    """The gradient by all sizes and places of colliders, against central differences of the same term."""
    sim, rng = puck_sim, np.random.default_rng(5)
    term = Clearance(subject="puck", obstacles=["wall"], distance=1.2, when=running())
    names = ("shape.size", "shape.position")
    first = {name: sim.parameter(name)[0].clone() for name in names}
    ways = {name: torch.as_tensor(rng.uniform(0.5, 1.0, value.shape)) * (value != 0) for name, value in first.items()}
    start = torch.as_tensor(0.1 * rng.standard_normal(sim.nv))

    def loss(t: torch.Tensor) -> torch.Tensor:
        given = {name: first[name] + t * ways[name] for name in names}
        trajectory = sim.rollout(steps=STEPS, qd=start, parameters=given, outputs=term.outputs)
        return term.loss(episode_of(sim, trajectory, parameters=given))[0]

    t = torch.zeros((), dtype=torch.float64, requires_grad=True)
    loss(t).backward()
    with torch.no_grad():
        expected = (loss(torch.tensor(1e-5)) - loss(torch.tensor(-1e-5))) / 2e-5
    assert abs(expected) > 1e-3
    assert t.grad.item() == pytest.approx(expected.item(), rel=1e-7)


@pytest.mark.parametrize(
    ("condition", "met", "words"),
    [
        (Within(Reach(subject="upper", target=(0, 0, 0)), 1e-9), True, ["distance 0 µm", "at 0.12 s", "yes"]),
        (Within(Reach(subject="fore", target=(1, 0, 0)), 0.01), False, ["mm", "(needs ≤ 10 mm): no"]),
        (Within(Posture(joints=["elbow"], position=[0.0]), 3.2, held_for=0.05), True, ["at worst from 0.07 s"]),
        (
            Within(Pose(subject="upper", target=Fixed((0, 0, 0))), 0.1, angle_tolerance=1e-3),
            False,
            ["turn", "°", "no"],
        ),
        (StaysAbove("upper", -0.1), True, ["lowest 0 µm", "(needs ≥ -100 mm): yes"]),
        (StaysAbove("fore", 0.1), False, ["(needs ≥ 100 mm): no"]),
        (ControlLimitsKept(), False, ["lift exceeds its range by 25 %"]),
        (JointLimitsKept(), True, ["no joint has any"]),
    ],
)
def test_success_says_why(condition, met, words, arm_sim):
    size = arm_sim.nv + STEPS * arm_sim.control_size
    x = torch.full((size,), 3.0, dtype=torch.float64)
    x[: arm_sim.nv] = 0.0
    condition.check(arm_sim)
    verdicts = condition.judge(rolled(arm_sim, x, [condition]))
    assert succeeded(verdicts) == met
    text = " ".join(verdict.text for verdict in verdicts)
    for word in words:
        assert word in text


def test_joint_limits_are_judged_with_a_tolerance():
    scene = arm()
    scene.joints[0].limit = (-0.5, 0.02)
    sim = Simulator(scene)
    qd = torch.tensor([0.5, 0.0], dtype=torch.float64)
    e = episode_of(sim, sim.rollout(steps=STEPS, qd=qd))
    beyond = float((e.trajectory["q"][:, 0, 0] - 0.02).max())
    (verdict,) = JointLimitsKept(angle_tolerance=0.5 * beyond).judge(e)
    assert not verdict.met and "shoulder passes its limit" in verdict.text and verdict.value == beyond
    assert JointLimitsKept(angle_tolerance=1.1 * beyond).judge(e)[0].met


def test_no_condition_is_no_success():
    assert not succeeded([])


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: Reach(subject="for", target=(0, 0, 0)), UnknownNameError, "did you mean 'fore'"),
        (lambda: Reach(subject="fore", target="nobody"), UnknownNameError, "nobody"),
        (lambda: Reach(subject="fore", target=(0, 0, 0), axes="xq"), InputError, "axes='xq'"),
        (lambda: Reach(subject="fore", target=(0, 0)), InputError, "no place"),
        (lambda: Reach(subject="fore", target=(0, 0, float("nan"))), InputError, "finite"),
        (lambda: Reach(subject="fore", target=(0, 0, 0), weight=-1.0), InputError, "weight"),
        (lambda: Posture(joints=["elbow"], position=[0.0, 1.0]), InputError, "shape"),
        (lambda: Velocity(subject=(0, 0, 0)), InputError, "does not move"),
        (lambda: ContactForce(subject="fo"), UnknownNameError, "did you mean"),
        (lambda: Clearance(subject="fore", obstacles=[]), InputError, "no obstacle"),
        (lambda: Energy(kind="heat"), InputError, "heat"),
        (lambda: Kernel(kernel=_height_kernel, inputs=["nothing"]), InputError, "nothing"),
    ],
)
def test_wrong_terms_are_refused(make, error, words, arm_sim):
    with pytest.raises(error, match=words):
        make().check(arm_sim)


def test_times_outside_of_the_rollout_are_refused(arm_sim):
    x = torch.zeros(arm_sim.nv + STEPS * arm_sim.control_size, dtype=torch.float64)
    e = rolled(arm_sim, x, [Reach(subject="fore", target=(0, 0, 0))])
    with pytest.raises(InputError, match="outside of the rollout"):
        Reach(subject="fore", target=(0, 0, 0), when=at(0.5)).loss(e)
    with pytest.raises(InputError, match="held for 5 s"):
        Within(Reach(subject="fore", target=(0, 0, 0)), 1.0, held_for=5.0).judge(e)


def test_half_a_step_beyond_the_ends_still_counts():
    """The nearest row is the first or the last one there; any further is outside."""
    times = 0.01 * np.arange(11)
    assert at(-0.005).frames(times) == slice(0, 1)
    assert at(0.105).frames(times) == slice(10, 11)
    assert at(0.0449).frames(times) == slice(4, 5) and at(0.0451).frames(times) == slice(5, 6)
    for outside in (-0.0051, 0.1051):
        with pytest.raises(InputError, match="outside of the rollout"):
            at(outside).frames(times)


def test_effort_is_that_of_the_steps_named():
    """The last row has no step of its own and stands for the last one; others are just their own."""
    sim = Simulator(arm())
    controls = torch.arange(STEPS * sim.control_size, dtype=torch.float64).reshape(STEPS, 1, sim.control_size)
    episode = episode_of(sim, sim.rollout(controls=controls), {sim.control_names[0]: controls})
    effort = Effort()
    for rows, steps in (((2, 4), (2, 4)), ((0, STEPS + 1), (0, STEPS)), ((STEPS, STEPS + 1), (STEPS - 1, STEPS))):
        assert torch.equal(effort.errors(episode, slice(*rows)), controls[slice(*steps)])
