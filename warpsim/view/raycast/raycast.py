"""One picture: items on the device, rays through pixels, the nearest hit, its shadow and its color."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import warp as wp

from warpsim.core.kernel_lock import KERNELS
from warpsim.core.kernels import initialize
from warpsim.view.items.camera import Camera
from warpsim.view.items.item import ENDLESS, Item
from warpsim.view.items.triangles import Triangles
from warpsim.view.raycast.arrows import ARROW
from warpsim.view.raycast.intersect import MISS, PLANE, hit_shape, shape_normal
from warpsim.view.raycast.shading import GROUND, GROUND_SHARE, encode, grid, haze, light, sky, sun_direction

SAMPLES = wp.constant(2)
"""Rays per pixel along each edge, where pixels around it differ."""
SAME_COLOR = wp.constant(0.03)
"""Linear intensity by which neighboring pixels of a surface may differ and count as smooth."""
_PIECES = 6.0
"""Cells of the ground's grid along the size of the scene, at least."""
_NOTHING = Item("", PLANE, np.array([-1.0, -1.0, 0.0]), np.eye(4), np.zeros(3), None)
"""A plane that no ray meets: a BVH cannot be empty."""


@wp.struct
class Items:
    """Items as arrays; places are relative to the camera, which keeps float32's digits where they are seen."""

    tree: wp.uint64
    """BVH over the items' boxes."""
    kind: wp.array(dtype=int)
    size: wp.array(dtype=wp.vec3)
    to_local: wp.array(dtype=wp.mat44)
    color: wp.array(dtype=wp.vec3)
    mesh: wp.array(dtype=wp.uint64)
    cell: float
    """Edge of a cell of the ground's grid, m."""
    scale: float
    """Size of the scene, m."""
    marks: int
    """The first item that is a mark, as are all after it: seen through everything, without light or shadow."""
    count: int


@wp.struct
class View:
    """The camera at the origin."""

    forward: wp.vec3
    """To the middle of the window, at unit distance in a perspective view."""
    right: wp.vec3
    """From the middle of the window to its right edge."""
    up: wp.vec3
    """From the middle of the window to its upper edge."""
    middle: wp.vec3
    """Orthographic: start of the ray through the window's middle."""
    orthographic: bool
    pixel: float
    """Width of a pixel: at unit distance, or in m."""


@wp.func
def _local_hit(items: Items, i: int, o: wp.vec3, d: wp.vec3) -> float:
    m = items.to_local[i]
    return hit_shape(items.kind[i], items.size[i], items.mesh[i], wp.transform_point(m, o), wp.transform_vector(m, d))


@wp.func
def _nearest(items: Items, o: wp.vec3, d: wp.vec3, start: int, end: int):
    """(t, index) of the first item in a range that a ray meets, (MISS, −1) for none."""
    best = float(MISS)
    which = int(-1)
    i = int(0)
    query = wp.bvh_query_ray(items.tree, o, d)
    while wp.bvh_query_next(query, i, best):
        t = float(MISS)
        if i >= start and i < end:
            t = _local_hit(items, i, o, d)
        if t < best or (t == best and t < MISS and i < which):  # a tie goes to the first item
            best = t
            which = i
    return best, which


@wp.func
def _shadowed(items: Items, o: wp.vec3, d: wp.vec3) -> bool:
    i = int(0)
    query = wp.bvh_query_ray(items.tree, o, d)
    while wp.bvh_query_next(query, i, MISS):
        if i < items.marks and _local_hit(items, i, o, d) < MISS:
            return True
    return False


