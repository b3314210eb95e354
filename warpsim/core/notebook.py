"""HTML for notebooks: a small table, and a page that loads when it is unfolded.

Browsers limit how many WebGL contexts live at a time, so a viewer must not start by being printed: its frame is empty
until someone unfolds it.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence

_HEIGHT = 480
"""Pixels of a viewer."""
_UNFOLD = "const f = this.querySelector('iframe'); if (this.open && !f.srcdoc) f.srcdoc = f.dataset.page"


def facts_html(title: str, facts: Mapping[str, object]) -> str:
    """A table of names and values under a title."""
    rows = "".join(
        f'<tr><td style="text-align:left"><b>{html.escape(name)}</b></td>'
        f'<td style="text-align:left">{html.escape(str(value))}</td></tr>'
        for name, value in facts.items()
    )
    return f"<div><b>{html.escape(title)}</b><table>{rows}</table></div>"


def rows_html(title: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table with a header under a title."""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in header)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<div><b>{html.escape(title)}</b><table><tr>{head}</tr>{body}</table></div>"


def folded_page_html(page: str, label: str = "View") -> str:
    """A page, folded away until it is wanted.

    Args:
        page: The whole text of an HTML file.
        label: What to click on.
    """
    return (
        f'<details ontoggle="{_UNFOLD}"><summary style="cursor:pointer">{html.escape(label)}</summary>'
        f'<iframe style="width:100%;height:{_HEIGHT}px;border:0" data-page="{html.escape(page)}"></iframe>'
        "</details>"
    )
