"""`Iteration`: what was seen at one update of a training."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Iteration:
    """One update.

    Attributes:
        number: From 0 on.
        cost: Mean of the window's costs, in worlds that have not failed.
        loss: What the policy was moved along: discounted costs of the window and the value of its end.
        gradient_norm: Of the policy's weights, before it was clipped.
        critic_error: Mean square error of values against their targets.
        failed: Worlds that failed in this window.
        dropped: Worlds that have begun anew so far since their numbers were not finite.
        score: Mean cost per control on starts of their own, where this update was followed by an evaluation.
        seconds: Processor time of the training so far.
    """

    number: int
    cost: float
    loss: float
    gradient_norm: float
    critic_error: float
    failed: int
    dropped: int = 0
    score: float | None = None
    seconds: float = 0.0
