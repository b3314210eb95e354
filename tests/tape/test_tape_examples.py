"""The examples that bring their own kernels: they reach their goals, and what they write can be read again."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import warp as wp
from pxr import Usd, UsdGeom

from warpsim.tape import CheckpointedTape

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
    tape = CheckpointedTape(program, steps=steps, segment=13)
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


def test_net_arrives_and_is_written_as_points(tmp_path: Path) -> None:
    example = load("mass_spring_net")
    result = example.carry(steps=300, iterations=15)
    assert result["cost"].min() < 0.05 * result["cost"][0]
    path = tmp_path / "net.usda"
    example.write_points(path, result["points"], result["target"], every=10)
    stage = Usd.Stage.Open(str(path))
    points = UsdGeom.Points(stage.GetPrimAtPath("/World/Net")).GetPointsAttr()
    assert points.GetNumTimeSamples() == 31
    assert stage.GetEndTimeCode() == 30
    for frame in (0, 17, 30):
        np.testing.assert_allclose(np.array(points.Get(frame)), result["points"][10 * frame], atol=1e-6)


def test_net_keeps_momentum_when_free() -> None:
    """Springs pull equally at both ends: without corners, drag and gravity's own share, the center falls freely."""
    example = load("mass_spring_net")
    net = example.Net(side=5)
    net.parameters["drag"].zero_()
    net._corner.fill_(-1)
    rng = np.random.default_rng(1)
    state = {"x": net.rest_points()[None] + 0.02 * rng.normal(size=(1, 25, 3)), "v": rng.normal(size=(1, 25, 3))}
    steps, h = 200, example.TIME_STEP
    run = CheckpointedTape(net, steps=steps, segment=32).forward(state, differentiate=False)
    after = run.state()
    fallen = state["v"].mean(axis=1) + np.array([0.0, 0.0, -9.81]) * steps * h
    np.testing.assert_allclose(after["v"].mean(axis=1), fallen, atol=1e-12)
    assert wp.types.types_equal(net.state[0].dtype, wp.vec3d)
