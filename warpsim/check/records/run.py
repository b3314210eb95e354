"""`record_run`: simulates and writes down everything about it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

from warpsim.check.records.fingerprint import array_hash, file_hash, scene_hash, versions
from warpsim.check.records.labels import label
from warpsim.check.records.matters import is_of_matter, matter_summary
from warpsim.check.records.plain import encode
from warpsim.check.records.record import RunRecord
from warpsim.core.errors import SimulationError
from warpsim.sim.controls import Controls, given_steps
from warpsim.sim.simulator import Simulator
from warpsim.sim.trajectory import Trajectory

_MAXIMUM_FRAMES = 1000
_OUTPUTS = ("potential_energy", "kinetic_energy")
_SOLVER_OUTPUTS = ("solver_status", "solver_iterations", "contact_count", "penetration")


def record_run(
    sim: Simulator,
    steps: int | None = None,
    controls: Controls | None = None,
    *,
    start: Mapping[str, Any] | None = None,
    q: Any = None,
    qd: Any = None,
    activation: Any = None,
    seed: int | None = None,
    latency: list[float] | None = None,
    control_period: float | None = None,
    loss: Callable[[Trajectory], torch.Tensor] | None = None,
    by: Sequence[str] | None = None,
    outcome: Mapping[str, Any] | None = None,
    gradient: Mapping[str, Any] | None = None,
    task: Mapping[str, Any] | None = None,
    more: Mapping[str, Any] | None = None,
    outputs: tuple[str, ...] = (),
    path: Path | None = None,
    motion: Mapping[str, Any] | None = None,
) -> RunRecord:
    """Rolls a simulator out, with the parameters in force (`Simulator.set_parameters`), and records it.

    Args:
        sim: What is simulated.
        steps: N; None: the length of `controls`.
        controls: As in `Simulator.rollout`.
        start: Fields of the initial state by name, likewise.
        q: Initial coordinates.
        qd: Initial velocities.
        activation: Initial activations.
        seed: Of whatever was random in making the inputs.
        latency: Measured s per control, where a policy was in the loop.
        control_period: s between controls; None: the time step.
        loss: A function of the trajectory; its value goes into the outcome, its gradient norms into the record.
        by: States and controls by which it is differentiated; None: all.
        outcome: Loss, success and other numbers that are already known: "loss", "success" (bool), "metric" ….
        gradient: Norms that are already known: "norms" by input, "adjoint_norms", or what `validity` found.
        task: What the inputs were searched for with, see `RunRecord.task`.
        more: Anything else to keep.
        outputs: More outputs to observe.
        path: The scene's file, if it is now elsewhere than where the simulator read it.
        motion: What `motion_facts` kept of this very rollout, if it was made before; it is not made again.
    """
    count = given_steps(controls, steps)
    actions = sim.all_controls(count, controls)
    short = {name: value for name, value in (("q", q), ("qd", qd), ("activation", activation)) if value is not None}
    begin = {**(start or {}), **short}
    first = {name: sim.initial_state(start=begin)[name] for name in sim.state_names}
    made, trouble = (None, {}) if motion is not None else _roll_out(sim, actions, begin, outputs)
    result, slopes = {**(outcome or {}), **trouble}, dict(gradient or {})
    if loss is not None and made is not None:
        result["loss"], norms = _differentiate(sim, loss, first, actions, outputs)
        slopes.setdefault("norms", {name: norm for name, norm in norms.items() if by is None or name in by})
    record = RunRecord(
        created=datetime.now(UTC).isoformat(),
        seed=seed,
        horizon={"steps": count, "seconds": count * sim.timestep},
        initial_state=_initial_state(first, begin),
        actions={name: _numpy(tensor) for name, tensor in actions.items()},
        control_period=sim.timestep if control_period is None else control_period,
        latency=latency,
        outcome=result,
        gradient=slopes,
        task=dict(task or {}),
        more=dict(more or {}),
        **_simulator_facts(sim, path or sim.source.path),
        **(motion_facts(sim, made, outputs) if motion is None else motion),
    )
    record.labels = [encode(found) for found in label(record)]
    return record


def _initial_state(first: Mapping[str, torch.Tensor], given: Mapping[str, Any]) -> dict[str, Any]:
    """States at the start; a matter's, which may have very many numbers, only where the scene does not say them."""
    return {name: _numpy(tensor) for name, tensor in first.items() if name in given or not is_of_matter(name)}


def recorded_outputs(sim: Simulator) -> tuple[str, ...]:
    """Outputs that a record keeps of every run."""
    shown = (*_OUTPUTS, *(_SOLVER_OUTPUTS if sim.model.has_constraints else ()))
    shown += ("saturated",) if sim.actuator_names or sim.drive_names else ()
    return shown + (("mode",) if "mode" in sim.output_names else ())


def _roll_out(
    sim: Simulator, actions: Mapping[str, torch.Tensor], start: Mapping[str, Any], outputs: tuple[str, ...]
) -> tuple[Trajectory | None, dict[str, str]]:
    """The trajectory with all that is recorded of one; or None, and why it stopped."""
    shown = tuple(dict.fromkeys((*recorded_outputs(sim), *outputs)))
    try:
        return sim.rollout(controls=actions, start=start, outputs=shown), {}
    except SimulationError as error:
        return None, {"error": str(error)}


