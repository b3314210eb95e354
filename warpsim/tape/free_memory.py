"""Memory that can still be had: of a GPU, and of the host on Linux, macOS and Windows."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
from pathlib import Path

import warp as wp

from warpsim.core.errors import InputError

_MEMINFO = Path("/proc/meminfo")


def free_bytes(device: wp.Device) -> int:
    """Memory that can still be had on the device.

    Raises:
        InputError: The system does not tell.
    """
    if device.is_cuda:
        return device.free_memory
    found = _of_host(sys.platform)
    if found is None:
        raise InputError(
            f"this system ({sys.platform}) does not tell how much memory is free; give memory= in bytes, e.g. '512MB'"
        )
    return found


def _of_host(platform: str) -> int | None:
    if _MEMINFO.exists():
        return _available(_MEMINFO.read_text())
    if platform == "win32":
        return _of_windows(ctypes.windll.kernel32)  # type: ignore[attr-defined,unused-ignore]
    if platform == "darwin":
        shown = subprocess.run(["vm_stat"], capture_output=True, text=True, check=False)
        return _reclaimable(shown.stdout)
    names = getattr(os, "sysconf_names", {})
    if {"SC_PAGE_SIZE", "SC_AVPHYS_PAGES"} <= names.keys():
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
    return None


def _available(meminfo: str) -> int | None:
    """What Linux's /proc/meminfo calls available: free, or reclaimable without swapping."""
    found = re.search(r"^MemAvailable:\s*(\d+) kB$", meminfo, re.MULTILINE)
    return None if found is None else int(found[1]) * 1024


def _reclaimable(vm_stat: str) -> int | None:
    """The same from macOS' vm_stat: pages that are free or not in use."""
    size = re.search(r"page size of (\d+) bytes", vm_stat)
    kinds = "free|inactive|speculative"
    pages = re.findall(rf"^Pages (?:{kinds}):\s+(\d+)\.$", vm_stat, re.MULTILINE)
    return None if size is None or not pages else int(size[1]) * sum(map(int, pages))


class _MemoryStatus(ctypes.Structure):
    """MEMORYSTATUSEX of the Windows API."""

    _fields_ = (
        ("length", ctypes.c_uint32),
        ("load", ctypes.c_uint32),
        ("total_physical", ctypes.c_uint64),
        ("available_physical", ctypes.c_uint64),
        ("total_page_file", ctypes.c_uint64),
        ("available_page_file", ctypes.c_uint64),
        ("total_virtual", ctypes.c_uint64),
        ("available_virtual", ctypes.c_uint64),
        ("available_extended_virtual", ctypes.c_uint64),
    )


def _of_windows(kernel32: ctypes.CDLL) -> int | None:
    status = _MemoryStatus(length=ctypes.sizeof(_MemoryStatus))
    if not kernel32.GlobalMemoryStatusEx(ctypes.byref(status)):
        return None
    return int(status.available_physical)
