"""What is slow to compute from a mesh, kept on disk by content: in `WARPSIM_CACHE`, or the user's cache directory."""

from __future__ import annotations

import hashlib
import os
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np


def cache_directory(kind: str) -> Path:
    """Where results of one kind are kept."""
    chosen = os.environ.get("WARPSIM_CACHE")
    if chosen:
        return Path(chosen) / kind
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "warpsim" / kind


def content_key(settings: str, *arrays: np.ndarray) -> str:
    """A name for what is computed from arrays with some settings."""
    digest = hashlib.sha256(settings.encode())
    for array in arrays:
        digest.update(str(array.shape).encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def load_arrays(kind: str, key: str, names: Sequence[str]) -> dict[str, np.ndarray] | None:
    """The stored arrays; None where they are absent or unreadable, so that they are computed anew."""
    try:
        with np.load(cache_directory(kind) / f"{key}.npz") as stored:
            return {name: stored[name] for name in names}
    except (OSError, ValueError, KeyError, zipfile.BadZipFile):
        return None


def store_arrays(kind: str, key: str, **arrays: np.ndarray) -> None:
    """Writes to a temporary file first, so that another process never reads half of it."""
    folder = cache_directory(kind)
    folder.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=folder, suffix=".npz")
    with os.fdopen(handle, "wb") as stream:
        np.savez(stream, **arrays)  # type: ignore[arg-type]
    os.replace(temporary, folder / f"{key}.npz")
