"""`warpsim compare`: two run records side by side."""

from __future__ import annotations

import argparse

from warpsim.check.records import blamed, compare, read_record


def add(commands: argparse._SubParsersAction) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "compare",
        description="Evaluates two records by the same rules and lists every input in which they differ, by name.",
    )
    parser.add_argument("first", help="a record, as `warpsim simulate --record` and `warpsim optimize` write them")
    parser.add_argument("second", help="another")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Compares and prints."""
    first, second = read_record(arguments.first), read_record(arguments.second)
    with blamed(f"{arguments.first} or {arguments.second}"):
        print(compare(first, second))
    return 0
