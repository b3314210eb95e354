"""What the steps of a window cost in the end: the targets of a critic, and the weights of a policy's loss."""

from __future__ import annotations

import torch


def blended_returns(
    costs: torch.Tensor,
    values: torch.Tensor,
    failed: torch.Tensor,
    ended: torch.Tensor,
    discount: float,
    blend: float,
) -> torch.Tensor:
    """Targets of a critic along a window: TD(λ), blends of the returns over all shorter windows.

    G(t) = c(t) + γ·((1 − λ)·V(t+1) + λ·G(t+1)), where G = V at the end and 0 after a failure (Sutton and Barto,
    Reinforcement Learning, 12.1).

    Args:
        costs: (n, W) of the states reached.
        values: (n, W) of the states reached.
        failed: (n, W), bool: the state reached ends the episode, and nothing costs anything after it.
        ended: (n, W), bool: the next frame does not go on from this one; the last one never does.
        discount: γ.
        blend: λ.

    Returns:
        (n, W), of the states from which the steps begin.
    """
    made = torch.empty_like(costs)
    after = values[-1]
    for t in reversed(range(len(costs))):
        rest = torch.where(ended[t], values[t], torch.lerp(values[t], after, blend))
        after = costs[t] + discount * torch.where(failed[t], 0.0, rest)
        made[t] = after
    return made


def step_weights(ended: torch.Tensor, discount: float) -> torch.Tensor:
    """What each step of a window counts, (n, W): γ to the steps since the world's window or episode began."""
    frames = [torch.ones_like(ended[0], dtype=torch.float64)]
    for frame in ended[:-1]:
        frames.append(torch.where(frame, 1.0, discount * frames[-1]))
    return torch.stack(frames)
