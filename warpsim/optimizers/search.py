"""The loop around every method: stopping rules, history, the best so far, progress, Ctrl-C, and going on later."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from tqdm.auto import tqdm

from warpsim.core.driving import Steps
from warpsim.core.errors import InputError
from warpsim.optimizers.iterate import Iterate, Method, pack, unpack
from warpsim.optimizers.problem import Problem, check_bounds
from warpsim.optimizers.result import HistoryEntry, Result, Stopped
from warpsim.parallel.ranks import by_first, current


@dataclass(frozen=True)
class Stopping:
    """When to stop; whatever comes first.

    Attributes:
        iterations: Most iterations, over all runs that were resumed into one.
        seconds: Most wall time, likewise.
        target: A loss that is good enough.
        gradient: Converged when the largest component of the gradient, bounds considered, is not above this.
        change: Converged when the best loss fell by less than this share of itself …
        patience: … over this many iterations.
    """

    iterations: int = 200
    seconds: float = math.inf
    target: float = -math.inf
    gradient: float = 1e-8
    change: float = 1e-10
    patience: int = 20

    def __post_init__(self) -> None:
        if self.iterations < 0 or self.patience < 1 or not self.seconds > 0:
            raise InputError(f"{self}: iterations ≥ 0, patience ≥ 1 and seconds > 0 are needed")


@dataclass(frozen=True)
class Progress:
    """What a callback sees after each iteration.

    Attributes:
        entry: The iteration's figures.
        x: (n,): the iterate.
        best_x: (n,): the best so far.
        best_loss: Its loss.
        state: Gives the plain data from which the search can go on; call it to save.
    """

    entry: HistoryEntry
    x: torch.Tensor
    best_x: torch.Tensor
    best_loss: float
    state: Callable[[], dict[str, Any]]


Callback = Callable[[Progress], bool | None]
"""Called after each iteration; returning True ends the search."""


@dataclass(frozen=True)
class _Stand:
    """Where a search is; replaced as a whole, so that Ctrl-C never leaves half of an iteration behind."""

    iterate: Iterate
    best: Iterate
    history: tuple[HistoryEntry, ...]


class Search:
    """A search under way."""

    def __init__(self, problem: Problem, method: Method, stopping: Stopping) -> None:
        self._problem, self._method, self._stopping = problem, method, stopping

    def run(
        self,
        start: torch.Tensor | None = None,
        resume: Mapping[str, Any] | None = None,
        callback: Callback | None = None,
        progress: bool = False,
    ) -> Steps[Result]:
        """Iterates until a rule or the user stops it; arguments as of `minimize`."""
        first = self._problem.start if start is None else torch.as_tensor(start, dtype=torch.float64)
        check_bounds(self._problem, first)
        self._began = time.perf_counter()
        if resume is None:
            begun = yield from self._method.begin(self._problem, first.detach().clone())
            self._at = _Stand(begun, begun, (self._entry(0, begun),))
        else:
            self._at = self._restore(resume)
        ranks = current()
        shown = self._method.name if ranks is None else f"{self._method.name} on {ranks.size} ranks"
        with tqdm(desc=shown, disable=not progress, unit="it") as bar:
            try:
                while (ended := (yield from self._tell(callback, bar)) or self._verdict()) is None:
                    self._accept((yield from self._method.advance(self._problem, self._at.iterate)))
                stopped, message = ended
            except KeyboardInterrupt:
                if current() is not None:  # the other ranks may be elsewhere; what is kept on disk goes on
                    raise
                stopped, message = "interrupted", "interrupted; this is the best so far"
        best = self._at.best
        return Result(
            x=best.x,
            loss=best.loss,
            stopped=stopped,
            message=message + self._gaps(),
            history=list(self._at.history),
            state=self.state(),
            report=(yield from self._method.report(self._problem, best)),
        )

    def state(self) -> dict[str, Any]:
        """Plain data from which the search can go on."""
        return {
            "method": self._method.name,
            "iterate": pack(self._at.iterate),
            "best": pack(self._at.best),
            "history": [list(vars(entry).values()) for entry in self._at.history],
        }

    def _restore(self, state: Mapping[str, Any]) -> _Stand:
        if state.get("method") != self._method.name:
            raise InputError(f"the saved state is of method {state.get('method')!r}, not {self._method.name!r}")
        try:
            iterate, best = unpack(state["iterate"]), unpack(state["best"])
            history = tuple(HistoryEntry(*values) for values in state["history"])
            self._began -= history[-1].seconds
        except (LookupError, TypeError, ValueError, RuntimeError) as error:
            raise InputError(f"the saved state is not one of a search: {error}; start anew") from error
        if iterate.x.shape != self._problem.start.shape:
            raise InputError(
                f"the saved state has {len(iterate.x)} values, the problem {len(self._problem.start)}; it was saved "
                "from another problem"
            )
        return _Stand(iterate, best, history)

    def _accept(self, iterate: Iterate) -> None:
        at = self._at
        better = iterate.loss < at.best.loss or not math.isfinite(at.best.loss)
        entry = self._entry(at.history[-1].iteration + 1, iterate)
        self._at = _Stand(iterate, iterate if better else at.best, (*at.history, entry))

    def _entry(self, iteration: int, i: Iterate) -> HistoryEntry:
        seconds = time.perf_counter() - self._began
        if math.isfinite(self._stopping.seconds):  # one clock, or some ranks would stop and others not
            seconds = by_first(lambda: seconds, "the clock")
        return HistoryEntry(iteration, i.loss, i.gradient_norm, seconds, i.evaluations, i.dropped)

    def _tell(self, callback: Callback | None, bar: tqdm) -> Steps[tuple[Stopped, str] | None]:
        entry, best = self._at.history[-1], self._at.best
        bar.set_postfix(loss=f"{entry.loss:.4g}", gradient=f"{entry.gradient_norm:.2g}")
        bar.update(entry.iteration - bar.n)
        seen = Progress(entry, self._at.iterate.x, best.x, best.loss, self.state)
        if callback is not None and (yield partial(callback, seen)):
            return "interrupted", "the callback ended the search; this is the best so far"
        return None

    def _gaps(self) -> str:
        """Says how many candidates the search did without."""
        entry = self._at.history[-1]
        return f"; {entry.dropped} of {entry.evaluations} candidates could not be simulated" if entry.dropped else ""

    def _flat(self) -> bool:
        """Whether the gradient is exactly zero in all components, bounds or not, and the loss is not."""
        iterate = self._at.iterate
        gradient = iterate.memory.get("gradient")
        return (
            isinstance(gradient, torch.Tensor) and gradient.numel() > 0 and not gradient.any() and iterate.loss != 0.0
        )

    def _held(self) -> str:
        """Says how many variables rest at a bound, where the gradient need not vanish."""
        x = self._at.iterate.x
        count = int(((x <= self._problem.lower) | (x >= self._problem.upper)).sum())
        return f", apart from {count} of {len(x)} variables that are at a bound" if count else ""

    def _verdict(self) -> tuple[Stopped, str] | None:
        rule, history, best = self._stopping, self._at.history, self._at.best.loss
        entry = history[-1]
        if not (math.isfinite(entry.loss) and math.isfinite(entry.gradient_norm)):
            what = "loss" if not math.isfinite(entry.loss) else "gradient"
            return "non-finite", f"the {what} is not finite at iteration {entry.iteration}"
        if best <= rule.target:
            return "target", f"the loss {best:.6g} has reached the target {rule.target:.6g}"
        if entry.iteration == 0 and self._flat():
            return "no slope", (
                "the loss does not change with any variable at the start: they do not reach it from there, or it is a "
                "stationary point; start elsewhere, or from several places (`multi_start`)"
            )
        if entry.gradient_norm <= rule.gradient:
            return "converged", f"no component of the gradient exceeds {rule.gradient:g}{self._held()}"
        if self._at.iterate.finished is not None:
            return self._at.iterate.finished
        if entry.iteration >= rule.patience:
            before = min(r.loss for r in history[: -rule.patience])
            if before - best <= rule.change * abs(before):
                return "converged", f"the loss fell by less than {rule.change:g} of itself in {rule.patience} steps"
        if entry.iteration >= rule.iterations:
            return "iterations", f"made all {rule.iterations} iterations"
        if entry.seconds >= rule.seconds:
            return "time", f"{rule.seconds:g} s have passed"
        return None
