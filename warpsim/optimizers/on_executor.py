"""`OnExecutor`: a problem whose candidates are evaluated by the workers of an executor."""

from __future__ import annotations

from concurrent.futures import Executor
from typing import Any, NamedTuple

import torch

from warpsim.core.errors import SimulationError
from warpsim.optimizers.problem import Problem
from warpsim.parallel.blocks import blocks_of
from warpsim.parallel.sent_error import SentError
from warpsim.parallel.workers import Parcel, run_all


class _Block(NamedTuple):
    x: torch.Tensor
    gradient: bool


class _Evaluated(NamedTuple):
    losses: torch.Tensor
    slopes: torch.Tensor
    error: SentError | None


class OnExecutor:
    """A problem as `Problem` sees it; several candidates go to workers in blocks, one candidate stays here.

    Attributes:
        start: As in `Problem`, like `lower`, `upper` and `names`.
    """

    def __init__(self, problem: Problem, executor: Executor, *, blocks: int) -> None:
        """Packs the problem.

        Args:
            problem: Must be one that can be pickled.
            executor: Evaluates.
            blocks: Into how many blocks candidates are divided at most.
        """
        self._problem, self._executor, self._blocks = problem, executor, blocks
        self._parcel = Parcel(problem)
        self.start, self.lower, self.upper, self.names = problem.start, problem.lower, problem.upper, problem.names

    def loss(self, x: torch.Tensor) -> torch.Tensor:
        """As in `Problem`."""
        return self._problem.loss(x)

    def residuals(self, x: torch.Tensor) -> torch.Tensor:
        """As in `Problem`."""
        return self._problem.residuals(x)

    def batched_residuals(self, x: torch.Tensor) -> torch.Tensor:
        """As in `Problem`."""
        return self._problem.batched_residuals(x)

    def losses(self, x: torch.Tensor) -> torch.Tensor:
        """As in `Problem`, with slopes that were computed along with the losses."""
        if torch.is_grad_enabled() and x.requires_grad:
            return _OfWorkers.apply(x, self)
        return torch.cat([made.losses for made in self.evaluate(x.detach(), gradient=False)])

    def evaluate(self, x: torch.Tensor, *, gradient: bool) -> list[_Evaluated]:
        """Losses and slopes of candidates (k, n), block by block."""
        blocks = blocks_of(len(x), self._blocks)
        parts = [blocks.worlds(block) for block in range(blocks.number)]
        jobs = [_Block(x[part].clone(), gradient) for part in parts]
        return run_all(self._executor, _evaluate, self._parcel, jobs, [self._name(x, part) for part in parts])

    def _name(self, x: torch.Tensor, worlds: slice) -> str:
        """Worlds of a block with their values."""
        shown = [
            f"world {worlds.start + k}: " + ", ".join(f"{n} = {v:.6g}" for n, v in zip(self.names, values, strict=True))
            for k, values in enumerate(x[worlds].tolist())
        ]
        return "; ".join(shown)


def _evaluate(problem: Problem, block: _Block) -> _Evaluated:
    """In a worker."""
    x = block.x.requires_grad_(block.gradient)
    with torch.set_grad_enabled(block.gradient):
        losses = problem.losses(x)
    slopes, error = torch.zeros_like(block.x), None
    if block.gradient and losses.requires_grad:
        counted = torch.where(torch.isfinite(losses), losses, 0.0)  # as whoever sums them does
        try:
            (slopes,) = torch.autograd.grad(counted.sum(), x)
        except SimulationError as failure:  # raised where slopes are asked for, as it would be here
            error = SentError.of(failure)
    return _Evaluated(losses.detach(), slopes.detach(), error)


class _OfWorkers(torch.autograd.Function):
    """Losses as a node of torch's graph."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, owner: OnExecutor) -> torch.Tensor:
        made = owner.evaluate(x.detach(), gradient=True)
        ctx.errors = [part.error for part in made if part.error is not None]
        ctx.save_for_backward(torch.cat([part.slopes for part in made]))
        return torch.cat([part.losses for part in made])

    @staticmethod
    def backward(ctx: Any, adjoint: torch.Tensor) -> tuple[torch.Tensor, None]:
        if ctx.errors:
            raise ctx.errors[0].error()
        (slopes,) = ctx.saved_tensors
        return torch.where(adjoint[:, None] != 0, adjoint[:, None] * slopes, 0.0), None
