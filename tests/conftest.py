"""Fixtures shared by all tests."""

import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import warp as wp

from locations import ASSETS

wp.config.log_level = wp.LOG_WARNING

# A shell that starts the tests in the background lets them ignore Ctrl-C, and their children inherit that; the tests of
# interruption need it.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def assets_dir() -> Path:
    """Third-party robot descriptions, which stand beside the project and are not part of it."""
    if not ASSETS.is_dir():
        pytest.skip("the third-party robot assets are not beside the project")
    return ASSETS


@pytest.fixture(scope="module")
def own_cache(tmp_path_factory) -> Iterator[Path]:
    """A cache of a module's own for grids and convex pieces; its folder."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("cache")
        patch.setenv("WARPSIM_CACHE", str(folder))
        yield folder


@pytest.fixture(scope="session", autouse=True)
def trusted_folders(tmp_path_factory) -> Iterator[None]:
    """Scenes of the tests may refer to each other, across folders."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WARPSIM_ALLOW", str(tmp_path_factory.getbasetemp()))
        yield


@pytest.fixture
def small_disk(tmp_path) -> Iterator[Callable[[str], Path]]:
    """Mounts disks of a size such as "200k", empty, where the machine allows that."""
    mounted: list[Path] = []

    def mount(size: str) -> Path:
        place = tmp_path / f"disk_{len(mounted)}"
        place.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)]
        if shutil.which("mount") is None or subprocess.run(command, capture_output=True, check=False).returncode:
            pytest.skip("this machine does not let the tests mount a disk")
        mounted.append(place)
        return place

    yield mount
    for place in mounted:
        subprocess.run(["umount", "-l", str(place)], check=False)


@pytest.fixture
def rng() -> np.random.Generator:
    """The same random numbers in every run."""
    return np.random.default_rng(20250217)
