"""Makes the gallery's thumbnails, `docs/images/gallery`, and the README's picture, `docs/images/hero.png`.

    python tools/make_gallery.py                 # all scenes, and the picture
    python tools/make_gallery.py quadruped arm   # thumbnails of some

Scenes are drawn as their pages show them: the ray caster has the pages' camera, light and colors. The pages are
made with the site (`tools/docs_pages.py`), so that none is out of date.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

from warpsim.sim.simulator import Simulator
from warpsim.view.raycast import contact_sheet, render_stage, write_png

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
WIDTH, HEIGHT = 360, 240
HERO = {"quadruped": 0.3, "humanoid": 0.5, "cloth_lay": 0.4, "pour": 0.9, "stack": 0.2, "bowl": 0.3}
"""Scene → s of simulated time after which it is drawn, with the forces of its contacts."""
HERO_SIZE = (560, 380)
POSES, CONTACTS = ("body_position", "body_rotation"), ("contact_points", "contact_point_forces")


def thumbnail(name: str) -> Path:
    """A scene as it is opened."""
    picture = render_stage(ROOT / "scenes" / f"{name}.usda", frames=1, width=WIDTH, height=HEIGHT)[0]
    (IMAGES / "gallery").mkdir(parents=True, exist_ok=True)
    return write_png(IMAGES / "gallery" / f"{name}.png", picture)


def moment(name: str, seconds: float) -> np.ndarray:
    """A scene after some simulated time."""
    width, height = HERO_SIZE
    source = ROOT / "scenes" / f"{name}.usda"
    if not seconds:
        return render_stage(source, frames=1, width=width, height=height)[0]
    sim = Simulator(source)
    steps = round(seconds / sim.timestep)
    shown = (*POSES, *(CONTACTS if sim.model.max_contacts else ()))
    with tempfile.TemporaryDirectory() as folder:
        moved = sim.rollout(steps, outputs=shown, keep_every=steps).save(Path(folder) / f"{name}.usda")[0]
        return render_stage(moved, frames=2, width=width, height=height)[-1]


def hero() -> Path:
    """Six scenes on one picture."""
    return write_png(IMAGES / "hero.png", contact_sheet([moment(*each) for each in HERO.items()], columns=3))


if __name__ == "__main__":
    chosen = sys.argv[1:] or sorted(path.stem for path in (ROOT / "scenes").glob("*.usda"))
    for scene in chosen:
        print(f"wrote {thumbnail(scene).relative_to(ROOT)}", flush=True)
    if not sys.argv[1:]:
        print(f"wrote {hero().relative_to(ROOT)}")
