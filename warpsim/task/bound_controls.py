"""Controls bound to a simulator: where they act, their bounds, first values and scales, and the signals they give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from warpsim.core.errors import InputError, TaskError, unknown_name
from warpsim.objective.success import control_range, control_targets
from warpsim.sim.simulator import Simulator
from warpsim.sim.trajectory import Observed
from warpsim.task.controls import Control, Feedback, Knots, OpenLoop, Periodic, inverse_of_rates


@dataclass(frozen=True)
class BoundControl:
    """A control of a given simulator and number of steps; (coefficients, n) arrays, SI.

    Attributes:
        control: What was asked for.
        channel: What it drives.
        places: (n,) indices in the channel.
        targets: (n,) names of what is driven.
        start: First values.
        lower: Bounds of the values.
        upper: Likewise.
        scale: Typical changes.
        basis: (steps, coefficients); None: the identity, or no open loop.
        limits: (2, n) bounds of the signal.
    """

    control: Control
    channel: str
    places: tuple[int, ...]
    targets: tuple[str, ...]
    start: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    scale: np.ndarray
    basis: np.ndarray | None
    limits: np.ndarray

    @property
    def size(self) -> int:
        """Numbers it is made of."""
        return self.start.size

    @property
    def names(self) -> list[str]:
        """One name for each number."""
        numbers = range(len(self.start))
        return [f"{self.control.name}[{k}] of {target}" for k in numbers for target in self.targets]

    def steepest(self, gradient: torch.Tensor, stay: torch.Tensor) -> torch.Tensor:
        """Where a gradient by the values, (size,) flat, leads in the control's own metric, if some of them stay."""
        if not isinstance(self.control, Knots) or self.control.metric == "values":
            return gradient
        held = (self.lower == self.upper) | stay.cpu().numpy().reshape(self.lower.shape)
        inverse = torch.as_tensor(np.stack([inverse_of_rates(held[:, j]) for j in range(held.shape[1])]))
        return torch.einsum("jab,bj->aj", inverse, gradient.reshape(held.shape)).ravel()

    def signal(self, values: torch.Tensor) -> torch.Tensor:
        """(steps, W, n) of open-loop values (W, coefficients, n), cut off at the limits where the basis passes them."""
        assert isinstance(self.control, OpenLoop)
        if self.basis is None:
            return values.transpose(0, 1)
        signal = torch.einsum("tr,wrn->twn", torch.as_tensor(self.basis, dtype=values.dtype), values)
        if not self.control.clipped:
            return signal
        low, high = torch.as_tensor(self.limits, dtype=values.dtype)
        return torch.minimum(torch.maximum(signal, low), high)


def bind(control: Control, sim: Simulator, times: np.ndarray, duration: float) -> BoundControl:
    """Binds a control.

    Args:
        control: What was asked for.
        sim: Its `control_names` must have the channel.
        times: (steps,) s, at which controls act.
        duration: s.

    Raises:
        TaskError: Names the control and what does not fit.
    """
    channel = control.channel or sim.control_names[0]
    if channel not in sim.control_names:
        raise TaskError(f"{control.name}: the simulator's controls are {', '.join(sim.control_names)}, not {channel}")
    known = control_targets(sim, channel)
    for name in control.targets:
        if name not in known:
            raise TaskError(f"{control.name}: {unknown_name(f'target of channel {channel}', name, known)}")
    places = tuple(known.index(name) for name in control.targets) if control.targets else tuple(range(len(known)))
    coefficients = control.coefficients(len(times))
    low, high = _limits(control, sim, channel, places, coefficients)
    if isinstance(control, Feedback):
        own = np.zeros((coefficients, len(places)))
        lower, upper = np.tile(low, (coefficients, 1)), np.tile(high, (coefficients, 1))
        basis = None
    else:
        assert isinstance(control, OpenLoop)
        own, lower, upper = _open_loop_values(control, coefficients, low, high, resting(sim, channel)[list(places)])
        lower, upper = _each_value(control, lower, upper)
        basis = control.basis(times, duration)
    start = _first(control, coefficients, own)
    if not ((lower <= start) & (start <= upper)).all():
        raise TaskError(f"{control.name}: values lie outside of the bounds; start within them")
    return BoundControl(
        control,
        channel,
        places,
        tuple(known[place] for place in places),
        start,
        lower,
        upper,
        _scale(control, lower, upper),
        basis,
        np.stack([low, high]),
    )


