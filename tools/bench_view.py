"""Sizes of pages and the time to write them: `python tools/bench_view.py [--markdown FILE]`.

Motions are made up, so that no simulation is timed: a robot whose joints swing, and a cloth that waves.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
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


def main() -> None:
    """Writes each page a few times and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markdown", help="write the table to a file, too")
    lines = [f"| page, {FRAMES} frames | MB | s, first | s, least of {REPEATS} |", "|---|---|---|---|"]
    with tempfile.TemporaryDirectory() as folder:
        for name, write in cases().items():
            seconds = []
            for _ in range(REPEATS):
                start = time.perf_counter()
                size = write(Path(folder) / "page.html").stat().st_size
                seconds.append(time.perf_counter() - start)
            lines.append(f"| {name} | {size / 1e6:.2f} | {seconds[0]:.3f} | {min(seconds):.3f} |")
    print("\n".join(lines))
    target = parser.parse_args().markdown
    if target:
        Path(target).write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
