"""Warp's private names, looked up in one place and handed out only where they mean what this package takes them for.

Warp has no public way to watch a compilation or a capture. What is done by watching has a plain way too, which gives
the same bits and is slower: a version of Warp that was not tried, or that lacks a name, takes that one.
"""

from __future__ import annotations

from typing import Any

import warp as wp

try:
    from warp._src import context as _context
    from warp._src.apic.capture import APICapture
    from warp._src.apic.types import APICLaunchInfo
except ImportError:
    _context = APICapture = APICLaunchInfo = None

TRIED = ("1.19",)
"""Minor versions of Warp whose private names and adjoints were measured."""
_NAMES = (
    (_context, "user_modules"),
    (_context, "runtime"),
    (getattr(_context, "Module", None), "_compile"),
    (APICapture, "build_launch_info"),
    (APICapture, "track_array"),
    (APICapture, "operation_count"),
)


def is_tried() -> bool:
    """Whether this version of Warp was tried, and has the names that were there."""
    known = ".".join(wp.config.version.split(".")[:2]) in TRIED
    return known and _context is not None and all(hasattr(owner, name) for owner, name in _NAMES)


def module_class() -> Any | None:
    """Warp's class of modules, whose `_compile` may be watched; None: it may not."""
    return _context.Module if is_tried() else None


def user_modules() -> dict[str, Any]:
    """Modules with kernels by name; empty where Warp does not tell."""
    return _context.user_modules if is_tried() else {}


def runtime() -> Any | None:
    """What holds the active capture, once Warp is initialized; None: it may not be watched."""
    return _context.runtime if is_tried() else None
