"""Many starts at once, one per world: explore together with Adam, then finish the most promising one by one.

A gradient method finds the bottom of the valley it starts in; rollouts through contact have many valleys.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

from warpsim.core.driving import Steps, drive
from warpsim.core.errors import InputError, SimulationError, UnconvergedError
from warpsim.optimizers.adam import Adam
from warpsim.optimizers.evaluation import project
from warpsim.optimizers.iterate import Method
from warpsim.optimizers.minimize import minimizing
from warpsim.optimizers.on_executor import OnExecutor
from warpsim.optimizers.problem import Problem
from warpsim.optimizers.result import Result
from warpsim.optimizers.search import Callback, Progress, Stopping
from warpsim.parallel.blocks import DEFAULT_BLOCKS


@dataclass(frozen=True)
class StartsReport:
    """What became of the starts.

    Attributes:
        starts: (k, n): where they began; the first is the problem's own.
        before: (k,): losses there.
        explored: (k, n): where exploring led them.
        after: (k,): losses there.
        finished: Losses at which those that were finished ended, by index, best explored first.
        skipped: Why those that would have been finished were not, by index: no gradient can be computed there.
        report: What the finishing method reported of the best.
    """

    starts: torch.Tensor
    before: torch.Tensor
    explored: torch.Tensor
    after: torch.Tensor
    finished: dict[int, float]
    skipped: dict[int, str]
    report: Any

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """What each start reached, one line each."""
        found = []
        for k, (before, after) in enumerate(zip(self.before.tolist(), self.after.tolist(), strict=True)):
            way = f"start {k}: {before:.6g} → {after:.6g}" if math.isfinite(after) else f"start {k}: not simulated"
            if after == before and math.isfinite(after):
                way = f"start {k}: {before:.6g}, no better place found"
            way += f", finished at {self.finished[k]:.6g}" if k in self.finished else ""
            found.append(way + (f", not finished: {self.skipped[k]}" if k in self.skipped else ""))
        return found

    @property
    def dropped(self) -> int:
        """How many starts could not be simulated."""
        return int((~torch.isfinite(self.after)).sum())


def multi_start(
    problem: Problem,
    *,
    seed: int,
    candidates: int = 16,
    spread: float = 1.0,
    explore: int = 30,
    rate: float = 0.05,
    keep: int = 1,
    method: str | Method = "lbfgs",
    stopping: Stopping | None = None,
    callback: Callback | None = None,
    progress: bool = False,
    resume: Mapping[str, Any] | None = None,
    executor: Executor | None = None,
    blocks: int = DEFAULT_BLOCKS,
    **options: Any,
) -> Result:
    """The best end of several starts.

    A start that cannot be simulated, or whose gradient goes through a step that did not converge, is left out: while
    exploring it stays behind, and the next best is finished in its place.

    Args:
        problem: What to minimize.
        seed: Of the random starts.
        candidates: k: the problem's own start, and k − 1 random ones: uniform between two finite bounds, else normal
            around the problem's start.
        spread: Standard deviation of normal starts.
        explore: Iterations of Adam with all candidates at once, each in a world of its own; 0: none.
        rate: Adam's, in exploring.
        keep: How many of the best candidates are finished, one after the other.
        method: What finishes them, as in `minimize`.
        stopping: Of each finish.
        callback: As in `minimize`; while exploring, `best_x` is that of the best candidate so far.
        progress: Show bars.
        resume: `Result.state` of an interrupted call with the same arguments.
        executor: Whose workers explore; any of `concurrent.futures`, see docs/parallel.md. The finish stays here.
        blocks: Into how many blocks candidates are divided for it at most.
        **options: Of the method.

    Returns:
        The result of the best finish; its report is a `StartsReport`.

    Raises:
        SimulationError: None of the starts can be simulated with its gradient; the error is that of the best.
    """
    exploring = Exploring(candidates, spread, explore, rate, keep)
    explorer = problem if executor is None else OnExecutor(problem, executor, blocks=blocks)
    common: dict[str, Any] = {"stopping": stopping, "callback": callback, "progress": progress, "resume": resume}
    return drive(
        multi_starting(problem, method, seed=seed, exploring=exploring, explorer=explorer, **common, **options)
    )


@dataclass(frozen=True)
class Exploring:
    """`candidates`, `spread`, `explore`, `rate` and `keep` of `multi_start`."""

    candidates: int = 16
    spread: float = 1.0
    explore: int = 30
    rate: float = 0.05
    keep: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.keep <= self.candidates or self.explore < 0:
            raise InputError(
                f"candidates={self.candidates}, keep={self.keep}, explore={self.explore}: 1 ≤ keep ≤ candidates is "
                "needed"
            )


def multi_starting(
    problem: Problem,
    method: str | Method,
    *,
    seed: int,
    exploring: Exploring,
    explorer: Problem | None = None,
    callback: Callback | None = None,
    progress: bool = False,
    resume: Mapping[str, Any] | None = None,
    **options: Any,
) -> Steps[Result]:
    """`multi_start` as part of a larger search, which asks for its calls.

    Args:
        problem: What to minimize.
        method: What finishes.
        seed: Of the random starts.
        exploring: How many starts, and how they are explored.
        explorer: The problem as it is explored; None: as it is.
        callback: As in `multi_start`.
        progress: Likewise.
        resume: Likewise.
        **options: Of the method, and `stopping`.
    """
    saved = dict(resume or {})
    if resume is not None and saved.get("method") != "multi_start":
        raise InputError(f"the saved state is of method {saved.get('method')!r}, not 'multi_start'")
    starts = draw_starts(problem, exploring.candidates, exploring.spread, seed)
    together = _Together(explorer or problem, exploring.candidates)
    explored = yield from minimizing(
        together,
        Adam(rate=exploring.rate),
        start=starts.flatten(),
        stopping=Stopping(iterations=exploring.explore, patience=exploring.explore + 1, gradient=0.0),
        callback=_told(callback, together),
        progress=progress,
        resume=saved.get("explored"),
    )
    report = yield from _explored(explorer or problem, starts, explored)
    if explored.stopped == "interrupted":
        return _joined({}, explored, report)

    def finish(index: int, before: list[Result], state: Mapping[str, Any] | None) -> Steps[Result]:
        told = _told_after(callback, explored, before, report.skipped)
        common: dict[str, Any] = {"callback": told, "progress": progress, "resume": state}
        return (yield from minimizing(problem, method, start=report.explored[index], **common, **options))

    report.skipped.update({int(index): why for index, why in saved.get("skipped", {}).items()})
    finished = yield from _finished(finish, report, exploring.keep, saved.get("finished", []))
    return _joined(finished, explored, report)


_Finish = Callable[[int, list[Result], Mapping[str, Any] | None], Steps[Result]]


def _finished(
    finish: _Finish, report: StartsReport, keep: int, states: Sequence[Mapping[str, Any]]
) -> Steps[dict[int, Result]]:
    """Results of the best explored starts by index; those at which a search cannot begin are noted as skipped."""
    results: dict[int, Result] = {}
    failure: SimulationError | None = None
    for index in report.after.argsort(stable=True).tolist():
        if index in report.skipped:
            continue
        before = list(results.values())
        try:
            state = states[len(before)] if len(before) < len(states) else None
            results[index] = yield from finish(index, before, state)
        except SimulationError as error:
            failure = failure or error
            report.skipped[index] = str(error)
            continue
        if len(results) == keep or results[index].stopped == "interrupted":
            break
    if not results and failure is not None:
        raise failure
    return results


def _told(callback: Callback | None, together: _Together) -> Callback | None:
    """A callback for exploring, which is told of the best single candidate and of the state of the whole."""
    if callback is None:
        return None

    def tell(seen: Progress) -> bool | None:
        best_x, best_loss = together.best
        return callback(replace(seen, best_x=best_x, best_loss=best_loss, state=lambda: _state(seen.state(), [], {})))

    return tell


def _told_after(
    callback: Callback | None, explored: Result, before: list[Result], skipped: dict[int, str]
) -> Callback | None:
    """A callback for a finish, which is told of the best of all finishes so far and of the state of the whole."""
    if callback is None:
        return None

    def tell(seen: Progress) -> bool | None:
        best_x, best_loss = min([(seen.best_x, seen.best_loss), *((r.x, r.loss) for r in before)], key=lambda b: b[1])
        done = [result.state for result in before]
        now = seen.state

        def state() -> dict[str, Any]:
            return _state(explored.state, [*done, now()], skipped)

        return callback(replace(seen, best_x=best_x, best_loss=best_loss, state=state))

    return tell


def _state(explored: Mapping[str, Any], finished: list[Mapping[str, Any]], skipped: dict[int, str]) -> dict[str, Any]:
    """Plain data from which the whole can go on."""
    left_out = {str(index): why for index, why in skipped.items()}
    return {"method": "multi_start", "explored": explored, "finished": finished, "skipped": left_out}


def _explored(problem: Problem, starts: torch.Tensor, explored: Result) -> Steps[StartsReport]:
    """Where each start stands: where exploring led it, or where it was if that is better."""
    last = torch.tensor(explored.state["iterate"]["x"]["__tensor__"], dtype=torch.float64)  # the best is of their sum
    seen = torch.stack([starts, last.reshape(starts.shape)])
    with torch.no_grad():
        before = yield partial(problem.losses, seen[0])
        losses = torch.stack([before, (yield partial(problem.losses, seen[1]))])
    losses = torch.where(torch.isnan(losses), torch.inf, losses)
    reached = seen[losses.argmin(0), torch.arange(len(starts))]
    return StartsReport(starts, losses[0], reached, losses.min(0).values, {}, {}, None)


def draw_starts(problem: Problem, count: int, spread: float, seed: int) -> torch.Tensor:
    """(count, n): the problem's start, then random ones within the bounds; the same for the same seed."""
    generator = torch.Generator().manual_seed(seed)
    shape = (count - 1, len(problem.start))
    normal = torch.randn(shape, dtype=torch.float64, generator=generator)
    uniform = torch.rand(shape, dtype=torch.float64, generator=generator)
    boxed = torch.isfinite(problem.lower) & torch.isfinite(problem.upper)
    low, width = torch.where(boxed, problem.lower, 0.0), torch.where(boxed, problem.upper - problem.lower, 0.0)
    drawn = torch.where(boxed, low + uniform * width, problem.start + spread * normal)
    return torch.cat([problem.start[None], project(problem, drawn)])


