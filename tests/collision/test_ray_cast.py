"""Ray casts against MuJoCo's and against closed forms, and their gradients in ray, pose and size."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import warp as wp

from collision_meshes import cube, torus
from collision_support import SIZES, random_quats, rotate
from warpsim.collision.contacts import ShapePoses
from warpsim.collision.ray_cast import RayCast
from warpsim.core.errors import InputError, SceneError, UnknownNameError
from warpsim.core.precision import quat, real, vec3
from warpsim.scene.description import Mesh, Scene, Shape

PRIMITIVES = ("sphere", "capsule", "box", "cylinder", "ellipsoid", "plane")
KINDS = (*PRIMITIVES, "cone", "mesh", "hull")
_SIZE_COUNT = {"sphere": 1, "capsule": 2, "box": 3, "cylinder": 2, "ellipsoid": 3}


def gallery(kinds=KINDS) -> Scene:
    ring, block = torus(around=24, across=12), cube()
    scene = Scene(meshes={"torus": ring, "cube": block})
    for kind in kinds:
        size = SIZES.get(kind, (1.0, 1.0, 1.0))
        mesh = {"mesh": "torus", "hull": "cube"}.get(kind)
        scene.shapes.append(Shape(name=kind, kind=kind, size=np.array(size), mesh=mesh))
    return scene


class Case:
    """Random poses of a gallery and random rays through it."""

    def __init__(self, scene: Scene, rng: np.random.Generator, worlds: int, rays: int, spread: float = 0.8):
        n = len(scene.shapes)
        self.scene = scene
        self.position = spread * rng.normal(size=(worlds, n, 3))
        self.rotation = random_quats(rng, worlds * n).reshape(worlds, n, 4)
        self.size = np.tile([s.size for s in scene.shapes], (worlds, 1, 1))
        self.origin = 1.5 * rng.normal(size=(worlds, rays, 3))
        self.direction = rng.normal(size=(worlds, rays, 3))

    @property
    def values(self) -> list[np.ndarray]:
        return [self.position, self.rotation, self.size, self.origin, self.direction]


def arrays(values: list[np.ndarray]) -> list[wp.array]:
    kinds = (vec3, quat, vec3, vec3, vec3)
    return [wp.array(v, dtype=k, device="cpu", requires_grad=True) for v, k in zip(values, kinds, strict=True)]


def cast(query: RayCast, values: list[np.ndarray]):
    position, rotation, size, origin, direction = arrays(values)
    hits = query.result
    hits.distance.fill_(np.nan), hits.point.fill_(np.nan), hits.normal.fill_(np.nan)
    return query(origin, direction, ShapePoses(position, rotation, size))


def mujoco_twin(scene: Scene) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """The shapes MuJoCo has, each on a mocap body."""
    assets, bodies = "", ""
    for name in {s.mesh for s in scene.shapes if s.mesh}:
        mesh = scene.meshes[name]
        vertices, faces = (" ".join(map(str, a.reshape(-1))) for a in (mesh.vertices, mesh.faces))
        assets += f'<mesh name="{name}" vertex="{vertices}" face="{faces}"/>'
    for shape in scene.shapes:
        if shape.mesh:
            geom = f'type="mesh" mesh="{shape.mesh}"'
        elif shape.kind == "plane":
            geom = 'type="plane" size="0 0 1"'
        else:
            geom = f'type="{shape.kind}" size="{" ".join(map(str, shape.size[: _SIZE_COUNT[shape.kind]]))}"'
        bodies += f'<body mocap="true"><geom {geom}/></body>'
    xml = f"<mujoco><asset>{assets}</asset><worldbody>{bodies}</worldbody></mujoco>"
    model = mujoco.MjModel.from_xml_string(xml)
    return model, mujoco.MjData(model)


@pytest.mark.parametrize("worlds", [40, pytest.param(2000, marks=pytest.mark.long)])
@pytest.mark.parametrize("kind", [*PRIMITIVES, "mesh", "hull"])
def test_rays_are_mujocos(kind, worlds, rng):
    case = Case(gallery((kind,)), rng, worlds, 16, spread=0.4)
    case.direction[:, ::2] = case.position - case.origin[:, ::2] + 0.2 * rng.normal(size=(worlds, 8, 3))
    case.origin[:, 1::4] = case.position + 0.1 * rng.normal(size=(worlds, 4, 3))  # many of them inside
    hits = cast(RayCast(case.scene, 16, worlds, "cpu"), case.values)
    distance, shape, normal = hits.distance.numpy(), hits.shape.numpy(), hits.normal.numpy()
    model, data = mujoco_twin(case.scene)
    geom, out = np.zeros(1, np.int32), np.zeros(3)
    single = 2e-6 if kind in ("mesh", "hull") else 1e-9  # MuJoCo keeps vertices in single precision
    hit_count = 0
    for world in range(worlds):
        data.mocap_pos[:], data.mocap_quat[:] = case.position[world], case.rotation[world]
        mujoco.mj_forward(model, data)
        for ray in range(16):
            way = case.direction[world, ray] / np.linalg.norm(case.direction[world, ray])
            truth = mujoco.mj_ray(model, data, case.origin[world, ray], way, None, 1, -1, geom, out)
            if truth < 0:
                assert shape[world, ray] == -1
                assert distance[world, ray] == -1.0
                continue
            hit_count += 1
            assert shape[world, ray] == 0
            lean = abs(normal[world, ray] @ way)
            assert distance[world, ray] == pytest.approx(truth, abs=single / max(lean, 1e-3))
            np.testing.assert_allclose(normal[world, ray], out, atol=max(single, 1e-7))
    assert hit_count > 4 * worlds


def test_nearest_of_many_shapes_wins_and_targets_are_kept(rng):
    case = Case(gallery(), rng, 50, 20)
    alone = []
    for shape in case.scene.shapes:
        query = RayCast(case.scene, 20, 50, "cpu", targets=[[shape.name]] * 20)
        d = cast(query, case.values).distance.numpy().copy()
        alone.append(np.where(d < 0, np.inf, d))
    best = np.min(alone, axis=0)
    hits = cast(RayCast(case.scene, 20, 50, "cpu"), case.values)
    np.testing.assert_array_equal(hits.distance.numpy(), np.where(np.isinf(best), -1.0, best))
    expected = np.where(np.isinf(best), -1, np.argmin(alone, axis=0))
    np.testing.assert_array_equal(hits.shape.numpy(), expected)
    assert len(np.unique(expected)) == len(KINDS) + 1
    way = case.direction / np.linalg.norm(case.direction, axis=2, keepdims=True)
    met = expected >= 0
    np.testing.assert_allclose(hits.point.numpy()[met], (case.origin + way * best[..., None])[met], atol=1e-12)


def test_cone_is_met_on_its_surface_and_nowhere_before(rng):
    case = Case(gallery(("cone",)), rng, 60, 20, spread=0.2)
    case.direction = case.position - case.origin + 0.2 * rng.normal(size=case.origin.shape)
    hits = cast(RayCast(case.scene, 20, 60, "cpu"), case.values)
    distance = hits.distance.numpy()
    radius, half = SIZES["cone"][:2]
    back = np.repeat(case.rotation * [1, -1, -1, -1], 20, axis=1).reshape(-1, 4)

    def inside(t: np.ndarray) -> np.ndarray:
        way = case.direction / np.linalg.norm(case.direction, axis=2, keepdims=True)
        x = rotate(back, (case.origin + way * t[..., None] - case.position).reshape(-1, 3))
        rho = np.hypot(x[:, 0], x[:, 1])
        return np.maximum(rho * 2 * half / radius + x[:, 2] - half, -half - x[:, 2]).reshape(t.shape)

    met = distance >= 0
    assert met.mean() > 0.3
    np.testing.assert_allclose(inside(distance)[met], 0.0, atol=1e-9)
    began = inside(np.zeros_like(distance)) > 0
    limit = np.where(met, distance - 1e-6, 8.0)
    for share in np.linspace(0.0, 1.0, 200):
        assert ((inside(share * limit) > 0) == began)[limit > 0].all()


@pytest.mark.parametrize("worlds", [60, pytest.param(4000, marks=pytest.mark.long)])
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_in_ray_pose_and_size(kind, worlds, rng):
    case = Case(gallery((kind,)), rng, worlds, 1, spread=0.1)
    case.direction = case.position - case.origin + 0.15 * rng.normal(size=(worlds, 1, 3))
    query = RayCast(case.scene, 1, worlds, "cpu")
    weight, weights, tilts = rng.normal(size=(worlds, 1)), *rng.normal(size=(2, worlds, 1, 3))
    inputs, tape = arrays(case.values), wp.Tape()
    with tape:
        hits = query(inputs[3], inputs[4], ShapePoses(*inputs[:3]))
    base = [x.numpy().copy() for x in (hits.shape, hits.piece, hits.normal)]
    for array, seed in ((hits.distance, weight), (hits.point, weights), (hits.normal, tilts)):
        array.grad.assign(seed)
    tape.backward()
    way = [rng.normal(size=v.shape) for v in case.values]
    way[1] -= case.rotation * (way[1] * case.rotation).sum(-1, keepdims=True)
    way[2] *= (case.size > 0) * 0.3
    if kind in ("mesh", "hull"):
        way[2] = np.repeat(way[2][..., :1], 3, axis=2) * [1, 0, 0]
    gradients = [x.grad.numpy() for x in inputs]
    assert all(np.isfinite(g).all() for g in gradients)
    exact = sum((g * w).reshape(worlds, -1).sum(1) for g, w in zip(gradients, way, strict=True))
    scale = np.maximum(np.sqrt(sum((g**2).reshape(worlds, -1).sum(1) for g in gradients)), 1e-3)

    def loss(step: float) -> tuple[np.ndarray, np.ndarray]:
        values = [v + step * w for v, w in zip(case.values, way, strict=True)]
        values[1] /= np.linalg.norm(values[1], axis=-1, keepdims=True)
        moved = cast(query, values)
        same = (moved.shape.numpy() == base[0]) & (moved.piece.numpy() == base[1])
        parts = (moved.point.numpy() * weights + moved.normal.numpy() * tilts).sum(-1)
        return (moved.distance.numpy() * weight + parts)[:, 0], same[:, 0]

    # Left out, by rules that know nothing of our gradient: misses, tangent rays (infinite slope at the tangent), and
    # rays that meet another piece of the surface one step away.
    unit = case.direction / np.linalg.norm(case.direction, axis=2, keepdims=True)
    met = base[0][:, 0] >= 0
    clear = np.abs((base[2] * unit).sum(-1)[:, 0]) > 0.15
    best, steady, coarser = np.full(worlds, np.inf), np.ones(worlds, bool), np.nan
    for step in (1e-4, 1e-5, 1e-6):
        (plus, same_plus), (minus, same_minus) = loss(step), loss(-step)
        slope = (plus - minus) / (2 * step)
        for estimate in (slope, slope + (slope - coarser) / 99.0):
            best = np.fmin(best, np.abs(estimate - exact) / scale)
        steady, coarser = steady & same_plus & same_minus, slope
    judged = met & clear & steady
    assert judged.sum() > 0.85 * met.sum() and met.mean() > 0.3
    assert best[judged].max() < 1e-6


def test_closed_form_slopes_of_a_ball():
    """A ray beside a ball's center by y: t = L − √(r² − y²), so dt/dy = y/√(r² − y²), dt/dr = −r/√(r² − y²)."""
    scene = Scene(shapes=[Shape(name="ball", kind="sphere", size=np.array([0.5, 0, 0]))])
    values = [np.zeros((1, 1, 3)), np.array([[[1.0, 0, 0, 0]]]), np.array([[[0.5, 0, 0]]])]
    values += [np.array([[[-2.0, 0.3, 0.0]]]), np.array([[[3.0, 0.0, 0.0]]])]
    inputs, tape, query = arrays(values), wp.Tape(), RayCast(scene, 1, 1, "cpu")
    with tape:
        hits = query(inputs[3], inputs[4], ShapePoses(*inputs[:3]))
    assert hits.distance.numpy()[0, 0] == pytest.approx(1.6, abs=1e-14)
    tape.backward(grads={hits.distance: wp.ones((1, 1), dtype=real, device="cpu")})
    np.testing.assert_allclose(inputs[3].grad.numpy()[0, 0], [-1.0, 0.75, 0.0], atol=1e-12)
    assert inputs[2].grad.numpy()[0, 0, 0] == pytest.approx(-1.25, abs=1e-12)
    np.testing.assert_allclose(inputs[0].grad.numpy()[0, 0], [1.0, -0.75, 0.0], atol=1e-12)
    np.testing.assert_allclose(inputs[4].grad.numpy()[0, 0], [0.0, 0.75 * 1.6 / 3.0, 0.0], atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_tangents_edges_and_centers_are_finite(kind):
    """Rays along faces and edges, through corners and centers, from the surface, and with no direction."""
    scene = gallery((kind,))
    half = np.array([0.3, 0.4, 0.5])
    origins = [(0, 0, 0), half, (0.3, -2, 0), (0.3, -2, 0.4), (-2, 0.4, 0.5), (0, 0, 2), (0, 0, 0.4), (0.42, -2, 0)]
    ways = [(1.0, 0, 0), -half, (0, 1.0, 0), (0, 1.0, 0), (1.0, 0, 0), (0, 0, -1.0), (0, 0, 0), (0, 1e-9, 0)]
    n = len(origins)
    values = [np.zeros((1, 1, 3)), np.array([[[1.0, 0, 0, 0]]]), np.array([[scene.shapes[0].size]])]
    values += [np.array([origins], float), np.array([ways], float)]
    inputs, tape, query = arrays(values), wp.Tape(), RayCast(scene, n, 1, "cpu")
    with tape:
        hits = query(inputs[3], inputs[4], ShapePoses(*inputs[:3]))
    for array in (hits.distance, hits.point, hits.normal):
        assert np.isfinite(array.numpy()).all()
        array.grad.fill_(1.0)
    tape.backward()
    assert all(np.isfinite(x.grad.numpy()).all() for x in inputs)
    assert hits.shape.numpy()[0, 6] == -1


def test_bad_calls_are_named(rng):
    case = Case(gallery(), rng, 2, 3)
    with pytest.raises(UnknownNameError, match="no shape 'bax'; did you mean 'box'"):
        RayCast(case.scene, 1, 2, "cpu", targets=[["bax"]])
    with pytest.raises(InputError, match="targets of 1 rays, but there are 3"):
        RayCast(case.scene, 3, 2, "cpu", targets=[["box"]])
    with pytest.raises(InputError, match=r"origin has shape \(2, 3\), but the rays are \(2, 4\)"):
        cast(RayCast(case.scene, 4, 2, "cpu"), case.values)
    flat = Mesh("flat", np.array([(0, 0, 0), (1, 0, 0), (0, 1, 0)], float), np.zeros((0, 3), int))
    scene = Scene(meshes={"flat": flat}, shapes=[Shape(name="s", kind="hull", mesh="flat", size=np.ones(3))])
    with pytest.raises(SceneError, match="'flat' has no faces for rays to meet"):
        RayCast(scene, 1, 1, "cpu")
