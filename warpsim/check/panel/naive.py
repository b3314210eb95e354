"""What plain autodiff of plain time stepping says: torch differentiates steps that switch where something is crossed.

Such steps are what one writes first. Each is right inside a mode; none knows that the moment of a switch moves.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

GRAVITY = 9.81


def gradient(function: Callable[[torch.Tensor], torch.Tensor], at: list[float]) -> list[float]:
    """Of a number by the numbers it is computed from."""
    x = torch.tensor(at, dtype=torch.float64, requires_grad=True)
    value = function(x)
    return torch.autograd.grad(value, x, allow_unused=True, materialize_grads=True)[0].tolist()


def bounce(x: torch.Tensor, *, h: float, time: float, gravity: float) -> torch.Tensor:
    """Height of a ball from x = (z₀, v₀, e); its velocity is turned in the step after the floor was crossed."""
    z, v, e = x
    for _ in range(round(time / h)):
        v = v - h * gravity
        z = z + h * v
        if z < 0.0 and v < 0.0:
            v = -e * v
    return z


def billiard(x: torch.Tensor, *, h: float, time: float, radius: float) -> torch.Tensor:
    """Place of the first of two equal balls on a line from x = (x₁, x₂, v₁, v₂)."""
    a, b, va, vb = x
    for _ in range(round(time / h)):
        a, b = a + h * va, b + h * vb
        if b - a < 2.0 * radius and va > vb:
            va, vb = vb, va
    return a


def sliding_block(x: torch.Tensor, *, h: float, time: float) -> torch.Tensor:
    """Way of a block from x = (v₀, μ) under Coulomb's law."""
    v, mu = x
    way = torch.zeros((), dtype=x.dtype)
    for _ in range(round(time / h)):
        v = torch.clamp(v - h * mu * GRAVITY, min=0.0)
        way = way + h * v
    return way


def cube(x: torch.Tensor, *, h: float, time: float, half: float) -> torch.Tensor:
    """Height of a planar frictionless cube from x = (z₀, v₀, θ₀, ω₀, e); an edge that is below the floor is struck."""
    z, v, angle, spin, e = x
    for _ in range(round(time / h)):
        v = v - h * GRAVITY
        z, angle = z + h * v, angle + h * spin
        arm = half * (torch.cos(angle) - torch.sin(angle))
        low = z - half * (torch.cos(angle) + torch.sin(angle))
        closing = v - spin * arm
        if low < 0.0 and closing < 0.0:
            push = -(1.0 + e) * closing / (1.0 + arm * arm * 1.5 / half**2)
            v, spin = v + push, spin - arm * push * 1.5 / half**2
    return z
