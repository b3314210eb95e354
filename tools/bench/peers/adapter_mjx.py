"""MJX. As it comes, its reverse mode wants the solver cut to one iteration.

Options after the case's file: `float32`; `unrolled`, which lets the solver's loop run to convergence in the form that
MJX's own line search has, a scan that stops working once converged; `rematerialized`, which keeps one state per step
and computes the rest again in the backward pass.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import adapter
import adapter_jax
import jax
import jax.numpy as jnp
import mujoco
from mujoco import mjx
from mujoco.mjx._src import solver

_UNROLLED = 8
"""Iterations, and as many of the line search: with these MuJoCo's C engine ends the cases at the converged state."""
_STOCK = 1, 4


def rollout(case: Mapping[str, Any]) -> adapter_jax.Scan:
    """The case under MJX."""
    unrolled = "unrolled" in sys.argv[2:]
    host = mujoco.MjModel.from_xml_path(case["model"])
    host.opt.iterations, host.opt.ls_iterations = (_UNROLLED, _UNROLLED) if unrolled else _STOCK
    if not host.dof_damping.any():
        host.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_EULERDAMP
    model = mjx.put_model(host)
    start = mjx.make_data(model).replace(qpos=jnp.array(case["q"]), qvel=jnp.array(case["qd"]))
    if unrolled:
        _scan_in_solver()

    def step(data: mjx.Data, control: jax.Array) -> mjx.Data:
        return mjx.step(model, data.replace(ctrl=control))

    if "rematerialized" in sys.argv[2:]:
        step = jax.checkpoint(step)
    stock = "solver cut to one iteration: more have no reverse mode as it comes"
    patched = (
        f"patched: the solver's loop as a scan of {_UNROLLED} iterations, so that it converges and has reverse mode"
    )
    return adapter_jax.Scan(
        step,
        start,
        lambda data: data.qpos,
        timestep=float(host.opt.timestep),
        note=", ".join([patched if unrolled else stock, *sys.argv[2:]]),
    )


def _scan_in_solver() -> None:
    """Replaces the solver's `while_loop`, which has no reverse mode, by the scan that its line search uses."""

    def loop(condition: Any, body: Any, first: Any) -> Any:
        return solver._while_loop_scan(condition, body, first, _UNROLLED)

    lax = SimpleNamespace(**{**vars(jax.lax), "while_loop": loop})
    solver.jax = SimpleNamespace(**{**vars(jax), "lax": lax})


jax.config.update("jax_enable_x64", "float32" not in sys.argv[2:])
adapter.main(rollout, ("mujoco-mjx", "jax"))
