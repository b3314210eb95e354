"""Recordings side by side: each on its own regular grid of times, padded to one length, with what is missing masked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from warpsim.core.errors import InputError
from warpsim.core.torch_quaternions import quat_logarithm, quat_product
from warpsim.identification.recordings import Recording, Recordings
from warpsim.rigid.model.tangent import difference
from warpsim.sim.simulator import Simulator
from warpsim.sim.trajectory import Observed

_JITTER = 0.25
"""Share of the distance of samples by which a sample's time may lie beside the regular grid."""


@dataclass(frozen=True)
class Channel:
    """What is compared.

    Attributes:
        name: Of the recordings' channel.
        kind: "q", "rotation" or "plain".
        noise: Standard deviations, one number or one per residual.
        size: Residuals per sample.
    """

    name: str
    kind: str
    noise: torch.Tensor
    size: int


@dataclass(frozen=True)
class Grid:
    """Recordings as tensors: R recordings, G samples each.

    Attributes:
        interval: (R,) s between samples.
        measured: By channel, (R, G, …); zero (or no rotation) where nothing was measured.
        mask: By channel, (R, G) 1 where it was measured.
        q: (R, nq) where rollouts start.
        qd: (R, nv).
        controls: (R, G, control size); None: none.
        notes: What was masked.
        before: (R, lead, control size) controls of the samples before the first; None: none are known.
    """

    interval: torch.Tensor
    measured: dict[str, torch.Tensor]
    mask: dict[str, torch.Tensor]
    q: torch.Tensor
    qd: torch.Tensor
    controls: torch.Tensor | None
    notes: tuple[str, ...]
    before: torch.Tensor | None = None

    @property
    def samples(self) -> int:
        """G."""
        return next(iter(self.mask.values())).shape[1]


def lay_out(recordings: Recordings, sim: Simulator) -> Grid:
    """Puts recordings on grids.

    Args:
        recordings: Checked ones.
        sim: One world; for the meaning of channels and the scene's own initial state.
    """
    steps = [_grid_steps(recording) for recording in recordings]
    samples = 1 + max(int(places[-1]) for _, places, _ in steps)
    count, notes = len(recordings), list(recordings.notes)
    for _, _, said in steps:
        notes += said
    first = recordings[0]
    measured, mask = {}, {}
    for name, values in first.channels.items():
        rest = _rest(name, values.shape[1:], sim)
        measured[name] = torch.tensor(np.broadcast_to(rest, (count, samples, *rest.shape)).copy())
        mask[name] = torch.zeros(count, samples, dtype=torch.float64)
    controls = torch.zeros(count, samples, sim.control_size, dtype=torch.float64) if _controlled(recordings) else None
    for r, (recording, (_, places, _)) in enumerate(zip(recordings, steps, strict=True)):
        for name, values in recording.channels.items():
            known = np.isfinite(values.reshape(len(values), -1)).all(-1) & (places >= 0)
            measured[name][r, places[known]] = torch.tensor(values[known])
            mask[name][r, places[known]] = 1.0
        if controls is not None:
            controls[r] = torch.tensor(_held(recording, places, samples))
    starts = [_start(recording, sim) for recording in recordings]
    return Grid(
        interval=torch.tensor([interval for interval, _, _ in steps], dtype=torch.float64),
        measured=measured,
        mask=mask,
        q=torch.stack([q for q, _ in starts]),
        qd=torch.stack([qd for _, qd in starts]),
        controls=controls,
        notes=tuple(notes),
    )


def _grid_steps(recording: Recording) -> tuple[float, np.ndarray, list[str]]:
    """(distance of samples in s, place of each sample or −1, notes)."""
    since = recording.times - recording.times[0]
    usual = float(np.median(np.diff(recording.times)))
    interval = float(since[-1] / max(1, round(since[-1] / usual)))
    places = np.rint(since / interval).astype(int)
    off = np.abs(since / interval - places) > _JITTER
    doubled = np.r_[False, np.diff(places) == 0]
    notes = [
        f"{recording.name}, sample {r}: its time is off the regular grid of {interval:.4g} s; masked"
        for r in np.flatnonzero(off | doubled)
    ]
    return interval, np.where(off | doubled, -1, places), notes


def _held(recording: Recording, places: np.ndarray, samples: int) -> np.ndarray:
    """(samples, nu): each control until the next one."""
    assert recording.controls is not None
    made = np.zeros((samples, recording.controls.shape[1]))
    for place, value in zip(places, recording.controls, strict=True):
        if place >= 0:
            made[place:] = value
    return made


