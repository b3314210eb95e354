"""`warpsim train`: a USD file with a training → a folder with the policy, its curve and its motion."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from warpsim.cli.commands.common import natural
from warpsim.cli.commands.outputs import add_force, check_outputs
from warpsim.core.errors import InputError
from warpsim.io.scene_files import is_usd
from warpsim.sim.simulator import Simulator
from warpsim.task.train import CHECKPOINT, JUDGED, Trained, train
from warpsim.task.trained_folder import save_trained, trained_files
from warpsim.task.training import read_training


def add(commands: argparse._SubParsersAction) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "train",
        description="Trains the policy that a WarpsimTraining prim of the file asks for, by gradients through physics, "
        "and writes a folder: policy.pt (the best of all evaluations), last.pt, log.csv and log.jsonl (every update), "
        "curve.png, record.json, motion.html (the motion as it is learned), and checkpoint.pt, from which --resume "
        "goes on. docs/policies.md explains how to write a training.",
    )
    parser.add_argument("scene", help="a .usd, .usda or .usdc file with a WarpsimTraining prim")
    parser.add_argument("-o", "--output", required=True, metavar="FOLDER", help="the folder to write")
    parser.add_argument("--training", metavar="PATH", help="the training's prim, where there are several")
    parser.add_argument("--seconds", type=float, help="processor time, instead of the training's")
    parser.add_argument("--updates", type=natural, help="maximum number of updates, instead of the training's")
    parser.add_argument("--worlds", type=natural, help="copies of the scene, instead of the training's")
    parser.add_argument("--seed", type=natural, help="instead of the training's")
    parser.add_argument("--resume", action="store_true", help="go on with the training that is kept in the folder")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    add_force(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Trains, writes, and says how it went."""
    output = Path(arguments.output)
    if not is_usd(arguments.scene):
        raise InputError(f"{arguments.scene}: trainings live in USD files; convert it with `warpsim convert`, add one")
    if not Path(arguments.scene).is_file():
        raise InputError(f"no file {arguments.scene!r}")
    force = arguments.force or (arguments.resume and (output / CHECKPOINT).is_file())
    check_outputs(trained_files(output), [arguments.scene], force=force, make_folder=True)
    sim = Simulator(arguments.scene)
    training = read_training(arguments.scene, sim.scene, arguments.training)
    given = {name: getattr(arguments, name) for name in ("seconds", "updates", "worlds", "seed")}
    training = replace(training, **{name: value for name, value in given.items() if value is not None})
    output.mkdir(parents=True, exist_ok=True)
    done = train(sim, training, folder=output, resume=arguments.resume, progress=not arguments.quiet)
    written = save_trained(done, output)
    print("\n".join(summary(done)))
    print("wrote " + ", ".join(str(path) for path in written))
    print(f"look at it in a browser: {written[-1]}")
    return 0


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
