"""A task that chooses the control of each step, as the `ControlProblem` that iLQR improves frame by frame."""

from __future__ import annotations

import numpy as np
import torch

from warpsim.core.errors import TaskError
from warpsim.objective import Cost, Duration, Effort, Episode, Smoothness, Term
from warpsim.optimizers.control_problem import ControlProblem
from warpsim.sim.trajectory import Observed
from warpsim.task.bound_controls import BoundControl, resting
from warpsim.task.controls import Steps
from warpsim.task.problem import TaskProblem

_SAME = 1e-9


class TrajectoryTask:
    """A task in the form iLQR needs, and the way back.

    Attributes:
        problem: The same objective over all controls of the simulator, step by step; what the task does not drive is
            held where it rests.
    """

    def __init__(self, task: TaskProblem) -> None:
        """Splits the objective into what each frame costs.

        Args:
            task: Whose only unknown is one `WarpsimSteps`.

        Raises:
            TaskError: The task varies something else, or has a term that is no sum over frames.
        """
        self._task = task
        self._bound = _only_control(task)
        self._terms = [term for term in task.task.terms if term.weight]
        for term in self._terms:
            if isinstance(term, Smoothness | Duration | Cost):
                raise TaskError(f"{term.title}: ilqr needs costs of single frames, which this is not; use lbfgs")
        start, low, high = (self._all_controls(side) for side in (self._bound.start, *self._limits()))
        self.problem = ControlProblem(
            task.sim,
            task.steps,
            running=self._running,
            terminal=self._terminal,
            lower=low,
            upper=high,
            start=start,
            outputs=tuple(dict.fromkeys(name for term in self._terms for name in term.outputs)),
        )
        self._check_frames_add_up()

    def task_x(self, x: torch.Tensor) -> torch.Tensor:
        """The task's own x, for an x of `problem`."""
        values = x.reshape(self._task.steps, -1)[:, self._columns()]
        return (values / torch.as_tensor(self._bound.scale)).flatten()

    def _limits(self) -> tuple[np.ndarray, np.ndarray]:
        return self._bound.lower, self._bound.upper

    def _columns(self) -> list[int]:
        """Places of the driven controls among all of the simulator's."""
        first = self._task.sim.control_slice(self._bound.channel).start
        return [first + place for place in self._bound.places]

    def _all_controls(self, values: np.ndarray) -> np.ndarray:
        """(steps, nu) from values (steps, n) of what is driven; the rest rests."""
        sim = self._task.sim
        whole = np.zeros((self._task.steps, sim.control_size))
        for channel in sim.control_names:
            whole[:, sim.control_slice(channel)] = resting(sim, channel)
        whole[:, self._columns()] = values
        return whole

    def _check_frames_add_up(self) -> None:
        """A function of the user's own may look at several frames at once; its loss then differs from the task's."""
        with torch.no_grad():
            split = float(self.problem.loss(self.problem.start))
            whole = float(self._task.loss(self.task_x(self.problem.start)))
        if not abs(split - whole) <= _SAME * abs(whole):
            raise TaskError(
                f"{self._task.task.name}: frame by frame the loss is {split:g}, as a whole {whole:g}; ilqr needs terms "
                "that are sums over frames, so use lbfgs"
            )

    def _running(self, states: Observed, controls: torch.Tensor) -> torch.Tensor:
        """(steps, W, m): residuals of all frames but the last."""
        episode = self._episode(states, controls, slice(0, -1))
        parts = []
        for term in self._terms:
            frames = self._frames(term)
            inside = frames if isinstance(term, Effort) else slice(frames.start, min(frames.stop, self._task.steps))
            if inside.start >= inside.stop:
                continue
            errors = term.errors(episode, inside)
            first = min(inside.start, self._task.steps - 1)
            padded = errors.new_zeros(self._task.steps, *errors.shape[1:])
            padded[first : first + len(errors)] = self._scale(term, len(errors)) * errors
            parts.append(padded)
        return torch.cat([controls.new_zeros(*controls.shape[:2], 0), *parts], -1)

    def _terminal(self, last: Observed) -> torch.Tensor:
        """(W, m): residuals of the last frame."""
        states = Observed(self._task.sim.model, {name: value[None] for name, value in last.items()})
        worlds = last.q.shape[0]
        none = last.q.new_zeros(0, worlds, self._task.sim.control_size)
        episode = self._episode(states, none, slice(-1, None))
        parts = [last.q.new_zeros(worlds, 0)]
        for term in self._terms:
            frames = self._frames(term)
            if frames.stop <= self._task.steps or isinstance(term, Effort):
                continue
            errors = term.errors(episode, slice(0, 1))
            parts.extend(self._scale(term, frames.stop - frames.start) * frame for frame in errors)
        return torch.cat(parts, -1)

    def _scale(self, term: Term, frames: int) -> float:
        """Root of the weight of one frame's squares, for a term that counts at so many frames."""
        whole = self._frames(term)
        return (term.weight / (frames if isinstance(term, Effort) else whole.stop - whole.start)) ** 0.5

    def _frames(self, term: Term) -> slice:
        return term.when.frames(self._task.times)

    def _episode(self, states: Observed, controls: torch.Tensor, frames: slice) -> Episode:
        """Some frames of an episode as terms see it."""
        sim = self.problem.simulator(controls.shape[1])
        inputs = {name: controls[..., sim.control_slice(name)] for name in sim.control_names}
        own = {self._bound.control.name: controls[..., self._columns()]}
        duration = controls.new_full((sim.worlds,), float(self._task.times[-1]))
        return Episode(sim, states, own, inputs, self._task.times[frames], duration)


def _only_control(task: TaskProblem) -> BoundControl:
    name = task.task.name
    if task.variables is not None or task.task.duration_range is not None:
        raise TaskError(f"{name}: ilqr chooses controls alone, not variables or the duration; use lbfgs")
    if len(task.controls) != 1 or not isinstance(task.controls[0].control, Steps):
        raise TaskError(f"{name}: ilqr needs one WarpsimSteps, a control for each step, and no other; use lbfgs")
    return task.controls[0]