@wp.func
def _color(items: Items, view: View, o: wp.vec3, d: wp.vec3):
    """(color, surface) a ray (unit direction) sees; surface: −1 the sky, else the item and whether it is lit."""
    if items.marks < items.count:
        near, mark = _nearest(items, o, d, items.marks, items.count)
        if mark >= 0:
            return items.color[mark], 2 * mark
    t, i = _nearest(items, o, d, 0, items.marks)
    if i < 0:
        return sky(d), -1
    m = items.to_local[i]
    local_o = wp.transform_point(m, o)
    local_d = wp.transform_vector(m, d)
    kind = items.kind[i]
    # Normals are covectors: they go back by the transpose of the map that brought points here.
    normal = wp.normalize(
        wp.transform_vector(wp.transpose(m), shape_normal(kind, items.size[i], items.mesh[i], local_o, local_d, t))
    )
    if wp.dot(normal, d) > 0.0:
        normal = -normal
    color = items.color[i]
    if kind == PLANE:
        p = local_o + t * local_d
        scale_x = wp.length(wp.vec3(m[0, 0], m[0, 1], m[0, 2]))
        scale_y = wp.length(wp.vec3(m[1, 0], m[1, 1], m[1, 2]))
        # A sample is as wide as a pixel across the view, and longer along it the flatter the view is.
        across = view.pixel * wp.where(view.orthographic, 1.0, t)
        along = across / wp.max(-wp.dot(normal, d), 1.0e-3)
        u = wp.normalize(wp.vec2(local_d[0] / scale_x, local_d[1] / scale_y))
        wide_x = wp.abs(u[0]) * along + wp.abs(u[1]) * across
        wide_y = wp.abs(u[1]) * along + wp.abs(u[0]) * across
        color = grid(color, p[0] / scale_x, p[1] / scale_y, wide_x, wide_y, items.cell, t / items.scale)
    sunlit = float(0.0)
    sun = sun_direction()
    if wp.dot(normal, sun) > 0.0:
        start = o + t * d + (2.0e-4 * t + 1.0e-6) * normal  # clear of the surface by more than float32 rounds
        if not _shadowed(items, start, sun):
            sunlit = 1.0
    color = light(color, normal, sunlit)
    if kind == PLANE:
        color = haze(color, t / items.scale)
    return color, 2 * i + int(sunlit)


@wp.func
def _sample(items: Items, view: View, row: int, column: int, a: int, b: int, width: int, height: int):
    """What one of a pixel's rays sees: the b-th of the a-th line of them."""
    x = (float(column) + (float(b) + 0.5) / float(SAMPLES)) * 2.0 / float(width) - 1.0
    y = 1.0 - (float(row) + (float(a) + 0.5) / float(SAMPLES)) * 2.0 / float(height)
    offset = x * view.right + y * view.up
    if view.orthographic:
        return _color(items, view, view.middle + offset, view.forward)
    return _color(items, view, wp.vec3(0.0, 0.0, 0.0), wp.normalize(view.forward + offset))


@wp.kernel(enable_backward=False)
def _first_kernel(
    items: Items,
    view: View,
    width: int,
    height: int,
    color: wp.array2d(dtype=wp.vec3),
    surface: wp.array2d(dtype=int),
):
    """The first ray of every pixel."""
    row, column = wp.tid()
    seen, where = _sample(items, view, row, column, 0, 0, width, height)
    color[row, column] = seen
    surface[row, column] = where


