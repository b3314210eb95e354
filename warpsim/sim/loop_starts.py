"""The stored segment starts of a closed loop in torch, and how the others are reached again.

The schedules are the tape's: what it does with frames of packed states happens here with tensors, since the policy that
runs between steps is torch's.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.autograd.graph import saved_tensors_hooks

from warpsim.tape import revolve
from warpsim.tape.schedule import Plan
from warpsim.tape.snapshots import Snapshots

Carried = tuple[torch.Tensor, ...]
"""What one segment hands to the next."""


class LoopStarts:
    """What segments of a closed loop start from, stored as a plan allows."""

    def __init__(self, plan: Plan, advance: Callable[[int, Carried], Carried], device: torch.device) -> None:
        """Stores nothing yet.

        Args:
            plan: How the loop is cut.
            advance: Runs a segment: its number and what it starts from → what the next one starts from.
            device: Where the policy draws its random numbers, besides the CPU.
        """
        self._snapshots = Snapshots(plan)
        self._advance = advance
        self._devices = [device] if device.type == "cuda" else []
        self._kept: dict[int, tuple[Carried, list[torch.Tensor]]] = {}  # by frame
        self._differentiable: list[tuple[bool, ...]] = []  # by segment
        self._next = 0

    def passed(self, segment: int, carried: Carried) -> None:
        """The forward pass has come to the start of a segment: stores it where the schedule wants that."""
        self._differentiable.append(tuple(tensor.requires_grad for tensor in carried))
        if segment == self._next:
            self._store(self._snapshots.push(segment) if segment else 0, carried)
            self._next = self._snapshots.next_store()

    def reach(self, segment: int) -> Carried:
        """What a segment starts from, out of the graph, as it is to be recorded now; later ones are done with."""
        stack = self._snapshots
        while not stack.complete and stack.stored[-1] > segment:
            self._kept.pop(stack.frames[-1])
            stack.pop()
        stored, frame = stack.nearest(segment)
        carried, numbers = self._kept[frame]
        if stored < segment:
            # nothing here belongs to the graph that is being recorded, whatever the policy differentiates by itself
            with torch.random.fork_rng(self._devices), torch.no_grad(), saved_tensors_hooks(_same, _same):
                self._set_random(numbers)
                for first, stop, store in revolve.approach(stored, segment, 1 + len(stack.free)):
                    for number in range(first, stop):
                        carried = self._advance(number, carried)
                    if store:
                        self._store(stack.push(stop), carried)
        wanted = self._differentiable[segment]
        return tuple(t.detach().requires_grad_(w) for t, w in zip(carried, wanted, strict=True))

    def _store(self, frame: int, carried: Carried) -> None:
        numbers = [torch.get_rng_state(), *(torch.cuda.get_rng_state(device) for device in self._devices)]
        self._kept[frame] = tuple(tensor.detach() for tensor in carried), numbers

    def _set_random(self, numbers: list[torch.Tensor]) -> None:
        torch.set_rng_state(numbers[0])
        for device, state in zip(self._devices, numbers[1:], strict=True):
            torch.cuda.set_rng_state(state, device)


def _same(tensor: torch.Tensor) -> torch.Tensor:
    return tensor
