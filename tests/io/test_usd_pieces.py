"""USD meshes that collide as convex pieces: reading, queries, contact, gradients and the way back."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch
import warp as wp
from pxr import Sdf, Usd, UsdGeom, UsdPhysics
from scipy.spatial import ConvexHull

from collision_meshes import mug_profile, revolved, torus
from collision_support import random_quats
from mujoco_oracle import to_mujoco
from shape_mass import solid
from warpsim.collision.contacts import ShapePoses
from warpsim.collision.pairs import collision_pairs
from warpsim.collision.query import PointDistance, ShapeDistance
from warpsim.collision.ray_cast import RayCast
from warpsim.core.errors import SceneError
from warpsim.core.precision import quat, vec3
from warpsim.io.usd import author
from warpsim.io.usd.export import export_scene
from warpsim.io.usd.reader import read_usd
from warpsim.rigid.compile.compile import compile_model
from warpsim.rigid.compile.derive import Derivation
from warpsim.scene import ContactOverride
from warpsim.scene.pieces import pieces_of
from warpsim.sim.describe import describe
from warpsim.sim.simulator import Simulator

TOLERANCE = 0.04
RING, TUBE = 0.3, 0.12


pytestmark = pytest.mark.usefixtures("own_cache")


def mug(parent: Usd.Prim, name: str = "Mug", **options) -> Usd.Prim:
    mesh = revolved(mug_profile(), 16, name)
    options.setdefault("attributes", {"warpsim:convexTolerance": TOLERANCE})
    return author.mesh(parent, name, mesh.vertices, mesh.faces, approximation="convexDecomposition", **options)


def ring(parent: Usd.Prim, name: str = "Ring", **options) -> Usd.Prim:
    mesh = torus(RING, TUBE, around=16, across=8)
    options.setdefault("attributes", {"warpsim:convexTolerance": TOLERANCE})
    return author.mesh(parent, name, mesh.vertices, mesh.faces, approximation="convexDecomposition", **options)


def new_stage() -> tuple[Usd.Stage, Usd.Prim]:
    stage = author.new_stage()
    author.physics_scene(stage, gravity=9.81, steps_per_second=500)
    return stage, author.world(stage)


def entry(scene, path: str, attribute: str):
    (found,) = [e for e in scene.ledger if (e.path, e.attribute) == (path, attribute)]
    return found


def test_one_prim_becomes_one_weight_and_many_colliders():
    stage, world = new_stage()
    body = author.body(world, "Body")
    rubber = author.material(world, "Rubber", friction=0.3, restitution=0.2)
    mug(body, material=rubber, density=800.0)
    scene = read_usd(stage, strict=True)
    whole, *pieces = scene.shapes
    path = "/World/Body/Mug"
    assert (whole.name, whole.kind, whole.collides, whole.visible) == (path, "mesh", False, True)
    assert [piece.name for piece in pieces] == [f"{path}:piece{i}" for i in range(len(pieces))]
    assert pieces_of(scene, path) == pieces
    for piece in pieces:
        assert (piece.kind, piece.collides, piece.visible, piece.mass) == ("hull", True, False, 0.0)
        assert (piece.body, piece.friction[0], piece.restitution) == (whole.body, whole.friction[0], pytest.approx(0.2))
    assert len(collision_pairs(scene)) == 0  # pieces of one body do not touch each other
    said = entry(scene, path, "physics:approximation")
    assert said.status == "used"
    assert said.reason.startswith(f"{len(pieces)} convex pieces")
    mesh = scene.meshes[path]
    volume, com, inertia = solid("mesh", (1, 1, 1), mesh.vertices, mesh.faces)
    sim = Simulator(scene)
    assert sim.model.body.mass.numpy()[0, 1] == pytest.approx(800.0 * volume, rel=1e-9)
    assert f"[mesh as {len(pieces)} convex pieces" in describe(sim.scene)


def test_settings_are_read_and_the_rest_is_in_the_ledger():
    stage, world = new_stage()
    physx = "physxConvexDecompositionCollision"
    prim = ring(
        world, attributes={"warpsim:convexTolerance": 0.1, f"{physx}:maxConvexHulls": 5, f"{physx}:hullVertexLimit": 20}
    )
    prim.CreateAttribute(f"{physx}:errorPercentage", Sdf.ValueTypeNames.Float).Set(3.0)
    scene = read_usd(stage, strict=True)
    path = "/World/Ring"
    settings = scene.shapes[0].decomposition
    assert (settings.tolerance, settings.max_pieces, settings.max_vertices) == (0.1, 5, 20)
    pieces = pieces_of(scene, path)
    assert len(pieces) <= 5
    assert max(len(scene.meshes[p.mesh].vertices) for p in pieces) <= 20
    for name in ("maxConvexHulls", "hullVertexLimit"):
        assert entry(scene, path, f"{physx}:{name}").status == "used"
    assert entry(scene, path, f"{physx}:errorPercentage").status == "ignored"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("warpsim:convexTolerance", 0.0),
        ("physxConvexDecompositionCollision:maxConvexHulls", 0),
        ("physxConvexDecompositionCollision:hullVertexLimit", 3),
    ],
)
def test_settings_out_of_range_are_refused(name, value):
    stage, world = new_stage()
    ring(world, attributes={name: value})
    with pytest.raises(SceneError, match="/World/Ring"):
        read_usd(stage)


def test_meshes_without_an_inside_are_refused_by_path():
    for change, message in (
        (lambda points, faces: (points, faces[3:]), "'/World/Ring' is open"),
        (
            lambda points, faces: (points * np.where(np.arange(len(points)) == 7, np.nan, 1)[:, None], faces),
            "/World/Ring",
        ),
        (lambda points, faces: (1e7 * points, faces), "'/World/Ring': its extent"),
    ):
        stage, world = new_stage()
        mesh = torus(around=16, across=8)
        points, faces = change(mesh.vertices, mesh.faces)
        author.mesh(world, "Ring", points, faces, approximation="convexDecomposition")
        with pytest.raises(SceneError, match=message):
            read_usd(stage)


def test_instances_scales_and_mirrors_share_one_search(tmp_path, own_cache):
    """However a mesh is placed, its vertices lie in its pieces' union there, and the pieces face outwards."""
    part = author.new_stage()
    mug(author.world(part), "Mug")
    part.SetDefaultPrim(part.GetPrimAtPath("/World"))
    author.save(part, tmp_path / "mug.usda")
    author.save(author.new_stage(), tmp_path / "shelf.usda")
    stage = Usd.Stage.Open(str(tmp_path / "shelf.usda"))
    scales = {"Plain": (1, 1, 1), "Large": (3, 3, 3), "Flat": (2, 1, 0.5), "Mirrored": (-1, 2, 1)}
    for i, (name, scale) in enumerate(scales.items()):
        prim = author.reference(
            author.world(stage), name, "./mug.usda", position=(5 * i, 1, 2), instanceable=name != "Flat"
        )
        UsdGeom.Xformable(prim).AddScaleOp(opSuffix="size").Set(scale)
    before = len(list(own_cache.rglob("*.npz")))
    scene = read_usd(stage, strict=True)
    assert len(list(own_cache.rglob("*.npz"))) - before <= 1
    for name in scales:
        path = f"/World/{name}/Mug"
        mesh, pieces = scene.meshes[path], pieces_of(scene, path)
        assert len(pieces) == len(pieces_of(scene, "/World/Plain/Mug"))
        inside = np.zeros(len(mesh.vertices), bool)
        for piece in pieces:
            own = scene.meshes[piece.mesh]
            hull = ConvexHull(own.vertices)
            assert solid("mesh", (1, 1, 1), own.vertices, own.faces)[0] == pytest.approx(hull.volume, rel=1e-9)
            np.testing.assert_array_equal(
                piece.position, scene.shapes[0].position + [5 * list(scales).index(name), 0, 0]
            )
            slack = 0.005 * np.ptp(mesh.vertices, axis=0).max()
            inside |= (mesh.vertices @ hull.equations[:, :3].T + hull.equations[:, 3] <= slack).all(axis=1)
        assert inside.all()


