"""Checks of the kinematic tree: parents, joints, and which joints may share a body."""

from __future__ import annotations

from collections import defaultdict

from warpsim.core.errors import SceneError
from warpsim.scene.checks import check_fields, check_reference, check_unit, place
from warpsim.scene.description import JOINT_DOF_SIZE, Joint, Scene


def check_tree(scene: Scene) -> None:
    """Parents exist and lead to the world."""
    parents = {body.name: body.parent for body in scene.bodies}
    rooted: set[str] = set()
    for body in scene.bodies:
        check_unit(body, "rotation")
        if body.inertia_axes is not None:
            check_unit(body, "inertia_axes")
        if body.parent is not None:
            check_reference(f"{place(body)}, parent", "body", body.parent, parents)
    for body in scene.bodies:
        path: list[str] = []
        name: str | None = body.name
        while name is not None and name not in rooted:
            if name in path:
                cycle = " → ".join([*path[path.index(name) :], name])
                raise SceneError(
                    f"bodies are each other's parents: {cycle}; give one of them the world (None) as parent"
                )
            path.append(name)
            name = parents[name]
        rooted.update(path)


def check_joints(scene: Scene) -> None:
    """Joints name their body, hold sound values, and may stand together on it; kinematic bodies are free."""
    parents = {body.name: body.parent for body in scene.bodies}
    by_body: dict[str, list[Joint]] = defaultdict(list)
    for joint in scene.joints:
        check_reference(f"{place(joint)}, body", "body", joint.body, parents)
        by_body[joint.body].append(joint)
        _check_joint_values(joint)
        if joint.kind == "free" and parents[joint.body] is not None:
            raise SceneError(
                f"{place(joint)} is free but its body {joint.body!r} hangs on {parents[joint.body]!r}; "
                "free bodies hang on the world: set the body's parent to None"
            )
    for body in scene.bodies:
        kinds = [joint.kind for joint in by_body[body.name]]
        _check_compound(body.name, kinds)
        if body.kinematic and (body.parent is not None or kinds != ["free"]):
            raise SceneError(
                f"{place(body)} is kinematic; it must hang on the world (parent None) and have exactly one free joint"
            )


def _check_compound(body: str, kinds: list[str]) -> None:
    """Several joints on one body do not repeat each other's freedoms (MuJoCo's rules)."""
    listed = ", ".join(kinds)
    if len(kinds) > 1 and "free" in kinds:
        raise SceneError(f"body {body!r} has joints {listed}; a free joint must be its body's only one")
    if sum(JOINT_DOF_SIZE[kind] for kind in kinds) > 6:
        raise SceneError(f"body {body!r} has joints {listed}, more than six freedoms; put a body in between")
    if "ball" in kinds and set(kinds[kinds.index("ball") + 1 :]) & {"ball", "hinge"}:
        raise SceneError(
            f"body {body!r} has joints {listed}; a ball already gives every rotation: drop the rotations after it, "
            "or put a body in between"
        )


def _check_joint_values(joint: Joint) -> None:
    where = place(joint)
    if joint.kind in ("hinge", "slide"):
        check_unit(joint, "axis")
    check_fields(joint, "stiffness", "damping", "armature", "friction_loss", "limit", "actuator_force_limit")
    if joint.limit is not None and joint.kind == "free":
        raise SceneError(f"{where} is free and cannot be limited; set limit to None")
    if joint.limit is not None and joint.kind == "ball" and joint.limit[0] != 0:
        raise SceneError(f"{where} is a ball; its limit is (0, largest angle), not {tuple(joint.limit)}")
    if joint.actuator_force_limit is not None and joint.kind not in ("hinge", "slide"):
        raise SceneError(f"{where} is {joint.kind}; actuator_force_limit is for hinge and slide joints: set it to None")
    if joint.kind in ("free", "ball"):
        for field in ("initial_q", "rest"):
            if getattr(joint, field) is not None:
                check_unit(joint, field, part=slice(-4, None))
