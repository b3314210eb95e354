"""Spatial tendons: lengths and moment arms of their paths through sites and around spheres and cylinders.

A path is cut into spans from site to site. Which way a span takes is decided by an untaped kernel; the taped ones then
evaluate it. Tension 1 pulls at both ends of each straight piece along it; the moment arm of a dof is its motion axis
times the wrenches of those pulls on the bodies it moves. Points of touch count as fixed to the shape: the path is the
shortest one, so their own motion changes nothing to first order. The one span of a slider-crank pulls in its own way.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.indexing import natural
from warpsim.core.precision import real, vec2, vec3, vec6
from warpsim.core.spatial import quat_mul, quat_rotate, quat_rotate_back, spatial
from warpsim.core.stages import stage
from warpsim.rigid.dynamics.span_points import TINY, Links, direction, link_point, rod_reach, rod_share
from warpsim.rigid.dynamics.tendon_wrap import (
    CLOCKWISE,
    INSIDE,
    MIDDLE,
    STRAIGHT,
    arc_length,
    choose_inside,
    choose_outside,
    defect,
    first_axis,
    inside_point,
    middle_point,
    search_inside,
    second_axis,
    tangent_point,
    unit2,
)
from warpsim.rigid.model.model import Model
from warpsim.rigid.model.parameters import ShapeParameters, SiteParameters
from warpsim.rigid.model.tendons import TendonTopology
from warpsim.rigid.model.topology import Topology
from warpsim.rigid.work.tendon_work import TendonWork


@wp.func
def _in_shape(t: Topology, x: Links, shape: ShapeParameters, w: int, body: int, i: int, point: vec3) -> vec3:
    """A point of the world in a shape's frame."""
    center = link_point(t, x, w, body, shape.position[w, i])
    return quat_rotate_back(quat_mul(x.rotation[w, t.body_link[body]], shape.rotation[w, i]), point - center)


@wp.func
def _out_of_shape(t: Topology, x: Links, shape: ShapeParameters, w: int, body: int, i: int, point: vec3) -> vec3:
    """A point of a shape's frame in the world."""
    center = link_point(t, x, w, body, shape.position[w, i])
    return center + quat_rotate(quat_mul(x.rotation[w, t.body_link[body]], shape.rotation[w, i]), point)


@wp.func
def _project(u: vec3, v: vec3, p: vec3) -> vec2:
    return vec2(wp.dot(p, u), wp.dot(p, v))


@wp.kernel(enable_backward=False)
def _branch_kernel(
    # topology, parameters
    d: Topology,
    t: TendonTopology,
    site: SiteParameters,
    shape: ShapeParameters,
    site_body: wp.array(dtype=wp.int32),
    # work in
    x: Links,
    # work out
    branch: wp.array2d(dtype=wp.int32),
    root: wp.array2d(dtype=real),
    left: wp.array2d(dtype=real),
):
    w = natural(wp.tid())
    for n in range(t.span_count):
        branch[w, n] = STRAIGHT
        root[w, n] = real(0.0)
        left[w, n] = real(0.0)
        i = t.span_shape[n]
        if i >= 0:
            body = t.span_body[n, 1]
            x0 = link_point(d, x, w, t.span_body[n, 0], site.position[w, t.span_site[n, 0]])
            x1 = link_point(d, x, w, t.span_body[n, 2], site.position[w, t.span_site[n, 1]])
            p0 = _in_shape(d, x, shape, w, body, i, x0)
            p1 = _in_shape(d, x, shape, w, body, i, x1)
            radius = shape.size[w, i][0]
            if wp.length(p0) >= TINY and wp.length(p1) >= TINY:
                u = first_axis(t.span_cylinder[n], p0)
                v = second_axis(t.span_cylinder[n], u, p0, p1)
                d0 = _project(u, v, p0)
                d1 = _project(u, v, p1)
                side = vec2(real(0.0), real(0.0))
                sided = int(0)
                inside = int(0)
                if t.span_side[n] >= 0:
                    sided = 1
                    s = t.span_side[n]
                    p = _in_shape(d, x, shape, w, body, i, link_point(d, x, w, site_body[s], site.position[w, s]))
                    side = _project(u, v, p)
                    if wp.length(p) < radius:
                        inside = 1
                    side = unit2(side) * radius
                if inside == 0:
                    branch[w, n] = choose_outside(d0, d1, radius, sided, side)
                else:
                    branch[w, n] = choose_inside(d0, d1, radius)
                    if branch[w, n] == INSIDE:
                        z = search_inside(d0, d1, radius)
                        root[w, n] = z
                        if z < real(0.0):
                            branch[w, n] = MIDDLE
                        else:
                            left[w, n] = defect(d0, d1, radius, z)


