"""`Outcome`: what a task's file gives as it stands: loss, shares of the terms, success, motion, gradients."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch

from warpsim.check.records.run import motion_facts, recorded_outputs
from warpsim.core.driving import Steps
from warpsim.core.errors import SimulationError, TaskError, UnconvergedError, UnconvergedWarning
from warpsim.io.usd.motion import Motion
from warpsim.objective import Episode, Verdict, succeeded
from warpsim.sim.trajectory import Trajectory
from warpsim.task.problem import Choice, TaskProblem

FRAMES_PER_SECOND = 60.0
"""Of the motion that is kept, at most."""


@dataclass(frozen=True)
class Outcome:
    """What came of one simulation of a task.

    Attributes:
        loss: The objective.
        terms: Each term's share of it, by name.
        verdicts: On the conditions of success.
        motion: Up to 60 frames a second.
        duration: s.
        gradients: d loss / d attribute by path, USD units, where they were asked for.
        inputs: Controls by channel, (N, 1, size), as applied.
        recorded: What a run record says of the motion, where it was asked for and the record's rollout is this one.
    """

    loss: float
    terms: dict[str, float]
    verdicts: Sequence[Verdict]
    motion: Motion
    duration: float
    gradients: dict[str, np.ndarray] = field(default_factory=dict)
    inputs: Mapping[str, torch.Tensor] = field(default_factory=dict)
    recorded: Mapping[str, Any] | None = None

    @property
    def solved(self) -> bool | None:
        """Whether all conditions are met; None: the task has none."""
        return succeeded(self.verdicts) if self.verdicts else None


def outcome(problem: TaskProblem, *, recorded: bool = False) -> Steps[Outcome]:
    """Simulates a task's file as it stands, no value overridden: the same file gives the same digits.

    Args:
        problem: The task on its file.
        recorded: Keep what a run record says of the motion, so that it is not simulated again for that.

    Raises:
        TaskError: The loss is not finite; names the task or the term.
    """
    # under feedback, or in another time step than the scene's, a record repeats the inputs in a rollout of its own
    kept = recorded and not problem.in_closed_loop and problem.task.duration_range is None
    outputs = recorded_outputs(problem.sim) if kept else ()
    with torch.no_grad():
        try:
            episode = yield from problem.simulating(problem.authored(), shown=True, outputs=outputs)
        except SimulationError as error:
            raise TaskError(f"{problem.task.name}: it cannot be simulated as authored: {error}") from error
        terms = problem.term_losses(episode)
        for name, loss in terms.items():
            if not math.isfinite(loss):
                raise TaskError(f"{name}: its loss is {loss} with the authored values; start where it is finite")
        total = float(problem.total(episode)[0])
        verdicts = problem.judge(episode)
    assert isinstance(episode.trajectory, Trajectory)
    return Outcome(
        total,
        terms,
        verdicts,
        shown_motion(episode),
        float(episode.duration[0]),
        inputs=episode.inputs,
        recorded=motion_facts(problem.sim, episode.trajectory) if kept else None,
    )


def shown_motion(episode: Episode) -> Motion:
    """The motion of an episode that was simulated to be shown, up to 60 frames a second."""
    assert isinstance(episode.trajectory, Trajectory)
    return _thinned(episode.trajectory.motion())


def attribute_gradients(problem: TaskProblem, x: torch.Tensor) -> Steps[dict[str, np.ndarray]]:
    """d loss / d attribute at x (n,), by path, in USD units; attributes that share a value have their own each.

    None at all, and a warning, where a step did not converge: what was found without them is still a result.
    """
    choice = problem.choice(x[None].detach())
    leaves = {handle: value[0].detach().requires_grad_() for handle, value in choice.attributes.items()}
    if not leaves:
        return {}
    episode = yield from problem.simulating(Choice(leaves, choice.controls, choice.duration))
    try:
        gradients = yield partial(torch.autograd.grad, problem.total(episode)[0], list(leaves.values()))
    except UnconvergedError as error:
        warnings.warn(f"no gradients by attributes: {error}", UnconvergedWarning, stacklevel=2)
        return {}
    return {handle.path: g.detach().cpu().numpy() for handle, g in zip(leaves, gradients, strict=True)}


def _thinned(motion: Motion) -> Motion:
    """Every so many frames, the last one included."""
    frames = len(motion.times)
    most = max(1, int(1.0 / (FRAMES_PER_SECOND * (motion.times[1] - motion.times[0]))))
    every = next(stride for stride in range(min(most, frames - 1), 0, -1) if (frames - 1) % stride == 0)
    if every == 1 and most > 2:  # a number of steps without divisors: the last interval may be shorter
        chosen = np.unique([*range(0, frames, most), frames - 1])
    else:
        chosen = np.arange(0, frames, every)
    return Motion(
        times=motion.times[chosen],
        q=motion.q[chosen],
        qd=motion.qd[chosen],
        positions=motion.positions[chosen],
        rotations=motion.rotations[chosen],
        contacts=None if motion.contacts is None else [motion.contacts[frame] for frame in chosen],
        points={path: points[chosen] for path, points in motion.points.items()},
        matter_states={
            path: {name: values[chosen] for name, values in fields.items()}
            for path, fields in motion.matter_states.items()
        },
    )
