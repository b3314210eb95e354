"""Contact of vertices with shapes that stand still: weights, friction, sliding, and gradients."""

from __future__ import annotations

import numpy as np
import pytest

from deformable_support import block, final_state, grid_sheet
from finite_differences import directional_estimate
from warpsim.core.errors import SceneError
from warpsim.deformable.description import Matter, Obstacle, Sheet, Volume
from warpsim.deformable.model import build
from warpsim.deformable.program import DeformableProgram
from warpsim.tape import AllStarts, CheckpointedTape, Memory

STIFFNESS = 1e4
"""N/m, of each vertex."""


def resting_block(friction: float, gravity: tuple[float, float, float], time_step: float = 0.005):
    """A soft cube of 0.1 m on a plane, with damping enough to come to rest soon."""
    points, tetrahedra = block((2, 2, 1), (0.1, 0.1, 0.05))
    matter = Matter(
        points,
        [Volume(tetrahedra, young=2e5, density=500.0, damping=0.01)],
        obstacles=[Obstacle("plane", friction=friction)],
        contact_stiffness=STIFFNESS,
        contact_damping=STIFFNESS * time_step,
    )
    return build(matter, time_step=time_step, gravity=gravity)


def test_contact_force_is_the_weight():
    model = resting_block(0.0, (0.0, 0.0, -9.81))
    program = DeformableProgram(model, outputs=["solver_status"])
    x, v = final_state(program, 400, program.initial_state())
    force = STIFFNESS * np.maximum(-x[0, :, 2], 0.0).sum()
    assert np.abs(v[..., 2]).max() < 1e-10
    assert force == pytest.approx(9.81 * model.physical["mass"].numpy().sum(), rel=1e-8)


@pytest.mark.parametrize("ratio", [0.99, 1.01])
def test_block_on_an_incline_sticks_or_slips(ratio):
    """It slips where tan θ > μ, and then with g(sin θ − μ cos θ)."""
    friction, steps, h = 0.4, 300, 0.005
    angle = np.arctan(friction * ratio)
    pull = 9.81 * np.array([np.sin(angle), 0.0, -np.cos(angle)])
    model = resting_block(friction, tuple(pull), h)
    program = DeformableProgram(model, outputs=["solver_status"])
    mass = model.physical["mass"].numpy()[0, :, None]
    speeds = []
    state = program.initial_state()
    for _ in range(2):
        x, v = final_state(program, steps, state)
        state = {"x": x, "v": v}
        speeds.append(((mass * v[0]).sum(axis=0) / mass.sum())[0])
    gained = (speeds[1] - speeds[0]) / (steps * h)
    if ratio < 1.0:
        assert abs(gained) < 1e-4
        assert abs(speeds[1]) < 1e-3
    else:
        assert gained == pytest.approx(pull[0] + friction * pull[2], rel=0.01)


def test_sliding_neither_hovers_nor_sinks():
    """At 1 m/s the gap is within 0.1 mm of the resting one; only the slowing down lowers it, by μ|a_t|(h² + hc/k)."""
    friction, h = 0.5, 0.0025
    model = resting_block(friction, (0.0, 0.0, -9.81), h)
    program = DeformableProgram(model, outputs=["solver_status"])
    x, v = final_state(program, 400, program.initial_state())
    slid, _ = final_state(program, 30, {"x": x, "v": v + [1.0, 0.0, 0.0]})
    assert slid[0, :, 0].mean() - x[0, :, 0].mean() > 0.04
    bottom = model.points[:, 2] == 0.0
    lower = x[0, bottom, 2].mean() - slid[0, bottom, 2].mean()
    assert lower == pytest.approx(friction * friction * 9.81 * 2 * h * h, rel=0.2)
    assert abs(lower) < 1e-4


