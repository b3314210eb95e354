"""The examples that bring their own kernels: they reach their goals, and what they write can be read again."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from warpsim.tape import CheckpointedTape, Memory

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def load(name: str) -> ModuleType:
    """An example as a module."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_wave_equation_finds_the_patch() -> None:
    example = load("wave_equation")
    result = example.invert(iterations=12)
    assert result["misfit"][-1] < 0.2 * result["misfit"][0]
    assert np.corrcoef(result["truth"].ravel(), result["found"].ravel())[0, 1] > 0.8


def test_wave_equation_gradient_matches_differences() -> None:
    example = load("wave_equation")
    size, steps = 24, 90
    sources, microphones = example.layout(size)
    program = example.Membrane(np.ones((size, size)), sources, microphones)
    tape = CheckpointedTape(program, steps=steps, memory=Memory(segment=13))
    rest = {name: np.zeros((len(sources), size, size)) for name in ("u", "v")}
    tap = {"tap": example.ricker(steps, len(sources))}
    weights = np.random.default_rng(0).normal(size=(steps, len(sources), len(microphones)))
    tape.backward(tape.forward(rest, tap), output_seeds={"heard": weights})
    speed2 = program.parameters["speed2"]
    gradient, values = speed2.grad.numpy().copy(), speed2.numpy()
    for place in ((0, 12, 11), (3, 9, 14)):
        ends = []
        for sign in (1.0, -1.0):
            values[place] += sign * 1e-4
            run = tape.forward(rest, tap, keep_outputs=True, differentiate=False)
            ends.append((run.outputs.heard.numpy() * weights).sum())
            values[place] -= sign * 1e-4
        assert gradient[place] == pytest.approx((ends[0] - ends[1]) / 2e-4, rel=1e-6)
