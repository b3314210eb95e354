"""Distances for losses and planning: between shapes, and from points to shapes; batched and differentiable.

Unlike contacts, a query answers at any distance, so that a loss on it can pull shapes together. How to use it::

    query = ShapeDistance(scene, [("/World/Gripper", "/World/Cup")], worlds=W)
    result = query(shapes)             # ShapePoses; record it on a wp.Tape for gradients
    result.distance, result.point_a, result.point_b, result.normal
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import warp as wp

from warpsim.collision.contacts import Contacts, PairTable, SearchWork, ShapePoses, find_contacts, rebuild_contacts
from warpsim.collision.geometry import Geometry
from warpsim.collision.kinds import KIND_ORDER
from warpsim.core.errors import InputError, unknown_name
from warpsim.core.precision import mat33, numpy_real, quat, real, vec3
from warpsim.scene.description import Scene, Shape
from warpsim.scene.pieces import colliding_shapes

ANYWHERE = 1e9
"""Margin (m) within which every pair is near."""


@dataclass(frozen=True)
class Distances:
    """What a query answers; (W, n) arrays with gradients."""

    distance: wp.array
    """real, m, negative where the shapes overlap."""
    point_a: wp.array
    """vec3, nearest (or deepest) point of the first shape, world frame, m."""
    point_b: wp.array
    """vec3, that of the second shape."""
    normal: wp.array
    """vec3, unit, from the first to the second."""
    feature: wp.array
    """int64: which features of the two are nearest, a code of the pair's kinds; where it changes, so may slopes."""
    pair: wp.array
    """int32: which pair of the query's table is nearest; it changes only where convex pieces take turns, and so may
    slopes."""


@wp.kernel(enable_backward=False)
def _nearest_contact_kernel(
    # in
    contact_count: wp.array(dtype=int),
    contact_pair: wp.array2d(dtype=int),
    contact_distance: wp.array2d(dtype=real),
    question: wp.array(dtype=int),
    # out
    nearest: wp.array2d(dtype=int),
):
    world, asked = wp.tid()
    best = int(-1)
    for place in range(contact_count[world]):
        if question[contact_pair[world, place]] == asked:
            if best < 0 or contact_distance[world, place] < contact_distance[world, best]:
                best = place
    nearest[world, asked] = best


@wp.kernel
def _closest_points_kernel(
    # choices
    swapped: wp.array(dtype=int),
    nearest: wp.array2d(dtype=int),
    # in
    contact_pair: wp.array2d(dtype=int),
    contact_feature: wp.array2d(dtype=wp.int64),
    contact_distance: wp.array2d(dtype=real),
    contact_point: wp.array2d(dtype=vec3),
    contact_axes: wp.array2d(dtype=mat33),
    # out
    distance: wp.array2d(dtype=real),
    point_a: wp.array2d(dtype=vec3),
    point_b: wp.array2d(dtype=vec3),
    normal: wp.array2d(dtype=vec3),
    feature: wp.array2d(dtype=wp.int64),
    pair: wp.array2d(dtype=int),
):
    world, i = wp.tid()
    place = nearest[world, i]
    if place < 0:
        return
    d = contact_distance[world, place]
    axes = contact_axes[world, place]
    n = vec3(axes[0, 0], axes[0, 1], axes[0, 2])
    if swapped[i] == 1:
        n = -n
    middle = contact_point[world, place]
    distance[world, i] = d
    point_a[world, i] = middle - n * (real(0.5) * d)
    point_b[world, i] = middle + n * (real(0.5) * d)
    normal[world, i] = n
    feature[world, i] = contact_feature[world, place]
    pair[world, i] = contact_pair[world, place]


def _piece_pairs(scene: Scene, pairs: Sequence[tuple[str, str]]) -> tuple[np.ndarray, np.ndarray]:
    """What has to be measured for pairs of names.

    Returns:
        (n, 3) int32: two shapes, first kinds first, and the place of the asked pair that they stand for; and (pairs,)
        int32: 1 where the two are the other way round than asked.
    """
    standing = colliding_shapes(scene)
    rows, swapped = [], []
    for place, names in enumerate(pairs):
        for name in names:
            if name not in standing:
                raise unknown_name("shape", name, standing)
        first, second = (standing[name] for name in names)
        orders = [KIND_ORDER[scene.shapes[some[0]].kind] for some in (first, second)]
        swap = orders[1] < orders[0]
        rows += [(b, a, place) if swap else (a, b, place) for a, b in product(first, second)]
        swapped.append(int(swap))
    return np.array(rows, np.int32).reshape(-1, 3), np.array(swapped, np.int32)


