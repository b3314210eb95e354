"""CMA-ES (Hansen, 2016: weighted recombination, cumulative step-size control, rank-one and rank-µ updates)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Found:
    """Where a search ended.

    Attributes:
        x: (n,) the best candidate.
        loss: Its loss.
        candidates: How many were judged.
    """

    x: np.ndarray
    loss: float
    candidates: int


def minimize(
    losses: Callable[[np.ndarray], np.ndarray],
    start: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    *,
    sigma: float = 1.0,
    target: float = -np.inf,
    generations: int = 100,
    seed: int = 0,
) -> Found:
    """Searches until a target is reached.

    Args:
        losses: (c, n) candidates → (c,).
        start: (n,) mean of the first generation.
        lower: (n,) bounds, to which candidates are moved.
        upper: (n,) likewise.
        sigma: First step size.
        target: A loss at which to stop.
        generations: At most.
        seed: Of the draws.
    """
    n, rng = len(start), np.random.default_rng(seed)
    count = 4 + int(3 * np.log(n))
    weights = np.log((count + 1) / 2) - np.log(np.arange(1, count // 2 + 1))
    weights /= weights.sum()
    mu = 1 / (weights**2).sum()
    c_sigma = (mu + 2) / (n + mu + 5)
    d_sigma = 1 + 2 * max(0.0, np.sqrt((mu - 1) / (n + 1)) - 1) + c_sigma
    c_c = (4 + mu / n) / (n + 4 + 2 * mu / n)
    c_one = 2 / ((n + 1.3) ** 2 + mu)
    c_mu = min(1 - c_one, 2 * (mu - 2 + 1 / mu) / ((n + 2) ** 2 + mu))
    length = np.sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n * n))
    mean, covariance, p_sigma, p_c = start.astype(float), np.eye(n), np.zeros(n), np.zeros(n)
    best = Found(mean, np.inf, 0)
    for generation in range(1, generations + 1):
        spectrum, axes = np.linalg.eigh(covariance)
        root = np.sqrt(spectrum.clip(1e-20))
        drawn = np.clip(mean + sigma * (rng.normal(size=(count, n)) * root) @ axes.T, lower, upper)
        made = losses(drawn)
        order = np.argsort(made)
        if made[order[0]] < best.loss:
            best = Found(drawn[order[0]], float(made[order[0]]), best.candidates)
        best = Found(best.x, best.loss, generation * count)
        if best.loss <= target:
            break
        steps = (drawn[order[: len(weights)]] - mean) / sigma
        move = weights @ steps
        mean = mean + sigma * move
        p_sigma = (1 - c_sigma) * p_sigma + np.sqrt(c_sigma * (2 - c_sigma) * mu) * axes @ ((axes.T @ move) / root)
        straight = np.linalg.norm(p_sigma) / np.sqrt(1 - (1 - c_sigma) ** (2 * generation))
        on = float(straight < (1.4 + 2 / (n + 1)) * length)
        p_c = (1 - c_c) * p_c + on * np.sqrt(c_c * (2 - c_c) * mu) * move
        covariance = (
            (1 - c_one - c_mu + (1 - on) * c_one * c_c * (2 - c_c)) * covariance
            + c_one * np.outer(p_c, p_c)
            + c_mu * (steps.T * weights) @ steps
        )
        sigma *= np.exp(c_sigma / d_sigma * (np.linalg.norm(p_sigma) / length - 1))
    return best
