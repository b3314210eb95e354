"""What of a simulator is saved beside what it was made from."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from warpsim.core.errors import SceneError
from warpsim.engine.engine import ParameterValues
from warpsim.sim.attributes.attribute import Attribute
from warpsim.sim.current_state import CurrentState
from warpsim.sim.initial_state import StateTensors
from warpsim.sim.parameters_in_force import ParametersInForce


@dataclass(frozen=True)
class SavedState:
    """Parameters in force and the state of a simulator; plain numbers, out of torch's graph.

    Attributes:
        parameters: As `set_parameters` takes them.
        reset_to: What the last reset gave.
        state: The current state.
        steps: Taken since that reset.
        checksum: Of the scene's own parameters: a file may have changed before it is read again.
    """

    parameters: Mapping[str | Attribute, Any]
    reset_to: StateTensors
    state: StateTensors
    steps: int
    checksum: int

    @classmethod
    def of(cls, parameters: ParametersInForce, state: CurrentState, defaults: ParameterValues) -> SavedState:
        """Copies what a simulator holds now.

        Args:
            parameters: In force.
            state: The current one.
            defaults: The scene's own parameter values.
        """
        used = parameters.current
        given: dict[str | Attribute, Any] = {name: used.parameters.tensors[name] for name in used.named}
        given |= {attribute.path: value for attribute, value in used.attributes.items()}
        return cls(
            {name: _plain(value) for name, value in given.items()},
            {name: _plain(value) for name, value in state.reset_to.items()},
            {name: _plain(value) for name, value in state.values.items()},
            state.steps,
            _checksum(defaults),
        )

    def restore(self, parameters: ParametersInForce, state: CurrentState, defaults: ParameterValues, name: str) -> None:
        """Brings a simulator that was made in the same way to this state.

        Args:
            parameters: Its parameters.
            state: Its state.
            defaults: The scene's own parameter values.
            name: Of its file or scene.

        Raises:
            SceneError: Its file is not what it was.
        """
        if _checksum(defaults) != self.checksum:
            raise SceneError(
                f"{name} is not what it was when the simulator was saved: its parameters differ; restore the file, or "
                "make a new simulator"
            )
        parameters.set_parameters(self.parameters)
        state.reset_to, state.values, state.steps = dict(self.reset_to), dict(self.state), self.steps


def _plain(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def _checksum(values: ParameterValues) -> int:
    found = 0
    for name in sorted(values):
        found = zlib.crc32(values[name].numpy().tobytes(), found)
    return found
