"""One fault in a copy of the project, and the tests that run against it; the working tree is never touched."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tools.mutate import warm
from tools.mutate.faults import Fault

_LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", "out")
_BESIDE = "shared"
"""Folder beside the project with robots and data that some tests skip without."""
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+?(?:\[.*\])?)(?: - .*)?$", re.MULTILINE)


@dataclass(frozen=True)
class Verdict:
    """What became of a fault.

    Attributes:
        fault: The fault.
        result: "caught", "survived" or "unclear" (what failed also fails without the fault).
        by: The test that noticed, or "hang"; "" where none did.
        tests: How many tests or test files were given to pytest, the last few of which may not have run.
        seconds: Wall time.
    """

    fault: Fault
    result: str
    by: str
    tests: int
    seconds: float


class Scratch:
    """A copy of the project with a kernel cache of its own, so that faulty kernels do not stay behind."""

    def __init__(self, root: Path, folder: Path, *, limit: float, forks: bool = False) -> None:
        """Copies the project.

        Args:
            root: The project.
            folder: Where the copy goes; it must not exist.
            limit: s; a session that takes longer hangs.
            forks: Run sessions in forks of this process, which must have nothing of the project loaded but this tool.
        """
        self._copy, self._limit, self._forks = folder / "project", limit, forks
        if forks:
            warm.load()
        shutil.copytree(root, self._copy, ignore=_LEFT_OUT)
        if (root.parent / _BESIDE).is_dir():
            (folder / _BESIDE).symlink_to(root.parent / _BESIDE)
        self._environment = {
            **os.environ,
            "PYTHONPATH": str(self._copy),
            "PYTHONDONTWRITEBYTECODE": "1",  # two edits within a second would share one compiled file
            "WARP_CACHE_PATH": str(folder / "kernels"),
            "WARPSIM_CACHE": str(folder / "meshes"),
        }
        for variable, own in (("WARP_CACHE_PATH", ".cache/warp"), ("WARPSIM_CACHE", ".cache/warpsim")):
            given = Path(os.environ.get(variable, Path.home() / own))
            if given.is_dir():
                shutil.copytree(given, self._environment[variable])

    def trial(self, fault: Fault, sessions: Sequence[Sequence[str]]) -> Verdict:
        """Runs sessions of tests until a test fails."""
        start = time.monotonic()
        ran, by, result = 0, "", "survived"
        with self._planted(fault):
            for session in sessions:
                by = self._first_failure(session)
                ran += len(session)
                if by:
                    break
        if by:
            # without the fault the same test has to pass, or it says nothing about it
            result = "caught" if by == "hang" or not self._first_failure([by]) else "unclear"
        return Verdict(fault, result, by, ran, time.monotonic() - start)

    @contextmanager
    def _planted(self, fault: Fault) -> Iterator[None]:
        file = self._copy / fault.path
        source = file.read_text(encoding="utf-8")
        file.write_text(fault.apply(source), encoding="utf-8")
        try:
            yield
        finally:
            file.write_text(source, encoding="utf-8")

    def _first_failure(self, tests: Sequence[str]) -> str:
        """The first test of some files that fails; "" if none does, "hang" if they do not end."""
        arguments = ["-q", "-x", "-rfE", "-p", "no:cacheprovider", *tests]
        if self._forks:
            code, printed = warm.session([*arguments, "-n", "0"], self._copy, self._environment, self._limit)
            return "hang" if code is None else _failure(code, printed, tests)
        command = [sys.executable, "-m", "pytest", *arguments]
        with subprocess.Popen(
            command,
            cwd=self._copy,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        ) as process:
            try:
                printed, _ = process.communicate(timeout=self._limit)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)  # with the processes that a test started
                return "hang"
        return _failure(process.returncode, printed, tests)


def _failure(code: int, printed: str, tests: Sequence[str]) -> str:
    """The first test that failed, by pytest's exit code and what it printed; "": none."""
    if code in (0, 5):  # 5: every test of the file is of the long tier
        return ""
    found = _FAILED.findall(printed)
    return found[0] if found else tests[0]
