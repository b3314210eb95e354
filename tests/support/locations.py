"""Where the project and what stands beside it are."""

from __future__ import annotations

from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
SCENES = PROJECT / "scenes"
SHARED = PROJECT.parent / "shared"
"""Third-party robots and data, which stand beside the project and are not part of it."""
ASSETS, ZOO = SHARED / "assets", SHARED / "zoo"
