"""What a step can be given and what it can report, by name: fields that follow from sizes alone, without any kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import warp as wp

from warpsim.core.precision import quat, real, vec3, vec6
from warpsim.rigid.model.sensor_kinds import sensor_size
from warpsim.scene.description import Sensor
from warpsim.tape.program import Field


class Sizes(Protocol):
    """How large a scene is: a `Model`, or what is known of one before it is compiled."""

    @property
    def worlds(self) -> int:
        """W."""

    @property
    def nv(self) -> int:
        """Dofs."""

    @property
    def nu(self) -> int:
        """Actuators."""

    @property
    def nd(self) -> int:
        """Drives."""

    @property
    def nbody(self) -> int:
        """Bodies, the world included."""

    @property
    def nshape(self) -> int:
        """Shapes."""

    @property
    def saturation_size(self) -> int:
        """Numbers that report cuts of a world."""

    @property
    def max_contacts(self) -> int:
        """Places for contacts per world."""

    @property
    def sensors(self) -> Sequence[Sensor]:
        """In the order of the measurement vector."""


def control_fields(m: Sizes) -> dict[str, Field]:
    """All inputs a step can be given, by name."""
    w = m.worlds
    return {
        "joint_force": Field("joint_force", (w, m.nv), real),  # N·m or N, per dof
        "actuator": Field("actuator", (w, m.nu), real),  # actuator inputs
        "drive_target": Field("drive_target", (w, m.nd), real),  # rad or m
        "drive_velocity": Field("drive_velocity", (w, m.nd), real),  # rad/s or m/s
        "wrench": Field("wrench", (w, m.nbody), vec6),  # force (3), torque (3) at the com, world axes
    }


def observable_fields(m: Sizes) -> dict[str, Field]:
    """Every output that is a function of a state alone, by name, in the world's frame; body 0 is the world."""
    w, n = m.worlds, m.nbody
    fields = (
        Field("body_position", (w, n), vec3),  # m: origin of the body's frame
        Field("body_rotation", (w, n), quat),  # (w, x, y, z), body → world
        Field("body_velocity", (w, n), vec6),  # rad/s, m/s: angular, then linear at the body's origin
        Field("com", (w,), vec3),  # m: center of all mass
        Field("linear_momentum", (w,), vec3),  # N·s
        Field("angular_momentum", (w,), vec3),  # N·m·s, about the com
        Field("potential_energy", (w,), real),  # J: of gravity and springs
        Field("kinetic_energy", (w,), real),  # J
    )
    return {f.name: f for f in fields}


def contact_point_fields(m: Sizes) -> tuple[Field, ...]:
    """Outputs for each contact of a step, zero in places that no contact fills; they carry no gradient.

    Forces are those on the second shape of the pair, or on the first where the second is fixed to the world.
    """
    shape = (m.worlds, m.max_contacts)
    return (
        Field("contact_points", shape, vec3, differentiable=False),  # m, world
        Field("contact_point_forces", shape, vec3, differentiable=False),  # N, world axes
    )


def report_fields(m: Sizes) -> tuple[Field, ...]:
    """What the contact solver reports of a step; no gradient."""
    w = m.worlds
    return (
        Field("solver_iterations", (w,), wp.int32, differentiable=False),
        Field("solver_status", (w,), wp.int32, differentiable=False),  # see `newton.STATUS_TEXT`
        Field("solver_error", (w,), real, differentiable=False),  # scaled gradient norm at the solution
        Field("contact_count", (w,), wp.int32, differentiable=False),
        Field("penetration", (w,), real, differentiable=False),  # m, deepest; 0 without contact
    )


def output_fields(m: Sizes) -> dict[str, Field]:
    """Every output a rollout can report, by name: observations of the state a step reaches, and reports of the step."""
    reports = (
        # −1 or 1 where a range cut an actuator, a drive, or the summed actuator force of a dof
        Field("saturated", (m.worlds, m.saturation_size), wp.int32, differentiable=False),
        # N, world axes: sum of the contact forces on each shape during the step
        Field("contact_force", (m.worlds, m.nshape), vec3),
        # measurements at the step's start, see `warpsim.rigid.sensors.layout`
        Field("sensors", (m.worlds, sensor_size(m.sensors)), real),
        # m or rad: largest violation of an equality or a joint's limit, see `warpsim.rigid.constraint.violation`
        Field("constraint_error", (m.worlds,), real, differentiable=False),
        # equal numbers, equal decisions, see `warpsim.rigid.step.modes`
        Field("mode", (m.worlds,), wp.int64, differentiable=False),
        *contact_point_fields(m),
        *report_fields(m),
    )
    return {**observable_fields(m), **{f.name: f for f in reports}}
