"""A program in closed loop with a network: what it asked for last, and what is still on its way, is state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from warpsim.core.precision import numpy_real, real
from warpsim.coupling.program import CoupledProgram
from warpsim.policy.network import Network, NetworkWork
from warpsim.rigid.step.program import RigidProgram
from warpsim.tape.arena import Arena
from warpsim.tape.program import Arrays, Field, Shortage, SlotValues


@wp.kernel
def _queue_kernel(
    hold: int,
    center: wp.array(dtype=real),
    reach: wp.array(dtype=real),
    # state
    phase: wp.array(dtype=wp.int32),
    pending: wp.array3d(dtype=real),
    # work in
    layers: wp.array2d(dtype=real),
    answer: int,
    # out
    next_phase: wp.array(dtype=wp.int32),
    next_pending: wp.array3d(dtype=real),
):
    """Puts the newest answer last, if one was asked for; the oldest goes."""
    w, i = wp.tid()
    newest = pending.shape[1] - 1
    asked = phase[w] % hold == 0
    for k in range(newest):
        if asked:
            next_pending[w, k, i] = pending[w, k + 1, i]
        else:
            next_pending[w, k, i] = pending[w, k, i]
    if asked:
        next_pending[w, newest, i] = center[i] + reach[i] * layers[w, answer + i]
    else:
        next_pending[w, newest, i] = pending[w, newest, i]
    if i == 0:
        next_phase[w] = phase[w] + 1


@wp.kernel
def _control_kernel(
    hold: int,
    delay: int,
    first: int,
    # state
    phase: wp.array(dtype=wp.int32),
    next_pending: wp.array3d(dtype=real),
    # out
    control: wp.array2d(dtype=real),
):
    """Takes the control that acts now: `age` answers before the newest."""
    w, i = wp.tid()
    p = phase[w]
    # integer division rounds toward zero, and a control that has not been asked for yet is older than all
    late = p - delay
    acting = late // hold
    if late < 0:
        acting = -((hold - 1 - late) // hold)
    age = p // hold - acting
    control[w, i] = next_pending[w, next_pending.shape[1] - 1 - age, first + i]


@dataclass
class ClosedLoopWork:
    """Intermediates of one step in closed loop."""

    network: NetworkWork
    controls: dict[str, wp.array]
    step: Any


class ClosedLoopProgram:
    """A program whose inputs come from a network.

    Attributes: as in `RigidProgram`; the state has two more fields, `pending` (W, answers, controls), the controls
    asked for and not yet replaced, and `phase` (W,), steps taken.
    """

    def __init__(self, plant: RigidProgram | CoupledProgram, network: Network) -> None:
        """Puts the two together.

        Args:
            plant: With the network's controls as inputs, in the same order.
            network: Of as many worlds.
        """
        spec, worlds = network.spec, plant.worlds
        self.plant, self.network = plant, network
        self.device, self.worlds = plant.device, worlds
        self.state = (*plant.state, *closed_loop_fields(network))
        self.inputs: tuple[Field, ...] = ()
        self.outputs = plant.outputs
        self.parameters: Mapping[str, wp.array] = {**plant.parameters, "policy.weights": network.weights}
        self._center, self._reach = (
            wp.array(np.array(values, numpy_real), dtype=real, device=self.device)
            for values in (spec.center, spec.reach)
        )

    def make_work(self, arena: Arena) -> ClosedLoopWork:
        """Intermediates of one step."""
        network = self.network.make_work(arena)
        controls = {f.name: arena.array(f.shape, f.dtype) for f in self.plant.inputs}
        return ClosedLoopWork(network, controls, self.plant.make_work(arena))

    def step(
        self,
        state: Arrays,
        inputs: Arrays,
        work: ClosedLoopWork,
        next_state: Arrays,
        outputs: Arrays,
        *,
        tape: wp.Tape | None,
    ) -> None:
        """Asks the network if it is time, and takes one step of the plant under the control that acts."""
        spec = self.network.spec
        self.network.evaluate(state.phase, state.q, state.qd, work.network, tape)
        wp.launch(
            _queue_kernel,
            dim=(self.worlds, spec.widths[-1]),
            inputs=[
                spec.hold,
                self._center,
                self._reach,
                state.phase,
                state.pending,
                work.network.layers,
                self.network.answer,
            ],
            outputs=[next_state.phase, next_state.pending],
            device=self.device,
        )
        first = 0
        for name, size in zip(spec.controls, spec.sizes, strict=True):
            wp.launch(
                _control_kernel,
                dim=(self.worlds, size),
                inputs=[spec.hold, spec.delay, first, state.phase, next_state.pending],
                outputs=[work.controls[name]],
                device=self.device,
            )
            first += size
        controls = Arrays("input", work.controls)
        self.plant.step(state, controls, work.step, next_state, outputs, tape=tape)

    def explain(self, work: ClosedLoopWork, world: int) -> str | None:
        """Why a step gave numbers that are not finite, if the plant knows."""
        return self.plant.explain(work.step, world)

    def shortage(self, work: ClosedLoopWork) -> Shortage | None:
        """Places for contacts that a recorded step lacked."""
        return self.plant.shortage(work.step)

    def unsolved(self, work: ClosedLoopWork, values: SlotValues) -> np.ndarray | None:
        """Where the plant's solver did not converge."""
        return self.plant.unsolved(work.step, values)

    def split(self, groups: int) -> list[ClosedLoopProgram]:
        """Programs over contiguous ranges of worlds, sharing this one's parameters."""
        parts, first = [], 0
        for plant in self.plant.split(groups):
            parts.append(ClosedLoopProgram(plant, self.network.part(first, first + plant.worlds)))
            first += plant.worlds
        return parts


def closed_loop_fields(network: Network) -> tuple[Field, Field]:
    """The state that a closed loop has besides the plant's: all zero at the start."""
    spec, worlds = network.spec, network.worlds
    return (
        Field("pending", (worlds, spec.pending, spec.widths[-1]), real),
        Field("phase", (worlds,), wp.int32, differentiable=False),
    )
