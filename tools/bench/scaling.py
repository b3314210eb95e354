"""How cost grows: with worlds and threads, dofs, bodies and contacts.

    python -m tools.bench.scaling [--json FILE] [--markdown FILE]

Every point runs MuJoCo and warpsim alternately and compares their final states, as `tools.bench` does.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from tools.bench import mujoco_side
from tools.bench.cases import CASES, Case, Inputs
from tools.bench.report import add_files, environment, publish
from tools.bench.timing import Workload, measure
from tools.bench.warpsim_side import Rollout

WORLDS = (1, 4, 16, 64, 256, 1024)
DOFS = (4, 8, 16, 32, 64)
BODIES = (1, 2, 4, 8, 16, 32)
CONTACTS = (4, 8, 16, 32, 64)
_WORLD_STEPS = 4096
"""Steps times worlds of a point of throughput."""
_MOST_STEPS = 128
_STEPS = 200


@dataclass(frozen=True)
class Point:
    """One workload at one size; µs per step and world, the best round."""

    sweep: str
    size: int
    label: str
    threads: int
    microseconds: float
    deviation: float


def chain_xml(links: int) -> str:
    """A hanging chain of hinges with alternating axes."""
    body = "".join(
        f'<body pos="0 0 {-0.1 if i else 0}"><joint axis="{i % 2} {1 - i % 2} 0" damping=".05"/>'
        '<geom type="capsule" size=".02" fromto="0 0 0 0 0 -.1" mass=".2"/>'
        for i in range(links)
    )
    return _document(body + "</body>" * links, 'gravity="0 0 -9.81"')


def bodies_xml(count: int) -> str:
    """Spheres in free fall, apart."""
    body = "".join(
        f'<body pos="{0.5 * i} 0 1"><freejoint/><geom size=".1" contype="0" conaffinity="0"/></body>'
        for i in range(count)
    )
    return _document(body, "")


def contacts_xml(count: int) -> str:
    """One plate on so many round feet, all on the floor."""
    side = max(2, round(count**0.5))
    places = [(i % side, i // side) for i in range(count)]
    feet = "".join(
        f'<geom size=".02" pos="{0.1 * (x - (side - 1) / 2)} {0.1 * (y - (side - 1) / 2)} 0"/>' for x, y in places
    )
    plate = f'<body pos="0 0 .0199"><freejoint/>{feet}</body>'
    return _document('<geom type="plane" size="5 5 .1"/>' + plate, "")


def _document(worldbody: str, options: str) -> str:
    return f'<mujoco><option timestep=".002" {options}/><worldbody>{worldbody}</worldbody></mujoco>'


def workloads(case: Case, inputs: Inputs) -> list[Workload]:
    """MuJoCo's forward pass, warpsim's, and warpsim's gradient, on one thread and on two where there are worlds."""
    model = mujoco_side.load(case)
    made = []
    for count in (1, 2) if case.worlds > 1 else (1,):
        made.append(mujoco_side.forward(case, model, inputs, threads=count))
        rollout = Rollout(case, inputs, count)

        def final(rollout: Rollout = rollout) -> np.ndarray:
            return rollout.final

        suffix = "" if count == 1 else f", {count} threads"
        made.append(Workload(f"warpsim forward{suffix}", rollout.forward, final, threads=count))
        made.append(Workload(f"warpsim gradient{suffix}", rollout.differentiate, final, threads=count))
    return made


def points(sweep: str, size: int, case: Case, inputs: Inputs, repeats: int) -> Iterator[Point]:
    """All workloads at one size.

    Raises:
        RuntimeError: A final state is not MuJoCo's.
    """
    made = workloads(case, inputs)
    timings = measure(made, repeats=repeats)
    expected = made[0].final_state()
    for work in made:
        deviation = float(np.max(np.abs(work.final_state() - expected)) / np.max(np.abs(expected)))
        if not deviation <= case.tolerance:
            raise RuntimeError(f"{sweep} {size}: {work.label} deviates from MuJoCo by {deviation:.1e}")
        time = 1e6 * timings[work.label].best / (case.steps * case.worlds)
        yield Point(sweep, size, work.label.partition(",")[0], work.threads, time, deviation)


