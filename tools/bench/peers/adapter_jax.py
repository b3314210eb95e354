"""What the simulators in JAX share: a rollout as one jitted scan, and its reverse mode."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

if folder := os.environ.get("PEER_COMPILED"):  # compiling takes minutes: once is enough
    jax.config.update("jax_compilation_cache_dir", folder)


class Scan:
    """A rollout under controls; the loss is a linear function of the final coordinates.

    Args:
        step: (state, control) → state.
        start: First state.
        coordinates: State → (nq,).
        timestep: Seconds per step.
        note: What had to be changed for the peer to run the case.
    """

    def __init__(
        self,
        step: Callable[[Any, jax.Array], Any],
        start: Any,
        coordinates: Callable[[Any], jax.Array],
        *,
        timestep: float,
        note: str,
    ) -> None:
        self.note, self.timestep = note, timestep
        self.memory: float | None = None
        weights = jnp.array(np.random.default_rng(11).normal(size=len(coordinates(start))))

        def follow(state: Any, control: jax.Array) -> tuple[Any, None]:
            following = step(state, control)
            # in double precision some integers come back wider than they went in, which a scan refuses
            return jax.tree.map(lambda new, old: new.astype(old.dtype), following, state), None

        def loss(controls: jax.Array) -> jax.Array:
            final, _ = jax.lax.scan(follow, start, controls)
            return weights @ coordinates(final)

        self._loss = jax.jit(loss)
        self._gradient = jax.jit(jax.grad(loss))
        self._compiled: Any = None

    def loss(self, controls: np.ndarray) -> float:
        """Forward pass."""
        return float(self._loss(jnp.asarray(controls)))

    def gradient(self, controls: np.ndarray) -> np.ndarray:
        """Reverse mode."""
        if self._compiled is None:
            self._compiled = self._gradient.lower(jnp.asarray(controls)).compile()
            self.memory = self._compiled.memory_analysis().temp_size_in_bytes / len(controls)
        return np.asarray(self._compiled(jnp.asarray(controls)), float)
