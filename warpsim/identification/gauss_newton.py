"""Gauss–Newton for values shared by all recordings and nuisance values of each, with candidates in worlds.

The Jacobian is by differences: the nuisance values of all recordings are perturbed at once, since each acts on its own
recording alone, so that one Jacobian takes 1 + n + k rollouts per recording. Nuisance values are eliminated from the
normal equations (Schur complement), which leaves n unknowns. Several dampings and step lengths are tried side by side.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from warpsim.core.errors import SimulationError
from warpsim.identification.prediction import Contacts, Predictor, StartMoves
from warpsim.identification.robust import curvature_product, sample_losses, sample_weights
from warpsim.identification.shooting import Shots
from warpsim.identification.windows import Cut
from warpsim.optimizers.box_qp import box_qp

_TRIALS = ((1e-3, 1.0), (1e-1, 1.0), (1e-1, 0.4))
"""Tried side by side: damping as a share of the diagonal, and length as a share of the step."""
_STRONGER = 30.0
_ATTEMPTS = 3
_POINTS = 32
"""Of a cloud, at least."""


@dataclass(frozen=True)
class Setting:
    """One stage of a fit.

    Attributes:
        samples: Compared ones, from the start.
        contacts: How they are modeled.
        iterations: At most.
        tolerance: Share of the loss below which an iteration's gain ends the stage.
        spread: Size, in units of x, of the cloud of values over which predictions are averaged; 0: none.
        batch: How many of the recordings are fitted, drawn at random; None: all.
        continuity: How far windows may lie apart, see `Windows`; None: they do not know of each other.
    """

    samples: int
    contacts: Contacts
    iterations: int
    tolerance: float = 3e-3
    spread: float = 0.0
    batch: int | None = None
    continuity: float | None = None


class Normal(NamedTuple):
    """Normal equations at a point, R recordings, n shared numbers, k nuisance numbers of each.

    Attributes:
        loss: Of data and priors.
        gx: (n,).
        gz: (R, k).
        scores: (R, n): each recording's share of gx, without the prior.
        hxx: (n, n): Gauss–Newton Hessian.
        hxz: (R, n, k).
        hzz: (R, k, k).
        sharp_hxx: (R, n, n): each recording's share of hxx, without the prior, with the robust loss's exact
            curvature; for statistics.
        sharp_hxz: Likewise.
        sharp_hzz: Likewise.
        prior: (n, n): the prior's share of hxx.
        jacobian: (R, samples − 1, m, n + k).
        residuals: (R, samples − 1, m).
    """

    loss: float
    gx: torch.Tensor
    gz: torch.Tensor
    scores: torch.Tensor
    hxx: torch.Tensor
    hxz: torch.Tensor
    hzz: torch.Tensor
    sharp_hxx: torch.Tensor
    sharp_hxz: torch.Tensor
    sharp_hzz: torch.Tensor
    prior: torch.Tensor
    jacobian: torch.Tensor
    residuals: torch.Tensor


class GaussNewton:
    """Fits x and z to some recordings.

    Attributes:
        x: (n,) shared numbers.
        z: (R, k) nuisance numbers.
        lower: (n,) bounds of x.
        upper: (n,) likewise.
    """

    def __init__(
        self,
        predictor: Predictor,
        chosen: torch.Tensor,
        *,
        robust: float,
        moves: StartMoves | None = None,
        shared: bool = True,
        difference: float = 1e-3,
        cut: Cut | None = None,
    ) -> None:
        """Starts at x = 0, z = 0.

        Args:
            predictor: Of all recordings.
            chosen: (R,) those that are fitted.
            robust: Width of the quadratic part of a sample's loss; inf: squares.
            moves: Initial states are fitted, too; None: they are held.
            shared: Whether x is fitted; False: nuisance values alone.
            difference: Step of forward differences, in units of x and z.
            cut: Windows of the recordings, whose grid the predictor then has; None: recordings as a whole.
        """
        self.predictor, self.chosen, self.robust, self.moves, self.cut = predictor, chosen, robust, moves, cut
        self._difference, self._shared = difference, shared
        parts = predictor.shared
        self.lower = np.concatenate([p.lower for p in parts]) if parts else np.zeros(0)
        self.upper = np.concatenate([p.upper for p in parts]) if parts else np.zeros(0)
        self._weight = torch.tensor(np.concatenate([p.weight for p in parts]) if parts else np.zeros(0))
        own = np.concatenate([np.zeros(0), *(p.weight for p in predictor.nuisance)])
        self.shots = Shots(predictor, cut, chosen, len(own), moves)
        self._own_weight = self.shots.weights(torch.tensor(own))
        self.own_lower, self.own_upper = (self._own_bounds(side) for side in ("lower", "upper"))
        self.x = torch.zeros(len(self._weight), dtype=torch.float64)
        self.z = torch.zeros_like(self._own_weight)

    def _own_bounds(self, side: str) -> torch.Tensor:
        """(k,) of z: those of parameters; starts have none."""
        bounds = torch.full((self._own_weight.shape[1],), torch.inf if side == "upper" else -torch.inf).double()
        given = np.concatenate([np.zeros(0), *(getattr(p, side) for p in self.predictor.nuisance)])
        bounds[: len(given)] = torch.tensor(given)
        return bounds

    def residuals(self, x: torch.Tensor, z: torch.Tensor, setting: Setting) -> torch.Tensor:
        """(c, R, rows, m) residuals of c candidates, x (c, n) or (c, R, n) and z (c, R, k).

        Rows are the samples after the first, of all windows, and then gaps between windows.
        """
        rows, owner, _ = self.shots.places
        each = x[:, owner] if x.dim() == 3 else x[:, None].expand(-1, len(rows), -1)
        made, ends = self.predictor.residuals_and_ends(
            each.flatten(0, 1),
            self.shots.numbers(z).flatten(0, 1),
            rows.repeat(len(x)),
            setting.samples,
            setting.contacts,
            self.moves,
        )
        made, ends = (part.unflatten(0, (len(x), len(rows))) for part in (made, ends))
        laid = self.shots.laid(made)
        if setting.continuity is None or self.shots.windows < 2:
            return laid
        return torch.cat([laid, self.shots.gaps(z, ends, setting.continuity)], 2)

    def width(self, residuals: torch.Tensor, setting: Setting) -> torch.Tensor:
        """(rows,) width of the quadratic part of each row's loss; gaps always count squared."""
        made = torch.full((residuals.shape[-2],), self.robust, dtype=torch.float64)
        made[self.shots.windows * (setting.samples - 1) :] = torch.inf
        return made

    def losses(self, x: torch.Tensor, z: torch.Tensor, residuals: torch.Tensor, setting: Setting) -> torch.Tensor:
        """(c,) losses of candidates, priors included."""
        data = sample_losses(residuals, self.width(residuals, setting)).sum((-1, -2))
        return data + ((x * self._weight).square().sum(-1) + (z * self._own_weight).square().sum((-1, -2))) / 2

    @torch.no_grad()
    def linearize(self, setting: Setting) -> Normal:
        """Normal equations here."""
        n = len(self.x) if self._shared else 0
        here, jacobian = self._sloped(setting, n)
        width = self.width(here, setting)
        weighted = sample_weights(here, width)[..., None] * here
        slopes = torch.einsum("ralj,ral->rj", jacobian, weighted)
        plain = sample_weights(here, width)[..., None, None] * jacobian
        sharp = curvature_product(here, jacobian, width)
        hessian = torch.einsum("rali,ralj->rij", jacobian, plain)
        exact = torch.einsum("rali,ralj->rij", jacobian, sharp)
        own = torch.diag_embed(self._own_weight**2)
        prior = torch.diag(self._weight**2)[:n, :n]
        return Normal(
            loss=float(self.losses(self.x[None], self.z[None], here[None], setting)[0]),
            gx=slopes[:, :n].sum(0) + (self._weight**2 * self.x)[:n],
            gz=slopes[:, n:] + self._own_weight**2 * self.z,
            scores=slopes[:, :n],
            hxx=hessian[:, :n, :n].sum(0) + prior,
            hxz=hessian[:, :n, n:],
            hzz=hessian[:, n:, n:] + own,
            sharp_hxx=exact[:, :n, :n],
            sharp_hxz=exact[:, :n, n:],
            sharp_hzz=exact[:, n:, n:] + own,
            prior=prior,
            jacobian=jacobian,
            residuals=here,
        )

    def _sloped(self, setting: Setting, n: int) -> tuple[torch.Tensor, torch.Tensor]:
        """(R, rows, m) residuals here; (R, rows, m, n + k) their slopes by the first n of x and by z."""
        h, count = self._difference, len(self.chosen)
        groups = self.shots.perturbed(setting.continuity)
        away_x, away_z, steps = [self.x], [self.z], []
        for i in range(0 if setting.spread else n):
            step = h if self.x[i].item() + h <= self.upper[i] else -h
            away_x.append(self.x + step * torch.eye(len(self.x), dtype=torch.float64)[i])
            away_z.append(self.z)
            steps.append(torch.full((count,), step, dtype=torch.float64))
        for group in groups:
            columns = list(group.columns)
            step_z = torch.where(self.z[:, columns[0]] + h <= self.own_upper[columns[0]], h, -h)
            moved = self.z.clone()
            moved[:, columns] += step_z[:, None]
            away_x.append(self.x)
            away_z.append(moved)
            steps.append(step_z)
        made = self.residuals(torch.stack(away_x), torch.stack(away_z), setting)
        slopes = (made[1:] - made[0]) / torch.stack(steps)[:, :, None, None] if steps else made[1:]
        by_x, by_z = slopes[: len(slopes) - len(groups)], slopes[len(slopes) - len(groups) :]
        jacobian = self.shots.jacobian(by_z, groups, self.shots.windows * (setting.samples - 1))
        if not setting.spread:
            return made[0], torch.cat([by_x.movedim(0, -1), jacobian], -1)
        mean, along = self._averaged(self.x[None], self.z[None], setting)
        return mean[0], torch.cat([along[0], jacobian], -1)

    def _averaged(self, x: torch.Tensor, z: torch.Tensor, setting: Setting) -> tuple[torch.Tensor, torch.Tensor]:
        """(c, R, samples − 1, m), (c, R, samples − 1, m, n): the plane through residuals of a cloud around candidates.

        A loss that is rugged at the scale of its own interval has no slope to go by, and the plane has.
        """
        low, high = torch.tensor(self.lower), torch.tensor(self.upper)
        points = torch.minimum(torch.maximum(x[:, None] + setting.spread * _cloud(x.shape[1]), low), high)
        count = points.shape[1]
        made = self.residuals(points.flatten(0, 1), z.repeat_interleave(count, 0), setting)
        design = torch.cat([torch.ones_like(points[..., :1]), points - x[:, None]], -1)
        plane = torch.einsum("cip,cpral->crali", torch.linalg.pinv(design), made.unflatten(0, (len(x), count)))
        return plane[..., 0], plane[..., 1:]

    @torch.no_grad()
    def run(self, setting: Setting) -> float:
        """Iterates; returns the loss reached.

        Raises:
            SimulationError: What is beside the start cannot be simulated; later on, the best so far is kept.
        """
        loss = float("inf")
        for iteration in range(setting.iterations):
            try:
                normal = self.linearize(setting)
            except SimulationError:
                if not iteration:
                    raise
                break
            loss = normal.loss
            better = self._best_step(normal, setting)
            if better is None:
                break
            gained, self.x, self.z = loss - better[0], better[1], better[2]
            loss = better[0]
            if gained <= setting.tolerance * abs(loss):
                break
        return loss

    def _best_step(self, normal: Normal, setting: Setting) -> tuple[float, torch.Tensor, torch.Tensor] | None:
        """The best of the steps that lower the loss."""
        factor = 1.0
        trials = _TRIALS[:1] if setting.spread else _TRIALS  # a cloud is a large batch by itself
        for _ in range(_ATTEMPTS):
            tried = [self._step(normal, factor * damping, length) for damping, length in trials]
            x, z = torch.stack([t[0] for t in tried]), torch.stack([t[1] for t in tried])
            losses = self._tried_losses(x, z, setting)
            best = int(losses.argmin())
            if losses[best] < normal.loss:
                return float(losses[best]), x[best], z[best]
            factor *= _STRONGER
        return None

    def _tried_losses(self, x: torch.Tensor, z: torch.Tensor, setting: Setting) -> torch.Tensor:
        """(c,) losses, infinite where a candidate cannot be simulated."""
        try:
            made = self._averaged(x, z, setting)[0] if setting.spread else self.residuals(x, z, setting)
            return self.losses(x, z, made, setting).nan_to_num(torch.inf)
        except SimulationError:
            if len(x) == 1:
                return torch.full((1,), torch.inf, dtype=torch.float64)
            return torch.cat([self._tried_losses(a[None], b[None], setting) for a, b in zip(x, z, strict=True)])

    def _step(self, normal: Normal, damping: float, length: float) -> tuple[torch.Tensor, torch.Tensor]:
        """A damped step within the bounds; nuisance values follow the shared ones."""
        hzz = _damped(normal.hzz, damping)
        dx = torch.zeros_like(self.x)
        if self._shared and len(self.x):
            reduced, slope = eliminated(_damped(normal.hxx, damping), normal.hxz, hzz, normal.gx, normal.gz)
            low, high = self.lower - self.x.numpy(), self.upper - self.x.numpy()
            dx = torch.tensor(box_qp(reduced.numpy(), slope.numpy(), low, high, np.zeros(len(low))).x)
        dz = torch.zeros_like(self.z)
        if self.z.shape[1]:
            pull = normal.gz + (torch.einsum("rik,i->rk", normal.hxz, dx) if self._shared else 0.0)
            dz = -torch.linalg.solve(hzz, pull[..., None])[..., 0]
        return self.x + length * dx, torch.clamp(self.z + length * dz, self.own_lower, self.own_upper)

    def part(self, places: torch.Tensor) -> GaussNewton:
        """A solver of some of the recordings, from the same values.

        Args:
            places: (r,) among those that are fitted.
        """
        made = GaussNewton(
            self.predictor,
            self.chosen[places],
            robust=self.robust,
            moves=self.moves,
            shared=self._shared,
            difference=self._difference,
            cut=self.cut,
        )
        made.x, made.z = self.x.clone(), self.z[places].clone()
        return made

    @property
    def at_bound(self) -> torch.Tensor:
        """(n,) shared numbers that are at a bound."""
        x = self.x.numpy()
        return torch.tensor((x <= self.lower + 1e-9) | (x >= self.upper - 1e-9))


