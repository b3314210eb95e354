"""Which tests run which functions, measured once: a plugin of pytest, and the map it writes.

    python -m pytest -p tools.mutate.reach --reach out/reach.json

Only calls are traced, so the quick tier takes little longer than otherwise. A kernel is not called by Python: launches
are traced instead, and a function of kernels counts as run by the tests that launch a kernel whose file imports it.
What a test does in processes of its own is not seen.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType

import pytest
import warp as wp

_ROOT = f"{Path(__file__).resolve().parents[2]}/"
_PACKAGE = f"{_ROOT}warpsim/"
_LAUNCH = wp.launch.__code__


class _Tracer:
    """Code objects that were entered, and kernels that were launched, since `begin`."""

    def __init__(self) -> None:
        self._codes: dict[int, CodeType] = {}
        self._kernels: dict[int, CodeType] = {}

    def begin(self) -> None:
        self._codes, self._kernels = {}, {}
        threading.settrace(self._called)
        sys.settrace(self._called)

    def end(self) -> set[str]:
        """Path and first line of every function of the package that was run, as "path:line"; kernels are among them."""
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]
        found = [*self._codes.values(), *self._kernels.values()]
        return {
            f"{code.co_filename[len(_ROOT) :]}:{code.co_firstlineno}"
            for code in found
            if code.co_filename.startswith(_PACKAGE)
        }

    def _called(self, frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if id(code) not in self._codes:
            self._codes[id(code)] = code
        if code is _LAUNCH:
            kernel = frame.f_locals["kernel"].func.__code__
            self._kernels[id(kernel)] = kernel


class Recorder:
    """The plugin of one session."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._tracer = _Tracer()
        self._reached: dict[str, set[str]] = defaultdict(set)
        self._seconds: dict[str, float] = defaultdict(float)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Traces one test with its fixtures."""
        name = item.nodeid.partition("[")[0]  # all parameters of a test together
        start = time.process_time()
        self._tracer.begin()
        try:
            return (yield)
        finally:
            self._reached[name] |= self._tracer.end()
            self._seconds[name] += time.process_time() - start

    def pytest_sessionfinish(self) -> None:
        """Writes the map; a later session adds to it."""
        known = json.loads(self._file.read_text()) if self._file.is_file() else {}
        for name, places in self._reached.items():
            known[name] = {"seconds": round(self._seconds[name], 2), "functions": sorted(places)}
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(json.dumps(known))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Where the map goes."""
    parser.addoption("--reach", type=Path, help="file for the map of tests to the functions they run")


def pytest_configure(config: pytest.Config) -> None:
    """Begins to record where a file is given."""
    file = config.getoption("--reach")
    if file is not None:
        config.pluginmanager.register(Recorder(file))
