"""Bodies that are fixed together: for whoever asks who is whose parent, they are one."""

from __future__ import annotations

from warpsim.scene.description import Scene

WORLD = ""


def fixed_groups(scene: Scene) -> tuple[dict[str, str], dict[str, str]]:
    """For every body: the body that names its group of bodies fixed together, and the group its group hangs on."""
    parent = {body.name: body.parent or WORLD for body in scene.bodies}
    jointed = {joint.body for joint in scene.joints}

    def group_of(name: str) -> str:
        while name != WORLD and name not in jointed:
            name = parent[name]
        return name

    group = {name: group_of(name) for name in parent}
    group[WORLD] = WORLD
    group_parent = {name: group_of(parent[name]) if name != WORLD else WORLD for name in set(group.values())}
    return group, group_parent


def pairs_with_parents(scene: Scene) -> set[frozenset[str]]:
    """Pairs of bodies of which one's group hangs on the other's; the world is no parent in this sense."""
    group, above = fixed_groups(scene)
    members: dict[str, list[str]] = {}
    for body in scene.bodies:
        members.setdefault(group[body.name], []).append(body.name)
    return {
        frozenset((a, b))
        for name, upper in above.items()
        if WORLD not in (name, upper)
        for a in members[name]
        for b in members[upper]
    }
