"""`warpsim compare`: two run records side by side."""

from __future__ import annotations

import argparse

from warpsim.check.records import blamed, compare, read_record


def run(arguments: argparse.Namespace) -> int:
    """Compares and prints."""
    first, second = read_record(arguments.first), read_record(arguments.second)
    with blamed(f"{arguments.first} or {arguments.second}"):
        print(compare(first, second))
    return 0
