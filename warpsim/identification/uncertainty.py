"""How sure a fit is: intervals from how recordings differ, not from how samples do.

Rows of one recording err together, so that counting them as independent makes intervals several times too small.
Intervals come from the delete-one jackknife over recordings, to first order: without recording r, whose score is s and
whose share of the Hessian H is K, the values move by (H − K)⁻¹·s. It needs only that recordings are independent of each
other. The plain sandwich H⁻¹·(Σ s·sᵀ)·H⁻¹ (Liang and Zeger, 1986) leaves out that a fit bends toward each recording,
which makes it too small where recordings are few. Quantiles are Student's with the effective number of recordings:
where few of them hold most of what is known of a value, fewer than there are (Carter, Schnepel and Steigerwald, 2017).
A prior P pulls values toward its center, by H⁻¹·P·H⁻¹ in the mean square over what it allows, which is added. A search
that ended before its optimum is off by about the step that it would take next, which is added, too.

An interval says where the true value is. Another data set's value errs as well, so that an interval of exactly 95 %
holds it in 83 % of cases only (Cumming, Williams and Fidler, 2004); where it is to be expected, `repeat_half_width`
says.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
import torch

from warpsim.identification.gauss_newton import GaussNewton, Normal
from warpsim.optimizers.identification import FitEnd, Identification
from warpsim.optimizers.identification import identify as describe

_PRIOR_SHARE = 0.5
"""Of a parameter's information, from which on its value is called the prior's."""


@dataclass(frozen=True)
class Uncertainty:
    """Statistics of shared values, in their own units.

    Attributes:
        covariance: (n, n), clustered by recording; infinite on the diagonal where the data do not determine a value.
        half_width: (n,): half of the 95 % interval of the true value, with what is left to the optimum.
        repeat_half_width: (n,): half of the interval in which 95 % of values would be that other data sets like this
            one give, as many recordings of the same kind.
        left: (n,): size of the step that the search would take next.
        naive_half_width: (n,): the same as if all residuals were independent, for comparison.
        determined: (n,).
        sentences: What is not determined, at a bound, or only by its prior.
    """

    covariance: np.ndarray
    half_width: np.ndarray
    repeat_half_width: np.ndarray
    left: np.ndarray
    naive_half_width: np.ndarray
    determined: np.ndarray
    sentences: tuple[str, ...]


def clustered(solver: GaussNewton, normal: Normal, names: list[str], *, confidence: float = 0.95) -> Uncertainty:
    """Statistics at a fit's end."""
    recordings, n = normal.scores.shape
    scale = torch.tensor(np.concatenate([p.scale for p in solver.predictor.shared]))
    values = torch.cat([p.values(x) for p, x in _split(solver)])
    shares, scores = _own_shares(normal)
    bread = normal.prior + shares.sum(0)
    slope = normal.gx + (scores - normal.scores).sum(0)
    spectrum, axes = torch.linalg.eigh(bread)
    root = spectrum.clamp_min(0).sqrt()[:, None] * axes.T
    count = int((normal.residuals != 0).sum())
    end = FitEnd(
        names=names,
        x=values,
        plain=solver.x,
        slope=1 / scale,
        root=root,
        gradient=slope,
        squares=2 * normal.loss,
        count=max(count, 1),
        at_bound=solver.at_bound,
    )
    told = describe(end)
    known = told.determined & (recordings > 1)
    left = scale * _step_left(bread, slope, ~solver.at_bound)
    between = _of_known(_jackknife(bread, slope, shares, scores), scale, known)
    covariance = between + _of_known(pulled(bread, normal.prior), scale, known).nan_to_num(posinf=0.0)
    quantile = torch.tensor([student_quantile(0.5 + confidence / 2, f) for f in freedom(bread, shares).tolist()])
    sentences = (*_told(told), *_rests_on_prior(solver, bread, names), *_few(recordings, n))
    return Uncertainty(
        covariance.numpy(),
        (quantile * covariance.diagonal().sqrt() + left).numpy(),
        math.sqrt(2) * (quantile * between.diagonal().sqrt() + left).numpy(),
        left.numpy(),
        1.96 * told.deviation.numpy(),
        known.numpy(),
        sentences,
    )


def of_resamples(first_order: Uncertainty, solver: GaussNewton, found: torch.Tensor) -> Uncertainty:
    """Statistics with the spread of fits of resampled recordings in place of the sandwich.

    Args:
        first_order: At the fit's end.
        solver: There.
        found: (B, n) what the other fits gave, in units of x.
    """
    scale = np.concatenate([p.scale for p in solver.predictor.shared])
    recordings = len(solver.chosen)
    # Draws from R recordings spread as R − 1 of R parts of the recordings' own variance.
    spread = np.cov(found.numpy(), rowvar=False).reshape(len(scale), -1) * recordings / (recordings - 1)
    known = first_order.determined
    covariance = np.where(known & known[:, None], scale[:, None] * spread * scale, 0.0)
    covariance += np.diag(np.where(known, 0.0, np.inf))
    quantile = student_quantile(0.975, min(recordings, len(found)) - 1)
    half = quantile * np.sqrt(covariance.diagonal()) + first_order.left
    said = f"Intervals are those of {len(found)} fits of resampled recordings."
    return replace(
        first_order,
        covariance=covariance,
        half_width=half,
        repeat_half_width=math.sqrt(2) * half,
        sentences=(*first_order.sentences, said),
    )


