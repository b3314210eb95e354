"""`Start`: where a motion begins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from warpsim.core.errors import InputError
from warpsim.sim.trajectory import Observed


@dataclass(frozen=True)
class Start:
    """Where a motion begins: a whole state, some of its fields, and noise around it.

    Wherever one is asked for, a state or a mapping of fields alone will do: `start=sim.state` means
    `start=Start(sim.state)`, and `start={"activation": a}` means `start=Start(fields={"activation": a})`.

    Attributes:
        state: A whole state, e.g. `sim.state` to go on from where steps have led. None: that of the last reset (for a
            reset: the scene's own).
        fields: Instead of those of the state: "q", "qd", "activation", and "matter.field" of other matters, (n, …) for
            all worlds alike or (W, n, …).
        position_noise: Standard deviation of a normal move from q along each dof, rad or m.
        velocity_noise: Standard deviation of what is added to qd, rad/s or m/s.
        seed: Of the noise; world k's numbers depend on the seed and k alone.
    """

    state: Observed | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)
    position_noise: float = 0.0
    velocity_noise: float = 0.0
    seed: int | None = None

    def __post_init__(self) -> None:
        if self.noisy and self.seed is None:
            raise InputError("noise needs a seed; give seed=, so that the run can be repeated")

    @property
    def noisy(self) -> bool:
        """Whether the state is perturbed."""
        return bool(self.position_noise or self.velocity_noise)


_RESET = Start()

StartLike = Start | Observed | Mapping[str, Any] | None
"""A `Start`, or its state or fields alone; None: that of the last reset."""


def start_of(given: StartLike, q: Any = None, qd: Any = None) -> Start:
    """What a caller gave as `start=`, and as the short forms `q=` and `qd=`, which go before it."""
    if given is None:
        made = _RESET
    elif isinstance(given, Start):
        made = given
    elif isinstance(given, Observed):
        made = Start(given)
    elif isinstance(given, Mapping):
        made = Start(fields=dict(given))
    else:
        raise InputError(f"start={given!r}; give a state such as sim.state, fields by name, or a Start(…)")
    short = {name: value for name, value in (("q", q), ("qd", qd)) if value is not None}
    return replace(made, fields={**made.fields, **short}) if short else made
