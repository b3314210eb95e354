"""Launches divided among threads: the same bits for any number of them, and true gradients."""

from __future__ import annotations

import os

import numpy as np
import pytest

from tools.bench.net import DividedNet
from warpsim.core.errors import InputError
from warpsim.tape import CheckpointedTape, Memory
from warpsim.tape.crew import Crew, crew_of
from warpsim.tape.divided import ranges

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
needs_two_cores = pytest.mark.skipif(CORES < 2, reason="one core: nothing to divide among")


def gradient(net: DividedNet, steps: int = 12, **choices) -> dict[str, np.ndarray]:
    """The final state and the gradient of a linear form of it."""
    rng = np.random.default_rng(1)
    seed = rng.normal(size=(1, net.nodes, 3))
    tape = CheckpointedTape(net, steps=steps, **choices)
    net.parameters["stiffness"].grad.zero_()
    run = tape.forward(net.start())
    end = run.state()
    made = tape.backward(run, state_seeds={"x": {-1: seed}})
    return {
        "x": np.array(end["x"]),
        "v": np.array(end["v"]),
        "by_x": made.initial_state["x"].numpy(),
        "by_stiffness": net.parameters["stiffness"].grad.numpy().copy(),
        "loss": float((seed * np.array(end["x"])).sum()),
    }


def test_ranges_cover_everything_once():
    for size in (1, 5, 255, 256, 511, 512, 100_000):
        parts = ranges(size)
        covered = np.concatenate([np.arange(first, first + count) for first, count in parts])
        assert (covered == np.arange(size)).all()
        assert len(parts) <= 16


@needs_two_cores
@pytest.mark.parametrize(
    "choices", [{}, {"memory": Memory(segment=5)}, {"memory": Memory(segment=1)}, {"memory": "2MB"}]
)
def test_bits_do_not_depend_on_threads(choices):
    alone = gradient(DividedNet(9), capture=False)
    for threads in (1, 2):
        shared = gradient(DividedNet(9), threads=threads, **choices)
        for name, value in alone.items():
            assert np.array_equal(shared[name], value), (name, threads)


@needs_two_cores
def test_gradients_are_those_of_central_differences():
    net = DividedNet(6)
    found = gradient(net, threads=2)
    rng = np.random.default_rng(5)
    direction = rng.normal(size=(1, net.springs))
    errors = []
    for step in (1e-2, 1e-3, 1e-4):
        sides = []
        for sign in (1.0, -1.0):
            net.parameters["stiffness"].assign(40.0 + sign * step * direction)
            sides.append(gradient(net)["loss"])
        slope = (sides[0] - sides[1]) / (2 * step)
        errors.append(abs(slope - (found["by_stiffness"] * direction).sum()) / abs(slope))
    assert min(errors) < 1e-8


def test_more_threads_than_cores_are_refused():
    with pytest.raises(InputError, match="cores"):
        crew_of(CORES + 1)


def test_a_crew_runs_every_member_and_survives_an_error():
    crew = Crew(3)
    for _ in range(200):
        seen = []
        crew.run(seen.append)
        assert sorted(seen) == [0, 1, 2]

    def fails(member: int) -> None:
        if member == 0:
            raise ValueError

    with pytest.raises(ValueError):
        crew.run(fails)
    seen = []
    crew.run(seen.append)
    assert sorted(seen) == [0, 1, 2]
