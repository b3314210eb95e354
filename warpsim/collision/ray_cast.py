"""Rays: where they first meet a shape; batched, and differentiable in ray, pose and size.

The search is untaped; then the distance is rebuilt as the root of the met piece's own function, so its derivative is
the implicit one, dt = −df / (∇f·d). How to use it::

    rays = RayCast(scene, rays=n, worlds=W)
    hits = rays(origin, direction, shapes)      # (W, n) vec3 twice, ShapePoses; record it on a wp.Tape for gradients
    hits.distance, hits.point, hits.normal, hits.shape
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import warp as wp

from warpsim.collision.contacts import ShapePoses
from warpsim.collision.kinds import KIND_CODE
from warpsim.collision.ray_mesh import RayMeshes
from warpsim.collision.ray_search import ray_search_kernel
from warpsim.collision.ray_surface import RayTriangles, surface_piece
from warpsim.core.errors import InputError, unknown_name
from warpsim.core.precision import EPSILON, quat, real, vec3
from warpsim.core.spatial import quat_matrix
from warpsim.scene.description import Scene

GRAZING = wp.constant(real(EPSILON**0.5))
"""Rays that meet a surface at a smaller sine have no slope (it is infinite at a tangent): their distance is held."""


@dataclass(frozen=True)
class RayHits:
    """What rays met; (W, n) arrays, those of reals with gradients."""

    distance: wp.array
    """real, m, from the origin along the ray; −1 where it meets nothing, with no gradient."""
    point: wp.array
    """vec3, world frame, m; the origin where it meets nothing."""
    normal: wp.array
    """vec3, unit, outward from the shape, world frame; zero where it meets nothing."""
    shape: wp.array
    """int32 into `Scene.shapes`; −1 for none."""
    piece: wp.array
    """int32: which piece of the shape's surface, see `ray_surface`."""
    found: wp.array
    """real, m: the distance as searched; no gradient."""

    @staticmethod
    def allocate(worlds: int, rays: int, device: wp.DeviceLike = None, *, requires_grad: bool = True) -> RayHits:
        """Allocates the answers of one cast, for instance one per tape slot."""
        shape = (worlds, rays)
        return RayHits(
            distance=wp.zeros(shape, dtype=real, device=device, requires_grad=requires_grad),
            point=wp.zeros(shape, dtype=vec3, device=device, requires_grad=requires_grad),
            normal=wp.zeros(shape, dtype=vec3, device=device, requires_grad=requires_grad),
            shape=wp.full(shape, -1, dtype=wp.int32, device=device),
            piece=wp.zeros(shape, dtype=wp.int32, device=device),
            found=wp.zeros(shape, dtype=real, device=device),
        )


@wp.kernel
def _ray_rebuild_kernel(
    # topology, choices
    shape_kind: wp.array(dtype=int),
    mesh: RayTriangles,
    hit_shape: wp.array2d(dtype=int),
    hit_piece: wp.array2d(dtype=int),
    hit_distance: wp.array2d(dtype=real),
    # state
    shape_position: wp.array2d(dtype=vec3),
    shape_rotation: wp.array2d(dtype=quat),
    shape_size: wp.array2d(dtype=vec3),
    origin: wp.array2d(dtype=vec3),
    direction: wp.array2d(dtype=vec3),
    # out
    distance: wp.array2d(dtype=real),
    point: wp.array2d(dtype=vec3),
    normal: wp.array2d(dtype=vec3),
):
    world, ray = wp.tid()
    shape = hit_shape[world, ray]
    o = origin[world, ray]
    if shape < 0:
        distance[world, ray] = real(-1.0)
        point[world, ray] = o
        normal[world, ray] = vec3()
        return
    d = wp.normalize(direction[world, ray])
    frame = quat_matrix(shape_rotation[world, shape])
    inverse = wp.transpose(frame)
    local_o = inverse @ (o - shape_position[world, shape])
    local_d = inverse @ d
    kind = shape_kind[shape]
    piece = hit_piece[world, ray]
    size = shape_size[world, shape]
    t = hit_distance[world, ray]
    value, slope = surface_piece(kind, piece, size, mesh, local_o + local_d * t)
    closing = wp.dot(slope, local_d)
    root = t
    if wp.abs(closing) > GRAZING:
        root = t - value / closing  # a last step of Newton's method: its derivative is that of the root
    _rest, outward = surface_piece(kind, piece, size, mesh, local_o + local_d * root)
    distance[world, ray] = root
    point[world, ray] = o + d * root
    normal[world, ray] = frame @ outward


