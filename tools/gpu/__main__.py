"""Compiles every kernel module for GPUs and reports time, registers and stack; nothing is run, and no GPU is needed.

    python -m tools.gpu [--arch 80 90] [--only NAME …] [--jobs 2] [--json FILE] [--markdown FILE]

Exit code 1 where a module does not compile, or a thread's stack or the time to compile is beyond its bar.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path

import warp as wp

import warpsim
from tools.bench.report import add_files, environment, publish
from tools.gpu.cubin import Usage, usages

MOST_STACK, MOST_SECONDS = 4096, 60.0
"""Bars: bytes a thread, and s of processor time to compile a module."""


@dataclass(frozen=True)
class Compiled:
    """A module for one architecture.

    Attributes:
        module: Its name.
        arch: 80 for sm_80.
        seconds: Of processor time.
        kernels: What their threads take; empty where it failed.
        error: Why it does not compile; "": it does.
    """

    module: str
    arch: int
    seconds: float
    kernels: tuple[Usage, ...] = ()
    error: str = ""

    @property
    def registers(self) -> int:
        """Of the kernel that takes most."""
        return max((kernel.registers for kernel in self.kernels), default=0)

    @property
    def stack(self) -> int:
        """Likewise, bytes."""
        return max((kernel.stack for kernel in self.kernels), default=0)

    @property
    def within(self) -> bool:
        """Whether it compiles, within the bars."""
        return not self.error and self.stack <= MOST_STACK and self.seconds <= MOST_SECONDS


def kernel_modules() -> list[str]:
    """All modules of warpsim with kernels."""
    for found in pkgutil.walk_packages(warpsim.__path__, "warpsim."):
        if not found.name.endswith("__main__"):
            try:
                importlib.import_module(found.name)
            except (ImportError, warpsim.WarpsimError):  # an extra that is not installed; it has no kernels
                continue
    modules = [name for name in sys.modules if name.startswith("warpsim.")]
    return sorted(name for name in modules if wp.get_module(name).kernels)


def compile_module(name: str, arch: int) -> Compiled:
    """Compiles a module to machine code."""
    importlib.import_module(name)
    with tempfile.TemporaryDirectory() as folder:
        begun = time.process_time()
        try:
            wp.compile_aot_module(wp.get_module(name), module_dir=folder, arch=arch, use_ptx=False, strip_hash=True)
        except Exception as error:
            return Compiled(name, arch, time.process_time() - begun, error=str(error).strip().splitlines()[-1])
        seconds = time.process_time() - begun
        (cubin,) = Path(folder).rglob("*.cubin")
        return Compiled(name, arch, seconds, tuple(usages(cubin)))


def compile_all(names: Sequence[str], arches: Sequence[int], jobs: int) -> Iterator[Compiled]:
    """All modules, in processes of their own."""
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_quiet) as executor:
        waiting = [executor.submit(compile_module, name, arch) for name in names for arch in arches]
        for future in waiting:
            found = future.result()
            print(f"{found.module} sm_{found.arch}: {_words(found)}", file=sys.stderr, flush=True)
            yield found


def _quiet() -> None:
    wp.config.log_level = wp.LOG_ERROR


def _words(found: Compiled) -> str:
    if found.error:
        return f"does not compile: {found.error}"
    return f"{found.registers} registers, {found.stack} B of stack, {found.seconds:.1f} s"


def to_markdown(rows: Sequence[Compiled]) -> str:
    """The table: a line for each module."""
    here = environment("tools.gpu")
    arches = sorted({row.arch for row in rows})
    by_place = {(row.module, row.arch): row for row in rows}
    modules = sorted({row.module for row in rows})
    good = sum(all(by_place[name, arch].within for arch in arches if (name, arch) in by_place) for name in modules)
    lines = [
        "# Compiled for GPUs, not run",
        "",
        f"`{here['command']}`",
        "",
        f"NVRTC of Warp {here['versions']['warp-lang']} on {here['processor']}, {here['precision']}. No GPU was at "
        "hand: these kernels were compiled to machine code, and never run there. Registers and stack of the kernel of "
        "each module that takes most; s of processor time. "
        f"{good} of {len(modules)} modules are within {MOST_STACK:,} B of stack and {MOST_SECONDS:g} s.",
        "",
        "| module | kernels | " + " | ".join(f"sm_{a}: registers | stack, B | s" for a in arches) + " |",
        "|---" * (2 + 3 * len(arches)) + "|",
    ]
    for name in modules:
        found = [by_place[name, arch] for arch in arches if (name, arch) in by_place]
        cells = [name.removeprefix("warpsim."), str(max(len(row.kernels) for row in found))]
        for row in found:
            figures = (f"{row.registers}", f"{row.stack:,}", f"{row.seconds:.1f}")
            cells += ["does not compile", row.error, "–"] if row.error else figures
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Compiles and reports."""
    parser = argparse.ArgumentParser(prog="python -m tools.gpu", description=__doc__)
    parser.add_argument("--arch", type=int, nargs="+", default=[80, 90])
    parser.add_argument("--only", nargs="+", metavar="NAME", help="modules whose name contains one of these")
    parser.add_argument("--jobs", type=int, default=2)
    add_files(parser)
    options = parser.parse_args()
    _quiet()
    names = [name for name in kernel_modules() if any(part in name for part in options.only or [""])]
    rows = list(compile_all(names, options.arch, options.jobs))
    found = {"environment": environment("tools.gpu"), "rows": [asdict(row) for row in rows]}
    publish(options, to_markdown(rows), found)
    return 0 if rows and all(row.within for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
