"""What Warp says and compiles, watched in fresh processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]

_COMPILE = """
import sys
import warp as wp
from warpsim.core import kernels
from warpsim.tape import calls, knots
kernels.initialize()
sys.stderr.isatty = lambda: {terminal}
wp.load_module("warpsim.tape.calls", device="cpu")
print(kernels.pending_modules())
"""


def _run(code: str, cache: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    given = {**os.environ, "WARP_CACHE_PATH": str(cache), "PYTHONPATH": str(PROJECT), **environment}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=given, capture_output=True, text=True, check=False)


def test_compiling_is_shown_once_and_warp_is_quiet(tmp_path):
    first = _run(_COMPILE.format(terminal=True), tmp_path)
    assert first.returncode == 0, first.stderr
    assert "compiling kernels (once): 1 of at most" in first.stderr
    assert "Warp" not in first.stdout + first.stderr and "Module" not in first.stdout + first.stderr
    again = _run(_COMPILE.format(terminal=False), tmp_path)
    assert again.returncode == 0 and "compiling" not in again.stderr
    loud = _run(_COMPILE.format(terminal=False), tmp_path, WARPSIM_VERBOSE="1")
    assert "initialized" in loud.stdout + loud.stderr and "Module warpsim.tape.calls" in loud.stdout + loud.stderr


def test_help_and_light_commands_load_no_torch(tmp_path):
    code = (
        "import sys; from warpsim.cli.main import make_parser\n"
        "make_parser(None).format_help(); light = [m for m in ('warp', 'torch', 'pxr', 'numpy') if m in sys.modules]\n"
        "make_parser('inspect'); make_parser('convert'); make_parser('doctor')\n"
        "print(light, 'torch' in sys.modules)"
    )
    done = _run(code, tmp_path)
    assert done.stdout.strip() == "[] False", done.stderr


_RUN = """
import sys
from warpsim.cli.main import main
code = main({arguments!r})
import warp as wp
loaded = dict(sys.modules)
ours = [n for n in loaded if n.startswith("warpsim") and not n.startswith("warpsim.geometry")]  # which measures meshes
kernels = [n for n in ours if wp.Kernel in map(type, vars(loaded[n]).values())]
print([code, [n for n in ("torch", "mujoco", "matplotlib") if n in loaded], kernels])
"""


@pytest.mark.parametrize("command", ["inspect", "convert"])
def test_commands_that_simulate_nothing_load_no_kernels(command, tmp_path):
    """Warp reads the source of each kernel when its module is loaded, which takes longer than the command."""
    scene = str(PROJECT / "scenes" / "humanoid.usda")
    arguments = [command, scene, *([str(tmp_path / "out.usda")] if command == "convert" else [])]
    done = _run(_RUN.format(arguments=arguments), tmp_path)
    assert done.stdout.splitlines()[-1:] == ["[0, [], []]"], done.stdout + done.stderr


def test_doctor_tells_what_a_report_needs(tmp_path):
    code = "import sys; from warpsim.cli.main import main; sys.exit(main(['doctor']))"
    done = _run(code, tmp_path)
    assert done.returncode == 0, done.stderr
    for words in (
        "warpsim ",
        "python ",
        "warp-lang",
        "torch",
        "precision        float",
        "devices          cpu",
        str(tmp_path),
    ):
        assert words in done.stdout, words
    assert done.stderr == ""
