"""Levenberg–Marquardt for sums of squares: the method for fitting parameters to data.

The gradient Jᵀr is exact, from one reverse pass, so the point to which the method converges does not depend on how J is
computed. J itself only shapes the steps and the covariance. With n parameters and m residuals it costs 2·n simulations
by central differences (each candidate in a world of its own, all at once) or m by reverse mode (each residual seeded in
a world of its own), which is exact but dearer wherever there are more data than parameters.

It works in plain variables (see `plain_problem`), where bounds are a box. Steps are damped after Marquardt, which does
not depend on units, and kept within a trust region besides. A candidate that cannot be simulated, or beside which
nothing can be, is a step that failed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch

from warpsim.core.driving import Steps
from warpsim.optimizers.box_qp import box_qp
from warpsim.optimizers.evaluation import free_gradient, norm, project
from warpsim.optimizers.horizons import HORIZONS, grow
from warpsim.optimizers.identification import FitEnd, Identification, identify
from warpsim.optimizers.iterate import Iterate
from warpsim.optimizers.least_squares import Fit, fit_at, jacobian_by_differences, jacobian_by_seeds
from warpsim.optimizers.plain_problem import PlainProblem
from warpsim.optimizers.problem import Problem
from warpsim.optimizers.result import Stopped

_REVERSE_COST = 3.0
"""A reverse pass and the forward pass it needs, in forward passes."""
_ROUNDING = 1e-13
_LEAST_DAMPING = 1e-12
"""Keeps the damped JᵀJ positive definite where the data cannot tell parameters apart."""
_APART = 0.01
"""Share of ‖J's column‖·‖r‖ by which the exact gradient may differ from Jᵀr by differences where all is smooth."""
_LEVEL = 1e-8
"""Share of the loss that a Gauss–Newton step may still promise at an optimum."""


