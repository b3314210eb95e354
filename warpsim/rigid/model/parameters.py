"""The real numbers physics reads, as Warp structs of (W, n) arrays: one row per world, each able to carry a gradient.

Grouped by what they describe, so that a stage takes only what it reads. Units are SI; frames as in `warpsim.scene`.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import quat, real, vec2, vec3, vec5, vec6


@wp.struct
class BodyParameters:
    """Per body, index 0 the world."""

    position: wp.array2d(dtype=vec3)  # m, in the parent's frame at the reference configuration
    rotation: wp.array2d(dtype=quat)
    mass: wp.array2d(dtype=real)  # kg
    com: wp.array2d(dtype=vec3)  # m, body frame
    inertia: wp.array2d(dtype=vec6)  # kg·m² about the com in body axes: xx, yy, zz, xy, xz, yz
    gravity_compensation: wp.array2d(dtype=real)  # fraction of the weight


@wp.struct
class JointParameters:
    """Per joint, per coordinate and per dof."""

    anchor: wp.array2d(dtype=vec3)  # (W, njoint) m, body frame
    axis: wp.array2d(dtype=vec3)  # (W, njoint) unit, body frame
    stiffness: wp.array2d(dtype=real)  # (W, njoint) N·m/rad or N/m
    reference: wp.array2d(dtype=real)  # (W, nq) configuration at which bodies stand as authored
    rest: wp.array2d(dtype=real)  # (W, nq) where springs are slack
    damping: wp.array2d(dtype=real)  # (W, nv) N·m·s/rad or N·s/m
    armature: wp.array2d(dtype=real)  # (W, nv) kg·m² or kg


@wp.struct
class TendonParameters:
    """Per tendon; coefficients per term, terms in tendon order, those of spatial tendons zero and unused."""

    coefficient: wp.array2d(dtype=real)  # (W, nterm)
    stiffness: wp.array2d(dtype=real)
    damping: wp.array2d(dtype=real)
    armature: wp.array2d(dtype=real)  # kg, or kg·m² where lengths are angles
    spring_range: wp.array2d(dtype=vec2)  # slack between
    rod: wp.array2d(dtype=real)  # m, of slider-cranks; otherwise 0


@wp.struct
class ActuatorParameters:
    """Per actuator."""

    gear: wp.array2d(dtype=vec6)
    gain: wp.array2d(dtype=vec3)  # constant, per length, per velocity
    bias: wp.array2d(dtype=vec3)
    time_constant: wp.array2d(dtype=real)  # s
    control_range: wp.array2d(dtype=vec2)
    force_range: wp.array2d(dtype=vec2)
    activation_range: wp.array2d(dtype=vec2)
    # empty in models without muscles
    deactivation_time: wp.array2d(dtype=real)  # s
    activation_smoothing: wp.array2d(dtype=real)
    muscle_force: wp.array2d(dtype=real)  # N, at the resting length and standstill
    muscle_range: wp.array2d(dtype=vec2)  # of the resting length
    muscle_length_range: wp.array2d(dtype=vec2)  # of the transmission, m or rad
    muscle_curve: wp.array2d(dtype=vec5)  # lmin, lmax, vmax, fpmax, fvmax
    # empty in models without muscles and motors
    resistance: wp.array2d(dtype=real)  # Ω
    motor_constant: wp.array2d(dtype=real)  # N/A or N·m/A
    cogging: wp.array2d(dtype=vec3)  # force, number per unit of length, phase


@wp.struct
class DriveParameters:
    """Per drive."""

    stiffness: wp.array2d(dtype=real)
    damping: wp.array2d(dtype=real)
    max_force: wp.array2d(dtype=real)
    target: wp.array2d(dtype=real)  # rad or m, where no control sets it
    target_velocity: wp.array2d(dtype=real)  # rad/s or m/s, likewise


@wp.struct
class SiteParameters:
    """Per site."""

    position: wp.array2d(dtype=vec3)  # m, body frame
    rotation: wp.array2d(dtype=quat)


@wp.struct
class WorldParameters:
    """Per world."""

    gravity: wp.array(dtype=vec3)  # (W,) m/s²
    timestep: wp.array(dtype=real)  # (W,) s
    medium_density: wp.array(dtype=real)  # (W,) kg/m³
    medium_viscosity: wp.array(dtype=real)  # (W,) Pa·s
    wind: wp.array(dtype=vec3)  # (W,) m/s


@wp.struct
class FluidParameters:
    """Per body: the box of equal inertia that feels the medium (derived from mass and inertia)."""

    box: wp.array2d(dtype=vec3)  # full edges, m
    rotation: wp.array2d(dtype=quat)  # principal axes in the body's frame


@wp.struct
class ShapeParameters:
    """Per shape."""

    position: wp.array2d(dtype=vec3)  # m, body frame
    rotation: wp.array2d(dtype=quat)  # body frame, unit
    size: wp.array2d(dtype=vec3)  # m, as `Shape.size`


@wp.struct
class PairParameters:
    """Per colliding pair: the two shapes' contact parameters, mixed (derived)."""

    friction: wp.array2d(dtype=vec5)  # sliding (2), torsional (m), rolling (2, m)
    solref: wp.array2d(dtype=vec2)
    solref_friction: wp.array2d(dtype=vec2)  # of elliptic friction rows; zeros: as solref
    solimp: wp.array2d(dtype=vec5)
    margin: wp.array2d(dtype=real)  # m: contacts act below this distance
    restitution: wp.array2d(dtype=real)  # of impacts; 0 where restitution is a spring