def _target_mask(scene: Scene, rays: int, targets: Sequence[Sequence[str]] | None) -> np.ndarray:
    """(rays, shapes) uint8: which shapes each ray may meet."""
    index = {shape.name: i for i, shape in enumerate(scene.shapes)}
    if targets is None:
        return np.tile(np.array([shape.piece_of is None for shape in scene.shapes], np.uint8), (rays, 1))
    if len(targets) != rays:
        raise InputError(f"targets of {len(targets)} rays, but there are {rays}; give one list of shapes per ray")
    mask = np.zeros((rays, len(index)), np.uint8)
    for ray, names in enumerate(targets):
        for name in names:
            if name not in index:
                raise unknown_name("shape", name, index)
            mask[ray, index[name]] = 1
    return mask


class RayCast:
    """The first surface that each of n rays meets, by MuJoCo's rules (`mj_ray`).

    Meshes and hulls are met as the triangles of their mesh, exactly, also a mesh that collides as convex pieces. Planes
    are endless and met from above only; other surfaces from both sides, so a ray from within a shape meets it on the
    way out. Results are overwritten by the next call that writes to the same `RayHits`.
    """

    def __init__(
        self,
        scene: Scene,
        rays: int,
        worlds: int = 1,
        device: wp.DeviceLike = None,
        *,
        targets: Sequence[Sequence[str]] | None = None,
    ):
        """Prepares the query.

        Args:
            scene: Where the shapes are.
            rays: Rays of a world.
            worlds: Worlds of the poses that will be asked about.
            device: Where to compute.
            targets: For each ray the names of the shapes it may meet; None: all shapes, whether they collide or not,
                but for the convex pieces of others.

        Raises:
            UnknownNameError: A shape that does not exist.
            SceneError: A mesh has no triangles or bad vertices.
        """
        mask = _target_mask(scene, rays, targets)
        self._meshes = RayMeshes.from_scene(scene, np.flatnonzero(mask.any(axis=0)), device)
        kinds = np.array([KIND_CODE[shape.kind] for shape in scene.shapes], np.int32)
        self._kind = wp.array(kinds, dtype=wp.int32, device=device)
        self._target = wp.array(mask, dtype=wp.uint8, device=device)
        self._shape = (worlds, rays)
        self.result = RayHits.allocate(worlds, rays, device)

    def over(self, worlds: int) -> RayCast:
        """The same query in another number of worlds; the tables of shapes are shared."""
        twin = copy.copy(self)
        twin._shape = (worlds, self._shape[1])
        twin.result = RayHits.allocate(*twin._shape, self._kind.device)
        return twin

    def __call__(
        self, origin: wp.array, direction: wp.array, shapes: ShapePoses, hits: RayHits | None = None
    ) -> RayHits:
        """Casts the rays; the differentiable part is recorded on the active tape.

        Args:
            origin: (worlds, rays) vec3, world frame, m.
            direction: (worlds, rays) vec3, world frame, any length; a zero one meets nothing.
            shapes: (worlds, shapes) poses and sizes of all shapes of the scene.
            hits: Where to write; None: `self.result`.
        """
        for name, array in (("origin", origin), ("direction", direction)):
            if tuple(array.shape) != self._shape:
                raise InputError(f"{name} has shape {tuple(array.shape)}, but the rays are {self._shape}: worlds, rays")
        if shapes.position.shape != (self._shape[0], self._kind.shape[0]):
            raise InputError(
                f"poses of shape {tuple(shapes.position.shape)}, but the query was made for "
                f"{(self._shape[0], self._kind.shape[0])}: worlds, shapes"
            )
        out, device = hits or self.result, self._kind.device
        state = [shapes.position, shapes.rotation, shapes.size, origin, direction]
        wp.launch(
            ray_search_kernel,
            dim=self._shape,
            inputs=[self._kind, self._target, self._meshes.triangles, *state],
            outputs=[out.shape, out.piece, out.found],
            device=device,
            record_tape=False,
        )
        wp.launch(
            _ray_rebuild_kernel,
            dim=self._shape,
            inputs=[self._kind, self._meshes.triangles, out.shape, out.piece, out.found, *state],
            outputs=[out.distance, out.point, out.normal],
            device=device,
        )
        return out
