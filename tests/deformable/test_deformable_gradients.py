"""Gradients of rollouts of matter by all that they depend on, against central differences."""

from __future__ import annotations

import numpy as np
import pytest

from deformable_support import mixed_matter
from finite_differences import directional_estimate
from warpsim.core.errors import UnconvergedError
from warpsim.deformable.model import build
from warpsim.deformable.program import DeformableProgram
from warpsim.tape import AllStarts, CheckpointedTape, FullTape, Memory

STEPS = 6
WORLDS = 2
WORLD_PARAMETERS = ("time_step", "gravity", "mass_damping")
AUTHORED = (
    "rest",
    *(f"membrane.{name}" for name in ("young", "poisson", "thickness", "density", "damping")),
    *(f"tetrahedra.{name}" for name in ("young", "poisson", "density", "damping")),
    *(f"segments.{name}" for name in ("young", "radius", "density", "damping")),
    "hinges.factor",
    "folds.factor",
    "folds.angle",
    "joints.factor",
)


class Case:
    """A rollout of a matter of everything, the objective of which is linear in the states of three steps."""

    def __init__(self) -> None:
        rng = np.random.default_rng(5)
        self.model = build(mixed_matter(rng), worlds=WORLDS, time_step=0.01, mass_damping=0.3, tolerance=1e-11)
        self.program = DeformableProgram(self.model, controls=["force", "pin"], outputs=["solver_status"])
        n, pins = self.model.count, self.model.points[self.model.pinned]
        rest = self.program.initial_state()["x"]
        self.values = {
            "x": rest + 0.003 * rng.standard_normal(rest.shape),
            "v": 0.3 * rng.standard_normal(rest.shape),
            "force": 0.05 * rng.standard_normal((STEPS, WORLDS, n, 3)),
            "pin": pins + 0.01 * rng.standard_normal((STEPS, WORLDS, len(pins), 3)),
        }
        for name in (*AUTHORED, *WORLD_PARAMETERS):
            group = self.model.authored if name in self.model.authored else self.model.physical
            self.values[name] = group[name].numpy().copy()
        self.seeds = {
            name: {step: rng.standard_normal((WORLDS, n, 3)) for step in (2, 4, STEPS)} for name in ("x", "v")
        }
        self.tape = CheckpointedTape(self.program, steps=STEPS)

    def set(self, values: dict[str, np.ndarray]) -> None:
        for name in (*AUTHORED, *WORLD_PARAMETERS):
            self.model.set(name, values[name])
        self.model.derive()

    def run(self, values: dict[str, np.ndarray], tape: CheckpointedTape, **options):
        self.set(values)
        state = {name: values[name] for name in ("x", "v")}
        return tape.forward(state, {name: values[name] for name in ("force", "pin")}, **options)

    def loss(self, values: dict[str, np.ndarray]) -> float:
        run = self.run(values, self.tape, keep_states=True, keep_outputs=True, differentiate=False)
        assert not run.outputs["solver_status"].numpy().any()
        states = {name: run.states[name].numpy() for name in ("x", "v")}
        return sum(np.vdot(w, states[name][step]) for name, by in self.seeds.items() for step, w in by.items())

    def gradients(self, tape: CheckpointedTape) -> dict[str, np.ndarray]:
        run = self.run(self.values, tape)
        found = tape.backward(run, state_seeds=self.seeds)
        out = {name: found.initial_state[name].numpy().copy() for name in ("x", "v")}
        out |= {name: found.inputs[name].numpy().copy() for name in ("force", "pin")}
        out |= {name: self.model.physical[name].grad.numpy().copy() for name in WORLD_PARAMETERS}
        return out | self.model.authored_gradients()


@pytest.fixture(scope="module")
def case() -> Case:
    return Case()


@pytest.fixture(scope="module")
def gradients(case) -> dict[str, np.ndarray]:
    return case.gradients(case.tape)


@pytest.mark.parametrize("name", ["x", "v", "force", "pin", *WORLD_PARAMETERS, *AUTHORED])
def test_gradient_matches_central_differences(case, gradients, name):
    rng = np.random.default_rng(len(name))
    value = case.values[name]
    scale = np.abs(value).max() if name not in ("rest", "x", "pin") else 0.05
    direction = scale * rng.standard_normal(value.shape)
    if name in WORLD_PARAMETERS:
        direction = 0.3 * direction

    def loss(moved: np.ndarray) -> float:
        return case.loss({**case.values, name: moved})

    truth = directional_estimate(loss, value, direction, steps=(1e-2, 3e-3, 1e-3, 3e-4, 1e-4))
    case.set(case.values)
    found = np.vdot(gradients[name], direction)
    # a direction that happens to lie across the gradient has fewer digits than the gradient
    size = max(abs(truth.value), 0.03 * np.linalg.norm(gradients[name]) * np.linalg.norm(direction))
    assert size > 0.0
    assert truth.error <= 1e-8 * size, truth
    assert abs(found - truth.value) <= 1e-8 * size, (found, truth)


def test_schedules_and_capture_give_the_same_bits(case, gradients):
    tapes = {
        "checkpointed": CheckpointedTape(case.program, steps=STEPS, memory=Memory(segment=2, schedule=AllStarts())),
        "eager": CheckpointedTape(case.program, steps=STEPS, capture=False, memory=Memory(schedule=FullTape())),
        "groups": CheckpointedTape(case.program, steps=STEPS, groups=2),
    }
    for how, tape in tapes.items():
        found = case.gradients(tape)
        for name, value in gradients.items():
            assert found[name].tobytes() == value.tobytes(), (how, name)


def test_slot_keeps_two_states_and_a_report(case):
    """No Hessian, no factor, no row: 96 bytes a vertex for the states and their adjoints."""
    small = CheckpointedTape(case.program, steps=STEPS, memory=Memory(schedule=FullTape())).plan
    large = CheckpointedTape(case.program, steps=STEPS + 100, memory=Memory(schedule=FullTape())).plan
    states = 2 * 48 * case.model.count * WORLDS
    controls = 2 * 24 * (case.model.count + 2) * WORLDS
    assert large.bytes - small.bytes <= 100 * (states + controls + 1024)


def test_no_gradient_through_a_step_that_did_not_converge():
    model = build(mixed_matter(np.random.default_rng(5)), maximum_iterations=1)
    program = DeformableProgram(model)
    tape = CheckpointedTape(program, steps=3)
    run = tape.forward(program.initial_state())
    with pytest.raises(UnconvergedError, match="step 2"):
        tape.backward(run, state_seeds={"x": {-1: np.ones((1, model.count, 3))}})
