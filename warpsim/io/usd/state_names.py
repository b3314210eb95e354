"""Where the state of each joint lives on a stage: attributes of our own, in SI, kept as double arrays."""

from __future__ import annotations

from pxr import Sdf

Q_ATTRIBUTE = "warpsim:q"
QD_ATTRIBUTE = "warpsim:qd"
"""double[] on a joint prim (on the body's, for free joints): one joint's coordinates and velocities."""
FREE_SUFFIX = ":free"
"""A free joint has no prim: it is named after its body."""
D6_AXES = ("transX", "transY", "transZ", "rotX", "rotY", "rotZ")
"""Degrees of freedom of a generic joint, in the order in which they act; ":<axis>" is added to the joint's name."""
D6_BALL = "rot"
"""Stands for the three rotations of a generic joint that leaves all of them free."""


def state_place(joint_name: str) -> tuple[Sdf.Path, str]:
    """(prim path, suffix of the attributes' names) of a joint's state."""
    if joint_name.endswith(FREE_SUFFIX):
        return Sdf.Path(joint_name[: -len(FREE_SUFFIX)]), ""
    stem, _, token = joint_name.rpartition(":")
    if stem and token in (*D6_AXES, D6_BALL):
        return Sdf.Path(stem), f":{token}"
    return Sdf.Path(joint_name), ""