@dataclass(frozen=True)
class LevenbergMarquardt:
    """Options.

    Attributes:
        jacobian: "differences", "reverse", or "auto": the cheaper for the numbers of parameters and residuals.
        difference: Half the distance of the points of a central difference, in units of x.
        damping: At the start, as a share of the diagonal of JᵀJ.
        radius: Largest change of a component of x in the first step, as a share of max(1, |x|); later ones adapt.
        trials: Most steps tried in one iteration.
        horizons: Shares of the time whose data are fitted first, roughly, one after the other, where a problem is one
            over time (see `Shortens`); (): all data at once; "auto": an eighth, a quarter, a half. They are the
            search's first iteration, and count if they lower the loss over the whole time.
        noise: Standard deviation of the noise in one residual, in the residuals' unit; the report says whether the fit
            comes down to it. None: unknown.
    """

    jacobian: Literal["auto", "differences", "reverse"] = "auto"
    difference: float = 1e-5
    damping: float = 1e-3
    radius: float = 0.5
    trials: int = 20
    horizons: Sequence[float] | Literal["auto"] = "auto"
    noise: float | None = None
    name = "levenberg_marquardt"

    def begin(self, problem: Problem, x: torch.Tensor) -> Steps[Iterate]:
        """The iterate at a start (n,)."""
        view = PlainProblem(problem)
        fit = yield from fit_at(view, _onto_bounds(view, view.of(x)), strict=True)
        memory = {**self._fresh(), "horizons": list(HORIZONS if self.horizons == "auto" else self.horizons)}
        if not (yield from fit.finite()):
            return Iterate(x, fit.loss, torch.nan, 1, memory)
        begun = yield from self._iterate(view, fit, 1, memory, strict=True)
        assert begun is not None
        return begun

    def advance(self, problem: Problem, iterate: Iterate) -> Steps[Iterate]:
        """Damped Gauss–Newton steps until one lowers the sum of squares; the damping follows Nielsen's rule (1999)."""
        if iterate.memory["horizons"]:
            grown = yield from self._from_short_horizons(problem, iterate)
            if grown is not None:
                return grown
        view, memory, evaluations, dropped = PlainProblem(problem), iterate.memory, iterate.evaluations, iterate.dropped
        at, damping, growth, radius = memory["plain"], memory["damping"], memory["growth"], memory["radius"]
        end: tuple[Stopped, str] = ("stalled", f"none of {self.trials} steps lowers the sum of squares")
        for _ in range(self.trials):
            step, promised = _step(view, at, memory, damping, radius)
            if promised <= 1e-15 * iterate.loss or norm(step) <= 1e-14 * (1 + norm(at)):
                end = self._at_rounding(view, iterate)
                break
            size = norm(step / at.abs().clamp_min(1.0))
            fit = yield from fit_at(view, _onto_bounds(view, at + step))
            evaluations += 1
            gain = (iterate.loss - fit.loss) / promised
            if gain > 1e-4 and (yield from fit.finite()):
                kept = {**self._fresh(), "damping": max(damping * max(1 / 3, 1 - (2 * gain - 1) ** 3), _LEAST_DAMPING)}
                kept["radius"] = max(radius, 2 * size) if gain > 0.75 else radius if gain > 0.25 else size / 2
                found = yield from self._iterate(view, fit, evaluations, kept, dropped=dropped)
                if found is not None:
                    return found
            dropped += not np.isfinite(fit.loss)
            damping, growth, radius = damping * growth, growth * 2, size / 2
        return replace(iterate, evaluations=evaluations, finished=end, dropped=dropped)

    def _at_rounding(self, view: PlainProblem, iterate: Iterate) -> tuple[Stopped, str]:
        """Why only steps smaller than rounding are left: the optimum, or a loss that falls along no longer ones."""
        _, promised = _step(view, iterate.memory["plain"], iterate.memory, _LEAST_DAMPING, np.inf)
        if promised <= _LEVEL * iterate.loss and iterate.memory["smooth"]:
            return "converged", "the next step would be smaller than rounding"
        return "stalled", (
            "only steps smaller than rounding lower the sum of squares, which is rough or jumps here; start elsewhere, "
            "or from several places (`multi_start`)"
        )

    def _fresh(self) -> dict[str, Any]:
        """What steps depend on, as at a start whose horizons are done."""
        return {"damping": self.damping, "growth": 2.0, "radius": self.radius, "horizons": []}

    def _from_short_horizons(self, problem: Problem, iterate: Iterate) -> Steps[Iterate | None]:
        """The iterate where growing horizons lead; None where that is no better than this one."""
        grown = yield from grow(problem, replace(self, horizons=()), iterate.x, iterate.memory["horizons"])
        evaluations, dropped = iterate.evaluations + grown.evaluations + 1, iterate.dropped + grown.dropped
        if grown.evaluations == 0:
            return None
        view = PlainProblem(problem)
        fit = yield from fit_at(view, _onto_bounds(view, view.of(grown.x)))
        if not fit.loss < iterate.loss or not (yield from fit.finite()):
            return None
        return (yield from self._iterate(view, fit, evaluations, self._fresh(), dropped=dropped))

    def report(self, problem: Problem, iterate: Iterate) -> Steps[Identification | None]:
        """Covariance of the estimates, and what the data cannot tell apart; None where they are not finite."""
        yield from ()
        if "root" not in iterate.memory:
            return None
        view, memory = PlainProblem(problem), iterate.memory
        held = free_gradient(view, memory["plain"], memory["gradient"]) != memory["gradient"]
        end = FitEnd(
            names=problem.names,
            x=iterate.x,
            plain=memory["plain"],
            slope=view.slope(iterate.x),
            root=memory["root"],
            gradient=memory["gradient"],
            squares=2 * iterate.loss,
            count=memory["count"],
            at_bound=held,
            stated_noise=self.noise,
        )
        return identify(end)

    def _iterate(
        self,
        view: PlainProblem,
        fit: Fit,
        evaluations: int,
        memory: dict[str, Any],
        *,
        strict: bool = False,
        dropped: int = 0,
    ) -> Steps[Iterate | None]:
        """The iterate at a fit; None where J cannot be computed, unless that is an error."""
        m, n = len(fit.residuals), len(fit.x)
        rows: torch.Tensor | None
        if self.jacobian == "reverse" or (self.jacobian == "auto" and _REVERSE_COST * m <= 2 * n):
            rows, used = (yield from jacobian_by_seeds(view, fit.x, m, strict=strict)), m
        else:
            rows, used = (yield from jacobian_by_differences(view, fit, self.difference, strict=strict)), 2 * n
        if rows is None:
            return None
        root = torch.linalg.qr(rows, mode="r").R
        root = torch.cat([root, root.new_zeros(n - len(root), n)]) if m < n else root  # fewer data than parameters
        # Where residuals jump, differences see the jump and the exact gradient does not.
        apart = (rows.T @ fit.residuals.detach() - fit.gradient).abs()
        smooth = bool((apart <= _APART * torch.linalg.vector_norm(rows, dim=0) * (2 * fit.loss) ** 0.5).all())
        kept = {**memory, "smooth": smooth, "root": root, "gradient": fit.gradient, "count": m, "plain": fit.x}
        size = norm(free_gradient(view, fit.x, fit.gradient))
        return Iterate(view.x(fit.x), fit.loss, size, evaluations + used, kept, dropped=dropped)


def _onto_bounds(view: PlainProblem, plain: torch.Tensor) -> torch.Tensor:
    """Within the bounds, and on one that is only a rounding away: what is not on it is not held by it."""
    plain = project(view, plain)
    for bound in (view.lower, view.upper):
        near = torch.isfinite(bound) & ((plain - bound).abs() <= _ROUNDING * (1 + bound.abs()))
        plain = torch.where(near, bound, plain)
    return plain


def _step(
    view: PlainProblem, at: torch.Tensor, memory: Any, damping: float, radius: float
) -> tuple[torch.Tensor, float]:
    """The damped step within bounds and trust region, and by how much the undamped model says it lowers the loss."""
    root, gradient = memory["root"].numpy(), memory["gradient"].numpy()
    hessian = root.T @ root
    scale = np.diag(hessian).copy()
    scale[scale <= 1e-12 * scale.max()] = max(scale.max(), 1.0) * 1e-12
    reach = radius * at.abs().clamp_min(1.0)
    low, high = torch.maximum(view.lower - at, -reach).numpy(), torch.minimum(view.upper - at, reach).numpy()
    step = box_qp(hessian + damping * np.diag(scale), gradient, low, high, np.zeros(len(at))).x
    moved = root @ step
    return torch.from_numpy(step), float(-gradient @ step - 0.5 * moved @ moved)
