"""`warpsim stress`: whether an optimized result holds in a simulator that is changed a little."""

from __future__ import annotations

import argparse

from warpsim.cli.commands.outputs import check_outputs
from warpsim.core.errors import InputError
from warpsim.io.scene_files import is_usd
from warpsim.task.stress import stress

HOLDS, NOT_SOLVED, EXPLOIT = 0, 3, 4
"""Exit codes."""


def run(arguments: argparse.Namespace) -> int:
    """Replays, prints, writes if asked."""
    if not is_usd(arguments.result):
        raise InputError(f"{arguments.result}: tasks live in USD files; give a result.usda of `warpsim optimize`")
    if arguments.output:
        check_outputs([arguments.output], [arguments.result], force=arguments.force)
    found = stress(arguments.result, arguments.task, seed=arguments.seed, max_contacts=arguments.max_contacts)
    print(found)
    if arguments.output:
        print(f"wrote {found.record.save(arguments.output)}")
    if found.outcomes[0].success is False:
        return NOT_SOLVED
    return HOLDS if found.exploit is None else EXPLOIT
