"""`worlds_over_ranks`: a function of worlds, each rank computing its blocks; the same bits for any number of ranks."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from warpsim.core.errors import RangeError
from warpsim.parallel.blocks import Blocks
from warpsim.parallel.errors import RankError
from warpsim.parallel.ranks import Ranks, alone, current
from warpsim.parallel.sent_error import SentError

WorldFunction = Callable[..., torch.Tensor]
"""Tensors (k, …) → (k, …): world i of what comes out depends on world i of what goes in alone."""


def worlds_over_ranks(function: WorldFunction, *inputs: torch.Tensor, what: str = "worlds") -> torch.Tensor:
    """`function(*inputs)`, each rank computing its share of the worlds; without ranks just that.

    Differentiable: on the way back, too, each rank computes the gradient of its worlds alone.

    Args:
        function: Of worlds; its errors are raised on all ranks.
        inputs: (k, …) each, the same on all ranks.
        what: Names the work in messages.
    """
    ranks = current()
    if ranks is None or len(inputs[0]) < 2:
        return function(*inputs)
    share = _Share(function, ranks, ranks.divided(len(inputs[0])), what)
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in inputs):
        return _OverRanks.apply(share, *inputs)
    return share.forward(inputs, graph=False)


@dataclass
class _Report:
    """What a rank says of its share before the numbers are exchanged.

    Attributes:
        checksum: Of its inputs.
        error: What it failed with.
        world: First world of the block that failed.
        like: Shapes of a world and types of what it has.
    """

    checksum: int
    error: SentError | None = None
    world: int = 0
    like: tuple[tuple[tuple[int, ...], torch.dtype], ...] = ()


class _Share:
    """One call's worlds on one rank."""

    def __init__(self, function: WorldFunction, ranks: Ranks, blocks: Blocks, what: str) -> None:
        self._function, self._ranks, self._what = function, ranks, what
        self._blocks, self._mine = blocks, blocks.of_rank(ranks.rank, ranks.size)
        self._graphs: list[tuple[torch.Tensor, list[torch.Tensor]]] = []

    def forward(self, inputs: Sequence[torch.Tensor], *, graph: bool) -> torch.Tensor:
        """(k, …) of all worlds; remembers the graphs of this rank's blocks."""

        def compute(block: int) -> tuple[torch.Tensor]:
            worlds = self._blocks.worlds(block)
            leaves = [tensor.detach()[worlds].requires_grad_(graph and tensor.requires_grad) for tensor in inputs]
            with alone(), torch.set_grad_enabled(graph):
                made = self._function(*leaves)
            if graph:
                self._graphs.append((made, leaves))
            self._ranks.worlds += len(made)
            return (made.detach(),)

        (found,) = self._gathered(compute, inputs, self._what)
        return found

    def backward(self, adjoint: torch.Tensor, wanted: Sequence[bool]) -> list[torch.Tensor | None]:
        """Gradients of the inputs."""
        places = [place for place, needed in enumerate(wanted) if needed]

        def compute(block: int) -> tuple[torch.Tensor, ...]:
            made, leaves = self._graphs[block - self._mine.start]
            chosen = [leaves[place] for place in places]
            if not made.requires_grad:
                return tuple(torch.zeros_like(leaf) for leaf in chosen)
            with alone():
                found = torch.autograd.grad(
                    made, chosen, adjoint[self._blocks.worlds(block)], allow_unused=True, retain_graph=True
                )
            return tuple(torch.zeros_like(leaf) if g is None else g for g, leaf in zip(found, chosen, strict=True))

        # the last block first: of that one the tape still holds the rollout
        made = iter(self._gathered(compute, (adjoint,), f"gradients of {self._what}", last_first=True))
        return [next(made) if needed else None for needed in wanted]

    def _gathered(
        self,
        compute: Callable[[int], tuple[torch.Tensor, ...]],
        inputs: Sequence[torch.Tensor],
        what: str,
        *,
        last_first: bool = False,
    ) -> list[torch.Tensor]:
        """What all blocks of all ranks give, by world."""
        began = time.perf_counter()
        report = _Report(_checksum(inputs))
        parts: list[tuple[torch.Tensor, ...]] = []
        for block in reversed(self._mine) if last_first else self._mine:
            try:
                parts.append(compute(block))
            except Exception as error:  # raised below, on all ranks
                report.error, report.world = SentError.of(error), self._blocks.worlds(block).start
                break
        parts = parts[::-1] if last_first else parts
        mine = [torch.cat(part) for part in zip(*parts, strict=True)] if report.error is None else []
        report.like = tuple((tuple(tensor.shape[1:]), tensor.dtype) for tensor in mine)
        self._ranks.busy += time.perf_counter() - began
        reports = self._ranks.gather(report, what)
        self._check(reports, what)
        like = next(other.like for other in reports if other.like)
        empty = [torch.zeros(0, *shape, dtype=dtype) for shape, dtype in like]
        counts = self._blocks.counts(self._ranks.size)
        return [self._ranks.gather_tensors(tensor, counts, what) for tensor in mine or empty]

    def _check(self, reports: Sequence[_Report], what: str) -> None:
        """Raises, on all ranks, the error of the first rank that has one."""
        failed = [rank for rank, report in enumerate(reports) if report.error is not None]
        if failed:
            report = reports[failed[0]]
            assert report.error is not None
            raise _in_all_worlds(report.error.error(), report.world, f"on rank {failed[0]}, computing {what}")
        other = [rank for rank, report in enumerate(reports) if report.checksum != reports[0].checksum]
        if other:
            raise RankError(
                f"{what}: rank {other[0]} goes on from other numbers than rank 0; ranks must run the same program, "
                "with the same seeds, on processors that round alike"
            )


class _OverRanks(torch.autograd.Function):
    """A call of `worlds_over_ranks` as one node of torch's graph."""

    @staticmethod
    def forward(ctx: Any, share: _Share, *inputs: torch.Tensor) -> torch.Tensor:
        ctx.share = share
        return share.forward(inputs, graph=True)

    @staticmethod
    def backward(ctx: Any, adjoint: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        return (None, *ctx.share.backward(adjoint, ctx.needs_input_grad[1:]))


def _in_all_worlds(error: Any, first: int, where: str) -> Exception:
    """An error of a block as one of the whole: its worlds are counted from the first block's."""
    if isinstance(error, RangeError):
        error.worlds = tuple(first + world for world in error.worlds)
    if isinstance(getattr(error, "world", None), int) and error.world >= 0:
        error.world += first
    error.add_note(where if first == 0 else f"{where}; its worlds are counted from {first}")
    return error


def _checksum(tensors: Sequence[torch.Tensor]) -> int:
    found = 0
    for tensor in tensors:
        found = zlib.crc32(tensor.detach().cpu().contiguous().numpy().tobytes(), found)
    return found
