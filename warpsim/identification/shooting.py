"""Which rows of a grid a solver's recordings have, and where their numbers and residuals stand.

Without windows a recording is one row, and its nuisance numbers are those of its parameters, then of its start. With K
windows it has up to K rows, which share the parameters' numbers, and K starts. Residuals of all windows stand one after
another; where windows must continue each other, the gaps between an end and the next start follow, in rows of their own
that count squared.

Numbers that act on different residuals are perturbed together: a start's on its own window and the gaps beside it, so
that starts of every second window are perturbed at once, and one Jacobian takes as many rollouts for many windows as
for two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch

from warpsim.identification.prediction import Predictor, StartMoves
from warpsim.identification.windows import Cut
from warpsim.rigid.model.tangent import difference


class Perturbed(NamedTuple):
    """Nuisance numbers that are perturbed together.

    Attributes:
        columns: Their places among z.
        windows: Of each, the window that it acts on; None: all.
    """

    columns: tuple[int, ...]
    windows: tuple[int, ...] | None


@dataclass(frozen=True)
class Shots:
    """Rows of some recordings.

    Attributes:
        predictor: Of the rows.
        cut: Windows; None: recordings are rows.
        chosen: (R,) recordings.
        own: Nuisance numbers of parameters.
        moves: How starts move; None: they are held.
    """

    predictor: Predictor
    cut: Cut | None
    chosen: torch.Tensor
    own: int
    moves: StartMoves | None

    @property
    def windows(self) -> int:
        """K."""
        return 1 if self.cut is None else self.cut.row.shape[1]

    @property
    def start_size(self) -> int:
        """Numbers of a start: 2·nv, or 0 where starts are held."""
        return 0 if self.moves is None else 2 * self.predictor.grid.qd.shape[1]

    @property
    def places(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """(T,) rows, and of each its recording among the chosen and its window."""
        if self.cut is None:
            return self.chosen, torch.arange(len(self.chosen)), torch.zeros(len(self.chosen), dtype=torch.long)
        owner, window = torch.nonzero(self.cut.row[self.chosen] >= 0, as_tuple=True)
        return self.cut.row[self.chosen][owner, window], owner, window

    def weights(self, own: torch.Tensor) -> torch.Tensor:
        """(R, k) roots of prior precisions of z: of parameters (own,), and of starts 1 where they were measured."""
        count = len(self.chosen)
        made = torch.ones(count, self.own + self.windows * self.start_size, dtype=torch.float64)
        made[:, : self.own] = own
        if self.cut is not None and self.start_size:
            rows, owner, window = self.places
            starts = made[:, self.own :].view(count, self.windows, self.start_size)
            starts[owner, window] = self.cut.known[rows].double()
        return made

    def numbers(self, z: torch.Tensor) -> torch.Tensor:
        """(c, T, own + 2·nv) nuisance numbers row by row, of z (c, R, k)."""
        _, owner, window = self.places
        starts = z[..., self.own :].unflatten(-1, (self.windows, self.start_size))
        return torch.cat([z[:, owner, : self.own], starts[:, owner, window]], -1)

    def laid(self, made: torch.Tensor) -> torch.Tensor:
        """(c, R, K·s, m) residuals of recordings, of rows' (c, T, s, m)."""
        if self.cut is None:
            return made
        _, owner, window = self.places
        whole = made.new_zeros(len(made), len(self.chosen), self.windows, *made.shape[2:])
        return whole.index_put((torch.arange(len(made))[:, None], owner, window), made).flatten(2, 3)

    def gaps(self, z: torch.Tensor, ends: torch.Tensor, continuity: float) -> torch.Tensor:
        """(c, R, (K − 1)·g, m) how far starts lie from the ends before them, in standard deviations, padded to rows.

        Args:
            z: (c, R, k).
            ends: (c, T, nq + nv) states in which rows end.
            continuity: The standard deviation, in units of `moves`.
        """
        assert self.moves is not None
        rows, owner, window = self.places
        count, nq, size = len(z), self.predictor.grid.q.shape[1], self.predictor.size
        starts = self.predictor.starts(self.numbers(z).flatten(0, 1), rows.repeat(count), self.moves)
        q, qd = (part.unflatten(0, (count, len(rows))) for part in starts)
        following = self._following
        before = torch.nonzero(following >= 0)[:, 0]
        after = following[before]
        by_place = difference(self.predictor.layout, ends[:, before, :nq], q[:, after]) / self.moves.position
        by_speed = (ends[:, before, nq:] - qd[:, after]) / self.moves.velocity
        apart = torch.cat([by_place, by_speed], -1) / continuity
        apart = torch.nn.functional.pad(apart, (0, -apart.shape[-1] % size)).unflatten(-1, (-1, size))
        whole = apart.new_zeros(count, len(self.chosen), self.windows - 1, *apart.shape[2:])
        places = (torch.arange(count)[:, None], owner[before], window[before])
        return whole.index_put(places, apart).flatten(2, 3)

    @property
    def _following(self) -> torch.Tensor:
        """(T,) place of the next window among the rows; −1: there is none."""
        assert self.cut is not None
        _, owner, window = self.places
        place = torch.full((len(self.chosen), self.windows + 1), -1)
        place[owner, window] = torch.arange(len(owner))
        return place[owner, window + 1]

    def perturbed(self, continuity: float | None) -> list[Perturbed]:
        """Groups of nuisance numbers that can be perturbed together."""
        parameters = [Perturbed((i,), None) for i in range(self.own)]
        groups = [range(self.windows)] if continuity is None else [range(p, self.windows, 2) for p in (0, 1)]
        starts = [
            Perturbed(tuple(self.own + k * self.start_size + i for k in windows), tuple(windows))
            for windows in groups
            for i in range(self.start_size)
            if len(windows)
        ]
        return [*parameters, *starts]

    def jacobian(self, slopes: torch.Tensor, groups: list[Perturbed], data: int) -> torch.Tensor:
        """(R, rows, m, k) slopes by z, of slopes (groups, R, rows, m) by groups.

        Args:
            slopes: By group.
            groups: What was perturbed.
            data: How many of the rows are samples; the rest are gaps.
        """
        count, total = slopes.shape[1], slopes.shape[2]
        z = self.own + self.windows * self.start_size
        made = slopes.new_zeros(total, z, count, slopes.shape[3])
        each = data // self.windows
        gap = (total - data) // max(1, self.windows - 1)
        window = torch.cat(
            [torch.arange(self.windows).repeat_interleave(each), torch.arange(self.windows - 1).repeat_interleave(gap)]
            if total > data
            else [torch.arange(self.windows).repeat_interleave(each)]
        )
        is_gap = torch.arange(total) >= data
        for group, slope in zip(groups, slopes, strict=True):
            column = torch.full((total,), group.columns[0])
            if group.windows is not None:
                by_window = torch.full((self.windows + 1,), -1)
                by_window[list(group.windows)] = torch.tensor(group.columns)
                column = by_window[window]
                column = torch.where(is_gap & (column < 0), by_window[window + 1], column)
            rows = torch.nonzero(column >= 0)[:, 0]
            made[rows, column[rows]] = slope.transpose(0, 1)[rows]
        return made.permute(2, 0, 3, 1)
