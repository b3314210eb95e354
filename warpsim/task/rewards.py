"""What a policy is rewarded for, control by control, and what ends an episode; bound to a simulator before use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch

from warpsim.core.errors import InputError
from warpsim.objective import Episode, OnBody, Term
from warpsim.rigid.model.joint_names import JointHandle
from warpsim.sim.simulator import Simulator
from warpsim.sim.trajectory import Observed

Bound = Callable[[Observed, torch.Tensor], torch.Tensor]
"""(states reached (n, W, …), controls that led there (n, W, m)) → (n, W)."""


class Reward(Protocol):
    """A part of the reward of a control."""

    def outputs(self, sim: Simulator) -> tuple[str, ...]:
        """Outputs of the rollout that it reads."""

    def bind(self, sim: Simulator, period: float) -> Bound:
        """The reward as a function; raises if the simulator lacks something it names."""


@dataclass(frozen=True)
class Progress:
    """weight · velocity of a place on a body along a direction, m/s.

    Attributes:
        subject: The place.
        direction: World axes; its length does not count.
        at_most: m/s; more is not rewarded. None: any speed is.
        weight: Factor.
    """

    subject: OnBody
    direction: tuple[float, float, float] = (1.0, 0.0, 0.0)
    at_most: float | None = None
    weight: float = 1.0

    def outputs(self, sim: Simulator) -> tuple[str, ...]:
        """None for the origin of a free body, whose velocity is state."""
        return () if _free_joint(sim, self.subject) else ("body_velocity", *self.subject.outputs)

    def bind(self, sim: Simulator, period: float) -> Bound:
        """Velocity along the direction, bounded."""
        length = float(np.linalg.norm(self.direction))
        if not 0.0 < length < np.inf:
            raise InputError(f"direction {self.direction} has no direction; give one that is finite and not zero")
        self.subject.check(sim)
        free, along = _free_joint(sim, self.subject), [x / length for x in self.direction]

        def reward(states: Observed, controls: torch.Tensor) -> torch.Tensor:
            velocity = _velocity(sim, self.subject, free, states, controls, period)
            speed = (velocity * velocity.new_tensor(along)).sum(-1)
            return self.weight * (speed if self.at_most is None else speed.clamp(max=self.at_most))

        return reward


@dataclass(frozen=True)
class Alive:
    """weight, as long as the episode goes on."""

    weight: float = 1.0

    def outputs(self, sim: Simulator) -> tuple[str, ...]:
        """None."""
        return ()

    def bind(self, sim: Simulator, period: float) -> Bound:
        """A constant."""
        return lambda states, controls: torch.full_like(controls[..., 0], self.weight)


@dataclass(frozen=True)
class Upright:
    """weight · (cos of the angle between a body's own z axis, turned as its place says, and the vertical, less 1)."""

    subject: OnBody
    weight: float = 1.0

    def outputs(self, sim: Simulator) -> tuple[str, ...]:
        """None for a free body, whose rotation is state."""
        return () if _free_joint(sim, self.subject) else ("body_rotation",)

    def bind(self, sim: Simulator, period: float) -> Bound:
        """0 where it is upright, −2·weight upside down."""
        self.subject.check(sim)
        free = _free_joint(sim, self.subject)

        def reward(states: Observed, controls: torch.Tensor) -> torch.Tensor:
            turn = (
                states.body_rotation(self.subject.body)
                if free is None
                else states.q[..., free.q.start + 3 : free.q.stop]
            )
            return -2.0 * self.weight * turn[..., 1:3].square().sum(-1)

        return reward


@dataclass(frozen=True)
class ActionCost:
    """−weight · Σ u², with u from −1 to 1 over the range of each actuator, where it has one."""

    weight: float = 1.0

    def outputs(self, sim: Simulator) -> tuple[str, ...]:
        """None."""
        return ()

    def bind(self, sim: Simulator, period: float) -> Bound:
        """The squares of the controls in units of their ranges."""
        center, reach = np.zeros(sim.control_size), np.ones(sim.control_size)
        if "actuator" in sim.control_names:
            part = sim.control_slice("actuator")
            low, high = sim.model.actuator.control_range.numpy()[0].T
            bounded = np.isfinite(low) & np.isfinite(high)
            center[part] = np.where(bounded, 0.5 * (np.where(bounded, low, 0) + np.where(bounded, high, 0)), 0.0)
            reach[part] = np.where(bounded, 0.5 * (np.where(bounded, high, 1) - np.where(bounded, low, -1)), 1.0)

        def reward(states: Observed, controls: torch.Tensor) -> torch.Tensor:
            used = (controls - controls.new_tensor(center)) / controls.new_tensor(reach)
            return -self.weight * used.square().sum(-1)

        return reward


@dataclass(frozen=True)
class JointStops:
    """−weight · Σ ((|s| − 1 + margin)₊/margin)², with s from −1 to 1 over the range of each hinge and slide."""

    margin: float = 0.15
    weight: float = 1.0

    def outputs(self, sim: Simulator) -> tuple[str, ...]:
        """None."""
        return ()

    def bind(self, sim: Simulator, period: float) -> Bound:
        """Of all joints with limits."""
        if not 0.0 < self.margin <= 1.0:
            raise InputError(f"margin is {self.margin:g}; it is a share of the half range, above 0 and at most 1")
        ranges = dict(zip(sim.joint_names, sim.model.limit.range.numpy()[0], strict=True))
        limited = [
            (sim.joint(name).q.start, low, high)
            for name, (low, high) in ranges.items()
            if sim.joint(name).kind in ("hinge", "slide") and np.isfinite([low, high]).all()
        ]
        if not limited:
            raise InputError("no hinge or slide of the scene has limits, so none can stand at its stop")
        places = [place for place, _, _ in limited]
        low, high = (np.array([row[k] for row in limited]) for k in (1, 2))

        def reward(states: Observed, controls: torch.Tensor) -> torch.Tensor:
            q = states.q[..., places]
            share = (2 * q - q.new_tensor(low + high)) / q.new_tensor(high - low)
            beyond = torch.relu(share.abs() - (1 - self.margin)) / self.margin
            return -self.weight * beyond.square().sum(-1)

        return reward


@dataclass(frozen=True)
class TermCost:
    """−weight/2 · Σ error² of a term of an objective, at every control."""

    term: Term

    def outputs(self, sim: Simulator) -> tuple[str, ...]:
        """The term's."""
        return self.term.outputs

    def bind(self, sim: Simulator, period: float) -> Bound:
        """The term's loss, row by row."""
        self.term.check(sim)

        def reward(states: Observed, controls: torch.Tensor) -> torch.Tensor:
            episode = _episode(sim, states, controls, period)
            errors = self.term.errors(episode, slice(0, len(controls)))
            return -0.5 * self.term.weight * errors.square().sum(-1)

        return reward


@dataclass(frozen=True)
class Fall:
    """Ends an episode where a place on a body leaves a range of heights.

    The end itself has no slope that a gradient could follow; the cost of being near it has.

    Attributes:
        subject: The place.
        minimum: m; None: none.
        maximum: m; None: none.
        margin: m: within this of the ends of the range …
        weight: … a control costs weight · (share of the margin gone)².
        ahead: s: for that cost, not the height counts but where it will be after this time at its present velocity: a
            body that has left the ground to fly too high can do nothing about it any more.
    """

    subject: OnBody
    minimum: float | None = None
    maximum: float | None = None
    margin: float = 0.0
    weight: float = 0.0
    ahead: float = 0.0

    def outputs(self, sim: Simulator) -> tuple[str, ...]:
        """None for the origin of a free body, whose height is state."""
        if _free_joint(sim, self.subject):
            return ()
        return ("body_velocity", *self.subject.outputs) if self.weight and self.ahead else self.subject.outputs

    def bind(self, sim: Simulator, period: float) -> Callable[[Observed], torch.Tensor]:
        """(n, W): whether it has fallen."""
        low, high = self._range(sim)

        def fallen(states: Observed) -> torch.Tensor:
            height = self._height(sim, states, period)
            return (height < low) | (height > high)

        return fallen

    def bind_margin(self, sim: Simulator, period: float) -> Bound:
        """The cost of being near the ends of the range."""
        low, high = self._range(sim)
        if not self.margin > 0:
            raise InputError(f"margin is {self.margin:g} m; it must be above 0 where the weight is not 0")
        if self.ahead < 0:
            raise InputError(f"ahead is {self.ahead:g} s; it must not be negative")
        free = _free_joint(sim, self.subject)

        def reward(states: Observed, controls: torch.Tensor) -> torch.Tensor:
            height = self._height(sim, states, period)
            if self.ahead:
                height = height + self.ahead * _velocity(sim, self.subject, free, states, controls, period)[..., 2]
            gone = torch.relu(low + self.margin - height) + torch.relu(height - high + self.margin)
            return -self.weight * (gone / self.margin).square()

        return reward

    def _range(self, sim: Simulator) -> tuple[float, float]:
        self.subject.check(sim)
        if self.minimum is None and self.maximum is None:
            raise InputError("give a minimum or a maximum of the height, or both")
        return -np.inf if self.minimum is None else self.minimum, np.inf if self.maximum is None else self.maximum

    def _height(self, sim: Simulator, states: Observed, period: float) -> torch.Tensor:
        free = _free_joint(sim, self.subject)
        if free is not None:
            return states.q[..., free.q.start + 2]
        none = states.q.new_zeros(*states.q.shape[:2], 0)
        return self.subject.position(_episode(sim, states, none, period), slice(0, len(none)))[..., 2]


def _free_joint(sim: Simulator, place: OnBody) -> JointHandle | None:
    """The free joint of a body whose origin the place is; None: the place is another."""
    if any(place.offset):
        return None
    joints = [sim.joint(name) for name in sim.joint_names]
    return next((joint for joint in joints if joint.kind == "free" and joint.body == place.body), None)


def _velocity(
    sim: Simulator,
    place: OnBody,
    free: JointHandle | None,
    states: Observed,
    controls: torch.Tensor,
    period: float,
) -> torch.Tensor:
    """(n, W, 3) of a place in world axes, m/s; `free` is what `_free_joint` says of it."""
    if free is not None:
        return states.qd[..., free.dofs.start : free.dofs.start + 3]
    moving = states.body_velocity(place.body)
    arm = place.arm(_episode(sim, states, controls, period), slice(0, len(controls)))
    return moving[..., 3:] + torch.linalg.cross(moving[..., :3], arm.expand_as(moving[..., :3]))


def _episode(sim: Simulator, states: Observed, controls: torch.Tensor, period: float) -> Episode:
    """States reached and controls as terms of an objective see them: row k is what control k led to."""
    given = {name: controls[..., sim.control_slice(name)] for name in sim.control_names if controls.shape[-1]}
    times = period * np.arange(1, len(controls) + 1)
    duration = torch.full((sim.worlds,), float(times[-1]), dtype=sim.torch_dtype, device=sim.device)
    return Episode(sim, states, given, given, times, duration)
