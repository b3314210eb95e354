"""Registers and stack of every kernel on NVIDIA's processors: compiled and assembled, not run.

    .venv/bin/python -m tools.kernel_resources --markdown docs/bench/kernels.md --json out/kernels.json

Warp compiles each module to PTX for the oldest of the architectures; `ptxas` (of CUDA's toolkit) assembles that for each
of them, as a driver would on its machine, and says what each kernel needs.
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import warp as wp

import warpsim
from warpsim.core.files import write_text

ARCHITECTURES = (80, 90)
"""sm_80: A100; sm_90: H100."""
LARGEST_STACK = 4096
"""Bytes per thread; a processor reserves as much for each thread it can hold, a few hundred thousand."""
_PACKAGE = Path(warpsim.__file__).parent
_COMPILED = re.compile(r"Compiling entry function '(\w+)' for 'sm_(\d+)'")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_REGISTERS = re.compile(r"Used (\d+) registers")


@dataclass(frozen=True)
class Kernel:
    """What one kernel needs.

    Attributes:
        module: Python module.
        name: Its own name; an adjoint's ends in "_backward".
        architecture: 80 for sm_80.
        registers: Per thread.
        stack: Bytes per thread, without what called functions add where they are not inlined.
        spills: Bytes of registers that are stored and loaded again, both together.
    """

    module: str
    name: str
    architecture: int
    registers: int
    stack: int
    spills: int


@dataclass(frozen=True)
class Module:
    """A module's compilation: seconds of processor time to PTX, then of each assembly, and its kernels."""

    name: str
    compile_seconds: float
    assemble_seconds: tuple[float, ...]
    kernels: tuple[Kernel, ...]


def kernel_modules() -> list[str]:
    """Names of the package's modules that hold kernels."""
    made = re.compile(r"^@wp\.kernel|^\w+_kernel = ", re.MULTILINE)  # there, or by a function of another module
    files = [path for path in sorted(_PACKAGE.rglob("*.py")) if made.search(path.read_text(encoding="utf-8"))]
    return [".".join(("warpsim", *path.relative_to(_PACKAGE).with_suffix("").parts)) for path in files]


def compiled_modules(name: str) -> list[wp.Module]:
    """What Warp compiles of a Python module: one module, or some that are named after it."""
    kernels = [value for value in vars(importlib.import_module(name)).values() if isinstance(value, wp.Kernel)]
    return list({k.module.name: k.module for k in kernels if k.module.name.startswith(name)}.values())


def measure(name: str, architectures: Sequence[int] = ARCHITECTURES) -> Module:
    """Compiles and assembles one module."""
    kernels: list[Kernel] = []
    assembled = [0.0] * len(architectures)
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        for module in compiled_modules(name):
            wp.compile_aot_module(module, arch=min(architectures), use_ptx=True, module_dir=folder)
        compiled = time.process_time() - began
        for path in sorted(Path(folder).glob("*.ptx")):
            for place, architecture in enumerate(architectures):
                seconds, found = _assemble(name, path, architecture)
                assembled[place] += seconds
                kernels += found
    return Module(name, compiled, tuple(assembled), tuple(kernels))


def _assemble(module: str, path: Path, architecture: int) -> tuple[float, list[Kernel]]:
    began = time.perf_counter()
    done = subprocess.run(
        ["ptxas", "--verbose", f"--gpu-name=sm_{architecture}", f"--output-file={path}.cubin", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"ptxas refuses {module}: {done.stderr.strip()}")
    return time.perf_counter() - began, list(_read(module, done.stderr.splitlines()))


def _read(module: str, lines: Iterable[str]) -> Iterable[Kernel]:
    """The kernels that `ptxas --verbose` tells of."""
    name, architecture, stack, spills = "", 0, 0, 0
    for line in lines:
        if found := _COMPILED.search(line):
            name, architecture = _plain(found[1]), int(found[2])
        elif found := _STACK.search(line):
            stack, spills = int(found[1]), int(found[2]) + int(found[3])
        elif found := _REGISTERS.search(line):
            if name:
                yield Kernel(module, name, architecture, int(found[1]), stack, spills)
            name = ""


def _plain(entry: str) -> str:
    """A kernel's name without Warp's hash: `_step_kernel_9f2c_cuda_kernel_forward` → `_step_kernel`."""
    return re.sub(
        r"_[0-9a-f]{8}_cuda_kernel_forward$", "", re.sub(r"_[0-9a-f]{8}_cuda_kernel_backward$", "_backward", entry)
    )


def table(modules: Sequence[Module]) -> str:
    """A line per module: the largest of its kernels' needs on each architecture."""
    lines = [
        "| module | kernels | compile s | "
        + " | ".join(f"sm_{a}: registers, stack B, spills B, s" for a in ARCHITECTURES)
        + " |",
        "|---|---|---|" + "---|" * len(ARCHITECTURES),
    ]
    for module in modules:
        cells = []
        for place, architecture in enumerate(ARCHITECTURES):
            mine = [k for k in module.kernels if k.architecture == architecture]
            most = (max((getattr(k, what) for k in mine), default=0) for what in ("registers", "stack", "spills"))
            cells.append(", ".join(map(str, most)) + f", {module.assemble_seconds[place]:.1f}")
        count = sum(k.architecture == ARCHITECTURES[0] for k in module.kernels)
        lines.append(
            f"| `{module.name.removeprefix('warpsim.')}` | {count} | {module.compile_seconds:.1f} | "
            + " | ".join(cells)
            + " |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("modules", nargs="*", help="Python modules (default: all with kernels)")
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    if shutil.which("ptxas") is None:
        raise SystemExit("ptxas is not on the path; it comes with CUDA's toolkit, or with pip's nvidia-cuda-nvcc-cu12")
    made = []
    for name in chosen.modules or kernel_modules():
        made.append(measure(name))
        print(table(made[-1:]).splitlines()[-1], flush=True)
        if chosen.json:
            write_text(chosen.json, json.dumps([asdict(module) for module in made], indent=1))
    if chosen.markdown:
        write_text(chosen.markdown, table(made) + "\n")


if __name__ == "__main__":
    main()
