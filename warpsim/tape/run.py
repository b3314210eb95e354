"""A rollout in progress or done, and the gradients that come back from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from warpsim.core.errors import InputError
from warpsim.tape.frames import BlockArrays
from warpsim.tape.home import Home
from warpsim.tape.journal import Journal
from warpsim.tape.part import Keep, Part
from warpsim.tape.schedule import Plan
from warpsim.tape.storage import Checkpoints


class ReleasedError(InputError):
    """A run whose checkpoints have been given back was asked for more."""


@dataclass(frozen=True)
class Gradients:
    """What a backward pass returns; gradients of parameters are in the parameters' own `.grad`.

    Attributes:
        initial_state: By differentiable state field, (worlds, …).
        inputs: By input field that was given as an array and is differentiable, (steps, worlds, …).
        adjoint_norms: (segments,) norm of the adjoint of each segment's first state, over all worlds.
    """

    initial_state: BlockArrays
    inputs: BlockArrays
    adjoint_norms: np.ndarray


class Run:
    """One rollout: how far it has come, what was kept of it, and the checkpoints to differentiate it from.

    Attributes:
        plan: How it is cut into segments.
        states: Kept states by field, (steps // every + 1, worlds, …).
        outputs: Kept outputs by field, (steps // every, worlds, …).
        keep: The same, as the tape fills them.
    """

    def __init__(
        self,
        plan: Plan,
        parts: list[Part],
        keep: Keep,
        parameters: dict[str, int],
        journals: list[Journal],
        advance: Callable[[Run, int | None], None],
        home: Home,
    ) -> None:
        """Made by `CheckpointedTape.start`."""
        self.plan = plan
        self.parts = parts
        self.parameter_checksums = parameters
        self.journals = journals
        self.keep = keep
        self.states = BlockArrays("kept state", keep.states)
        self.outputs = BlockArrays("kept output", keep.outputs)
        self._home = home
        self._checkpoints: list[Checkpoints] | None = [part.checkpoints for part in parts]
        self._advance = advance

    @property
    def step(self) -> int:
        """Steps taken so far, by all worlds."""
        return min((part.step for part in self.parts), default=self.plan.steps)

    @property
    def differentiable(self) -> bool:
        """Whether a backward pass can follow."""
        return bool(self.parts) and self.parts[0].differentiate

    @property
    def released(self) -> bool:
        """Whether the checkpoints have been given back."""
        return self._checkpoints is None

    @property
    def checkpoints(self) -> list[Checkpoints]:
        """The stored states, by group of worlds; raises if they were given back."""
        if self._checkpoints is None:
            raise ReleasedError(
                "the checkpoints of this run were freed, by `release` or by a backward pass without `retain=True`; "
                "run forward again, or retain them"
            )
        return self._checkpoints

    def advance(self, steps: int | None = None) -> None:
        """Takes `steps` more steps, by default all that are left.

        Inputs given as arrays are read now, so a policy may write those of the next step between calls.
        """
        self._advance(self, steps)

    def state(self) -> dict[str, np.ndarray]:
        """A copy, in host memory, of the state reached so far, by field, (worlds, …)."""
        groups = [store.states.fields for store in self.checkpoints]
        frame = self.parts[0].reached_frame
        return {name: np.concatenate([group[name].read(frame) for group in groups]) for name in groups[0]}

    def release(self) -> None:
        """Gives the checkpoints back; kept states and outputs stay."""
        if self._checkpoints is not None:
            self._home.take_back(self._checkpoints)
            self._checkpoints = None
            self.parts = []

    def __del__(self) -> None:
        kept = getattr(self, "_checkpoints", None)
        if kept is not None:
            self._home.abandon(kept)

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
