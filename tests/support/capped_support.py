"""Gradients of files whose solver is capped, against central differences of the very rollouts they belong to."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from finite_differences import directional_estimate
from warpsim.scene import Scene
from warpsim.sim.simulator import Simulator

STEPS = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
WINDOW = 5
LEAD = 120
"""Steps before the window, which bring most robots to the ground or to a limit."""
KNOWN = 2e-6
"""Differences known no better than this, relative to the derivative, lie beside a switch and decide nothing."""


class Compared(NamedTuple):
    """A directional derivative by the gradient and by differences; `error` is relative."""

    start: int
    by: str
    error: float
    known: float


def capped(scene: Scene, iterations: int | None) -> Scene:
    """A copy with another cap on the solver's iterations; None: its own."""
    made = copy.deepcopy(scene)
    if iterations is not None:
        made.options.solver_iterations = iterations
    return made


def compare(scene: Scene, starts: int = 3) -> Iterator[Compared]:
    """Derivatives of a random form of the final state, by initial velocities and by controls, from several starts."""
    sim = Simulator(scene, outputs=())
    for start in range(starts):
        rng = np.random.default_rng([start, 17])

        def normal(*shape: int, rng: np.random.Generator = rng) -> torch.Tensor:
            return torch.as_tensor(rng.normal(size=shape), dtype=sim.torch_dtype)

        with torch.no_grad():
            lead = sim.rollout(controls=0.3 * normal(LEAD, 1, sim.control_size), qd=0.1 * normal(1, sim.nv))
        weights = {"q": normal(1, sim.nq), "qd": normal(1, sim.nv)}
        base = {"qd": lead.qd[-1] + 0.1 * normal(1, sim.nv), "controls": 0.3 * normal(WINDOW, 1, sim.control_size)}

        def loss(qd: torch.Tensor, controls: torch.Tensor, lead=lead, weights=weights) -> torch.Tensor:
            made = sim.rollout(controls=controls, q=lead.q[-1], qd=qd)
            return sum((weights[name] * made[name][-1]).sum() for name in weights)

        leaves = {name: tensor.clone().requires_grad_() for name, tensor in base.items()}
        gradients = dict(zip(leaves, torch.autograd.grad(loss(**leaves), list(leaves.values())), strict=True))
        for name, gradient in gradients.items():
            if not gradient.numel():
                continue
            direction = normal(*gradient.shape)

            def value(x: np.ndarray, name=name, base=base, loss=loss) -> float:
                return float(loss(**{**base, name: torch.as_tensor(x, dtype=sim.torch_dtype)}))

            found = directional_estimate(value, base[name].numpy(), direction.numpy(), STEPS)
            products = (gradient * direction).numpy()
            scale = max(float(np.abs(products).sum()), abs(float(found.value)), 1e-12)
            yield Compared(start, name, abs(products.sum() - float(found.value)) / scale, found.error / scale)


def assert_exact(scene: Scene, where: str, starts: int = 3) -> None:
    """Every difference that is known at all agrees with the gradient to 1e-5, and some are known."""
    found = list(compare(scene, starts))
    known = [c for c in found if c.known < KNOWN]
    assert known, (where, found)
    assert max(c.error for c in known) < 1e-5, (where, found)


def shared(*parts: str) -> Path:
    """A file beside the project."""
    return Path(__file__).resolve().parents[3].joinpath("shared", *parts)
