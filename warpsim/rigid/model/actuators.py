"""Which things actuators and drives act on: integer tables built from the scene."""

from __future__ import annotations

import warp as wp

JOINT = wp.constant(0)
TENDON = wp.constant(1)
SITE = wp.constant(2)
BALL_JOINT = wp.constant(3)
FREE_JOINT = wp.constant(4)
BODY = wp.constant(5)

NO_DYNAMICS = wp.constant(0)
INTEGRATOR = wp.constant(1)
FILTER = wp.constant(2)
FILTER_EXACT = wp.constant(3)
MUSCLE = wp.constant(4)
DYNAMICS_CODES = {"none": 0, "integrator": 1, "filter": 2, "filterexact": 3, "muscle": 4, "current": 3}
"""A motor's current is a lag that is integrated exactly; what it follows is the motor's own."""

MOTOR = wp.constant(4)
MOTOR_WITH_CURRENT = wp.constant(8)


@wp.struct
class ActuatorTopology:
    """Per actuator unless said otherwise."""

    count: wp.int32
    transmission: wp.array(dtype=wp.int32)  # JOINT … BODY
    target: wp.array(dtype=wp.int32)  # index of the joint, tendon, site or body
    q: wp.array(dtype=wp.int32)  # first coordinate, for joints
    dof: wp.array(dtype=wp.int32)  # first dof, for joints
    dynamics: wp.array(dtype=wp.int32)  # NO_DYNAMICS … MUSCLE
    activation: wp.array(dtype=wp.int32)  # place in the activations, or -1
    early: wp.array(dtype=wp.int32)  # 1: force from the activation at the end of the step
    law: wp.array(dtype=wp.int32)  # 1: its gain is a muscle's, 2: its bias is, 3: both; MOTOR, MOTOR_WITH_CURRENT
    site_body: wp.array(dtype=wp.int32)  # (nsite,)


@wp.struct
class DriveTopology:
    """Per drive."""

    count: wp.int32
    per_inertia: wp.array(dtype=wp.int32)  # 1: gains are per unit of the dof's effective inertia
    q: wp.array(dtype=wp.int32)  # 0 where it drives no joint
    dof: wp.array(dtype=wp.int32)
    loop: wp.array(dtype=wp.int32)  # coordinate of `model.loops` that it drives, or -1: a joint; -2: nothing
