"""Brax: its fastest differentiable pipeline, "spring", on the same MJCF file. Option: `float32`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import adapter
import adapter_jax
import jax
import jax.numpy as jnp
from brax.io import mjcf
from brax.spring import pipeline

_TIMESTEP = 0.005
"""s: what Brax's own environments give this pipeline; larger ones are unstable."""


def spring(case: Mapping[str, Any]) -> adapter_jax.Scan:
    """The case under the spring pipeline."""
    system = mjcf.load(case["model"]).tree_replace({"opt.timestep": _TIMESTEP})
    return adapter_jax.Scan(
        lambda state, control: pipeline.step(system, state, control),
        pipeline.init(system, jnp.array(case["q"]), jnp.array(case["qd"])),
        lambda state: state.q,
        timestep=_TIMESTEP,
        note=", ".join(["spring pipeline, its own contact model and time step", *sys.argv[2:]]),
    )


jax.config.update("jax_enable_x64", "float32" not in sys.argv[2:])
adapter.main(spring, ("brax", "jax"))
