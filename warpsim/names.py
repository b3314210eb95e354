"""Looking things up by name: handles on bodies, joints, dofs, actuators and drives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from warpsim.errors import unknown_name
from warpsim.model.topology import Layout
from warpsim.scene.description import JOINT_DOF_SIZE, JOINT_Q_SIZE

FREE_DOFS = ("x", "y", "z", "rx", "ry", "rz")
BALL_DOFS = ("rx", "ry", "rz")


@dataclass(frozen=True)
class Handle:
    """A named thing and its place in the arrays that describe its kind."""

    name: str
    index: int


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


def find(kind: str, name: str, known: Sequence[str]) -> Handle:
    """The handle of a name, or an error that offers the nearest ones."""
    if name not in known:
        raise unknown_name(kind, name, [n for n in known if n])
    return Handle(name, known.index(name))


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
