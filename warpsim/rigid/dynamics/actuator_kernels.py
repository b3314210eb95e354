"""Forces of actuators on dofs, in two forms: kernels for muscles and motors too, and leaner ones for scenes without.

What `with_muscles` rules out does not stand in a kernel's text: as a branch that is never taken it would cost a
cart-pole's adjoint a tenth of its time.
"""

from __future__ import annotations

from dataclasses import dataclass

import warp as wp

from warpsim.core.indexing import natural
from warpsim.core.precision import quat, real, vec2, vec3, vec6
from warpsim.core.spatial import clamp_range, outside
from warpsim.rigid.dynamics.activation import activation_rate_of, next_activation
from warpsim.rigid.dynamics.muscle_law import activation_rate, affine, bias_of, cogging_of, driven, gain_of, slope_of
from warpsim.rigid.dynamics.transmission import dof_count, site_wrench, transmission_length, transmission_rate
from warpsim.rigid.model.actuators import BODY, NO_DYNAMICS, SITE, TENDON, ActuatorTopology
from warpsim.rigid.model.parameters import ActuatorParameters, SiteParameters
from warpsim.rigid.model.tendons import TendonMotion, TendonTopology
from warpsim.rigid.model.topology import Topology


@dataclass(frozen=True)
class InputFunctions:
    """Functions for kernels.

    Attributes:
        input_of: What multiplies the gain of actuator i.
        rate_of: Rate of its activation.
    """

    input_of: wp.Function
    rate_of: wp.Function


def input_functions(*, with_muscles: bool) -> InputFunctions:
    """What gains multiply, for kernels with muscles or without."""

    @wp.func
    def input_of(
        a: ActuatorTopology,
        actuator: ActuatorParameters,
        timestep: wp.array(dtype=real),
        activation: wp.array2d(dtype=real),
        control: wp.array2d(dtype=real),
        rate: real,
        w: int,
        i: int,
    ) -> real:
        """What multiplies the gain: the control within its range or, with dynamics, the activation.

        `rate` is that of the transmission, which drives a motor's current.
        """
        c = clamp_range(control[w, i], actuator.control_range[w, i][0], actuator.control_range[w, i][1])
        kind = a.dynamics[i]
        if kind == NO_DYNAMICS:
            return c
        x = activation[w, a.activation[i]]
        if a.early[i] == 0:
            return x
        tau = actuator.time_constant[w, i]
        if with_muscles:
            growth = activation_rate(kind, actuator, driven(a.law[i], actuator, c, rate, w, i), x, w, i)
        else:
            growth = activation_rate_of(kind, c, x, tau)
        return next_activation(kind, x, growth, tau, actuator.activation_range[w, i], timestep[w])

    @wp.func
    def rate_of(
        a: ActuatorTopology,
        actuator: ActuatorParameters,
        activation: wp.array2d(dtype=real),
        control: wp.array2d(dtype=real),
        rate: real,
        w: int,
        i: int,
    ) -> real:
        """Rate of the activation, 1/s times its unit, at a rate of the transmission."""
        c = clamp_range(control[w, i], actuator.control_range[w, i][0], actuator.control_range[w, i][1])
        x = activation[w, a.activation[i]]
        if with_muscles:
            return activation_rate(a.dynamics[i], actuator, driven(a.law[i], actuator, c, rate, w, i), x, w, i)
        else:
            return activation_rate_of(a.dynamics[i], c, x, actuator.time_constant[w, i])

    return InputFunctions(input_of, rate_of)


@wp.func
def affine_slope(gain: vec3, bias: vec3, u: real, raw: real, limits: vec2) -> real:
    """d force / d rate; none where the range cuts."""
    if raw <= limits[0] or raw >= limits[1]:
        return real(0.0)
    return gain[2] * u + bias[2]


