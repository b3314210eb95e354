"""What a least-squares fit says about its parameters: how sure it is of each, and which ones it cannot tell apart."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from warpsim.optimizers.evaluation import norm

_NOTHING = 1e-6
"""Singular values below this share of the largest count as zero; columns of J are scaled to unit length first."""
_PART = 1e-3
"""A parameter takes part in a direction (of unit length, columns scaled) from this component on."""
_CHANCE = 5.0
"""Standard deviations of the estimated noise, 1/√(2·freedom) of it each, beyond which chance does not explain it."""
_UNFINISHED = 0.1
"""Standard deviations that a fit may still be away from its optimum."""


@dataclass(frozen=True)
class Identification:
    """Statistics of a fit, for residuals whose errors are independent and alike.

    Attributes:
        names: (n,): the parameters.
        x: (n,): their estimates.
        noise: Standard deviation of one residual, estimated from those that are left: √(‖r‖² / (m − rank of J)).
            Where there are no more data than that: what was stated, else inf.
        stated_noise: Standard deviation that the residuals were said to have; None: nothing was said.
        chance: By which share of itself the noise may come out larger than stated: five standard deviations.
        covariance: (n, n): of the estimates, noise²·(JᵀJ)⁻¹ over what the data determine. Infinite on the diagonal, and
            zero beside it, of a parameter that they do not, or that is at a bound.
        singular_values: (n,): of J with columns of unit length, largest first; small ones mean parameters that the data
            cannot tell apart.
        determined: (n,): whether the data determine a parameter; False also where a bound does.
        sentences: What the data can and cannot determine, in words.
    """

    names: tuple[str, ...]
    x: torch.Tensor
    noise: float
    stated_noise: float | None
    chance: float
    covariance: torch.Tensor
    singular_values: torch.Tensor
    determined: torch.Tensor
    sentences: tuple[str, ...]

    @property
    def deviation(self) -> torch.Tensor:
        """(n,): standard deviations of the estimates; infinite where the data do not determine one."""
        return self.covariance.diagonal().clamp_min(0).sqrt()

    @property
    def correlation(self) -> torch.Tensor:
        """(n, n): covariance with unit diagonal; zero beside it for parameters that are not determined."""
        usable = self.determined & (self.deviation > 0)
        scale = torch.where(usable, self.deviation, 1.0)
        made = self.covariance / scale / scale[:, None]
        return torch.where(torch.eye(len(self.x), dtype=torch.bool), 1.0, made)

    @property
    def at_noise_level(self) -> bool | None:
        """Whether the residuals are as small as the stated noise, as far as chance goes; None: none was stated."""
        if self.stated_noise is None:
            return None
        return self.noise <= self.stated_noise * (1 + self.chance)

    def covariance_of(self, function: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
        """(p, p): covariance, to first order, of what x (n,) is turned into (p,), e.g. values in USD units.

        Infinite on the diagonal where a value rests on a parameter that is not determined.
        """
        jacobian = torch.autograd.functional.jacobian(function, self.x)
        finite = torch.where(self.determined & self.determined[:, None], self.covariance, 0.0)
        made = jacobian @ finite @ jacobian.T
        unknown = (jacobian[:, ~self.determined] != 0).any(-1)
        return made + torch.diag(torch.where(unknown, torch.inf, 0.0).to(made))

    def __str__(self) -> str:
        rows = [
            f"{name}: {value:.6g} ± {deviation:.2g}"
            if math.isfinite(deviation)
            else f"{name}: {value:.6g}, not determined"
            for name, value, deviation in zip(self.names, self.x.tolist(), self.deviation.tolist(), strict=True)
        ]
        return "\n".join([*rows, *self.sentences])


@dataclass(frozen=True)
class FitEnd:
    """Where a fit ended.

    Attributes:
        names: (n,).
        x: (n,): the estimates.
        plain: (n,): the same as plain variables, of which the following are.
        slope: (n,): d plain / d x.
        root: (n, n): R of J = Q·R.
        gradient: (n,): Jᵀr, exact.
        squares: ‖r‖².
        count: m.
        at_bound: (n,): parameters that are at a bound.
        stated_noise: Standard deviation that the residuals should have; None: unknown.
    """

    names: Sequence[str]
    x: torch.Tensor
    plain: torch.Tensor
    slope: torch.Tensor
    root: torch.Tensor
    gradient: torch.Tensor
    squares: float
    count: int
    at_bound: torch.Tensor
    stated_noise: float | None = None


def identify(end: FitEnd) -> Identification:
    """Statistics from a fit's end."""
    lengths = torch.linalg.vector_norm(end.root, dim=0)
    scale = torch.where(lengths > 0, lengths, 1.0)
    _, sigma, directions = torch.linalg.svd(end.root / scale)
    lost = sigma <= _NOTHING * sigma[0]
    # The others are no surer for a bound that one of them has run into: it stays free here.
    determined = ~((directions[lost].abs() > _PART).any(0) | (lengths == 0) | end.at_bound)
    spread = directions.T * torch.where(lost, 0.0, 1 / sigma) / scale[:, None]

    freedom = end.count - int((~lost).sum())
    noise = math.sqrt(end.squares / freedom) if freedom > 0 else end.stated_noise or math.inf
    chance = _CHANCE / math.sqrt(2 * freedom) if freedom > 0 else math.inf
    determined &= math.isfinite(noise)
    known = determined & determined[:, None]
    of_x = spread / torch.where(determined, end.slope, 1.0)[:, None]
    covariance = torch.where(known, of_x @ of_x.T * (noise if math.isfinite(noise) else 0.0) ** 2, 0.0)
    covariance = covariance + torch.diag(torch.where(determined, 0.0, torch.inf).to(covariance))
    sentences = [
        *_misfit(end, noise, chance, freedom),
        *_unfinished(end, noise),
        *_ambiguities(end, noise, sigma, directions, scale),
    ]
    return Identification(
        names=tuple(end.names),
        x=end.x,
        noise=noise,
        stated_noise=end.stated_noise,
        chance=chance,
        covariance=covariance,
        singular_values=sigma,
        determined=determined,
        sentences=tuple(sentences) or (f"The data determine all {len(end.names)} parameters.",),
    )


