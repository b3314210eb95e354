"""Helpers of the collision tests: two-shape scenes, MuJoCo's contacts for them, and gradients through the rebuild."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
import warp as wp

from contact_choices import field_regions, parallel, rotate, same_choices
from warpsim.collision.contacts import Contacts, PairTable, SearchWork, ShapePoses, find_contacts, rebuild_contacts
from warpsim.core.precision import quat, real, vec3
from warpsim.scene.description import Body, Joint, Scene, Shape

SIZES = {
    "plane": (0.0, 0.0, 0.0),
    "sphere": (0.3, 0.0, 0.0),
    "capsule": (0.2, 0.4, 0.0),
    "box": (0.3, 0.4, 0.5),
    "cylinder": (0.3, 0.4, 0.0),
    "cone": (0.3, 0.4, 0.0),
    "ellipsoid": (0.3, 0.4, 0.5),
}
_MUJOCO_SIZE_COUNT = {"plane": 3, "sphere": 1, "capsule": 2, "box": 3, "cylinder": 2, "ellipsoid": 3}


def two_shape_scene(first: str, second: str, sizes: tuple | None = None, **fields) -> Scene:
    """A scene of two free bodies with one shape each."""
    size_a, size_b = sizes or (SIZES.get(first, (1, 1, 1)), SIZES.get(second, (1, 1, 1)))
    scene = Scene()
    for name, kind, size in (("a", first, size_a), ("b", second, size_b)):
        scene.bodies.append(Body(name=name, mass=1.0))
        scene.joints.append(Joint(name=name, kind="free", body=name))
        extra = fields.get(name, {})
        scene.shapes.append(Shape(name=name, kind=kind, body=name, size=np.array(size, float), **extra))
    return scene


def random_quats(rng: np.random.Generator, n: int) -> np.ndarray:
    q = rng.normal(size=(n, 4))
    return q / np.linalg.norm(q, axis=1, keepdims=True)


def random_poses(first: str, rng: np.random.Generator, n: int, spread: float) -> tuple[np.ndarray, np.ndarray]:
    """(n, 2, 3) positions and (n, 2, 4) rotations, the second shape about `spread` from the first (above a plane)."""
    position = np.zeros((n, 2, 3))
    rotation = np.stack([random_quats(rng, n), random_quats(rng, n)], axis=1)
    position[:, 0] = 0.1 * rng.normal(size=(n, 3))
    offset = spread * random_quats(rng, n)[:, 1:] * rng.uniform(0.2, 1.6, size=(n, 1))
    if first == "plane":
        offset = np.stack([rng.normal(size=n), rng.normal(size=n), rng.uniform(-0.1, 0.9, size=n)], axis=1)
        offset = rotate(rotation[:, 0], offset * [0.3, 0.3, 1.0])
    position[:, 1] = position[:, 0] + offset
    return position, rotation


@dataclass
class Found:
    """Contacts of many worlds on the host."""

    count: np.ndarray
    feature: np.ndarray
    distance: np.ndarray
    point: np.ndarray
    frame: np.ndarray


class ContactBench:
    """Two-shape contact generation over n worlds, with adjoints."""

    def __init__(self, scene: Scene, position, rotation, size=None, margin: float = 0.0, max_contacts: int = 8):
        self.table = PairTable.from_pairs(scene, np.array([[0, 1]]), "cpu")
        n = len(position)
        if size is None:
            size = np.broadcast_to([s.size for s in scene.shapes], (n, 2, 3))
        self.shapes = ShapePoses(
            wp.array(position, dtype=vec3, device="cpu", requires_grad=True),
            wp.array(rotation, dtype=quat, device="cpu", requires_grad=True),
            wp.array(np.array(size), dtype=vec3, device="cpu", requires_grad=True),
        )
        self.margin = wp.array(np.full((n, 1), margin), dtype=real, device="cpu")
        self.search = SearchWork.allocate(self.table, n)
        self.contacts = Contacts.allocate(n, max_contacts, "cpu")
        self.contacts.distance.fill_(np.nan)
        self.contacts.point.fill_(np.nan)
        self.contacts.frame.fill_(np.nan)

    def find(self) -> None:
        find_contacts(self.table, self.shapes, self.margin, self.search, self.contacts)

    def rebuild(self) -> None:
        rebuild_contacts(self.table, self.shapes, self.contacts)

    def run(self) -> Found:
        self.find()
        self.rebuild()
        return self.read()

    def read(self) -> Found:
        c = self.contacts
        return Found(c.count.numpy(), c.feature.numpy(), c.distance.numpy(), c.point.numpy(), c.frame.numpy())

    def gradients(self, seeds: tuple[np.ndarray, np.ndarray, np.ndarray]) -> list[np.ndarray]:
        """Gradients in position, rotation and size of Σ seeds · (distance, point, frame), choices frozen."""
        tape = wp.Tape()
        with tape:
            self.rebuild()
        c = self.contacts
        active = np.arange(c.pair.shape[1])[None] < c.count.numpy()[:, None]
        for array, seed in zip((c.distance, c.point, c.frame), seeds, strict=True):
            seed = np.where(active.reshape(active.shape + (1,) * (seed.ndim - 2)), seed, 0.0)
            array.grad.assign(seed)
        tape.backward()
        out = [a.grad.numpy().copy() for a in (self.shapes.position, self.shapes.rotation, self.shapes.size)]
        tape.zero()
        return out


def mujoco_pair_model(scene: Scene) -> mujoco.MjModel:
    """The same two shapes in MuJoCo; a plane hangs on a mocap body: MuJoCo wants planes on static bodies."""
    bodies = []
    for shape in scene.shapes:
        size = np.where(shape.kind == "plane", 1.0, shape.size)[: _MUJOCO_SIZE_COUNT[shape.kind]]
        geom = f'<geom type="{shape.kind}" size="{" ".join(map(repr, map(float, size)))}" mass="1"/>'
        if shape.kind == "plane":
            bodies.append(f'<body mocap="true">{geom}</body>')
        else:
            bodies.append(f"<body><freejoint/>{geom}</body>")
    option = '<option ccd_tolerance="1e-12" ccd_iterations="200"/>'
    return mujoco.MjModel.from_xml_string(f"<mujoco>{option}<worldbody>{''.join(bodies)}</worldbody></mujoco>")


def mujoco_contacts(scene: Scene, position: np.ndarray, rotation: np.ndarray, margin: float = 0.0) -> list[list]:
    """MuJoCo's contacts at each pose: lists of (distance, point, frame)."""
    model = mujoco_pair_model(scene)
    model.geom_margin[:] = [margin, 0.0]  # MuJoCo adds the two
    data = mujoco.MjData(model)
    out = []
    for p, r in zip(position, rotation, strict=True):
        address = 0
        for i, shape in enumerate(scene.shapes):
            if shape.kind == "plane":
                data.mocap_pos[0], data.mocap_quat[0] = p[i], r[i]
            else:
                data.qpos[address : address + 7] = np.concatenate([p[i], r[i]])
                address += 7
        mujoco.mj_kinematics(model, data)
        mujoco.mj_collision(model, data)
        contacts = data.contact
        out.append(
            [
                (contacts.dist[k], contacts.pos[k].copy(), contacts.frame[k].reshape(3, 3).copy())
                for k in range(data.ncon)
            ]
        )
    return out


