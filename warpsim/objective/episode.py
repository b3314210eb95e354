"""`Episode`: one rollout as the terms of an objective see it; and `When`, the frames of it at which a term counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from warpsim.core.errors import InputError
from warpsim.sim.attributes.attribute import Attribute
from warpsim.sim.simulator import Simulator
from warpsim.sim.trajectory import Observed, Trajectory

_ROUNDING = 1e-9
"""Share of a time step by which a time may miss its frame."""


@dataclass(frozen=True)
class Episode:
    """A rollout of N steps in W worlds, with the controls that led to it; SI.

    Attributes:
        sim: Whose rollout it is: names, sizes, limits.
        trajectory: N + 1 frames, with the outputs that the terms ask for.
        controls: By name of the control (its path in a USD task): (N, W, n) what it gave at each step.
        inputs: By channel ("actuator", "drive_target", …): (N, W, size) the sum of the controls, as applied.
        times: (N + 1,) s: nominal times of the frames. Where the duration varies they do not: a term at 1 s stays at
            the same frame.
        duration: (W,) s, in torch's graph where it varies.
        parameters: What the rollout was given: values by name, handle or path.
    """

    sim: Simulator
    trajectory: Observed
    controls: Mapping[str, torch.Tensor]
    inputs: Mapping[str, torch.Tensor]
    times: np.ndarray
    duration: torch.Tensor
    parameters: Mapping[str | Attribute, Any] = field(default_factory=dict)

    def parameter(self, name: str) -> torch.Tensor:
        """(W, n, …) SI: a parameter array of this rollout, in torch's graph where it varies."""
        return self.sim.parameter(name, self.parameters)

    def tensor(self, values: object) -> torch.Tensor:
        """Numbers as a tensor of the simulator's type, on its device."""
        return torch.as_tensor(np.asarray(values, dtype=float), dtype=self.sim.torch_dtype, device=self.sim.device)


def episode_of(
    sim: Simulator,
    trajectory: Trajectory,
    inputs: Mapping[str, torch.Tensor] | None = None,
    parameters: Mapping[str | Attribute, Any] | None = None,
) -> Episode:
    """An episode from a plain rollout, for objectives without a task.

    Args:
        sim: What was rolled out.
        trajectory: All frames (`keep_every=1`).
        inputs: The controls by channel, (N, W, size).
        parameters: What the rollout was given.
    """
    given = dict(inputs or {})
    duration = torch.full((sim.worlds,), float(trajectory.times[-1]), dtype=sim.torch_dtype, device=sim.device)
    return Episode(sim, trajectory, given, given, trajectory.times, duration, dict(parameters or {}))


@dataclass(frozen=True)
class When:
    """At which frames a term counts.

    Attributes:
        kind: "end", "time" or "running" (the mean over all frames of the window).
        time: s, for "time".
        window: (first, last) s, for "running"; None: the whole rollout.
    """

    kind: str = "end"
    time: float | None = None
    window: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if self.kind not in ("end", "time", "running"):
            raise InputError(f"when={self.kind!r}; use 'end', 'time' or 'running'")
        if self.kind == "time" and self.time is None:
            raise InputError("when='time' needs a time")

    def frames(self, times: np.ndarray) -> slice:
        """The frames among those at `times`.

        Raises:
            InputError: A time outside of the rollout.
        """
        last = len(times) - 1
        if self.kind == "end":
            return slice(last, last + 1)
        first_time, last_time = self.span(times)
        return slice(_frame(times, first_time), _frame(times, last_time) + 1)

    def span(self, times: np.ndarray) -> tuple[float, float]:
        """(first, last) s."""
        if self.kind == "end":
            return float(times[-1]), float(times[-1])
        if self.kind == "time":
            assert self.time is not None
            return self.time, self.time
        if self.window is None:
            return float(times[0]), float(times[-1])
        if self.window[1] < self.window[0]:
            raise InputError(f"the window {self.window} s ends before it begins")
        return self.window


END = When()
"""At the last frame."""


def at(time: float) -> When:
    """At the frame nearest to a time, s."""
    return When("time", time=time)


def running(first: float | None = None, last: float | None = None) -> When:
    """The mean over a window, s; by default over the whole rollout."""
    if first is None and last is None:
        return When("running")
    return When("running", window=(0.0 if first is None else first, np.inf if last is None else last))


def _frame(times: np.ndarray, time: float) -> int:
    """The frame nearest to a time."""
    if np.isposinf(time):
        return len(times) - 1
    step = times[1] - times[0] if len(times) > 1 else 1.0
    if not times[0] - (0.5 + _ROUNDING) * step <= time <= times[-1] + (0.5 + _ROUNDING) * step:
        raise InputError(f"{time:g} s is outside of the rollout, which lasts {times[-1]:g} s")
    return int(np.clip(round((time - times[0]) / step), 0, len(times) - 1))
