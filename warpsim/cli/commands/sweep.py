"""`warpsim sweep`: a scene at every point of a grid of attributes' values."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

from warpsim.cli.arguments.common import result_folder
from warpsim.cli.commands.outputs import check_outputs
from warpsim.cli.commands.ranks import joined, writes
from warpsim.core.errors import InputError, whole_number
from warpsim.io.scene_files import scene_files
from warpsim.sim.simulator import Simulator
from warpsim.task.sweep import sweep
from warpsim.task.sweep_table import sweep_files
from warpsim.task.varied import read_varied

NOTHING_SIMULATED = 1
"""Exit code where no point could be simulated."""


def run(arguments: argparse.Namespace) -> int:
    """Simulates, prints, writes."""
    if not Path(arguments.scene).is_file():
        raise InputError(f"no file {arguments.scene!r}")
    varied = [read_varied(text) for text in arguments.vary]
    folder = result_folder(arguments)
    if writes():
        check_outputs(sweep_files(folder), [arguments.scene], force=arguments.force, make_folder=True)
    with joined(scene_files(arguments.scene)) as ranks:
        if ranks is not None and arguments.workers > 1:
            raise InputError("--workers starts processes of its own; leave it out under torchrun, whose ranks share")
        with _workers(arguments.workers) as executor:
            found = sweep(
                arguments.scene,
                varied,
                arguments.task,
                steps=_steps(arguments),
                max_contacts=arguments.max_contacts,
                executor=executor,
                progress=not arguments.quiet,
            )
        lines = [] if ranks is None else ranks.summary()
        if ranks is None or ranks.first:
            print(found)
            print("\n".join([*lines, "wrote " + ", ".join(str(path) for path in found.save(folder))]))
    return NOTHING_SIMULATED if len(found.failed) == len(found.points) else 0


@contextmanager
def _workers(count: int) -> Iterator[Executor | None]:
    """Processes of this machine, where more than one is asked for."""
    if whole_number("workers", count) == 1:
        yield None
        return
    with ProcessPoolExecutor(count, mp_context=get_context("spawn")) as executor:
        yield executor


def _steps(arguments: argparse.Namespace) -> int | None:
    if arguments.seconds is None:
        return arguments.steps
    if not 0.0 < arguments.seconds < math.inf:
        raise InputError(f"--seconds {arguments.seconds:g}: give a finite number above 0")
    return max(1, round(arguments.seconds / Simulator(arguments.scene).timestep))