def _of_known(covariance: torch.Tensor, scale: torch.Tensor, known: torch.Tensor) -> torch.Tensor:
    """(n, n) in the values' own units; infinite on the diagonal where a value is not known."""
    made = torch.where(known & known[:, None], scale[:, None] * covariance * scale, 0.0)
    return made + torch.diag(torch.where(known, 0.0, torch.inf).to(made))


def pulled(bread: torch.Tensor, prior: torch.Tensor) -> torch.Tensor:
    """(n, n) mean square of how far a prior pulls x from the truth, where the truth is as far off as it allows."""
    inverse = torch.linalg.pinv(bread, rtol=1e-10, hermitian=True)
    return inverse @ prior @ inverse


def freedom(bread: torch.Tensor, shares: torch.Tensor) -> torch.Tensor:
    """(n,) degrees of freedom of each value's variance: the effective number of recordings, less one.

    Scores are taken to vary as the recordings' shares of the Hessian do; recordings of equal shares count as they are.
    """
    inverse = torch.linalg.pinv(bread, rtol=1e-10, hermitian=True)
    part = (inverse @ shares @ inverse).diagonal(dim1=-2, dim2=-1).clamp_min(0.0)  # (R, n)
    effective = part.sum(0).square() / part.square().sum(0).clamp_min(1e-300)
    return (effective - 1).clamp_min(1.0)


def _step_left(bread: torch.Tensor, slope: torch.Tensor, free: torch.Tensor) -> torch.Tensor:
    """(n,) size of the Newton step among the values that no bound holds."""
    inside = free.to(bread)
    return (torch.linalg.pinv(bread * inside * inside[:, None], rtol=1e-10, hermitian=True) @ (slope * inside)).abs()


def _split(solver: GaussNewton) -> list[tuple]:
    parts = solver.predictor.shared
    return list(zip(parts, torch.split(solver.x, [p.size for p in parts]), strict=True))


def _own_shares(normal: Normal) -> tuple[torch.Tensor, torch.Tensor]:
    """(R, n, n), (R, n): the recordings' shares of the Hessian and scores, once their nuisance values follow."""
    if not normal.hzz.shape[-1]:
        return normal.sharp_hxx, normal.scores
    solved = torch.linalg.solve(normal.sharp_hzz, torch.cat([normal.sharp_hxz.mT, normal.gz[..., None]], -1))
    shares = normal.sharp_hxx - normal.sharp_hxz @ solved[..., :-1]
    return (shares + shares.mT) / 2, normal.scores - (normal.sharp_hxz @ solved[..., -1:])[..., 0]


def _jackknife(bread: torch.Tensor, slope: torch.Tensor, shares: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
    """(n, n) covariance of x: how far it moves when one recording is left out.

    Args:
        bread: (n, n) Hessian.
        slope: (n,) gradient; not quite zero where a search ended early.
        shares: (R, n, n) of the Hessian.
        scores: (R, n).
    """
    recordings = len(scores)
    inverse = torch.linalg.pinv(bread - shares, rtol=1e-10, hermitian=True)
    moved = (inverse @ (scores - slope)[..., None])[..., 0]
    spread = moved - moved.mean(0)
    return spread.T @ spread * (recordings - 1) / recordings


def _told(told: Identification) -> list[str]:
    return list(told.sentences)


def _rests_on_prior(solver: GaussNewton, bread: torch.Tensor, names: list[str]) -> list[str]:
    """Names values that the prior determines more than the data."""
    weight = torch.cat([torch.tensor(p.weight) for p in solver.predictor.shared])
    share = weight**2 / bread.diagonal().clamp_min(1e-300)
    return [
        f"{name} rests on its prior more than on the data."
        for name, s in zip(names, share, strict=True)
        if s > _PRIOR_SHARE
    ]


def _few(recordings: int, n: int) -> list[str]:
    if recordings == 1:
        return ["One recording says nothing of how recordings differ: there are no intervals; record more."]
    if recordings <= 2 * n:
        return [f"{recordings} recordings for {n} parameters: intervals from so few are rough."]
    return []


def student_quantile(probability: float, freedom: float) -> float:
    """Quantile of Student's t: closed forms for 1 and 2 degrees of freedom, else Fisher's expansion (below 1 % off).

    Between 1 and 3 it is that of the whole number below.
    """
    if freedom < 2:
        return math.tan(math.pi * (probability - 0.5))
    if freedom < 3:
        return (2 * probability - 1) * math.sqrt(2 / (4 * probability * (1 - probability)))
    z = NormalDist().inv_cdf(probability)
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return sum(term / freedom**k for k, term in enumerate(terms))
