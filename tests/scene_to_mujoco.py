"""A `Scene` rebuilt as a MuJoCo model: an oracle for whatever reads or simulates scenes.

Not carried over, because MuJoCo has no such thing: excluded shape pairs, friction_combine, restitution, kinematic
bodies (an error), distance equalities (an error); cones become meshes of 64 sides.
"""

from __future__ import annotations

import mujoco
import numpy as np

from shape_mass import body_mass
from warpsim.scene import Scene

_GEOMS = {
    "plane": mujoco.mjtGeom.mjGEOM_PLANE,
    "sphere": mujoco.mjtGeom.mjGEOM_SPHERE,
    "capsule": mujoco.mjtGeom.mjGEOM_CAPSULE,
    "box": mujoco.mjtGeom.mjGEOM_BOX,
    "cylinder": mujoco.mjtGeom.mjGEOM_CYLINDER,
    "ellipsoid": mujoco.mjtGeom.mjGEOM_ELLIPSOID,
    "cone": mujoco.mjtGeom.mjGEOM_MESH,
    "mesh": mujoco.mjtGeom.mjGEOM_MESH,
    "hull": mujoco.mjtGeom.mjGEOM_MESH,
}
_JOINTS = {
    "free": mujoco.mjtJoint.mjJNT_FREE,
    "ball": mujoco.mjtJoint.mjJNT_BALL,
    "hinge": mujoco.mjtJoint.mjJNT_HINGE,
    "slide": mujoco.mjtJoint.mjJNT_SLIDE,
}
_EQUALITIES = {
    "connect": mujoco.mjtEq.mjEQ_CONNECT,
    "weld": mujoco.mjtEq.mjEQ_WELD,
    "joint": mujoco.mjtEq.mjEQ_JOINT,
    "tendon": mujoco.mjtEq.mjEQ_TENDON,
}
_TRANSMISSIONS = {
    "joint": mujoco.mjtTrn.mjTRN_JOINT,
    "tendon": mujoco.mjtTrn.mjTRN_TENDON,
    "site": mujoco.mjtTrn.mjTRN_SITE,
}
_DYNAMICS = {
    "none": mujoco.mjtDyn.mjDYN_NONE,
    "integrator": mujoco.mjtDyn.mjDYN_INTEGRATOR,
    "filter": mujoco.mjtDyn.mjDYN_FILTER,
    "filterexact": mujoco.mjtDyn.mjDYN_FILTEREXACT,
}
_INTEGRATORS = {
    "euler": mujoco.mjtIntegrator.mjINT_EULER,
    "implicitfast": mujoco.mjtIntegrator.mjINT_IMPLICITFAST,
    "rk4": mujoco.mjtIntegrator.mjINT_RK4,
}
_CONES = {"elliptic": mujoco.mjtCone.mjCONE_ELLIPTIC, "pyramidal": mujoco.mjtCone.mjCONE_PYRAMIDAL}
_TRUE, _FALSE = mujoco.mjtLimited.mjLIMITED_TRUE, mujoco.mjtLimited.mjLIMITED_FALSE
_WIDE = 1e10
"""MuJoCo's limits are finite: an open side is this far away."""


def to_mujoco(scene: Scene, *, drives: bool = True) -> mujoco.MjModel:
    """Compiles the scene with MuJoCo; bodies, joints … keep their names and order.

    Args:
        scene: A valid scene.
        drives: Add each drive as an actuator after the scene's own (at its authored target, whatever the control).
    """
    spec = mujoco.MjSpec()
    spec.compiler.degree = False
    spec.compiler.autolimits = True
    _options(scene, spec)
    _meshes(scene, spec)
    bodies = {None: spec.worldbody}
    for body in scene.bodies:
        if body.kinematic:
            raise NotImplementedError(f"{body.name}: MuJoCo has no kinematic bodies")
        node = bodies[body.parent].add_body(name=body.name, pos=body.position, quat=body.rotation)
        bodies[body.name] = node
        node.gravcomp = body.gravity_compensation
        _inertial(scene, body, node)
        for joint in scene.joints:
            if joint.body == body.name:
                _joint(node, joint)
    for shape in scene.shapes:
        _geom(bodies[shape.body], shape)
    for site in scene.sites:
        bodies[site.body].add_site(name=site.name, pos=site.position, quat=site.rotation)
    for tendon in scene.tendons:
        _tendon(spec, tendon)
    for actuator in scene.actuators:
        _actuator(spec, actuator)
    if drives:
        for drive in scene.drives:
            _drive(spec, drive)
    for equality in scene.equalities:
        _equality(spec, equality)
    for pair in scene.excluded_bodies:
        a, b = (*pair, *pair)[:2]
        spec.add_exclude(bodyname1=a or "world", bodyname2=b or "world")
    return spec.compile()