def test_filters_and_groups_speak_for_all_pieces():
    stage, world = new_stage()
    floor = author.ground(world)
    bodies = [author.body(world, name, position=(i, 0, 1)) for i, name in enumerate(("Left", "Right"))]
    rings = [ring(body) for body in bodies]
    count = len(pieces_of(read_usd(stage), "/World/Left/Ring"))
    names = {frozenset(("/World/Left", "/World/Right")): count * count}
    names |= {frozenset((f"/World/{side}", None)): count for side in ("Left", "Right")}

    def found() -> dict:
        scene, counts = read_usd(stage, strict=True), dict.fromkeys(names, 0)
        for a, b in collision_pairs(scene):
            counts[frozenset((scene.shapes[a].body, scene.shapes[b].body))] += 1
        return counts

    assert found() == names
    author.filter_pairs(rings[0], floor)
    assert found() == {**names, frozenset(("/World/Left", None)): 0}
    group = author.collision_group(world, "Rings", rings)
    UsdPhysics.CollisionGroup(group).CreateFilteredGroupsRel().AddTarget(group.GetPath())
    assert found() == {**names, frozenset(("/World/Left", None)): 0, frozenset(("/World/Left", "/World/Right")): 0}


def test_the_way_back_is_the_one_mesh():
    stage, world = new_stage()
    body = author.body(world, "Body")
    ring(body, density=800.0)
    author.filter_pairs(body.GetChildren()[0], author.ground(world))
    scene = read_usd(stage)
    exported, notes = export_scene(scene)
    assert not [note for note in notes if "Ring" in str(note)]
    meshes = [prim for prim in exported.Traverse() if prim.IsA(UsdGeom.Mesh)]
    assert [str(prim.GetAttribute("physics:approximation").Get()) for prim in meshes] == ["convexDecomposition"]
    again = read_usd(exported, strict=True)
    assert again.shapes[0].decomposition == scene.shapes[0].decomposition
    assert len(again.shapes) == len(scene.shapes)
    for a, b in zip(scene.shapes, again.shapes, strict=True):
        if a.mesh is not None:
            np.testing.assert_allclose(again.meshes[b.mesh].vertices, scene.meshes[a.mesh].vertices, atol=1e-6)
    assert len(again.excluded_pairs) == len(scene.excluded_pairs) == 1


