"""What a least-squares fit says about its parameters: how sure it is of each, and which ones it cannot tell apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

_NOTHING = 1e-6
"""Singular values below this share of the largest count as zero; columns of J are scaled to unit length first."""


@dataclass(frozen=True)
class Identification:
    """Statistics of a fit, for residuals whose errors are independent and alike.

    Attributes:
        names: (n,): the parameters.
        x: (n,): their estimates.
        noise: Standard deviation of one residual, estimated from those that are left: √(‖r‖² / (m − n)); 0 if m = n.
        covariance: (n, n): of the estimates, noise²·(JᵀJ)⁻¹, with the pseudoinverse where JᵀJ is singular.
        singular_values: (n,): of J with columns of unit length, largest first; small ones mean parameters that the data
            cannot tell apart.
        sentences: What the data can and cannot determine, in words.
    """

    names: tuple[str, ...]
    x: torch.Tensor
    noise: float
    covariance: torch.Tensor
    singular_values: torch.Tensor
    sentences: tuple[str, ...]

    @property
    def deviation(self) -> torch.Tensor:
        """(n,): standard deviations of the estimates."""
        return self.covariance.diagonal().clamp_min(0).sqrt()

    @property
    def correlation(self) -> torch.Tensor:
        """(n, n): covariance with unit diagonal."""
        scale = torch.where(self.deviation > 0, self.deviation, 1.0)
        return self.covariance / scale / scale[:, None]

    def covariance_of(self, function: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
        """(p, p): covariance, to first order, of what x (n,) is turned into (p,), e.g. values in USD units."""
        jacobian = torch.autograd.functional.jacobian(function, self.x)
        return jacobian @ self.covariance @ jacobian.T

    def __str__(self) -> str:
        rows = [
            f"{name}: {value:.6g} ± {deviation:.2g}"
            for name, value, deviation in zip(self.names, self.x.tolist(), self.deviation.tolist(), strict=True)
        ]
        return "\n".join([*rows, *self.sentences])


def identify(
    names: Sequence[str], x: torch.Tensor, root: torch.Tensor, squares: float, count: int, held: torch.Tensor
) -> Identification:
    """Statistics from a fit's end.

    Args:
        names: (n,).
        x: (n,): the estimates.
        root: (n, n): R of J = Q·R.
        squares: ‖r‖².
        count: m.
        held: (n,): parameters that a bound holds.
    """
    n = len(x)
    noise = (squares / (count - n)) ** 0.5 if count > n else 0.0
    lengths = torch.linalg.vector_norm(root, dim=0)
    scale = torch.where(lengths > 0, lengths, 1.0)
    _, sigma, directions = torch.linalg.svd(root / scale)
    inverse = torch.where(sigma > _NOTHING * sigma[0], 1 / sigma, 0.0)
    spread = directions.T * inverse / scale[:, None]
    sentences = _sentences(tuple(names), x, noise, sigma, directions / scale, lengths, held)
    return Identification(tuple(names), x, noise, noise**2 * spread @ spread.T, sigma, sentences)


def _sentences(
    names: tuple[str, ...],
    x: torch.Tensor,
    noise: float,
    sigma: torch.Tensor,
    moves: torch.Tensor,
    lengths: torch.Tensor,
    held: torch.Tensor,
) -> tuple[str, ...]:
    """Words; `moves` (n, n) are the changes of x that belong to the singular values, one per row."""
    found = [
        f"The data do not depend on {name}." for name, length in zip(names, lengths.tolist(), strict=True) if not length
    ]
    for value, move in zip(sigma, moves, strict=True):
        lost = value <= _NOTHING * sigma[0]
        move = torch.where(lengths > 0, move, 0.0)
        # As much as noise moves x this way (one standard deviation) against the size of x, which is about one.
        blurred = not lost and bool((move.abs() * noise / value > x.abs().clamp_min(1.0)).any())
        if move.any() and (lost or blurred):
            found.append(_ambiguity(names, move, lost=bool(lost)))
    found += [f"{name} is held by its bound." for name, h in zip(names, held.tolist(), strict=True) if h]
    return tuple(found) or (f"The data determine all {len(names)} parameters.",)


def _ambiguity(names: tuple[str, ...], move: torch.Tensor, *, lost: bool) -> str:
    share = move / move.abs().max()
    share = share * torch.sign(share[share.abs().argmax()])
    parts = [(name, value) for name, value in zip(names, share.tolist(), strict=True) if abs(value) > 0.05]
    why = "" if lost else " within the noise"
    if len(parts) == 1:
        return f"The data do not determine {parts[0][0]}{why}."
    listed = ", ".join(name for name, _ in parts[:-1]) + f" and {parts[-1][0]}"
    along = ", ".join(f"{name} by {value:+.2g}" for name, value in parts)
    return f"The data cannot tell apart {listed}{why}: changing {along} together leaves the residuals as they are."
