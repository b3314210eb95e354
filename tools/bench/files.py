"""What files cost, as ratios of processor time: reading and writing USD, records, meshes from the cache.

    python -m tools.bench.files [--repeats N] [--json FILE] [--markdown FILE]

Each figure is a time over another of the same process, taken in turns, so that the machine cancels: of a large stage
over a small one (linear reading gives the ratio of their sizes), of reading over USD's own opening of the file, of
recording a run over the run, of loading a mesh's pieces over finding them. What is written is read back and compared
first. Exit code 1 if a ratio is above its bar.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path

import numpy as np
import torch
from pxr import Usd

from tools.bench.report import add_files, environment, publish
from tools.bench.timing import Workload, measure
from warpsim.check.records import record_run
from warpsim.check.records.run import motion_facts, recorded_outputs
from warpsim.core.driving import drive
from warpsim.geometry.decomposition import decompose
from warpsim.io.usd import author
from warpsim.io.usd.motion import Motion
from warpsim.io.usd.reader import read_usd
from warpsim.io.usd.writer import write_result
from warpsim.scene import Decomposition, Scene
from warpsim.scene.description import JOINT_DOF_SIZE, JOINT_Q_SIZE
from warpsim.sim.simulator import Simulator
from warpsim.task.outcome import outcome
from warpsim.task.problem import TaskProblem
from warpsim.task.read import read_task
from warpsim.task.record import rollout_record
from warpsim.task.solve import with_channels

SOURCE = Path(__file__).resolve().parents[2] / "scenes" / "humanoid.usda"
STACK = SOURCE.with_name("stack.usda")
SHOT, PROJECTILE = (SOURCE.with_name(f"{name}.usda") for name in ("bounce_shot", "projectile"))
"""Tasks whose rollouts take some milliseconds, and half a one."""
_NUMBERS = count()
FRAMES = 1000
RECORDED = 1000
SMALL, LARGE = 25, 100
"""Links of the two chains whose reading is compared."""


@dataclass(frozen=True)
class Ratio:
    """One figure."""

    what: str
    median: float
    """Over the rounds."""
    bar: float
    """What it may be at most."""


def made_up_motion(scene: Scene) -> Motion:
    """Numbers of the right shapes: every frame and body differs."""
    rng = np.random.default_rng(0)
    sizes = [sum(table[joint.kind] for joint in scene.joints) for table in (JOINT_Q_SIZE, JOINT_DOF_SIZE)]
    q, qd = (rng.normal(size=(FRAMES, size)) for size in sizes)
    q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)
    rotations = rng.normal(size=(FRAMES, len(scene.bodies), 4))
    rotations /= np.linalg.norm(rotations, axis=2, keepdims=True)
    positions, velocities, spins = rng.normal(size=(3, FRAMES, len(scene.bodies), 3))
    return Motion(scene.options.timestep * np.arange(FRAMES), q, qd, positions, rotations, velocities, spins)


def chain(path: Path, links: int) -> Path:
    """A file with a chain of hinged boxes."""
    stage = author.new_stage()
    world = author.world(stage)
    parent = None
    for place in range(links):
        link = author.body(world, f"Link{place}", position=(0.3 * place, 0, 1))
        author.box(link, "Shape", (0.1, 0.02, 0.02), position=(0.15, 0, 0))
        author.revolute(world, f"Joint{place}", parent, link, "Y", anchor=(0.3 * place, 0, 1))
        parent = link
    author.save(stage, path)
    return path


def torus(around: int = 16, across: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """Vertices and triangles of a ring: not convex anywhere, so that its pieces have to be searched for."""
    u, v = np.meshgrid(np.arange(around), np.arange(across), indexing="ij")
    a, b = 2 * np.pi * u / around, 2 * np.pi * v / across
    radius = 1.0 + 0.3 * np.cos(b)
    vertices = np.stack([radius * np.cos(a), radius * np.sin(a), 0.3 * np.sin(b)], -1).reshape(-1, 3)
    corner = [((u + i) % around) * across + (v + j) % across for i, j in ((0, 0), (1, 0), (1, 1), (0, 1))]
    faces = np.concatenate([np.stack([corner[i].ravel() for i in triple], -1) for triple in ((0, 1, 2), (0, 2, 3))])
    return vertices, faces


def traverse(path: Path) -> None:
    """Opens a stage without a cache and reads every attribute's value: the least that any reader does."""
    stage = Usd.Stage.Open(str(path))
    for prim in stage.Traverse():
        for attribute in prim.GetAttributes():
            attribute.Get()


