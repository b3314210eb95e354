"""The one node of torch's graph through which everything that runs in kernels is differentiated.

A call knows how to make its results from tensors and how to pull adjoints of the results back to them; the node keeps
what it needs in between, tells torch what to watch, and refuses second derivatives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from warpsim.autograd.exchange import once_differentiable

Adjoints = Sequence[torch.Tensor | None]
"""Of the results, in their order; None: zero."""


@dataclass(frozen=True)
class Made:
    """What a call made.

    Attributes:
        results: In order.
        read_again: Inputs that the backward pass reads: torch notices if they are overwritten in place until then.
        reports: Results that carry no derivative.
        kept: What else the backward pass needs; lives as long as the graph does.
    """

    results: tuple[torch.Tensor, ...]
    read_again: tuple[torch.Tensor, ...] = ()
    reports: tuple[torch.Tensor, ...] = ()
    kept: Any = None


class Pulls(Protocol):
    """Something whose adjoints can be pulled back."""

    def backward(
        self, made: Made, tensors: Sequence[torch.Tensor], shapes: Sequence[torch.Size], adjoints: Adjoints
    ) -> Sequence[torch.Tensor | None]:
        """Gradients in the order of the tensors.

        Args:
            made: Without results and inputs, which torch holds.
            tensors: What was to be read again.
            shapes: Of all tensors.
            adjoints: Of the results.
        """


class Call(Pulls, Protocol):
    """Everything about a computation but the tensors it is differentiated by."""

    def forward(self, tensors: Sequence[torch.Tensor]) -> Made:
        """Computes."""


@dataclass(frozen=True)
class Done:
    """A call that was computed before its node is made.

    Attributes:
        call: Pulls back.
        made: What it made, once: the node must not hold its own results.
    """

    call: Pulls
    made: list[Made]


class Node(torch.autograd.Function):
    """`Node.apply(call, *tensors)`: the call's results, in torch's graph."""

    @staticmethod
    def forward(ctx: Any, call: Call | Done, *tensors: torch.Tensor):
        """Computes, and keeps what the backward pass needs."""
        made = call.made.pop() if isinstance(call, Done) else call.forward(tensors)
        ctx.call, ctx.made = call.call if isinstance(call, Done) else call, Made((), kept=made.kept)
        ctx.shapes = [tensor.shape for tensor in tensors]
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*made.read_again)
        ctx.reads_again = bool(made.read_again)
        ctx.mark_non_differentiable(*made.reports)
        return made.results

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *adjoints: torch.Tensor | None):
        """Gradients of the tensors that need one."""
        saved = ctx.saved_tensors if ctx.reads_again else ()  # raises if they were freed, or changed in place
        pulled = ctx.call.backward(ctx.made, saved, ctx.shapes, adjoints)
        wanted = ctx.needs_input_grad[1:]
        return (None, *(gradient if w else None for gradient, w in zip(pulled, wanted, strict=True)))