@wp.func
def _touch(d0: vec2, d1: vec2, radius: real, branch: int, z: real, left: real, second: int) -> vec2:
    """The first or second point of touch in the circle's plane."""
    if branch == INSIDE:
        return inside_point(d0, d1, radius, z, left)
    if branch == MIDDLE:
        return middle_point(d0, d1, radius)
    sign = real(-1.0)
    if branch == CLOCKWISE:
        sign = real(1.0)
    if second == 1:
        return tangent_point(d1, radius, -sign)
    return tangent_point(d0, radius, sign)


@wp.func
def _arc(a: vec2, b: vec2, radius: real, branch: int) -> real:
    if branch == INSIDE or branch == MIDDLE:
        return real(0.0)
    return arc_length(a, b, radius, branch)


@wp.func
def _lifted(p: vec3, cylinder: int, a: real, b: real, share: real) -> vec3:
    """A point of touch at its height along a cylinder's axis: `share` of the way from a to b."""
    if cylinder == 1:
        return vec3(p[0], p[1], a + (b - a) * share)
    return p


@wp.func
def _pull(t: Topology, x: Links, w: int, body: int, point: vec3, force: vec3) -> vec6:
    """Wrench of a force about the reference point of the body's tree; of no use for the world."""
    if body == 0:
        return vec6()
    return spatial(wp.cross(point - x.origin[w, t.body_tree[body]], force), force)


@wp.kernel
def _span_kernel(
    # topology, parameters
    d: Topology,
    t: TendonTopology,
    site: SiteParameters,
    shape: ShapeParameters,
    rod: wp.array2d(dtype=real),
    # work in
    x: Links,
    branch: wp.array2d(dtype=wp.int32),
    root: wp.array2d(dtype=real),
    left: wp.array2d(dtype=real),
    # work out
    span_length: wp.array2d(dtype=real),
    pull: wp.array2d(dtype=vec6),
):
    w = natural(wp.tid())
    for n in range(t.span_count):
        first = t.span_body[n, 0]
        last = t.span_body[n, 2]
        x0 = link_point(d, x, w, first, site.position[w, t.span_site[n, 0]])
        x1 = link_point(d, x, w, last, site.position[w, t.span_site[n, 1]])
        share = t.span_share[n]
        way = branch[w, n]
        if t.span_crank[n] >= 0:
            turn = quat_mul(x.rotation[w, d.body_link[first]], site.rotation[w, t.span_site[n, 0]])
            axis = quat_rotate(turn, vec3(real(0.0), real(0.0), real(1.0)))
            reach = rod_reach(axis, x1 - x0, rod[w, t.span_crank[n]])
            share = rod_share(axis, x1 - x0, reach)
            force = axis * share
            if reach > real(0.0):
                force = force + (x1 - x0) / reach
            span_length[w, n] = wp.dot(axis, x1 - x0) - reach
            turning = spatial(wp.cross(axis, x1 - x0) * share, vec3())
            pull[w, 3 * n] = _pull(d, x, w, first, x0, -force) + turning
            pull[w, 3 * n + 1] = vec6()
            pull[w, 3 * n + 2] = _pull(d, x, w, last, x1, force)
        elif way == STRAIGHT:
            span_length[w, n] = wp.length(x1 - x0) * share
            force = direction(x0, x1) * (share * real(first != last))
            pull[w, 3 * n] = _pull(d, x, w, first, x0, -force)
            pull[w, 3 * n + 1] = vec6()
            pull[w, 3 * n + 2] = _pull(d, x, w, last, x1, force)
        else:
            i = t.span_shape[n]
            body = t.span_body[n, 1]
            radius = shape.size[w, i][0]
            cylinder = t.span_cylinder[n]
            p0 = _in_shape(d, x, shape, w, body, i, x0)
            p1 = _in_shape(d, x, shape, w, body, i, x1)
            u = first_axis(cylinder, p0)
            v = second_axis(cylinder, u, p0, p1)
            d0 = _project(u, v, p0)
            d1 = _project(u, v, p1)
            a = _touch(d0, d1, radius, way, root[w, n], left[w, n], 0)
            b = _touch(d0, d1, radius, way, root[w, n], left[w, n], 1)
            arc = _arc(a, b, radius, way)
            before = wp.length(d0 - a)
            whole = before + arc + wp.length(d1 - b)
            ta = _lifted(u * a[0] + v * a[1], cylinder, p0[2], p1[2], before / whole)
            tb = _lifted(u * b[0] + v * b[1], cylinder, p0[2], p1[2], (before + arc) / whole)
            rise = real(0.0)
            if cylinder == 1:
                rise = (p1[2] - p0[2]) * arc / whole
            curve = arc
            if cylinder == 1:
                curve = wp.length(vec2(arc, rise))
            xa = _out_of_shape(d, x, shape, w, body, i, ta)
            xb = _out_of_shape(d, x, shape, w, body, i, tb)
            span_length[w, n] = (wp.length(xa - x0) + curve + wp.length(x1 - xb)) * share
            entering = direction(x0, xa) * (share * real(first != body))
            leaving = direction(xb, x1) * (share * real(last != body))
            pull[w, 3 * n] = _pull(d, x, w, first, x0, -entering)
            pull[w, 3 * n + 1] = _pull(d, x, w, body, xa, entering) + _pull(d, x, w, body, xb, -leaving)
            pull[w, 3 * n + 2] = _pull(d, x, w, last, x1, leaving)


