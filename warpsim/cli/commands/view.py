"""`warpsim view`: a file, animated or not, as a page for any browser."""

from __future__ import annotations

import argparse
import webbrowser
from pathlib import Path

from warpsim.cli.commands.looking import open_for_looking
from warpsim.cli.commands.outputs import check_outputs
from warpsim.core.errors import InputError
from warpsim.core.registry import provided
from warpsim.view.page import write_page
from warpsim.view.page.stage_content import stage_page

_TASK = "WarpsimTask"
"""Type of prims that say what is wanted; reading them takes a second longer, so it is done where there is one."""


def run(arguments: argparse.Namespace) -> int:
    """Writes the page, and opens it if asked to."""
    source = Path(arguments.file)
    if arguments.live:
        return provided("live_command")(arguments)
    output = Path(arguments.output) if arguments.output else Path(source.with_suffix(".html").name)
    if output.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{output}: give an .html file to write")
    read = [arguments.file] if arguments.scene is None else [arguments.file, arguments.scene]
    check_outputs([output], read, force=arguments.force)
    stage = open_for_looking(arguments.file, keyframe=arguments.keyframe, scene=arguments.scene, world=arguments.world)
    page = stage_page(stage, source.stem)
    if any(prim.GetTypeName() == _TASK for prim in stage.Traverse()):
        page = provided("with_targets")(page, stage)
    written = write_page(output, page)
    print(f"wrote {written} ({written.stat().st_size / 1e6:.2f} MB)")
    if arguments.open:
        webbrowser.open(written.resolve().as_uri())
    return 0