def initial_state(scene: Scene, model: mujoco.MjModel) -> tuple[np.ndarray, np.ndarray]:
    """(qpos, qvel) at the start of a rollout."""
    qpos, qvel = model.qpos0.copy(), np.zeros(model.nv)
    for joint in scene.joints:
        index = model.joint(joint.name)
        if joint.initial_q is not None:
            qpos[index.qposadr[0] :][: len(joint.initial_q)] = joint.initial_q
        if joint.initial_qd is not None:
            qvel[index.dofadr[0] :][: len(joint.initial_qd)] = joint.initial_qd
    return qpos, qvel


def _options(scene: Scene, spec: mujoco.MjSpec) -> None:
    options, medium = scene.options, scene.medium
    spec.option.gravity = options.gravity
    spec.option.timestep = options.timestep
    spec.option.integrator = _INTEGRATORS[options.integrator]
    spec.option.cone = _CONES[options.cone]
    spec.option.impratio = options.impratio
    spec.option.iterations = options.solver_iterations
    spec.option.tolerance = options.solver_tolerance
    spec.option.density, spec.option.viscosity, spec.option.wind = medium.density, medium.viscosity, medium.wind
    flags = mujoco.mjtDisableBit
    for off, bit in (
        (not scene.filter_parent, flags.mjDSBL_FILTERPARENT),
        (not options.implicit_damping, flags.mjDSBL_EULERDAMP),
        (not options.limit_timeconst, flags.mjDSBL_REFSAFE),
        (not options.constraints, flags.mjDSBL_CONSTRAINT),
        (not options.contacts, flags.mjDSBL_CONTACT),
    ):
        spec.option.disableflags |= bit if off else 0


def _meshes(scene: Scene, spec: mujoco.MjSpec) -> None:
    for mesh in scene.meshes.values():
        spec.add_mesh(
            name=mesh.name,
            uservert=mesh.vertices.ravel().tolist(),
            userface=mesh.faces.ravel().tolist(),
            inertia=mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL,  # never used: bodies have explicit inertia
        )
    for shape in scene.shapes:
        if shape.kind == "cone":
            turn = 2 * np.pi * np.arange(64) / 64
            rim = np.stack([shape.size[0] * np.cos(turn), shape.size[0] * np.sin(turn), np.full(64, -shape.size[1])], 1)
            spec.add_mesh(name=f"{shape.name}:cone", uservert=[*rim.ravel().tolist(), 0.0, 0.0, shape.size[1]])


def _inertial(scene: Scene, body, node) -> None:
    mass, com, inertia = body_mass(scene, body)
    node.explicitinertial = True
    node.mass, node.ipos = mass, com
    i = inertia
    node.fullinertia = [i[0, 0], i[1, 1], i[2, 2], i[0, 1], i[0, 2], i[1, 2]]


def _polynomial(constant: float) -> list[float]:
    """MuJoCo 4's stiffness and damping are polynomials; scenes have their constant term."""
    return [constant, 0.0, 0.0]


def _joint(node, joint) -> None:
    if joint.kind == "free":
        added = node.add_freejoint(name=joint.name)
    else:
        added = node.add_joint(name=joint.name, type=_JOINTS[joint.kind], pos=joint.anchor, axis=joint.axis)
        added.ref = joint.reference
        added.stiffness = _polynomial(joint.stiffness)
        added.springref = joint.reference if joint.rest is None else joint.rest[0]
        added.limited = _FALSE
        if joint.limit is not None:
            added.limited, added.range = _TRUE, np.clip(joint.limit, -_WIDE, _WIDE)
        added.margin = joint.limit_margin
        added.solref_limit, added.solimp_limit = joint.limit_solref, joint.limit_solimp
        if joint.actuator_force_limit is not None:
            added.actfrclimited, added.actfrcrange = _TRUE, joint.actuator_force_limit
    added.damping = _polynomial(joint.damping)
    added.armature, added.frictionloss = joint.armature, joint.friction_loss
    added.solref_friction, added.solimp_friction = joint.friction_solref, joint.friction_solimp


