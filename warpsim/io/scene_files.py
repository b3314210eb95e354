"""`scene_files`: every file that reading a scene reads."""

from __future__ import annotations

import re
from os import PathLike, fspath
from pathlib import Path

from warpsim.io.usd.layer_files import stage_files

USD_SUFFIXES = (".usd", ".usda", ".usdc", ".usdz")
MJCF_SUFFIXES = (".xml", ".mjcf", ".urdf")
_FILE = re.compile(r"""\bfile\w*\s*=\s*["']([^"']+)["']""")
_FOLDER = re.compile(r"""\b(?:meshdir|texturedir|assetdir)\s*=\s*["']([^"']*)["']""")


def is_usd(path: str | PathLike[str]) -> bool:
    """Whether a path names a USD file."""
    return Path(fspath(path)).suffix.lower() in USD_SUFFIXES


def scene_files(source: str | PathLike[str]) -> list[Path]:
    """The scene's own file and all that it is composed of, where they exist; nothing is simulated or compiled.

    Args:
        source: A USD, MJCF or URDF file; of any other, and of one that is damaged, at least the file itself.
    """
    path = Path(fspath(source))
    if not path.is_file():
        return []
    return [file for file in (stage_files(path) if is_usd(path) else _xml_files(path)) if file.exists()]


def _xml_files(path: Path) -> list[Path]:
    """By the names in the text, wherever MuJoCo may look for them: rather a file too many than one too few."""
    found: dict[Path, None] = {path: None}
    folders = {""}
    waiting = [path] if path.suffix.lower() in MJCF_SUFFIXES else []
    named: set[str] = set()
    while waiting:
        text = waiting.pop().read_text(encoding="utf-8", errors="replace")
        folders |= set(_FOLDER.findall(text))
        named |= {name.partition("://")[2] or name for name in _FILE.findall(text)}
        for folder in folders:
            for name in named:
                for file in (path.parent / folder / name, path.parent / folder / Path(name).name):
                    if file not in found and file.is_file():
                        found[file] = None
                        waiting += [file] if file.suffix.lower() in MJCF_SUFFIXES else []
    return list(found)
