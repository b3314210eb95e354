"""`warpsim train`: a USD file with a training → a folder with the policy, its curve and its motion."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from warpsim.cli.arguments.common import result_folder
from warpsim.cli.commands.outputs import check_outputs
from warpsim.cli.commands.ranks import joined, restarted, writes
from warpsim.core.errors import InputError
from warpsim.io.scene_files import is_usd, scene_files
from warpsim.parallel.ranks import Ranks, alone
from warpsim.sim.simulator import Simulator
from warpsim.task.train import CHECKPOINT, JUDGED, Trained, has_checkpoint, train
from warpsim.task.trained_folder import save_trained, trained_files
from warpsim.task.training import read_training


def run(arguments: argparse.Namespace) -> int:
    """Trains, writes, and says how it went."""
    output = result_folder(arguments)
    if not is_usd(arguments.scene):
        raise InputError(f"{arguments.scene}: trainings live in USD files; convert it with `warpsim convert`, add one")
    if not Path(arguments.scene).is_file():
        raise InputError(f"no file {arguments.scene!r}")
    if writes():
        force = arguments.force or (arguments.resume and (output / CHECKPOINT).is_file()) or restarted()
        check_outputs(trained_files(output), [arguments.scene], force=force, make_folder=True)
        output.mkdir(parents=True, exist_ok=True)
    with joined(scene_files(arguments.scene)) as ranks:
        if ranks is not None and ranks.restarts and has_checkpoint(output):
            arguments.resume = True
        done = _trained(arguments, output, ranks)
        lines = [] if ranks is None else ranks.summary()
        if ranks is None or ranks.first:
            with alone():
                written = save_trained(done, output)
            print("\n".join([*summary(done), *lines]))
            print("wrote " + ", ".join(str(path) for path in written))
            print(f"look at it in a browser: {written[-1]}")
    return 0


def _trained(arguments: argparse.Namespace, output: Path, ranks: Ranks | None) -> Trained:
    """Every rank trains, each steps its worlds, and rank 0 keeps log and checkpoint."""
    sim = Simulator(arguments.scene)
    training = read_training(arguments.scene, sim.scene, arguments.training)
    given = {name: getattr(arguments, name) for name in ("seconds", "updates", "worlds", "seed")}
    training = replace(training, **{name: value for name, value in given.items() if value is not None})
    if ranks is not None:
        print(ranks.shares(training.worlds), flush=True)
    return train(sim, training, folder=output, resume=arguments.resume, progress=not arguments.quiet)


def summary(done: Trained) -> Iterator[str]:
    """Lines for a person."""
    last = done.history[-1]
    yield (
        f"{done.training.name}: {len(done.history)} updates in {last.seconds:.0f} s of processor time, "
        f"{last.dropped} worlds dropped"
    )
    for name, score in (("best", done.score), ("last", done.last_score)):
        yield (
            f"  {name} policy, {done.sim.worlds} unseen starts, {JUDGED:g} s: reward {-score.cost:.4g} "
            f"per control, {score.failed} fell"
        )
