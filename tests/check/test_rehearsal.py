"""Scenes by the path of a CUDA device, on the CPU: the same bits, and nothing read or allocated where none may be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import warp as wp

import warpsim as ws
from example_support import EXAMPLES as EXAMPLE_FILES
from example_support import load_example
from warpsim.check.rehearsal import CAPTURE, HOT, rehearsal
from warpsim.tape import Memory
from warpsim.tape.part import Keep
from warpsim.tape.segment import Segment

SCENES = Path(__file__).resolve().parents[2] / "scenes"
QUICK = ("pendulum", "stack")
EXAMPLES = sorted(path.stem for path in EXAMPLE_FILES.glob("*.py"))
NAMES = sorted(path.stem for path in SCENES.glob("*.usda"))


def motion(scene: Path, steps: int = 6) -> dict[str, torch.Tensor]:
    """States of a short rollout in two worlds and three segments, and what a loss of them gives the controls."""
    sim = ws.Simulator(scene, worlds=2)
    controls = torch.full((steps, 2, sim.control_size), 0.1, dtype=sim.torch_dtype, requires_grad=True)
    moved = sim.rollout(controls=controls, memory=Memory(segment=2))
    (moved.q.square().sum() + moved.qd.sum()).backward()
    return {"q": moved.q.detach(), "qd": moved.qd.detach(), "gradient": controls.grad}


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.long) for name in NAMES]
)
def test_a_scene_has_the_same_bits_and_leaves_the_device_alone(name):
    scene = SCENES / f"{name}.usda"
    with rehearsal() as found:
        there = motion(scene)
    assert not found, "\n".join(sorted(set(map(str, found))))
    here = motion(scene)
    for what, value in here.items():
        assert torch.equal(value, there[what]), what


def test_a_planted_read_within_a_capture_is_found(monkeypatch):
    step = Segment._step

    def reading(segment, slot, work, tape):
        segment.states.data.array.numpy()
        step(segment, slot, work, tape)

    monkeypatch.setattr(Segment, "_step", reading)
    with rehearsal() as found:
        motion(SCENES / "pendulum.usda")
    assert {(access.place, access.what) for access in found} == {(CAPTURE, "array.numpy()")}
    assert all("test_rehearsal.py" in access.where and "(reading)" in access.where for access in found)


def first_number(array: wp.array) -> torch.Tensor:
    return wp.to_torch(array).flatten()[0]


def norm(array: wp.array) -> float:
    """No report of the tape, whatever its name."""
    return float(np.square(array.numpy()).sum())


@pytest.mark.parametrize(
    ("read", "what"),
    [
        (lambda array: array.list(), "array.list()"),
        (lambda array: np.asarray(array), "np.asarray(array)"),
        (lambda array: first_number(array).item(), "tensor.item()"),
        (lambda array: float(first_number(array)), "tensor.__float__()"),
        (lambda array: bool(first_number(array) > 0), "tensor.__bool__()"),
        (norm, "array.numpy()"),
    ],
    ids=["list", "asarray", "item", "float", "bool", "norm"],
)
def test_a_planted_read_between_replays_is_found(read, what, monkeypatch):
    take = Keep.take

    def reading(keep, step, slot, count, states, outputs):
        read(states["q"].array)
        take(keep, step, slot, count, states, outputs)

    monkeypatch.setattr(Keep, "take", reading)
    with rehearsal() as found:
        motion(SCENES / "pendulum.usda")
    assert {(access.place, access.what) for access in found} == {(HOT, what)}


@pytest.mark.long
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_succeeds_and_leaves_the_device_alone(name, tmp_path, monkeypatch):
    """Each asserts its own result, which is that of CUDA's path then."""
    example = load_example(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [f"{name}.py"])
    with rehearsal() as found:
        example.main()
    assert not found, "\n".join(sorted(set(map(str, found))))