def _geom(node, shape) -> None:
    geom = node.add_geom(name=shape.name, type=_GEOMS[shape.kind], pos=shape.position, quat=shape.rotation)
    if shape.kind in ("mesh", "hull"):
        geom.meshname = shape.mesh
    elif shape.kind == "cone":
        geom.meshname = f"{shape.name}:cone"
    else:
        geom.size = shape.size if shape.kind != "plane" else [0, 0, 1]
    geom.mass = 0.0
    geom.contype, geom.conaffinity = (shape.contact_type, shape.contact_affinity) if shape.collides else (0, 0)
    geom.friction, geom.condim, geom.priority, geom.solmix = shape.friction, shape.condim, shape.priority, shape.solmix
    geom.solref, geom.solimp, geom.margin, geom.gap = shape.solref, shape.solimp, shape.margin, shape.gap


def _tendon(spec, tendon) -> None:
    added = spec.add_tendon(name=tendon.name)
    added.stiffness, added.damping = _polynomial(tendon.stiffness), _polynomial(tendon.damping)
    for joint, coefficient in zip(tendon.joints, tendon.coefficients, strict=True):
        added.wrap_joint(joint, float(coefficient))
    added.limited = _FALSE
    if tendon.limit is not None:
        added.limited, added.range = _TRUE, np.clip(tendon.limit, -_WIDE, _WIDE)
    if tendon.spring_range is not None:
        added.springlength = tendon.spring_range
    added.margin, added.frictionloss = tendon.limit_margin, tendon.friction_loss
    added.solref_limit, added.solimp_limit = tendon.limit_solref, tendon.limit_solimp
    added.solref_friction, added.solimp_friction = tendon.friction_solref, tendon.friction_solimp


def _actuator(spec, actuator) -> None:
    added = spec.add_actuator(name=actuator.name, target=actuator.target, trntype=_TRANSMISSIONS[actuator.transmission])
    added.gear = actuator.gear
    added.gaintype, added.biastype = mujoco.mjtGain.mjGAIN_AFFINE, mujoco.mjtBias.mjBIAS_AFFINE
    added.gainprm[:3], added.biasprm[:3] = actuator.gain, actuator.bias
    added.dyntype, added.dynprm[0] = _DYNAMICS[actuator.dynamics], actuator.time_constant
    added.actearly = actuator.activation_early
    for limited, bounds, value in (
        ("ctrllimited", "ctrlrange", actuator.control_range),
        ("forcelimited", "forcerange", actuator.force_range),
        ("actlimited", "actrange", actuator.activation_range),
    ):
        setattr(added, limited, _FALSE if value is None else _TRUE)
        if value is not None:
            setattr(added, bounds, np.clip(value, -_WIDE, _WIDE))


def _drive(spec, drive) -> None:
    if drive.acceleration:
        raise NotImplementedError(f"{drive.name}: MuJoCo has no acceleration drives")
    added = spec.add_actuator(name=f"{drive.name}:drive", target=drive.joint, trntype=mujoco.mjtTrn.mjTRN_JOINT)
    added.gaintype, added.biastype = mujoco.mjtGain.mjGAIN_FIXED, mujoco.mjtBias.mjBIAS_AFFINE
    added.gainprm[:3] = 0.0
    force = drive.stiffness * drive.target + drive.damping * drive.target_velocity
    added.biasprm[:3] = [force, -drive.stiffness, -drive.damping]
    added.ctrllimited = _FALSE
    added.forcelimited = _TRUE if np.isfinite(drive.max_force) else _FALSE
    if np.isfinite(drive.max_force):
        added.forcerange = [-drive.max_force, drive.max_force]


def _equality(spec, equality) -> None:
    if equality.kind not in _EQUALITIES:
        raise NotImplementedError(f"{equality.name}: MuJoCo has no {equality.kind} equality")
    added = spec.add_equality(name=equality.name, type=_EQUALITIES[equality.kind], active=equality.active)
    is_body = equality.kind in ("connect", "weld")
    added.objtype = mujoco.mjtObj.mjOBJ_BODY if is_body else mujoco.mjtObj.mjOBJ_UNKNOWN
    added.name1 = equality.a or "world"
    added.name2 = equality.b or ("world" if is_body else "")
    added.solref, added.solimp = equality.solref, equality.solimp
    if equality.kind == "connect":
        added.data[:3] = equality.anchor
    elif equality.kind == "weld":
        added.data[:3] = equality.anchor
        pose = equality.relative_pose
        added.data[3:10] = np.zeros(7) if pose is None else pose
        added.data[10] = equality.torque_scale
    else:
        added.data[:5] = equality.polynomial
