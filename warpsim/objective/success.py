"""Success, apart from the loss: conditions that are met or not, and say so in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch

from warpsim.core.errors import InputError
from warpsim.objective.episode import Episode
from warpsim.objective.places import as_place
from warpsim.objective.reach import Pose
from warpsim.objective.term import Term
from warpsim.scene.units import drive_limits
from warpsim.sim.simulator import Simulator

_ROUNDING = 1e-9
"""Share of a range by which rounding may exceed it."""


@dataclass(frozen=True)
class Verdict:
    """What became of one condition.

    Attributes:
        met: Whether it holds.
        text: Why, with the figure, the time and the bound.
        value: The figure, SI.
        bound: What it is compared with, SI.
    """

    met: bool
    text: str
    value: float
    bound: float


class Condition(Protocol):
    """What success is made of."""

    @property
    def outputs(self) -> tuple[str, ...]:
        """Outputs of the rollout that it reads."""

    def check(self, sim: Simulator) -> None:
        """Raises if the simulator lacks something the condition names."""

    def judge(self, episode: Episode, world: int = 0) -> list[Verdict]:
        """One verdict or more."""


def succeeded(verdicts: Sequence[Verdict]) -> bool:
    """All met; False where there is no condition, for nobody said what success is."""
    return bool(verdicts) and all(verdict.met for verdict in verdicts)


@dataclass(frozen=True)
class Within:
    """A term's physical error is small enough.

    Attributes:
        term: Whose `measure` is judged.
        tolerance: In the measure's unit (SI).
        held_for: s: it must be so for this long up to the term's time; 0: at that time. Running terms: at all times
            of their window, whatever this is.
        angle_tolerance: rad, for `Pose`: the turn to the target likewise.
    """

    term: Term
    tolerance: float | None
    held_for: float = 0.0
    angle_tolerance: float | None = None

    def __post_init__(self) -> None:
        for bound in (self.tolerance, self.angle_tolerance):
            if bound is not None and not bound >= 0.0:
                raise InputError(f"{self.term.title}: a tolerance of {bound}; give 0 or more")
        if not self.held_for >= 0.0:
            raise InputError(f"{self.term.title}: held for {self.held_for} s; give 0 or more")

    @property
    def outputs(self) -> tuple[str, ...]:
        """The term's."""
        return self.term.outputs

    def check(self, sim: Simulator) -> None:
        """As the term does."""
        self.term.check(sim)

    def judge(self, episode: Episode, world: int = 0) -> list[Verdict]:
        """A verdict on the size, and one on the angle where that is bounded."""
        frames = self._frames(episode)
        found = []
        if self.tolerance is not None:
            size = self.term.measure(episode, frames)[:, world]
            found.append(self._verdict(episode, frames, size, self.tolerance, self.term.unit, self.term.quantity))
        if self.angle_tolerance is not None:
            assert isinstance(self.term, Pose)
            turn = self.term.angle(episode, frames)[:, world]
            found.append(self._verdict(episode, frames, turn, self.angle_tolerance, "rad", "turn"))
        return found

    def _frames(self, episode: Episode) -> slice:
        frames = self.term.when.frames(episode.times)
        if self.term.when.kind != "running" and self.held_for > 0:
            step = float(episode.times[1] - episode.times[0])
            count = math.ceil(self.held_for / step - _ROUNDING)
            if count > frames.start:
                raise InputError(
                    f"{self.term.title}: held for {self.held_for:g} s, but its time is "
                    f"{episode.times[frames.start]:g} s"
                )
            return slice(frames.start - count, frames.stop)
        return frames

    def _verdict(
        self, episode: Episode, frames: slice, sizes: torch.Tensor, bound: float, unit: str, quantity: str
    ) -> Verdict:
        worst = int(torch.argmax(torch.nan_to_num(sizes, nan=float("inf"))))
        value = float(sizes[worst])
        times = episode.times[frames] if len(sizes) > 1 else episode.times[frames][-1:]
        when = f"at {times[0]:.4g} s"
        if len(sizes) > 1:
            when = f"at worst from {times[0]:.4g} s to {times[-1]:.4g} s"
        met = value <= bound
        text = f"{self.term.label}: {quantity} {_amount(value, unit)} {when} (needs ≤ {_amount(bound, unit)})"
        return Verdict(met, f"{text}: {'yes' if met else 'no'}", value, bound)


@dataclass(frozen=True)
class JointLimitsKept:
    """No hinge or slide passes its limits, at any time, by more than a tolerance (limits are soft).

    Attributes:
        angle_tolerance: rad, for hinges.
        tolerance: m, for slides.
    """

    angle_tolerance: float = math.radians(1.0)
    tolerance: float = 0.0
    name: str = "joint limits"
    outputs: tuple[str, ...] = ()

    def check(self, sim: Simulator) -> None:
        """Nothing is named."""

    def judge(self, episode: Episode, world: int = 0) -> list[Verdict]:
        """One verdict: on the joint that passes furthest beyond its tolerance."""
        worst = (-math.inf, 0.0, 0.0, "", "")
        for joint in episode.sim.scene.joints:
            if joint.limit is None or joint.kind not in ("hinge", "slide"):
                continue
            q = episode.trajectory.joint_position(joint.name)[:, world].detach()
            beyond = float(torch.maximum(joint.limit[0] - q, q - joint.limit[1]).max())
            bound, unit = (self.angle_tolerance, "rad") if joint.kind == "hinge" else (self.tolerance, "m")
            worst = max(worst, (beyond - bound, beyond, bound, joint.name, unit))
        excess, beyond, bound, name, unit = worst
        if not name:
            return [Verdict(True, f"{self.name}: no joint has any: yes", 0.0, 0.0)]
        if beyond <= 0.0:
            text = f"{self.name}: kept, {name} closest with {_amount(-beyond, unit)} to spare: yes"
            return [Verdict(True, text, beyond, bound)]
        met = excess <= 0.0
        text = f"{self.name}: {name} passes its limit by {_amount(beyond, unit)} (needs ≤ {_amount(bound, unit)})"
        return [Verdict(met, f"{text}: {'yes' if met else 'no'}", beyond, bound)]


