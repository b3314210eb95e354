"""Observing one state outside a step, with the adjoint: frame 0 of a trajectory's outputs."""

from __future__ import annotations

from collections.abc import Mapping

import warp as wp

from warpsim.coupling.compiled import CompiledScene
from warpsim.coupling.fields import own_arrays, scene_fields
from warpsim.coupling.program import no_motion
from warpsim.rigid.model.fields import observable_fields
from warpsim.rigid.step.observe import make_observation, observe
from warpsim.tape import arena as arenas
from warpsim.tape.frames import Block, Blocks
from warpsim.tape.graph import Replay, capture
from warpsim.tape.program import Arrays


class StateObserver:
    """Evaluates observables on a given state, and their adjoints.

    Attributes:
        names: Outputs it makes.
        state_dtypes: Element type of each field of the state that it reads.
        output_dtypes: Element type of each output.
    """

    def __init__(self, compiled: CompiledScene, names: tuple[str, ...]) -> None:
        """Allocates.

        Args:
            compiled: Whose states are observed.
            names: Outputs, from `CompiledScene.observables`.
        """
        self.names = names
        self._model = compiled.model
        self._matters = [m for m in compiled.matters if any(f.name in names for f in scene_fields(m, m.observables))]
        rigid = observable_fields(compiled.model)
        self._rigid = tuple(name for name in names if name in rigid)
        fields, device = compiled.observables, compiled.device
        self.output_dtypes = {name: fields[name].dtype for name in names}
        own = {f.name for m in self._matters for f in scene_fields(m, m.state)}
        read = [f for f in compiled.state if f.differentiable and (f.name in ("q", "qd") or f.name in own)]
        self.state_dtypes = {f.name: f.dtype for f in read}
        self._state = Arrays(
            "state",
            {f.name: wp.zeros(f.shape, dtype=f.dtype, device=device, requires_grad=True) for f in read},
        )
        self._bodies = self._state if compiled.has_bodies else no_motion(compiled.model)
        self._outputs = {
            n: wp.zeros(fields[n].shape, dtype=fields[n].dtype, device=device, requires_grad=True) for n in names
        }
        self._arena = arenas.Arenas(device, arenas.measure(self), 1, gradients=True)[0]
        self._work = self.make_work(self._arena)
        self._seen, self._made = _frames(self._state), _frames(self._outputs)
        self._pulled, self._seeds = (
            _frames({name: array.grad for name, array in arrays.items()}) for arrays in (self._state, self._outputs)
        )
        self._observe: Replay | None = None
        self._pull: dict[tuple[str, ...], Replay] = {}  # by the outputs that have adjoints

    @property
    def device(self) -> wp.Device:
        """Where everything lives."""
        return self._model.device

    def make_work(self, arena: arenas.Arena):
        """Intermediates of one observation."""
        return make_observation(self._model, arena, self._rigid)

    def forward(self, state: Blocks) -> Blocks:
        """The outputs of a state, one frame each as the state's; valid until the next call."""
        if self.names:
            self._load(state)
            if self._observe is None:
                self._observe = capture(self.device, lambda: self._launch(self.names))
            self._observe()
        return self._made

    def backward(self, state: Blocks, seeds: Blocks) -> Blocks:
        """Adjoints of the state for adjoints of some outputs; those of parameters are added to their gradients.

        The frames returned are valid until the next call.
        """
        self._load(state)
        for block in (*self._pulled.values(), *self._seeds.values()):
            block.zero(0, 1)
        for name, seed in seeds.items():
            self._seeds[name].copy_from(0, seed, 0, 1)
        seeded = tuple(seeds)
        if seeded not in self._pull:
            self._pull[seeded] = capture(self.device, lambda: self._launch_adjoint(seeded))
        self._pull[seeded]()
        return self._pulled

    def _load(self, state: Blocks) -> None:
        for name, block in self._seen.items():
            block.copy_from(0, state[name], 0, 1)

    def _launch(self, names: tuple[str, ...]) -> None:
        rigid = [name for name in names if name in self._rigid]
        if rigid or not self._matters:
            observe(self._model, self._bodies, self._work, self._outputs, rigid)
        wanted = {name: self._outputs[name] for name in names}
        for matter in self._matters:
            shown = own_arrays(matter, "outputs", matter.observables, wanted)
            if shown:
                matter.observe(own_arrays(matter, "state", matter.state, self._state), shown)

    def _launch_adjoint(self, names: tuple[str, ...]) -> None:
        self._arena.zero_adjoints()
        with wp.Tape() as tape:
            self._launch(names)
        tape.backward()


def _frames(arrays: Mapping[str, wp.array]) -> Blocks:
    """Each array as the only frame of a block."""
    return {name: Block(array.reshape((1, *array.shape))) for name, array in arrays.items()}
