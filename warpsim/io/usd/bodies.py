"""Tree links → `Body` and `Joint`: reference poses, axes, limits, passive forces, and where the rollout starts."""

from __future__ import annotations

import numpy as np
from pxr import Sdf, Usd

from warpsim.io.usd.context import Context
from warpsim.io.usd.extensions import lookup
from warpsim.io.usd.frames import Pose
from warpsim.io.usd.joints import Dof, JointSpec
from warpsim.io.usd.physics_objects import PhysicsObjects
from warpsim.io.usd.state_names import FREE_SUFFIX, QD_ATTRIBUTE
from warpsim.io.usd.tree import Link
from warpsim.io.usd.units import DEGREE
from warpsim.scene import Body, Joint

POSE_TOLERANCE = 1e-4
"""m and rad: joints on one body pair whose frames disagree by more are reported."""


def read_kinematic(context: Context, objects: PhysicsObjects) -> set[Sdf.Path]:
    """Paths of the bodies that move as their velocity says."""
    return {path for path, prim in objects.bodies.items() if context.read.flag(prim, "physics:kinematicEnabled", False)}


def add_link(context: Context, objects: PhysicsObjects, link: Link, kinematic: bool) -> None:
    """Adds a body and its joints to the scene."""
    prim = objects.bodies[link.body]
    pose = reference_pose(context, link)
    name = str(link.body)
    body = Body(name, str(link.parent) if link.parent else None, pose.position, pose.rotation, kinematic=kinematic)
    if not context.read.flag(prim, "newton:gravityEnabled", True):
        body.gravity_compensation = 1.0
    if context.read.flag(prim, "physxRigidBody:disableGravity", False):
        body.gravity_compensation = 1.0
    context.take(body, "gravity_compensation", prim, "mjc:gravcomp")
    context.scene.bodies.append(body)
    if not link.joints:
        _add_free_joint(context, prim, name)
        return
    _check_compound(context, link)
    for spec in link.joints:
        for dof in reversed(spec.dofs) if link.reverse else spec.dofs:
            context.scene.joints.append(make_joint(context, spec, dof, link))
    _settle_velocities(context, prim, link)


def reference_pose(context: Context, link: Link) -> Pose:
    """The body's pose in its parent's frame when all its joint coordinates are zero."""
    if not link.joints:
        return context.frame(context.prim(link.body)).pose
    spec = link.joints[0]
    return _zero_pose(spec, link.reverse)


def _zero_pose(spec: JointSpec, reverse: bool) -> Pose:
    if reverse:
        return spec.frame1 @ spec.frame0.inverse()
    return spec.frame0 @ spec.frame1.inverse()


def _check_compound(context: Context, link: Link) -> None:
    first = _zero_pose(link.joints[0], link.reverse)
    for spec in link.joints[1:]:
        shift, turn = first.distance(_zero_pose(spec, link.reverse))
        if max(shift, turn) > POSE_TOLERANCE:
            context.ledger.unsupported(
                spec.prim,
                "physics:localPos0",
                f"the joints disagree on their zero pose by {shift:.2g} m, {turn:.2g} rad; the first is used",
            )


def make_joint(context: Context, spec: JointSpec, dof: Dof, link: Link) -> Joint:
    """The scene joint of one dof.

    Traversed backwards, the motion inverts: exp(axis·q)⁻¹ = exp(−axis·q), so the axis turns round and q keeps its sign.
    """
    frame = spec.frame0 if link.reverse else spec.frame1
    name = spec.name + dof.suffix
    axis = frame.matrix @ dof.axis
    joint = Joint(
        name, dof.kind, str(link.body), frame.position.copy(), -axis if link.reverse else axis, limit=dof.limit
    )
    _passive(context, spec, dof, joint)
    _constraint_softness(context, spec, dof, joint)
    return joint


def _passive(context: Context, spec: JointSpec, dof: Dof, joint: Joint) -> None:
    for concept in ("stiffness", "damping", "armature", "friction_loss", "limit_margin"):
        found = lookup(context, spec.prim, concept, angular=dof.angular, axis=dof.token)
        if found is not None:
            setattr(joint, concept, found.value)
    rest = context.read.number(spec.prim, "mjc:springref", mark=dof.kind != "ball")
    if rest is not None and dof.kind != "ball":
        factor = 1.0 if dof.angular else context.units.length
        joint.rest = np.array([factor * rest])
    reference = context.read.number(spec.prim, "mjc:ref", mark=dof.kind != "ball")
    if reference is not None and dof.kind != "ball":
        factor = 1.0 if dof.angular else context.units.length
        joint.reference = factor * reference  # the coordinate at which the joint's two frames coincide
    low, high = (context.read.number(spec.prim, f"mjc:actuatorfrcrange:{side}") for side in ("min", "max"))
    if low is not None and high is not None and low < high:
        factor = context.units.force(dof.angular)
        joint.actuator_force_limit = (factor * low, factor * high)


def _constraint_softness(context: Context, spec: JointSpec, dof: Dof, joint: Joint) -> None:
    width = 1.0 if dof.angular else context.units.length
    for name in ("limit", "friction"):
        context.take(joint, f"{name}_solref", spec.prim, f"mjc:solref{name}", scale=(1, 1))
        context.take(joint, f"{name}_solimp", spec.prim, f"mjc:solimp{name}", scale=(1, 1, width, 1, 1))


def _add_free_joint(context: Context, prim: Usd.Prim, name: str) -> None:
    """A free body's joint; its initial velocity is authored in the body's frame, the angular one in degrees."""
    joint = Joint(name + FREE_SUFFIX, "free", name)
    velocity = context.read.vector(prim, "physics:velocity", 3)
    spin = context.read.vector(prim, "physics:angularVelocity", 3)
    if velocity is not None or spin is not None:
        turn = context.frame(prim).pose.matrix
        joint.initial_qd = np.zeros(6)
        if velocity is not None:
            joint.initial_qd[:3] = context.units.length * (turn @ velocity)
        if spin is not None:
            joint.initial_qd[3:] = DEGREE * spin
    context.scene.joints.append(joint)


def _settle_velocities(context: Context, prim: Usd.Prim, link: Link) -> None:
    """A jointed body's velocity follows from its joints'."""
    known = any(name.startswith(QD_ATTRIBUTE) for spec in link.joints for name in spec.prim.GetAuthoredPropertyNames())
    for name in ("physics:velocity", "physics:angularVelocity"):
        value = context.read.vector(prim, name, 3, mark=False)
        if value is not None and known:
            context.ledger.ignored(prim, name, f"its joints have {QD_ATTRIBUTE}")
        elif value is not None and value.any():
            context.ledger.unsupported(prim, name, "the body is jointed: author state:*:physics:velocity on its joints")
        elif value is not None:
            context.ledger.ignored(prim, name, "zero, and the body is jointed")
