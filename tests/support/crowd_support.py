"""Scenes of many shapes at random poses, and their contacts."""

from __future__ import annotations

import numpy as np
import warp as wp

from collision_meshes import cube
from collision_support import SIZES, random_quats
from warpsim.collision.contacts import Contacts, PairTable, SearchWork, ShapePoses, find_contacts, rebuild_contacts
from warpsim.core.precision import quat, real, vec3
from warpsim.scene.description import Body, Joint, Scene, Shape

KINDS = ("sphere", "capsule", "box", "cylinder", "ellipsoid", "hull")


def crowd(count: int = 18) -> Scene:
    """Free bodies of all kinds over a plane."""
    scene = Scene(meshes={"cube": cube((0.2, 0.25, 0.3))})
    scene.shapes.append(Shape(name="floor", kind="plane"))
    for i in range(count):
        kind = KINDS[i % len(KINDS)]
        size = np.ones(3) if kind == "hull" else np.array(SIZES[kind])
        scene.bodies.append(Body(name=f"b{i}"))
        scene.joints.append(Joint(name=f"b{i}", kind="free", body=f"b{i}"))
        scene.shapes.append(Shape(name=f"s{i}", kind=kind, body=f"b{i}", size=size, mesh="cube"))
    return scene


class CrowdBench:
    """Contact generation of a scene at random poses, some worlds at once."""

    def __init__(self, scene: Scene, worlds: int, seed: int = 0, max_contacts: int | None = None):
        rng = np.random.default_rng(seed)
        n = len(scene.shapes)
        self.table = PairTable.from_scene(scene, "cpu")
        position = rng.uniform(-1, 1, size=(worlds, n, 3)) + [0, 0, 0.6]
        rotation = random_quats(rng, worlds * n).reshape(worlds, n, 4)
        position[:, 0], rotation[:, 0] = 0.0, [1.0, 0, 0, 0]
        self.set_poses(position, rotation, np.tile([s.size for s in scene.shapes], (worlds, 1, 1)))
        self.search = SearchWork.allocate(self.table, worlds)
        self.margin = wp.zeros((worlds, self.table.pair_count), dtype=real, device="cpu")
        self.contacts = Contacts.allocate(worlds, max_contacts or self.table.candidates, "cpu")

    def set_poses(self, position, rotation, size) -> None:
        self.position, self.rotation, self.size = position, rotation, size
        self.shapes = ShapePoses(
            wp.array(position, dtype=vec3, device="cpu", requires_grad=True),
            wp.array(rotation, dtype=quat, device="cpu", requires_grad=True),
            wp.array(size, dtype=vec3, device="cpu", requires_grad=True),
        )

    def run(self) -> None:
        find_contacts(self.table, self.shapes, self.margin, self.search, self.contacts)
        rebuild_contacts(self.table, self.shapes, self.contacts)

    def read(self) -> list[np.ndarray]:
        """All results, with unused places cleared."""
        c = self.contacts
        used = np.arange(c.pair.shape[1])[None] < c.count.numpy()[:, None]
        out = [c.count.numpy().copy()]
        for array in (c.pair, c.feature, c.distance, c.point, c.frame):
            values = array.numpy()
            out.append(np.where(used.reshape(used.shape + (1,) * (values.ndim - 2)), values, 0))
        return out


def assert_equal_results(a: list[np.ndarray], b: list[np.ndarray]) -> None:
    for x, y in zip(a, b, strict=True):
        np.testing.assert_array_equal(x, y)
