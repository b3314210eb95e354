"""Free memory as each system tells it."""

from __future__ import annotations

import ctypes

import pytest
import warp as wp

from warpsim.core.errors import InputError
from warpsim.tape import budget, free_memory

VM_STAT = """Mach Virtual Memory Statistics: (page size of 16384 bytes)
Pages free:                               17395.
Pages active:                            249301.
Pages inactive:                          245932.
Pages speculative:                         2652.
Pages throttled:                              0.
Pages wired down:                        126741.
Pages purgeable:                           1213.
"Translation faults":                 371235411.
"""

MEMINFO = "MemTotal:       65842160 kB\nMemFree:         1013012 kB\nMemAvailable:   51234567 kB\n"


class Kernel32:
    """Windows' GlobalMemoryStatusEx as documented: refuses a structure whose length is not set, else fills it."""

    def GlobalMemoryStatusEx(self, pointer):
        status = pointer._obj
        if status.length != 64 or ctypes.sizeof(status) != 64:
            return 0
        words = (ctypes.c_uint64 * 8).from_address(ctypes.addressof(status))
        words[1:] = [16 << 30, 5 << 30, 32 << 30, 20 << 30, 1 << 47, 1 << 46, 0]
        return 1


def test_linux():
    assert free_memory._available(MEMINFO) == 51234567 * 1024
    assert free_memory._available("MemTotal: 3 kB\n") is None


def test_macos():
    assert free_memory._reclaimable(VM_STAT) == 16384 * (17395 + 245932 + 2652)
    assert free_memory._reclaimable("") is None


def test_windows():
    assert free_memory._of_windows(Kernel32()) == 5 << 30


@pytest.mark.parametrize("platform", ["win32", "darwin", "plan9"])
def test_shares_are_of_what_the_system_tells(platform, monkeypatch, tmp_path):
    """Without /proc and without the names that `os.sysconf` has on Linux alone."""
    monkeypatch.setattr(free_memory, "_MEMINFO", tmp_path / "absent")
    monkeypatch.setattr(free_memory.sys, "platform", platform)
    monkeypatch.delattr(free_memory.os, "sysconf")
    monkeypatch.delattr(free_memory.os, "sysconf_names")
    monkeypatch.setattr(ctypes, "windll", type("windll", (), {"kernel32": Kernel32()}), raising=False)
    script = tmp_path / "vm_stat"
    script.write_text(f"#!/bin/sh\ncat <<'END'\n{VM_STAT}END\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    cpu = wp.get_device("cpu")
    if platform == "plan9":
        with pytest.raises(InputError, match="plan9.*in bytes"):
            budget.parse("50%", cpu)
    else:
        free = {"win32": 5 << 30, "darwin": 16384 * (17395 + 245932 + 2652)}[platform]
        assert budget.parse("50%", cpu) == free // 2
