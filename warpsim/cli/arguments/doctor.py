"""Arguments of `warpsim doctor`."""

from __future__ import annotations

import argparse


def add(commands: argparse._SubParsersAction) -> None:
    """Adds the command."""
    commands.add_parser(
        "doctor",
        description="Prints versions, precision, devices, threads and caches: copy it into a report of a fault. Exit "
        "code 1 if a cache cannot be written.",
    )
