"""Memory budgets as users write them: bytes, "512MB", or "50%" of what is free."""

from __future__ import annotations

import math
import re

import warp as wp

from warpsim.core.errors import InputError
from warpsim.tape.free_memory import free_bytes

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


def parse(budget: int | float | str, device: wp.Device) -> int:
    """The budget in bytes.

    Args:
        budget: Bytes; or a size such as "512MB" or "1.5GiB"; or a share such as "50%" of the device's free memory.
        device: Whose free memory a share refers to.
    """
    check_type(budget)
    if isinstance(budget, (int, float)):
        if not math.isfinite(budget):
            raise _unreadable(budget)
        return _positive(int(budget), budget)
    match = re.fullmatch(r"\s*([0-9.]+)\s*(%|[A-Za-z]*)\s*", str(budget))
    if match is None or match[1].count(".") > 1 or match[1] == ".":
        raise _unreadable(budget)
    number, unit = float(match[1]), match[2].upper()
    if unit == "%":
        if number > 100.0:
            raise _unreadable(budget)
        return _positive(int(number / 100.0 * free_bytes(device)), budget)
    if unit not in _UNITS:
        raise _unreadable(budget)
    return _positive(int(number * _UNITS[unit]), budget)


def check_type(budget: object) -> None:
    """Raises unless a budget is a number or a text."""
    if not isinstance(budget, (int, float, str)) or isinstance(budget, bool):
        raise _unreadable(budget)


def readable(nbytes: int) -> str:
    """A size for people, e.g. "12.3 MB"."""
    for unit, scale in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if nbytes >= scale:
            return f"{nbytes / scale:.4g} {unit}"
    return f"{nbytes} B"


def _positive(nbytes: int, budget: object) -> int:
    if nbytes <= 0:
        raise InputError(f"memory={budget!r} leaves no memory at all")
    return nbytes


def _unreadable(budget: object) -> InputError:
    return InputError(f"memory={budget!r}; write bytes, a size such as '512MB', or a share such as '50%'")
