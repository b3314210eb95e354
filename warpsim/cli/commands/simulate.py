"""`warpsim simulate`: runs a scene, says how it went, and saves the motion."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from warpsim.check.records import record_run
from warpsim.cli.commands.opening import open_simulator
from warpsim.cli.commands.outputs import check_outputs
from warpsim.core.errors import InputError, SimulationError, whole_number
from warpsim.core.precision import numpy_real
from warpsim.io.usd.writer import result_files
from warpsim.sim.simulator import Simulator
from warpsim.sim.start import Start
from warpsim.sim.trajectory import CONTACT_OUTPUTS, PAGE_SUFFIXES, Trajectory, check_target
from warpsim.solve.newton import AT_ROUNDING, CONVERGED, STATUS_TEXT
from warpsim.tape.budget import readable
from warpsim.tape.free_memory import free_bytes

OUTPUTS = (
    "body_position",
    "body_rotation",
    "body_velocity",
    "potential_energy",
    "kinetic_energy",
    "linear_momentum",
    "angular_momentum",
)
SOLVER_OUTPUTS = ("solver_status", "solver_iterations", "contact_count", "penetration", "constraint_error")
_MOMENTA = {"linear": "N·s", "angular": "N·m·s"}
_MOST_COORDINATES = 24
_MAXIMUM_FRAMES = 100_000
"""Steps of all worlds that are kept for the summary; of longer runs, the frames are."""


def run(arguments: argparse.Namespace) -> int:
    """Runs, prints a summary, saves."""
    _check(arguments)
    sim = open_simulator(arguments, worlds=arguments.worlds, device=arguments.device)
    if arguments.noise:
        sim.reset(start=Start(position_noise=arguments.noise, seed=arguments.seed))
    steps = whole_number("steps", _steps(arguments, sim.timestep))
    every = max(1, min(steps, round(1.0 / (arguments.fps * sim.timestep))))
    kept = 1 if steps * sim.worlds <= _MAXIMUM_FRAMES else every  # the summary is of all steps, or of the frames
    limited = bool(sim.actuator_names or sim.drive_names)
    outputs = (*OUTPUTS, *(("saturated",) if limited else ()), *(SOLVER_OUTPUTS if sim.model.has_constraints else ()))
    if _is_page(arguments.output) and sim.model.max_contacts:
        outputs += CONTACT_OUTPUTS
    _check_memory(sim, steps // kept + 1, outputs)
    sim.rollout(steps=1, outputs=outputs)  # compiles what is not yet in the cache, so that the time below is the run's
    begin = time.perf_counter()
    try:
        trajectory = sim.rollout(
            steps=steps,
            outputs=outputs,
            keep_every=kept,
            threads=arguments.threads,
            progress=not arguments.quiet,
        )
    except SimulationError as error:
        if arguments.output and error.trajectory is not None:
            print(f"the run failed; what it had reached, {error.trajectory.times[-1]:.4g} s, is saved")
            _save(error.trajectory.every(every // kept), Path(arguments.output))
        raise
    elapsed = time.perf_counter() - begin
    print("\n".join(summary(sim, trajectory, steps, elapsed)))
    if kept > 1:
        print(f"(contacts, depths, limits and solver: of the frames kept, every {kept} steps)")
    if arguments.output:
        _save(trajectory.every(every // kept), Path(arguments.output))
    if arguments.record:
        record = record_run(sim, steps, seed=arguments.seed if arguments.noise else None)
        for found in record.labels:
            print(f"label: {found['name']}: {found['text']}")
        print(f"wrote {record.save(arguments.record)}")
    return 0


def _check(arguments: argparse.Namespace) -> None:
    """Refuses what would fail after the run, or run for nothing."""
    for name in ("fps", "seconds"):
        value = getattr(arguments, name)
        if value is not None and not 0.0 < value < math.inf:
            raise InputError(f"--{name} {value:g}: give a finite number above 0")
    if not 0.0 <= arguments.noise < math.inf:
        raise InputError(f"--noise {arguments.noise:g}: a standard deviation is finite and not negative")
    if arguments.output:
        check_target(Path(arguments.output), Path(arguments.scene))
    check_outputs(_targets(arguments), [arguments.scene], force=arguments.force)


def _check_memory(sim: Simulator, frames: int, outputs: Sequence[str]) -> None:
    """Refuses a run whose frames memory cannot hold, before it is gone."""
    fields = sim.compiled.outputs
    state = np.dtype(numpy_real).itemsize * sim.worlds * (sim.nq + sim.nv)
    wanted = frames * (sum(fields[name].nbytes for name in outputs) + state)
    free = free_bytes(sim.model.device)
    if wanted > free:
        raise InputError(
            f"{frames} frames take {readable(wanted)} of memory, and {readable(free)} are free; keep fewer with "
            "a smaller --fps, run for less time, or fewer worlds"
        )


def _targets(arguments: argparse.Namespace) -> list[Path]:
    """All files that the run may write."""
    found = [Path(arguments.record)] if arguments.record else []
    if arguments.output:
        target = Path(arguments.output)
        found += [target] if target.suffix == ".npz" else [*result_files(target), target.with_suffix(".npz")]
    return found


def _save(trajectory: Trajectory, target: Path) -> None:
    written = trajectory.save(target)
    if target.suffix != ".npz" and not _is_page(target):
        # USD holds the motion; energies, momenta and the solver's reports go beside it
        written += trajectory.save(target.with_suffix(".npz"))
    for path in written:
        print(f"wrote {path}")


def _is_page(target: str | Path | None) -> bool:
    return target is not None and Path(target).suffix.lower() in PAGE_SUFFIXES


def _steps(arguments: argparse.Namespace, timestep: float) -> int:
    if arguments.steps is not None:
        return arguments.steps
    seconds = 5.0 if arguments.seconds is None else arguments.seconds
    return max(1, round(seconds / timestep))


def summary(sim: Simulator, trajectory: Trajectory, steps: int, elapsed: float) -> Iterator[str]:
    """Lines about a rollout: speed, energy, saturation, and the final state of world 0."""
    simulated = steps * sim.timestep
    rate = steps * sim.worlds / elapsed
    yield (
        f"{steps} steps of {sim.timestep:g} s in {sim.worlds} world(s): {elapsed:.3g} s with set-up, "
        f"{rate:.4g} steps/s, {simulated * sim.worlds / elapsed:.4g} times real time"
    )
    energy = trajectory.numpy("potential_energy") + trajectory.numpy("kinetic_energy")
    drift = energy[-1] - energy[0]
    yield f"energy {energy[0, 0]:.6g} J → {energy[-1, 0]:.6g} J, largest change over worlds {np.abs(drift).max():.4g} J"
    momentum = [np.linalg.norm(trajectory.numpy(f"{kind}_momentum")[[0, -1], 0], axis=-1) for kind in _MOMENTA]
    shown = [f"{a:.4g} → {b:.4g} {unit}" for (a, b), unit in zip(momentum, _MOMENTA.values(), strict=True)]
    yield f"momentum, world 0: linear {shown[0]}, angular about the center of mass {shown[1]}"
    if "saturated" in trajectory:
        share = (trajectory.numpy("saturated")[1:, :, : sim.model.nu + sim.model.nd] != 0).mean()
        yield f"actuators and drives at their limits: {100 * share:.3g} % of the time"
    if "solver_status" in trajectory:
        yield _solver_summary(trajectory)
    yield "final state, world 0:"
    for name in sim.joint_names[:_MOST_COORDINATES]:
        q, qd = trajectory.joint_position(name)[-1, 0], trajectory.joint_velocity(name)[-1, 0]
        yield f"  {name}  q {_row(q)}  qd {_row(qd)}"
    if len(sim.joint_names) > _MOST_COORDINATES:
        yield f"  … {len(sim.joint_names)} joints in all; save them with -o"


def _solver_summary(trajectory: Trajectory) -> str:
    """Contacts and the solver's success over the frames kept."""
    status = trajectory.numpy("solver_status")[1:]
    depth, contacts = trajectory.numpy("penetration")[1:].max(), trajectory.numpy("contact_count")[1:].max()
    iterations = trajectory.numpy("solver_iterations")[1:].max()
    bad = np.argwhere((status != CONVERGED) & (status != AT_ROUNDING))
    verdict = f"solver converged within {iterations} iterations"
    if len(bad):
        frame, world = bad[0]
        verdict = f"solver failed in {len(bad)} frames, first in frame {frame + 1}, world {world}: "
        verdict += STATUS_TEXT[int(status[frame, world])]
    error = trajectory.numpy("constraint_error")[1:].max()
    return (
        f"at most {contacts} contacts, deepest {1e3 * depth:.3g} mm; joint limits and equalities off by at most "
        f"{error:.3g} m or rad; {verdict}"
    )


def _row(values) -> str:
    return " ".join(f"{x:.5g}" for x in values.tolist())
