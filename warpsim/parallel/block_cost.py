"""The cost of one block of worlds: a short rollout and its gradient, timed, and the plan of the tape."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import torch

from warpsim.parallel.job_plan import BlockCost
from warpsim.sim.simulator import Simulator
from warpsim.tape.memory import MemoryLike

_MOST_STEPS = 256
"""Of the rollout that is timed: a step costs the same in a longer one."""
_ROUNDS, _SECONDS = 50, 1.5
"""Rounds of a timing, or as many as take so long; the least counts."""
_NUMBER = 8


def measure_block(sim: Simulator, steps: int, *, memory: MemoryLike = None) -> BlockCost:
    """What a rollout of so many steps in all worlds of a simulator, and its gradient, take.

    Args:
        sim: With the worlds of a block.
        steps: Of the rollout.
        memory: As in `Simulator.rollout`.
    """
    process = process_bytes()
    short = min(steps, _MOST_STEPS)
    state = {name: sim.state[name] for name in sim.state_names}
    varied = "qd" if "qd" in state else sim.state_names[-1]
    first = state[varied].clone().requires_grad_()

    def losses() -> torch.Tensor:
        moved = sim.rollout(short, start={varied: first}, outputs=(), memory=memory)
        return torch.stack([moved[name].square().sum() for name in state]).sum()

    def forward() -> None:
        with torch.no_grad():
            losses()

    stepping = _quickest(forward) / short
    differentiating = _quickest(lambda: torch.autograd.grad(losses(), first)) / short
    plan, timed = sim.plan(steps, memory=memory), sim.plan(short, memory=memory)
    again = plan.forward_evaluations - timed.forward_evaluations
    trajectory = (steps + 1) * sum(value.numel() for value in state.values()) * _NUMBER
    inputs = steps * sim.worlds * sim.control_size * _NUMBER
    return BlockCost(
        gradient=steps * (differentiating + again * stepping),
        again=steps * stepping,
        process=process,
        tape=plan.bytes + trajectory + inputs,
        kept=plan.memory["checkpoints"] + trajectory + inputs,
    )


def process_bytes() -> int:
    """Memory that this process has in use; 0 where the system does not say so."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 0


def _quickest(call: Callable[[], object]) -> float:
    """s of processor time."""
    call()  # compiles, captures
    found: list[float] = []
    while len(found) < 2 or (len(found) < _ROUNDS and sum(found) < _SECONDS):
        begun = time.process_time()
        call()
        found.append(time.process_time() - begun)
    return min(found)
