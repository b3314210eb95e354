"""Joints that close a loop and leave some axes free → one `Equality` of kind "axes", with their limits and drives.

Its coordinates are counted from body0: slides along axes that turn with body0, then turns about x, y and z.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pxr import Sdf, Usd

from warpsim.core.numpy_quaternions import matrix_to_quat
from warpsim.io.usd.context import Context
from warpsim.io.usd.drives import driven_dofs, read_drive
from warpsim.io.usd.frames import Pose
from warpsim.io.usd.joints import Dof, JointSpec
from warpsim.scene import Equality

_ALIGNED = 1e-5
"""Largest sine of the angle between axes that count as parallel; joint frames are float32."""
_TOGETHER = 1e-4
"""m and rad: frames of a compound's joints that differ by more do not belong together."""


@dataclass
class LoopDof:
    """One degree of freedom of the joint."""

    spec: JointSpec
    dof: Dof
    axis: int
    """Coordinate of the equality: 0 to 5."""
    sign: float = 1.0
    """−1: the coordinate runs against the dof."""


@dataclass
class LoopJoint:
    """A joint, or several between the same two bodies, as one."""

    name: str
    body0: Sdf.Path | None
    body1: Sdf.Path | None
    zero: Pose
    """Of body1 in body0 where all coordinates are zero."""
    frame: Pose
    """Of the coordinates' axes, in body1's frame there."""
    dofs: list[LoopDof]


def single(spec: JointSpec) -> LoopJoint:
    """One prim."""
    dofs = []
    for dof in spec.dofs:
        along = int(np.argmax(np.abs(dof.axis)))
        dofs.append(LoopDof(spec, dof, along if dof.kind == "slide" else 3 + along))
    zero = spec.frame0 @ spec.frame1.inverse()
    return LoopJoint(spec.name, spec.body0, spec.body1, zero, spec.frame1, dofs)


def compound(specs: list[JointSpec]) -> LoopJoint | None:
    """Several prims with one hinge or slide each, the first nearest body0; None if they do not make such a joint.

    They do if all agree on the zero pose, the hinges on their center, slides come before hinges (or run along all
    hinges before them), and axes are parallel or at right angles.
    """
    first = specs[0]
    if any(len(s.dofs) != 1 or s.dofs[0].kind == "ball" or s.body0 != first.body0 for s in specs):
        return None
    zero = first.frame0 @ first.frame1.inverse()
    axes = [spec.frame1.matrix @ spec.dofs[0].axis for spec in specs]
    hinges = [n for n, spec in enumerate(specs) if spec.dofs[0].kind == "hinge"]
    center = specs[hinges[0] if hinges else 0].frame1.position
    if any(max(zero.distance(s.frame0 @ s.frame1.inverse())) > _TOGETHER for s in specs):
        return None
    if any(np.linalg.norm(specs[n].frame1.position - center) > _TOGETHER for n in hinges):
        return None
    slides = [n for n in range(len(specs)) if n not in hinges]
    if any(not _parallel(axes[n], axes[m]) for n in slides for m in hinges if m < n):
        return None
    frame = _right_handed([axes[n] for n in (*hinges, *slides)])
    dofs = []
    for n, spec in enumerate(specs):
        components = frame.T @ axes[n]
        along = int(np.argmax(np.abs(components)))
        if not _parallel(frame[:, along], axes[n]):
            return None
        place = along + (3 if n in hinges else 0)
        dofs.append(LoopDof(spec, spec.dofs[0], place, float(np.sign(components[along]))))
    if len({dof.axis for dof in dofs}) < len(dofs):
        return None
    pose = Pose(center, matrix_to_quat(frame))
    return LoopJoint(first.name, first.body0, first.body1, zero, pose, dofs)


def _parallel(a: np.ndarray, b: np.ndarray) -> bool:
    return float(np.linalg.norm(np.cross(a, b))) < _ALIGNED


