"""What must not reach MuJoCo's compiler, since it ends the process instead of reporting an error."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path

from warpsim.errors import SceneError

_CLASS = re.compile(r"\b(?:child)?class\s*=\s*(\"[^\"]*\"|'[^']*')")
_INCLUDE = re.compile(r"<include\b[^>]*?\bfile\s*=\s*(\"[^\"]*\"|'[^']*')")


def refuse_fatal(path_or_xml: str | Path, *, is_text: bool) -> None:
    """Refuses names of default classes with a percent sign: MuJoCo formats its message about an unknown one with them.

    Args:
        path_or_xml: A file, whose includes are looked at too, or XML text.
        is_text: Which of the two.

    Raises:
        SceneError: Names the file and the class.
    """
    for place, text in [("the XML text", str(path_or_xml))] if is_text else _files(Path(path_or_xml)):
        for found in _CLASS.finditer(text):
            name = html.unescape(found[1][1:-1])
            if "%" in name:
                raise SceneError(f"{place}: the default class {name[:80]!r} has a % in its name; rename it")


def _files(main: Path) -> Iterator[tuple[str, str]]:
    """Each file of a model once, as (name, text); those that cannot be read are left to MuJoCo."""
    waiting, seen = [main], set()
    while waiting:
        path = waiting.pop()
        if path in seen or not path.is_file():
            continue
        seen.add(path)
        text = path.read_bytes().decode("utf-8", errors="replace")
        yield str(path), text
        waiting += [main.parent / html.unescape(found[1][1:-1]) for found in _INCLUDE.finditer(text)]
