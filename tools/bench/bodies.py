"""Many free bodies in one world, against MuJoCo's step in the same run: apart from one another, and in a heap.

    python -m tools.bench.bodies [--counts 50 100 200] [--steps 50] [--json FILE] [--markdown FILE]

Half of the bodies are boxes, half convex meshes. MuJoCo lets them come to rest first; both sides then run the same
steps from there. *Apart*: each lies on the floor by itself. *Heap*: they lie on one another between four walls.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import mujoco
import numpy as np

from tools.bench.report import add_files, environment, publish
from tools.bench.timing import Workload, measure
from warpsim.io.mjcf import scene_from_mjmodel
from warpsim.rigid.compile.compile import compile_model
from warpsim.rigid.compile.derive import Derivation
from warpsim.rigid.step.program import RigidProgram
from warpsim.scene.convergence import MIN_ITERATIONS
from warpsim.tape import CheckpointedTape

COUNTS = (50, 100, 200)
PLACES = ("apart", "heap")
_SETTLE = {"apart": 200, "heap": 600}
_ROOM = 6
"""Contact places per body."""
_GAP = 5e-3
"""m: how far half of the bodies may end from where MuJoCo has them, since contact points are not the same."""


@dataclass(frozen=True)
class Point:
    """One workload at one size."""

    places: str
    count: int
    contacts: int
    label: str
    microseconds: float
    """Per step, the median round."""
    ratio: float
    """To MuJoCo's step, the median over the rounds."""


def bodies_xml(count: int, places: str, seed: int = 0) -> str:
    """Boxes and 20-vertex meshes over a floor, on a wide grid or above a walled square."""
    rng = np.random.default_rng(seed)
    vertices = rng.normal(size=(20, 3))
    vertices *= 0.07 / np.linalg.norm(vertices, axis=1, keepdims=True)
    numbers = " ".join(map(repr, vertices.reshape(-1).tolist()))
    geoms = ('type="box" size=".05 .06 .07"', 'type="mesh" mesh="stone"')
    side = int(np.ceil(np.sqrt(count)))
    half = 0.04 * np.sqrt(count)  # a heap about four bodies deep
    bodies = ""
    for i in range(count):
        if places == "apart":
            x, y, z = 0.4 * (i % side), 0.4 * (i // side), 0.08
        else:
            x, y = rng.uniform(-0.8 * half, 0.8 * half, size=2)
            z = 0.1 + 0.2 * i * 4 / count
        bodies += f'<body pos="{x} {y} {z}"><freejoint/><geom {geoms[i % 2]} density="500"/></body>'
    fence = ""
    if places == "heap":
        w = half + 0.1
        walls = ((0.05, w, w, 0), (0.05, w, -w, 0), (w, 0.05, 0, w), (w, 0.05, 0, -w))
        fence = "".join(f'<geom type="box" size="{a} {b} 1" pos="{x} {y} 1"/>' for a, b, x, y in walls)
    return (
        '<mujoco><option timestep=".004"><flag multiccd="disable"/></option><size memory="500M"/>'
        f'<asset><mesh name="stone" vertex="{numbers}"/></asset>'
        f'<worldbody><geom type="plane" size="50 50 .1"/>{fence}{bodies}</worldbody></mujoco>'
    )


def workloads(count: int, places: str, steps: int) -> tuple[int, list[Workload]]:
    """The number of MuJoCo's contacts at the start, and both sides' steps."""
    model = mujoco.MjModel.from_xml_string(bodies_xml(count, places))
    model.opt.iterations = max(model.opt.iterations, MIN_ITERATIONS)
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, nstep=_SETTLE[places])
    start = {"q": data.qpos.copy()[None], "qd": data.qvel.copy()[None], "warm_start": data.qacc_warmstart.copy()[None]}
    final = np.full((2, 1, model.nq + model.nv), np.nan)
    scene = scene_from_mjmodel(model)
    scene.options.max_contacts = _ROOM * count
    compiled = compile_model(scene)
    Derivation(compiled).run()
    tape = CheckpointedTape(RigidProgram(compiled, controls=()), steps=steps)

    def theirs() -> None:
        data.qpos[:], data.qvel[:], data.qacc_warmstart[:] = start["q"][0], start["qd"][0], start["warm_start"][0]
        mujoco.mj_step(model, data, nstep=steps)
        final[0, 0] = np.concatenate([data.qpos, data.qvel])

    def ours() -> None:
        run = tape.forward(start, {}, keep_states=["q", "qd"], keep_every=steps, differentiate=False)
        final[1, 0] = np.concatenate([run.states.q.numpy()[-1, 0], run.states.qd.numpy()[-1, 0]])
        run.release()

    made = [Workload("mujoco", theirs, lambda: final[0]), Workload("warpsim", ours, lambda: final[1])]
    return int(data.ncon), made


def points(counts: list[int], steps: int, repeats: int) -> Iterator[Point]:
    """Both sides at every size.

    Raises:
        RuntimeError: Bodies end elsewhere, farther from MuJoCo's than different contact points explain.
    """
    for places in PLACES:
        for count in counts:
            contacts, made = workloads(count, places, steps)
            timings = measure(made, repeats=repeats)
            gaps = (made[0].final_state() - made[1].final_state())[0, : 7 * count].reshape(count, 7)[:, :3]
            gap = float(np.median(np.linalg.norm(gaps, axis=1)))  # single bodies of a heap do tumble elsewhere
            if not gap < _GAP:
                raise RuntimeError(f"{places}, {count} bodies: half of them are over {gap:.2g} m from MuJoCo's")
            for work in made:
                timing = timings[work.label]
                ratio = float(np.median(timing.ratios(timings["mujoco"])))
                yield Point(places, count, contacts, work.label, 1e6 * timing.median / steps, ratio)


def to_markdown(rows: list[Point]) -> str:
    """A table of µs per step."""
    here = environment("tools.bench.bodies")
    lines = [
        f"`{here['command']}`",
        "",
        f"{here['processor']}; processor time on one thread, µs per step.",
        "",
        "| places | bodies | contacts | MuJoCo | warpsim | ratio |",
        "|---|---|---|---|---|---|",
    ]
    for theirs, ours in zip(rows[::2], rows[1::2], strict=True):
        cells = [ours.places, ours.count, ours.contacts]
        numbers = f"{theirs.microseconds:.0f} | {ours.microseconds:.0f} | {ours.ratio:.2f}"
        lines.append("| " + " | ".join(map(str, cells)) + f" | {numbers} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Measures and writes the reports."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.bodies", description=__doc__)
    parser.add_argument("--counts", type=int, nargs="+", default=list(COUNTS))
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--repeats", type=int, default=5)
    add_files(parser)
    options = parser.parse_args()
    rows = list(points(options.counts, options.steps, options.repeats))
    found = {"environment": environment("tools.bench.bodies"), "rows": [asdict(row) for row in rows]}
    publish(options, to_markdown(rows), found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
