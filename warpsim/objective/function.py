"""Terms of the user's own: a function in torch, or a Warp kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import warp as wp

from warpsim.autograd.exchange import on_torch_stream, to_torch, to_warp
from warpsim.autograd.node import Adjoints, Made, Node
from warpsim.core.errors import InputError
from warpsim.core.precision import real
from warpsim.objective.episode import Episode
from warpsim.objective.term import Term
from warpsim.sim.simulator import Simulator


@dataclass(frozen=True, kw_only=True)
class Function(Term):
    """Errors from a function in torch.

    Attributes:
        function: Maps an episode to (frames, W, m), all N + 1 frames of it (or N, for what belongs to steps); the loss
            is weight/2 times their squares at the frames `when` chooses.
        needs: Outputs of the rollout that it reads.
    """

    quantity: ClassVar[str] = "error"

    function: Callable[[Episode], torch.Tensor]
    needs: Sequence[str] = ()

    @property
    def outputs(self) -> tuple[str, ...]:
        """As given."""
        return tuple(self.needs)

    def errors(self, episode: Episode, frames: slice) -> torch.Tensor:
        """(frames, W, m)."""
        return _frames(self.title, self.function(episode), episode, frames)


@dataclass(frozen=True, kw_only=True)
class Cost(Term):
    """A cost from a function in torch that is no sum of squares: the loss is weight times it.

    Attributes:
        function: Maps an episode to (W,).
        needs: Outputs of the rollout that it reads.
    """

    quantity: ClassVar[str] = "cost"

    function: Callable[[Episode], torch.Tensor]
    needs: Sequence[str] = ()

    @property
    def outputs(self) -> tuple[str, ...]:
        """As given."""
        return tuple(self.needs)

    def loss(self, episode: Episode) -> torch.Tensor:
        """(W,)."""
        found = self.function(episode)
        if found.shape != (episode.sim.worlds,):
            raise InputError(
                f"{self.title}: the function gave shape {tuple(found.shape)}; needed: one number for each world, "
                f"{(episode.sim.worlds,)}"
            )
        return self.weight * found

    def errors(self, episode: Episode, frames: slice) -> torch.Tensor:
        """Refused.

        Raises:
            InputError: Always.
        """
        raise InputError(
            f"{self.title}: a plain cost has no residuals, which Gauss-Newton needs; use another method, or `Function`"
        )

    def measure(self, episode: Episode, frames: slice) -> torch.Tensor:
        """(1, W) the cost without its weight."""
        with torch.no_grad():
            return self.function(episode)[None]


@dataclass(frozen=True, kw_only=True)
class Kernel(Term):
    """Errors from a Warp kernel, differentiated by Warp.

    Attributes:
        kernel: Launched over (frames, W); takes the fields of `inputs` as arrays (frames, W, …) of the rollout's types
            (`q`: real, 3 axes; `body_position`: vec3, 3 axes; …) and writes errors to a real array3d (frames, W, m).
        inputs: States ("q", "qd", "net.x") and outputs that it reads, in the order of its arguments.
        size: m.
    """

    quantity: ClassVar[str] = "error"

    kernel: Any
    inputs: Sequence[str]
    size: int = 1

    @property
    def outputs(self) -> tuple[str, ...]:
        """What it reads that is not a state."""
        return tuple(name for name in self.inputs if name not in ("q", "qd", "activation"))

    def check(self, sim: Simulator) -> None:
        """The fields must exist."""
        fields = _fields(sim)
        for name in self.inputs:
            if name not in fields:
                raise InputError(f"{self.title}: no state or output {name!r}; there are {', '.join(fields)}")

    def errors(self, episode: Episode, frames: slice) -> torch.Tensor:
        """(frames, W, m)."""
        fields = _fields(episode.sim)
        tensors = [episode.trajectory[name].contiguous() for name in self.inputs]
        types = [fields[name] for name in self.inputs]
        (found,) = Node.apply(_KernelCall(self.kernel, types, self.size, episode.sim.model.device), *tensors)
        return _frames(self.title, found, episode, frames)


@dataclass(frozen=True)
class _KernelCall:
    """A kernel over fields (frames, W, …) → errors (frames, W, size)."""

    kernel: Any
    types: Sequence[Any]
    size: int
    device: Any

    def forward(self, tensors: Sequence[torch.Tensor]) -> Made:
        """Launches it."""
        with on_torch_stream(self.device):
            return Made((to_torch(self._launch(self._arrays(tensors))),), read_again=tuple(tensors))

    def backward(
        self, made: Made, tensors: Sequence[torch.Tensor], shapes: Sequence[torch.Size], adjoints: Adjoints
    ) -> list[torch.Tensor | None]:
        """Launches it again, on a tape."""
        (adjoint,) = adjoints
        assert adjoint is not None
        with on_torch_stream(self.device):
            arrays = self._arrays(tensors)
            for array in arrays:
                array.requires_grad = True
            tape = wp.Tape()
            with tape:
                errors = self._launch(arrays)
            tape.backward(grads={errors: to_warp(adjoint.contiguous(), real)})
            return [to_torch(array.grad) for array in arrays]

    def _arrays(self, tensors: Sequence[torch.Tensor]) -> list[wp.array]:
        return [to_warp(tensor, kind) for tensor, kind in zip(tensors, self.types, strict=True)]

    def _launch(self, arrays: list[wp.array]) -> wp.array:
        frames, worlds = arrays[0].shape[:2]
        errors = wp.zeros((frames, worlds, self.size), dtype=real, device=self.device, requires_grad=True)
        wp.launch(self.kernel, dim=(frames, worlds), inputs=arrays, outputs=[errors], device=self.device)
        return errors


def _fields(sim: Simulator) -> dict[str, Any]:
    """Element type of each state and output."""
    states = {f.name: f.dtype for f in sim.compiled.state if f.differentiable}
    return {**states, **{name: f.dtype for name, f in sim.compiled.outputs.items()}}


def _frames(title: str, errors: torch.Tensor, episode: Episode, frames: slice) -> torch.Tensor:
    """The chosen frames of errors given for all frames or for all steps."""
    count = len(episode.times)
    if errors.ndim != 3 or errors.shape[0] not in (count, count - 1) or errors.shape[1] != episode.sim.worlds:
        raise InputError(
            f"{title}: the function gave shape {tuple(errors.shape)}; needed: (frames, worlds, m) with {count} frames "
            f"(or {count - 1} steps) and {episode.sim.worlds} worlds"
        )
    return errors[min(frames.start, len(errors) - 1) : frames.stop]