def _limits(
    control: Control, sim: Simulator, channel: str, places: Sequence[int], coefficients: int
) -> tuple[np.ndarray, np.ndarray]:
    """(n,) least and largest, as authored or the scene's; gains are not negative unless that is authored."""
    if isinstance(control, Feedback):
        low, high = np.zeros(len(places)), np.full(len(places), np.inf)
    else:
        low, high = (side[list(places)] for side in control_range(sim, channel))
    sides = []
    for word, given, own in (("lower", control.lower, low), ("upper", control.upper, high)):
        if given is None:
            sides.append(own)
            continue
        numbers = np.asarray(given, dtype=float).ravel()
        each = coefficients * len(places) if isinstance(control, OpenLoop) else 1
        if numbers.size not in (1, len(places), each) or np.isnan(numbers).any():
            raise TaskError(f"{control.name}: {word} has {numbers.size} numbers; give 1, {len(places)} or {each}")
        if numbers.size > len(places):  # of each value, which the signal between them may pass
            sides.append(own)
            continue
        sides.append(np.broadcast_to(numbers, (len(places),)).copy())
    if not (sides[0] < sides[1]).all():
        raise TaskError(f"{control.name}: lower {sides[0].tolist()} must be below upper {sides[1].tolist()}")
    return sides[0], sides[1]


def _each_value(control: Control, lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(coefficients, n) bounds; where one for each value was authored, these, which may hold a value where it is."""
    sides = [
        np.asarray(given, dtype=float).reshape(own.shape) if given is not None and np.size(given) == own.size else own
        for given, own in ((control.lower, lower), (control.upper, upper))
    ]
    if not (sides[0] <= sides[1]).all():
        raise TaskError(f"{control.name}: a value's lower bound is above its upper one; exchange them")
    return sides[0], sides[1]


def resting(sim: Simulator, channel: str) -> np.ndarray:
    """What a channel is where nobody drives it."""
    if channel in ("drive_target", "drive_velocity"):
        field = "target" if channel == "drive_target" else "target_velocity"
        drives = {drive.name: getattr(drive, field) for drive in sim.scene.drives}
        return np.array([drives[name] for name in sim.drive_names])
    return np.zeros(len(control_targets(sim, channel)))


def _open_loop_values(
    control: OpenLoop, coefficients: int, low: np.ndarray, high: np.ndarray, rest: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(coefficients, n) resting values, least and largest; amplitudes may be half the range either way."""
    inside = (low <= rest) & (rest <= high)
    with np.errstate(invalid="ignore"):  # a range open on both sides has no middle
        middle = np.where(np.isfinite(low + high), (low + high) / 2, np.where(np.isfinite(low), low, high))
    own = np.where(inside, rest, middle)
    is_value = control.offsets(coefficients)[:, None] == 1.0
    half = (high - low) / 2
    return (
        np.where(is_value, own, 0.0),
        np.where(is_value, low, -half),
        np.where(is_value, high, half),
    )


def _first(control: Control, coefficients: int, own: np.ndarray) -> np.ndarray:
    if control.values is None:
        return own
    given = np.asarray(control.values, dtype=float).ravel()
    width = own.shape[1]
    if not np.isfinite(given).all():
        raise TaskError(f"{control.name}: values must be finite")
    if given.size == own.size:
        return given.reshape(own.shape)
    if given.size not in (1, width):
        raise TaskError(
            f"{control.name}: values has {given.size} numbers; give 1, {width} (one for each target) or {own.size} "
            f"({coefficients} coefficients of {width})"
        )
    if isinstance(control, Periodic):
        return np.concatenate([np.broadcast_to(given, (1, width)), own[1:]])
    return np.broadcast_to(given, own.shape).copy()


def _scale(control: Control, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    if control.scale is not None:
        if not control.scale > 0:
            raise TaskError(f"{control.name}: scale {control.scale} must be above 0")
        return np.full(lower.shape, float(control.scale))
    room = upper - lower
    return np.where(np.isfinite(room) & (room > 0.0), room / 2, 1.0)


class FeedbackPolicy:
    """A feedback with gains, as a policy in the loop; also gives, from states, the controls it gave."""

    def __init__(self, bound: BoundControl, sim: Simulator) -> None:
        control = bound.control
        assert isinstance(control, Feedback)
        names = control.joints or bound.targets
        if len(names) != len(bound.targets):
            raise TaskError(f"{control.name}: {len(names)} joints are measured for {len(bound.targets)} targets")
        self._bound, self._sim = bound, sim
        try:
            handles = [sim.joint(name) for name in names]
        except InputError as error:
            raise TaskError(f"{control.name}: {error}") from error
        for handle in handles:
            if handle.kind not in ("hinge", "slide"):
                raise TaskError(f"{control.name}: {handle.name} is a {handle.kind} joint; only hinges and slides")
        self._q, self._qd = [h.q.start for h in handles], [h.dofs.start for h in handles]
        self._reference = None if control.reference is None else np.asarray(control.reference, dtype=float).ravel()
        if self._reference is not None and self._reference.size != len(names):
            raise TaskError(f"{control.name}: reference has {self._reference.size} numbers for {len(names)} joints")

    def signal(self, values: torch.Tensor, states: Observed) -> torch.Tensor:
        """(…, W, n) controls at states; values (W, 2, n)."""
        reference = torch.as_tensor(
            self._sim.model.initial_q[self._q] if self._reference is None else self._reference, dtype=values.dtype
        )
        kp, kd = values[:, 0], values[:, 1]
        return kp * (reference - states["q"][..., self._q]) - kd * states["qd"][..., self._qd]