@wp.func
def _differs(
    items: Items,
    color: wp.array2d(dtype=wp.vec3),
    surface: wp.array2d(dtype=int),
    row: int,
    column: int,
    width: int,
    height: int,
) -> bool:
    """Whether the first rays of the pixels around one see something else; the ground's pattern is smooth by itself."""
    own = surface[row, column]
    curved = own >= 0
    if curved:
        curved = items.kind[own // 2] != PLANE
    for i in range(wp.max(row - 1, 0), wp.min(row + 2, height)):
        for j in range(wp.max(column - 1, 0), wp.min(column + 2, width)):
            if surface[i, j] != own:
                return True
            if curved and wp.length(color[i, j] - color[row, column]) > SAME_COLOR:
                return True
    return False


@wp.kernel(enable_backward=False)
def _smooth_kernel(
    items: Items,
    view: View,
    width: int,
    height: int,
    color: wp.array2d(dtype=wp.vec3),
    surface: wp.array2d(dtype=int),
    image: wp.array3d(dtype=wp.uint8),
):
    """The other rays, where they may see something else: most of a picture is sky, ground and faces."""
    row, column = wp.tid()
    total = color[row, column]
    if _differs(items, color, surface, row, column, width, height):
        for k in range(1, SAMPLES * SAMPLES):
            seen, where = _sample(items, view, row, column, k // SAMPLES, k % SAMPLES, width, height)
            total += seen
        total = total / float(SAMPLES * SAMPLES)
    for channel in range(3):
        image[row, column, channel] = encode(total[channel])


class Painter:
    """Draws pictures of one size on one device; meshes go to the device once."""

    @KERNELS.holding
    def __init__(self, *, width: int, height: int, scale: float, device: wp.DeviceLike = "cpu") -> None:
        """Prepares.

        Args:
            width: Pixels.
            height: Pixels.
            scale: Size of what is to be seen, m: sets the ground's squares and the haze.
            device: Warp device.
        """
        initialize()
        self._device = wp.get_device(device)
        self._first = wp.zeros((height, width), dtype=wp.vec3, device=self._device)
        self._surface = wp.zeros((height, width), dtype=int, device=self._device)
        self._image = wp.zeros((height, width, 3), dtype=wp.uint8, device=self._device)
        self._scale = scale
        self._meshes: dict[int, tuple[Triangles, wp.Mesh]] = {}

    @KERNELS.holding
    def draw(self, items: Sequence[Item], camera: Camera) -> np.ndarray:
        """(height, width, 3) bytes, sRGB; of no items, the sky."""
        items = [item for item in items if item.name != ARROW] + [item for item in items if item.name == ARROW]
        items = items or [_NOTHING]
        height, width, _ = self._image.shape
        view = _view(camera.widened(width / height), width)
        lower, upper = _boxes(items, camera.position)
        tree = wp.Bvh(self._array(lower, wp.vec3), self._array(upper, wp.vec3))
        data = self._items(items, camera.position)
        data.tree = tree.id
        scene = [data, view, width, height]
        for kernel, given, made in (
            (_first_kernel, scene, [self._first, self._surface]),
            (_smooth_kernel, [*scene, self._first, self._surface], [self._image]),
        ):
            wp.launch(kernel, dim=(height, width), inputs=given, outputs=made, device=self._device, record_tape=False)
        return self._image.numpy().copy()

    def _items(self, items: Sequence[Item], origin: np.ndarray) -> Items:
        data = Items()
        shift = np.eye(4)
        shift[:3, 3] = origin
        data.kind = self._array([item.kind for item in items], int)
        data.size = self._array([item.size for item in items], wp.vec3)
        data.to_local = self._array([np.linalg.inv(item.to_world) @ shift for item in items], wp.mat44)
        data.color = self._array([_color_of(item) for item in items], wp.vec3)
        data.mesh = self._array([0 if item.mesh is None else self._mesh(item.mesh) for item in items], wp.uint64)
        data.cell = _round_length(self._scale / _PIECES)
        data.scale = self._scale
        data.count = len(items)
        data.marks = sum(item.name != ARROW for item in items)
        return data

    def _mesh(self, mesh: Triangles) -> int:
        if id(mesh) not in self._meshes:
            self._meshes[id(mesh)] = (mesh, mesh.to_warp(self._device))
        return self._meshes[id(mesh)][1].id

    def _array(self, values: object, dtype: object) -> wp.array:
        return wp.array(np.array(values), dtype=dtype, device=self._device)


def _view(camera: Camera, width: int) -> View:
    view = View()
    middle = camera.center[0] * camera.right + camera.center[1] * camera.up
    view.orthographic = camera.orthographic
    view.forward = wp.vec3(*(camera.forward if camera.orthographic else camera.forward + middle))
    view.middle = wp.vec3(*middle)
    view.right = wp.vec3(*(camera.half_width * camera.right))
    view.up = wp.vec3(*(camera.half_height * camera.up))
    view.pixel = 2.0 * camera.half_width / width
    return view


def _boxes(items: Sequence[Item], origin: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Least and greatest corners around each item, relative to the camera, with room for float32's rounding."""
    corners = np.stack([item.corners() for item in items]) - origin
    lower, upper = corners.min(axis=1), corners.max(axis=1)
    room = 1e-5 * np.abs(corners).max(axis=(1, 2), initial=1.0)[:, None]
    return lower - room, upper + room


def _color_of(item: Item) -> np.ndarray:
    """Linear RGB; grounds are nearly all alike, so that what stands on them is seen."""
    if item.kind == PLANE and item.size[0] >= ENDLESS:
        return GROUND + GROUND_SHARE * (item.color - GROUND)
    return item.color


def _round_length(length: float) -> float:
    """The nearest below of …, 0.1, 0.2, 0.5, 1, 2, 5, … m."""
    decade = 10.0 ** np.floor(np.log10(length))
    return float(max(decade * step for step in (1.0, 2.0, 5.0) if decade * step <= length * (1.0 + 1e-9)))
