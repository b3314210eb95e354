"""The same bits, however a rollout is run: captured or eager, here or in another process, in any company of worlds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from core_fingerprint import CONTROLS, fingerprint, inputs_of, results, rollout_of
from rigid_support import INTEGRATORS

TESTS = Path(__file__).resolve().parents[1] / "support"


def axis_of(name: str) -> int:
    """Which axis of a result counts worlds."""
    return 1 if name.startswith("state ") or name.removeprefix("gradient ") in CONTROLS else 0


def assert_same_bits(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    assert set(found) == set(expected)
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_captured_and_eager_agree(integrator):
    captured, eager = rollout_of(integrator), rollout_of(integrator, capture=False)
    inputs = inputs_of(captured)
    assert_same_bits(results(eager, inputs), results(captured, inputs))


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_second_replay_agrees(integrator):
    rollout = rollout_of(integrator)
    inputs = inputs_of(rollout)
    first = results(rollout, inputs)
    results(rollout, {name: 1.01 * value for name, value in inputs.items()})
    assert_same_bits(results(rollout, inputs), first)


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_order_and_number_of_worlds_do_not_matter(integrator):
    together = rollout_of(integrator, worlds=4)
    inputs = inputs_of(together)
    expected = results(together, inputs)
    for worlds in ([2, 0, 3, 1], [3, 1], [2]):
        other = rollout_of(integrator, worlds=len(worlds))
        other.weights = {name: weight[:, worlds] for name, weight in together.weights.items()}
        chosen = {name: value.take(worlds, 1 if name in CONTROLS else 0) for name, value in inputs.items()}
        found = results(other, chosen)
        assert_same_bits(found, {name: value.take(worlds, axis_of(name)) for name, value in expected.items()})


def test_two_processes_agree():
    command = [sys.executable, str(TESTS / "core_fingerprint.py"), "euler"]
    path = os.pathsep.join([str(TESTS.parents[1]), str(TESTS), os.environ.get("PYTHONPATH", "")])
    ran = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout.splitlines()[-1]) == fingerprint("euler")