def directional_errors(
    scene: Scene, position, rotation, rng, margin: float = 0.05, max_contacts: int = 8
) -> tuple[np.ndarray, np.ndarray]:
    """Relative error of the adjoint against central differences, per world, along a random direction of all inputs.

    The loss weighs distance, point and frame of every contact at random; differences search again at each pose, and the
    best of several steps counts.

    Returns:
        Errors of the worlds that have a derivative: they touch, and no discrete choice changes within the steps
        (`contact_choices`, which knows nothing of gradients). And which worlds touch.
    """
    n = len(position)
    size = np.array(np.broadcast_to([s.size for s in scene.shapes], (n, 2, 3)))
    bench = ContactBench(scene, position, rotation, size, margin, max_contacts)
    base = bench.run()
    base_regions = field_regions(scene, bench.table, (position, rotation, size), base)
    places = base.distance.shape[1]
    seeds = (
        rng.normal(size=(n, places)),
        rng.normal(size=(n, places, 3)),
        rng.normal(size=(n, places, 3, 3)),
    )
    gradients = bench.gradients(seeds)
    way = [rng.normal(size=a.shape) for a in (position, rotation, size)]
    way[1] -= rotation * (way[1] * rotation).sum(-1, keepdims=True)
    way[2] = way[2] * (size > 0)
    exact = sum((g * w).reshape(n, -1).sum(1) for g, w in zip(gradients, way, strict=True))
    assert np.isfinite(exact).all()
    active = np.arange(places)[None] < base.count[:, None]

    def loss(step: float) -> tuple[np.ndarray, np.ndarray]:
        turned = rotation + step * way[1]
        turned /= np.linalg.norm(turned, axis=-1, keepdims=True)
        pose = (position + step * way[0], turned, size + step * way[2])
        moved = ContactBench(scene, *pose, margin, max_contacts).run()
        regions = field_regions(scene, bench.table, pose, moved)
        total = np.zeros(n)
        for value, seed in zip((moved.distance, moved.point, moved.frame), seeds, strict=True):
            mask = active.reshape(active.shape + (1,) * (value.ndim - 2))
            total += np.where(mask, value * seed, 0.0).reshape(n, -1).sum(1)
        return total, same_choices(base, moved, (base_regions, regions))

    best, coarser = np.full(n, np.inf), np.full(n, np.nan)
    scale = np.maximum(np.sqrt(sum((g * g).reshape(n, -1).sum(1) for g in gradients)), 1e-3)
    smooth = (base.count > 0) & ~parallel(scene, bench.table, base)
    for step in (1e-5, 1e-6, 1e-7):
        (plus, same_plus), (minus, same_minus) = loss(step), loss(-step)
        same = same_plus & same_minus
        slope = np.where(same, (plus - minus) / (2 * step), np.nan)
        for estimate in (slope, slope + (slope - coarser) / 99.0):  # Richardson: the error falls with the step squared
            best = np.fmin(best, np.abs(estimate - exact) / scale)
        coarser = slope
        if step < 1e-5:
            smooth &= same
    return best[smooth], base.count > 0
