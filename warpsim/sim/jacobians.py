"""State-transition and control Jacobians of single steps: one forward pass, many right-hand sides.

Several steps of a trajectory lie side by side in as many worlds. They are taken once, factorizations and contacts
included; then unit covectors of the next state are pulled back through them one after the other, each giving one row of
A and B for all of these steps, exact to rounding. Only velocities (and activations) need that: with a semi-implicit
integrator the next positions are a closed form of the next velocities, q′ = q ⊕ h·qd′.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch

from warpsim.autograd.exchange import on_torch_stream, to_torch, to_warp
from warpsim.autograd.step import StepSlots, record_steps
from warpsim.core.errors import InputError
from warpsim.engine.engine import Engine, ParameterValues
from warpsim.rigid.model.tangent import move_derivatives
from warpsim.scene import Scene
from warpsim.sim.controls import ControlLayout, Controls
from warpsim.sim.initial_state import InitialState
from warpsim.sim.parameters_in_force import timestep_of
from warpsim.sim.rollouts import Rollouts
from warpsim.sim.trajectory import Trajectory
from warpsim.tape.convergence import Unsolved
from warpsim.tape.manifold import EUCLIDEAN

_DOFS, _MOST_STEPS = 216, 64
"""Steps lie side by side up to so many dofs: enough to hide the cost of a call, few enough to stay in the cache."""


class Linearization(NamedTuple):
    """x′ = f(x, u) to first order, x = (δq, qd, activation) in MuJoCo's tangent space: n = 2·nv + na.

    Where there are other matters, the moves of their fields follow, in the order of `Simulator.state_names`.

    Attributes:
        A: (…, n, n): ∂x′/∂x.
        B: (…, n, control size): ∂x′/∂u.
    """

    A: torch.Tensor
    B: torch.Tensor


class Linearizer:
    """Linearizes steps of a scene; keeps a model with as many worlds as it takes steps at once."""

    def __init__(self, scene: Scene, like: Engine, controls: tuple[str, ...]) -> None:
        """Compiles.

        Args:
            scene: What is stepped.
            like: The simulator's engine, for device and default parameters.
            controls: Controls in the order of the columns of B.
        """
        self._like = like
        self._steps = min(_MOST_STEPS, max(1, _DOFS // max(like.model.nv, 1)))
        self._engine = Engine(scene, worlds=self._steps, device=like.model.device, unconverged=like.unconverged)
        self._slot = StepSlots(self._engine.step_segment(controls, ()))
        self._controls = controls
        self._rest = InitialState(self._engine.compiled).state()
        self._fields = {f.name: f for f in self._engine.compiled.state}
        self._plain_covectors: dict[str, Sequence[torch.Tensor]] = {}
        self._semi_implicit = like.compiled.has_bodies and like.model.options.integrator != "rk4"

    def run(
        self, state: Mapping[str, torch.Tensor], controls: Mapping[str, torch.Tensor], values: ParameterValues
    ) -> Linearization:
        """Linearizes steps from given states.

        Args:
            state: `q`, `qd` and, if there are any, `activation`: (steps, W, …) each, unit quaternions.
            controls: By name, (steps, W, …) each; those left out are at their defaults.
            values: Parameters in force, (W, n, …) each.
        """
        lead = next(iter(state.values())).shape[:2]
        given = {name: tensor.detach().flatten(0, 1) for name, tensor in (*state.items(), *controls.items())}
        total, parts, unsolved = lead.numel(), [], Unsolved()
        for first in range(0, total, self._steps):
            chosen = torch.arange(first, first + self._steps).clamp(max=total - 1)  # the last step fills the last part
            with on_torch_stream(self._engine.model.device):
                self._load(values, chosen % lead[1])
                here = {name: tensor[chosen] for name, tensor in given.items()}
                self._take(here, chosen, lead[1])
                parts.append(self._rows(tuple(state)))
            self._note(unsolved, chosen[: total - first], lead[1])
        unsolved.settle(self._engine.unconverged)
        rows = {name: torch.cat([part[name] for part in parts])[:total] for name in parts[0]}
        timestep = to_torch(values["world.timestep"])[torch.arange(total) % lead[1]]
        a, b = self._assemble(rows, given, timestep, tuple(state))
        return Linearization(a.unflatten(0, lead), b.unflatten(0, lead))

    def _note(self, unsolved: Unsolved, chosen: torch.Tensor, worlds: int) -> None:
        """Notes those of the chosen steps that did not converge, each under its own step and world."""
        residuals = self._slot.segment.unsolved(1)
        if residuals is not None and residuals.any():
            for copy, place in enumerate(chosen.tolist()):
                unsolved.note(residuals[:, copy : copy + 1], *divmod(place, worlds))

    def _load(self, values: ParameterValues, worlds: torch.Tensor) -> None:
        """Gives each copy the parameters of the world it is a copy of."""
        if values is self._like.defaults:
            self._engine.load(self._engine.defaults)
            return
        loaded = dict(self._engine.defaults)
        for name, value in values.items():
            if value is not self._like.defaults[name]:
                loaded[name] = to_warp(to_torch(value)[worlds].contiguous(), value.dtype)
        self._engine.load(loaded)

    def _take(self, given: dict[str, torch.Tensor], chosen: torch.Tensor, worlds: int) -> None:
        """Takes the steps that lie side by side; `chosen` are their places in a trajectory of so many worlds."""

        def where(slot: int, k: int) -> tuple[int, int]:
            step, world = divmod(int(chosen[k]), worlds)
            return step + 1, world

        self._slot = record_steps(self._engine, self._slot, {**self._rest, **given}, 1, where)

    def _rows(self, fields: tuple[str, ...]) -> dict[str, torch.Tensor]:
        """Pulled-back unit covectors, (steps, seeds, …) by state field and control, and the velocities reached."""
        seeded = fields[1:] if self._semi_implicit else fields
        reached = dict(zip(seeded, self._slot.reached(seeded, ()), strict=True))
        seeds = {name: self._covectors(name, tensor) for name, tensor in reached.items()}
        count, like = sum(map(len, seeds.values())), reached[seeded[0]]
        shapes = self._slot.shapes((*fields, *self._controls))
        found = {name: like.new_empty((shape[0], count, *shape[1:])) for name, shape in shapes.items()}
        rows = {name: tensor.unbind(1) for name, tensor in found.items()}
        first = 0
        for field, covectors in seeds.items():
            self._slot.backward_each(field, covectors, {name: made[first:] for name, made in rows.items()})
            first += len(covectors)
        found = {name: tensor.flatten(2) for name, tensor in found.items()}
        return {**({"reached": reached["qd"]} if self._semi_implicit else {}), **found}

    def _covectors(self, field: str, reached: torch.Tensor) -> Sequence[torch.Tensor]:
        """Unit covectors (steps, …) of a field; those of plain numbers are the same everywhere."""
        known = self._plain_covectors.get(field)
        if known is not None:
            return known
        manifold = self._fields[field].manifold
        units = manifold.units(reached.flatten(1))
        made = units.reshape(*units.shape[:2], *reached.shape[1:]).unbind(1)
        if manifold is EUCLIDEAN:
            self._plain_covectors[field] = made
        return made

    def _assemble(
        self,
        rows: dict[str, torch.Tensor],
        given: Mapping[str, torch.Tensor],
        timestep: torch.Tensor,
        fields: tuple[str, ...],
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """A and B, (steps, n, …), from pulled-back covectors."""
        layout = self._engine.model.layout
        a = torch.cat([self._fields[n].manifold.pull(given[n].flatten(1), rows[n]) for n in fields], -1)
        b = torch.cat([rows[name] for name in self._controls], -1)
        if not self._semi_implicit:
            return a, b
        nv, h = layout.nv, timestep[:, None, None]
        by_q, by_step = move_derivatives(layout, h[..., 0] * rows["reached"])
        moved_a, moved_b = h * by_step @ a[:, :nv], h * by_step @ b[:, :nv]
        moved_a[..., :nv] += by_q
        return torch.cat([moved_a, a], 1), torch.cat([moved_b, b], 1)


class Jacobians:
    """A and B of the steps of a simulator's trajectories."""

    def __init__(self, scene: Scene, engine: Engine, layout: ControlLayout, rollouts: Rollouts) -> None:
        """Compiles nothing yet.

        Args:
            scene: What is stepped.
            engine: The simulator's.
            layout: Controls in the order of the columns of B.
            rollouts: Knows what controls are when none are given.
        """
        self._scene = scene
        self._engine = engine
        self._layout = layout
        self._rollouts = rollouts
        self._linearizer: Linearizer | None = None

    def jacobians(self, trajectory: Trajectory, controls: Controls | None = None) -> Linearization:
        """A and B of every step of a trajectory, in MuJoCo's tangent space of 2·nv + na numbers; for iLQR and analysis.

        Args:
            trajectory: From a rollout of this simulator with `keep_every=1`, N + 1 frames. The parameters are those it
                was made with, whatever is in force now.
            controls: What it was made with, (N, W, control_size), (N, control_size) or by name; None: the defaults.

        Returns:
            A (N, W, n, n) and B (N, W, n, control_size), not in torch's graph.
        """
        self._engine.check_differentiable()
        values = self._made_with(trajectory)
        steps, names = len(trajectory.times) - 1, self._layout.names
        if controls is None:
            given = self._rollouts.default_controls(steps, values)
        else:
            given = self._layout.split(controls, steps)
        if set(given) != set(names):
            raise InputError(f"give all of the controls {', '.join(names)}; got {', '.join(given)}")
        if self._linearizer is None:
            self._linearizer = Linearizer(self._scene, self._engine, names)
        state = {f.name: trajectory[f.name][:-1] for f in self._engine.compiled.state if f.differentiable}
        return self._linearizer.run(state, given, values)

    def _made_with(self, trajectory: Trajectory) -> ParameterValues:
        """The parameters of a trajectory of this simulator, each of whose steps was kept."""
        made = trajectory.made_with
        # its model may have had room for fewer contacts
        if made is None or trajectory.model is None or trajectory.model.layout is not self._engine.model.layout:
            raise InputError(
                "this trajectory was made by another simulator, or saved and loaded, so that its parameters are not "
                "known here; roll out again with this one"
            )
        apart, timestep = trajectory.times[1:2], timestep_of(made)
        if not len(apart) or abs(apart[0] - timestep) > 1e-6 * timestep:
            raise InputError(f"the frames of the trajectory are not its steps, of {timestep:g} s; use keep_every=1")
        return made.parameters.values
