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
from warpsim.sim.initial_state import StateTensors
from warpsim.sim.stepping import Stepping


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
    def of(cls, sim: Stepping) -> SavedState:
        """Copies what a simulator holds now."""
        with sim._engine.turn:
            used = sim._in_force
            parameters = {name: used.parameters.tensors[name] for name in used.named}
            parameters |= {attribute.path: value for attribute, value in used.attributes.items()}
            return cls(
                {name: _plain(value) for name, value in parameters.items()},
                {name: _plain(value) for name, value in sim._reset_to.items()},
                {name: _plain(value) for name, value in sim._state.items()},
                sim._steps_taken,
                _checksum(sim._engine.defaults),
            )

    def restore(self, sim: Stepping) -> None:
        """Brings a simulator that was made in the same way to this state.

        Raises:
            SceneError: Its file is not what it was.
        """
        if _checksum(sim._engine.defaults) != self.checksum:
            raise SceneError(
                f"{sim.path or sim.scene.name} is not what it was when the simulator was saved: its parameters differ; "
                "restore the file, or make a new simulator"
            )
        sim.set_parameters(self.parameters)
        sim._reset_to, sim._state = dict(self.reset_to), dict(self.state)
        sim._steps_taken = self.steps


def _plain(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def _checksum(values: ParameterValues) -> int:
    found = 0
    for name in sorted(values):
        found = zlib.crc32(values[name].numpy().tobytes(), found)
    return found
