"""Steps behind the last seed are not gone backward, and the gradient is the same to the last bit."""

from __future__ import annotations

import numpy as np
import pytest

from tape_toys import Chain
from warpsim.tape import CheckpointedTape, Memory
from warpsim.tape.segment import Segment

STEPS, WORLDS, LINKS = 23, 2, 3


@pytest.fixture
def walked(monkeypatch):
    """Numbers of steps gone backward, one per segment."""
    counts: list[int] = []
    plain = Segment.adjoint_steps

    def counted(self, first, count):
        counts.append(count)
        return plain(self, first, count)

    monkeypatch.setattr(Segment, "adjoint_steps", counted)
    return counts


def gradients(segment: int, last: int | None, *, by_output: bool = False) -> dict[str, np.ndarray]:
    """Of a random objective of the states (or outputs) up to `last`; None: of none."""
    rng = np.random.default_rng(5)
    program = Chain(worlds=WORLDS, links=LINKS)
    full = (WORLDS, LINKS)
    start = {
        "x": 0.5 * rng.normal(size=full),
        "v": 0.5 * rng.normal(size=full),
        "guess": np.zeros(full),
        "turns": np.zeros(WORLDS, dtype=np.int32),
    }
    inputs, seed = {"u": rng.normal(size=(STEPS, *full))}, rng.normal(size=(STEPS + 1, *full))
    energy = rng.normal(size=(STEPS, WORLDS))
    seed[0 if last is None else last + 1 :] = 0.0
    energy[0 if last is None else last + 1 :] = 0.0
    tape = CheckpointedTape(program, steps=STEPS, memory=Memory(segment=segment))
    seeds = {"output_seeds": {"energy": energy}} if by_output else {"state_seeds": {"x": seed}}
    found = tape.backward(tape.forward(start, inputs), **seeds)
    made = {f"initial {name}": found.initial_state[name].numpy() for name in ("x", "v")}
    made["inputs"] = found.inputs["u"].numpy()
    made |= {name: array.grad.numpy().copy() for name, array in program.parameters.items()}
    return made


@pytest.mark.parametrize("by_output", [False, True])
@pytest.mark.parametrize("last", [0, 4, 5, 6, 14, 22])
def test_steps_behind_the_last_seed_are_left_out(walked, last, by_output):
    expected = gradients(STEPS, last, by_output=by_output)
    walked.clear()
    found = gradients(5, last, by_output=by_output)
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)
    assert sum(walked) == min(5 * (last // 5 + 1), STEPS)  # segments of 5


def test_an_objective_of_nothing_has_no_gradient(walked):
    found = gradients(5, None)
    assert not walked
    assert not any(value.any() for value in found.values())