def _controlled(recordings: Sequence[Recording]) -> bool:
    have = {recording.controls is not None for recording in recordings}
    if len(have) > 1:
        raise InputError("some recordings have controls and others have none; give all of them theirs")
    return have.pop()


def _rest(name: str, shape: tuple[int, ...], sim: Simulator) -> np.ndarray:
    """What stands where nothing was measured: any value with which residuals are finite."""
    if name == "q":
        return sim.initial_state().q[0].cpu().numpy()
    if "rotation" in name:
        return np.array([1.0, 0.0, 0.0, 0.0])
    return np.zeros(shape)


def _start(recording: Recording, sim: Simulator) -> tuple[torch.Tensor, torch.Tensor]:
    own = sim.initial_state()
    q = recording.q0 if recording.q0 is not None else _first(recording, "q")
    qd = recording.qd0 if recording.qd0 is not None else _first(recording, "qd")
    made = []
    for name, given, default in (("q", q, own.q[0]), ("qd", qd, own.qd[0])):
        if given is not None and np.shape(given) != tuple(default.shape):
            raise InputError(f"{recording.name}: {name!r} has {np.size(given)} numbers, the scene has {len(default)}")
        if given is not None and not np.isfinite(given).all():
            raise InputError(
                f"{recording.name}, sample 0: {name!r} is {given}, and a rollout cannot start from it; leave out the "
                "samples before the first good one"
            )
        made.append(default.cpu().double() if given is None else torch.tensor(given, dtype=torch.float64))
    return made[0], made[1]


def _first(recording: Recording, name: str) -> np.ndarray | None:
    return recording.channels[name][0] if name in recording.channels else None


def compared_channels(grid: Grid, sim: Simulator, noise: Mapping[str, Any] | None) -> list[Channel]:
    """The channels that residuals are made of.

    Args:
        grid: The data.
        sim: For sizes.
        noise: Standard deviation by channel, in SI; channels that it does not name are not compared. None: 1 for all
            but velocities "qd", which are mostly differences of what "q" holds already.
    """
    given = {n: 1.0 for n in grid.measured if n != "qd" or "q" not in grid.measured} if noise is None else noise
    made = []
    for name, deviation in given.items():
        if name not in grid.measured:
            raise InputError(f"noise: there is no channel {name!r}; channels: {', '.join(grid.measured)}")
        kind = "q" if name == "q" else "rotation" if "rotation" in name else "plain"
        size = sim.nv if kind == "q" else 3 if kind == "rotation" else int(grid.measured[name][0, 0].numel())
        numbers = torch.as_tensor(deviation, dtype=torch.float64)
        if numbers.shape not in ((), (size,)) or not bool((numbers > 0).all()):
            raise InputError(f"noise of {name!r}: give one number above 0, or {size}")
        made.append(Channel(name, kind, numbers, size))
    if not made:
        raise InputError("nothing is compared: noise= names no channel")
    return made


def channel_outputs(channels: Sequence[Channel]) -> tuple[str, ...]:
    """Outputs that a rollout must show for these channels."""
    stems = [channel.name.partition(":")[0] for channel in channels]
    wanted = {"body_position": "body_position", "body_rotation": "body_rotation", "sensor": "sensors"}
    return tuple(dict.fromkeys(wanted[stem] for stem in stems if stem in wanted))


def predicted(motion: Observed, channel: str) -> torch.Tensor:
    """(samples, W, …) what a rollout says of a channel."""
    stem, _, item = channel.partition(":")
    if stem in ("q", "qd") and not item:
        return motion[stem]
    find = {
        "joint": motion.joint_position,
        "joint_velocity": motion.joint_velocity,
        "body_position": lambda name: motion.body_position(name),
        "body_rotation": lambda name: motion.body_rotation(name),
        "sensor": motion.sensor,
    }
    if stem not in find or not item:
        raise InputError(f"unknown channel {channel!r}; known: q, qd, {', '.join(f'{kind}:NAME' for kind in find)}")
    return find[stem](item)


def residuals(sim: Simulator, channel: Channel, made: torch.Tensor, measured: torch.Tensor) -> torch.Tensor:
    """(…, size) prediction minus measurement, in standard deviations."""
    if channel.kind == "q":
        apart = difference(sim.model.layout, made, measured)
    elif channel.kind == "rotation":
        apart = _turned(made, measured)
    else:
        apart = made - measured.reshape(made.shape)
    return apart / channel.noise


def _turned(made: torch.Tensor, measured: torch.Tensor) -> torch.Tensor:
    conjugate = measured * measured.new_tensor([1.0, -1.0, -1.0, -1.0])
    return quat_logarithm(quat_product(conjugate, made))