def union_scene() -> tuple:
    """The ring, which may move, and a ball and a capsule that may; and their poses' arrays for a number of worlds."""
    stage, world = new_stage()
    ring(author.body(world, "Torus"))
    author.sphere(author.body(world, "A"), "Ball", 0.05)
    author.capsule(author.body(world, "B"), "Peg", 0.04, 0.3)
    scene = read_usd(stage)
    return scene, [("/World/Torus", "/World/A", "/World/B").index(s.body) for s in scene.shapes]


def poses(scene, owner, position, rotation) -> ShapePoses:
    size = np.tile([s.size for s in scene.shapes], (len(position), 1, 1))
    return ShapePoses(
        wp.array(position[:, owner], dtype=vec3, device="cpu", requires_grad=True),
        wp.array(rotation[:, owner], dtype=quat, device="cpu", requires_grad=True),
        wp.array(size, dtype=vec3, device="cpu", requires_grad=True),
    )


def scattered(rng: np.random.Generator, worlds: int) -> tuple[np.ndarray, np.ndarray]:
    """(worlds, 3, 3) positions and (worlds, 3, 4) rotations of the bodies, the ring in the middle."""
    position = np.concatenate([np.zeros((worlds, 1, 3)), rng.uniform(-0.5, 0.5, size=(worlds, 2, 3))], axis=1)
    return position, random_quats(rng, 3 * worlds).reshape(worlds, 3, 4)


PATHS = {"ring": "/World/Torus/Ring", "ball": "/World/A/Ball", "peg": "/World/B/Peg"}


def test_an_override_speaks_for_all_pieces():
    scene, _owner = union_scene()
    count = len(pieces_of(scene, PATHS["ring"]))
    for shape in scene.shapes:
        shape.contact_type = shape.contact_affinity = 0
    scene.contact_overrides.append(ContactOverride(PATHS["ball"], PATHS["ring"], friction=np.full(5, 0.7), condim=1))
    model = compile_model(scene)
    assert model.npair == len(collision_pairs(scene)) == count
    Derivation(model).run()
    np.testing.assert_array_equal(model.pair.friction.numpy()[0], np.full((count, 5), 0.7))


