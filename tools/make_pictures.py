"""Makes the pictures in `docs/images`: simulates scenes of this project, saves the motion as USD, and draws it.

Run `python tools/make_pictures.py` for all, or name some: `python tools/make_pictures.py quadruped`.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from warpsim.sim.simulator import Simulator
from warpsim.sim.trajectory import Trajectory
from warpsim.view.raycast import contact_sheet, render_stage, write_gif, write_png

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
FRAMES_PER_SECOND = 20.0
SHEET_FRAMES = 6


@dataclass(frozen=True)
class Shot:
    """A motion to film.

    Attributes:
        seconds: Simulated time.
        run: (simulator, steps, steps per frame) → trajectory.
        size: Pixels of a frame, width and height.
    """

    seconds: float
    run: Callable[[Simulator, int, int], Trajectory]
    size: tuple[int, int]


def trot(sim: Simulator, steps: int, keep_every: int) -> Trajectory:
    """Diagonal pairs of legs in turn: hips swing by a sine, knees fold while their foot travels forward."""
    period, swing, fold = 0.4, np.radians(14.0), np.radians(28.0)
    time = sim.timestep * np.arange(steps)
    ramp = np.minimum(1.0, time / period)
    stance = np.radians([0.0, 45.0, -90.0])
    targets = np.zeros((steps, len(sim.drive_names)))
    for drive, name in enumerate(sim.drive_names):
        phase = 2 * np.pi * time / period + (0.0 if "FrontLeft" in name or "RearRight" in name else np.pi)
        joint = next(k for k, kind in enumerate(("Abduction", "Pitch", "Knee")) if kind in name)
        motion = (0.0, swing * np.sin(phase), -fold * np.maximum(0.0, -np.cos(phase)))[joint]
        targets[:, drive] = stance[joint] + ramp * motion
    return sim.rollout(controls={"drive_target": targets[:, None]}, keep_every=keep_every)


def push(sim: Simulator, steps: int, keep_every: int) -> Trajectory:
    """A shove against the whole body, too strong for the drives to stay upright."""
    qd = np.zeros(sim.model.nv)
    qd[:2] = 0.9, 0.5
    return sim.rollout(steps=steps, qd=qd, keep_every=keep_every)


SHOTS = {
    "quadruped": Shot(3.0, trot, (480, 270)),
    "humanoid": Shot(1.8, push, (360, 300)),
}
"""Scene in `scenes/` → its shot."""


def make(name: str) -> list[Path]:
    """Films one scene: `<name>.gif`, and `<name>_sheet.png` with a few frames."""
    shot = SHOTS[name]
    sim = Simulator(ROOT / "scenes" / f"{name}.usda")
    steps = round(shot.seconds / sim.timestep)
    trajectory = shot.run(sim, steps, round(1.0 / (FRAMES_PER_SECOND * sim.timestep)))
    width, height = shot.size
    with tempfile.TemporaryDirectory() as folder:
        motion = trajectory.save(Path(folder) / f"{name}.usda")[0]
        pictures = render_stage(motion, frames=len(trajectory.times), width=width, height=height, progress=True)
    chosen = np.linspace(0, len(pictures) - 1, SHEET_FRAMES).round().astype(int)
    sheet = contact_sheet(
        [pictures[k] for k in chosen], columns=3, labels=[f"{trajectory.times[k]:.2f} s" for k in chosen]
    )
    IMAGES.mkdir(parents=True, exist_ok=True)
    return [
        write_gif(IMAGES / f"{name}.gif", pictures, interval=1.0 / FRAMES_PER_SECOND),
        write_png(IMAGES / f"{name}_sheet.png", sheet),
    ]


if __name__ == "__main__":
    for scene in sys.argv[1:] or SHOTS:
        for path in make(scene):
            print(f"wrote {path.relative_to(ROOT)} ({path.stat().st_size / 1e6:.2f} MB)")
