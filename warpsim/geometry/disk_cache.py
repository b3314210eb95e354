"""What is slow to compute from a mesh, kept on disk by content: in `WARPSIM_CACHE`, or the user's cache directory."""

from __future__ import annotations

import hashlib
import logging
import os
import struct
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from warpsim.core.errors import CacheWarning, OutputError
from warpsim.core.files import replacing

_LOG = logging.getLogger(__name__)
_CHECKSUM = "checksum"
_UNREADABLE = (
    OSError,
    ValueError,
    KeyError,
    tokenize.TokenError,  # of a header, from Python 3.12 on
    EOFError,
    MemoryError,
    NotImplementedError,
    RuntimeError,
    TypeError,
    AttributeError,
    struct.error,
    zlib.error,
    zipfile.BadZipFile,
)
"""What NumPy and zipfile raise over a file that is damaged or none of theirs."""


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


def _checksum(kind: str, key: str, arrays: Mapping[str, np.ndarray]) -> str:
    """Of the arrays as stored, bound to the name they are stored under."""
    names = sorted(arrays)
    types = " ".join(f"{name}:{arrays[name].dtype.str}" for name in names)
    return content_key(f"{kind} {key} {types}", *(arrays[name] for name in names))


def load_arrays(kind: str, key: str, names: Sequence[str]) -> dict[str, np.ndarray] | None:
    """The stored arrays; None where they are absent, damaged or not ours, so that they are computed anew."""
    path = cache_directory(kind) / f"{key}.npz"
    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in names}
            checksum = str(stored[_CHECKSUM])
    except FileNotFoundError:
        _LOG.info("%s: not in the cache, computed: %s", kind, path)
        return None
    except _UNREADABLE as error:
        _LOG.info("%s: unreadable in the cache (%s), computed again: %s", kind, error, path)
        return None
    if checksum != _checksum(kind, key, arrays):
        _LOG.info("%s: damaged in the cache, computed again: %s", kind, path)
        return None
    _LOG.info("%s: found in the cache: %s", kind, path)
    return arrays


def store_arrays(kind: str, key: str, **arrays: np.ndarray) -> None:
    """Stores arrays whole, so that another process never reads half of them; warns where that is not possible."""
    folder = cache_directory(kind)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with replacing(folder / f"{key}.npz", durable=False) as temporary:
            np.savez(temporary, **arrays, **{_CHECKSUM: np.array(_checksum(kind, key, arrays))})  # type: ignore[arg-type]
    except (OSError, OutputError) as error:
        warnings.warn(
            f"the {kind} of a mesh could not be kept in {folder} ({error}), so that it is computed in every run; make "
            "room there, or set WARPSIM_CACHE to a folder that can be written",
            CacheWarning,
            stacklevel=2,
        )
