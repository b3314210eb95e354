"""A scene and its motions as one HTML file that needs nothing else: orbit, play, scrub, pick, compare."""

from warpsim.view.items.item import BOX, CAPSULE, ENDLESS, PLANE, SPHERE, TAPERED, Item, Look
from warpsim.view.page.content import BodyInfo, CloudDrawable, CurveDrawable, Page, RigidDrawable, SurfaceDrawable, Take
from warpsim.view.page.html import page_html, write_page

__all__ = [
    "BOX",
    "CAPSULE",
    "ENDLESS",
    "PLANE",
    "SPHERE",
    "TAPERED",
    "BodyInfo",
    "CloudDrawable",
    "CurveDrawable",
    "Item",
    "Look",
    "Page",
    "RigidDrawable",
    "SurfaceDrawable",
    "Take",
    "page_html",
    "write_page",
]
