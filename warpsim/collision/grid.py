"""Signed distance grids: cubic B-splines on a regular lattice, so that value and gradient are smooth.

The coefficients of all shapes lie in one flat array. Between lattice points the field is the tensor product of cubic
B-splines, whose second derivative is continuous; so normals do not jump at cell faces and their derivatives exist.
"""

from __future__ import annotations

import warp as wp

from warpsim.collision.kinds import HEIGHTFIELD, MESH
from warpsim.collision.maths import TINY
from warpsim.core.precision import real, vec3
from warpsim.core.spatial import clamp_range

TWO_THIRDS = wp.constant(real(2.0 / 3.0))
vec4 = wp.types.vector(length=4, dtype=real)


@wp.struct
class GridData:
    """Signed distance grids of all shapes, and points spread over their surfaces; arrays by shape are (ns,)."""

    coefficient: wp.array(dtype=real)  # flat, z fastest; m at scale one
    start: wp.array(dtype=int)  # first coefficient of a shape
    dims: wp.array(dtype=wp.vec3i)  # lattice points along x, y, z
    origin: wp.array(dtype=vec3)  # first lattice point, m
    spacing: wp.array(dtype=real)  # m
    point_start: wp.array(dtype=int)  # (ns + 1,)
    point: wp.array(dtype=vec3)  # surface points, m at scale one


@wp.func
def has_grid(kind: int) -> bool:
    """Whether a kind of shape collides by its grid and its surface points."""
    return kind == MESH or kind == HEIGHTFIELD


@wp.func
def bspline(u: real) -> real:
    """Cubic B-spline, nonzero within |u| < 2."""
    a = wp.abs(u)
    if a < real(1.0):
        return TWO_THIRDS - a * a * (real(1.0) - real(0.5) * a)
    if a < real(2.0):
        b = real(2.0) - a
        return b * b * b / real(6.0)
    return real(0.0)


@wp.func
def bspline_slope(u: real) -> real:
    """Derivative of `bspline`."""
    a = wp.abs(u)
    if a < real(1.0):
        return u * (real(1.5) * a - real(2.0))
    if a < real(2.0):
        b = real(2.0) - a
        if u > real(0.0):
            return real(-0.5) * b * b
        return real(0.5) * b * b
    return real(0.0)


@wp.func
def spline_sum(grids: GridData, start: int, dims: wp.vec3i, i: int, j: int, k: int, u: vec3) -> vec4:
    """Gradient (in cells) and value of the spline; (i, j, k) is the cell, u the place in lattice units."""
    total = vec4()
    for n in range(64):
        p = i - 1 + n // 16
        q = j - 1 + (n // 4) % 4
        r = k - 1 + n % 4
        c = grids.coefficient[start + (p * dims[1] + q) * dims[2] + r]
        up = u[0] - real(p)
        uq = u[1] - real(q)
        ur = u[2] - real(r)
        x = bspline(up)
        y = bspline(uq)
        z = bspline(ur)
        total += vec4(bspline_slope(up) * y * z, x * bspline_slope(uq) * z, x * y * bspline_slope(ur), x * y * z) * c
    return total


@wp.func
def cell_of(u: real, count: int) -> int:
    """Lower lattice point of the cell that holds u, with one more point on each side in the grid."""
    return wp.clamp(int(wp.floor(u)), 1, count - 3)


@wp.func
def grid_bound(grids: GridData, shape: int, scale: real, x: vec3) -> real:
    """A lower bound (m) of the distance, from one coefficient.

    The field's slope is 1 and the lattice point at most 0.87 cells away; the rest of the two cells covers the spline's
    overshoot.
    """
    dims = grids.dims[shape]
    spacing = grids.spacing[shape]
    u = (x / scale - grids.origin[shape]) / spacing
    i = wp.clamp(int(wp.round(u[0])), 0, dims[0] - 1)
    j = wp.clamp(int(wp.round(u[1])), 0, dims[1] - 1)
    k = wp.clamp(int(wp.round(u[2])), 0, dims[2] - 1)
    nearest = grids.coefficient[grids.start[shape] + (i * dims[1] + j) * dims[2] + k]
    beyond = u - vec3(real(i), real(j), real(k))
    return (nearest - (real(2.0) + wp.length(beyond)) * spacing) * scale


@wp.func
def grid_sdf(grids: GridData, shape: int, scale: real, x: vec3) -> tuple[real, vec3]:
    """Distance (m) and unit gradient of a mesh's grid at a point of the shape's frame.

    Beyond the lattice it is the distance to the surface point that the lattice's nearest point looks at: an upper
    bound.

    Args:
        grids: All grids.
        shape: Whose grid.
        scale: Uniform scale of the mesh.
        x: Point, m.
    """
    dims = grids.dims[shape]
    spacing = grids.spacing[shape]
    u = (x / scale - grids.origin[shape]) / spacing
    one = real(1.0)
    inside = vec3(
        clamp_range(u[0], one, real(dims[0] - 2)),
        clamp_range(u[1], one, real(dims[1] - 2)),
        clamp_range(u[2], one, real(dims[2] - 2)),
    )
    i = cell_of(inside[0], dims[0])
    j = cell_of(inside[1], dims[1])
    k = cell_of(inside[2], dims[2])
    field = spline_sum(grids, grids.start[shape], dims, i, j, k, inside)
    slope = vec3(field[0], field[1], field[2])
    gradient = slope / wp.max(wp.sqrt(wp.dot(slope, slope)), TINY)
    if u[0] == inside[0] and u[1] == inside[1] and u[2] == inside[2]:
        return field[3] * scale, gradient
    way = (u - inside) * spacing + gradient * field[3]
    distance = wp.max(wp.length(way), TINY)
    return distance * scale, way / distance
