"""Recordings: what was measured, when, and how well; bad entries masked with a note, or refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from warpsim.core.errors import InputError

UNITS = {
    "": 1.0,
    "m": 1.0,
    "rad": 1.0,
    "m/s": 1.0,
    "rad/s": 1.0,
    "N": 1.0,
    "N·m": 1.0,
    "mm": 1e-3,
    "cm": 1e-2,
    "mm/s": 1e-3,
    "cm/s": 1e-2,
    "deg": np.pi / 180,
    "deg/s": np.pi / 180,
}
"""Unit → its size in SI and radians."""
_GAP = 1.5
"""A sample that comes later than this many usual distances after the last one follows a gap."""


@dataclass(frozen=True)
class Recording:
    """One experiment.

    Attributes:
        name: In notes and reports.
        times: (n,) s, increasing; the first is the start of the rollout.
        channels: By name, (n, …) each; NaN where nothing was measured. Names: "q" and "qd" (all coordinates or
            velocities, in the scene's convention), "joint:NAME", "joint_velocity:NAME", "body_position:NAME",
            "body_rotation:NAME" (w, x, y, z), "sensor:NAME".
        controls: (n, control size): what acted from each sample to the next; None: nothing.
        q0: (nq,): where the rollout starts; None: the first sample of "q", else the scene's.
        qd0: (nv,): likewise.
        notes: What a reader left out of its file.
    """

    name: str
    times: np.ndarray
    channels: Mapping[str, np.ndarray]
    controls: np.ndarray | None = None
    q0: np.ndarray | None = None
    qd0: np.ndarray | None = None
    notes: tuple[str, ...] = ()

    @property
    def samples(self) -> int:
        """n."""
        return len(self.times)

    def first_samples(self, samples: int) -> Recording:
        """The recording up to a sample."""
        cut = {name: values[:samples] for name, values in self.channels.items()}
        controls = None if self.controls is None else self.controls[:samples]
        return replace(self, times=self.times[:samples], channels=cut, controls=controls)


@dataclass(frozen=True)
class Recordings(Sequence[Recording]):
    """Recordings that were looked through.

    Attributes:
        items: Those that can be used, all with the same channels.
        notes: What was masked or left out, by recording and sample.
    """

    items: tuple[Recording, ...]
    notes: tuple[str, ...] = field(default=())

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, int | np.integer):
            return self.items[int(place)]
        chosen = range(len(self))[place] if isinstance(place, slice) else [int(i) for i in place]
        return Recordings(tuple(self.items[i] for i in chosen), self.notes)

    def __iter__(self) -> Iterator[Recording]:
        return iter(self.items)

    def first_samples(self, samples: int) -> Recordings:
        """All of them up to a sample."""
        return Recordings(tuple(item.first_samples(samples) for item in self.items), self.notes)


def in_si(channels: Mapping[str, np.ndarray], units: Mapping[str, str]) -> dict[str, np.ndarray]:
    """Channels in SI and radians.

    Args:
        channels: By name.
        units: Of those that are not in SI, by channel; see `UNITS`.
    """
    for name, unit in units.items():
        if name not in channels:
            raise InputError(f"units: there is no channel {name!r}; channels: {', '.join(channels)}")
        if unit not in UNITS:
            raise InputError(f"channel {name!r}: unknown unit {unit!r}; known: {', '.join(u for u in UNITS if u)}")
    return {n: UNITS[units.get(n, "")] * np.asarray(values, dtype=np.float64) for n, values in channels.items()}


def checked(recordings: Sequence[Recording]) -> Recordings:
    """Looks recordings through.

    Entries that are not numbers are masked, recordings without a sample to compare left out, both with a note.

    Raises:
        InputError: Times that do not increase, channels that differ in length or kind, no recording left.
    """
    kept, notes = [], []
    names = {tuple(sorted(r.channels)) for r in recordings}
    if len(names) > 1:
        raise InputError(f"recordings have different channels: {' / '.join(', '.join(n) for n in sorted(names))}")
    for recording in recordings:
        notes += [f"{recording.name}: {note}" for note in recording.notes]
        _check_shapes(recording)
        if recording.samples < 2:
            notes.append(f"{recording.name}: {recording.samples} sample(s), nothing to compare with; left out")
            continue
        _check_times(recording)
        notes += _gaps(recording)
        masked, said = _masked(recording)
        notes += said
        if all(np.isnan(values[1:]).all() for values in masked.channels.values()):
            notes.append(f"{recording.name}: no measurement after sample 0; left out")
            continue
        kept.append(masked)
    if not kept:
        raise InputError("there is no recording to fit to" + "".join(f"\n  {note}" for note in notes))
    return Recordings(tuple(kept), tuple(notes))


def _check_shapes(recording: Recording) -> None:
    if not recording.channels:
        raise InputError(f"{recording.name}: it has no channels; give what was measured")
    for name, values in recording.channels.items():
        if len(values) != recording.samples:
            raise InputError(f"{recording.name}: {name!r} has {len(values)} samples, its times {recording.samples}")
    if recording.controls is not None and len(recording.controls) != recording.samples:
        raise InputError(f"{recording.name}: {len(recording.controls)} controls for {recording.samples} times")


def _check_times(recording: Recording) -> None:
    times = recording.times
    bad = np.flatnonzero(~np.isfinite(times))
    if len(bad):
        raise InputError(f"{recording.name}, sample {bad[0]}: the time is {times[bad[0]]}; every sample needs one")
    back = np.flatnonzero(np.diff(times) <= 0)
    if len(back):
        sample = int(back[0]) + 1
        raise InputError(
            f"{recording.name}, sample {sample}: time goes from {times[sample - 1]:g} s to {times[sample]:g} s; "
            "sort the samples, or split the recording there"
        )


def _gaps(recording: Recording) -> list[str]:
    apart = np.diff(recording.times)
    usual = float(np.median(apart))
    samples = np.flatnonzero(apart > _GAP * usual)
    return [f"{recording.name}: a gap of {apart[r]:.3g} s after sample {r}; nothing is compared there" for r in samples]


def _masked(recording: Recording) -> tuple[Recording, list[str]]:
    """With samples of NaN or infinite values masked as a whole, channel by channel."""
    channels, notes = {}, []
    for name, values in recording.channels.items():
        flat = values.reshape(len(values), -1)
        bad = ~np.isfinite(flat).all(-1)
        if "rotation" in name:
            bad |= np.abs(np.linalg.norm(np.nan_to_num(flat), axis=-1) - 1) > 0.01
        kept = values.copy()
        kept[bad] = np.nan
        channels[name] = kept
        whole = np.isnan(flat).all()
        if bad.any() and not whole:
            samples = ", ".join(map(str, np.flatnonzero(bad)[:5])) + (" …" if bad.sum() > 5 else "")
            notes.append(f"{recording.name}: {name!r} masked in {bad.sum()} sample(s) ({samples}): not usable numbers")
    return replace(recording, channels=channels), notes
