"""The decisions behind a rollout: which contacts, zones of constraints, ranges that cut, impacts. No gradient is read.

Two runs with the same decisions at every step lie in one smooth piece of the simulation; only there do central
differences and the gradient have to agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import warp as wp

from warpsim.autograd.exchange import to_torch
from warpsim.core.stages import observe
from warpsim.coupling.compiled import CompiledScene
from warpsim.rigid.constraint.impact import LONGEST
from warpsim.rigid.constraint.zones import Zones
from warpsim.rigid.model.model import Model
from warpsim.rigid.step.impact_work import ImpactWork
from warpsim.rigid.step.program import RigidProgram
from warpsim.rigid.work.state import RungeKuttaWork, Work
from warpsim.tape import arena as arenas
from warpsim.tape.program import Arrays, Field

_SOLVE = "constraint.stage.newton"


@dataclass(frozen=True)
class StepModes:
    """Decisions of one step in all worlds.

    Attributes:
        saturated: (W, model.saturation_size) −1 or 1 where a range cuts.
        contacts: Per evaluation of the step, pair and feature of each contact in reach, (W, mc) each, −1 beyond.
        zones: Per solve, dofs of the groups and zones of the rows, (W, C) and (W, R).
        pushing: (W,) constraint rows that exert a force.
        impacts: Where impacts are resolved: (W, ntree) pair whose touch each tree goes back to and whether that is cut
            short, then (W, mc) roles of the contacts (compliant, pending, struck, held) before, at and after the touch.
    """

    saturated: np.ndarray
    contacts: tuple[tuple[np.ndarray, np.ndarray], ...]
    zones: tuple[tuple[np.ndarray, np.ndarray], ...]
    pushing: np.ndarray
    impacts: tuple[np.ndarray, ...] = ()

    def signature(self, world: int) -> bytes:
        """Equal for equal decisions."""
        parts = [self.saturated[world]]
        parts += [array[world] for pair in (*self.contacts, *self.zones) for array in pair]
        parts += [array[world] for array in self.impacts]
        return b"|".join(np.ascontiguousarray(part, dtype=np.int32).tobytes() for part in parts)


class ModeObserver:
    """Takes single steps from given states and reads what they decided."""

    def __init__(self, compiled: CompiledScene, controls: tuple[str, ...]) -> None:
        """Captures one step of a scene whose parameters are in force.

        Args:
            compiled: And derived.
            controls: Names of the controls that are given.
        """
        self.model = model = compiled.model
        outputs = ("saturated",) if model.nu + model.nd else ()
        program: Any = compiled.program(controls, outputs)
        arena = arenas.Arenas(program.device, arenas.measure(program), 1, gradients=False)[0]
        work = program.make_work(arena)
        self._state = _arrays("state", program.state, model)
        self._inputs = _arrays("input", program.inputs, model)
        self._outputs = _arrays("output", program.outputs, model)
        after = _arrays("state", program.state, model)
        rigid, body_work = (program, work) if isinstance(program, RigidProgram) else (program.rigid, work.rigid)
        self._evaluations = [] if body_work is None else body_work.solves
        impact = None if body_work is None else body_work.step
        self._impact = impact if isinstance(impact, ImpactWork) else None
        self._zones: list[Zones] = []
        self._views: dict[tuple, np.ndarray] = {}

        def watch(name: str, run: Callable[[], None]) -> None:
            run()
            if name == _SOLVE and scratch is not None:
                place = self._places[len(self._zones)]
                place.read(model, scratch)
                self._zones.append(place)

        scratch = None if rigid is None else rigid.scratch.constraint
        self._places = [Zones(model, scratch) for _ in self._evaluations] if scratch is not None else []
        with observe(watch), wp.ScopedCapture(device=program.device) as capture:
            arena.zero_accumulators()
            program.step(self._state, self._inputs, work, after, self._outputs, tape=None)
        self._graph, self._alive = capture.graph, (arena, work, after, program)

    def modes(self, states: Mapping[str, torch.Tensor], controls: Mapping[str, torch.Tensor]) -> Iterator[StepModes]:
        """Decisions of the steps from given states.

        Args:
            states: Differentiable state fields, (at least N, W, …) each.
            controls: By name, (N, W, …) each; all that the observer was made for.
        """
        steps = len(next(iter(controls.values())))
        given = [(to_torch(array), states[name].detach()) for name, array in self._state.items() if name in states]
        given += [(to_torch(array), controls[name].detach()) for name, array in self._inputs.items()]
        for k in range(steps):
            for place, values in given:
                place.copy_(values[k])
            wp.capture_launch(self._graph)
            yield self._read()

    def _read(self) -> StepModes:
        worlds = self.model.worlds
        contacts, zones, pushing = [], [], np.zeros(worlds, dtype=int)
        for evaluation in self._evaluations:
            c = evaluation.constraint
            if c is not None and self.model.max_contacts:
                used = np.arange(c.contacts.pair.shape[1]) < self._host(c.contacts.count)[:, None]
                pair, feature = self._host(c.contacts.pair), self._host(c.contacts.feature)
                contacts.append((np.where(used, pair, -1), np.where(used, feature, -1)))
        for place in self._zones:
            zone = self._host(place.zone).copy()
            zones.append((self._host(place.column).copy(), zone))
            pushing = np.maximum(pushing, (zone > 1).sum(axis=1))
        saturated = np.zeros((worlds, 0), dtype=np.int32)
        if "saturated" in self._outputs:
            saturated = self._host(self._outputs.saturated).copy()
        return StepModes(saturated, tuple(contacts), tuple(zones), pushing, self._read_impacts())

    def _read_impacts(self) -> tuple[np.ndarray, ...]:
        work = self._impact
        if work is None:
            return ()
        assert work.touch.constraint is not None
        first, pair = self._host(work.first), self._host(work.touch.constraint.contacts.pair)
        struck = np.where(first >= 0, np.take_along_axis(pair, np.maximum(first, 0), axis=1), -1)
        longest = float(LONGEST) * self._host(self.model.world.timestep)[:, None]
        cut = self._host(work.back) >= longest
        free = work.free.evaluations if isinstance(work.free, RungeKuttaWork) else [work.free]
        return (struck, cut, *(self._roles(evaluation) for evaluation in (*free, work.strike, work.rest)))

    def _roles(self, work: Work) -> np.ndarray:
        """(W, mc) roles of contacts, −1 beyond those in reach."""
        c = work.constraint
        assert c is not None
        role = self._host(c.role)
        return np.where(np.arange(role.shape[1]) < self._host(c.contacts.count)[:, None], role, -1)

    def _host(self, array: wp.array) -> np.ndarray:
        """What an array holds now: on the CPU one view of its memory, made once."""
        if not array.device.is_cpu:
            return array.numpy()
        place = (array.ptr, array.shape, array.dtype)  # which lives as long as this object
        if place not in self._views:
            self._views[place] = array.numpy()
        return self._views[place]


def _arrays(kind: str, fields: tuple[Field, ...], model: Model) -> Arrays:
    return Arrays(kind, {f.name: wp.zeros(f.shape, dtype=f.dtype, device=model.device) for f in fields})
