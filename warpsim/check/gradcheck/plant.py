"""A step whose stages are watched one by one: bodies and what is around them, without impacts and outputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import warp as wp

from warpsim.coupling.compiled import CompiledScene
from warpsim.coupling.program import CoupledProgram, CoupledWork
from warpsim.rigid.step import step
from warpsim.rigid.step.step import Partner
from warpsim.rigid.work.state import RungeKuttaWork, make_runge_kutta_work, make_scratch, make_work
from warpsim.tape.arena import Arena
from warpsim.tape.program import Arrays


@dataclass
class PlantWork:
    """Intermediates of a plain step of bodies, and of the matters around them."""

    bodies: Any
    coupled: CoupledWork | None


class Plant:
    """A step without impacts and outputs, whose stages are watched.

    Attributes:
        partner: What the last step solved for together with the bodies.
    """

    def __init__(self, compiled: CompiledScene) -> None:
        self.device, self._model = compiled.device, compiled.model
        self.scratch = make_scratch(compiled.model)
        self.partner: Partner | None = None
        self._program = CoupledProgram(compiled.model, compiled.matters, controls=()) if compiled.matters else None
        self._make = make_runge_kutta_work if compiled.model.options.integrator == "rk4" else make_work

    def make_work(self, arena: Arena) -> PlantWork:
        """Intermediates of one step."""
        coupled = None if self._program is None else self._program.make_work(arena)
        return PlantWork(self._make(self._model, arena), coupled)

    def step(
        self, state: Arrays, control: Arrays, work: Any, coupled: CoupledWork | None, after: Arrays, tape: Any
    ) -> None:
        """All stages of one step."""
        if self._program is None or coupled is None:
            self._bodies(state, control, work, after, tape)
        else:
            self._program.around(
                state,
                control,
                coupled,
                after,
                lambda given, partner: self._bodies(state, given, work, after, tape, partner),
            )

    def _bodies(
        self,
        state: Arrays,
        control: Arrays,
        work: Any,
        after: Arrays,
        tape: Any,
        partner: Partner | None = None,
    ) -> None:
        self.partner = partner
        if isinstance(work, RungeKuttaWork):
            step.runge_kutta(self._model, state, control, work, self.scratch, after, tape)
        else:
            step.euler(self._model, state, control, work, self.scratch, after, tape, partner)


class NoTape:
    """Stands where a step wants a tape: stages bring their own, and the solve is checked as a whole."""

    def record_func(self, backward: Callable[[], None], arrays: list[wp.array]) -> None:
        """Forgets the adjoint."""
