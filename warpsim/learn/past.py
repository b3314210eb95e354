"""`Past`: the states with which the last windows began, in which worlds that failed may be tried again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

BACK = 2
"""A world that failed goes back to where it was when this many windows before the present one began."""


class Past:
    """Where worlds were a short time ago.

    A policy that seldom falls seldom shows its critic how falls begin, and the gradient of the policy itself is zero
    where nobody is about to fall. Worlds that failed and go back by a few windows, to be kicked and tried again, meet
    the states that matter many times over.
    """

    def __init__(self, share: float, *, seed: int) -> None:
        """Knows of no window yet.

        Args:
            share: Of the worlds that failed, those that are tried again; the others begin anew at a start.
            seed: Of the choice.
        """
        self.share, self._seed = share, seed
        self._states: list[dict[str, torch.Tensor]] = []

    def note(self, state: Mapping[str, torch.Tensor]) -> None:
        """A window begins with a state (W, …), by field."""
        if self.share:
            self._states = [*self._states[-BACK:], dict(state)]

    def tried_again(self, fell: torch.Tensor, number: int) -> torch.Tensor:
        """Which of the worlds that fell (W,) go back, drawn anew for each number."""
        if not self.share or not self._states:
            return torch.zeros_like(fell)
        generator = torch.Generator().manual_seed(1_000_003 * (self._seed + 1) + number)
        return fell & (torch.rand(len(fell), generator=generator) < self.share).to(fell.device)

    @property
    def state(self) -> Mapping[str, torch.Tensor]:
        """Where worlds that go back begin."""
        return self._states[0]

    def begin_anew(self, worlds: torch.Tensor, state: Mapping[str, torch.Tensor]) -> None:
        """Worlds (W,) bool begin with a state (W, …), before which nothing counts any more."""
        self._states = [
            {name: torch.where(column(worlds, value), state[name], value) for name, value in past.items()}
            for past in self._states
        ]

    def state_dict(self) -> list[dict[str, torch.Tensor]]:
        """What a checkpoint keeps."""
        return [dict(state) for state in self._states]

    def load_state_dict(self, saved: list[dict[str, Any]]) -> None:
        """Goes on from what `state_dict` gave."""
        self._states = [dict(state) for state in saved]


def column(mask: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """A mask (W,) that can be used with values (W, …)."""
    return mask.reshape(-1, *[1] * (like.ndim - 1))
