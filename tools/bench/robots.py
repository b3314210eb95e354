"""Steps of every robot with meshes of a folder, against MuJoCo's steps in the same run.

    python -m tools.bench.robots FOLDER [--only NAME …] [--steps 50 1000] [--json FILE] [--markdown FILE]

Both sides start where MuJoCo has the robot after half a second under its middle controls, with a small push, and keep
those controls. Models that do not load are named; the last line has the median of the ratios.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import mujoco
import numpy as np

from tools.bench.report import add_files, environment, publish
from tools.bench.timing import Workload, measure
from tools.zoo.files import model_files
from warpsim.core.errors import WarpsimError
from warpsim.core.precision import numpy_real
from warpsim.io.mjcf import read_mjcf
from warpsim.rigid.compile.compile import compile_model
from warpsim.rigid.compile.derive import Derivation
from warpsim.rigid.step.program import RigidProgram
from warpsim.scene.convergence import MIN_ITERATIONS
from warpsim.tape import CheckpointedTape

STEPS = (50, 1000)
_SETTLE = 0.5
"""s before the start."""
_PUSH = 0.1
"""m/s or rad/s of the start's random velocities."""


@dataclass(frozen=True)
class Point:
    """One robot over one number of steps."""

    robot: str
    steps: int
    contacts: int
    """MuJoCo's, at the start."""
    microseconds: float
    """Ours per step, the median round."""
    ratio: float
    """To MuJoCo's, the median over the rounds."""
    apart: float
    """Relative difference of the final states; large where the motion does not forgive rounding."""


def collides_with_meshes(model: mujoco.MjModel) -> bool:
    """Whether a mesh of the model can touch something."""
    meshes = model.geom_type == mujoco.mjtGeom.mjGEOM_MESH
    return bool((meshes & ((model.geom_contype | model.geom_conaffinity) != 0)).any())


def start_of(model: mujoco.MjModel) -> mujoco.MjData:
    """The state both sides start from, with its controls."""
    data = mujoco.MjData(model)
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, 0)
    else:
        data.ctrl[:] = np.where(model.actuator_ctrllimited, model.actuator_ctrlrange.mean(axis=1), 0.0)
    data.qvel[:] += _PUSH * np.random.default_rng(0).normal(size=model.nv)
    mujoco.mj_step(model, data, nstep=round(_SETTLE / model.opt.timestep))
    return data


def workloads(path: Path, model: mujoco.MjModel, steps: int) -> tuple[int, list[Workload]]:
    """MuJoCo's contacts at the start, and both sides' steps."""
    data = start_of(model)
    start = {
        "q": data.qpos.copy(),
        "qd": data.qvel.copy(),
        "warm_start": data.qacc_warmstart.copy(),
        "activation": data.act.copy(),
    }
    control = data.ctrl.copy()
    compiled = compile_model(read_mjcf(path))
    Derivation(compiled).run()
    program = RigidProgram(compiled, controls=("actuator",) if compiled.nu else ())
    tape = CheckpointedTape(program, steps=steps)
    state = {f.name: np.ascontiguousarray(start[f.name][None], numpy_real) for f in program.state if f.name in start}
    controls = {"actuator": np.tile(control.astype(numpy_real), (steps, 1, 1))} if compiled.nu else {}
    final = np.full((2, 1, model.nq + model.nv), np.nan)

    def theirs() -> None:
        mujoco.mj_resetData(model, data)
        data.qpos[:], data.qvel[:], data.act[:] = start["q"], start["qd"], start["activation"]
        data.ctrl[:], data.qacc_warmstart[:] = control, start["warm_start"]
        mujoco.mj_step(model, data, nstep=steps)
        final[0, 0] = np.concatenate([data.qpos, data.qvel])

    def ours() -> None:
        run = tape.forward(state, controls, keep_states=["q", "qd"], keep_every=steps, differentiate=False)
        final[1, 0] = np.concatenate([run.states.q.numpy()[-1, 0], run.states.qd.numpy()[-1, 0]])
        run.release()

    made = [Workload("mujoco", theirs, lambda: final[0]), Workload("warpsim", ours, lambda: final[1])]
    return int(data.ncon), made


def points(paths: list[Path], counts: list[int], repeats: int) -> Iterator[Point]:
    """Both sides of every robot; those without meshes are left out, those that do not load are named."""
    for path in paths:
        robot = "/".join(path.parts[-2:])
        try:
            model = mujoco.MjModel.from_xml_path(str(path))
            model.opt.iterations = max(model.opt.iterations, MIN_ITERATIONS)
            if not collides_with_meshes(model):
                continue
            for steps in counts:
                contacts, made = workloads(path, model, steps)
                timings = measure(made, repeats=repeats)
                theirs, ours = (w.final_state() for w in made)
                apart = float(np.abs(ours - theirs).max() / max(1.0, float(np.abs(theirs).max())))
                timing = timings["warpsim"]
                ratio = statistics.median(timing.ratios(timings["mujoco"]))
                yield Point(robot, steps, contacts, 1e6 * timing.median / steps, ratio, apart)
        except (WarpsimError, ValueError) as error:
            print(f"{robot}: {str(error).splitlines()[0]}", file=sys.stderr)


def to_markdown(found: list[Point]) -> str:
    """A line per robot and number of steps, and the medians."""
    lines = ["| robot | steps | contacts | µs per step | of MuJoCo's | ends apart |", "|---|---|---|---|---|---|"]
    lines += [
        f"| {p.robot} | {p.steps} | {p.contacts} | {p.microseconds:.0f} | {p.ratio:.2f} | {p.apart:.0e} |"
        for p in found
    ]
    for steps in sorted({p.steps for p in found}):
        ratios = [p.ratio for p in found if p.steps == steps]
        lines += ["", f"{steps} steps: median {statistics.median(ratios):.2f} of {len(ratios)}, most {max(ratios):.2f}"]
    return "\n".join(lines)


def main() -> int:
    """Parses the command line, times all robots and writes the reports; exit code 1 if there were none."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.robots", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME", help="parts of the paths to take")
    parser.add_argument("--steps", type=int, nargs="+", default=list(STEPS))
    parser.add_argument("--repeats", type=int, default=5)
    add_files(parser)
    options = parser.parse_args()
    found = list(points(model_files(options.folder, options.only), options.steps, options.repeats))
    record = {"environment": environment("tools.bench.robots"), "points": [asdict(p) for p in found]}
    publish(options, to_markdown(found), record)
    return int(not found)


if __name__ == "__main__":
    sys.exit(main())
