"""Random numbers that depend on their coordinates alone: seed, world, step or place.

A counter-based generator: each number is a hash of its coordinates, so it is the same however many worlds, threads or
segments a rollout has, and whichever numbers are asked for. The hash is SplitMix64's finalizer (Steele, Lea and Flood
2014), applied after each coordinate; two hashes give a normal number by Box and Muller's method.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def _mix(x: np.ndarray) -> np.ndarray:
    x = (x ^ (x >> np.uint64(30))) * _FIRST
    x = (x ^ (x >> np.uint64(27))) * _SECOND
    return x ^ (x >> np.uint64(31))


def _absorb(state: np.ndarray, number: Any) -> np.ndarray:
    return _mix((state ^ np.asarray(number).astype(np.uint64)) + _GOLDEN)


def hashes(seed: int, *coordinates: Any) -> np.ndarray:
    """One hash for each combination of coordinates, uint64.

    Args:
        seed: Any integer.
        *coordinates: Integers of 0 or more, or arrays of them that broadcast together.
    """
    with np.errstate(over="ignore"):  # arithmetic is modulo 2⁶⁴
        state = _absorb(np.zeros((), np.uint64), np.array(seed % 2**64, np.uint64))
        for number in coordinates:
            state = _absorb(state, number)
    return state


def unit_numbers(state: np.ndarray, stream: int = 0) -> np.ndarray:
    """Uniform numbers in (0, 1], from 53 bits of hashes; another stream gives others."""
    with np.errstate(over="ignore"):
        bits = _absorb(state, stream)
    return ((bits >> np.uint64(11)).astype(np.float64) + 1.0) * 2.0**-53


def normal_numbers(state: np.ndarray) -> np.ndarray:
    """Standard normal numbers from hashes."""
    radius, turn = unit_numbers(state, 0), unit_numbers(state, 1)
    return np.sqrt(-2.0 * np.log(radius)) * np.cos(2.0 * np.pi * turn)