def joint_actuators(*, with_muscles: bool, module: str) -> wp.Kernel:
    """Actuators of joints and tendons, as a kernel of the named Warp module."""
    functions = input_functions(with_muscles=with_muscles)
    input_of, rate_of = functions.input_of, functions.rate_of

    @wp.kernel(module=module, name="joint_actuator_kernel")
    def joint_actuator_kernel(
        # topology, parameters
        a: ActuatorTopology,
        tt: TendonTopology,
        actuator: ActuatorParameters,
        x: TendonMotion,
        timestep: wp.array(dtype=real),
        # state, control
        q: wp.array2d(dtype=real),
        qd: wp.array2d(dtype=real),
        activation: wp.array2d(dtype=real),
        control: wp.array2d(dtype=real),
        # work out
        dof_actuation: wp.array2d(dtype=real),
        force: wp.array2d(dtype=real),
        slope: wp.array2d(dtype=real),
        activation_rate: wp.array2d(dtype=real),
        saturated: wp.array2d(dtype=wp.int32),
    ):
        w = natural(wp.tid())
        for i in range(a.count):
            kind = a.transmission[i]
            if kind != SITE and kind != BODY:
                gear = actuator.gear[w, i]
                length = transmission_length(a, tt, x, q, w, i, gear)
                rate = transmission_rate(a, tt, x, qd, w, i, gear)
                u = input_of(a, actuator, timestep, activation, control, rate, w, i)
                if with_muscles:
                    law = a.law[i]
                    raw = gain_of(law, actuator, length, rate, w, i) * u + bias_of(law, actuator, length, rate, w, i)
                else:
                    raw = affine(actuator.gain[w, i], length, rate) * u + affine(actuator.bias[w, i], length, rate)
                limits = actuator.force_range[w, i]
                f = clamp_range(raw, limits[0], limits[1])
                if with_muscles:
                    f = f + cogging_of(a.law[i], actuator, length, w, i)
                force[w, i] = f
                if with_muscles:
                    slope[w, i] = slope_of(a.law[i], a.early[i], actuator, length, rate, u, raw, timestep[w], w, i)
                else:
                    slope[w, i] = affine_slope(actuator.gain[w, i], actuator.bias[w, i], u, raw, limits)
                saturated[w, i] = wp.where(
                    outside(raw, limits) != 0,
                    outside(raw, limits),
                    outside(control[w, i], actuator.control_range[w, i]),
                )
                if a.dynamics[i] != NO_DYNAMICS:
                    activation_rate[w, a.activation[i]] = rate_of(a, actuator, activation, control, rate, w, i)
                if kind == TENDON:
                    for k in range(tt.start[a.target[i]], tt.start[a.target[i] + 1]):
                        dof_actuation[w, tt.dof[k]] += gear[0] * x.moment[w, k] * f
                else:
                    for e in range(dof_count(kind)):
                        dof_actuation[w, a.dof[i] + e] += gear[e] * f

    return joint_actuator_kernel


def site_actuators(*, with_muscles: bool, module: str) -> wp.Kernel:
    """Actuators of sites, as a kernel of the named Warp module."""
    functions = input_functions(with_muscles=with_muscles)
    input_of, rate_of = functions.input_of, functions.rate_of

    @wp.kernel(module=module, name="site_actuator_kernel")
    def site_actuator_kernel(
        # topology, parameters
        t: Topology,
        a: ActuatorTopology,
        actuator: ActuatorParameters,
        site: SiteParameters,
        timestep: wp.array(dtype=real),
        # state, control
        activation: wp.array2d(dtype=real),
        control: wp.array2d(dtype=real),
        # work in
        origin: wp.array2d(dtype=vec3),
        link_position: wp.array2d(dtype=vec3),
        link_rotation: wp.array2d(dtype=quat),
        axis: wp.array2d(dtype=vec6),
        velocity: wp.array2d(dtype=vec6),
        # work out
        dof_actuation: wp.array2d(dtype=real),
        force: wp.array2d(dtype=real),
        slope: wp.array2d(dtype=real),
        activation_rate: wp.array2d(dtype=real),
        saturated: wp.array2d(dtype=wp.int32),
    ):
        w = natural(wp.tid())
        for i in range(a.count):
            if a.transmission[i] == SITE:
                last = t.body_last_dof[a.site_body[a.target[i]]]
                unit = site_wrench(
                    t, a, site, link_position, link_rotation, origin, w, a.target[i], actuator.gear[w, i]
                )
                rate = wp.dot(unit, velocity[w, last])
                u = input_of(a, actuator, timestep, activation, control, rate, w, i)
                zero = real(0.0)
                raw = affine(actuator.gain[w, i], zero, rate) * u + affine(actuator.bias[w, i], zero, rate)
                limits = actuator.force_range[w, i]
                f = clamp_range(raw, limits[0], limits[1])
                force[w, i] = f
                slope[w, i] = affine_slope(actuator.gain[w, i], actuator.bias[w, i], u, raw, limits)
                saturated[w, i] = wp.where(
                    outside(raw, limits) != 0,
                    outside(raw, limits),
                    outside(control[w, i], actuator.control_range[w, i]),
                )
                if a.dynamics[i] != NO_DYNAMICS:
                    activation_rate[w, a.activation[i]] = rate_of(a, actuator, activation, control, rate, w, i)
                if last > 0:
                    for e in range(t.row_start[last - 1], t.row_start[last]):
                        dof_actuation[w, t.row_column[e]] += wp.dot(axis[w, t.row_column[e]], unit) * f

    return site_actuator_kernel
