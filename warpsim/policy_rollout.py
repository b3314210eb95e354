"""Closed loops: a torch policy between steps, differentiated in bounded memory.

The loop is cut into segments. Only the state (and pending controls) at segment starts is kept; the backward pass runs
each segment again, policy included, and differentiates it, last segment first. So the policy's activations are held for
one segment at a time, whatever the horizon.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.utils.checkpoint import checkpoint

from warpsim.controls import ControlLayout
from warpsim.errors import InputError
from warpsim.initial import StateTensors
from warpsim.torch_parameters import Parameters
from warpsim.torch_step import Stepper
from warpsim.trajectory import Observed

Policy = Callable[[Observed], torch.Tensor]


@dataclass(frozen=True)
class Timing:
    """When a policy is asked and when its answer acts.

    Attributes:
        hold: Steps for which each control is held; the policy is asked every so many steps.
        delay: Steps after which a control acts; until the first one does, controls are zero.
        segment: Steps that are differentiated at a time; None: the square root of their number.
    """

    hold: int = 1
    delay: int = 0
    segment: int | None = None

    def __post_init__(self) -> None:
        if self.hold < 1 or self.delay < 0 or (self.segment is not None and self.segment < 1):
            raise InputError(
                f"hold={self.hold} and segment={self.segment} must be 1 or more, delay={self.delay} 0 or more"
            )

    @property
    def pending(self) -> int:
        """Controls that must be remembered: the newest and those not yet replaced by it."""
        return -(-self.delay // self.hold) + 1

    def age(self, step: int) -> int:
        """How many controls back the one is that acts at this step."""
        return step // self.hold - (step - self.delay) // self.hold


class ClosedLoop:
    """Runs a policy with a stepper."""

    def __init__(
        self,
        stepper: Stepper,
        layout: ControlLayout,
        show: Callable[[StateTensors, dict[str, torch.Tensor]], Observed],
        parameters: Parameters,
        outputs: tuple[str, ...],
    ) -> None:
        """Puts the parts together.

        Args:
            stepper: Takes the steps.
            layout: How a policy's answer becomes controls.
            show: Makes what the policy sees from a state and its outputs.
            parameters: In force.
            outputs: To be shown to the policy and kept.
        """
        self._stepper = stepper
        self._layout = layout
        self._show = show
        self._parameters = parameters
        self._outputs = outputs

    def run(
        self, policy: Policy, timing: Timing, steps: int, state: StateTensors, observed: dict[str, torch.Tensor]
    ) -> dict[str, torch.Tensor]:
        """Trajectories of states and outputs, (steps + 1, W, …) each.

        Args:
            policy: Maps what is observed to controls.
            timing: When it is asked.
            steps: How many.
            state: Initial state.
            observed: Its outputs.
        """
        length = timing.segment or math.isqrt(steps - 1) + 1
        rest = torch.zeros(self._layout.worlds, self._layout.size, dtype=state["q"].dtype, device=state["q"].device)
        names = (*state, *observed)
        carried = (*state.values(), *observed.values(), *[rest] * timing.pending)
        kept: list[tuple[torch.Tensor, ...]] = [carried[: len(names)]]
        for first in range(0, steps, length):
            count = min(length, steps - first)

            def segment(*tensors: torch.Tensor, first: int = first, count: int = count) -> tuple[torch.Tensor, ...]:
                return self._segment(policy, timing, first, count, tuple(state), tensors)

            made = checkpoint(segment, *carried, use_reentrant=False)
            rows = [made[i * len(names) : (i + 1) * len(names)] for i in range(count)]
            kept += rows
            carried = (*rows[-1], *made[count * len(names) :])
        return {name: torch.stack([row[i] for row in kept]) for i, name in enumerate(names)}

    def _segment(
        self, policy: Policy, timing: Timing, first: int, count: int, fields: tuple[str, ...], tensors: tuple
    ) -> tuple[torch.Tensor, ...]:
        """States and outputs after each step, then the controls still pending."""
        a, b = len(fields), len(fields) + len(self._outputs)
        state = dict(zip(fields, tensors[:a], strict=True))
        observed = dict(zip(self._outputs, tensors[a:b], strict=True))
        controls = list(tensors[b:])
        made: list[torch.Tensor] = []
        for step in range(first, first + count):
            if step % timing.hold == 0:
                asked = policy(self._show(state, observed))
                controls = [*controls[1:], self._layout.whole(asked)]
            given = self._layout.split(controls[-1 - timing.age(step)], None)
            state, observed = self._stepper.advance(state, given, self._parameters, self._outputs, step)
            made += [*state.values(), *observed.values()]
        return (*made, *controls)
