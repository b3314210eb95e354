"""Builds a MuJoCo model from a Scene by what the Scene's documentation says, so that MuJoCo can be asked for the truth.

It shares nothing with `warpsim.io.mjcf`, which goes the other way: the two together must come back to the start.
"""

from __future__ import annotations

import mujoco
import numpy as np

from shape_mass import body_mass
from warpsim.scene import Actuator, Drive, Equality, Joint, Scene, Shape, Tendon

_FULL_INERTIA = ([0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2])
_SHAPE_TYPES = {"mesh": "MESH", "hull": "MESH", "cone": "MESH"}
_INTEGRATORS = {"euler": "EULER", "rk4": "RK4", "implicitfast": "IMPLICITFAST"}
_WIDE = 1e10
"""MuJoCo's ranges are finite: an open side is this far away."""
_CONE_SIDES = 64


def to_mujoco(scene: Scene, *, drives: bool = True, approximate: bool = False) -> mujoco.MjModel:
    """Compiles a scene with MuJoCo; bodies, joints … keep their names and order, masses come from closed forms.

    Kinematic bodies become mocap bodies (without their free joint); sensors are left out.

    Args:
        scene: A valid scene.
        drives: Add each drive as an actuator after the scene's own (at its authored target, whatever the control).
        approximate: Leave out restitution, excluded pairs of shapes and the way frictions are mixed, and make cones
            meshes of 64 sides, instead of refusing them.

    Raises:
        ValueError: The scene holds something MuJoCo has no word for (acceleration drives, distance and axes equalities,
            height fields, and without `approximate` what that leaves out).
    """
    for equality in scene.equalities:
        if equality.kind in ("distance", "axes"):
            raise ValueError(f"{equality.name}: MuJoCo has no {equality.kind} equalities")
    if scene.excluded_pairs and not approximate:
        raise ValueError("MuJoCo excludes pairs of bodies, not of shapes")
    spec = mujoco.MjSpec()
    spec.compiler.degree = False
    spec.compiler.autolimits = False
    _set_options(spec, scene)
    bodies: dict[str | None, mujoco.MjsBody] = {None: spec.worldbody}
    _add_bodies(scene, bodies)
    kinematic = {body.name for body in scene.bodies if body.kinematic}
    for joint in scene.joints:
        if joint.body not in kinematic:
            _add_joint(bodies[joint.body], joint)
    for mesh in scene.meshes.values():
        spec.add_mesh(
            name=mesh.name,
            uservert=mesh.vertices.ravel(),
            userface=mesh.faces.ravel(),
            inertia=mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL,  # never used: bodies have explicit inertia
        )
    for shape in scene.shapes:
        _add_shape(spec, bodies[shape.body], shape, approximate)
    for site in scene.sites:
        bodies[site.body].add_site(name=site.name, pos=site.position, quat=site.rotation)
    for tendon in scene.tendons:
        _add_tendon(spec, tendon)
    for actuator in scene.actuators:
        _add_actuator(spec, actuator)
    for drive in scene.drives if drives else ():
        _add_drive(spec, drive)
    for equality in scene.equalities:
        _add_equality(spec, equality)
    _add_pairs(spec, scene)
    model = spec.compile()
    for index, equality in enumerate(scene.equalities):
        if equality.kind == "connect" and equality.anchor_b is not None:
            model.eq_data[index, 3:6] = equality.anchor_b  # the compiler knows only the point met at the reference
    return model


def initial_state(scene: Scene, model: mujoco.MjModel) -> tuple[np.ndarray, np.ndarray]:
    """(qpos, qvel) at the start of a rollout."""
    qpos, qvel = model.qpos0.copy(), np.zeros(model.nv)
    kinematic = {body.name for body in scene.bodies if body.kinematic}
    for joint in scene.joints:
        if joint.body in kinematic:
            continue
        index = model.joint(joint.name)
        if joint.initial_q is not None:
            qpos[index.qposadr[0] :][: len(joint.initial_q)] = joint.initial_q
        if joint.initial_qd is not None:
            qvel[index.dofadr[0] :][: len(joint.initial_qd)] = joint.initial_qd
    return qpos, qvel


