"""Data that cannot be what they are said to be: other orders of quaternions, other units, bodies inside others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from warpsim.core.errors import InputError
from warpsim.identification.coordinates import measured_states
from warpsim.identification.grid import Grid
from warpsim.identification.recordings import Recording, Recordings
from warpsim.rigid.model.tangent import difference
from warpsim.sim.simulator import Simulator

_ROTATIONS = {"free": 3, "ball": 0}
"""Joint kind → where its quaternion begins in its coordinates."""
_UNITS = {1000.0: "mm", 100.0: "cm", 180 / np.pi: "degrees", 1 / 1000.0: "km"}
_NEAR = 0.3
"""Share by which the ratio of velocities and differences may be off a unit's."""
_ENOUGH = 5
"""Rows from which on velocities are compared."""
_FALL = 0.03
"""s from which it is seen how a body falls, if they hold enough samples: over less, noise looks like gravity."""
_DEEP = 0.2
"""Share of the smallest shape that a start may lie inside another before it is called wrong."""


def split_states(recording: Recording, sim: Simulator) -> Recording:
    """With "states" as "q" and "qd"."""
    if "states" not in recording.channels:
        return recording
    states = np.asarray(recording.channels["states"], dtype=np.float64)
    if states.ndim != 2 or states.shape[1] != sim.nq + sim.nv:
        raise InputError(
            f"{recording.name}: 'states' has shape {states.shape}; the scene has {sim.nq} coordinates and {sim.nv} "
            f"velocities, so {sim.nq + sim.nv} columns are needed"
        )
    rest = {name: values for name, values in recording.channels.items() if name != "states"}
    return replace(recording, channels={"q": states[:, : sim.nq], "qd": states[:, sim.nq :], **rest})


def checked_coordinates(recordings: Recordings, sim: Simulator) -> Recordings:
    """Checks quaternions and velocities of "q" and "qd" against each other.

    Samples whose quaternions are not of unit length are masked with a note.

    Raises:
        InputError: All quaternions of a recording are off, or in another order; velocities are in another unit.
    """
    if "q" not in recordings[0].channels:
        return recordings
    kept, notes = [], list(recordings.notes)
    for recording in recordings:
        if recording.channels["q"].shape[1:] != (sim.nq,):
            raise InputError(
                f"{recording.name}: 'q' has shape {recording.channels['q'].shape}; the scene has {sim.nq} coordinates"
            )
        masked, said = _unit_quaternions(recording, sim)
        notes += said
        kept.append(masked)
    if "qd" in recordings[0].channels:
        _check_rates(kept, sim)
    return Recordings(tuple(kept), tuple(notes))


def _quaternions(sim: Simulator) -> list[slice]:
    layout = sim.model.layout
    firsts = [
        int(q) + _ROTATIONS[k] for k, q in zip(layout.joint_kinds, layout.joint_q, strict=True) if k in _ROTATIONS
    ]
    return [slice(first, first + 4) for first in firsts]


def _unit_quaternions(recording: Recording, sim: Simulator) -> tuple[Recording, list[str]]:
    q, notes = recording.channels["q"].copy(), []
    for part in _quaternions(sim):
        lengths = np.linalg.norm(q[:, part], axis=-1)
        bad = np.abs(lengths - 1) > 0.01
        bad &= np.isfinite(lengths)
        if bad[np.isfinite(lengths)].all():
            first = int(np.flatnonzero(np.isfinite(lengths))[0])
            raise InputError(
                f"{recording.name}, sample {first}: q[{part.start}:{part.stop}] is {q[first, part]}, no unit "
                "quaternion; the order is position (m) and then (w, x, y, z)"
            )
        if bad.any():
            samples = ", ".join(map(str, np.flatnonzero(bad)[:5]))
            notes.append(f"{recording.name}: q masked in sample(s) {samples}: no unit quaternion")
        q[bad] = np.nan
    return replace(recording, channels={**recording.channels, "q": q}), notes


def _moved(q: np.ndarray, times: np.ndarray, sim: Simulator) -> np.ndarray:
    """(n − 1, nv) velocities by differences of samples."""
    made = difference(sim.model.layout, torch.tensor(q[1:]), torch.tensor(q[:-1])).numpy()
    return made / np.diff(times)[:, None]


def _check_rates(recordings: list[Recording], sim: Simulator) -> None:
    by_samples, stated = [], []
    for recording in recordings:
        q, qd = recording.channels["q"], recording.channels["qd"]
        if qd.shape[1:] != (sim.nv,):
            raise InputError(f"{recording.name}: 'qd' has shape {qd.shape}; the scene has {sim.nv} velocities")
        samples, told = _moved(q, recording.times, sim), (qd[1:] + qd[:-1]) / 2
        good = np.isfinite(samples).all(-1) & np.isfinite(told).all(-1)
        if _quaternions(sim):
            _check_order(recording, samples, told, good, sim)
        by_samples.append(samples[good])
        stated.append(told[good])
    samples, told = np.concatenate(by_samples), np.concatenate(stated)
    if len(samples) >= _ENOUGH:
        _check_units(recordings[0].name, samples, told, sim)


