"""Brax: its fastest differentiable pipeline, "spring", on the same MJCF file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import adapter
import jax
import jax.numpy as jnp
import numpy as np
from brax.io import mjcf
from brax.spring import pipeline

jax.config.update("jax_enable_x64", True)


class Spring:
    """A rollout as one jitted scan."""

    def __init__(self, case: Mapping[str, Any]) -> None:
        system = mjcf.load(case["model"])
        # the step that Brax's own environments give this pipeline; larger ones are unstable
        system = system.tree_replace({"opt.timestep": 0.005})
        self.note = "spring pipeline, its own contact model and time step"
        self.timestep = 0.005
        self.memory: float | None = None
        start = pipeline.init(system, jnp.array(case["q"]), jnp.array(case["qd"]))
        weights = jnp.array(np.random.default_rng(11).normal(size=system.q_size()))

        def loss(controls):
            final, _ = jax.lax.scan(lambda state, u: (pipeline.step(system, state, u), None), start, controls)
            return weights @ final.q

        self._loss = jax.jit(loss)
        self._gradient = jax.jit(jax.grad(loss))

    def loss(self, controls: np.ndarray) -> float:
        """Forward pass."""
        return float(self._loss(jnp.asarray(controls)))

    def gradient(self, controls: np.ndarray) -> np.ndarray:
        """Reverse mode."""
        if self.memory is None:
            compiled = self._gradient.lower(jnp.asarray(controls)).compile()
            self.memory = compiled.memory_analysis().temp_size_in_bytes / len(controls)
        return np.asarray(self._gradient(jnp.asarray(controls)))


adapter.main(Spring, ("brax", "jax"))
