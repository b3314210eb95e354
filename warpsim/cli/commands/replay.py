"""`warpsim replay`: a record run again, bit for bit."""

from __future__ import annotations

import argparse
from pathlib import Path

from warpsim.check.records import RunRecord, blamed, read_record, replay
from warpsim.cli.commands.outputs import check_outputs


def run(arguments: argparse.Namespace) -> int:
    """Replays, says how it went, and writes the new record if asked."""
    record = read_record(arguments.record)
    scene = arguments.scene or _moved(record, Path(arguments.record))
    if arguments.output:
        read = [arguments.record, scene or record.scene["path"]]
        check_outputs([arguments.output], [path for path in read if path], force=arguments.force)
    with blamed(arguments.record):
        done = replay(record, scene)
    print(f"{done.record.horizon['steps']} steps of {done.record.scene['name']}: {done.text}")
    if arguments.output:
        print(f"wrote {done.record.save(arguments.output)}")
    return 0 if done.identical else 1


def _moved(record: RunRecord, place: Path) -> Path | None:
    """The scene's file beside the record, if only there: a folder with both may have been moved."""
    path = record.scene["path"]
    if path is None or Path(path).is_file():
        return None
    beside = place.parent / Path(path).name
    return beside if beside.is_file() else None
