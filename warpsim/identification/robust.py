"""Losses of a sample of residuals that grow slower than the square for samples that no model explains."""

from __future__ import annotations

import math

import torch

from warpsim.core.errors import InputError


def check_robust(width: float | None) -> float:
    """The width of the quadratic part, in standard deviations; inf: squares."""
    if width is None:
        return math.inf
    if not width > 0:
        raise InputError(f"robust={width}: give the number of standard deviations up to which samples count squared")
    return float(width)


def sample_losses(residuals: torch.Tensor, width: float) -> torch.Tensor:
    """(…,) pseudo-Huber loss of samples (…, m): ½‖r‖² near zero, width·‖r‖ far away (Charbonnier)."""
    square = residuals.square().sum(-1)
    if math.isinf(width):
        return square / 2
    return width**2 * ((1 + square / width**2).sqrt() - 1)


def sample_weights(residuals: torch.Tensor, width: float) -> torch.Tensor:
    """(…,) w with d loss / d r = w·r."""
    square = residuals.square().sum(-1)
    return torch.ones_like(square) if math.isinf(width) else 1 / (1 + square / width**2).sqrt()


def curvature_product(residuals: torch.Tensor, jacobian: torch.Tensor, width: float) -> torch.Tensor:
    """(…, m, n): ∂²loss/∂r² times J (…, m, n), exact: w·J − (w³/width²)·r·(rᵀJ)."""
    w = sample_weights(residuals, width)[..., None, None]
    if math.isinf(width):
        return jacobian
    along = (residuals[..., None] * jacobian).sum(-2, keepdim=True)
    return w * jacobian - w**3 / width**2 * residuals[..., None] * along
