"""The number type of every kernel, chosen once per process by `WARPSIM_PRECISION` (float64, the default, or float32).

Kernels are written in `real` and the types built on it, so one source serves both precisions. Quaternions are stored
(w, x, y, z) as plain 4-vectors, everywhere, inside and out: that is the order of MuJoCo's `qpos` and of USD's text.
"""

from __future__ import annotations

import os

import numpy as np
import warp as wp

from warpsim.core.errors import InputError

PRECISION = os.environ.get("WARPSIM_PRECISION", "float64")
if PRECISION not in ("float64", "float32"):
    raise InputError(f"WARPSIM_PRECISION={PRECISION!r}; use 'float64' or 'float32'")

real = wp.float64 if PRECISION == "float64" else wp.float32
numpy_real: type[np.floating] = np.float64 if PRECISION == "float64" else np.float32

vec2 = wp.types.vector(length=2, dtype=real)
vec3 = wp.types.vector(length=3, dtype=real)
quat = wp.types.vector(length=4, dtype=real)
"""Rotation as (w, x, y, z)."""
vec5 = wp.types.vector(length=5, dtype=real)
vec6 = wp.types.vector(length=6, dtype=real)
"""Spatial vector, angular part first: a twist (ω, v) or a wrench (torque, force)."""
mat33 = wp.types.matrix(shape=(3, 3), dtype=real)
mat66 = wp.types.matrix(shape=(6, 6), dtype=real)

EPSILON = float(np.finfo(numpy_real).eps)
"""Spacing of `real` at one."""