def _simulator_facts(sim: Simulator, path: Path | None) -> dict[str, Any]:
    """What a record says of the simulator, whatever it was asked to do."""
    return {
        "scene": _scene(sim, path),
        "versions": versions(),
        "device": str(sim.device),
        "settings": _settings(sim),
        "names": _names(sim),
        "parameters": _parameters(sim),
        "bounds": _bounds(sim),
    }


def motion_facts(sim: Simulator, made: Trajectory | None, outputs: tuple[str, ...] = ()) -> dict[str, Any]:
    """What a record says of the motion.

    Args:
        sim: What was simulated.
        made: With `recorded_outputs`; None: it could not be simulated to its end.
        outputs: More outputs to keep.
    """
    kept = [name for name in (*recorded_outputs(sim), *outputs) if name not in ("solver_status", "saturated", "mode")]
    observations = _observations(made, [name for name in kept if name not in sim.state_names])
    if made is not None:
        observations["mode_switches"] = _mode_switches(made)
    return {
        "trajectory": _trajectory(made, sim.state_names),
        "observations": observations,
        "actuator_status": _whole(made, "saturated"),
        "solver_status": _whole(made, "solver_status"),
    }


def _differentiate(
    sim: Simulator,
    loss: Callable[[Trajectory], torch.Tensor],
    first: Mapping[str, torch.Tensor],
    actions: Mapping[str, torch.Tensor],
    outputs: tuple[str, ...],
) -> tuple[float, dict[str, float]]:
    """The loss, and the norm of its gradient by every state and control."""
    leaves = {name: tensor.detach().clone().requires_grad_() for name, tensor in (*first.items(), *actions.items())}
    states: dict[str, Any] = {name: leaves[name] for name in first}
    controls = {name: leaves[name] for name in actions}
    value = loss(sim.rollout(controls=controls, start=states, outputs=(*sim.outputs, *outputs)))
    found = torch.autograd.grad(value, list(leaves.values()), allow_unused=True)
    norms = {n: 0.0 if g is None else float(g.norm()) for n, g in zip(leaves, found, strict=True)}
    return float(value.detach()), norms


def _mode_switches(made: Trajectory) -> np.ndarray:
    """(n,) s: when world 0's contacts, cones, limits or saturations changed."""
    if "mode" not in made:
        return np.zeros(0)
    modes = made.numpy("mode")[1:, 0]
    return made.times[1:-1][modes[1:] != modes[:-1]]


def _scene(sim: Simulator, path: Path | None) -> dict[str, Any]:
    return {
        "name": sim.scene.name,
        "path": None if path is None else str(path),
        "file_sha256": None if path is None else file_hash(path),
        "scene_sha256": scene_hash(sim.scene),
    }


def _settings(sim: Simulator) -> dict[str, Any]:
    options = dataclasses.asdict(sim.scene.options)
    return {**options, "timestep": sim.timestep, "worlds": sim.worlds, "controls": list(sim.control_names)}


def _names(sim: Simulator) -> dict[str, list[str]]:
    return {
        "body": list(sim.body_names),
        "joint": list(sim.joint_names),
        "dof": list(sim.dof_names),
        "shape": list(sim.model.layout.shape_names),
        "actuator": list(sim.actuator_names),
        "drive": list(sim.drive_names),
    }


def _parameters(sim: Simulator) -> dict[str, Any]:
    """All values in force, without the world axis where worlds agree."""
    found = {name: array for name, array in sim.compiled.described.items() if array.size}
    for name in sim.changed_parameters.intersection(found):
        value = _numpy(sim.parameter(name))
        found[name] = value[0].copy() if np.array_equal(value, np.broadcast_to(value[:1], value.shape)) else value
    return found


def _bounds(sim: Simulator) -> dict[str, Any]:
    names = ("actuator.control_range", "actuator.force_range", "drive.max_force")
    return {name: _numpy(sim.parameter(name))[0] for name in names if sim.parameter(name).numel()}


def _trajectory(made: Trajectory | None, states: Sequence[str]) -> dict[str, Any]:
    if made is None:
        return {"times": np.zeros(0), "every": 1, "sha256": ""}
    every = max(1, -(-len(made.times) // _MAXIMUM_FRAMES))
    whole = [made.numpy(name) for name in states]
    frames = {name: array[::every].copy() for name, array in zip(states, whole, strict=True)}
    kept: dict[str, Any] = {name: array for name, array in frames.items() if not is_of_matter(name)}
    matters = {name: matter_summary(array) for name, array in frames.items() if is_of_matter(name)}
    if matters:
        kept["matters"] = matters
    return {"times": made.times[::every], "every": every, "sha256": array_hash(*whole), **kept}


def _observations(made: Trajectory | None, names: Sequence[str]) -> dict[str, Any]:
    if made is None:
        return {}
    every = max(1, -(-len(made.times) // _MAXIMUM_FRAMES))
    return {name: made.numpy(name)[::every].copy() for name in names}


def _whole(made: Trajectory | None, name: str) -> np.ndarray | None:
    return made.numpy(name)[1:].copy() if made is not None and name in made else None


def _numpy(tensor: torch.Tensor) -> np.ndarray:
    """A copy: the caller may go on with his tensor, and the record stays as it was made."""
    return tensor.detach().cpu().numpy().copy()
