"""Builds a MuJoCo model from a Scene by what the Scene's documentation says, so that MuJoCo can be asked for the truth.

It shares nothing with `warpsim.mjcf`, which goes the other way: the two together must come back to where they started.
"""

from __future__ import annotations

import mujoco
import numpy as np

from warpsim.scene import Actuator, Body, Equality, Joint, Scene, Shape, Tendon

_FULL_INERTIA = ([0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2])
_SHAPE_TYPES = {"mesh": "MESH", "hull": "MESH"}
_INTEGRATORS = {"euler": "EULER", "rk4": "RK4", "implicitfast": "IMPLICITFAST"}


def mjmodel_from_scene(scene: Scene) -> mujoco.MjModel:
    """Compiles a scene with MuJoCo.

    Kinematic bodies become mocap bodies (without their free joint), names are kept, sensors are left out.

    Raises:
        ValueError: The scene holds something MuJoCo has no word for (drives, distance equalities, cones, height fields,
            restitution, friction that is not mixed by the larger, a body whose mass is only partly given).
    """
    if scene.drives or any(equality.kind == "distance" for equality in scene.equalities):
        raise ValueError("MuJoCo has no drives and no distance equalities")
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
            inertia=mujoco.mjtMeshInertia.mjMESH_INERTIA_CONVEX,
        )
    for shape in scene.shapes:
        _add_shape(bodies[shape.body], shape)
    for site in scene.sites:
        bodies[site.body].add_site(name=site.name, pos=site.position, quat=site.rotation)
    for tendon in scene.tendons:
        _add_tendon(spec, tendon)
    for actuator in scene.actuators:
        _add_actuator(spec, actuator)
    for equality in scene.equalities:
        _add_equality(spec, equality)
    _add_pairs(spec, scene)
    model = spec.compile()
    for index, equality in enumerate(scene.equalities):
        if equality.kind == "connect" and equality.anchor_b is not None:
            model.eq_data[index, 3:6] = equality.anchor_b  # the compiler knows only the point met at the reference
    return model


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
        _set_inertia(added, body)


def _set_inertia(added: mujoco.MjsBody, body: Body) -> None:
    given = [value is not None for value in (body.mass, body.com, body.inertia)]
    if not any(given):
        return
    if not all(given):
        raise ValueError(f"body {body.name!r}: MuJoCo wants all of mass, com and inertia, or none")
    added.explicitinertial = True
    added.mass, added.ipos = body.mass, body.com
    if body.mass > 0:
        added.fullinertia = body.inertia[_FULL_INERTIA]


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
    if joint.kind in ("hinge", "slide") and joint.rest is not None:
        added.springref = joint.rest[0]
    if joint.limit is not None:
        added.limited, added.range = 1, joint.limit
    if joint.actuator_force_limit is not None:
        added.actfrclimited, added.actfrcrange = 1, joint.actuator_force_limit


def _add_shape(body: mujoco.MjsBody, shape: Shape) -> None:
    if shape.kind in ("cone", "heightfield") or shape.restitution > 0 or shape.friction_combine != "max":
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
        density=shape.density,
    )
    if kind == "MESH":
        added.meshname = shape.mesh
    if shape.mass is not None:
        added.mass = shape.mass


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
        added.limited, added.range = 1, tendon.limit
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
    added.gainprm[:3], added.biasprm[:3] = actuator.gain, actuator.bias
    added.dynprm[0] = actuator.time_constant
    if actuator.control_range is not None:
        added.ctrllimited, added.ctrlrange = 1, actuator.control_range
    if actuator.force_range is not None:
        added.forcelimited, added.forcerange = 1, actuator.force_range
    if actuator.activation_range is not None:
        added.actlimited, added.actrange = 1, actuator.activation_range


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
