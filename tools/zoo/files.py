"""Which files of a folder are models: complete MJCF files, not the parts they include."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path


def model_files(folder: Path, only: list[str]) -> list[Path]:
    """Files with a `mujoco` root and a body, sorted; a file that others include stands for itself as well.

    Args:
        folder: Looked through to any depth.
        only: Parts of the paths to take; empty: all.
    """
    found = []
    for path in sorted(folder.rglob("*.xml")):
        if only and not any(part in str(path) for part in only):
            continue
        root = ElementTree.parse(path).getroot()
        if root.tag == "mujoco" and (root.find("worldbody//body") is not None or root.find("include") is not None):
            found.append(path)
    return found