class ShapeDistance:
    """Signed distance and closest points of chosen pairs of shapes.

    Convex pairs are exact (support functions); a mesh is its signed distance grid, met by the other shape's sample
    points. Overlapping convex shapes answer with the shortest way out. A shape that collides as convex pieces answers
    with its nearest (or deepest) piece. Results are overwritten by the next call.
    """

    def __init__(
        self,
        scene: Scene,
        pairs: Sequence[tuple[str, str]],
        worlds: int = 1,
        device: wp.DeviceLike = None,
        *,
        geometry: Geometry | None = None,
    ):
        """Prepares the query.

        Args:
            scene: Where the shapes are.
            pairs: Names of shapes; any kinds but two planes.
            worlds: Worlds of the poses that will be asked about.
            device: Where to compute.
            geometry: Mesh data of the same scene (`PairTable.geometry`), to share it.

        Raises:
            UnknownNameError: A shape that does not exist.
            UnsupportedError: Kinds that have no distance between them.
        """
        rows, swapped = _piece_pairs(scene, pairs)
        self.table = PairTable.from_pairs(scene, rows[:, :2], device, geometry=geometry, exact=True)
        device = self.table.pair_case.device
        self._worlds = worlds
        self._search = SearchWork.allocate(self.table, worlds)
        self._contacts = Contacts.allocate(worlds, self.table.candidates, device)
        margin = np.full((worlds, self.table.pair_count), ANYWHERE, numpy_real)
        self._margin = wp.array(margin, dtype=real, device=device)
        shape = (worlds, len(swapped))
        self._nearest = wp.zeros(shape, dtype=wp.int32, device=device)
        questions = rows[np.array(self.table.pair_order, np.int32), 2] if len(rows) else rows[:, 2]
        self._question = wp.array(questions.copy(), dtype=wp.int32, device=device)
        self._swapped = wp.array(swapped, dtype=wp.int32, device=device)
        self.result = Distances(
            distance=wp.zeros(shape, dtype=real, device=device, requires_grad=True),
            point_a=wp.zeros(shape, dtype=vec3, device=device, requires_grad=True),
            point_b=wp.zeros(shape, dtype=vec3, device=device, requires_grad=True),
            normal=wp.zeros(shape, dtype=vec3, device=device, requires_grad=True),
            feature=wp.zeros(shape, dtype=wp.int64, device=device),
            pair=wp.zeros(shape, dtype=wp.int32, device=device),
        )

    def __call__(self, shapes: ShapePoses) -> Distances:
        """Distances at given poses; the differentiable part is recorded on the active tape.

        Args:
            shapes: (worlds, shapes) poses and sizes of all shapes of the scene.
        """
        if shapes.position.shape[0] != self._worlds:
            raise InputError(f"poses of {shapes.position.shape[0]} worlds, but the query was made for {self._worlds}")
        contacts, device = self._contacts, self.table.pair_case.device
        find_contacts(self.table, shapes, self._margin, self._search, contacts)
        rebuild_contacts(self.table, shapes, contacts)
        wp.launch(
            _nearest_contact_kernel,
            dim=self._nearest.shape,
            inputs=[contacts.count, contacts.pair, contacts.distance, self._question],
            outputs=[self._nearest],
            device=device,
            record_tape=False,
        )
        out = self.result
        wp.launch(
            _closest_points_kernel,
            dim=out.distance.shape,
            inputs=[
                self._swapped,
                self._nearest,
                contacts.pair,
                contacts.feature,
                contacts.distance,
                contacts.point,
                contacts.frame,
            ],
            outputs=[out.distance, out.point_a, out.point_b, out.normal, out.feature, out.pair],
            device=device,
        )
        return out


class PointDistance:
    """Signed distance from free points to one shape each, with the nearest surface point."""

    def __init__(self, scene: Scene, shapes: Sequence[str], worlds: int = 1, device: wp.DeviceLike = None):
        """Prepares the query.

        Args:
            scene: Where the shapes are.
            shapes: For each point, the name of the shape it is measured against.
            worlds: Worlds of the poses that will be asked about.
            device: Where to compute.
        """
        probes = [Shape(name=f"probe {i}", kind="sphere", size=np.zeros(3)) for i in range(len(shapes))]
        self._shape_count = len(scene.shapes)
        with_probes = replace(scene, shapes=[*scene.shapes, *probes])
        self._query = ShapeDistance(
            with_probes, [(p.name, s) for p, s in zip(probes, shapes, strict=True)], worlds, device
        )
        device = self._query.table.pair_case.device
        total = self._shape_count + len(shapes)
        self._poses = ShapePoses(
            wp.zeros((worlds, total), dtype=vec3, device=device, requires_grad=True),
            wp.array(np.tile([1.0, 0, 0, 0], (worlds, total, 1)), dtype=quat, device=device, requires_grad=True),
            wp.zeros((worlds, total), dtype=vec3, device=device, requires_grad=True),
        )

    def __call__(self, points: wp.array, shapes: ShapePoses) -> Distances:
        """Distances of points (W, n) vec3, world frame; `normal` points from the point to the shape."""
        poses, count = self._poses, self._shape_count
        wp.launch(
            _join_poses_kernel,
            dim=poses.position.shape,
            inputs=[count, points, shapes.position, shapes.rotation, shapes.size],
            outputs=[poses.position, poses.rotation, poses.size],
            device=poses.position.device,
        )
        return self._query(poses)


@wp.kernel
def _join_poses_kernel(
    shape_count: int,
    point: wp.array2d(dtype=vec3),
    shape_position: wp.array2d(dtype=vec3),
    shape_rotation: wp.array2d(dtype=quat),
    shape_size: wp.array2d(dtype=vec3),
    # out
    position: wp.array2d(dtype=vec3),
    rotation: wp.array2d(dtype=quat),
    size: wp.array2d(dtype=vec3),
):
    world, i = wp.tid()
    if i < shape_count:
        position[world, i] = shape_position[world, i]
        rotation[world, i] = shape_rotation[world, i]
        size[world, i] = shape_size[world, i]
    else:
        position[world, i] = point[world, i - shape_count]