def test_a_peg_threads_the_ring():
    """In the hole's middle the clearance is the torus's own, less what the pieces stick out."""
    scene, owner = union_scene()
    position, rotation = np.zeros((1, 3, 3)), np.tile([1.0, 0, 0, 0], (1, 3, 1))
    query = ShapeDistance(scene, [(PATHS["ring"], PATHS["peg"]), (PATHS["peg"], PATHS["ring"])], 1, "cpu")
    found = query(poses(scene, owner, position, rotation))
    clearance, extent = RING - TUBE - 0.04, 2 * (RING + TUBE)
    flat = (RING - TUBE) * (1 - np.cos(np.pi / 16))  # the mesh's inner sides bulge inwards between vertices
    assert clearance - TOLERANCE * extent - flat <= found.distance.numpy()[0, 0] <= clearance + 1e-6
    np.testing.assert_array_equal(found.point_a.numpy()[:, 0], found.point_b.numpy()[:, 1])
    np.testing.assert_array_equal(found.normal.numpy()[:, 0], -found.normal.numpy()[:, 1])


def test_distance_to_the_union_is_mujocos_to_the_nearest_piece(rng):
    scene, owner = union_scene()
    worlds = 40
    position, rotation = scattered(rng, worlds)
    pairs = [(PATHS["ring"], PATHS["ball"]), (PATHS["peg"], PATHS["ring"])]
    found = ShapeDistance(scene, pairs, worlds, "cpu")(poses(scene, owner, position, rotation)).distance.numpy()
    points = wp.array(position[:, 1:2], dtype=vec3, device="cpu")
    to_point = PointDistance(scene, [PATHS["ring"]], worlds, "cpu")(points, poses(scene, owner, position, rotation))
    for shape in scene.shapes:
        shape.friction_combine = "max"
    model = to_mujoco(scene, approximate=True)
    model.opt.ccd_tolerance, model.opt.ccd_iterations = 1e-10, 200
    data, compared = mujoco.MjData(model), 0
    pieces = [model.geom(p.name).id for p in pieces_of(scene, PATHS["ring"])]
    for world in range(worlds):
        data.qpos[:] = np.concatenate([position[world], rotation[world]], axis=1).ravel()
        mujoco.mj_kinematics(model, data)
        for k, other in enumerate((PATHS["ball"], PATHS["peg"])):
            truth = min(mujoco.mj_geomDistance(model, data, p, model.geom(other).id, 10.0, None) for p in pieces)
            if truth > 0:
                compared += 1
                assert found[world, k] == pytest.approx(truth, abs=2e-6)
                if k == 0:
                    assert to_point.distance.numpy()[world, 0] == pytest.approx(truth + 0.05, abs=2e-6)
            else:
                assert found[world, k] < 1e-6
    assert compared > worlds


def test_gradients_of_distance_point_and_normal(rng):
    """Both poses, against central differences, wherever the same features of the same piece stay nearest."""
    scene, owner = union_scene()
    worlds = 60
    position, rotation = scattered(rng, worlds)
    pairs = [(PATHS["ring"], PATHS["ball"]), (PATHS["ring"], PATHS["peg"])]
    query = ShapeDistance(scene, pairs, worlds, "cpu")
    weight, weights = rng.normal(size=(worlds, 2)), rng.normal(size=(2, worlds, 2, 3))
    way = [rng.normal(size=x.shape) for x in (position, rotation)]
    way[1] -= rotation * (way[1] * rotation).sum(-1, keepdims=True)

    def value(step: float) -> tuple[np.ndarray, np.ndarray]:
        turned = rotation + step * way[1]
        turned /= np.linalg.norm(turned, axis=-1, keepdims=True)
        found = query(poses(scene, owner, position + step * way[0], turned))
        total = found.distance.numpy() * weight + (found.point_a.numpy() * weights[0]).sum(-1)
        total += (found.normal.numpy() * weights[1]).sum(-1)
        return total, np.stack([found.feature.numpy(), found.pair.numpy()])

    base, choice = value(0.0)
    exact = np.zeros(base.shape)
    for k in range(2):
        arrays, tape = poses(scene, owner, position, rotation), wp.Tape()
        with tape:
            found = query(arrays)
        mask = np.arange(2) == k
        found.distance.grad.assign(weight * mask)
        found.point_a.grad.assign(weights[0] * mask[:, None])
        found.normal.grad.assign(weights[1] * mask[:, None])
        tape.backward()
        for array, w in zip((arrays.position, arrays.rotation), way, strict=True):
            exact[:, k] += (array.grad.numpy() * w[:, owner]).reshape(worlds, -1).sum(1)
        tape.zero()
    apart = query(poses(scene, owner, position, rotation)).distance.numpy().copy() > 0.002
    best, smooth = np.full(base.shape, np.inf), apart.copy()
    for step in (1e-5, 1e-6):
        (plus, there), (minus, back) = value(step), value(-step)
        smooth &= (there == choice).all(axis=0) & (back == choice).all(axis=0)
        best = np.minimum(best, np.abs((plus - minus) / (2 * step) - exact))
    assert smooth.sum() > 0.5 * smooth.size
    relative = best / np.maximum(1.0, np.abs(exact))
    assert relative[smooth].max() < 1e-6
    assert np.isfinite(exact).all()


