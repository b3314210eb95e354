"""Joints and dofs by name: handles with their places in q and qd."""

from __future__ import annotations

from dataclasses import dataclass

from warpsim.core.names import Handle, find
from warpsim.rigid.model.topology import Layout
from warpsim.scene.description import JOINT_DOF_SIZE, JOINT_Q_SIZE

FREE_DOFS = ("x", "y", "z", "rx", "ry", "rz")


BALL_DOFS = ("rx", "ry", "rz")


@dataclass(frozen=True)
class JointHandle(Handle):
    """A joint.

    Attributes:
        kind: "free", "ball", "hinge" or "slide".
        body: Name of the body it moves.
        q: Its coordinates, for `state.q[:, joint.q]`.
        dofs: Its degrees of freedom, for `state.qd[:, joint.dofs]`.
    """

    kind: str
    body: str
    q: slice
    dofs: slice


def find_joint(layout: Layout, name: str) -> JointHandle:
    """The handle of a joint."""
    index = find("joint", name, layout.joint_names).index
    kind = layout.joint_kinds[index]
    q, dof = int(layout.joint_q[index]), int(layout.joint_dof[index])
    return JointHandle(
        name,
        index,
        kind,
        layout.body_names[layout.joint_body[index]],
        slice(q, q + JOINT_Q_SIZE[kind]),
        slice(dof, dof + JOINT_DOF_SIZE[kind]),
    )


def dof_names(layout: Layout) -> tuple[str, ...]:
    """One name per dof: the joint's own for a hinge or slide, with ":x" … ":rz" added for ball and free joints."""
    names: list[str] = []
    for joint, kind in zip(layout.joint_names, layout.joint_kinds, strict=True):
        suffixes = {"free": FREE_DOFS, "ball": BALL_DOFS}.get(kind)
        names += [joint] if suffixes is None else [f"{joint}:{suffix}" for suffix in suffixes]
    return tuple(names)
