"""What ranks must have in common: the same warpsim, the same libraries, the same files."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path

import numpy as np
import torch
import warp as wp

from warpsim.core.precision import PRECISION
from warpsim.version import __version__

_PACKAGE = Path(__file__).resolve().parents[1]


def identity(files: Iterable[str | PathLike[str]], more: Mapping[str, str] | None = None) -> dict[str, str]:
    """What is compared when ranks join, by name.

    Args:
        files: Scenes and data that are read.
        more: Whatever else must be the same.
    """
    found = {
        "warpsim": f"{__version__} ({_digest(sorted(_PACKAGE.rglob('*.py')))})",
        "python": ".".join(map(str, sys.version_info[:2])),
        "torch": torch.__version__,
        "warp": wp.config.version,
        "numpy": np.__version__,
        "precision": PRECISION,
    }
    for file in map(Path, files):  # by name alone, for folders may differ from machine to machine
        name = f"file {file.name}"
        found[name] = _digest([file]) if name not in found else f"{found[name]} {_digest([file])}"
    return {**found, **(more or {})}


def difference(first: Mapping[str, str], other: Mapping[str, str]) -> str | None:
    """In what a rank differs from rank 0, in words; None: in nothing."""
    for name in dict.fromkeys([*first, *other]):
        here, there = first.get(name, "none"), other.get(name, "none")
        if here != there:
            return f"{name} {there}, rank 0 has {here}"
    return None


def _digest(files: Iterable[Path]) -> str:
    """First digits of the files' SHA-256."""
    found = hashlib.sha256()
    for file in files:
        try:
            found.update(file.read_bytes())
        except OSError as error:
            return f"unreadable: {error.strerror}"
        found.update(b"\0")
    return found.hexdigest()[:12]
