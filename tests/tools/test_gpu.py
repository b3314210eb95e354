"""Kernels are compiled for GPUs without one, and what they take is read from the machine code."""

from __future__ import annotations

import sys

import pytest

from tools.gpu.__main__ import Compiled, compile_all, compile_module, kernel_modules, to_markdown
from tools.gpu.cubin import Usage, usages

pytestmark = pytest.mark.skipif(sys.platform == "darwin", reason="Warp has no compiler for CUDA on macOS")


def test_a_module_is_compiled_and_read():
    found = compile_module("warpsim.tape.calls", 80)
    assert not found.error and [kernel.kernel for kernel in found.kernels] == ["_replay_kernel_cuda_kernel_forward"]
    assert 0 < found.registers <= 255 and found.stack == 0 and found.within


def test_what_is_no_machine_code_is_refused(tmp_path):
    path = tmp_path / "some.cubin"
    path.write_bytes(b"text")
    with pytest.raises(ValueError, match="no ELF file"):
        usages(path)


def test_a_table_counts_what_is_within_the_bars():
    rows = [
        Compiled("warpsim.a", 80, 2.0, (Usage("k", 40, 16), Usage("l", 255, 8))),
        Compiled("warpsim.b", 80, 61.0, (Usage("k", 40, 16),)),
        Compiled("warpsim.c", 80, 2.0, (Usage("k", 40, 4104),)),
        Compiled("warpsim.d", 80, 2.0, error="no such type"),
    ]
    assert [row.within for row in rows] == [True, False, False, False]
    text = to_markdown(rows)
    assert "1 of 4 modules are within" in text and "| a | 2 | 255 | 16 | 2.0 |" in text and "no such type" in text


@pytest.mark.long
def test_every_module_compiles():
    names = kernel_modules()
    assert len(names) > 100 and "warpsim.collision.narrow_convex" in names
    assert not [row for row in compile_all(names, [80, 90], 2) if row.error]
