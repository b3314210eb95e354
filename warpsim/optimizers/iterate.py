"""One point of a search with everything the next one depends on, and its form as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from warpsim.core.driving import Steps
from warpsim.core.errors import InputError
from warpsim.optimizers.problem import Problem
from warpsim.optimizers.result import Stopped


@dataclass(frozen=True)
class Iterate:
    """A point reached. Nothing of it is ever changed, so a search can be cut off anywhere and go on from the last one.

    Attributes:
        x: (n,).
        loss: At x.
        gradient_norm: See `HistoryEntry.gradient_norm`.
        evaluations: Losses computed since the start.
        memory: What else the method's next step reads: tensors, numbers, texts, lists and dicts of them.
        finished: Why the method itself ends here, with a sentence; None: it can go on.
        dropped: See `HistoryEntry.dropped`.
    """

    x: torch.Tensor
    loss: float
    gradient_norm: float
    evaluations: int
    memory: Mapping[str, Any] = field(default_factory=dict)
    finished: tuple[Stopped, str] | None = None
    dropped: int = 0


class Method(Protocol):
    """A way to get from one iterate to the next; holds options only. It asks for the calls it needs, see `Steps`."""

    @property
    def name(self) -> str:
        """As in `minimize(method=…)`."""
        ...

    def begin(self, problem: Problem, x: torch.Tensor) -> Steps[Iterate]:
        """The iterate at a start (n,)."""
        ...

    def advance(self, problem: Problem, iterate: Iterate) -> Steps[Iterate]:
        """The next iterate; the same bits for the same iterate."""
        ...

    def report(self, problem: Problem, iterate: Iterate) -> Steps[Any]:
        """What to say besides x and loss about the best iterate; None: nothing."""
        ...


def pack(iterate: Iterate) -> dict[str, Any]:
    """An iterate as plain data."""
    return {
        "x": _to_plain(iterate.x),
        "loss": iterate.loss,
        "gradient_norm": iterate.gradient_norm,
        "evaluations": iterate.evaluations,
        "memory": _to_plain(iterate.memory),
        "dropped": iterate.dropped,
    }


def unpack(data: Mapping[str, Any]) -> Iterate:
    """The iterate that was packed, to the last bit; one that had ended may go on."""
    return Iterate(
        x=_from_plain(data["x"]),
        loss=data["loss"],
        gradient_norm=data["gradient_norm"],
        evaluations=data["evaluations"],
        memory=_Saved(_from_plain(data["memory"])),
        dropped=data.get("dropped", 0),
    )


class _Saved(dict[str, Any]):
    """What a method kept of itself in a file, which may be another version's or edited."""

    def __missing__(self, name: str) -> Any:
        raise InputError(f"the saved search does not hold {name!r}, so it cannot go on from there; start anew")


def _to_plain(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return {"__tensor__": value.tolist(), "shape": list(value.shape)}
    if isinstance(value, Mapping):
        return {key: _to_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_to_plain(item) for item in value]
    return value


def _from_plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        if "__tensor__" in value:
            return torch.tensor(value["__tensor__"], dtype=torch.float64).reshape(value["shape"])
        return {key: _from_plain(item) for key, item in value.items()}
    return [_from_plain(item) for item in value] if isinstance(value, list) else value
