"""The checkpointed tape: rollouts of any length, differentiated within a memory budget.

    tape = CheckpointedTape(program, steps=100_000, memory_budget="64MB")
    print(tape.plan)
    run = tape.forward(initial_state, inputs={"torque": torque}, keep_outputs=["cost"])
    gradients = tape.backward(run, output_seeds={"cost": EveryStep(np.ones(worlds))})
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from warpsim.errors import InputError, unknown_name
from warpsim.tape import budget, checks, footprint, inputs, rows, seeds, storage, threads
from warpsim.tape.diagnostics import SegmentReport
from warpsim.tape.inputs import ArrayFeed, Feed, InputProvider, ProviderFeed
from warpsim.tape.part import Keep, Part
from warpsim.tape.program import Arrays, Field, Program
from warpsim.tape.run import Gradients, Run
from warpsim.tape.schedule import Plan, Schedule, make_plan
from warpsim.tape.sweep import Pullback, Sweep

Selection = bool | Sequence[str]
"""All fields, none, or those named."""


class CheckpointedTape:
    """Runs a program forward and backward over a fixed number of steps.

    Attributes:
        program: What a step does.
        plan: Segments, checkpoints, bytes and recomputation; print it.
    """

    def __init__(
        self,
        program: Program,
        *,
        steps: int,
        memory_budget: int | float | str | None = None,
        segment: int | None = None,
        schedule: Schedule | None = None,
        storage: str = "device",
        directory: str | Path | None = None,
        threads: int = 1,
        groups: int | None = None,
        capture: bool = True,
        check: bool = True,
    ) -> None:
        """Plans; nothing runs yet.

        Args:
            program: The step.
            steps: N, length of each rollout.
            memory_budget: Most memory to use beyond the program's own and the caller's arrays (kept trajectories, inputs,
                gradients): bytes, a size such as "512MB", or a share such as "50%" of what is free.
            segment: K, steps per segment; by default what fits the cache and the budget.
            schedule: `FullTape()`, `AllStarts()`, `Revolve(count)` or `Windows(length)`; by default the cheapest that fits.
            storage: Where checkpoints live: "device", "host" or "disk".
            directory: For "disk": where the files go; by default a temporary directory that is removed.
            threads: CPU threads that share the worlds.
            groups: Groups of worlds, at least one per thread; more keep each group's memory within the cache.
            capture: Replay captured graphs; False launches eagerly, with the same bits.
            check: Try the step once, at the first rollout, against the rules of a program; and stop at states and adjoints
                that are not finite.
        """
        self.program = program
        self._check = check
        self._tried = False
        self._storage = storage_kind(storage)
        self._directory = Path(directory) if directory is not None else None
        self._team = make_team(threads, capture)
        split = split_worlds(program, groups or threads)
        limit = None if memory_budget is None else budget.parse(memory_budget, program.device)
        self.plan: Plan = make_plan(
            footprint.measure(part for part, _ in split),
            steps,
            schedule=schedule,
            segment=segment,
            memory_budget=limit,
            storage=storage,
        )
        self._sweeps = [Sweep(part, self.plan, worlds, capture=capture) for part, worlds in split]
        self._spare: list[storage_module.Checkpoints] = []
