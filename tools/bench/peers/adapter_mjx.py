"""MJX: reverse mode exists only with the solver's loop unrolled to one iteration, so that is what is measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import adapter
import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from mujoco import mjx

jax.config.update("jax_enable_x64", True)


class Mjx:
    """A rollout as one jitted scan."""

    note = "solver cut to one iteration: more have no reverse mode"

    def __init__(self, case: Mapping[str, Any]) -> None:
        host = mujoco.MjModel.from_xml_path(case["model"])
        host.opt.iterations, host.opt.ls_iterations = 1, 4
        host.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_EULERDAMP if not host.dof_damping.any() else 0
        self.timestep = float(host.opt.timestep)
        self.memory: float | None = None
        model = mjx.put_model(host)
        start = mjx.make_data(model).replace(qpos=jnp.array(case["q"]), qvel=jnp.array(case["qd"]))
        weights = jnp.array(np.random.default_rng(11).normal(size=host.nq))

        def loss(controls):
            def step(data, control):
                following = mjx.step(model, data.replace(ctrl=control))
                # in double precision some integers come back wider than they went in, which a scan refuses
                return jax.tree.map(lambda new, old: new.astype(old.dtype), following, data), None

            final, _ = jax.lax.scan(step, start, controls)
            return weights @ final.qpos

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


adapter.main(Mjx, ("mujoco-mjx", "jax"))