def _misfit(end: FitEnd, noise: float, chance: float, freedom: int) -> list[str]:
    """Says that the residuals are not what was stated."""
    if freedom <= 0:
        return [
            f"There are {end.count} data for {len(end.x)} parameters, so the residuals say nothing of the noise"
            + ("." if end.stated_noise is not None else ", nor of how sure the values are; state noise=.")
        ]
    if end.stated_noise is None or noise <= end.stated_noise * (1 + chance):
        return []
    return [
        f"The residuals are {noise / end.stated_noise:.3g} times the stated noise, which chance does not explain: the "
        "values are not those of a scene that gives these data, and their deviations do not say how far off they are. "
        "Try another start or several (`multi_start`), fewer data at first, or look for physics that the scene lacks."
    ]


def _unfinished(end: FitEnd, noise: float) -> list[str]:
    """Says that the search ended before its optimum."""
    free = (~end.at_bound).to(end.root)
    size = end.plain.abs().clamp_min(1.0)
    hessian = (end.root * free).T @ (end.root * free)
    left = torch.linalg.pinv(hessian, rtol=_NOTHING**2, hermitian=True) @ (end.gradient * free)
    away = float(torch.linalg.vector_norm(end.root @ left))
    if not math.isfinite(noise) or away <= _UNFINISHED * noise or norm(left / size) <= 1e-6:
        return []
    return [f"The search ended before its optimum: the next step is {away / noise:.2g} standard deviations long."]


def _ambiguities(
    end: FitEnd, noise: float, sigma: torch.Tensor, directions: torch.Tensor, scale: torch.Tensor
) -> list[str]:
    """Names what the data do not determine.

    Args:
        end: Where the fit ended.
        noise: Of one residual.
        sigma: (n,): singular values of J with columns of unit length.
        directions: (n, n): changes of x in units of `scale` that belong to them, one per row, of unit length.
        scale: (n,): lengths of J's columns.
    """
    held, names = end.at_bound, tuple(end.names)
    silent = torch.linalg.vector_norm(end.root, dim=0) == 0
    found = [f"{name} is held by its bound." for name, h in zip(names, held.tolist(), strict=True) if h]
    found += [
        f"The data do not depend on {name}." for name, s in zip(names, (silent & ~held).tolist(), strict=True) if s
    ]
    for value, direction in zip(sigma, directions, strict=True):
        lost = bool(value <= _NOTHING * sigma[0])
        direction = torch.where(silent | held, 0.0, direction)
        move = direction / scale
        # As much as noise moves x this way (one standard deviation) against the size of x, which is about one.
        blurred = not lost and bool((move.abs() * noise / value > end.plain.abs().clamp_min(1.0)).any())
        if direction.abs().max() > _PART and (lost or blurred):
            found.append(_ambiguity(names, direction if lost else move, move, lost=lost))
    return found


def _ambiguity(names: tuple[str, ...], direction: torch.Tensor, move: torch.Tensor, *, lost: bool) -> str:
    """A sentence on the parameters that take part in a direction by more than a twentieth of what the first does."""
    share = move / move[move.abs().argmax()]
    takes_part = (direction.abs() > 0.05 * direction.abs().max()).tolist()
    parts = [(name, value) for name, value, part in zip(names, share.tolist(), takes_part, strict=True) if part]
    why = "" if lost else " within the noise"
    if len(parts) == 1:
        return f"The data do not determine {parts[0][0]}{why}."
    listed = ", ".join(name for name, _ in parts[:-1]) + f" and {parts[-1][0]}"
    along = ", ".join(f"{name} by {value:+.2g}" for name, value in parts)
    return f"The data cannot tell apart {listed}{why}: changing {along} together leaves the residuals as they are."