class _Together:
    """Several candidates as one problem, the sum of their losses; Adam treats each component on its own.

    Attributes:
        best: The best single candidate seen, (n,), and its loss.
    """

    def __init__(self, problem: Problem, count: int) -> None:
        self._problem, self._count = problem, count
        self.start, self.lower, self.upper = (v.repeat(count) for v in (problem.start, problem.lower, problem.upper))
        self.names = [f"{name} of start {k}" for k in range(count) for name in problem.names]
        self.best = (problem.start, torch.inf)

    def losses(self, x: torch.Tensor) -> torch.Tensor:
        """As in `Problem`."""
        return torch.stack([self.loss(candidate) for candidate in x])

    def loss(self, x: torch.Tensor) -> torch.Tensor:
        """The sum over candidates that could be simulated; those without a gradient have none in it."""
        sloped = x.requires_grad and torch.is_grad_enabled()
        candidates = x.detach().reshape(self._count, -1).clone().requires_grad_(sloped)
        each = self._problem.losses(candidates)
        seen = each.detach().nan_to_num(nan=torch.inf)
        if seen.min() < self.best[1]:
            self.best = (candidates[seen.argmin()].detach().clone(), seen.min().item())
        total = _sum_of_finite(each)
        return _Sloped.apply(x, total.detach(), drive(self._slopes(candidates, total)).flatten()) if sloped else total

    def _slopes(self, candidates: torch.Tensor, total: torch.Tensor) -> Steps[torch.Tensor]:
        """(k, n); zero where a step did not converge, which the candidates are asked for one by one.

        Raises:
            UnconvergedError: No candidate has a gradient.
        """
        if not total.requires_grad:
            raise InputError("the losses do not depend on x, so nothing can be optimized; check what they read")
        try:
            return (yield partial(torch.autograd.grad, total, candidates))[0]
        except UnconvergedError as error:
            found = []
            for candidate in candidates.detach():
                found.append((yield from self._own_slope(candidate)))
            if all(slope is None for slope in found):
                raise error
            return torch.stack([torch.zeros_like(candidates[0]) if slope is None else slope for slope in found])

    def _own_slope(self, candidate: torch.Tensor) -> Steps[torch.Tensor | None]:
        """(n,) of one candidate by itself; None where it has no gradient."""
        alone = candidate[None].clone().requires_grad_()
        try:
            losses = yield partial(self._problem.losses, alone)
            return (yield partial(torch.autograd.grad, _sum_of_finite(losses), alone))[0][0]
        except UnconvergedError:
            return None

    def residuals(self, x: torch.Tensor) -> torch.Tensor:
        """As in `Problem`."""
        return self._problem.batched_residuals(x.reshape(self._count, -1)).flatten()

    def batched_residuals(self, x: torch.Tensor) -> torch.Tensor:
        """As in `Problem`."""
        return torch.stack([self.residuals(candidate) for candidate in x])


