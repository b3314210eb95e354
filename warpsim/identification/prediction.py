"""Residuals of many candidates at once: every pair of a recording and a candidate in a world of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from warpsim.core.errors import InputError
from warpsim.identification import delays
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
        delays: Keys of what is late, with the bounds (lower, upper) in s.
        samples: Of whole recordings, whatever the grid in force holds.
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
        late = [(key, p.interval) for p in parameters if p.is_delay for key in p.spec.keys]
        self.delays = delays.each_once(late)
        delays.check_delays(self.delays, channels, controlled=grid.controls is not None)
        self.substeps, self._threads = substeps, threads
        self.samples = grid.samples
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
        return self.residuals_and_ends(x, z, which, samples, contacts, moves)[0]

    def residuals_and_ends(
        self,
        x: torch.Tensor,
        z: torch.Tensor,
        which: torch.Tensor,
        samples: int,
        contacts: Contacts,
        moves: StartMoves | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """As `residuals`, and (B, nq + nv) the states in which the rollouts end."""
        self.rollouts += len(which) * (samples - 1) / max(1, self.samples - 1)

        def made(x: torch.Tensor, z: torch.Tensor, which: torch.Tensor) -> torch.Tensor:
            return self._residuals(x, z, which, samples, contacts, moves)

        both = worlds_over_ranks(made, x, z, which, what="residuals of recordings")
        size = (samples - 1) * self.size
        return both[:, :size].unflatten(1, (samples - 1, self.size)), both[:, size:]

    def _residuals(
        self,
        x: torch.Tensor,
        z: torch.Tensor,
        which: torch.Tensor,
        samples: int,
        contacts: Contacts,
        moves: StartMoves | None,
    ) -> torch.Tensor:
        """(B, …) residuals and ends, one number after another, of this process alone."""
        worlds = min(len(which), MAXIMUM_WORLDS)
        parts = []
        for first in range(0, len(which), worlds):
            places = torch.arange(first, first + worlds).clamp(max=len(which) - 1)  # the last pair fills the last part
            kept = min(worlds, len(which) - first)
            late = self.late(x[places], z[places])
            motion = self.rollout(x[places], z[places], which[places], samples, contacts, moves, steps=bool(late))
            apart = self.compare(motion, which[places], samples, late)
            parts.append(torch.cat([apart.flatten(1), motion.q[-1].to(apart), motion.qd[-1].to(apart)], -1)[:kept])
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
        steps: bool = False,
    ) -> Trajectory:
        """One rollout of as many worlds as there are pairs, with a sample per measured one, or with every step."""
        sim = self.simulator(len(which), contacts)
        q, qd = self.starts(z, which, moves)
        controls = self._controls(x, z, which, samples)
        return sim.rollout(
            self.substeps * (samples - 1),
            controls,
            q=q,
            qd=qd,
            parameters=self._given(sim, x, z, which),
            outputs=tuple(dict.fromkeys((*channel_outputs(self.channels), *outputs))),
            keep_every=1 if steps else self.substeps,
            threads=self._threads,
        )

    def _controls(self, x: torch.Tensor, z: torch.Tensor, which: torch.Tensor, samples: int) -> torch.Tensor | None:
        """(steps, B, control size) what acts."""
        if self.grid.controls is None:
            return None
        given = self.grid.controls[which, : samples - 1]
        late = delays.of_controls(self.late(x, z))
        if late is None:
            return given.transpose(0, 1).repeat_interleave(self.substeps, 0)
        before = given[:, :0] if self.grid.before is None else self.grid.before[which]
        given = torch.cat([before, given], 1)
        return delays.act_late(given, before.shape[1], late, self.grid.interval[which], self.substeps)

    def late(self, x: torch.Tensor, z: torch.Tensor) -> dict[str, torch.Tensor]:
        """(B,) s each: by key, what is late."""
        found: dict[str, torch.Tensor] = {}
        for numbers, group in ((x, self.shared), (z, self.nuisance)):
            at = 0
            for parameter in group:
                if parameter.is_delay:
                    found |= dict.fromkeys(parameter.spec.keys, parameter.values(numbers[:, at : at + 1])[:, 0])
                at += parameter.size
        return found

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

    def compare(
        self, motion: Trajectory, which: torch.Tensor, samples: int, late: Mapping[str, torch.Tensor] | None = None
    ) -> torch.Tensor:
        """(B, samples − 1, m) masked residuals of a rollout; with delays, of one with every step."""
        parts = []
        for channel in self.channels:
            made = self.shown(motion, channel, which, late or {})
            mask = self.counted(channel, which, samples)[..., None]
            apart = residuals(self._sim, channel, made, self.grid.measured[channel.name][which, 1:samples])
            parts.append(torch.where(mask > 0, apart, 0.0))
        return torch.cat(parts, -1)

    def counted(self, channel: Channel, which: torch.Tensor, samples: int) -> torch.Tensor:
        """(B, samples − 1) 1 where a channel is compared: measured, and within the rollout however late it may be."""
        mask = self.grid.mask[channel.name][which, 1:samples]
        bounds = delays.bounds_of(channel.name, self.delays)
        return mask if bounds is None else mask * delays.inside(bounds, self.grid.interval[which], samples)

    def shown(
        self, motion: Trajectory, channel: Channel, which: torch.Tensor, late: Mapping[str, torch.Tensor]
    ) -> torch.Tensor:
        """(B, samples − 1, …) what a channel shows of a rollout at the samples after the first."""
        made = predicted(motion, channel.name)
        seconds = delays.of_channel(channel.name, late)
        if seconds is None:
            return made[self.substeps if late else 1 :: self.substeps if late else 1].transpose(0, 1)
        return delays.read_late(self.layout, channel, made, seconds, self.grid.interval[which], self.substeps)

    def _given(self, sim: Simulator, x: torch.Tensor, z: torch.Tensor, which: torch.Tensor) -> dict[Any, torch.Tensor]:
        """The `parameters=` of a rollout."""
        arrays: dict[str, torch.Tensor] = {"world.timestep": self.grid.interval[which] / self.substeps}
        handles: dict[Any, torch.Tensor] = {}
        for numbers, group in ((x, self.shared), (z, self.nuisance)):
            at = 0
            for parameter in group:
                values = parameter.values(numbers[:, at : at + parameter.size])
                at += parameter.size
                for target in () if parameter.is_delay else parameter.targets:
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
