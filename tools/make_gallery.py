"""Makes the gallery: runs every example, keeps what its page shows, and takes a picture of the page in Chromium.

    python tools/make_gallery.py                    # all examples, all scenes, the README's picture; an hour or so
    python tools/make_gallery.py quickstart         # some examples
    python tools/make_gallery.py --scenes           # scenes alone; --scenes arm: some of them
    python tools/make_gallery.py --kept out/gallery # pictures anew, of pages that were kept there

`docs/gallery/NAME.bin` holds an example's motion without the viewer, some ten kB; the site puts today's viewer around
it (`tools/docs_pages.py`), so that no page is out of date. Scenes are drawn by the ray caster, which has the pages'
camera, light and colors.
"""

from __future__ import annotations

import argparse
import base64
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from warpsim.view.page.html import packed_html, packed_numbers
from warpsim.view.raycast import contact_sheet, render_stage, write_png

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from browser_support import Browser, require_browser  # noqa: E402 the tests' driver of the browser

PACKS, IMAGES = ROOT / "docs" / "gallery", ROOT / "docs" / "images"
SIZE = (360, 240)
"""Pixels of a thumbnail."""
HERO = ("quadruped_trot", "quadrotor_gates", "pour_angle", "mass_spring_net", "policy_hopper", "tumble_shot")
"""Examples on the README's picture."""
HERO_SIZE = (560, 380)


@dataclass(frozen=True)
class Shot:
    """How an example's page comes about, and when its picture is taken."""

    share: float = 0.5
    """Of the motion's duration."""
    option: str = "--output"
    page: str = ""
    """In the folder that the option names; empty: the option names the page."""
    theme: str = "light"


SHOTS = {
    "arm_push": Shot(0.8, page="result.html"),
    "beam_prebend": Shot(0.6, "-o"),
    "cable_route": Shot(0.62, "-o"),
    "cartpole_mpc": Shot(0.35),
    "cloth_identify": Shot(0.3, "-o"),
    "cloth_lay": Shot(0.6, "-o"),
    "cloth_throw": Shot(0.6, "-o"),
    "identification": Shot(0.3),
    "identify_arm": Shot(0.5, page="motion.html"),
    "identify_real_cube": Shot(0.35, page="toss.html"),
    "long_drag": Shot(0.6),
    "mass_spring_net": Shot(0.6, "-o"),
    "policy_hopper": Shot(0.4),
    "policy_swingup": Shot(0.2),
    "pour_angle": Shot(0.75, ""),
    "quadrotor_gates": Shot(0.62, theme="dark"),
    "quadruped_mpc": Shot(0.5),
    "quadruped_rise": Shot(0.5, page="result.html"),
    "quadruped_trot": Shot(0.6, page="result.html"),
    "quickstart": Shot(0.9),
    "residual_force": Shot(0.3),
    "soft_grasp": Shot(0.7, "-o"),
    "swing_design": Shot(0.7),
    "tumble_shot": Shot(0.6),
    "wave_equation": Shot(1.0),
}
"""Every example."""


def page_of(name: str, folder: Path) -> Path:
    """Where an example leaves its page."""
    return folder / name / SHOTS[name].page if SHOTS[name].page else folder / f"{name}.html"


def run_example(name: str, folder: Path) -> Path:
    """Runs an example; its page."""
    shot = SHOTS[name]
    target = folder / name if shot.page else page_of(name, folder)
    command = [sys.executable, str(ROOT / "examples" / f"{name}.py"), *filter(None, [shot.option]), str(target)]
    subprocess.run(command, check=True, cwd=folder)
    return page_of(name, folder)


def keep(name: str, page: Path) -> Path:
    """Keeps what a page shows, without the viewer."""
    PACKS.mkdir(parents=True, exist_ok=True)
    target = PACKS / f"{name}.bin"
    target.write_bytes(base64.b64decode(packed_numbers(page.read_text(encoding="utf-8"))))
    return target


def photograph(browser: Browser, name: str, folder: Path, size: tuple[int, int], theme: str) -> Image.Image:
    """A kept example's page without its panels, as the browser draws it; drawn larger and scaled down."""
    numbers = base64.b64encode((PACKS / f"{name}.bin").read_bytes()).decode("ascii")
    page = folder / f"{name}.page.html"
    page.write_text(packed_html(name, numbers), encoding="utf-8")
    width, height = 2 * size[0], 2 * size[1]
    browser.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
    browser.errors.clear()
    browser.open(page, f"play=0&ui=0&theme={theme}")
    browser.run(f"page.seek({SHOTS[name].share} * page.duration)")
    browser.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    picture = Image.fromarray(browser.picture()).resize(size, Image.Resampling.LANCZOS)
    if browser.errors:
        raise SystemExit(f"{name}: the page has errors: {browser.errors}")
    return picture


def example_picture(browser: Browser, name: str, folder: Path) -> Path:
    """An example's thumbnail."""
    target = IMAGES / "gallery" / "examples" / f"{name}.jpg"
    target.parent.mkdir(parents=True, exist_ok=True)
    photograph(browser, name, folder, SIZE, SHOTS[name].theme).save(target, quality=88, optimize=True)
    return target


def hero(browser: Browser, folder: Path) -> Path:
    """Six examples on one picture."""
    pictures = [np.asarray(photograph(browser, name, folder, HERO_SIZE, "light")) for name in HERO]
    target = IMAGES / "hero.jpg"
    Image.fromarray(contact_sheet(pictures, columns=3)).save(target, quality=90, optimize=True)
    return target


def thumbnail(name: str) -> Path:
    """A scene as it is opened."""
    picture = render_stage(ROOT / "scenes" / f"{name}.usda", frames=1, width=SIZE[0], height=SIZE[1])[0]
    (IMAGES / "gallery").mkdir(parents=True, exist_ok=True)
    return write_png(IMAGES / "gallery" / f"{name}.png", picture)


def main() -> None:
    """Makes what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="examples, or scenes; none: all, and the README's picture")
    parser.add_argument("--scenes", action="store_true", help="scenes alone")
    parser.add_argument("--kept", type=Path, help="a folder with pages that examples wrote; they are not run again")
    arguments = parser.parse_args()
    scenes = sorted(path.stem for path in (ROOT / "scenes").glob("*.usda"))
    examples = [] if arguments.scenes else arguments.names or list(SHOTS)
    written = []
    with tempfile.TemporaryDirectory() as scratch:
        for name in examples:
            page = page_of(name, arguments.kept) if arguments.kept else run_example(name, Path(scratch))
            written.append(keep(name, page))
        if examples:
            browser = Browser(require_browser(), Path(scratch) / "browser")
            written += [example_picture(browser, name, Path(scratch)) for name in examples]
            written += [] if arguments.names else [hero(browser, Path(scratch))]
            browser.close()
    if arguments.scenes or not (arguments.names or arguments.kept):
        written += [thumbnail(name) for name in arguments.names or scenes]
    for path in written:
        print(f"wrote {path.relative_to(ROOT)} ({path.stat().st_size / 1e3:.0f} kB)")


if __name__ == "__main__":
    main()
