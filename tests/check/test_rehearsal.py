"""Scenes by the path of a CUDA device, on the CPU: the same bits, and nothing read or allocated where none may be."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import warpsim as ws
from warpsim.check.rehearsal import CAPTURE, HOT, rehearsal
from warpsim.tape import Memory
from warpsim.tape.part import Keep
from warpsim.tape.segment import Segment

SCENES = Path(__file__).resolve().parents[2] / "scenes"
QUICK = ("pendulum", "stack")
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


def test_a_planted_read_between_replays_is_found(monkeypatch):
    take = Keep.take

    def reading(keep, step, slot, count, states, outputs):
        states["q"].array.list()
        take(keep, step, slot, count, states, outputs)

    monkeypatch.setattr(Keep, "take", reading)
    with rehearsal() as found:
        motion(SCENES / "pendulum.usda")
    assert {(access.place, access.what) for access in found} == {(HOT, "array.list()")}
