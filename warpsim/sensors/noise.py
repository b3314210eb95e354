"""Sensor noise: normal numbers that depend on seed, world, step and place in the measurement vector, and nothing else.

A counter-based generator: each number is a hash of its coordinates, so a row is the same however many worlds, threads
or segments a rollout has, and whichever rows are kept. The hash is SplitMix64's finaliser (Steele, Lea and Flood 2014),
applied after each coordinate; two hashes give a normal number by Box and Muller's method.
"""

from __future__ import annotations

import numpy as np

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def _mix(x: np.ndarray) -> np.ndarray:
    x = (x ^ (x >> np.uint64(30))) * _FIRST
    x = (x ^ (x >> np.uint64(27))) * _SECOND
    return x ^ (x >> np.uint64(31))


def _absorb(state: np.ndarray, number: np.ndarray) -> np.ndarray:
    return _mix((state ^ number) + _GOLDEN)


def normal_numbers(seed: int, steps: np.ndarray, worlds: int, size: int) -> np.ndarray:
    """(len(steps), worlds, size) standard normal numbers.

    Args:
        seed: Any integer.
        steps: (n,) numbers of the steps, 0 or more.
        worlds: How many worlds, from 0 on.
        size: Numbers per world and step.
    """
    with np.errstate(over="ignore"):  # arithmetic is modulo 2⁶⁴
        state = _absorb(np.zeros((1, 1, 1), np.uint64), np.array(seed % 2**64, np.uint64))
        state = _absorb(state, np.arange(worlds, dtype=np.uint64)[None, :, None])
        state = _absorb(state, np.asarray(steps).astype(np.uint64)[:, None, None])
        state = _absorb(state, np.arange(size, dtype=np.uint64)[None, None, :])
        radius, turn = (_unit(_absorb(state, np.array(k, np.uint64))) for k in (0, 1))
    return np.sqrt(-2.0 * np.log(radius)) * np.cos(2.0 * np.pi * turn)


def _unit(bits: np.ndarray) -> np.ndarray:
    """Numbers in (0, 1] from 53 of the bits."""
    return ((bits >> np.uint64(11)).astype(np.float64) + 1.0) * 2.0**-53
