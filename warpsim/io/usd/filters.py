"""Who may collide with whom: filtered pairs, collision groups, joints, articulations without self-collision.

Everything is written out as excluded pairs of bodies or shapes, and the scene's blanket "not with one's parent" rule is
switched off, because in UsdPhysics it is each joint that says whether its two bodies collide. A scene with MuJoCo's
schema has MuJoCo's rule besides, which takes bodies that are fixed together for one.
"""

from __future__ import annotations

from itertools import combinations

from pxr import Sdf, Usd, UsdPhysics

from warpsim.io.usd.context import Context
from warpsim.io.usd.joints import JointSpec, filters_pair
from warpsim.io.usd.ledger_scan import applied_apis
from warpsim.io.usd.physics_objects import PhysicsObjects
from warpsim.scene.fixed_groups import pairs_with_parents


def add_filters(context: Context, objects: PhysicsObjects, specs: list[JointSpec]) -> None:
    """Fills the scene's excluded pairs."""
    context.scene.filter_parent = False
    _joint_pairs(context, objects, specs)
    _filtered_pairs(context, objects)
    _groups(context, objects)
    _self_collisions(context, objects)
    _mujoco_parents(context, objects, specs)


def _mujoco_parents(context: Context, objects: PhysicsObjects, specs: list[JointSpec]) -> None:
    """MuJoCo's filterparent, on by default where its schema is applied; a joint that lets its bodies collide wins."""
    scene = objects.scenes[0] if objects.scenes else None
    if scene is None or "MjcSceneAPI" not in applied_apis(scene):
        return
    if context.read.flag(scene, "mjc:flag:filterparent", True):
        colliding = {frozenset(map(str, spec.ends)) for spec in specs if not filters_pair(context, spec)}
        context.scene.excluded_bodies |= pairs_with_parents(context.scene) - colliding


def _exclude_bodies(context: Context, a: Sdf.Path, b: Sdf.Path) -> None:
    if a != b:
        context.scene.excluded_bodies.add(frozenset((str(a), str(b))))


def _joint_pairs(context: Context, objects: PhysicsObjects, specs: list[JointSpec]) -> None:
    for spec in specs:
        if not filters_pair(context, spec):
            continue
        if None not in spec.ends:
            _exclude_bodies(context, spec.body0, spec.body1)
            continue
        # A joint to a static prim filters that prim's colliders; a joint to the world itself filters nothing.
        moving, index = (spec.body1, 0) if spec.body0 is None else (spec.body0, 1)
        if moving is None:
            continue
        for target in context.read.targets(spec.prim, f"physics:body{index}"):
            if not target.GetPrimPath().HasPrefix(moving) and not moving.HasPrefix(target.GetPrimPath()):
                _exclude_shapes(context, _shapes_of_body(objects, moving), _shapes_below(objects, target.GetPrimPath()))


def _exclude_shapes(context: Context, first: list[Sdf.Path], second: list[Sdf.Path]) -> None:
    for a in first:
        for b in second:
            if a != b:
                context.scene.excluded_pairs.add(frozenset((str(a), str(b))))


def _shapes_of_body(objects: PhysicsObjects, body: Sdf.Path) -> list[Sdf.Path]:
    return [path for path, collider in objects.colliders.items() if collider.body == body]


def _shapes_below(objects: PhysicsObjects, root: Sdf.Path) -> list[Sdf.Path]:
    """Static colliders at or below a path."""
    return [path for path, collider in objects.colliders.items() if collider.body is None and path.HasPrefix(root)]


def _filtered_pairs(context: Context, objects: PhysicsObjects) -> None:
    for path in context.order:
        prim = context.prim(path)
        if not prim.HasAPI(UsdPhysics.FilteredPairsAPI):
            continue
        for target in context.read.targets(prim, "physics:filteredPairs"):
            other = context.prim(target.GetPrimPath())
            if not other:
                context.ledger.unsupported(prim, "physics:filteredPairs", f"{target} does not exist")
                continue
            if path in objects.bodies and target in objects.bodies:
                _exclude_bodies(context, path, target)
                continue
            first, second = (_members(objects, item) for item in (prim, other))
            if not first or not second:
                reason = f"{path if not first else target} is no body, collider or articulation"
                context.ledger.unsupported(prim, "physics:filteredPairs", reason)
            _exclude_shapes(context, first, second)


def _members(objects: PhysicsObjects, prim: Usd.Prim) -> list[Sdf.Path]:
    """Colliders that a filter on a body, collider or articulation root speaks for."""
    path = prim.GetPath()
    if path in objects.colliders and path not in objects.bodies:
        return [path]
    if path in objects.bodies:
        return _shapes_of_body(objects, path)
    bodies = _articulated(objects, prim)
    return [shape for shape, collider in objects.colliders.items() if collider.body in bodies]


def _articulated(objects: PhysicsObjects, prim: Usd.Prim) -> set[Sdf.Path]:
    """Bodies of the articulation whose root API a prim carries."""
    if not prim.HasAPI(UsdPhysics.ArticulationRootAPI):
        return set()
    for item in objects.articulations:
        if item.primPath == prim.GetPath():
            return {body for body in item.articulatedBodies if body in objects.bodies}
    return set()


def _groups(context: Context, objects: PhysicsObjects) -> None:
    table = UsdPhysics.CollisionGroup.ComputeCollisionGroupTable(context.stage)
    for path in table.GetGroups():
        _mark_group(context, context.prim(path))
    grouped = [path for path in objects.colliders if objects.groups.get(path)]
    for a, b in combinations(grouped, 2):
        if any(not table.IsCollisionEnabled(g, h) for g in objects.groups[a] for h in objects.groups[b]):
            _exclude_shapes(context, [a], [b])


def _mark_group(context: Context, prim: Usd.Prim) -> None:
    for item in prim.GetAuthoredProperties():
        name = item.GetName()
        if name.startswith("collection:colliders:") or name in (
            "physics:filteredGroups",
            "physics:mergeGroup",
            "physics:invertFilteredGroups",
        ):
            context.ledger.used(prim, name)


def _self_collisions(context: Context, objects: PhysicsObjects) -> None:
    """Articulations that switch off contact among their own bodies."""
    for item in objects.articulations:
        prim = context.prim(item.primPath)
        enabled = context.read.flag(prim, "newton:selfCollisionEnabled", True)
        if not prim.GetAttribute("newton:selfCollisionEnabled").HasAuthoredValue():
            enabled = context.read.flag(prim, "physxArticulation:enabledSelfCollisions", True)
        if not enabled:
            for a, b in combinations(context.sorted(_articulated(objects, prim)), 2):
                _exclude_bodies(context, a, b)
