"""Bodies and deformables as one problem: momentum, stiff contacts on light bodies, gradients across both."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import warpsim as ws
from cloth_scenes import directional, new_world
from warpsim.core.errors import SceneError
from warpsim.io.usd import author
from warpsim.tape.memory import Memory

BALL, DENSITY = 0.05, 600.0
BALL_MASS = DENSITY * 4 / 3 * np.pi * BALL**3


def lumped_masses(sim: ws.Simulator, density: float, matter: int = 0) -> np.ndarray:
    """(n,) kg: each vertex has a quarter of its tetrahedra."""
    data, rest = sim.scene.matters[matter].data, sim.scene.matters[matter].initial["x"]
    corners = data["elements"]
    volumes = np.linalg.det(rest[corners[:, 1:]] - rest[corners[:, :1]]) / 6.0
    out = np.zeros(len(rest))
    np.add.at(out, corners.ravel(), np.repeat(density * volumes / 4, 4))
    return out


def thrown(path: Path, *, stiffness: float | None = None, attached: bool = False) -> ws.Simulator:
    """In space: a ball thrown at a soft block off its center, or flying with its corners in its hand."""
    stage = author.new_stage()
    author.physics_scene(stage, steps_per_second=200, gravity=0.0)
    world = author.world(stage)
    start = {"velocity": (1.0, 0.2, 0), "angular_velocity": (0, 90, 200)}
    ball = author.body(world, "Ball", position=(-0.11, 0.02, 0.03), **start)
    author.sphere(ball, "Ball", BALL, density=DENSITY, collides=True)
    block = author.soft(
        world,
        "Block",
        box=(0.1, 0.1, 0.1),
        cells=2,
        young=2e4,
        density=500,
        friction=0.4,
        **({} if stiffness is None else {"contact_stiffness": stiffness}),
    )
    if attached:
        author.attach(block, "Hard", [0, 1], ball)
        author.attach(block, "Springy", [3], ball, stiffness=3e3, damping=1.0)
    author.save(stage, path)
    return ws.Simulator(path)


@pytest.mark.parametrize(("stiffness", "attached"), [(None, False), (1e7, False), (None, True)])
def test_linear_momentum_stays(stiffness: float | None, attached: bool, tmp_path: Path) -> None:
    """However stiff the contact is, and with points that the body carries and springs between them."""
    sim = thrown(tmp_path / "thrown.usda", stiffness=stiffness, attached=attached)
    made = sim.rollout(60, outputs=("block.solver_status", "block.contact_force"))
    assert int(made["block.solver_status"].abs().max()) == 0
    own = np.einsum("i,tij->tj", lumped_masses(sim, 500.0), made["block.v"][:, 0].numpy())
    # carried points start at rest, though their body moves: from the first step's end on all is one motion
    momentum = (BALL_MASS * made.qd[:, 0, :3].numpy() + own)[1 if attached else 0 :]
    np.testing.assert_allclose(momentum - momentum[0], np.zeros_like(momentum), atol=1e-12)
    assert float(made["block.v"][-1, 0, :, 0].mean()) > 0.1  # something has passed between them


def test_angular_momentum_passes_between_them(tmp_path: Path) -> None:
    """What the block's contact forces turn, the ball loses: its own spin and its path about the origin."""
    sim = thrown(tmp_path / "turned.usda")
    made = sim.rollout(40, outputs=("block.contact_force", "com"))
    h, inertia = 1 / 200, 0.4 * BALL_MASS * BALL**2
    place, velocity, spin = made.q[:, 0, :3].numpy(), made.qd[:, 0, :3].numpy(), _spin(made)
    angular = BALL_MASS * np.cross(place, velocity) + inertia * spin
    force, x = made["block.contact_force"][1:, 0].numpy(), made["block.x"][:-1, 0].numpy()
    assert np.abs(force).max() > 1.0
    torque = np.cross(x, force).sum(axis=1)  # on the block, where its points were at the start of the step
    np.testing.assert_allclose(np.diff(angular, axis=0), -h * torque, atol=1e-12)
    # and the block: elastic forces have no torque about where they act, which is the step's end
    mass, v = lumped_masses(sim, 500.0), made["block.v"][:, 0].numpy()
    end = made["block.x"][1:, 0].numpy()
    change = np.einsum("i,tij->tj", mass, np.cross(end, np.diff(v, axis=0)))
    np.testing.assert_allclose(change, h * np.cross(end, force).sum(axis=1), atol=1e-12)


