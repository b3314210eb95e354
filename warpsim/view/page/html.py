"""`Page` → HTML: one file with the viewer, three.js and the numbers inside, which asks nothing of the outside."""

from __future__ import annotations

import base64
import html
import zlib
from functools import cache
from importlib.resources import files
from os import PathLike, fspath
from pathlib import Path

from warpsim.core.errors import InputError
from warpsim.core.files import write_text
from warpsim.view.page.content import Page
from warpsim.view.page.pack import pack

SCRIPTS = (
    "decode.js",
    "geometry.js",
    "lines.js",
    "stage.js",
    "take.js",
    "overlays.js",
    "plot.js",
    "panels.js",
    "player.js",
    "viewer.js",
    "start.js",
)
"""Of the viewer, in the order they are read; pages that follow a simulation have `live.js` before the last, others know
of no socket."""
_LEVEL = 6


def page_html(page: Page) -> str:
    """The whole file; the same content gives the same text."""
    if not page.takes:
        raise InputError("a page needs at least one take: a motion, or the pose that the scene stands in")
    return packed_html(page.title, squeezed(pack(page)), live=page.live is not None)


def packed_html(title: str, numbers: str, *, live: bool = False) -> str:
    """The file around a page's numbers, so that a page which was kept gets the viewer as it is today.

    Args:
        title: Of the window.
        numbers: As `packed_numbers` gives them.
        live: Whether the page follows a simulation.
    """
    head, middle, tail = _template(live)
    return "".join((head, html.escape(title), middle, numbers, tail))


def packed_numbers(text: str) -> str:
    """What a page holds beside the viewer: the text of its block of numbers.

    Args:
        text: The page.
    """
    _, mark, rest = text.partition('id="data">')
    numbers, end, _ = rest.partition("</script>")
    if not mark or not end:
        raise InputError("this is not a page of the viewer: it holds no numbers")
    return numbers


def live_html(page: Page, sources: str) -> str:
    """The page that a live viewer serves: it may connect to its server, and to nothing else.

    Args:
        page: With `live`.
        sources: Of its content security policy, e.g. "ws://127.0.0.1:8000".
    """
    return page_html(page).replace("connect-src 'none'", f"connect-src {sources}", 1)


def write_page(path: str | PathLike[str], page: Page) -> Path:
    """Writes a page.

    Args:
        path: The .html file.
        page: What it shows.

    Returns:
        The file.
    """
    target = Path(fspath(path))
    if not target.parent.is_dir():
        raise InputError(f"{target}: there is no folder {str(target.parent)!r}; make it first")
    return write_text(target, page_html(page))


@cache
def _template(live: bool) -> tuple[str, str, str]:
    """The file before its title, up to its numbers, and after them."""
    folder = files("warpsim.view.page")
    assets = folder / "assets"
    names = (*SCRIPTS[:-1], "live.js", SCRIPTS[-1]) if live else SCRIPTS
    scripts = [(assets / name).read_text(encoding="utf-8") for name in names]
    parts = {
        "STYLE": (assets / "style.css").read_text(encoding="utf-8"),
        "LICENSE": (folder / "three" / "LICENSE").read_text(encoding="utf-8").strip(),
        "THREE": squeezed((folder / "three" / "three.min.js").read_bytes()),
        "VIEWER": '"use strict";\n(function () {\n' + "\n".join(scripts) + "\n})();",
    }
    text = (assets / "page.html").read_text(encoding="utf-8")
    for mark, part in parts.items():
        text = text.replace(f"@@{mark}@@", part, 1)
    head, _, rest = text.partition("@@TITLE@@")
    middle, _, tail = rest.partition("@@DATA@@")
    return head, middle, tail


def squeezed(data: bytes) -> str:
    """Base64 of raw deflate, which browsers undo by DecompressionStream("deflate-raw")."""
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, -15)
    return base64.b64encode(packer.compress(data) + packer.flush()).decode("ascii")
