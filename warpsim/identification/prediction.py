"""Residuals of many candidates at once: every pair of a recording and a candidate in a world of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from warpsim.core.errors import InputError
from warpsim.identification.grid import Channel, Grid, channel_outputs, predicted, residuals
from warpsim.identification.parameter import BoundParameter
from warpsim.io.load import ledger_told
from warpsim.parallel.worlds import worlds_over_ranks
from warpsim.rigid.model.tangent import shift
from warpsim.rigid.model.topology import Layout
from warpsim.sim.simulator import Simulator
from warpsim.sim.trajectory import Trajectory

MAXIMUM_WORLDS = 1024
"""Side by side; more are taken in turns."""


@dataclass(frozen=True)
class Contacts:
    """How contacts are modeled while fitting.

    Attributes:
        softening: m; see `Simulator`.
        impacts: Whether bounces are impacts; None: as in the scene.
    """

    softening: float = 0.0
    impacts: bool | None = None


@dataclass(frozen=True)
class StartMoves:
    """By how much initial states may move, per unit of a nuisance number; the order is that of dofs, q then qd.

    Attributes:
        position: (nv,) rad or m.
        velocity: (nv,) rad/s or m/s.
    """

    position: torch.Tensor
    velocity: torch.Tensor


class Predictor:
    """Rolls out candidates and compares them with recordings.

    Sizes: n shared numbers x, k nuisance numbers z per recording (those of parameters first, then of the initial
    state), R recordings, G samples, m residuals per sample.

    Attributes:
        parameters: What x means, then z.
        grid: The data.
        channels: What is compared.
        rollouts: How many were made, in units of a whole recording's length.
    """

    def __init__(
        self,
        source: Any,
        sim: Simulator,
        grid: Grid,
        channels: Sequence[Channel],
        parameters: Sequence[BoundParameter],
        *,
        substeps: int,
        threads: int = 1,
    ) -> None:
        """Remembers.

        Args:
            source: The scene, as `Simulator` takes it.
            sim: One world of it.
            grid: The data.
            channels: What is compared.
            parameters: Bound to `sim`.
            substeps: Steps per sample.
            threads: That share the worlds.
        """
        self.grid, self.channels = grid, list(channels)
        self.shared = [p for p in parameters if not p.spec.per_recording]
        self.nuisance = [p for p in parameters if p.spec.per_recording]
        self.substeps, self._threads = substeps, threads
        self._source, self._sim = source, sim
        self._sims: dict[tuple[Contacts, int], Simulator] = {}
        self.rollouts = 0.0

    @property
    def layout(self) -> Layout:
        """Names and places of the scene's joints."""
        return self._sim.model.layout

    @property
    def has_contacts(self) -> bool:
        """Whether bodies of the scene can touch."""
        return self._sim.model.max_contacts > 0

    @property
    def size(self) -> int:
        """m."""
        return sum(channel.size for channel in self.channels)

    def simulator(self, worlds: int, contacts: Contacts) -> Simulator:
        """One for so many worlds and this kind of contacts, made once."""
        key = (contacts, worlds)
        if key not in self._sims:
            with ledger_told():
                self._sims[key] = Simulator(
                    self._source,
                    worlds=worlds,
                    controls=self._sim.control_names,
                    contact_softening=contacts.softening or None,
                    impacts=contacts.impacts,
                )
        return self._sims[key]

    def residuals(
        self,
        x: torch.Tensor,
        z: torch.Tensor,
        which: torch.Tensor,
        samples: int,
        contacts: Contacts,
        moves: StartMoves | None = None,
    ) -> torch.Tensor:
        """(B, samples − 1, m) masked residuals in standard deviations, differentiable by x and z.

        Args:
            x: (B, n).
            z: (B, k), or with `moves` (B, k + 2·nv).
            which: (B,) recording of each pair.
            samples: Compared ones, from the start.
            contacts: How they are modeled.
            moves: Initial states move by the last numbers of z; None: they are the recordings'.
        """
        self.rollouts += len(which) * (samples - 1) / max(1, self.grid.samples - 1)

        def compared(x: torch.Tensor, z: torch.Tensor, which: torch.Tensor) -> torch.Tensor:
            return self._residuals(x, z, which, samples, contacts, moves)

        return worlds_over_ranks(compared, x, z, which, what="residuals of recordings")

    def _residuals(
        self,
        x: torch.Tensor,
        z: torch.Tensor,
        which: torch.Tensor,
        samples: int,
        contacts: Contacts,
        moves: StartMoves | None,
    ) -> torch.Tensor:
        """As `residuals`, of this process alone."""
        worlds = min(len(which), MAXIMUM_WORLDS)
        parts = []
        for first in range(0, len(which), worlds):
            places = torch.arange(first, first + worlds).clamp(max=len(which) - 1)  # the last pair fills the last part
            kept = min(worlds, len(which) - first)
            motion = self.rollout(x[places], z[places], which[places], samples, contacts, moves)
            parts.append(self.compare(motion, which[places], samples)[:kept])
        return torch.cat(parts)

    def rollout(
        self,
        x: torch.Tensor,
        z: torch.Tensor,
        which: torch.Tensor,
        samples: int,
        contacts: Contacts,
        moves: StartMoves | None = None,
        outputs: Sequence[str] = (),
    ) -> Trajectory:
        """One rollout of as many worlds as there are pairs, with a sample per measured one."""
        sim = self.simulator(len(which), contacts)
        q, qd = self.starts(z, which, moves)
        controls = None
        if self.grid.controls is not None:
            controls = self.grid.controls[which, : samples - 1].transpose(0, 1).repeat_interleave(self.substeps, 0)
        return sim.rollout(
            self.substeps * (samples - 1),
            controls,
            q=q,
            qd=qd,
            parameters=self._given(sim, x, z, which),
            outputs=tuple(dict.fromkeys((*channel_outputs(self.channels), *outputs))),
            keep_every=self.substeps,
            threads=self._threads,
        )

    def starts(
        self, z: torch.Tensor, which: torch.Tensor, moves: StartMoves | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """(B, nq) and (B, nv): where rollouts start."""
        q, qd = self.grid.q[which], self.grid.qd[which]
        if moves is None:
            return q, qd
        nv = qd.shape[1]
        moved = z[:, -2 * nv :]
        return shift(self._sim.model.layout, q, moved[:, :nv] * moves.position), qd + moved[:, nv:] * moves.velocity

    def compare(self, motion: Trajectory, which: torch.Tensor, samples: int) -> torch.Tensor:
        """(B, samples − 1, m) masked residuals of a rollout."""
        parts = []
        for channel in self.channels:
            made = predicted(motion, channel.name)[1:].transpose(0, 1)
            mask = self.grid.mask[channel.name][which, 1:samples, None]
            apart = residuals(self._sim, channel, made, self.grid.measured[channel.name][which, 1:samples])
            parts.append(torch.where(mask > 0, apart, 0.0))
        return torch.cat(parts, -1)

    def _given(self, sim: Simulator, x: torch.Tensor, z: torch.Tensor, which: torch.Tensor) -> dict[Any, torch.Tensor]:
        """The `parameters=` of a rollout."""
        arrays: dict[str, torch.Tensor] = {"world.timestep": self.grid.interval[which] / self.substeps}
        handles: dict[Any, torch.Tensor] = {}
        for numbers, group in ((x, self.shared), (z, self.nuisance)):
            at = 0
            for parameter in group:
                values = parameter.values(numbers[:, at : at + parameter.size])
                at += parameter.size
                for target in parameter.targets:
                    self._write(sim, arrays, handles, target, parameter.written(values, target))
        return {**arrays, **handles}

    def _write(
        self,
        sim: Simulator,
        arrays: dict[str, torch.Tensor],
        handles: dict[Any, torch.Tensor],
        target: Any,
        values: torch.Tensor,
    ) -> None:
        worlds = len(values)
        places = torch.as_tensor(target.places)
        if target.attribute is not None:
            held = handles.get(target.name, torch.tensor(target.base).expand(worlds, -1))
            handles[target.name] = (
                held.reshape(worlds, -1).index_copy(1, places, values).reshape(worlds, *target.attribute.shape)
            )
            return
        whole = arrays.get(target.name)
        if whole is None:
            whole = sim.parameter(target.name).double()
        flat = whole.reshape(worlds, -1)
        offset = 0 if not target.item else target.item[0] * target.base.size
        arrays[target.name] = flat.index_copy(1, offset + places, values.expand(worlds, len(places))).reshape(
            whole.shape
        )


def substeps_for(grid: Grid, sim: Simulator, substeps: int | None) -> int:
    """Steps per sample: as asked for, else so many that steps are no longer than the scene's."""
    if substeps is not None:
        if substeps < 1:
            raise InputError(f"substeps={substeps}: give 1 or more")
        return substeps
    return max(1, round(float(grid.interval.max()) / sim.timestep))