@wp.struct
class WeightParameters:
    """Inverse effective inertias at the reference configuration, which set how soft constraint rows are (derived)."""

    body: wp.array2d(dtype=vec2)  # (W, nbody) translation 1/kg, rotation 1/(kg·m²)
    dof: wp.array2d(dtype=real)  # (W, nv)
    tendon: wp.array2d(dtype=real)  # (W, ntendon)
    tendon_length: wp.array2d(dtype=real)  # (W, ntendon) m, of spatial ones at the reference configuration


@wp.struct
class LimitParameters:
    """Limits and dry friction of joints; limits per joint, friction per dof."""

    range: wp.array2d(dtype=vec2)  # (W, njoint) rad or m, ±inf where open; ball: (0, largest angle)
    margin: wp.array2d(dtype=real)  # (W, njoint)
    solref: wp.array2d(dtype=vec2)  # (W, njoint)
    solimp: wp.array2d(dtype=vec5)  # (W, njoint)
    friction_loss: wp.array2d(dtype=real)  # (W, nv) N·m or N
    friction_solref: wp.array2d(dtype=vec2)  # (W, nv)
    friction_solimp: wp.array2d(dtype=vec5)  # (W, nv)


@wp.struct
class TendonLimitParameters:
    """Limits and dry friction of tendons."""

    range: wp.array2d(dtype=vec2)  # (W, ntendon)
    margin: wp.array2d(dtype=real)
    solref: wp.array2d(dtype=vec2)
    solimp: wp.array2d(dtype=vec5)
    friction_loss: wp.array2d(dtype=real)
    friction_solref: wp.array2d(dtype=vec2)
    friction_solimp: wp.array2d(dtype=vec5)


@wp.struct
class EqualityParameters:
    """Per equality."""

    anchor_a: wp.array2d(dtype=vec3)  # connect, distance: point in a's frame; weld, axes: origin of the held frame in a
    anchor_b: wp.array2d(dtype=vec3)  # point in b's frame
    relative_rotation: wp.array2d(dtype=quat)  # weld, axes: rotation of b in a
    axes: wp.array2d(dtype=quat)  # axes: rotation of the coordinates' axes in b
    torque_scale: wp.array2d(dtype=real)  # weld, axes, m
    polynomial: wp.array2d(dtype=vec5)  # joint, tendon
    range: wp.array2d(dtype=vec2)  # distance, m
    solref: wp.array2d(dtype=vec2)
    solimp: wp.array2d(dtype=vec5)


@wp.struct
class LoopParameters:
    """Per coordinate of an equality of kind "axes" that has a limit or a drive."""

    range: wp.array2d(dtype=vec2)  # m or rad, ±inf where open; whole rotation: (0, largest angle)
    solref: wp.array2d(dtype=vec2)
    solimp: wp.array2d(dtype=vec5)
