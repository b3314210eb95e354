"""Activation dynamics of actuators, and how an activation grows over a step."""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import real, vec2
from warpsim.core.spatial import clamp_range
from warpsim.rigid.model.actuators import FILTER_EXACT, INTEGRATOR


@wp.func
def activation_rate_of(kind: int, control: real, activation: real, time_constant: real) -> real:
    """Rate of the activation, 1/s times its unit."""
    if kind == INTEGRATOR:
        return control
    return (control - activation) / time_constant


@wp.func
def grown_activation(kind: int, activation: real, rate: real, time_constant: real, h: real) -> real:
    """Activation after one step of length h, before its range cuts; "filterexact" integrates its lag exactly."""
    if kind == FILTER_EXACT:
        return activation + rate * time_constant * (real(1.0) - wp.exp(-h / time_constant))
    return activation + h * rate


@wp.func
def next_activation(kind: int, activation: real, rate: real, time_constant: real, limits: vec2, h: real) -> real:
    """Activation after one step of length h."""
    return clamp_range(grown_activation(kind, activation, rate, time_constant, h), limits[0], limits[1])
