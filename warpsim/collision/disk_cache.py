"""What is slow to compute from a mesh, kept on disk by content: in `WARPSIM_CACHE`, or the user's cache directory."""

from __future__ import annotations

import hashlib
import os
import warnings
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from warpsim.errors import CacheWarning, OutputError
from warpsim.files import replacing


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
    """Stores arrays whole, so that another process never reads half of them; warns where that is not possible."""
    folder = cache_directory(kind)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with replacing(folder / f"{key}.npz", durable=False) as temporary:
            np.savez(temporary, **arrays)  # type: ignore[arg-type]
    except (OSError, OutputError) as error:
        warnings.warn(
            f"the {kind} of a mesh could not be kept in {folder} ({error}), so that it is computed in every run; make "
            "room there, or set WARPSIM_CACHE to a folder that can be written",
            CacheWarning,
            stacklevel=2,
        )
