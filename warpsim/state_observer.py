"""Observing one state outside a step, with the adjoint: row 0 of a trajectory's outputs."""

from __future__ import annotations

from collections.abc import Mapping

import warp as wp

from warpsim.model.model import Model
from warpsim.observe import make_observation, observable_fields, observe
from warpsim.precision import real
from warpsim.tape import arena as arenas
from warpsim.tape.program import Arrays


class StateObserver:
    """Evaluates `observe` on a given state, and its adjoint.

    Attributes:
        names: Outputs it makes.
        dtype: Element type of q and qd.
        output_dtypes: Element type of each output.
    """

    dtype = real

    def __init__(self, model: Model, names: tuple[str, ...]) -> None:
        """Allocates.

        Args:
            model: Whose states are observed.
            names: Outputs, from `observable_fields`.
        """
        self.names = names
        self._model = model
        fields = observable_fields(model)
        self.output_dtypes = {name: fields[name].dtype for name in names}
        w, device = model.worlds, model.device
        self._state = Arrays(
            "state",
            {
                "q": wp.zeros((w, model.nq), dtype=real, device=device, requires_grad=True),
                "qd": wp.zeros((w, model.nv), dtype=real, device=device, requires_grad=True),
            },
        )
        self._outputs = {
            n: wp.zeros(fields[n].shape, dtype=fields[n].dtype, device=device, requires_grad=True) for n in names
        }
        self._arena = arenas.allocate(device, arenas.measure(self), 1, gradients=True)[0]
        self._work = self.make_work(self._arena)

    @property
    def device(self) -> wp.Device:
        """Where everything lives."""
        return self._model.device

    def make_work(self, arena: arenas.Arena):
        """Intermediates of one observation."""
        return make_observation(self._model, arena, self.names)

    def forward(self, state: Mapping[str, wp.array]) -> dict[str, wp.array]:
        """The outputs of a state; valid until the next call."""
        if self.names:
            self._load(state)
            observe(self._model, self._state, self._work, self._outputs, self.names)
        return self._outputs

    def backward(self, state: Mapping[str, wp.array], seeds: Mapping[str, wp.array]) -> dict[str, wp.array]:
        """Adjoints of `q` and `qd` for adjoints of some outputs; those of parameters are added to their gradients.

        The arrays returned are valid until the next call.
        """
        self._load(state)
        for array in self._state.values():
            array.grad.zero_()
        if seeds:
            self._arena.zero_adjoints()
            for name, output in self._outputs.items():
                output.grad.zero_()
                if name in seeds:
                    wp.copy(output.grad, seeds[name])
            with wp.Tape() as tape:
                observe(self._model, self._state, self._work, self._outputs, tuple(seeds))
            tape.backward()
        return {name: array.grad for name, array in self._state.items()}

    def _load(self, state: Mapping[str, wp.array]) -> None:
        for name, array in self._state.items():
            wp.copy(array, state[name])