def _set_options(spec: mujoco.MjSpec, scene: Scene) -> None:
    options, disable = scene.options, mujoco.mjtDisableBit
    spec.modelname = scene.name
    spec.option.gravity = options.gravity
    spec.option.timestep = options.timestep
    spec.option.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{_INTEGRATORS[options.integrator]}")
    spec.option.cone = getattr(mujoco.mjtCone, f"mjCONE_{options.cone.upper()}")
    spec.option.impratio = options.impratio
    spec.option.iterations = options.solver_iterations
    spec.option.tolerance = options.solver_tolerance
    spec.option.density, spec.option.viscosity = scene.medium.density, scene.medium.viscosity
    spec.option.wind = scene.medium.wind
    for on, flag in (
        (options.implicit_damping, disable.mjDSBL_EULERDAMP),
        (options.limit_timeconst, disable.mjDSBL_REFSAFE),
        (options.constraints, disable.mjDSBL_CONSTRAINT),
        (options.contacts, disable.mjDSBL_CONTACT),
        (scene.filter_parent, disable.mjDSBL_FILTERPARENT),
    ):
        if not on:
            spec.option.disableflags |= int(flag)


def _add_bodies(scene: Scene, bodies: dict[str | None, mujoco.MjsBody]) -> None:
    for body in scene.bodies:
        added = bodies[body.parent].add_body(
            name=body.name,
            pos=body.position,
            quat=body.rotation,
            gravcomp=body.gravity_compensation,
            mocap=body.kinematic,
        )
        bodies[body.name] = added
        mass, com, inertia = body_mass(scene, body)
        added.explicitinertial = True
        added.mass, added.ipos = mass, com
        if mass > 0:
            added.fullinertia = inertia[_FULL_INERTIA]


def _range(bounds: tuple[float, float]) -> np.ndarray:
    return np.clip(bounds, -_WIDE, _WIDE)


def _add_joint(body: mujoco.MjsBody, joint: Joint) -> None:
    added = body.add_joint(
        name=joint.name,
        type=getattr(mujoco.mjtJoint, f"mjJNT_{joint.kind.upper()}"),
        pos=joint.anchor,
        axis=joint.axis,
        ref=joint.reference,
        armature=joint.armature,
        frictionloss=joint.friction_loss,
        solref_friction=joint.friction_solref,
        solimp_friction=joint.friction_solimp,
        margin=joint.limit_margin,
        solref_limit=joint.limit_solref,
        solimp_limit=joint.limit_solimp,
    )
    added.stiffness[0], added.damping[0] = joint.stiffness, joint.damping
    if joint.kind in ("hinge", "slide"):
        added.springref = joint.reference if joint.rest is None else joint.rest[0]
    if joint.limit is not None:
        added.limited, added.range = 1, _range(joint.limit)
    if joint.actuator_force_limit is not None:
        added.actfrclimited, added.actfrcrange = 1, joint.actuator_force_limit


def _add_shape(spec: mujoco.MjSpec, body: mujoco.MjsBody, shape: Shape, approximate: bool) -> None:
    odd = shape.kind == "cone" or shape.restitution > 0 or shape.friction_combine != "max"
    if shape.kind == "heightfield" or (odd and not approximate):
        raise ValueError(f"shape {shape.name!r}: MuJoCo has no {shape.kind}, restitution or other friction mix")
    kind = _SHAPE_TYPES.get(shape.kind, shape.kind.upper())
    added = body.add_geom(
        name=shape.name,
        type=getattr(mujoco.mjtGeom, f"mjGEOM_{kind}"),
        pos=shape.position,
        quat=shape.rotation,
        size=[0, 0, 1] if shape.kind == "plane" else shape.size,
        contype=shape.contact_type if shape.collides else 0,
        conaffinity=shape.contact_affinity if shape.collides else 0,
        friction=shape.friction,
        condim=shape.condim,
        solref=shape.solref,
        solimp=shape.solimp,
        solmix=shape.solmix,
        priority=shape.priority,
        margin=shape.margin,
        gap=shape.gap,
        rgba=[*shape.color, 1.0],
        mass=0.0,
    )
    if shape.kind == "cone":
        added.meshname = _add_cone(spec, shape)
    elif kind == "MESH":
        added.meshname = shape.mesh


def _add_cone(spec: mujoco.MjSpec, shape: Shape) -> str:
    turn = 2 * np.pi * np.arange(_CONE_SIDES) / _CONE_SIDES
    radius, half = shape.size[:2]
    rim = np.stack([radius * np.cos(turn), radius * np.sin(turn), np.full(_CONE_SIDES, -half)], 1)
    spec.add_mesh(name=f"{shape.name}:cone", uservert=[*rim.ravel().tolist(), 0.0, 0.0, half])
    return f"{shape.name}:cone"


