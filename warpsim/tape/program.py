"""What a simulation must offer to be driven by the checkpointed tape: one out-of-place step over named arrays.

Anything that can be written as `next_state, outputs = step(state, inputs; parameters)` in Warp kernels is a `Program`:
rigid bodies, a mass-spring net, a wave equation. A few lines suffice:

    class Decay:
        device, worlds = wp.get_device("cpu"), 4
        state = (Field("x", (4, 3), wp.float64),)
        inputs = outputs = ()
        def __init__(self, rate): self.parameters = {"rate": rate}      # (4,), requires_grad=True
        def make_work(self, arena): return None
        def step(self, state, inputs, work, next_state, outputs, *, tape):
            wp.launch(decay, dim=(4, 3), inputs=[self.parameters["rate"], state.x], outputs=[next_state.x])

Rules a step must obey:

- It writes only `next_state`, `outputs` and `work`, and writes every element of the first two.
- It depends only on `state`, `inputs` and `parameters`: never on what an earlier step left in `work` or elsewhere.
- It launches kernels and nothing else, the same ones at every call: a few calls are captured and replayed for all
  steps, so Python values (a time step) are frozen and host reads are not repeated. What varies belongs in an array.
  It allocates nothing.
- A launch that carries no derivative says `record_tape=False`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
import warp as wp

from warpsim.core.errors import unknown_name
from warpsim.tape.arena import Arena
from warpsim.tape.manifold import EUCLIDEAN, Manifold


@dataclass(frozen=True)
class Field:
    """One named array of a state, of the inputs or of the outputs of a step.

    Attributes:
        name: How a step finds it: `state.<name>`.
        shape: Full shape of one step's value; axis 0 is the world.
        dtype: Warp data type, e.g. `wp.float64`, a vector type or `wp.int32`.
        differentiable: False for what is only carried along (integers, a status, a solver's warm start): it is part of
            checkpoints and trajectories but never has an adjoint.
        manifold: Of one world's value of a state: plain numbers, or some that are unit quaternions.
    """

    name: str
    shape: tuple[int, ...]
    dtype: Any
    differentiable: bool = True
    manifold: Manifold = field(default=EUCLIDEAN, compare=False)

    @property
    def value_shape(self) -> tuple[int, ...]:
        """Shape of one world's value as plain numbers: the axes after the world, then those of the element type."""
        return (*self.shape[1:], *getattr(self.dtype, "_shape_", ()))

    @property
    def size(self) -> int:
        """Numbers of one world's value."""
        return math.prod(self.value_shape)

    @property
    def tangent_size(self) -> int:
        """Numbers of a small move of one world's value."""
        return self.manifold.tangent_size(self.size)

    @property
    def nbytes(self) -> int:
        """Bytes of one step's value."""
        size = wp.types.type_size_in_bytes(self.dtype)
        for extent in self.shape:
            size *= extent
        return size


@dataclass(frozen=True)
class Shortage:
    """What a step lacked: there were too few places for what it found.

    Attributes:
        world: That needed most.
        needed: Places it needed.
        places: Places there were.
    """

    world: int
    needed: int
    places: int


class Arrays(Mapping[str, wp.array]):
    """Arrays by field name, as a mapping (`state["q"]`) and as attributes (`state.q`)."""

    def __init__(self, kind: str, arrays: Mapping[str, wp.array]) -> None:
        """Names the group (`kind`, for error messages) and takes the arrays."""
        self._kind = kind
        self._arrays = dict(arrays)

    def __getitem__(self, name: str) -> wp.array:
        try:
            return self._arrays[name]
        except KeyError:
            raise unknown_name(self._kind, name, self._arrays) from None

    def __contains__(self, name: object) -> bool:
        return name in self._arrays

    def __getattr__(self, name: str) -> wp.array:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(str(error)) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)


@runtime_checkable
class Program(Protocol):
    """A step and the arrays it reads and writes; see the rules at the top of this file.

    Attributes:
        device: Where all arrays live.
        worlds: Number of independent worlds: axis 0 of every field.
        state: What the next step reads, and all that a checkpoint stores.
        inputs: What each step is given (controls).
        outputs: What each step reports and no later step reads (poses, forces, a running cost, a status).
        parameters: Arrays that every step reads. Those with a gradient accumulate it in place; axis 0 should be the
            world, so that no two worlds add into one element and the sum has one order.
    """

    device: wp.Device
    worlds: int
    state: tuple[Field, ...]
    inputs: tuple[Field, ...]
    outputs: tuple[Field, ...]
    parameters: Mapping[str, wp.array]

    def make_work(self, arena: Arena) -> Any:
        """Allocates all intermediates of one step, with `arena.array` only, in the same order at each call."""

    def step(
        self,
        state: Arrays,
        inputs: Arrays,
        work: Any,
        next_state: Arrays,
        outputs: Arrays,
        *,
        tape: wp.Tape | None,
    ) -> None:
        """Launches the kernels of one step.

        Args:
            state: Read only.
            inputs: Read only.
            work: What `make_work` returned, with zeroed accumulators.
            next_state: To be written.
            outputs: To be written.
            tape: None on a plain forward pass: launches that serve only the adjoint may be left out and no array has a
                gradient; `next_state` and `outputs` must get the same bits as with a tape. Otherwise the active tape,
                for `tape.record_func(adjoint, arrays=[…])`; such an adjoint launches kernels with `record_tape=False`
                and adds into the gradients of what the step read. It is called once, when the backward pass is
                captured.
        """


@runtime_checkable
class SplittableProgram(Program, Protocol):
    """A program whose worlds can be divided among CPU threads."""

    def split(self, groups: int) -> list[Program]:
        """Programs over contiguous world ranges, in world order, whose parameters are views of this one's.

        The programs must share nothing that a step writes.
        """


@runtime_checkable
class ExplainingProgram(Program, Protocol):
    """A program that can say why a step failed, better than the name of a kernel does."""

    def explain(self, work: Any, world: int) -> str | None:
        """The reason why a state is not finite after a step of this world that left these intermediates, if known."""


@runtime_checkable
class BoundedProgram(Program, Protocol):
    """A program whose steps find a varying number of things and have places for so many only.

    A step that finds more leaves a state, or adjoints, that are not finite.
    """

    def shortage(self, work: Any) -> Shortage | None:
        """What a recorded step that left these intermediates lacked, if anything."""


SlotValues = Callable[[wp.array], np.ndarray]
"""From an array among a slot's intermediates to its values in all slots of interest, (slots, …)."""


@runtime_checkable
class SolvingProgram(Program, Protocol):
    """A program whose steps solve equations by iteration, and whose adjoints are those of the solution."""

    def unsolved(self, work: Any, values: SlotValues) -> np.ndarray | None:
        """(slots, worlds) residuals of the worst solves that did not converge, 0 where all did; None: all converged."""
