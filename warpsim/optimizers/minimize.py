"""`minimize`: any method on any problem, by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import torch

from warpsim.core.driving import Steps, drive
from warpsim.core.errors import InputError, unknown_name
from warpsim.optimizers.adam import Adam
from warpsim.optimizers.cem import CEM
from warpsim.optimizers.ilqr import ILQR
from warpsim.optimizers.iterate import Method
from warpsim.optimizers.lbfgs import LBFGS
from warpsim.optimizers.levenberg_marquardt import LevenbergMarquardt
from warpsim.optimizers.polyak import Polyak
from warpsim.optimizers.problem import Problem
from warpsim.optimizers.result import Result
from warpsim.optimizers.search import Callback, Search, Stopping

METHODS: Mapping[str, Any] = {kind.name: kind for kind in (Adam, Polyak, LBFGS, LevenbergMarquardt, ILQR, CEM)}
"""Methods by name; each takes its options as keywords."""


def minimize(
    problem: Problem,
    method: str | Method = "lbfgs",
    *,
    start: torch.Tensor | None = None,
    stopping: Stopping | None = None,
    callback: Callback | None = None,
    progress: bool = False,
    resume: Mapping[str, Any] | None = None,
    **options: Any,
) -> Result:
    """Searches for the x of least loss within the bounds.

    Ctrl-C ends the search and returns the best so far; `resume=result.state` goes on from there, through the same
    iterates to the same end, in the same process or another one (the state is plain data, which JSON keeps exactly).

    Args:
        problem: What to minimize.
        method: "lbfgs", "adam", "polyak" where the least loss is known, "levenberg_marquardt" for sums of squares,
            "ilqr" for a `ControlProblem`, "cem" where gradients mislead, or a method with its options.
        start: (n,): where to begin; None: at the problem's start.
        stopping: When to stop; its fields may also be given as options: `iterations=50, target=1e-6`.
        callback: Called with a `Progress` after each iteration; returning True ends the search.
        progress: Show a bar with loss and gradient norm.
        resume: `Result.state` or `Progress.state()` of an earlier search for the same problem with the same options.
        **options: Of the method, e.g. `rate=0.1`, and of `Stopping`.
    """
    return drive(
        minimizing(
            problem,
            method,
            start=start,
            stopping=stopping,
            callback=callback,
            progress=progress,
            resume=resume,
            **options,
        )
    )


def minimizing(
    problem: Problem,
    method: str | Method = "lbfgs",
    *,
    start: torch.Tensor | None = None,
    stopping: Stopping | None = None,
    callback: Callback | None = None,
    progress: bool = False,
    resume: Mapping[str, Any] | None = None,
    **options: Any,
) -> Steps[Result]:
    """`minimize` as part of a larger search, which asks for its calls."""
    rules = {f.name for f in fields(Stopping)}
    given = {name: options.pop(name) for name in list(options) if name in rules}
    if given and stopping is not None:
        raise InputError(f"{', '.join(given)}: give either stopping= or its fields, not both")
    chosen = stopping if stopping is not None else Stopping(**given)
    search = Search(problem, make_method(method, options), chosen)
    return (yield from search.run(start, resume, callback, progress))


def make_method(method: str | Method, options: Mapping[str, Any]) -> Method:
    """A method from its name and options."""
    if not isinstance(method, str):
        if options:
            raise InputError(f"{', '.join(options)}: a method object has its options already; give a name instead")
        return method
    if method not in METHODS:
        raise unknown_name("method", method, METHODS)
    known = [f.name for f in fields(METHODS[method]) if f.init]
    for name in options:
        if name not in known:
            raise unknown_name(f"option of {method}", name, [*known, *(f.name for f in fields(Stopping))])
    return METHODS[method](**options)
