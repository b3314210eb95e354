"""Sizes of pages, the time to write them, and the time to a first picture: `python tools/bench_view.py [--docs]`.

Motions are made up, so that no simulation is timed: a robot whose joints swing, and a cloth that waves. Times are those
of the processor, since machines are shared; of pictures, that of the whole command, from its start to the file.
"""

from __future__ import annotations

import argparse
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from warpsim.io.load import load_scene
from warpsim.io.usd.motion import Motion
from warpsim.scene.description import JOINT_DOF_SIZE, JOINT_Q_SIZE, Scene
from warpsim.view.page import Page, Take, write_page
from warpsim.view.page.content import SurfaceDrawable
from warpsim.view.page.scene_content import motions_page

PROJECT = Path(__file__).resolve().parents[1]
FRAMES = 1000
REPEATS = 5
DOCS = PROJECT / "docs" / "viewer.md"
BEGIN, END = "<!-- made by tools/bench_view.py --docs -->", "<!-- end -->"
"""What stands between these is replaced."""


def waving(scene: Scene, frames: int = FRAMES, seed: int = 0) -> Motion:
    """Every body on a smooth path of its own: harder to compress than a robot's, whose links move together."""
    rng = np.random.default_rng(seed)
    times = np.linspace(0.0, 10.0, frames)

    def waves(*shape: int) -> np.ndarray:
        rates, phases = rng.uniform(0.5, 8.0, (4, *shape)), rng.uniform(0.0, 6.28, (4, *shape))
        angles = times.reshape(-1, 1, *(1 for _ in shape)) * rates + phases
        return np.sin(angles).mean(axis=1)

    bodies = len(scene.bodies)
    rotations = waves(bodies, 4) + np.array([1.5, 0.0, 0.0, 0.0])
    rotations /= np.linalg.norm(rotations, axis=-1, keepdims=True)
    nq = sum(JOINT_Q_SIZE[joint.kind] for joint in scene.joints)
    nv = sum(JOINT_DOF_SIZE[joint.kind] for joint in scene.joints)
    return Motion(times, waves(nq), waves(nv), waves(bodies, 3), rotations)


def cloth_page(side: int = 30, frames: int = FRAMES) -> Page:
    """A square of side² points that waves."""
    grid = np.linspace(-0.5, 0.5, side)
    x, y = np.meshgrid(grid, grid, indexing="ij")
    times = np.linspace(0.0, 10.0, frames)
    t = times[:, None, None]
    z = 0.1 * np.sin(7 * x + 3 * t) * np.cos(5 * y - 2 * t) + 0.03 * np.sin(23 * x * y + 11 * t)
    points = np.stack([x + 0.05 * np.sin(2 * t + 9 * y), y + 0.05 * np.cos(3 * t + 9 * x), z], axis=-1)
    corner = (np.arange(side - 1)[:, None] * side + np.arange(side - 1)).reshape(-1)
    faces = np.concatenate(
        [
            np.stack([corner, corner + side, corner + 1], axis=1),
            np.stack([corner + 1, corner + side, corner + side + 1], axis=1),
        ]
    )
    take = Take(
        "motion",
        times,
        np.zeros((frames, 0, 3)),
        np.zeros((frames, 0, 4)),
        points={"/Cloth": points.reshape(frames, -1, 3)},
    )
    return Page("cloth", [], [SurfaceDrawable("/Cloth", faces, np.array([0.1, 0.3, 0.7]))], [take])


def cases() -> dict[str, Callable[[Path], Path]]:
    """Name → what writes the page."""
    found: dict[str, Callable[[Path], Path]] = {}
    for name in ("humanoid", "quadruped", "arm"):
        path = PROJECT / "scenes" / f"{name}.usda"
        scene = load_scene(path)
        motion = waving(scene)

        def write(target: Path, scene=scene, path=path, motion=motion) -> Path:
            return write_page(target, motions_page(scene, path, [("motion", motion)], title=path.stem))

        found[name] = write
    cloth = cloth_page()
    found["cloth 30²"] = lambda target: write_page(target, cloth)
    return found


def page_rows(folder: Path) -> Iterator[str]:
    """Sizes and times of pages, each written a few times; the same content must give the same bytes."""
    yield f"| page, {FRAMES} frames | MB | s, first | s, least of {REPEATS} |"
    yield "|---|---|---|---|"
    for name, write in cases().items():
        seconds, texts = [], set()
        for _ in range(REPEATS):
            start = time.process_time()
            path = write(folder / "page.html")
            seconds.append(time.process_time() - start)
            texts.add(path.read_bytes())
        assert len(texts) == 1, f"{name}: the same content gave different bytes"
        yield f"| {name} | {path.stat().st_size / 1e6:.2f} | {seconds[0]:.3f} | {min(seconds):.3f} |"


def picture_rows(folder: Path) -> Iterator[str]:
    """Processor time of `warpsim render` for one picture, kernels in Warp's cache."""
    yield f"| first picture by `warpsim render` | s, least of {REPEATS} |"
    yield "|---|---|"
    for name in ("humanoid", "stack", "cloth_lay"):
        command = [sys.executable, "-m", "warpsim", "render", str(PROJECT / "scenes" / f"{name}.usda"), "--force"]
        seconds = []
        for _ in range(REPEATS + 1):  # the first one may compile
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([*command, "-o", str(folder / "first.png")], check=True, stdout=subprocess.DEVNULL)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        yield f"| {name} | {min(seconds[1:]):.2f} |"


def main() -> None:
    """Prints both tables, and puts them into the documentation if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", action="store_true", help=f"put the tables into {DOCS.relative_to(PROJECT)}")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tables = "\n".join([*page_rows(Path(folder)), "", *picture_rows(Path(folder))])
    print(tables)
    if arguments.docs:
        text = DOCS.read_text(encoding="utf-8")
        DOCS.write_text(
            re.sub(f"(?<={BEGIN}\n).*?(?={END})", f"\n{tables}\n\n", text, flags=re.DOTALL), encoding="utf-8"
        )


if __name__ == "__main__":
    main()