def _right_handed(axes: list[np.ndarray]) -> np.ndarray:
    """(3, 3) columns: the first axis, the next that is not parallel to it (made normal to it), and their product."""
    x = axes[0]
    others = [axis for axis in (*axes[1:], *np.eye(3)) if not _parallel(x, axis)]
    y = others[0] - x * (x @ others[0])
    y = y / np.linalg.norm(y)
    return np.stack([x, y, np.cross(x, y)], axis=1)


def add_axes(context: Context, joint: LoopJoint) -> None:
    """Adds the equality and its drives."""
    a, b = (None if body is None else str(body) for body in (joint.body0, joint.body1))
    equality = Equality(joint.name, "axes", a, b, anchor=joint.frame.position, axes=joint.frame.rotation)
    equality.relative_pose = np.concatenate([joint.zero.position, joint.zero.rotation])
    locked = np.ones(6, bool)
    for item in joint.dofs:
        locked[[3, 4, 5] if item.dof.kind == "ball" else item.axis] = False
    equality.locked = tuple(bool(held) for held in locked)
    turns = sum(not held for held in locked[3:])
    for item in joint.dofs:
        _add_limit(context, equality, item, turns)
    prim = joint.dofs[0].spec.prim
    equality_softness(context, prim, equality)
    _limit_softness(context, joint, equality)
    context.scene.equalities.append(equality)
    for item in joint.dofs:
        _add_drive(context, equality, item)


def _add_limit(context: Context, equality: Equality, item: LoopDof, turns: int) -> None:
    spec, dof = item.spec, item.dof
    if dof.limit is None:
        return
    if dof.kind == "ball":
        equality.turn_limit = min(max(dof.limit[1], 1e-6), np.pi)
        return
    reach = np.inf if dof.kind == "slide" else np.pi / 2 if turns == 3 and item.axis == 4 else np.pi
    for side, bound in enumerate(dof.limit):
        if not np.isfinite(bound) or dof.limit_attributes is None:
            continue
        attribute = dof.limit_attributes[side]
        if abs(bound) > reach:
            reason = f"it closes a loop, where this angle is known within ±{np.degrees(reach):g}° only: left open"
            context.ledger.unsupported(spec.prim, attribute, reason)
            continue
        place = side if item.sign > 0 else 1 - side
        equality.limits[item.axis, place] = item.sign * bound


def _add_drive(context: Context, equality: Equality, item: LoopDof) -> None:
    for dof in driven_dofs(context, item.spec):
        if dof is not item.dof:
            continue
        drive = read_drive(context, item.spec, dof)
        reason = ""
        if drive.acceleration:
            reason = "the joint closes a loop, where drives are forces only"
        elif item.sign < 0:
            reason = "the joint is one of a left-handed compound that closes a loop, and runs against its coordinate"
        if reason:
            context.ledger.unsupported(item.spec.prim, f"PhysicsDriveAPI:{dof.token}", reason)
            continue
        drive.joint, drive.axis = equality.name, item.axis
        context.scene.drives.append(drive)


def _limit_softness(context: Context, joint: LoopJoint, equality: Equality) -> None:
    """One softness for all limits of the joint: that of the first prim that has any."""
    for item in joint.dofs:
        width = 1.0 if item.dof.angular else context.units.length
        found = [
            context.take(equality, "limit_solref", item.spec.prim, "mjc:solreflimit", scale=(1, 1)),
            context.take(equality, "limit_solimp", item.spec.prim, "mjc:solimplimit", scale=(1, 1, width, 1, 1)),
        ]
        if any(found):
            return


def equality_softness(context: Context, prim: Usd.Prim, equality: Equality, *, angular: bool = False) -> None:
    """Reads how soft an equality is; `angular`: its violation is an angle."""
    width = 1.0 if angular else context.units.length
    context.take(equality, "solref", prim, "mjc:solref", scale=(1, 1))
    context.take(equality, "solimp", prim, "mjc:solimp", scale=(1, 1, width, 1, 1))