@wp.func
def _path_length(t: TendonTopology, span_length: wp.array2d(dtype=real), w: int, i: int) -> real:
    total = real(0.0)
    for n in range(t.span_start[i], t.span_start[i + 1]):
        total += span_length[w, n]
    return total


@wp.func
def _total_pull(t: TendonTopology, pull: wp.array2d(dtype=vec6), w: int, k: int) -> vec6:
    total = vec6()
    for n in range(t.pull_start[k], t.pull_start[k + 1]):
        total += pull[w, t.pull_place[n]]
    return total


@wp.kernel
def _moment_kernel(
    # topology, parameters
    t: TendonTopology,
    coefficient: wp.array2d(dtype=real),
    # work in
    axis: wp.array2d(dtype=vec6),
    span_length: wp.array2d(dtype=real),
    pull: wp.array2d(dtype=vec6),
    # work out
    length: wp.array2d(dtype=real),
    moment: wp.array2d(dtype=real),
):
    w = natural(wp.tid())
    for i in range(t.count):
        length[w, i] = _path_length(t, span_length, w, i)
        for k in range(t.start[i], t.start[i + 1]):
            if t.spatial[i] == 1:
                moment[w, k] = wp.dot(axis[w, t.dof[k]], _total_pull(t, pull, w, k))
            else:
                moment[w, k] = coefficient[w, k]


@stage
def tendon_paths(
    m: Model, origin: wp.array, position: wp.array, rotation: wp.array, axis: wp.array, work: TendonWork
) -> None:
    """Fills `work` from the poses of links, their trees' reference points and the dofs' axes, as in `Work`."""
    links = Links()
    links.origin, links.position, links.rotation = origin, position, rotation
    t, sites = m.tendon_topology, m.actuator_topology.site_body
    wp.launch(
        _branch_kernel,
        dim=m.worlds,
        inputs=[m.topology, t, m.site, m.shape, sites, links],
        outputs=[work.branch, work.root, work.left],
        device=m.device,
        record_tape=False,
    )
    wp.launch(
        _span_kernel,
        dim=m.worlds,
        inputs=[m.topology, t, m.site, m.shape, m.tendon.rod, links, work.branch, work.root, work.left],
        outputs=[work.span_length, work.pull],
        device=m.device,
    )
    wp.launch(
        _moment_kernel,
        dim=m.worlds,
        inputs=[t, m.tendon.coefficient, axis, work.span_length, work.pull],
        outputs=[work.length, work.moment],
        device=m.device,
    )
