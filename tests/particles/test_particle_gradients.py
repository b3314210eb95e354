"""Adjoints of the liquid against central differences, and the same bits however the tape is driven."""

from __future__ import annotations

import numpy as np
import pytest

from finite_differences import directional_estimate
from particle_scenes import about_y, box_cup, placed, rotation_matrix
from warpsim.particles import Domain, Liquid, ParticleProgram, box_lattice, transfer
from warpsim.tape import AllStarts, CheckpointedTape, Memory, Revolve

CELL = 0.01
TILT = about_y(0.2)
PLACE = np.array([0.0613, 0.0527, 0.0331])


class Sloshing:
    """A small cup with liquid in it, tilted, pushed and rotated: every wall law is at work."""

    def __init__(self, steps: int, *, substeps: int = 1, **options) -> None:
        rng = np.random.default_rng(5)
        shapes, poses = box_cup(0.03, 0.05, 0.012, stick=0.3)
        self.poses = placed(poses, PLACE, TILT)
        lattice = box_lattice((-0.015, -0.015, 0.0), (0.015, 0.015, 0.03), CELL / 2)
        lattice += 0.05 * CELL * rng.uniform(-1, 1, lattice.shape) * [0.9, 0.9, 0.9]
        self.x = lattice @ rotation_matrix(TILT).T + PLACE
        self.program = ParticleProgram(
            Domain.around((-0.01, -0.01, 0.0), (0.13, 0.12, 0.12), CELL),
            Liquid(1000.0, 4e4, 0.5),
            shapes,
            volume=(CELL / 2) ** 3,
            particles=len(self.x),
            step=4e-4,
            substeps=substeps,
        )
        self.steps = steps
        self.tape = CheckpointedTape(self.program, steps=steps, **options)
        self.start = self.program.start(self.x, 0.2 * rng.normal(size=self.x.shape), walls=self.poses)
        self.start["volume_ratio"] -= 0.02 * rng.uniform(0.2, 1.0, (1, len(self.x)))
        self.start["slope"] += rng.normal(size=self.x.shape)
        self.start["rate"] += 5.0 * rng.normal(size=(*self.x.shape, 3))
        inputs = self.program.standing(steps, self.poses)
        inputs["wall_twist"] += rng.normal(size=6) * [2.0, 2.0, 2.0, 0.3, 0.3, 0.3]
        self.inputs = inputs
        self.seeds = {name: rng.normal(size=value.shape) for name, value in self.start.items()}
        self.seeds["rate"] *= 1e-3
        self.seeds["slope"] *= 1e-3
        self.by_wrench = 0.1 * rng.normal(size=(steps, *self.program.outputs[0].shape, 6))

    def run(self, start: dict, inputs: dict):
        return self.tape.forward(start, inputs, keep_outputs=["wrench"])

    def loss(self, start: dict, inputs: dict) -> float:
        run = self.run(start, inputs)
        state = run.state()
        total = sum(float((seed * state[name]).sum()) for name, seed in self.seeds.items())
        return total + float((self.by_wrench * run.outputs["wrench"].numpy()).sum())

    def gradients(self):
        run = self.run(self.start, self.inputs)
        return self.tape.backward(
            run,
            state_seeds={name: {-1: seed} for name, seed in self.seeds.items()},
            output_seeds={"wrench": self.by_wrench},
        )


SCALE = {"x": 1e-4, "v": 0.1, "rate": 1.0, "volume_ratio": 1e-3, "slope": 0.1}
WALLS = {"wall_position": 1e-4, "wall_rotation": 1e-3, "wall_twist": 0.1}
PARAMETERS = {
    "density": 10.0,
    "bulk_modulus": 400.0,
    "viscosity": 0.01,
    "gravity": 0.1,
    "wall_size": 1e-4,
    "wall_stick": 0.01,
}
STEPS = (1e-3, 1e-4, 1e-5)


def check(actual: np.ndarray, direction: np.ndarray, f, x: np.ndarray, name: str) -> None:
    estimate = directional_estimate(f, x, direction, STEPS)
    value = float((actual * direction).sum())
    assert abs(value - estimate.value) <= 1e-6 * abs(estimate.value), (name, value, estimate)


@pytest.mark.parametrize("substeps", [1, 3])
def test_gradients_are_those_of_central_differences(rng, substeps):
    case = Sloshing(12 // substeps, substeps=substeps)
    gradients = case.gradients()
    by_start = {name: np.array(gradients.initial_state[name].numpy()) for name in SCALE}
    by_input = {name: np.array(gradients.inputs[name].numpy()) for name in WALLS}
    by_parameter = {name: case.program.parameters[name].grad.numpy().copy() for name in PARAMETERS}
    for name, scale in SCALE.items():
        direction = scale * rng.normal(size=case.start[name].shape)
        f = lambda value, name=name: case.loss({**case.start, name: value}, case.inputs)  # noqa: E731
        check(by_start[name], direction, f, case.start[name], name)
    for name, scale in WALLS.items():
        direction = scale * rng.normal(size=case.inputs[name].shape)
        f = lambda value, name=name: case.loss(case.start, {**case.inputs, name: value})  # noqa: E731
        check(by_input[name], direction, f, case.inputs[name], name)
    for name, scale in PARAMETERS.items():
        array = case.program.parameters[name]
        before = array.numpy().copy()
        direction = scale * rng.normal(size=before.shape)

        def f(value, array=array):
            array.assign(value)
            return case.loss(case.start, case.inputs)

        check(by_parameter[name], direction, f, before, name)
        array.assign(before)


def _bits(case: Sloshing) -> list[bytes]:
    gradients = case.gradients()
    found = [gradients.initial_state[name].numpy() for name in SCALE]
    found += [gradients.inputs[name].numpy() for name in WALLS]
    found += [case.program.parameters[name].grad.numpy() for name in PARAMETERS]
    return [np.ascontiguousarray(value).tobytes() for value in found]


def test_bits_do_not_depend_on_the_schedule():
    expected = _bits(Sloshing(12))
    for options in (
        dict(memory=Memory(segment=1, schedule=AllStarts())),
        dict(memory=Memory(segment=5, schedule=AllStarts())),
        dict(memory=Memory(segment=2, schedule=Revolve(2))),
        dict(capture=False),
        dict(threads=2),
    ):
        assert _bits(Sloshing(12, **options)) == expected, options


def test_bits_do_not_depend_on_the_division_among_threads(monkeypatch):
    expected = _bits(Sloshing(8))
    monkeypatch.setattr(transfer, "DIVIDED_FROM", 1)
    for threads in (1, 2):
        assert _bits(Sloshing(8, threads=threads)) == expected
