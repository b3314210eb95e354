"""What reading a scene may open and how much it may hold: a file from elsewhere is data, not a program.

A scene refers to other files (layers, includes, meshes, textures). They are opened only within the scene's own folder
tree, the working directory's, that of our example scenes, and those that the environment variable `WARPSIM_ALLOW`
names; addresses on a network never. A few lines can ask for millions of bodies; `WARPSIM_MAX_OBJECTS` bounds them
before memory does.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from warpsim.core.errors import InputError, SceneError
from warpsim.io.example_scenes import example_folder

ALLOW = "WARPSIM_ALLOW"
MAX_OBJECTS = "WARPSIM_MAX_OBJECTS"
DEFAULT_MAX_OBJECTS = 50_000
"""Bodies, joints, shapes and sites of a scene, or prims of a stage, together."""
_TRUSTED: ContextVar[tuple[Path, ...]] = ContextVar("trusted folders", default=())
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


@dataclass(frozen=True)
class Reach:
    """The folders whose trees a scene may open files in.

    Attributes:
        scene: The file, as errors call it.
        roots: Resolved folders.
    """

    scene: str
    roots: tuple[Path, ...]

    @staticmethod
    def of(scene: str | Path | None) -> Reach:
        """Of a scene file; None: of text, which has no folder."""
        given = [] if scene is None else [Path(scene).absolute().parent, Path(scene).resolve().parent]
        named = [Path(folder) for folder in os.environ.get(ALLOW, "").split(os.pathsep) if folder]
        roots = [folder.resolve() for folder in (*given, *named, *_TRUSTED.get(), example_folder())]
        here = _working_directory()
        # in a home, or above it, it would be all of the user's
        if here is not None and here not in (Path.home().resolve(), *Path.home().resolve().parents):
            roots.append(here)
        return Reach("the XML text" if scene is None else str(scene), tuple(dict.fromkeys(roots)))

    def check(self, reference: str, path: Path) -> None:
        """Refuses to open a file.

        Args:
            reference: As the scene writes it.
            path: What it leads to; links are followed.

        Raises:
            SceneError: It lies outside.
        """
        target = path.resolve()
        if not any(target.is_relative_to(root) for root in self.roots):
            raise SceneError(
                f"{self.scene} refers to {reference!r}, which lies outside its folder ({target}); files from elsewhere "
                f"are not opened. If you trust it, set {ALLOW}={target.parent}"
            )

    def refuse_address(self, reference: str) -> None:
        """Refuses what is not on a disk.

        Raises:
            SceneError: It is an address.
        """
        found = _ADDRESS.match(reference)
        if found is not None and found[0].lower() != "file://":
            raise SceneError(
                f"{self.scene} refers to {reference!r}; addresses are never opened: download it, and name the file"
            )


def _working_directory() -> Path | None:
    """None: it was removed while the program ran, which is no reason to lose the result of a long one."""
    try:
        return Path.cwd().resolve()
    except FileNotFoundError:
        return None


@contextmanager
def trusting(scene: str | Path) -> Iterator[None]:
    """While open, files may refer to the folder tree of a scene that the user opened, as its results do."""
    token = _TRUSTED.set((*_TRUSTED.get(), Path(scene).absolute().parent))
    try:
        yield
    finally:
        _TRUSTED.reset(token)


def max_objects() -> int:
    """How many objects a scene may hold.

    Raises:
        InputError: The environment says no whole number.
    """
    given = os.environ.get(MAX_OBJECTS, "")
    if not given:
        return DEFAULT_MAX_OBJECTS
    if not given.isdecimal() or int(given) < 1:
        raise InputError(f"{MAX_OBJECTS}={given!r}; give a whole number above 0")
    return int(given)


def check_count(scene: str, count: int, what: str) -> None:
    """Refuses a scene that is too large to be meant.

    Raises:
        SceneError: It holds more than `max_objects`.
    """
    limit = max_objects()
    if count > limit:
        raise SceneError(
            f"{scene} asks for {count:.3g} {what}, more than {limit}, which would fill the memory; if it is meant so, "
            f"set {MAX_OBJECTS}={count}"
        )
