"""A grid of cells over the faces or the edges of a matter, for what is near a point. Not taped.

Each feature is in the cell of its center; cells are so large that whatever is within reach of a point lies in its own
cell or one beside it. Counted, summed, filled in order: the same lists in every run.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import real, vec3


@wp.struct
class Cells:
    """Of each world; `limit` is the number of cells at most."""

    limit: int
    low: wp.array(dtype=vec3)  # (W,) m: the grid's corner
    size: wp.array(dtype=real)  # (W,) m: edge of a cell
    along: wp.array2d(dtype=wp.int32)  # (W, 3) cells along each axis
    first: wp.array2d(dtype=wp.int32)  # (W, limit + 1) where a cell's features begin in `item`
    item: wp.array2d(dtype=wp.int32)  # (W, features)
    center: wp.array2d(dtype=vec3)  # (W, features) m
    radius: wp.array2d(dtype=real)  # (W, features) m: of a ball about the center that holds it


@wp.func
def place_along(c: Cells, w: int, axis: int, at: real) -> int:
    """Cell of a coordinate, within the grid."""
    found = int(wp.floor((at - c.low[w][axis]) / c.size[w]))
    return wp.clamp(found, 0, c.along[w, axis] - 1)


@wp.func
def cell_at(c: Cells, w: int, x: int, y: int, z: int) -> int:
    """Number of a cell."""
    return (x * c.along[w, 1] + y) * c.along[w, 2] + z


@wp.func
def cell_of(c: Cells, w: int, at: vec3) -> int:
    """Cell of a point."""
    return cell_at(c, w, place_along(c, w, 0, at[0]), place_along(c, w, 1, at[1]), place_along(c, w, 2, at[2]))


@wp.func
def measure_features(c: Cells, w: int, corner: wp.array2d(dtype=wp.int32), x: wp.array2d(dtype=vec3)) -> real:
    """Centers and radii; the largest radius."""
    largest = real(0.0)
    for f in range(corner.shape[0]):
        center = vec3()
        for k in range(corner.shape[1]):
            center += x[w, corner[f, k]]
        center = center / real(corner.shape[1])
        radius = real(0.0)
        for k in range(corner.shape[1]):
            radius = wp.max(radius, wp.length(x[w, corner[f, k]] - center))
        c.center[w, f] = center
        c.radius[w, f] = radius
        largest = wp.max(largest, radius)
    return largest


@wp.func
def lay_grid(c: Cells, w: int, features: int, size: real):
    """Corner, cell size (at least `size`) and numbers of cells."""
    low, high = vec3(c.center[w, 0]), vec3(c.center[w, 0])
    for f in range(features):
        low = wp.min(low, c.center[w, f])
        high = wp.max(high, c.center[w, f])
    c.low[w] = low
    edge = wp.max(size, real(1e-9))
    total = real(c.limit) + real(1.0)
    while total > real(c.limit):
        total = real(1.0)
        for axis in range(3):
            total = total * wp.floor((high[axis] - low[axis]) / edge + real(1.0))
        if total > real(c.limit):
            edge = edge * real(1.25)
    c.size[w] = edge
    for axis in range(3):
        c.along[w, axis] = int((high[axis] - low[axis]) / edge) + 1


@wp.func
def fill_cells(
    c: Cells, w: int, corner: wp.array2d(dtype=wp.int32), x: wp.array2d(dtype=vec3), reach: real, both: int
) -> int:
    """Puts all features in their cells; 0 where a place is not a finite number.

    Args:
        c: To be filled.
        w: World.
        corner: (features, corners) vertices.
        x: (W, n) m.
        reach: m, from a feature to what is asked for.
        both: 1: what is asked for are features of the same kind, not points.
    """
    features = corner.shape[0]
    largest = measure_features(c, w, corner, x)
    size = largest * real(1 + both) + reach
    if not size < real(1e15):
        return 0
    lay_grid(c, w, features, size)
    cells = c.along[w, 0] * c.along[w, 1] * c.along[w, 2]
    for k in range(cells + 1):
        c.first[w, k] = 0
    for f in range(features):
        k = cell_of(c, w, c.center[w, f])
        c.first[w, k + 1] = c.first[w, k + 1] + 1
    for k in range(cells):
        c.first[w, k + 1] = c.first[w, k + 1] + c.first[w, k]
    for j in range(features):  # from the last, each to the end of what is left of its cell: `first` ends where it began
        f = features - 1 - j
        k = cell_of(c, w, c.center[w, f]) + 1
        c.first[w, k] = c.first[w, k] - 1
        c.item[w, c.first[w, k]] = f
    for k in range(cells):
        c.first[w, k] = c.first[w, k + 1]
    c.first[w, cells] = features
    return 1
