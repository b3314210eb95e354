"""Layers as files."""

from __future__ import annotations

import os
from os import PathLike, fspath

from pxr import Sdf

from warpsim.errors import InputError


def export_layer(layer: Sdf.Layer, path: str | PathLike[str]) -> None:
    """Writes a layer to a file, over what is there.

    USD keeps the layers of files that somebody holds open and hands them out again, whatever the file has become since:
    those of this file are read anew.

    Raises:
        InputError: It cannot be written.
    """
    if not layer.Export(fspath(path)):
        raise InputError(f"cannot write {fspath(path)}; check the folder and the suffix (.usda, .usdc)")
    written = os.path.realpath(fspath(path))
    for held in Sdf.Layer.GetLoadedLayers():
        if held and held.realPath and os.path.realpath(held.realPath) == written:
            held.Reload(force=True)
