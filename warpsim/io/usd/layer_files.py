"""Layers as files: written whole, sealed where they are ours, and the files a stage is composed of."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from pxr import Sdf, Tf, Usd, UsdUtils

from warpsim.core.errors import OutputError
from warpsim.core.files import replacing

_NAME = "warpsim"
_BLANK = "0" * 64
_SEAL = re.compile(r'string sha256 = "([0-9a-f]{64})"')


def mark_layer(layer: Sdf.Layer, provenance: Mapping[str, Any]) -> None:
    """Says in the layer's customLayerData that it is ours, and what made it (plain data)."""
    layer.customLayerData = {**layer.customLayerData, _NAME: {**provenance, "sha256": _BLANK}}


def export_layer(layer: Sdf.Layer, path: str | PathLike[str]) -> None:
    """Writes a layer to a file, over what is there; a marked one is sealed with a checksum of its text.

    USD keeps the layers of files that somebody holds open and hands them out again, whatever the file has become since:
    those of this file are read anew.

    Raises:
        OutputError: It cannot be written; what was there before is unchanged.
    """
    with replacing(path) as temporary:
        try:
            done = layer.Export(fspath(temporary))
        except Tf.ErrorException as error:
            raise OutputError(
                f"cannot write {fspath(path)}: {_reason(error)}; check the disk and the folder"
            ) from error
        if not done:
            raise OutputError(f"cannot write {fspath(path)}; check the folder and the suffix (.usda, .usdc)")
        if temporary.suffix == ".usda":
            _seal(temporary)
    written = os.path.realpath(fspath(path))
    for held in Sdf.Layer.GetLoadedLayers():
        if held and held.realPath and os.path.realpath(held.realPath) == written:
            held.Reload(force=True)


def is_our_layer(path: Path) -> bool:
    """Whether a layer is one we wrote, and a text layer one that nobody has changed since."""
    if path.suffix.lower() == ".usda":
        text = path.read_text(encoding="utf-8", errors="replace")
        found = _SEAL.search(text)
        return found is not None and found[1] == _checksum(text)
    try:
        layer = Sdf.Layer.OpenAsAnonymous(str(path), metadataOnly=True)
    except Tf.ErrorException:
        return False
    return layer is not None and _NAME in layer.customLayerData


def layer_paths(layers: Iterable[Sdf.Layer]) -> list[Path]:
    """The files of layers; of one within a package, the package."""
    return [Path(layer.realPath.partition("[")[0]) for layer in layers if layer and layer.realPath]


def stage_files(source: str | PathLike[str]) -> list[Path]:
    """Every file a stage is composed of or refers to: sublayers, references, payloads, clips, meshes, textures."""
    layers: list[Sdf.Layer] = []
    assets: list[str] = []
    stage: Usd.Stage | None = None  # holds its layers open
    with suppress(Tf.ErrorException):  # opening it will say what is wrong with it
        stage = Usd.Stage.Open(fspath(source))
        layers += stage.GetUsedLayers(includeClipLayers=True)
    with suppress(Tf.ErrorException):
        found, assets, _ = UsdUtils.ComputeAllDependencies(fspath(source))
        layers += found
    names = {layer.ComputeAbsolutePath(name) for layer in layers for name in layer.GetCompositionAssetDependencies()}
    files = [*assets, *sorted(names)]  # those that do not open, too
    return [Path(fspath(source)), *layer_paths(layers), *(Path(name.partition("[")[0]) for name in files)]


def _seal(path: Path) -> None:
    """Fills in the checksum of a marked text layer."""
    text = path.read_text(encoding="utf-8")
    blank = f'string sha256 = "{_BLANK}"'
    if blank in text:
        path.write_text(text.replace(blank, f'string sha256 = "{_checksum(text)}"', 1), encoding="utf-8")


def _checksum(text: str) -> str:
    """Of the text with an empty seal."""
    return hashlib.sha256(_SEAL.sub(f'string sha256 = "{_BLANK}"', text, count=1).encode()).hexdigest()


def _reason(error: Tf.ErrorException) -> str:
    """The system's words among USD's."""
    found = re.search(r"Error occurred writing file: ([^\n']+)", str(error))
    return found[1] if found else str(error).strip().splitlines()[0]
