"""What callers may give as parameters: arrays by name, and USD attributes by handle or path."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from warpsim.autograd.parameters import Parameters
from warpsim.autograd.watched import Watched, check_unchanged, watch
from warpsim.core.errors import InputError
from warpsim.engine.engine import Engine
from warpsim.io.usd.writer import OptimizedValue
from warpsim.sim.attributes.attribute import Attribute
from warpsim.sim.attributes.table import AttributeTable

CONTROLLED = {"drive_target": "drive.target", "drive_velocity": "drive.target_velocity"}
"""Control → the parameter that counts where the control is not given."""
_STATE = "state."


@dataclass(frozen=True)
class InForce:
    """Parameters in force, and what they were made from.

    Attributes:
        parameters: Arrays, ready for a rollout.
        named: Names of the arrays that were given outright.
        attributes: Values by handle.
        start: Parts of the initial state that attributes feed: "q", "qd", "activation", (n,) or (W, n).
        given: Tensors that torch differentiates by, as they were given.
    """

    parameters: Parameters
    named: frozenset[str] = frozenset()
    attributes: Mapping[Attribute, Any] = field(default_factory=dict)
    start: Mapping[str, torch.Tensor] = field(default_factory=dict)
    given: Watched = field(default_factory=dict)

    def check(self) -> None:
        """Raises if a tensor that was given has been changed in place."""
        check_unchanged(self.given, "`set_parameters`")

    def values(self, world: int) -> list[OptimizedValue]:
        """The values of attributes in one world, as a result's layer holds them."""
        found = []
        for attribute, value in self.attributes.items():
            numbers = torch.as_tensor(value, dtype=torch.float64).detach().cpu().numpy()
            own = numbers[world] if numbers.ndim > len(attribute.shape) else numbers
            initial = attribute.kind.stored(attribute.numbers)
            found.append(
                OptimizedValue(attribute.prim_path, attribute.name, attribute.kind.stored(own), initial=initial)
            )
        return found


def _copied(value: Any) -> Any:
    """A value that the caller cannot change any more, in the graph if it is."""
    return value.clone() if isinstance(value, torch.Tensor) else deepcopy(value)


class ParameterInput:
    """Turns what callers give into parameters of an engine.

    Attributes:
        attributes: Handles of the scene's file.
    """

    def __init__(self, engine: Engine, path: Path | None) -> None:
        """Remembers the scene.

        Args:
            engine: What the parameters are for.
            path: The file it was read from; None: none.
        """
        self._engine = engine
        self.attributes = AttributeTable(path, engine.compiled)

    def own(self) -> InForce:
        """The scene's own parameters."""
        return InForce(Parameters(self._engine.defaults))

    def replaced(self, old: InForce, given: Mapping[str | Attribute, Any] | None) -> InForce:
        """`old` with some values given anew.

        Args:
            old: What is in force.
            given: By array name, by handle, or by "/prim.attribute".

        Raises:
            InputError: An array is given outright and fed by an attribute.
            StaleInputError: A tensor in force was changed in place.
        """
        arrays, handles = self._sorted(given or {})
        if not handles:
            fed, start = {}, dict(old.start)
            attributes = dict(old.attributes)
        else:
            attributes = {**old.attributes, **{handle: _copied(value) for handle, value in handles.items()}}
            reached = self.attributes.tensors(attributes)
            start = {n.removeprefix(_STATE): tensor for n, tensor in reached.items() if n.startswith(_STATE)}
            fed = {name: tensor for name, tensor in reached.items() if not name.startswith(_STATE)}
        named = old.named | set(arrays)
        for attribute in attributes:
            for name in named.intersection(attribute.reach):
                raise InputError(
                    f"parameter {name!r} is given as an array and also fed by {attribute.path}; give one of them"
                )
        replaced = old.parameters.replaced(self._engine, {**arrays, **fed})
        new: dict[Any, Any] = {**arrays, **handles}
        watched = {key: entry for key, entry in old.given.items() if key not in new} | watch(new)
        made = InForce(replaced, named, attributes, start, watched)
        made.check()
        return made

    def keys(self, given: Mapping[str | Attribute, Any] | None) -> list[Attribute]:
        """The attributes among what was given."""
        return list(self._sorted(given or {})[1])

    def check_heard(
        self, given: Mapping[str | Attribute, Any] | None, controls: Collection[str], states: Collection[str]
    ) -> None:
        """Makes sure that each value given can still matter.

        Args:
            given: Parameters of one call.
            controls: Controls given with them.
            states: Parts of the initial state given with them.

        Raises:
            InputError: Everything that one of them feeds is given otherwise.
        """
        hidden = {CONTROLLED[name]: f"the control {name!r}" for name in controls if name in CONTROLLED}
        hidden |= {_STATE + name: f"the initial {name!r}" for name in states}
        arrays, handles = self._sorted(given or {})
        reaches: dict[str, tuple[str, ...]] = {
            **{name: (name,) for name in arrays},
            **{a.path: a.reach for a in handles},
        }
        for name, reach in reaches.items():
            if set(reach) <= set(hidden):
                what = " and ".join(dict.fromkeys(hidden[part] for part in reach))
                raise InputError(f"{name} cannot matter here: {what} is given outright; leave one of them out")

    def _sorted(self, given: Mapping[str | Attribute, Any]) -> tuple[dict[str, Any], dict[Attribute, Any]]:
        if not isinstance(given, Mapping):
            raise InputError(f"parameters are given by name, e.g. {{'body.mass': …}}, not as a {type(given).__name__}")
        arrays: dict[str, Any] = {}
        handles: dict[Attribute, Any] = {}
        for key, value in given.items():
            if not isinstance(key, str | Attribute):
                raise InputError(f"{key!r} names no parameter; give a name, a path or a handle of `sim.attribute`")
            if isinstance(key, Attribute) or key.startswith("/"):
                handle = key if isinstance(key, Attribute) else self.attributes.handle(key)
                if handle in handles:
                    raise InputError(f"{handle.path} is given twice")
                handles[handle] = value
            else:
                arrays[key] = value
        return arrays, handles
