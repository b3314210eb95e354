"""The pair matrix: who collides, by UsdPhysics' rules for pairs, groups, joints and articulations."""

from __future__ import annotations

from itertools import combinations

import mujoco
import pytest
from pxr import UsdPhysics

from warpsim.collision.pairs import collision_pairs
from warpsim.io.usd import author
from warpsim.io.usd.reader import read_usd


def pairs(stage, *, strict=True) -> set[frozenset[str]]:
    """Unordered pairs of colliding shapes, by the names of their bodies."""
    scene = read_usd(stage, strict=strict)
    names = [shape.name.split("/")[2] for shape in scene.shapes]
    return {frozenset((names[i], names[j])) for i, j in collision_pairs(scene)}


def balls(count: int):
    """A stage with a ground and some free balls; all pairs collide."""
    stage = author.new_stage()
    world = author.world(stage)
    author.ground(world)
    bodies = []
    for i in range(count):
        body = author.body(world, "ABCDEF"[i], position=(i, 0, 1))
        author.sphere(body, "Ball", 0.1)
        bodies.append(body)
    return stage, world, bodies


def every_pair(*names: str) -> set[frozenset[str]]:
    return set(map(frozenset, combinations(names, 2)))


ALL = every_pair("Ground", "A", "B", "C", "D")


def test_everything_collides_by_default():
    stage, _, _ = balls(4)
    assert pairs(stage) == ALL


def test_filtered_bodies():
    stage, _, (a, b, c, _) = balls(4)
    author.filter_pairs(a, b, c)
    assert pairs(stage) == ALL - {frozenset("AB"), frozenset("AC")}


def test_filtered_colliders():
    stage, _, (a, b, *_) = balls(4)
    author.sphere(b, "Second", 0.05, position=(0, 0, 0.3))
    author.filter_pairs(a.GetChild("Ball"), b.GetChild("Ball"))
    scene = read_usd(stage, strict=True)
    names = [shape.name for shape in scene.shapes]
    found = {frozenset((names[i], names[j])) for i, j in collision_pairs(scene)}
    assert frozenset(("/World/A/Ball", "/World/B/Ball")) not in found
    assert frozenset(("/World/A/Ball", "/World/B/Second")) in found


def test_filtered_body_and_static_collider():
    stage, world, (a, *_) = balls(4)
    author.filter_pairs(a, world.GetChild("Ground"))
    assert pairs(stage) == ALL - {frozenset(("A", "Ground"))}


def test_groups():
    """A and B in one group that filters itself and that of C."""
    stage, world, (a, b, c, _) = balls(4)
    second = author.collision_group(world, "Second", [c])
    first = author.collision_group(world, "First", [a, b], filtered=[second])
    UsdPhysics.CollisionGroup(first).GetFilteredGroupsRel().AddTarget(first.GetPath())
    assert pairs(stage) == ALL - every_pair("A", "B", "C")


def test_inverted_group():
    """A's group collides with B's group only; what is in no group is left alone."""
    stage, world, (a, b, c, _) = balls(4)
    second = author.collision_group(world, "Second", [b])
    author.collision_group(world, "Third", [c])
    author.collision_group(world, "First", [a], filtered=[second], inverted=True)
    assert pairs(stage) == ALL - {frozenset("AC")}


def test_merged_groups():
    """C's group filters the first of two merged groups, so both."""
    stage, world, (a, b, c, _) = balls(4)
    first = author.collision_group(world, "First", [a], merge="pair")
    author.collision_group(world, "Second", [b], merge="pair")
    author.collision_group(world, "Third", [c], filtered=[first])
    assert pairs(stage) == ALL - {frozenset("AC"), frozenset("BC")}


def test_collider_in_two_groups():
    stage, world, (a, b, c, _) = balls(4)
    second = author.collision_group(world, "Second", [b])
    third = author.collision_group(world, "Third", [b, c])
    author.collision_group(world, "First", [a], filtered=[third])
    del second
    assert pairs(stage) == ALL - {frozenset("AB"), frozenset("AC")}


