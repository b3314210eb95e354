"""Arguments of `warpsim compare`."""

from __future__ import annotations

import argparse


def add(commands: argparse._SubParsersAction) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "compare",
        description="Evaluates two records by the same rules and lists every input in which they differ, by name.",
    )
    parser.add_argument("first", help="a record, as `warpsim simulate --record` and `warpsim optimize` write them")
    parser.add_argument("second", help="another")