def _spin(made: ws.Trajectory) -> np.ndarray:
    """(frames, 3) rad/s, world axes: R ω of the ball, whose velocities are its own."""
    w, u = made.q[:, 0, 3].numpy()[:, None], made.q[:, 0, 4:7].numpy()
    omega = made.qd[:, 0, 3:6].numpy()
    return omega + 2 * np.cross(u, np.cross(u, omega) + w * omega)


def test_heavy_block_lies_on_a_light_plate(tmp_path: Path) -> None:
    """1.2 kg on 12 g that lies on the ground: the plate's own contacts and the block's are one problem."""
    stage, world = new_world(rate=200)
    author.ground(world)
    plate = author.body(world, "Plate", position=(0, 0, 0.005))
    author.box(plate, "Plate", (0.12, 0.12, 0.005), density=42)
    author.soft(
        world,
        "Block",
        box=(0.2, 0.2, 0.1),
        cells=(2, 2, 1),
        position=(0, 0, 0.061),
        young=1e5,
        density=300,
        damping=0.02,
        mass_damping=8.0,
        contact_stiffness=1e5,
    )
    author.save(stage, tmp_path / "plate.usda")
    made = ws.Simulator(tmp_path / "plate.usda").rollout(300, outputs=("block.contact_force", "block.solver_status"))
    assert int(made["block.solver_status"].abs().max()) == 0
    weight = 9.81 * 300 * 0.2 * 0.2 * 0.1
    assert float(made["block.contact_force"][-1, 0, :, 2].sum()) == pytest.approx(
        weight, rel=1e-5
    )  # points are float32
    assert float(made.q[:, 0, 2].max()) < 0.0055  # it was never thrown
    # a vertex of 1e5 N/m carries about a ninth of the weight
    assert float(made["block.x"][-1, 0, :, 2].min()) == pytest.approx(float(made.q[-1, 0, 2]) + 0.005, abs=2e-4)


def hand(path: Path, balls: int = 1) -> ws.Simulator:
    """A hinged finger, driven by a torque alone, that presses a soft ball against a wall; or one ball on each side."""
    stage, world = new_world(rate=100)
    author.ground(world)
    author.box(world, "Wall", (0.01, 0.1, 0.1), position=(-0.05, 0, 0.1))
    finger = author.body(world, "Finger", position=(0.046, 0, 0.2), articulation_root=True)
    author.box(finger, "Pad", (0.005, 0.03, 0.08), position=(0, 0, -0.09), density=800)
    author.revolute(world, "Hinge", None, finger, "Y", limits=(-60, 60), attributes={"mjc:damping": 0.01})
    options = {"ball": 0.04, "cells": 2, "young": 4e4, "density": 400, "damping": 0.02, "contact_stiffness": 2e4}
    for k in range(balls):
        author.soft(world, f"Ball{k}", position=(0.091 * k, 0, 0.042), **options)
    author.save(stage, path)
    return ws.Simulator(path, controls=("joint_force",))


STEPS, CLOSING = 25, 8
"""Until the ball is held; while it is being pressed."""


@pytest.fixture(scope="module")
def sim(tmp_path_factory: pytest.TempPathFactory) -> ws.Simulator:
    return hand(tmp_path_factory.mktemp("hand") / "hand.usda")


def _loss(sim: ws.Simulator, given: dict[str, torch.Tensor], **options) -> torch.Tensor:
    """Where the ball and the finger come to, and how hard they touch."""
    torque = given["torque"].reshape(1, 1, 1).expand(CLOSING, 1, 1)
    named = {name: given[name] for name in given if name != "torque"}
    made = sim.rollout(CLOSING, {"joint_force": torque}, parameters=named, outputs=("ball0.contact_force",), **options)
    weights = torch.as_tensor(np.random.default_rng(1).normal(size=made["ball0.x"].shape[-2:]))
    force = 0.01 * made["ball0.contact_force"][-1].square().sum()
    return (made["ball0.x"][-1] * weights).sum() + 2.0 * made.q[-1].sum() + 0.1 * made.qd[-1].sum() + force