class Drape:
    """A cloth that has fallen on a sphere and a ground, slides there, and is differentiated over a few steps."""

    names = ("x", "v", "contact.stiffness", "contact.damping", "contact.radius", "time_step", "gravity")
    shapes = ("obstacles.position", "obstacles.size", "obstacles.friction", "obstacles.rotation")

    def __init__(self) -> None:
        rng = np.random.default_rng(3)
        points, triangles = grid_sheet(6, 6, 0.3, 0.3)
        points = points + [-0.15, -0.14, 0.105]
        matter = Matter(
            points,
            [Sheet(triangles, young=2e4, thickness=1e-3, density=300.0, damping=0.02, bending=20.0)],
            obstacles=[
                Obstacle("sphere", (0.1, 0.0, 0.0), (0.0, 0.0, 0.0), friction=0.3),
                Obstacle("capsule", (0.03, 0.2, 0.0), (0.1, 0.05, 0.02), (0.8, 0.6, 0.0, 0.0), friction=0.2),
            ],
            contact_stiffness=500.0,
            contact_damping=1.0,
            radius=0.002,
        )
        self.model = build(matter, time_step=0.005, tolerance=1e-11)
        self.program = DeformableProgram(self.model, outputs=["solver_status"])
        state = self.program.initial_state()
        state["v"] = state["v"] + [0.3, 0.2, 0.0]
        self.steps = 8
        self.tape = CheckpointedTape(self.program, steps=self.steps)
        x, v = final_state(self.program, 40, state)
        self.values = {"x": x, "v": v}
        for name in (*self.names[2:], *self.shapes):
            self.values[name] = self.model.physical[name].numpy().copy()
        self.seed = rng.standard_normal(x.shape)

    def set(self, values: dict[str, np.ndarray]) -> None:
        for name in (*self.names[2:], *self.shapes):
            self.model.set(name, values[name])

    def loss(self, values: dict[str, np.ndarray]) -> float:
        self.set(values)
        x, _ = final_state(self.program, self.steps, {name: values[name] for name in ("x", "v")})
        return float(np.vdot(self.seed, x))

    def gradients(self, tape: CheckpointedTape) -> dict[str, np.ndarray]:
        self.set(self.values)
        run = tape.forward({name: self.values[name] for name in ("x", "v")})
        found = tape.backward(run, state_seeds={"x": {-1: self.seed}})
        out = {name: found.initial_state[name].numpy().copy() for name in ("x", "v")}
        return out | {name: self.model.physical[name].grad.numpy().copy() for name in self.values if name not in out}


@pytest.fixture(scope="module")
def drape() -> Drape:
    return Drape()


@pytest.fixture(scope="module")
def gradients(drape) -> dict[str, np.ndarray]:
    return drape.gradients(drape.tape)


def test_drape_touches_and_slides(drape):
    """What the gradients below go through: some vertices touch, some do not."""
    x = drape.values["x"][0]
    touching = np.linalg.norm(x, axis=1) < 0.1 + 0.002
    assert 3 <= np.count_nonzero(touching) < len(x) - 3
    assert np.abs(drape.values["v"][0][touching]).max() > 0.05


@pytest.mark.parametrize("name", [*Drape.names, *Drape.shapes])
def test_gradient_through_contact_matches_central_differences(drape, gradients, name):
    rng = np.random.default_rng(len(name))
    value = drape.values[name]
    scale = {"x": 1e-3, "obstacles.position": 1e-3, "obstacles.rotation": 1e-2}.get(name, 0.01 * np.abs(value).max())
    direction = scale * rng.standard_normal(value.shape)
    truth = directional_estimate(
        lambda moved: drape.loss({**drape.values, name: moved}), value, direction, steps=(1e-2, 3e-3, 1e-3, 3e-4)
    )
    drape.set(drape.values)
    found = np.vdot(gradients[name], direction)
    size = max(abs(truth.value), 0.03 * np.linalg.norm(gradients[name]) * np.linalg.norm(direction))
    assert size > 0.0
    assert truth.error <= 1e-6 * size, truth
    assert abs(found - truth.value) <= 1e-6 * size, (found, truth)


def test_schedules_give_the_same_bits_in_contact(drape, gradients):
    for tape in (
        CheckpointedTape(drape.program, steps=drape.steps, memory=Memory(segment=3, schedule=AllStarts())),
        CheckpointedTape(drape.program, steps=drape.steps, capture=False),
    ):
        found = drape.gradients(tape)
        assert all(found[name].tobytes() == value.tobytes() for name, value in gradients.items())


def test_unknown_obstacle_is_named():
    points, triangles = grid_sheet(2, 2)
    with pytest.raises(SceneError, match="obstacle 0: kind 'ball'"):
        build(Matter(points, [Sheet(triangles)], obstacles=[Obstacle("ball")]))
