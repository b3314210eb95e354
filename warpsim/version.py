"""Which version this is, as it was installed."""

from __future__ import annotations

from importlib import metadata

try:
    __version__ = metadata.version("warpsim")
except metadata.PackageNotFoundError:  # run from a folder that was never installed
    __version__ = "0+unknown"
