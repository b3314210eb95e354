"""One scene in a number of worlds, each rolled out from inputs of its own: gradients of one, differences of many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
import warp as wp

from warpsim.autograd.exchange import to_warp, torch_device, torch_real
from warpsim.autograd.parameters import Parameters
from warpsim.autograd.rollout import RolloutCall
from warpsim.check.gradcheck.directions import Direction
from warpsim.check.gradcheck.losses import Loss, Tensors
from warpsim.check.gradcheck.modes import ModeObserver, StepModes
from warpsim.core.driving import drive
from warpsim.engine.engine import Engine, RolloutSpec
from warpsim.rigid.model.model import Model
from warpsim.scene import Scene
from warpsim.sim.initial_state import InitialState


@dataclass(frozen=True)
class Point:
    """Inputs of a rollout of one world.

    Attributes:
        state: q (nq), qd (nv), activation (na).
        controls: By name, (N, …) each.
        parameters: Values that differ from the scene's, by name, (n, …) each.
    """

    state: Mapping[str, torch.Tensor]
    controls: Mapping[str, torch.Tensor]
    parameters: Mapping[str, torch.Tensor]

    @property
    def steps(self) -> int:
        """N."""
        return len(next(iter(self.controls.values())))


Move = tuple[Direction, float]
"""A direction, and how far along it."""


class Probe:
    """Rolls a scene out in W worlds."""

    def __init__(
        self, scene: Scene, *, worlds: int, device: wp.Device, controls: tuple[str, ...], outputs: tuple[str, ...] = ()
    ) -> None:
        # a check is to show wrong gradients, not to stop at them
        self._engine = Engine(scene, worlds=worlds, device=device, unconverged="warn")
        self._initial = InitialState(self._engine.compiled)
        self._controls = controls
        self._outputs = outputs
        self._observer: ModeObserver | None = None

    @property
    def model(self) -> Model:
        """The compiled scene."""
        return self._engine.model

    def gradients(self, point: Point, loss: Loss, parameters: Sequence[str]) -> tuple[float, dict[str, torch.Tensor]]:
        """The loss of a single world and its gradients by all inputs and the named parameters.

        The gradient by q is turned into one by the nv numbers of its tangent space, and so for every manifold.
        """
        inputs = {**point.state, **point.controls, **{name: point.parameters[name] for name in parameters}}
        leaves = {name: tensor.clone().requires_grad_() for name, tensor in inputs.items()}
        moved = Point(
            {name: leaves[name] for name in point.state},
            {name: leaves[name] for name in point.controls},
            {**point.parameters, **{name: leaves[name] for name in parameters}},
        )
        value = loss(self._roll_out(_repeated(moved, 1)))[0]
        # an input that no step reads has no path at all: None, which is zero
        found = torch.autograd.grad(value, list(leaves.values()), allow_unused=True)
        made = {
            name: torch.zeros_like(leaf) if gradient is None else gradient
            for (name, leaf), gradient in zip(leaves.items(), found, strict=True)
        }
        for name, at in point.state.items():
            pulled = self._initial.fields[name].manifold.pull(at.reshape(-1), made[name].reshape(1, -1))
            made[name] = pulled[0] if pulled.shape[-1] != at.numel() else pulled[0].reshape(at.shape)
        return float(value.detach()), made

    def tangent_shape(self, name: str, value: torch.Tensor) -> tuple[int, ...]:
        """Of a move of a state field: that of its value, or (n,) on a manifold of fewer dimensions."""
        size = self._initial.fields[name].tangent_size
        return tuple(value.shape) if size == value.numel() else (size,)

    def run(self, point: Point, moves: Sequence[Move] = ()) -> Tensors:
        """Trajectories (N + 1, W, …) of world k from the point moved along `moves[k]`; the others from the point."""
        with torch.no_grad():
            return self._roll_out(self._moved(point, moves))

    def modes(self, point: Point, made: Tensors, moves: Sequence[Move] = ()) -> list[StepModes]:
        """Decisions of every step of trajectories that have just been `run`."""
        if self._observer is None or self._observer.model is not self.model:  # it has more places for contacts
            self._observer = ModeObserver(self._engine.compiled, self._controls)
        return list(self._observer.modes(made, self._moved(point, moves).controls))

    def _moved(self, point: Point, moves: Sequence[Move]) -> Point:
        """The point in all worlds, world k moved; every field gets a world axis."""
        batch = _repeated(point, self.model.worlds)
        groups = {"state": dict(batch.state), "control": dict(batch.controls), "parameter": dict(batch.parameters)}
        fresh: set[str] = set()
        for world, (direction, distance) in enumerate(moves):
            group, name = groups[direction.kind], direction.input
            if name not in fresh:
                group[name] = group[name].clone()
                fresh.add(name)
            move = distance * torch.as_tensor(direction.tangent.astype(np.float64)).to(torch_real)
            target = group[name][:, world] if direction.kind == "control" else group[name][world]
            if direction.kind == "state":
                manifold = self._initial.fields[name].manifold
                target.copy_(manifold.shift(target.reshape(-1), move.reshape(-1)).reshape(target.shape))
            else:
                target.copy_(target + move)
        moved = {name for d, _ in moves for name in [d.input] if d.kind == "parameter"}
        kept = {n: t for n, t in groups["parameter"].items() if n in moved or n in self._changed(point)}
        return Point(groups["state"], groups["control"], kept)

    def _changed(self, point: Point) -> set[str]:
        """Parameters whose values are not the scene's own."""
        return {
            name
            for name, value in point.parameters.items()
            if not np.array_equal(value.detach().cpu().numpy(), self._engine.defaults[name].numpy()[0])
        }

    def _roll_out(self, batch: Point) -> Tensors:
        call = RolloutCall(
            engine=self._engine,
            spec=RolloutSpec(batch.steps, tuple(batch.controls), self._outputs),
            state=self._initial.differentiable,
            parameters=Parameters(self._engine.defaults).replaced(self._engine, batch.parameters),
            fixed={},
        )
        first = self._initial.state(None, **batch.state)
        fixed = {n: to_warp(t, self._initial.dtypes[n]) for n, t in first.items() if n not in call.state}
        controls = {name: tensor.contiguous() for name, tensor in batch.controls.items()}
        with self._engine.turn:
            return drive(replace(call, fixed=fixed).run(first, controls))

    @property
    def device(self) -> torch.device:
        """Where tensors live."""
        return torch_device(self.model.device)


def _repeated(point: Point, worlds: int) -> Point:
    def over_worlds(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {name: tensor.expand(worlds, *tensor.shape) for name, tensor in tensors.items()}

    controls = {n: t.unsqueeze(1).expand(len(t), worlds, *t.shape[1:]) for n, t in point.controls.items()}
    return Point(over_worlds(point.state), controls, over_worlds(point.parameters))