@pytest.mark.parametrize("collides", [False, True])
def test_joints_filter_their_pair(collides):
    stage, world, (a, b, c, _) = balls(4)
    author.revolute(world, "AB", a, b, "Z", collides=collides)
    author.revolute(world, "BC", b, c, "Z")
    gone = {frozenset("BC")} | (set() if collides else {frozenset("AB")})
    assert pairs(stage) == ALL - gone


def test_joint_to_static_collider_filters_it():
    stage, world, (a, b, *_) = balls(4)
    author.revolute(world, "Ground_A", world.GetChild("Ground"), a, "Z")
    author.revolute(world, "World_B", None, b, "Z")
    assert pairs(stage) == ALL - {frozenset(("A", "Ground"))}


def test_articulation_without_self_collision():
    stage, world, (a, b, c, _) = balls(4)
    UsdPhysics.ArticulationRootAPI.Apply(a)
    author.set_attribute(a, "newton:selfCollisionEnabled", False)
    author.revolute(world, "AB", a, b, "Z")
    author.revolute(world, "BC", b, c, "Z")
    assert pairs(stage) == ALL - every_pair("A", "B", "C")


def test_bodies_fixed_together_never_collide():
    stage, world, (a, b, c, _) = balls(4)
    author.fixed(world, "AB", a, b)
    author.fixed(world, "BC", b, c)
    assert pairs(stage) == ALL - every_pair("A", "B", "C")


@pytest.mark.parametrize(
    ("schema", "flag", "filtered"), [(False, None, False), (True, None, True), (True, True, True), (True, False, False)]
)
def test_mujocos_parents_are_whole_groups(schema, flag, filtered):
    """A head fixed to a torso is part of what an arm hangs on, by MuJoCo's rule (its own answer is the truth below)."""
    stage, world, (torso, head, arm, hand) = balls(4)
    scene = author.physics_scene(stage)
    if schema:
        scene.AddAppliedSchema("MjcSceneAPI")
    if flag is not None:
        author.set_attribute(scene, "mjc:flag:filterparent", flag)
    author.fixed(world, "Neck", torso, head)
    author.revolute(world, "Shoulder", torso, arm, "Z")
    author.revolute(world, "Wrist", arm, hand, "Z")
    spec = mujoco.MjModel.from_xml_string(
        f"""<mujoco><option><flag filterparent="{"enable" if filtered else "disable"}"/></option><worldbody>
        <body name="A"><freejoint/><geom size="9"/>
          <body name="B"><geom size="9"/></body>
          <body name="C"><joint/><geom size="9"/><body name="D"><joint/><geom size="9"/></body></body>
        </body></worldbody></mujoco>"""
    )
    data = mujoco.MjData(spec)
    mujoco.mj_forward(spec, data)
    touching = {frozenset(spec.body(spec.geom_bodyid[g]).name for g in c.geom) for c in data.contact}
    jointed = set(map(frozenset, ("AC", "CD")))  # UsdPhysics keeps these apart in any case
    assert {pair for pair in pairs(stage) if "Ground" not in pair} == touching - jointed


def test_a_joint_that_lets_its_bodies_collide_wins_over_mujocos_rule():
    stage, world, (a, b, c, d) = balls(4)
    author.physics_scene(stage).AddAppliedSchema("MjcSceneAPI")
    author.fixed(world, "AB", a, b)
    author.revolute(world, "AC", a, c, "Z", collides=True)
    found = pairs(stage)
    assert frozenset("AC") in found and frozenset("BC") not in found and frozenset("CD") in found


def test_filter_of_a_missing_prim_is_reported():
    stage, _, (a, *_) = balls(4)
    UsdPhysics.FilteredPairsAPI.Apply(a).CreateFilteredPairsRel().AddTarget("/World/Nobody")
    scene = read_usd(stage)
    assert [e.status for e in scene.ledger if e.attribute == "physics:filteredPairs"] == ["unsupported"]
