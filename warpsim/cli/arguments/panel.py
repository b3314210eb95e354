"""Arguments of `warpsim panel`."""

from __future__ import annotations

import argparse


def add(commands: argparse._SubParsersAction) -> None:
    """Adds the command."""
    commands.add_parser(
        "panel",
        description="Runs the reference panel. Exit code 1 if one of ours is off by more than its step explains.",
    )