def sweeps(folder: Path, repeats: int) -> Iterator[Point]:
    """Every point; models are written to a folder."""
    humanoid = CASES["humanoid-ground"]
    if humanoid.path.is_file():
        most = replace(humanoid, worlds=max(WORLDS), steps=_MOST_STEPS)
        every = mujoco_side.make_inputs(most, mujoco_side.load(most))
        for worlds in WORLDS:
            steps = max(8, min(_MOST_STEPS, _WORLD_STEPS // worlds))
            part = Inputs(every.q[:worlds], every.qd[:worlds], np.ascontiguousarray(every.controls[:worlds, :steps]))
            yield from points("worlds", worlds, replace(humanoid, worlds=worlds, steps=steps), part, repeats)
    else:
        print(f"no {humanoid.model} beside the project: no sweep over worlds", file=sys.stderr)
    made = (("dofs", DOFS, chain_xml), ("bodies", BODIES, bodies_xml), ("contacts", CONTACTS, contacts_xml))
    for sweep, sizes, xml in made:
        for size in sizes:
            path = folder / f"{sweep}{size}.xml"
            path.write_text(xml(size), encoding="utf-8")
            case = Case(f"{sweep} {size}", str(path), 1, _STEPS, contact=sweep == "contacts", tolerance=1e-4)
            inputs = mujoco_side.make_inputs(case, mujoco_side.load(case))
            yield from points(sweep, size, case, inputs, repeats)


def efficiency(rows: list[Point], label: str, worlds: int) -> float | None:
    """Of two threads: how much of twice the throughput they give."""
    found = {
        row.threads: row.microseconds for row in rows if (row.sweep, row.size, row.label) == ("worlds", worlds, label)
    }
    return found[1] / (2 * found[2]) if {1, 2} <= set(found) else None


def to_markdown(rows: list[Point]) -> str:
    """Tables: throughput, and the other sweeps."""
    here = environment("tools.bench.scaling")
    labels = ("mujoco forward", "warpsim forward", "warpsim gradient")
    lines = [
        f"`{here['command']}`",
        "",
        f"{here['processor']}, {here['cores']} cores; processor time on one thread, the wall clock on two; best round.",
        "",
        "Humanoids on the ground, world-steps per second; *efficiency*: of two threads.",
        "",
        "| worlds | " + " | ".join(f"{label}, 1 thread | 2 threads | efficiency" for label in labels) + " |",
        "|---" * (1 + 3 * len(labels)) + "|",
    ]
    at = {(r.sweep, r.size, r.label, r.threads): r.microseconds for r in rows}
    for worlds in sorted({r.size for r in rows if r.sweep == "worlds"}):
        cells = [f"{worlds}"]
        for label in labels:
            times = [at.get(("worlds", worlds, label, threads)) for threads in (1, 2)]
            cells += ["–" if time is None else f"{1e6 / time:,.0f}" for time in times]
            share = efficiency(rows, label, worlds)
            cells.append("–" if share is None else f"{share:.2f}")
        lines.append("| " + " | ".join(cells) + " |")
    lines += [
        "",
        "µs per step, one world.",
        "",
        "| sweep | size | " + " | ".join(labels) + " |",
        "|---|---|---|---|---|",
    ]
    for sweep in ("dofs", "bodies", "contacts"):
        for size in sorted({r.size for r in rows if r.sweep == sweep}):
            cells = [sweep, f"{size}", *(f"{at[sweep, size, label, 1]:.1f}" for label in labels)]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Runs the sweeps and writes the reports."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.scaling", description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    add_files(parser)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = list(sweeps(Path(folder), options.repeats))
    text = to_markdown(rows)
    found = {"environment": environment("tools.bench.scaling"), "rows": [asdict(row) for row in rows]}
    publish(options, text, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
