"""Sessions of pytest in forks of a process that has loaded the libraries, and nothing of the project.

Loading them is most of what a short test takes: a fault that a small test notices costs a second instead of eight.
"""

from __future__ import annotations

import gc
import importlib
import os
import signal
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

_LIBRARIES = (
    *("numpy", "scipy.linalg", "scipy.optimize", "scipy.spatial", "torch", "warp", "mujoco", "PIL.Image", "pytest"),
    *(f"pxr.{name}" for name in ("Gf", "Sdf", "Usd", "UsdGeom", "UsdPhysics", "UsdShade", "Vt")),
)
_PROJECT = ("warpsim", "tools", "tests")
_LOOKS = 0.05
"""s between looks whether a session has ended."""


def load() -> None:
    """Loads the libraries, in the process that is forked."""
    for name in _LIBRARIES:
        with suppress(ImportError):  # those that a small project does without
            importlib.import_module(name)
    gc.collect()
    gc.freeze()


def session(
    arguments: Sequence[str], folder: Path, environment: Mapping[str, str], limit: float
) -> tuple[int | None, str]:
    """Runs pytest in a fork.

    Args:
        arguments: Of pytest.
        folder: Where; what is imported comes from there.
        environment: All of it.
        limit: s; longer is no end.

    Returns:
        The exit code, None where it did not end, and what was printed.
    """
    with tempfile.TemporaryFile("w+", errors="replace") as printed:
        child = os.fork()
        if child == 0:
            _become(arguments, folder, environment, printed.fileno())
        until = time.monotonic() + limit
        while True:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                break
            if time.monotonic() > until:
                os.killpg(child, signal.SIGKILL)  # with the processes that a test started
                os.waitpid(child, 0)
                return None, ""
            time.sleep(_LOOKS)
        printed.seek(0)
        return os.waitstatus_to_exitcode(status), printed.read()


def _become(arguments: Sequence[str], folder: Path, environment: Mapping[str, str], output: int) -> None:
    """Never returns."""
    code = 1
    try:
        os.setsid()
        for stream in (1, 2):
            os.dup2(output, stream)
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(folder)
        sys.dont_write_bytecode = True
        root = str(Path(__file__).resolve().parents[2])
        sys.path[:] = [str(folder), *(path for path in sys.path if path not in ("", root))]
        for name in [name for name in sys.modules if name.partition(".")[0] in _PROJECT]:
            del sys.modules[name]
        code = int(importlib.import_module("pytest").main(list(arguments)))
    except BaseException as error:  # whatever it is, the fork ends here
        print(repr(error))
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