NAMES = (
    "ball0.young",
    "ball0.density",
    "ball0.damping",
    "ball0.contact_stiffness",
    "joint.damping",
    "shape.density",
    "shape.size",
)


def _given(sim: ws.Simulator) -> dict[str, torch.Tensor]:
    named = {name: sim.parameter(name)[0].clone() for name in NAMES}
    return {"torque": torch.tensor(0.4, dtype=torch.float64), **named}


def _gradients(sim: ws.Simulator, given: dict[str, torch.Tensor], **options) -> dict[str, torch.Tensor]:
    leaves = {name: value.clone().requires_grad_() for name, value in given.items()}
    return dict(zip(leaves, torch.autograd.grad(_loss(sim, leaves, **options), list(leaves.values())), strict=True))


def test_finger_squeezes_the_ball(sim: ws.Simulator) -> None:
    """So that what follows is about a grasp at all: the ball is pressed at both sides, hard for its mass."""
    torque = torch.full((STEPS, 1, 1), 0.4, dtype=torch.float64)
    outputs = ("ball0.contact_force", "ball0.solver_status", "ball0.solver_iterations")
    made = sim.rollout(STEPS, {"joint_force": torque}, outputs=outputs)
    sideways = made["ball0.contact_force"][-1, 0, :, 0]
    assert float(sideways[sideways > 0].sum()) > 1.0
    assert float(sideways[sideways < 0].sum()) < -1.0
    assert int(made["ball0.solver_status"].abs().max()) == 0
    assert int(made["ball0.solver_iterations"].max()) <= 30


@pytest.mark.parametrize("name", ["torque", *NAMES])
def test_gradients_across_both_agree_with_differences(sim: ws.Simulator, name: str) -> None:
    """Robot → ball and ball → robot, in one loss."""
    given = _given(sim)
    found = _gradients(sim, given)[name]
    scale = given[name].abs()
    direction = torch.as_tensor(np.random.default_rng(3).uniform(0.5, 1.0, size=tuple(scale.shape))) * scale
    for step in (1e-3, 1e-4, 1e-5):
        expected, error = directional(lambda g: _loss(sim, g), given, name, direction, step)
        if error < 2e-7 * abs(expected):
            break
    else:
        pytest.fail(f"no step without a switch of contact: {error / abs(expected):.1e}")
    assert float((found * direction).sum()) == pytest.approx(expected, rel=1e-6)


def test_same_bits_for_all_schedules(sim: ws.Simulator) -> None:
    given = _given(sim)
    found = _gradients(sim, given)
    for options in ({"memory": Memory(segment=1)}, {"memory": Memory(segment=7)}, {"memory": "2MB"}):
        for name, gradient in _gradients(sim, given, **options).items():
            assert torch.equal(gradient, found[name]), (options, name)


def test_finger_between_two_balls_feels_both(tmp_path: Path) -> None:
    """Two deformables that touch one body are one problem with it: forces balance in the end."""
    sim = hand(tmp_path / "two.usda", balls=2)
    made = sim.rollout(80, outputs=("ball0.contact_force", "ball1.contact_force", "ball1.solver_status"))
    assert int(made["ball1.solver_status"].abs().max()) == 0
    torque = torch.full((30, 1, 1), 0.3, dtype=torch.float64)
    pressed = sim.rollout(30, {"joint_force": torque}, outputs=("ball0.contact_force",))
    assert float(pressed["ball0.contact_force"][-1].abs().max()) > float(made["ball0.contact_force"][-1].abs().max())


def test_runge_kutta_is_refused(tmp_path: Path) -> None:
    stage, world = new_world(rate=100)
    body = author.body(world, "Body", position=(0, 0, 0.2))
    author.sphere(body, "Ball", 0.05)
    author.soft(world, "Block", box=(0.1, 0.1, 0.1), cells=1)
    author.save(stage, tmp_path / "rk.usda")
    scene = ws.Simulator(tmp_path / "rk.usda").scene
    scene.options.integrator = "rk4"
    with pytest.raises(SceneError, match="rk4"):
        ws.Simulator(scene).rollout(2)