def _cloud(n: int) -> torch.Tensor:
    """(points, n) of unit variance along every axis: both ends of random orthogonal frames, always the same ones."""
    generator = torch.Generator().manual_seed(0)
    frames = max(1, math.ceil(_POINTS / (2 * n)))
    drawn = torch.randn(frames, n, n, generator=generator, dtype=torch.float64)
    ends = math.sqrt(n) * torch.linalg.qr(drawn)[0].flatten(0, 1)
    return torch.cat([ends, -ends])


def _damped(hessian: torch.Tensor, damping: float) -> torch.Tensor:
    """With a share of its diagonal added, and a little of the largest entry."""
    diagonal = hessian.diagonal(dim1=-2, dim2=-1)
    floor = 1e-10 * diagonal.amax(-1, keepdim=True).clamp_min(1e-12) if diagonal.shape[-1] else diagonal
    return hessian + torch.diag_embed(damping * diagonal + floor)


def eliminated(
    hxx: torch.Tensor, hxz: torch.Tensor, hzz: torch.Tensor, gx: torch.Tensor, gz: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The Hessian (n, n) and gradient (n,) of x once z follows it."""
    if not hzz.shape[-1]:
        return hxx, gx
    solved = torch.linalg.solve(hzz, torch.cat([hxz.mT, gz[..., None]], -1))
    return hxx - (hxz @ solved[..., :-1]).sum(0), gx - (hxz @ solved[..., -1:]).sum(0)[:, 0]
