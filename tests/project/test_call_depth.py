"""How many names a rollout passes between the public call and the loop that makes the captured calls."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

import warpsim as ws
from warpsim.tape import Memory, Revolve
from warpsim.tape.calls import CallTable

ROOT = Path(ws.__file__).parent
MAXIMUM = 8
SEARCH = 11
"""Names of a search above a rollout: of L-BFGS in its line search, which evaluates a task's loss."""
FORWARD = (
    "in_turn.<locals>.alone",
    "Simulator.rollout",
    "RolloutCall.run",
    "Node.forward",
    "RolloutCall.forward",
    "CheckpointedTape.advance",
    "Sweep.forward",
    "CallTable.run",
)
"""The chain that CONTRIBUTING.md writes down."""


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
    assert any("Sweep.backward" in names for names in stacks)
    assert any("Sweep._reach" in names for names in stacks) == (memory is not None and memory.schedule is not None)
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
    assert FORWARD in stacks and any("Sweep.backward" in names for names in stacks)
    for names in stacks:
        assert len(names) <= MAXIMUM, names


def test_a_search_adds_only_itself_to_a_rollout(stacks):
    """`ws.optimize`, which `warpsim optimize` calls: from its rollouts on, the chain is that of any rollout."""
    ws.optimize(ws.example_scene("throw"), iterations=1)
    rolled = [names[names.index(FORWARD[0]) :] for names in stacks if FORWARD[0] in names]
    assert FORWARD in rolled
    assert all(names[0] == "optimize" and len(names) <= SEARCH + MAXIMUM for names in stacks)
    assert all(len(names) <= MAXIMUM for names in rolled)


def test_the_chain_is_written_down():
    text = (ROOT.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    places = [text.find(f"`{name.rpartition('.')[0]}.{name.rpartition('.')[2]}`") for name in FORWARD[1:]]
    assert -1 not in places and places == sorted(places)
