"""Sensor noise: normal numbers that depend on seed, world, step and place in the measurement vector alone."""

from __future__ import annotations

import numpy as np

from warpsim.core import random as counter_random


def normal_numbers(seed: int, steps: np.ndarray, worlds: int, size: int) -> np.ndarray:
    """(len(steps), worlds, size) standard normal numbers.

    Args:
        seed: Any integer.
        steps: (n,) numbers of the steps; below 0 the numbers mean nothing.
        worlds: How many worlds, from 0 on.
        size: Numbers per world and step.
    """
    state = counter_random.hashes(
        seed, np.arange(worlds)[None, :, None], np.asarray(steps)[:, None, None], np.arange(size)[None, None, :]
    )
    return counter_random.normal_numbers(state)
