"""A twin that follows: values of a scene from live samples, over a window that moves and a memory that fades.

At each update, one Gauss–Newton step moves the values and the state at the window's first sample, from where the last
update left them. What came before the window is remembered as a quadratic around the values of then, and each window
that is over joins it, and the whole is multiplied by the forgetting factor. A window joins only when the present one
holds none of its samples, so that no sample is counted twice. A window and a memory that are further apart than chance
explains mean that something changed: then all that is remembered is dropped.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np
import torch

from warpsim.core.errors import InputError, SimulationError
from warpsim.identification.gauss_newton import GaussNewton, Normal, Setting, eliminated
from warpsim.identification.grid import Grid, compared_channels
from warpsim.identification.parameter import BoundParameter, Parameter
from warpsim.identification.prediction import Contacts, Predictor, StartMoves, substeps_for
from warpsim.identification.starts import start_moves
from warpsim.optimizers.box_qp import box_qp
from warpsim.optimizers.threads import one_torch_thread
from warpsim.rigid.model.tangent import difference
from warpsim.scene import Scene
from warpsim.sim.simulator import Simulator

_WIDE = 1e-6
"""Information, in units of x, about a value of which nothing is known beforehand."""
_CHANCE = 5.0
"""Standard deviations by which window and memory may be apart before chance does not explain it."""
_FIRST = 4
"""Steps of an update that has no other one to start from."""


@dataclass(frozen=True)
class Estimate:
    """What a twin holds for true.

    Attributes:
        time: s since the first sample.
        names: (n,).
        values: (n,) in their own units.
        half_width: (n,) half of the 95 % interval, for samples whose errors are independent; infinite where neither
            the window nor the memory determines a value.
        level: Root mean square of the residuals that window and memory leave, in standard deviations; well above 1
            where they contradict each other, as just after a change.
        updated: Whether the last sample led to an update.
    """

    time: float
    names: tuple[str, ...]
    values: np.ndarray
    half_width: np.ndarray
    level: float
    updated: bool

    def __str__(self) -> str:
        found = zip(self.names, self.values, self.half_width, strict=True)
        return f"{self.time:.2f} s: " + ", ".join(f"{name} {value:.4g} ± {half:.2g}" for name, value, half in found)


class Twin:
    """Follows values of a scene from samples that come one after the other.

    Attributes:
        estimate: The present one.
    """

    def __init__(
        self,
        scene: str | PathLike[str] | Scene,
        parameters: Sequence[Parameter | str],
        *,
        rate: float,
        noise: Mapping[str, Any],
        window: int = 40,
        every: int = 5,
        forgetting: float = 0.5,
        velocity_noise: Any = 1.0,
        substeps: int | None = None,
        softening: float = 0.0,
        threads: int = 1,
    ) -> None:
        """Starts at the parameters' own starts, as sure of them as their priors say.

        Args:
            scene: A USD, MJCF or URDF file, or a `Scene`.
            parameters: What is followed; all are shared. A prior counts once, at the beginning.
            rate: Samples per second.
            noise: Standard deviation by channel, SI; "q" must be among them, which tells where the window begins.
            window: Samples that are compared.
            every: Samples from one update to the next.
            forgetting: Share of what is known that is left when a window is over, from 0 to 1.
            velocity_noise: Standard deviation of the velocity at the window's first sample around what the last window
                says of it.
            substeps: Steps per sample; None: about as the scene's time step says.
            softening: m by which contacts are softened; see `Simulator`.
            threads: That share the worlds.
        """
        if not (1 <= every <= window and 0 <= forgetting <= 1 and rate > 0):
            raise InputError(
                f"window={window}, every={every}, forgetting={forgetting}, rate={rate}: give 1 ≤ every ≤ window, a "
                "share from 0 to 1 that is left, and a rate above 0"
            )
        if "q" not in noise:
            raise InputError("noise: give that of 'q'; a window starts from the coordinates of its first sample")
        self._sim = Simulator(scene)
        self._samples: deque[tuple[dict[str, np.ndarray], np.ndarray]] = deque(maxlen=window + 1)
        self._window, self._every, self._forgetting, self._interval = window, every, forgetting, 1 / rate
        self._bound = [BoundParameter(Parameter(p) if isinstance(p, str) else p, self._sim) for p in parameters]
        if not self._bound or any(p.spec.per_recording for p in self._bound):
            raise InputError("give at least one parameter, and none per recording: there is one recording")
        self._names = tuple(name for p in self._bound for name in p.names)
        weight = np.concatenate([p.weight for p in self._bound])
        for parameter in self._bound:
            parameter.weight = np.zeros(parameter.size)  # it is in the memory, which fades
        self._memory = torch.diag(torch.tensor(np.maximum(weight**2, _WIDE)))
        self._center = torch.zeros(len(weight), dtype=torch.float64)
        self._pending = (self._memory, self._center)
        self._options = dict(noise=noise, substeps=substeps, threads=threads, velocity_noise=velocity_noise)
        self._setting = Setting(window + 1, Contacts(softening), 1)
        self._solver: GaussNewton | None = None
        self._moves: StartMoves | None = None
        self._next: tuple[torch.Tensor, torch.Tensor] | None = None
        self._count = self._used = 0
        self.estimate = self._told(self._memory, math.nan, False)

    def push(self, sample: Mapping[str, Any], control: Any = None) -> Estimate:
        """Takes a sample; every few of them the values are updated.

        Args:
            sample: By channel, as in `Recording`; NaN where nothing was measured. A sample that did not come is one of
                NaN.
            control: (control size,) what acts from now to the next sample; None: nothing.

        Returns:
            The present estimate.
        """
        self._samples.append(self._checked(sample, control))
        self._count += 1
        full = len(self._samples) == self._window + 1
        if full and (self._solver is None or (self._count - 1 - self._window) % self._every == 0):
            with one_torch_thread():
                self._update()
        else:
            self.estimate = replace(self.estimate, time=self._time, updated=False)
        return self.estimate

    @property
    def _time(self) -> float:
        return max(0, self._count - 1) * self._interval

    def _checked(self, sample: Mapping[str, Any], control: Any) -> tuple[dict[str, np.ndarray], np.ndarray]:
        known = self._samples[-1][0] if self._samples else {"q": np.zeros(self._sim.nq)}
        made = {name: np.atleast_1d(np.asarray(values, dtype=np.float64)) for name, values in sample.items()}
        lost = [name for name in known if name not in made or made[name].shape != known[name].shape]
        if lost or (self._samples and len(made) != len(known)):
            raise InputError(
                f"sample {self._count}: channels {', '.join(made) or 'none'}; wanted are "
                + ", ".join(f"{name} {values.shape}" for name, values in known.items())
            )
        size = self._sim.control_size
        acting = np.zeros(size) if control is None else np.asarray(control, dtype=np.float64).ravel()
        if acting.shape != (size,) or not np.isfinite(acting).all():
            raise InputError(f"sample {self._count}: the control is {control}; wanted are {size} finite numbers")
        return made, acting

    def _grid(self) -> tuple[Grid, torch.Tensor]:
        """The window, and by how much the state where it starts is off its first sample, in units of z."""
        nv = self._sim.nv
        stacked = {name: np.stack([sample[0][name] for sample in self._samples]) for name in self._samples[0][0]}
        measured, mask = {}, {}
        for name, values in stacked.items():
            known = np.isfinite(values).all(-1)
            good = np.where(known[:, None], values, values[known][0] if known.any() else 0.0)
            measured[name], mask[name] = torch.tensor(good)[None], torch.tensor(known.astype(float))[None]
        first = measured["q"][:, 0]
        q, qd = (first, self._slope(stacked["q"])) if self._next is None else self._next
        seen = bool(mask["q"][0, 0])
        grid = Grid(
            interval=torch.tensor([self._interval], dtype=torch.float64),
            measured=measured,
            mask=mask,
            q=first if seen else q,
            qd=qd,
            controls=torch.tensor(np.stack([sample[1] for sample in self._samples]))[None]
            if self._sim.control_size
            else None,
            notes=(),
        )
        off = torch.zeros(1, 2 * nv, dtype=torch.float64)
        if self._moves is not None:
            off[:, :nv] = difference(self._sim.model.layout, q, grid.q) / self._moves.position
        return grid, off

    def _slope(self, q: np.ndarray) -> torch.Tensor:
        """(1, nv) velocity of the first samples."""
        known = np.flatnonzero(np.isfinite(q).all(-1))[:5]
        if len(known) < 2:
            raise InputError(f"sample {self._count - 1}: the first window holds fewer than two samples of 'q'")
        ends = torch.tensor(q[known[[-1, 0]]])
        moved = difference(self._sim.model.layout, ends[:1], ends[1:])
        return moved / (self._interval * float(known[-1] - known[0]))

    def _update(self) -> None:
        grid, off = self._grid()
        if self._solver is None:
            self._solver = self._made(grid)
        solver, before = self._solver, self._solver.x
        solver.predictor.grid, solver.z = grid, off
        over = self._used == 0  # no sample of the window that is pending is left in this one
        if over:
            self._memory, self._center = self._pending
        try:
            for _ in range(_FIRST if self._next is None else 1):
                level, information = self._iterate(grid)
            self._next = self._later()
        except SimulationError:  # nothing is learnt from this window; the next one starts from its own samples
            solver.x, self._next = before, None
            self.estimate = replace(self.estimate, time=self._time, level=math.inf, updated=False)
            return
        self.estimate = self._told(information, level, True)
        if over:
            self._pending = (self._forgetting * information + self._nothing, solver.x.clone())
        self._used = 0 if self._used + self._every >= self._window else self._used + self._every

    def _iterate(self, grid: Grid) -> tuple[float, torch.Tensor]:
        """One step; the level of residuals that memory and window leave, and the information (n, n) behind values."""
        solver = self._solver
        assert solver is not None
        normal = solver.linearize(self._setting)
        sizes = {channel.name: channel.size for channel in solver.predictor.channels}
        compared = max(1.0, sum(float(grid.mask[name][0, 1:].sum()) * size for name, size in sizes.items()))
        shares, slope = eliminated(normal.hxx, normal.hxz, normal.hzz, normal.gx, normal.gz)
        dx, dz = self._step(normal, shares, slope)
        left = normal.residuals + (normal.jacobian @ torch.cat([dx, dz[0]]))
        level = math.sqrt(float(left.square().sum()) / compared)
        if self._next is not None and self._contradicted(shares, slope):
            self._memory, self._center = self._nothing, solver.x.clone()
            self._pending = (self._memory, self._center)
            dx, dz = self._step(normal, shares, slope)
        solver.x, solver.z = solver.x + dx, solver.z + dz
        return level, self._memory + shares

    def _contradicted(self, shares: torch.Tensor, slope: torch.Tensor) -> bool:
        """Whether window and memory are further apart than chance explains; arguments as of `_step`."""
        assert self._solver is not None
        alone = -torch.linalg.pinv(shares, rtol=1e-10, hermitian=True) @ slope
        apart = self._solver.x + alone - self._center
        both = self._memory @ torch.linalg.solve(self._memory + shares, shares)  # the inverse of both covariances' sum
        return float(apart @ both @ apart) > (math.sqrt(len(apart)) + _CHANCE - 1) ** 2

    @property
    def _nothing(self) -> torch.Tensor:
        """(n, n) information of which nothing can be concluded."""
        return _WIDE * torch.eye(len(self._names), dtype=torch.float64)

    def _made(self, grid: Grid) -> GaussNewton:
        """The solver, once it is known what is measured."""
        options = self._options
        predictor = Predictor(
            self._sim.scene,
            self._sim,
            grid,
            compared_channels(grid, self._sim, options["noise"]),
            self._bound,
            substeps=substeps_for(grid, self._sim, options["substeps"]),
            threads=options["threads"],
        )
        self._moves = start_moves(predictor, None, options["velocity_noise"])
        return GaussNewton(predictor, torch.zeros(1, dtype=torch.long), robust=math.inf, moves=self._moves)

    def _step(self, normal: Normal, shares: torch.Tensor, slope: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(n,), (1, 2·nv): moves of the values, within their bounds, and of the first sample's state after them.

        Args:
            normal: Equations of the window.
            shares: (n, n) their Hessian once the state follows.
            slope: (n,) likewise.
        """
        solver = self._solver
        assert solver is not None
        here = solver.x.numpy()
        low, high = solver.lower - here, solver.upper - here
        pulled = slope + self._memory @ (solver.x - self._center)
        dx = torch.tensor(box_qp((self._memory + shares).numpy(), pulled.numpy(), low, high, np.zeros(len(here))).x)
        pull = normal.gz + torch.einsum("rik,i->rk", normal.hxz, dx)
        return dx, -torch.linalg.solve(normal.hzz, pull[..., None])[..., 0]

    def _later(self) -> tuple[torch.Tensor, torch.Tensor]:
        """(1, nq), (1, nv): the state at the sample where the next window starts."""
        solver = self._solver
        assert solver is not None
        with torch.no_grad():
            motion = solver.predictor.rollout(
                solver.x[None], solver.z, solver.chosen, self._every + 1, self._setting.contacts, self._moves
            )
        return motion.q[-1], motion.qd[-1]

    def _told(self, information: torch.Tensor, level: float, updated: bool) -> Estimate:
        x = torch.zeros(len(self._names), dtype=torch.float64) if self._solver is None else self._solver.x
        scale = np.concatenate([p.scale for p in self._bound])
        parts = zip(self._bound, torch.split(x, [p.size for p in self._bound]), strict=True)
        values = torch.cat([p.values(one) for p, one in parts]).numpy()
        variance = torch.linalg.inv(information).diagonal().numpy()
        wider = max(1.0, level) if math.isfinite(level) else 1.0
        half = np.where(variance < 0.1 / _WIDE, 1.96 * wider * scale * np.sqrt(variance), np.inf)
        return Estimate(self._time, self._names, values, half, level, updated)