def _sum_of_finite(losses: torch.Tensor) -> torch.Tensor:
    return torch.where(torch.isfinite(losses), losses, 0.0).sum()


class _Sloped(torch.autograd.Function):
    """A number with a gradient that is known already."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, value: torch.Tensor, slope: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(slope)
        return value.clone()

    @staticmethod
    def backward(ctx: Any, adjoint: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        (slope,) = ctx.saved_tensors
        return adjoint * slope, None, None


def _joined(results: dict[int, Result], explored: Result, report: StartsReport) -> Result:
    """The best result, with what became of the others and the state to go on from."""
    state = _state(explored.state, [result.state for result in results.values()], report.skipped)
    gaps = f"; {report.dropped} of {len(report.after)} starts could not be simulated" if report.dropped else ""
    if not results:  # interrupted while exploring
        best = int(report.after.argmin())
        loss, message = float(report.after[best]), explored.message + gaps
        return replace(explored, x=report.explored[best], loss=loss, message=message, state=state, report=report)
    chosen = min(results.values(), key=lambda result: result.loss)
    finished = {index: result.loss for index, result in results.items()}
    interrupted = any(result.stopped == "interrupted" for result in results.values())
    return replace(
        chosen,
        stopped="interrupted" if interrupted else chosen.stopped,
        message=chosen.message + gaps,
        state=state,
        report=replace(report, finished=finished, report=chosen.report),
    )
