"""`warpsim doctor`: what a report of a fault should say about the installation."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import warp as wp

from warpsim.core.kernels import cache_folder, initialize
from warpsim.core.precision import PRECISION
from warpsim.geometry.disk_cache import cache_directory
from warpsim.version import __version__

_PACKAGES = ("warp-lang", "usd-core", "numpy", "torch", "mujoco", "pillow", "matplotlib", "tqdm")
_VARIABLES = ("WARPSIM_PRECISION", "WARPSIM_CACHE", "WARPSIM_VERBOSE", "WARP_CACHE_PATH", "OMP_NUM_THREADS", "TMPDIR")


def run(arguments: argparse.Namespace) -> int:
    """Prints."""
    initialize()
    sound = True
    for name, value in _facts():
        print(f"{name:<16} {value}")
    for name, folder in _caches().items():
        state = _state(folder)
        sound &= "cannot" not in state
        print(f"{name:<16} {folder}: {state}")
    return 0 if sound else 1


def _facts() -> Iterator[tuple[str, str]]:
    yield "warpsim", f"{__version__}, {Path(__file__).parents[1]}"
    yield "python", f"{platform.python_version()}, {sys.executable}"
    yield "system", f"{platform.platform()}, {platform.machine()}"
    for name in _PACKAGES:
        yield name, _version(name)
    yield "precision", PRECISION
    yield "devices", ", ".join(f"{device.alias} ({device.name})" for device in wp.get_devices())
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    yield "threads", f"{usable} of {os.cpu_count()} processors may be used"
    yield "text", f"{sys.stdout.encoding}, files {sys.getfilesystemencoding()}"
    for name in _VARIABLES:
        if name in os.environ:
            yield name, os.environ[name]


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _caches() -> dict[str, Path]:
    return {"kernels": cache_folder(), **{kind: cache_directory(kind) for kind in ("sdf", "pieces")}}


def _state(folder: Path) -> str:
    """How full a cache is, and whether it can be written."""
    files = [path.stat().st_size for path in folder.rglob("*") if path.is_file()] if folder.is_dir() else []
    place = folder
    while not place.exists():
        place = place.parent
    writable = "" if os.access(place, os.W_OK) and place.is_dir() else "; it cannot be written"
    free = shutil.disk_usage(place).free
    return f"{len(files)} files, {sum(files) / 1e6:.1f} MB; {free / 1e9:.2f} GB free{writable}"
