"""`CompiledScene`: rigid bodies and other matters seen as one: named fields, parameters, initial values, programs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import warp as wp

from warpsim.core.errors import InputError, RangeError
from warpsim.coupling.fields import scene_fields, scene_name
from warpsim.coupling.program import CoupledProgram
from warpsim.matter.matter import CompileContext, Matter
from warpsim.rigid.compile.compile import compile_model
from warpsim.rigid.compile.derive import Derivation
from warpsim.rigid.model.fields import control_fields, observable_fields, output_fields
from warpsim.rigid.model.model import Model
from warpsim.rigid.model.parameter_checks import check_parameter_values
from warpsim.rigid.step.program import RigidProgram
from warpsim.rigid.work.state import state_fields
from warpsim.scene import Scene
from warpsim.scene.matters import matter_kind
from warpsim.tape.program import Field


@dataclass(frozen=True)
class CompiledScene:
    """A scene ready to step.

    Attributes:
        model: Its rigid bodies.
        matters: What else there is; a scene without takes the rigid program's way alone.
    """

    model: Model
    matters: tuple[Matter, ...] = ()

    @property
    def worlds(self) -> int:
        """W."""
        return self.model.worlds

    @property
    def device(self) -> wp.Device:
        """Where everything lives."""
        return self.model.device

    @property
    def has_bodies(self) -> bool:
        """Whether the state has coordinates of bodies."""
        return bool(self.model.nv) or not self.matters

    @cached_property
    def state(self) -> tuple[Field, ...]:
        """Fields of the state: the bodies' first."""
        rigid = state_fields(self.model) if self.has_bodies else ()
        return (*rigid, *(f for m in self.matters for f in scene_fields(m, m.state)))

    @cached_property
    def controls(self) -> dict[str, Field]:
        """Everything that a step can be given."""
        rigid = control_fields(self.model) if self.has_bodies else {}
        return {**rigid, **{f.name: f for m in self.matters for f in scene_fields(m, m.controls)}}

    @cached_property
    def observables(self) -> dict[str, Field]:
        """Outputs that are functions of a state alone."""
        own = {f.name: f for m in self.matters for f in scene_fields(m, m.observables)}
        return {**observable_fields(self.model), **own}

    @cached_property
    def outputs(self) -> dict[str, Field]:
        """Everything that a rollout can report."""
        rigid = output_fields(self.model) if self.has_bodies else observable_fields(self.model)
        return {**rigid, **{f.name: f for m in self.matters for f in scene_fields(m, (*m.outputs, *m.observables))}}

    @property
    def authored(self) -> dict[str, wp.array]:
        """Parameters that users set, (W, n, …) each."""
        return {**self.model.authored, **{scene_name(m, n): a for m in self.matters for n, a in m.authored.items()}}

    @property
    def physical(self) -> dict[str, wp.array]:
        """Parameters that steps read, (W, n, …) each."""
        return {**self.model.physical, **{scene_name(m, n): a for m in self.matters for n, a in m.physical.items()}}

    @property
    def described(self) -> dict[str, np.ndarray]:
        """The scene's own values of the authored parameters, float64, (n, …) each."""
        own = {
            scene_name(m, n): np.asarray(value, dtype=np.float64)
            for m in self.matters
            for n, value in m.description.parameters.items()
        }
        return {**self.model.described, **own}

    @property
    def initial(self) -> dict[str, np.ndarray]:
        """The scene's own initial state by differentiable field, one world's, as far as it has one; others are zero."""
        m = self.model
        rigid = {"q": m.initial_q, "qd": m.initial_qd, "activation": m.initial_activation}
        own = {
            scene_name(m, n): np.asarray(value, dtype=np.float64)
            for m in self.matters
            for n, value in m.description.initial.items()
        }
        return {**rigid, **own}

    def program(self, controls: Sequence[str], outputs: Sequence[str]) -> RigidProgram | CoupledProgram:
        """Steps with these inputs and outputs."""
        if self.matters:
            return CoupledProgram(self.model, self.matters, controls=controls, outputs=outputs)
        if not self.model.nv:
            raise InputError(
                "nothing in this scene can move, so there is nothing to simulate; `warpsim inspect` shows what was "
                "read (a body needs PhysicsRigidBodyAPI to move)"
            )
        return RigidProgram(self.model, controls=controls, outputs=outputs)

    def check_values(self, name: str, values: np.ndarray) -> None:
        """Raises `RangeError` where an authored array, (W, n, …), holds a number that cannot be simulated with."""
        described = self.described[name]
        positive = name in {scene_name(m, n) for m in self.matters for n in m.description.positive}
        check_parameter_values(name, values, described)
        if positive and not (values > 0.0).all():
            worlds = np.flatnonzero((values <= 0.0).reshape(len(values), -1).any(1)).tolist()
            raise RangeError(f"parameter {name!r} was given {values.min():g}; it must be above 0", worlds)

    def require_gradients(self, names: Sequence[str]) -> None:
        """Lets authored parameters carry gradients; call before a rollout is recorded."""
        self.model.require_gradients([name for name in names if name in self.model.authored])
        for matter in self.matters:
            wanted = [n for n in matter.authored if scene_name(matter, n) in names]
            for array in (*(matter.authored[n] for n in wanted), *(matter.physical.values() if wanted else ())):
                array.requires_grad = True


def compile_scene(scene: Scene, *, worlds: int = 1, device: str | wp.Device = "cpu") -> CompiledScene:
    """Compiles rigid bodies and all other matters of a scene."""
    model = compile_model(scene, worlds=worlds, device=device)
    context = CompileContext(worlds, model.device, model.layout.body_names, scene)
    matters = tuple(matter_kind(d.kind).compile(d, context) for d in scene.matters)
    for matter in matters:
        matter.check()
    return CompiledScene(model, matters)


class SceneDerivation:
    """Authored → physical parameters of a whole scene, once per rollout, on tapes of their own."""

    def __init__(self, compiled: CompiledScene) -> None:
        self._rigid = Derivation(compiled.model)
        self._matters = compiled.matters
        self._tape: wp.Tape | None = None

    def run(self, *, record: bool = False) -> None:
        """Derives; with `record`, on a tape, for physical parameters that carry gradients."""
        self._rigid.run(record=record)
        self._tape = wp.Tape() if record and self._matters else None
        with nullcontext() if self._tape is None else self._tape:
            for matter in self._matters:
                matter.derive()

    def backward(self) -> None:
        """Adds to the authored gradients what the physical ones imply; the latter are consumed."""
        self._rigid.backward()
        if self._tape is not None:
            self._tape.backward()
