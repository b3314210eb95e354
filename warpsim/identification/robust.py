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


def sample_losses(residuals: torch.Tensor, width: float | torch.Tensor) -> torch.Tensor:
    """(…,) pseudo-Huber loss of samples (…, m): ½‖r‖² near zero, width·‖r‖ far away (Charbonnier)."""
    square = residuals.square().sum(-1)
    finite, limited = _widths(width, square)
    return torch.where(finite, limited**2 * ((1 + square / limited**2).sqrt() - 1), square / 2)


def sample_weights(residuals: torch.Tensor, width: float | torch.Tensor) -> torch.Tensor:
    """(…,) w with d loss / d r = w·r."""
    square = residuals.square().sum(-1)
    finite, limited = _widths(width, square)
    return torch.where(finite, 1 / (1 + square / limited**2).sqrt(), 1.0)


def curvature_product(residuals: torch.Tensor, jacobian: torch.Tensor, width: float | torch.Tensor) -> torch.Tensor:
    """(…, m, n): ∂²loss/∂r² times J (…, m, n), exact: w·J − (w³/width²)·r·(rᵀJ)."""
    w = sample_weights(residuals, width)
    finite, limited = _widths(width, w)
    along = (residuals[..., None] * jacobian).sum(-2, keepdim=True)
    bent = torch.where(finite, w**3 / limited**2, 0.0)[..., None, None]
    return w[..., None, None] * jacobian - bent * residuals[..., None] * along


def _widths(width: float | torch.Tensor, like: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Whether samples (…,) have a width, and what it is, 1 where they have none; a width for each, or one for all."""
    widths = torch.as_tensor(width, dtype=like.dtype)
    finite = torch.isfinite(widths)
    return finite, torch.where(finite, widths, 1.0)