def _check_order(recording: Recording, samples: np.ndarray, told: np.ndarray, good: np.ndarray, sim: Simulator) -> None:
    """Whether a recording's velocities agree with quaternions in the other order; the rest as in `_check_rates`."""
    if good.sum() < _ENOUGH:
        return
    other = recording.channels["q"].copy()
    for part in _quaternions(sim):
        other[:, part] = other[:, [part.stop - 1, part.start, part.start + 1, part.start + 2]]
    turned = _moved(other, recording.times, sim)
    as_is, other_way = (np.median(np.linalg.norm((a - told)[good], axis=-1)) for a in (samples, turned))
    if other_way < 0.3 * as_is:
        raise InputError(
            f"{recording.name}, samples 0 to {recording.samples - 1}: the velocities agree with quaternions in the "
            "order (x, y, z, w), not (w, x, y, z); reorder them"
        )


def _check_units(name: str, samples: np.ndarray, told: np.ndarray, sim: Simulator) -> None:
    """Compares the sizes of stated velocities and differences, dof by dof."""
    for dof, title in enumerate(sim.dof_names):
        moving = np.abs(samples[:, dof]) > 0.3 * np.abs(samples[:, dof]).max()
        if moving.sum() < 5 or np.abs(samples[:, dof]).max() < 1e-9:
            continue
        ratio = float(np.median(told[moving, dof] / samples[moving, dof]))
        for size, unit in _UNITS.items():
            for factor, what in ((size, "velocities"), (1 / size, "coordinates")):
                if abs(ratio / factor - 1) < _NEAR:
                    late = ", or times in ms" if what == "velocities" and size == 1000.0 else ""
                    raise InputError(
                        f"{name} and others: velocity of {title!r} is {ratio:.3g} times what its coordinates' "
                        f"differences say; the {what} seem to be in {unit}{late}: state units={{…}}, or convert them"
                    )


def check_falls(grid: Grid, sim: Simulator) -> None:
    """Whether free bodies fall as the scene's gravity says, or in another unit of length.

    Velocities in the same wrong unit as coordinates agree with their differences; only gravity tells. Bodies that do
    not fall at first say nothing.

    Raises:
        InputError: A quarter of the recordings begin with a fall that is a hundred or a thousand times as fast.
    """
    pull = np.asarray(sim.scene.options.gravity, dtype=np.float64)
    strength = float(np.linalg.norm(pull))
    if not strength or grid.samples < _ENOUGH:
        return
    layout = sim.model.layout
    q, _, known = (part.numpy() for part in measured_states(grid, layout))
    for joint, kind in enumerate(layout.joint_kinds):
        c, d = int(layout.joint_q[joint]), int(layout.joint_dof[joint])
        if kind != "free":
            continue
        found = []
        for r, interval in enumerate(grid.interval.tolist()):
            shown = max(_ENOUGH + 1, int(np.ceil(_FALL / interval)))
            seen = np.flatnonzero(known[r, :shown, d : d + 3].all(-1))
            if len(seen) >= _ENOUGH:
                along = q[r, seen, c : c + 3] @ pull / strength
                found.append(2 * np.polyfit(seen * interval, along, 2)[0] / strength)
        for size, unit in ((1000.0, "mm"), (100.0, "cm")):
            alike = [ratio for ratio in found if abs(ratio / size - 1) < _NEAR]
            if found and len(alike) >= len(found) / 4:
                raise InputError(
                    f"{layout.joint_names[joint]!r} falls {np.median(alike):.4g} times as fast as gravity says: "
                    f"positions, and velocities with them, seem to be in {unit}; state units={{…}}, or convert them"
                )


def starts_inside(sim: Simulator, q: torch.Tensor, names: list[str]) -> list[str]:
    """Notes on recordings that start with bodies inside each other.

    Args:
        sim: As many worlds as recordings.
        q: (R, nq).
        names: (R,).
    """
    if not sim.model.has_constraints or "penetration" not in sim.output_names:
        return []
    with torch.no_grad():
        depth = sim.rollout(1, q=q, outputs=("penetration",))["penetration"][1]
    sizes = [float(size) for s in sim.scene.shapes if s.kind != "plane" for size in s.size if size > 0]
    limit = _DEEP * min(sizes, default=0.05)
    return [
        f"{name}, sample 0: it starts {1000 * float(d):.3g} mm inside another body; left out"
        for name, d in zip(names, depth, strict=True)
        if float(d) > limit
    ]