def _add_tendon(spec: mujoco.MjSpec, tendon: Tendon) -> None:
    added = spec.add_tendon(
        name=tendon.name,
        frictionloss=tendon.friction_loss,
        solref_friction=tendon.friction_solref,
        solimp_friction=tendon.friction_solimp,
        margin=tendon.limit_margin,
        solref_limit=tendon.limit_solref,
        solimp_limit=tendon.limit_solimp,
    )
    added.stiffness[0], added.damping[0] = tendon.stiffness, tendon.damping
    if tendon.spring_range is not None:
        added.springlength = tendon.spring_range
    if tendon.limit is not None:
        added.limited, added.range = 1, _range(tendon.limit)
    for joint, coefficient in zip(tendon.joints, tendon.coefficients, strict=True):
        added.wrap_joint(joint, coefficient)


def _add_actuator(spec: mujoco.MjSpec, actuator: Actuator) -> None:
    added = spec.add_actuator(
        name=actuator.name,
        target=actuator.target,
        trntype=getattr(mujoco.mjtTrn, f"mjTRN_{actuator.transmission.upper()}"),
        gear=actuator.gear,
        gaintype=mujoco.mjtGain.mjGAIN_AFFINE,
        biastype=mujoco.mjtBias.mjBIAS_AFFINE,
        dyntype=getattr(mujoco.mjtDyn, f"mjDYN_{actuator.dynamics.upper()}"),
        actearly=actuator.activation_early,
    )
    added.gainprm[:3] = actuator.gain
    added.biasprm[:3] = actuator.bias + np.array([0.0, 0.0, actuator.damping_ratio])
    added.dynprm[0] = actuator.time_constant
    if actuator.control_range is not None:
        added.ctrllimited, added.ctrlrange = 1, _range(actuator.control_range)
    if actuator.force_range is not None:
        added.forcelimited, added.forcerange = 1, _range(actuator.force_range)
    if actuator.activation_range is not None:
        added.actlimited, added.actrange = 1, _range(actuator.activation_range)


def _add_drive(spec: mujoco.MjSpec, drive: Drive) -> None:
    if drive.acceleration:
        raise ValueError(f"{drive.name}: MuJoCo has no acceleration drives")
    added = spec.add_actuator(
        name=f"{drive.name}:drive",
        target=drive.joint,
        trntype=mujoco.mjtTrn.mjTRN_JOINT,
        gaintype=mujoco.mjtGain.mjGAIN_FIXED,
        biastype=mujoco.mjtBias.mjBIAS_AFFINE,
    )
    force = drive.stiffness * drive.target + drive.damping * drive.target_velocity
    added.gainprm[:3], added.biasprm[:3] = 0.0, [force, -drive.stiffness, -drive.damping]
    if np.isfinite(drive.max_force):
        added.forcelimited, added.forcerange = 1, [-drive.max_force, drive.max_force]


def _add_equality(spec: mujoco.MjSpec, equality: Equality) -> None:
    added = spec.add_equality(
        name=equality.name,
        type=getattr(mujoco.mjtEq, f"mjEQ_{equality.kind.upper()}"),
        active=equality.active,
        solref=equality.solref,
        solimp=equality.solimp,
    )
    if equality.kind in ("joint", "tendon"):
        added.objtype = getattr(mujoco.mjtObj, f"mjOBJ_{equality.kind.upper()}")
        added.name1, added.name2 = equality.a, equality.b or ""
        added.data[:5] = equality.polynomial
        return
    added.objtype = mujoco.mjtObj.mjOBJ_BODY
    added.name1, added.name2 = equality.a or "world", equality.b or "world"
    added.data[:3] = equality.anchor
    if equality.kind == "weld":
        added.data[10] = equality.torque_scale
        if equality.relative_pose is not None:
            rotation = equality.relative_pose[3:]
            turned = np.empty(3)
            mujoco.mju_rotVecQuat(turned, equality.anchor, rotation)
            added.data[3:6], added.data[6:10] = equality.relative_pose[:3] + turned, rotation


def _add_pairs(spec: mujoco.MjSpec, scene: Scene) -> None:
    for override in scene.contact_overrides:
        spec.add_pair(
            geomname1=override.a,
            geomname2=override.b,
            condim=override.condim,
            friction=override.friction,
            solref=override.solref,
            solreffriction=override.solref_friction,
            solimp=override.solimp,
            margin=override.margin,
            gap=override.gap,
        )
    for pair in sorted(map(sorted, scene.excluded_bodies)):
        spec.add_exclude(bodyname1=pair[0] or "world", bodyname2=pair[-1] or "world")
