"""How many names a rollout passes between the public call and the loop that makes the captured calls."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import pytest
import torch

import warpsim as ws
from warpsim.cli.main import main
from warpsim.core.driving import drive
from warpsim.tape import Memory, Revolve
from warpsim.tape.calls import CallTable

ROOT = Path(ws.__file__).parent
MAXIMUM = 8
FORWARD = ("in_turn.<locals>.alone", "Simulator.rollout", "drive", "CheckpointedTape.advance", "CallTable.run")
"""The chain of a rollout that CONTRIBUTING.md writes down."""
BACKWARD = (
    "once_differentiable.<locals>.once",
    "Node.backward",
    "RolloutCall.backward",
    "CheckpointedTape.backward",
    "drive",
    "CallTable.run",
)
SEARCH = (
    "main",
    "drive",
    "TaskProblem.loss",
    "in_turn.<locals>.alone",
    "Simulator.rollout",
    "CheckpointedTape.advance",
    "CallTable.run",
)
"""That of `warpsim optimize`, which CONTRIBUTING.md writes down too."""


@pytest.fixture
def stacks(monkeypatch):
    """The package's functions on the stack at every replay, outermost first, down to the table that is replayed."""
    found: set[tuple[str, ...]] = set()
    make = CallTable._make

    def watched(table: CallTable, member: int) -> None:
        frame, names = sys._getframe(1), []
        while frame is not None:
            if Path(frame.f_code.co_filename).is_relative_to(ROOT):
                names.append(frame.f_code.co_qualname)
            frame = frame.f_back
        names = list(dict.fromkeys(reversed(names)))
        found.add(tuple(names[: names.index("CallTable.run") + 1]))
        make(table, member)

    monkeypatch.setattr(CallTable, "_make", watched)
    return found


@pytest.mark.parametrize("memory", [None, Memory(segment=4), Memory(segment=2, schedule=Revolve(2))], ids=str)
def test_few_names_from_a_rollout_to_its_replay(stacks, memory):
    """In all passes of a rollout: forward, recomputation and backward, with outputs of the initial state."""
    sim = ws.Simulator(ws.example_scene("pendulum"))
    controls = torch.zeros(20, 1, sim.control_size, dtype=sim.torch_dtype, requires_grad=True)
    motion = sim.rollout(controls=controls, memory=memory)
    assert FORWARD in stacks
    forward = set(stacks)
    stacks.clear()
    (motion.q.square().sum() + motion["body_position"].sum()).backward()
    assert BACKWARD in stacks
    for names in forward | stacks:
        assert len(names) <= MAXIMUM, names


@pytest.mark.parametrize("memory", [None, Memory(segment=2, schedule=Revolve(2))], ids=str)
def test_few_names_on_the_way_to_parameters(stacks, memory):
    """Gradients by an array of parameters."""
    sim = ws.Simulator(ws.example_scene("pendulum"))
    mass = sim.parameter("shape.mass").clone().requires_grad_()
    stacks.clear()
    motion = sim.rollout(10, q=[0.5], parameters={"shape.mass": mass}, memory=memory)
    motion.q.square().sum().backward()
    assert mass.grad is not None and mass.grad.abs().max() > 0.0
    assert FORWARD in stacks and BACKWARD in stacks
    for names in stacks:
        assert len(names) <= MAXIMUM, names


@pytest.mark.parametrize(
    "choices",
    [{"method": method} for method in ("lbfgs", "adam", "levenberg_marquardt")] + [{"starts": 3}],
    ids=str,
)
def test_few_names_from_a_search_to_its_replays(stacks, choices):
    """`ws.optimize`: its search forward and backward, what comes before it and after it, from one start or several."""
    ws.optimize(ws.example_scene("throw"), iterations=1, **choices)
    assert {names[:2] for names in stacks} == {("optimize", "drive")}
    assert any("CheckpointedTape.backward" in names for names in stacks)
    assert max(map(len, stacks)) <= MAXIMUM, max(stacks, key=len)


@pytest.mark.parametrize("starts", [1, 3])
def test_few_names_from_the_command_line_to_its_replays(stacks, starts, tmp_path):
    """`warpsim optimize`, from `main` on: every rollout of the command, those of the page that it writes included."""
    scene, folder = str(ws.example_scene("throw")), str(tmp_path / "result")
    assert main(["optimize", scene, "-o", folder, "--no-gif", "--quiet", "--starts", str(starts)]) == 0
    assert SEARCH in stacks
    assert max(map(len, stacks)) <= MAXIMUM, max(stacks, key=len)


def test_a_failure_is_raised_where_it_was_asked_for():
    """In a search that goes on without what failed; what it lets through leaves the loop."""

    def fail() -> None:
        raise KeyError("here")

    def steps(catch: bool):
        try:
            yield fail
        except KeyError:
            if not catch:
                raise
        return (yield partial(sum, (1, 2)))

    assert drive(steps(True)) == 3
    with pytest.raises(KeyError, match="here"):
        drive(steps(False))


@pytest.mark.parametrize("chain", [FORWARD, BACKWARD, SEARCH], ids=["forward", "backward", "search"])
def test_the_chains_are_written_down(chain):
    text = (ROOT.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    names = [name.partition(".<locals>")[0] for name in chain]
    assert ", ".join(f"`{name}`" for name in names) in " ".join(text.split())
