"""Gain, bias and activation of actuators some of which are muscles or motors."""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import real, vec3
from warpsim.rigid.dynamics.activation import activation_rate_of
from warpsim.rigid.dynamics.muscle import muscle_bias, muscle_gain, muscle_gain_slope, muscle_rate
from warpsim.rigid.model.actuators import MOTOR, MOTOR_WITH_CURRENT, MUSCLE
from warpsim.rigid.model.parameters import ActuatorParameters


@wp.func
def affine(coefficients: vec3, length: real, rate: real) -> real:
    """Gain or bias of what is no muscle."""
    return coefficients[0] + coefficients[1] * length + coefficients[2] * rate


@wp.func
def activation_rate(kind: int, actuator: ActuatorParameters, control: real, activation: real, w: int, i: int) -> real:
    """Rate of the activation of actuator i, 1/s times its unit."""
    if kind == MUSCLE:
        rise = actuator.time_constant[w, i]
        return muscle_rate(
            control, activation, rise, actuator.deactivation_time[w, i], actuator.activation_smoothing[w, i]
        )
    return activation_rate_of(kind, control, activation, actuator.time_constant[w, i])


@wp.func
def driven(law: int, actuator: ActuatorParameters, control: real, rate: real, w: int, i: int) -> real:
    """What an activation follows: the control, or the current that it drives through a motor, A."""
    if law == MOTOR_WITH_CURRENT:
        return (control - actuator.motor_constant[w, i] * rate) / actuator.resistance[w, i]
    return control


@wp.func
def cogging_of(law: int, actuator: ActuatorParameters, length: real, w: int, i: int) -> real:
    """Force of a motor that depends on its place alone."""
    if law == MOTOR or law == MOTOR_WITH_CURRENT:
        cogs = actuator.cogging[w, i]
        return cogs[0] * wp.sin(cogs[1] * length + cogs[2])
    return real(0.0)


@wp.func
def gain_of(law: int, actuator: ActuatorParameters, length: real, rate: real, w: int, i: int) -> real:
    """What multiplies the input."""
    if law == MOTOR:
        return actuator.motor_constant[w, i] / actuator.resistance[w, i]
    if law == MOTOR_WITH_CURRENT:
        return actuator.motor_constant[w, i]
    if law % 2 == 1:
        normal = actuator.muscle_range[w, i]
        over = actuator.muscle_length_range[w, i]
        return muscle_gain(actuator.muscle_force[w, i], normal, over, actuator.muscle_curve[w, i], length, rate)
    return affine(actuator.gain[w, i], length, rate)


@wp.func
def bias_of(law: int, actuator: ActuatorParameters, length: real, rate: real, w: int, i: int) -> real:
    """Force without input."""
    if law == MOTOR:
        k = actuator.motor_constant[w, i]
        return -k * k / actuator.resistance[w, i] * rate
    if law == MOTOR_WITH_CURRENT:
        return real(0.0)
    if law >= 2:
        normal = actuator.muscle_range[w, i]
        over = actuator.muscle_length_range[w, i]
        return muscle_bias(actuator.muscle_force[w, i], normal, over, actuator.muscle_curve[w, i], length)
    return affine(actuator.bias[w, i], length, rate)


@wp.func
def slope_of(
    law: int,
    early: int,
    actuator: ActuatorParameters,
    length: real,
    rate: real,
    u: real,
    raw: real,
    h: real,
    w: int,
    i: int,
) -> real:
    """d force / d rate where the gain or the bias is a muscle's or a motor's.

    A current that acts at the step's end (`early`) follows the rate within the step h, s; the one from before does not.
    """
    limits = actuator.force_range[w, i]
    if raw <= limits[0] or raw >= limits[1]:
        return real(0.0)
    if law == MOTOR or law == MOTOR_WITH_CURRENT:
        k = actuator.motor_constant[w, i]
        share = real(1.0)
        if law == MOTOR_WITH_CURRENT:  # of the current's way to its end that it goes within the step
            share = wp.where(early == 0, real(0.0), real(1.0) - wp.exp(-h / actuator.time_constant[w, i]))
        return -share * k * k / actuator.resistance[w, i]
    total = real(0.0)
    if law % 2 == 1:
        normal = actuator.muscle_range[w, i]
        over = actuator.muscle_length_range[w, i]
        curve = actuator.muscle_curve[w, i]
        total = muscle_gain_slope(actuator.muscle_force[w, i], normal, over, curve, length, rate) * u
    else:
        total = actuator.gain[w, i][2] * u
    if law < 2:
        total = total + actuator.bias[w, i][2]
    return total