def test_rays_meet_the_mesh_itself():
    scene, owner = union_scene()
    position, rotation = np.zeros((1, 3, 3)), np.tile([1.0, 0, 0, 0], (1, 3, 1))
    position[0, 1:] = [5, 5, 5]
    rays = RayCast(scene, 2, targets=[[PATHS["ring"]]] * 2)
    start = wp.array(np.array([[[0.3, 0, 1], [0, 0, 1.0]]]), dtype=vec3, device="cpu")
    down = wp.array(np.array([[[0, 0, -1.0], [0, 0, -1]]]), dtype=vec3, device="cpu")
    arrays = poses(scene, owner, position, rotation)
    for cast in (rays, RayCast(scene, 2)):
        hits = cast(start, down, arrays)
        assert hits.shape.numpy().tolist() == [[0, -1]]  # the second goes through the hole
        assert hits.distance.numpy()[0, 0] == pytest.approx(1.0 - TUBE, abs=1e-6)


def drop(approximation: str) -> Simulator:
    """A ball of 0.2 kg above the middle of a mug that stands on the floor."""
    stage, world = new_stage()
    author.ground(world)
    prim = mug(world, position=(0, 0, 0.2))
    prim.GetAttribute("physics:approximation").Set(approximation)
    ball = author.body(world, "Ball", position=(0.02, 0.01, 0.5))
    author.sphere(ball, "Shape", 0.06, mass=0.2)
    return Simulator(read_usd(stage))


def test_a_ball_falls_into_the_mug_and_not_on_a_lid():
    sim = drop("convexDecomposition")
    fallen = sim.rollout(1000, outputs=("body_position", "contact_force"))
    bottom = 0.2 - 0.16
    place = fallen["body_position"][-1, 0, sim.body_names.index("/World/Ball")]
    assert bottom + 0.06 - 1e-3 < float(place[2]) < bottom + 0.06 + TOLERANCE * 0.4
    assert float(place[:2].norm()) < 0.17 - 0.06 + 1e-3
    force = fallen["contact_force"][-200:, 0].mean(0)  # on the prim's own row, whatever piece is touched
    names = sim.model.layout.shape_names
    np.testing.assert_allclose(force[names.index("/World/Mug")], [0, 0, -0.2 * 9.81], atol=0.01)
    assert float(force[[i for i, n in enumerate(names) if "piece" in n]].abs().max()) == 0.0
    lid = drop("convexHull").rollout(400, outputs=("body_position",))["body_position"][-1, 0, -1]
    assert float(lid[2]) > 0.4  # as one hull the mug is full


def test_gradients_through_contact_with_pieces():
    """A ball thrown against the mug's inner wall: d(where it is)/d(how it was thrown), against differences."""
    sim = drop("convexDecomposition")
    start = torch.zeros(sim.nv, dtype=sim.torch_dtype)
    start[:3] = torch.tensor([0.9, 0.3, -1.0])
    q = torch.tensor([0.0, 0.0, 0.2, 1, 0, 0, 0], dtype=sim.torch_dtype)
    weight = torch.tensor([1.0, -2.0, 0.5], dtype=sim.torch_dtype)

    def end(qd: torch.Tensor) -> torch.Tensor:
        moved = sim.rollout(100, q=q, qd=qd, outputs=("body_position", "contact_force"))
        assert float(moved["contact_force"].detach().abs().max()) > 0.1
        return (moved["body_position"][-1, 0, -1] * weight).sum()

    speed = start.clone().requires_grad_()
    end(speed).backward()
    for k in range(3):
        step = torch.zeros_like(start)
        step[k] = 1e-5
        difference = float(end(start + step) - end(start - step)) / 2e-5
        assert float(speed.grad[k]) == pytest.approx(difference, rel=1e-6, abs=1e-8)
