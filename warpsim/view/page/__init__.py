"""A scene and its motions as one HTML file that needs nothing else: orbit, play, scrub, pick, compare."""

from warpsim.view.page.content import CloudDrawable, CurveDrawable, Page, RigidDrawable, SurfaceDrawable, Take
from warpsim.view.page.html import page_html, write_page

__all__ = [
    "CloudDrawable",
    "CurveDrawable",
    "Page",
    "RigidDrawable",
    "SurfaceDrawable",
    "Take",
    "page_html",
    "write_page",
]
