"""MJCF and URDF text before MuJoCo gets it: which files it names, how much it asks for, what MuJoCo would die of.

MuJoCo opens whatever a file names, allocates whatever it asks for, and takes class names for format strings. The scan
tells tags, comments and text apart as MuJoCo's parser does (which is more lenient than XML), and errs by refusing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

from warpsim.core.errors import SceneError
from warpsim.io.reading_limits import Reach, check_count

_TOKEN = re.compile(
    r"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>|<!.*?>"
    r"|<(?P<close>/?)\s*(?P<name>[^\s<>/\"'=]+)(?P<attributes>(?:[^<>\"']|\"[^\"]*\"|'[^']*')*)>",
    re.DOTALL,
)
_ATTRIBUTE = re.compile(r"([^\s=\"'/]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')", re.DOTALL)
_OBJECTS = {"body", "geom", "joint", "freejoint", "site", "camera", "light"}
_GRIDS = {"flexcomp", "composite"}
_FOLDERS = ("meshdir", "texturedir", "assetdir")
_FILES = re.compile(r"file(name|right|left|up|down|front|back)?$")
_NESTED = 500
"""Elements within elements; more is no model, and MuJoCo's parser would run out of stack."""


class _Scan:
    """One model with all that it includes."""

    def __init__(self, reach: Reach, folder: Path) -> None:
        self.reach = reach
        self.folder = folder
        self.objects = 0
        self.folders = {""}
        self.files: list[tuple[str, Path]] = []
        self.included: set[Path] = set()
        self.models: dict[str, int] = {}
        self.strips: bool | None = None

    def text(self, text: str, folder: Path, factor: int = 1) -> None:
        """Scans one file's text, in a folder, that stands where everything is repeated some times."""
        factors = [factor]
        for name, attributes, closes, empty in _tags(text):
            if closes:
                if len(factors) > 1:
                    factors.pop()
                continue
            here = factors[-1] * self._element(name, attributes, folder, factors[-1])
            if not empty:
                factors.append(here)
                if len(factors) > _NESTED:
                    raise SceneError(f"{self.reach.scene}: more than {_NESTED} elements within each other")

    def _element(self, name: str, attributes: dict[str, str], folder: Path, factor: int) -> int:
        """Takes note of an element; returns how often it repeats what is in it."""
        for key in ("class", "childclass"):
            if "%" in attributes.get(key, ""):
                raise SceneError(
                    f"{self.reach.scene}: {name} has {key}={attributes[key]!r}; MuJoCo takes '%' in names of classes "
                    "for a format, and ends the process: rename it"
                )
        self.folders |= {attributes[key] for key in _FOLDERS if key in attributes}
        if "strippath" in attributes:  # with several, any that keeps paths may be the one that counts
            self.strips = self.strips is not False and attributes["strippath"] == "true"
        for key, value in attributes.items():
            if _FILES.match(key):
                self.files.append((value, folder))
        if name in ("include", "model") and "file" in attributes:
            before = self.objects
            self._include(attributes["file"], folder, factor)
            self.models[attributes.get("name", Path(attributes["file"]).stem)] = self.objects - before
        repeats = _count(attributes) if name in ("replicate", *_GRIDS) else 1
        if name in _OBJECTS or name in _GRIDS or name == "attach":
            each = max(1, self.models.get(attributes.get("model", ""), 1)) if name == "attach" else 1
            self.objects += factor * (repeats if name in _GRIDS else each)
        return repeats if name == "replicate" else 1

    def _include(self, reference: str, folder: Path, factor: int) -> None:
        self.reach.refuse_address(reference)
        for base in dict.fromkeys((self.folder, folder)):
            path = base / reference
            self.reach.check(reference, path)
            if path.is_file() and path.resolve() not in self.included:
                self.included.add(path.resolve())
                self.text(_read(path), path.parent, factor)

    def check_files(self) -> None:
        """Refuses files outside; a name may be meant in any folder that the model sets."""
        for reference, folder in self.files:
            plain = self._plain(reference)
            for base in dict.fromkeys((self.folder, folder)):
                for inner in self.folders:
                    self.reach.check(reference, base / inner / plain)

    def _plain(self, reference: str) -> str:
        """The path that MuJoCo makes of a reference."""
        scheme, mark, rest = reference.partition("://")
        if not mark or scheme not in ("package", "model", "file"):
            self.reach.refuse_address(reference)
            scheme, rest = "", reference
        rest = rest.replace("\\", "/")
        if self.strips:
            return rest.rpartition("/")[2]
        return rest.lstrip("/") if scheme in ("package", "model") else rest


def _tags(text: str) -> Iterator[tuple[str, dict[str, str], bool, bool]]:
    """(name, attributes, whether it closes an element, whether it holds nothing) of each tag, in order."""
    for token in _TOKEN.finditer(text):
        name = token["name"]
        if name is None:
            continue
        found = {key: unescape(a or b) for key, a, b in _ATTRIBUTE.findall(token["attributes"])}
        yield name, found, bool(token["close"]), token["attributes"].rstrip().endswith("/")


def _count(attributes: dict[str, str]) -> int:
    """Copies that a "count" of one or several numbers asks for."""
    total = 1
    for number in attributes.get("count", "1").split():
        try:
            total *= max(1, int(float(number)))
        except (ValueError, OverflowError):
            return 1  # MuJoCo says what is wrong with it
    return total


def _read(path: Path) -> str:
    return path.read_bytes().decode("utf-8", errors="surrogateescape")


def check_text(text: str, source: Path | None = None) -> None:
    """Refuses a model that should not reach MuJoCo.

    Args:
        text: MJCF or URDF.
        source: Its file; None: text alone, whose files are those of the working directory.

    Raises:
        SceneError: It names files outside its folder or addresses, asks for too much, or would end the process.
    """
    folder = Path.cwd() if source is None else source.absolute().parent
    scan = _Scan(Reach.of(source), folder)
    scan.text(text, folder)
    scan.check_files()
    check_count(scan.reach.scene, scan.objects, "bodies, joints, geoms and sites")


def check_file(path: Path) -> None:
    """`check_text` of a file."""
    check_text(_read(path), path)