def ratio(what: str, bar: float, work: Callable[[], object], reference: Callable[[], object], repeats: int) -> Ratio:
    """Median of the time of `work` over that of `reference`, round by round."""
    labeled = (("work", work), ("reference", reference))
    workloads = [Workload(label, run, lambda: np.zeros(0)) for label, run in labeled]  # type: ignore[arg-type]
    timings = measure(workloads, repeats=repeats)
    return Ratio(what, float(np.median(timings["work"].ratios(timings["reference"]))), bar)


def task_record(scene: Path, folder: Path, repeats: int) -> Ratio:
    """What the record of a solved task takes, made and written, over its rollout; both warm."""
    sim = Simulator(scene)
    task = read_task(scene, sim.scene)
    problem = TaskProblem(with_channels(sim, task), task)
    with torch.no_grad():
        found = drive(outcome(problem, recorded=True))
        made = problem.sim.rollout(problem.steps, dict(found.inputs) or None, outputs=recorded_outputs(problem.sim))

    def keep() -> None:
        motion_facts(problem.sim, made)
        rollout_record(problem, found, problem.sim, path=scene).save(folder / f"{next(_NUMBERS)}.json")

    def roll_out() -> None:
        with torch.no_grad():
            problem.sim.rollout(problem.steps, dict(found.inputs) or None)

    what = f"record of the task of {scene.name}, {problem.steps} steps / roll them out"
    return ratio(what, 2.0 if scene == SHOT else 10.0, keep, roll_out, repeats)


def ratios(folder: Path, repeats: int) -> Iterator[Ratio]:
    """All figures; files go to a folder."""
    small, large = (chain(folder / f"chain{links}.usda", links) for links in (SMALL, LARGE))
    yield ratio(
        f"read {LARGE} links / {SMALL} links",
        1.5 * LARGE / SMALL,
        lambda: read_usd(large),
        lambda: read_usd(small),
        repeats,
    )
    yield ratio(
        f"read {SOURCE.name} / open and traverse it",
        40.0,
        lambda: read_usd(SOURCE),
        lambda: traverse(SOURCE),
        repeats,
    )
    scene = read_usd(SOURCE)
    motion, out = made_up_motion(scene), folder / "out.usda"
    write_result(out, SOURCE, scene, motion)
    again = read_usd(out, time=float(FRAMES - 1))
    found = np.concatenate([joint.initial_q for joint in again.joints if joint.initial_q is not None])
    if not np.array_equal(found, motion.q[-1]):
        raise SystemExit("the last frame does not read back: no times")
    yield ratio(
        f"write {FRAMES} frames of {len(scene.bodies)} bodies / read {SOURCE.name}",
        15.0,
        lambda: write_result(out, SOURCE, scene, motion),
        lambda: read_usd(SOURCE),
        repeats,
    )
    sim = Simulator(STACK)
    yield ratio(
        f"record {RECORDED} steps of {STACK.name} / roll them out",
        2.0,
        lambda: record_run(sim, RECORDED),
        lambda: sim.rollout(RECORDED),
        repeats,
    )
    for path in (SHOT, PROJECTILE):
        yield task_record(path, folder, repeats)
    vertices, faces = torus()
    settings = Decomposition()
    decompose(vertices, faces, settings)
    yield ratio(
        "load a mesh's pieces / find them",
        0.1,
        lambda: decompose(vertices, faces, settings),
        lambda: decompose(vertices, faces, settings, cache=False),
        repeats,
    )


def to_markdown(rows: list[Ratio]) -> str:
    """A table."""
    lines = ["| processor time of … over that of … | ratio | at most |", "|---|---|---|"]
    return "\n".join([*lines, *(f"| {row.what} | {row.median:.3g} | {row.bar:g} |" for row in rows)])


def main() -> int:
    """Measures and writes the reports."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.files", description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    add_files(parser)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = list(ratios(Path(folder), options.repeats))
    found = {"environment": environment("tools.bench.files"), "rows": [asdict(row) for row in rows]}
    publish(options, to_markdown(rows), found)
    return int(any(not row.median <= row.bar for row in rows) or any(math.isnan(row.median) for row in rows))


if __name__ == "__main__":
    sys.exit(main())
