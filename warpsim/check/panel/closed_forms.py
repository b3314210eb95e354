"""Motions with one impact in closed form, and their derivatives."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

GRAVITY = 9.81


def slopes(function: Callable[[np.ndarray], float], at: list[float]) -> list[float]:
    """Derivatives of a smooth closed form by central differences of fourth order: ten digits."""
    x, h, found = np.array(at, dtype=float), 1e-4, []
    for i in range(len(x)):
        move = np.zeros_like(x)
        move[i] = h
        near = function(x + move) - function(x - move)
        far = function(x + 2.0 * move) - function(x - 2.0 * move)
        found.append((8.0 * near - far) / (12.0 * h))
    return found


def bounce_height(x: np.ndarray, *, time: float) -> float:
    """Height at `time` of an ideal ball from x = (z₀, v₀, e), one bounce."""
    z, v, e = x
    touch = (v + np.sqrt(v * v + 2.0 * GRAVITY * z)) / GRAVITY
    after, rest = -e * (v - GRAVITY * touch), time - touch
    return float(after * rest - 0.5 * GRAVITY * rest * rest)


def cube_height(x: np.ndarray, *, time: float, half: float) -> float:
    """Height at `time` of a planar frictionless cube from x = (z₀, v₀, θ₀, ω₀, e), one impact of one edge.

    Newton's law of impact at the edge: its closing speed is turned by the impulse J = −(1 + e) ċ/(1/m + r²/I), with
    I/m = (2·half)²/6 and r the edge's horizontal distance from the center.
    """
    z, v, angle, spin, e = x

    def gap(t: float) -> tuple[float, float]:
        turned = angle + spin * t
        low = z + v * t - 0.5 * GRAVITY * t * t - half * (np.cos(turned) + np.sin(turned))
        return low, v - GRAVITY * t - half * spin * (np.cos(turned) - np.sin(turned))

    t = (v + np.sqrt(v * v + 2.0 * GRAVITY * (z - 1.4 * half))) / GRAVITY
    for _ in range(50):
        low, rate = gap(t)
        t -= low / rate
    arm = half * (np.cos(angle + spin * t) - np.sin(angle + spin * t))
    closing = gap(t)[1]
    push = -(1.0 + e) * closing / (1.0 + arm * arm * 1.5 / half**2)
    at, rest = z + v * t - 0.5 * GRAVITY * t * t, time - t
    return float(at + (v - GRAVITY * t + push) * rest - 0.5 * GRAVITY * rest * rest)
