"""Short stretches of a rollout on which gradients are checked: one without, one with contact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from warpsim.check.gradcheck.modes import StepModes


@dataclass(frozen=True)
class Window:
    """Steps `start` … `start + steps − 1` of a rollout.

    Attributes:
        name: "free motion", "contact" or "whole rollout".
        switches: Steps of the window whose decisions differ from the step before.
    """

    name: str
    start: int
    steps: int
    switches: tuple[int, ...] = ()


def find_windows(modes: Sequence[StepModes], length: int) -> list[Window]:
    """A free and a contact window of at most `length` steps, where the rollout of world 0 has them.

    The longest stretch without any pushing constraint row, and the longest with the same rows in the same zones; of
    each the middle. Without a stretch of two equal steps in contact, the steps around the first contact.
    """
    signatures = [step.signature(0) for step in modes]
    free = [int(step.pushing[0]) == 0 for step in modes]
    windows = []
    for name, wanted in (("free motion", True), ("contact", False)):
        stretches = _stretches([s if f == wanted else None for s, f in zip(signatures, free, strict=True)])
        if not stretches:
            continue
        start, count = max(stretches, key=lambda stretch: stretch[1])
        if count < 2 and not wanted:
            start, count = max(0, start - length // 2), min(length, len(modes))
        steps = min(length, count, len(modes) - start)
        start += max(0, (count - steps) // 2)
        windows.append(Window(name, start, steps, _switches(signatures, start, steps)))
    return windows


def whole_window(modes: Sequence[StepModes]) -> Window:
    """The whole rollout."""
    signatures = [step.signature(0) for step in modes]
    return Window("whole rollout", 0, len(modes), _switches(signatures, 0, len(modes)))


def _switches(signatures: Sequence[bytes], start: int, steps: int) -> tuple[int, ...]:
    return tuple(k for k in range(start + 1, start + steps) if signatures[k] != signatures[k - 1])


def _stretches(keys: Sequence[bytes | None]) -> list[tuple[int, int]]:
    """(start, count) of every run of equal keys that are not None."""
    runs: list[tuple[int, int]] = []
    for k, key in enumerate(keys):
        if key is None:
            continue
        if runs and sum(runs[-1]) == k and keys[k - 1] == key:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((k, 1))
    return runs
