"""What a run was made with: the scene's hash, versions, machine."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.metadata
import json
import platform
from functools import cache
from os import PathLike
from pathlib import Path

import numpy as np

from warpsim.check.records.plain import encode
from warpsim.core.precision import PRECISION
from warpsim.io.usd.reader import open_stage
from warpsim.scene import Scene

_PACKAGES = ("warpsim", "warp-lang", "torch", "numpy", "usd-core")
_NOT_PHYSICS = ("ledger", "sources", "name")


def scene_hash(scene: Scene) -> str:
    """SHA-256 of the description that is simulated: the same for files that say the same in other words."""
    physics = {f.name: getattr(scene, f.name) for f in dataclasses.fields(scene) if f.name not in _NOT_PHYSICS}
    if not scene.matters:
        del physics["matters"]
    physics["options"] = dataclasses.replace(scene.options, max_contacts=None)  # room changes no bit
    return hashlib.sha256(json.dumps(encode(physics), sort_keys=True).encode()).hexdigest()


def file_hash(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def stage_hash(source: str | PathLike[str]) -> str:
    """SHA-256 of all files a USD stage is composed of: it changes when any of them does."""
    digest, stage = hashlib.sha256(), open_stage(source)
    for layer in sorted(stage.GetUsedLayers(), key=lambda layer: layer.identifier):
        if layer.realPath:
            digest.update(Path(layer.realPath).read_bytes())
    return digest.hexdigest()


def array_hash(*arrays: np.ndarray) -> str:
    """SHA-256 of arrays' bits, types and shapes."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def versions() -> dict[str, str]:
    """Of what computed a result."""
    return dict(_versions())


def _version(package: importlib.metadata.Distribution) -> str:
    """Its line of the metadata; `version` parses the whole description for it, longer than a short rollout takes."""
    for line in (package.read_text("METADATA") or package.read_text("PKG-INFO") or "").splitlines():
        if line.startswith("Version:"):
            return line.removeprefix("Version:").strip()
        if not line:  # the headers end
            break
    return package.version


@cache
def _versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "machine": platform.platform(), "precision": PRECISION}
    for name in _PACKAGES:
        try:
            found[name] = _version(importlib.metadata.distribution(name))
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed as a package"
    return found
