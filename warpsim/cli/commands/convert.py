"""`warpsim convert`: MJCF or URDF → USD, or a scene → MJCF."""

from __future__ import annotations

import argparse
from pathlib import Path

from warpsim.cli.commands.outputs import check_outputs
from warpsim.core.errors import InputError
from warpsim.core.files import MARK, replacing
from warpsim.core.registry import provided
from warpsim.io.load import load_scene
from warpsim.io.scene_files import is_usd
from warpsim.io.usd.export import export_scene
from warpsim.io.usd.layer_files import export_layer, mark_layer
from warpsim.version import __version__


def run(arguments: argparse.Namespace) -> int:
    """Converts and lists what the output could not hold."""
    output = Path(arguments.output)
    if not is_usd(output) and output.suffix.lower() != ".xml":
        raise InputError(f"{output}: give a .usda, .usdc or .xml (MJCF) file to write")
    check_outputs([output], [arguments.scene], force=arguments.force)
    scene = load_scene(arguments.scene, strict=arguments.strict, keyframe=arguments.keyframe)
    if is_usd(output):
        stage, notes = export_scene(scene)
        mark_layer(stage.GetRootLayer(), {"converted from": Path(arguments.scene).name, "version": __version__})
        export_layer(stage.GetRootLayer(), output)
    else:
        text, notes = provided("scene_to_mjcf")(scene)
        with replacing(output) as temporary:
            temporary.write_text(f"<!-- {MARK.decode()} {__version__} -->\n{text}", encoding="utf-8")
    print(f"wrote {output}")
    for note in notes:
        print(f"  {note}")
    return 0
