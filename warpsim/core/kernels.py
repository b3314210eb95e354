"""Warp made ready: quiet unless `WARPSIM_VERBOSE` is set, its kernel cache checked before anything is compiled into it.

A compiler that meets a full disk ends the process (LLVM aborts), so room is looked for first.
"""

from __future__ import annotations

import functools
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import warp as wp

from warpsim.core import warp_internals
from warpsim.core.errors import CompileError

_LOG = logging.getLogger(__name__)
_PACKAGE = __name__.partition(".")[0] + "."
_ROOM = 8_000_000
"""Bytes that must be free to compile a module; the largest takes a tenth of it."""
_NO_DRIVER = b"Could not find or load the NVIDIA CUDA driver"
_ADVICE = "free some space, or set WARP_CACHE_PATH to a folder that can be written, and run again"
_initialized = False
_started: set[str] = set()
"""Modules that this process has begun to compile."""


def set_verbose(verbose: bool) -> None:
    """Lets Warp tell of itself and of every module it loads, or not; a level that the caller chose stays."""
    if verbose:
        wp.config.log_level = wp.LOG_INFO
    elif wp.config.log_level == wp.LOG_INFO:
        wp.config.log_level = wp.LOG_WARNING


def initialize() -> None:
    """Initializes Warp, if nobody has.

    Raises:
        CompileError: Its kernel cache cannot be made.
    """
    global _initialized
    if _initialized:
        return
    try:
        with _without_driver_warning():
            wp.init()
    except OSError as error:
        raise CompileError(
            f"Warp's kernel cache {cache_folder()} cannot be made: {error.strerror}; {_ADVICE}"
        ) from error
    _initialized = True


def cache_folder() -> Path:
    """Where compiled kernels are kept."""
    return Path(wp.config.kernel_cache_dir or os.environ.get("WARP_CACHE_PATH", "~/.cache/warp")).expanduser()


def pending_modules() -> int:
    """Modules of this package with kernels that are not loaded: at most so many are left to compile."""
    modules = list(warp_internals.user_modules().items())
    return sum(name.startswith(_PACKAGE) and not module.execs for name, module in modules)


def _watched(compile_module: Callable[..., bool]) -> Callable[..., bool]:
    """Warp's compilation of a module, which says what is wrong with the cache, and that it is at work."""

    @functools.wraps(compile_module)
    def watched(
        module: Any, device: Any = None, output_dir: Any = None, output_name: Any = None, *rest: Any, **more: Any
    ):
        if output_dir is None or (Path(output_dir) / str(output_name)).exists():
            return compile_module(module, device, output_dir, output_name, *rest, **more)
        _check_room()
        _LOG.info("compiling the kernels of %s into %s", module.name, output_dir)
        try:
            with _announced(module.name):
                return compile_module(module, device, output_dir, output_name, *rest, **more)
        except OSError as error:
            raise CompileError(
                f"kernels cannot be compiled into {cache_folder()}: {error.strerror or error}; {_ADVICE}"
            ) from error

    return watched


def _check_room() -> None:
    free = shutil.disk_usage(cache_folder()).free
    if free < _ROOM:
        raise CompileError(
            f"kernels have to be compiled, which may take {_ROOM / 1e6:.2g} MB, and Warp's kernel cache "
            f"{cache_folder()} has {free / 1e6:.2g} MB left; {_ADVICE}"
        )


@contextmanager
def _announced(name: str) -> Iterator[None]:
    """A line on the terminal while a module is compiled; elsewhere one line for all of them."""
    if not name.startswith(_PACKAGE) or wp.config.log_level < wp.LOG_WARNING:
        yield
        return
    _started.add(name)
    number, maximum = len(_started), max(len(_started), len(_started) + pending_modules() - 1)
    if not sys.stderr.isatty():
        if number == 1:
            print("compiling kernels (once) …", file=sys.stderr, flush=True)
        yield
        return
    print(f"\rcompiling kernels (once): {number} of at most {maximum}", end="", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


@contextmanager
def _without_driver_warning() -> Iterator[None]:
    """Keeps from the terminal that there is no GPU driver, which Warp's library prints itself; passes on all else."""
    if wp.config.log_level < wp.LOG_WARNING:
        yield
        return
    sys.stderr.flush()
    with tempfile.TemporaryFile() as caught:
        terminal = os.dup(2)
        os.dup2(caught.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(terminal, 2)
            os.close(terminal)
            caught.seek(0)
            rest = [line for line in caught.read().splitlines(keepends=True) if _NO_DRIVER not in line]
            os.write(2, b"".join(rest))


set_verbose(bool(os.environ.get("WARPSIM_VERBOSE")))
if (_module := warp_internals.module_class()) is not None:
    _module._compile = _watched(_module._compile)
