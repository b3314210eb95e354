"""A run that goes on with another tape: the same bits, whatever the cuts of the two."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tape_toys import Chain
from warpsim.core.driving import drive
from warpsim.tape import AllStarts, CheckpointedTape, FullTape, Memory, Revolve

STEPS = 41
CUTS = {
    "full": {"memory": Memory(schedule=FullTape())},
    "sevens": {"memory": Memory(segment=7, schedule=AllStarts())},
    "fives": {"memory": Memory(segment=5, schedule=AllStarts())},
    "few": {"memory": Memory(segment=3, schedule=Revolve(4))},
}


def start(chain: Chain) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    full = (chain.worlds, chain.links)
    return {"x": rng.normal(size=full), "v": np.zeros(full), "guess": np.zeros(full), "turns": np.zeros(full[0], int)}


def results(tape: CheckpointedTape, run) -> list[np.ndarray]:
    """Trajectories, and gradients of two backward passes, all bits."""
    seeds = {"x": np.random.default_rng(2).normal(size=(STEPS + 1, *tape.program.state[0].shape))}
    found = [run.states["x"].numpy().copy(), run.outputs["energy"].numpy().copy()]
    for _ in range(2):
        made = tape.backward(run, state_seeds=seeds, retain=True)
        found += [made.initial_state["x"].numpy().copy(), made.inputs["u"].numpy().copy()]
        found += [parameter.grad.numpy().copy() for parameter in tape.program.parameters.values()]
    return found


@pytest.mark.parametrize("keep_every", [1, 4])
@pytest.mark.parametrize("reached", [0, 1, 14, 15, 38, STEPS])
def test_cuts_of_both_tapes_change_no_bit(reached, keep_every):
    chain = Chain(3, 2)
    given = np.random.default_rng(3).normal(size=(STEPS, 3, 2))
    keep = {"keep_states": ["x"], "keep_outputs": ["energy"], "keep_every": keep_every}
    tapes = {
        name: [CheckpointedTape(chain, steps=STEPS, groups=2, **cut) for _ in range(2)] for name, cut in CUTS.items()
    }
    expected = results(tapes["full"][0], tapes["full"][0].forward(start(chain), {"u": given}, **keep))
    for before, after in itertools.product(CUTS, CUTS):
        old, new = tapes[before][0], tapes[after][1]
        run = old.start(start(chain), {"u": given}, **keep)
        run.advance(reached)
        taken = new.take_up(run)
        run.release()
        assert taken.step == reached
        taken.advance()
        for got, wanted in zip(results(new, taken), expected, strict=True):
            np.testing.assert_array_equal(got, wanted, err_msg=f"{before} → {after}")
        taken.release()


def test_starts_after_the_one_that_was_reached_are_kept():
    """So that a backward pass computes again what lies before, and not all of it."""
    chain = Chain(1, 2)
    old = CheckpointedTape(chain, steps=STEPS, memory=Memory(segment=7))
    run = old.start(start(chain))
    run.advance(13)
    new = CheckpointedTape(chain, steps=STEPS, memory=Memory(segment=5, schedule=AllStarts()))
    taken = new.take_up(run)
    taken.advance()
    assert list(taken.parts[0].snapshots.stored) == [0, 3, 4, 5, 6, 7, 8]
    same = CheckpointedTape(chain, steps=STEPS, memory=Memory(segment=7)).take_up(run)
    assert list(same.parts[0].snapshots.stored) == [0, 1]


def test_groups_on_the_way_go_on_each_from_where_it_is():
    """One group of worlds failed at step 20, the other one went on to the end."""
    chain = Chain(2, 2)
    force = np.zeros((STEPS, 2, 2))
    tape = CheckpointedTape(chain, steps=STEPS, memory=Memory(segment=6), groups=2)
    expected = tape.forward(start(chain), {"u": force}, keep_states=["x"]).states["x"].numpy().copy()
    run = tape.start(start(chain), {"u": force}, keep_states=["x"])
    drive(tape._sweeps[1].forward(run.parts[1], STEPS, lambda: None))
    drive(tape._sweeps[0].forward(run.parts[0], 20, lambda: None))
    other = CheckpointedTape(chain, steps=STEPS, memory=Memory(segment=4), groups=2)
    taken = other.take_up(run)
    assert [part.step for part in taken.parts] == [20, STEPS]
    taken.advance()
    np.testing.assert_array_equal(taken.states["x"].numpy(), expected)
