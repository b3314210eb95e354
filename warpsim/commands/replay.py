"""`warpsim replay`: a record run again, bit for bit."""

from __future__ import annotations

import argparse

from warpsim.evidence import read_record, replay


def add(commands: argparse._SubParsersAction) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "replay",
        help="run a record again and compare the bits",
        description="Runs a record's inputs again. Exit code 1 if the trajectory is not the same to the last bit.",
    )
    parser.add_argument("record", help="a record, as `warpsim simulate --record` writes")
    parser.add_argument("--scene", help="the scene's file, if it has moved")
    parser.add_argument("-o", "--output", help="where to write the new record")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Replays, says how it went, and writes the new record if asked."""
    done = replay(read_record(arguments.record), arguments.scene)
    print(f"{done.record.horizon['steps']} steps of {done.record.scene['name']}: {done.text}")
    if arguments.output:
        print(f"wrote {done.record.save(arguments.output)}")
    return 0 if done.identical else 1