@dataclass(frozen=True)
class ControlLimitsKept:
    """No control passes the range of its actuator, or of the joint whose drive target it is."""

    name: str = "control limits"
    outputs: tuple[str, ...] = ()

    def check(self, sim: Simulator) -> None:
        """Nothing is named."""

    def judge(self, episode: Episode, world: int = 0) -> list[Verdict]:
        """One verdict."""
        worst, limited = (-math.inf, ""), False
        for channel, given in episode.inputs.items():
            lower, upper = control_range(episode.sim, channel)
            if not (np.isfinite(lower) | np.isfinite(upper)).any():
                continue
            limited = True
            used = given[:, world].detach()
            beyond = torch.maximum(episode.tensor(lower) - used, used - episode.tensor(upper)).amax(0)
            width = np.where(np.isfinite(upper - lower), upper - lower, 1.0)
            share = (beyond.cpu().numpy() / width).tolist()
            place = int(np.argmax(share))
            worst = max(worst, (share[place], control_targets(episode.sim, channel)[place]))
        if not limited:
            return [Verdict(True, f"{self.name}: no control has any: yes", 0.0, 0.0)]
        met = worst[0] <= _ROUNDING
        text = f"{self.name}: {'kept' if met else f'{worst[1]} exceeds its range by {100 * worst[0]:.3g} %'}"
        return [Verdict(met, f"{text}: {'yes' if met else 'no'}", worst[0], 0.0)]


@dataclass(frozen=True)
class StaysAbove:
    """A place on a body is never lower than a height: nothing has fallen.

    Attributes:
        subject: A body's name, or a place on one.
        height: m, along world z.
    """

    subject: Any
    height: float
    name: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "subject", as_place(self.subject))

    @property
    def outputs(self) -> tuple[str, ...]:
        """The place's."""
        return self.subject.outputs

    def check(self, sim: Simulator) -> None:
        """The body must exist."""
        self.subject.check(sim)

    def judge(self, episode: Episode, world: int = 0) -> list[Verdict]:
        """One verdict."""
        heights = self.subject.position(episode, slice(0, len(episode.times)))[:, world, 2].detach()
        frame = int(torch.argmin(torch.nan_to_num(heights, nan=-float("inf"))))
        value = float(heights[frame])
        met = value >= self.height
        name = self.name or f"height of {self.subject.body}"
        found = f"{name}: lowest {_amount(value, 'm')} at {episode.times[frame]:.4g} s"
        text = f"{found} (needs ≥ {_amount(self.height, 'm')})"
        return [Verdict(met, f"{text}: {'yes' if met else 'no'}", value, self.height)]


def control_targets(sim: Simulator, channel: str) -> tuple[str, ...]:
    """What each number of a channel drives: actuators, or joints; on a joint that closes a loop, drives."""
    if channel == "actuator":
        return sim.actuator_names
    if channel in ("drive_target", "drive_velocity"):
        joints = {drive.name: drive.joint if drive.axis is None else drive.name for drive in sim.scene.drives}
        return tuple(joints[name] for name in sim.drive_names)
    return sim.dof_names


def control_range(sim: Simulator, channel: str) -> tuple[np.ndarray, np.ndarray]:
    """(lower, upper) of each number of a channel, SI, infinite where open.

    Of actuators their control range; of drive targets the joint's limit; of others none.
    """
    found: list[tuple[float, float] | None] = [None] * len(control_targets(sim, channel))
    if channel == "actuator":
        found = [actuator.control_range for actuator in sim.scene.actuators]
    elif channel == "drive_target":
        found = [drive_limits(sim.scene, drive) for drive in sim.scene.drives]
    pairs = [limits or (-np.inf, np.inf) for limits in found]
    bounds = np.array(pairs, dtype=float).reshape(-1, 2)
    return bounds[:, 0], bounds[:, 1]


_PREFIXES = {"m": ((1.0, "m", 1.0), (1e-3, "mm", 1e3), (0.0, "µm", 1e6)), "s": ((0.0, "s", 1.0),)}


def _amount(value: float, unit: str) -> str:
    """A figure with a unit that a person reads easily: 3.2 mm, 1.5°."""
    if unit == "rad":
        return f"{math.degrees(value):.3g}°"
    if unit == "m" and 0.0 < abs(value) < 1e-6:
        return "less than 1 µm"
    for least, shown, factor in _PREFIXES.get(unit, ()):
        if abs(value) >= least:
            return f"{value * factor:.4g} {shown}"
    return f"{value:.4g} {unit}".rstrip()
