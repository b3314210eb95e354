"""Arguments of `warpsim train`."""

from __future__ import annotations

import argparse

from warpsim.cli.arguments.common import add_folder, add_force, natural


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
    add_folder(parser)
    parser.add_argument("--training", metavar="PATH", help="the training's prim, where there are several")
    parser.add_argument("--seconds", type=float, help="processor time, instead of the training's")
    parser.add_argument("--updates", type=natural, help="maximum number of updates, instead of the training's")
    parser.add_argument("--worlds", type=natural, help="copies of the scene, instead of the training's")
    parser.add_argument("--seed", type=natural, help="instead of the training's")
    parser.add_argument("--resume", action="store_true", help="go on with the training that is kept in the folder")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    add_force(parser)
