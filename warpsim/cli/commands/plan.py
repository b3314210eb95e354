"""`warpsim plan`: what a job over ranks will take."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import torch

from warpsim.cli.commands.opening import open_simulator
from warpsim.core.errors import InputError, whole_number
from warpsim.io.scene_files import is_usd
from warpsim.io.usd.reader import open_stage
from warpsim.parallel.block_cost import measure_block
from warpsim.parallel.blocks import DEFAULT_BLOCKS, blocks_of
from warpsim.parallel.job_plan import JobPlan, Network
from warpsim.sim.simulator import Simulator
from warpsim.task.problem import TaskProblem
from warpsim.task.read import read_task, task_paths
from warpsim.task.solve import with_channels

_STEPS = 1000


def run(arguments: argparse.Namespace) -> int:
    """Measures a block, prints the plan."""
    for name in ("latency", "bandwidth"):
        if not 0.0 < getattr(arguments, name) < math.inf:
            raise InputError(f"--{name} {getattr(arguments, name):g}: give a finite number above 0")
    worlds, ranks = whole_number("worlds", arguments.worlds), whole_number("ranks", arguments.ranks)
    wanted = max(DEFAULT_BLOCKS, ranks) if arguments.blocks is None else whole_number("blocks", arguments.blocks)
    blocks = blocks_of(worlds, wanted)
    torch.set_num_threads(1)  # as torchrun starts its ranks
    sim = open_simulator(arguments, worlds=blocks.size)
    steps, numbers = _size(arguments, sim)
    plan = JobPlan(
        title=f"{Path(arguments.scene).name}, {steps} steps",
        blocks=blocks,
        numbers=numbers,
        ranks=ranks,
        cost=measure_block(sim, steps, memory=arguments.memory),
        network=Network(latency=1e-6 * arguments.latency, bandwidth=1e9 / 8 * arguments.bandwidth),
    )
    print(plan)
    return 0


def _size(arguments: argparse.Namespace, sim: Simulator) -> tuple[int, int]:
    """Steps of a rollout, and numbers of a world whose gradient is gathered."""
    steps, numbers = arguments.steps, arguments.numbers
    if is_usd(arguments.scene) and len(task_paths(open_stage(arguments.scene))) == 1:
        task = read_task(arguments.scene, sim.scene)
        problem = TaskProblem(with_channels(Simulator(arguments.scene), task), task)
        steps = problem.steps if steps is None else steps
        numbers = len(problem.start) if numbers is None else numbers
    steps = whole_number("steps", _STEPS if steps is None else steps)
    return steps, steps * sim.control_size if numbers is None else whole_number("numbers", numbers)
