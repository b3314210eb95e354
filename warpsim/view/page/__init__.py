"""A scene and its motions as one HTML file that needs nothing else: orbit, play, scrub, pick, compare."""

from warpsim.view.page.content import Page, Take
from warpsim.view.page.html import page_html, write_page

__all__ = ["Page", "Take", "page_html", "write_page"]
