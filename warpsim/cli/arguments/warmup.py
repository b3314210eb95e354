"""Arguments of `warpsim warmup`."""

from __future__ import annotations

import argparse


def add(commands: argparse._SubParsersAction) -> None:
    """Adds the command."""
    parser = commands.add_parser("warmup", description="Compiles all kernels of the simulator into Warp's cache.")
    parser.add_argument("--device", default="cpu", help="cpu or cuda:0 (default: cpu)")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
