"""Which vertices and faces, and which edges, of a matter are near each other at the start of a step. Not taped."""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import real, vec3
from warpsim.deformable.cells import Cells, cell_at, fill_cells, place_along
from warpsim.deformable.closest import (
    EDGE_EDGE,
    VERTEX_FACE,
    crosses,
    edge_edge_shares,
    pair_weight,
    vertex_face_shares,
)
from warpsim.deformable.contact import contact_bias
from warpsim.deformable.self_contact import SelfContacts, pair_normal
from warpsim.deformable.types import vec4

_STEPS = wp.constant(real(2.0))
"""Pairs that are farther apart than twice the distance of contact and than what they move in so many steps are left
out, counting a change of velocity by"""
_SUDDEN = wp.constant(real(100.0))
"""m/s² on the way."""
_WITHIN = wp.constant(real(-1e-10))
"""A nearest point whose share of a corner is smaller lies on the side across from it, but for rounding."""


@wp.func
def owns(owner: int, a: bool, b: bool, c: bool) -> int:
    """Whether a face answers for where its nearest point lies: within it, on an edge, or in a corner."""
    bit = int(63)
    if a and b and not c:
        bit = 1
    elif b and c and not a:
        bit = 2
    elif a and c and not b:
        bit = 4
    elif a and not b:
        bit = 8
    elif b and not a:
        bit = 16
    elif c and not a:
        bit = 32
    if (owner & bit) != 0 or bit == 63:
        return 1
    return 0


@wp.func
def beyond(c: SelfContacts, w: int, g: int, p: vec3, a: int, b: int, x: wp.array2d(dtype=vec3)) -> bool:
    """Whether the point of face g that is nearest to p lies elsewhere than on its corners a and b."""
    i1, i2, i3 = c.face[g, 0], c.face[g, 1], c.face[g, 2]
    s = vertex_face_shares(p, x[w, i1], x[w, i2], x[w, i3])
    return (
        (s[1] < _WITHIN and i1 != a and i1 != b)
        or (s[2] < _WITHIN and i2 != a and i2 != b)
        or (s[3] < _WITHIN and i3 != a and i3 != b)
    )


@wp.func
def answers(c: SelfContacts, w: int, f: int, p: vec3, s: vec4, x: wp.array2d(dtype=vec3)) -> bool:
    """Whether face f is the one that a point near it touches.

    Within the face, yes. On an edge or in a corner, it has to own that, and no face beyond may be nearer: a point above
    a flat mesh touches one face, and nothing changes where it slides over an edge.
    """
    on1, on2, on3 = s[1] < _WITHIN, s[2] < _WITHIN, s[3] < _WITHIN
    if on1 and on2 and on3:
        return True
    if owns(c.owner[f], on1, on2, on3) == 0:
        return False
    a, b = int(-1), int(-1)
    if on1:
        a = c.face[f, 0]
    if on2:
        if a < 0:
            a = c.face[f, 1]
        else:
            b = c.face[f, 1]
    if on3:
        if a < 0:
            a = c.face[f, 2]
        else:
            b = c.face[f, 2]
    if b < 0:
        b = a
    for k in range(c.star_first[a], c.star_first[a + 1]):
        g = c.star[k]
        if g != f:
            if a == b or c.face[g, 0] == b or c.face[g, 1] == b or c.face[g, 2] == b:
                if beyond(c, w, g, p, a, b, x):
                    return False
    return True


@wp.func
def offer(
    c: SelfContacts,
    w: int,
    h: real,
    kind: int,
    i0: int,
    i1: int,
    i2: int,
    i3: int,
    s: vec4,
    x: wp.array2d(dtype=vec3),
    v: wp.array2d(dtype=vec3),
):
    """Lists a pair if it is near, not fixed on both sides, and was apart at rest."""
    d = s[0] * x[w, i0] + s[1] * x[w, i1] + s[2] * x[w, i2] + s[3] * x[w, i3]
    u = s[0] * v[w, i0] + s[1] * v[w, i1] + s[2] * v[w, i2] + s[3] * v[w, i3]
    distance = c.distance[w]
    near = wp.length(d) < real(2.0) * distance + _STEPS * h * (wp.length(u) + h * _SUDDEN)
    loose = wp.max(wp.max(c.node[i0], c.node[i1]), wp.max(c.node[i2], c.node[i3])) >= 0
    carried = wp.max(wp.max(c.carried[i0], c.carried[i1]), wp.max(c.carried[i2], c.carried[i3])) >= 0
    if near and loose and not carried and apart_at_rest(c, w, kind, i0, i1, i2, i3):
        k = c.pairs[w]
        if k < c.room:
            n, mu = pair_normal(d), c.friction[w]
            c.kind[w, k] = kind
            c.corner[w, k, 0] = i0
            c.corner[w, k, 1] = i1
            c.corner[w, k, 2] = i2
            c.corner[w, k, 3] = i3
            c.share[w, k] = s
            c.weight[w, k] = pair_weight(kind, s, x[w, i0], x[w, i1], x[w, i2], x[w, i3], distance)
            c.normal[w, k] = n
            c.bias[w, k] = contact_bias(n, wp.length(d) - distance, u, mu, c.stiffness[w], c.damping[w], h)
        c.pairs[w] = k + 1


@wp.func
def apart_at_rest(c: SelfContacts, w: int, kind: int, i0: int, i1: int, i2: int, i3: int) -> bool:
    """Whether a pair does not touch in the rest shape: neighbors never push each other."""
    a, b, e, f = c.rest[w, i0], c.rest[w, i1], c.rest[w, i2], c.rest[w, i3]
    s = vec4()
    if kind == VERTEX_FACE:
        s = vertex_face_shares(a, b, e, f)
    else:
        s = edge_edge_shares(a, b, e, f)
        if s[0] == real(0.0):
            return True
    return wp.length(s[0] * a + s[1] * b + s[2] * e + s[3] * f) > c.distance[w]


@wp.func
def face_near(
    c: SelfContacts, w: int, h: real, reach: real, i: int, f: int, x: wp.array2d(dtype=vec3), v: wp.array2d(dtype=vec3)
):
    """Offers vertex i and face f."""
    i1, i2, i3 = c.face[f, 0], c.face[f, 1], c.face[f, 2]
    if i != i1 and i != i2 and i != i3:
        if wp.length(x[w, i] - c.faces.center[w, f]) < c.faces.radius[w, f] + reach:
            s = vertex_face_shares(x[w, i], x[w, i1], x[w, i2], x[w, i3])
            if answers(c, w, f, x[w, i], s, x):
                offer(c, w, h, int(VERTEX_FACE), i, i1, i2, i3, s, x, v)


@wp.func
def edge_near(
    c: SelfContacts, w: int, h: real, reach: real, e: int, g: int, x: wp.array2d(dtype=vec3), v: wp.array2d(dtype=vec3)
):
    """Offers edges e and g."""
    i0, i1, i2, i3 = c.edge[e, 0], c.edge[e, 1], c.edge[g, 0], c.edge[g, 1]
    if i0 != i2 and i0 != i3 and i1 != i2 and i1 != i3:
        gap = wp.length(c.edges.center[w, e] - c.edges.center[w, g])
        if gap < c.edges.radius[w, e] + c.edges.radius[w, g] + reach:
            s = edge_edge_shares(x[w, i0], x[w, i1], x[w, i2], x[w, i3])
            if s[0] != real(0.0):
                offer(c, w, h, int(EDGE_EDGE), i0, i1, i2, i3, s, x, v)


@wp.func
def fastest(c: SelfContacts, w: int, v: wp.array2d(dtype=vec3)) -> real:
    """At most so fast do two points of the matter approach each other, m/s."""
    mean, most = vec3(), real(0.0)
    for i in range(v.shape[1]):
        mean += v[w, i] / real(v.shape[1])
    for i in range(v.shape[1]):
        most = wp.max(most, wp.length(v[w, i] - mean))
    return real(2.0) * most


@wp.func
def beside(c: Cells, w: int, axis: int, at: real, side: int) -> int:
    """First (−1) or last (+1) cell along an axis that may hold what is near."""
    return wp.clamp(place_along(c, w, axis, at) + side, 0, c.along[w, axis] - 1)


@wp.func
def prepare_self(c: SelfContacts, w: int, h: real, x: wp.array2d(dtype=vec3), v: wp.array2d(dtype=vec3)) -> int:
    """Lists the pairs that are near at the start of a step; 0 where there is no room for all of them."""
    if c.count == 0:
        return 1
    c.pairs[w] = 0
    reach = real(2.0) * c.distance[w] + _STEPS * h * (fastest(c, w, v) + h * _SUDDEN)
    if fill_cells(c.faces, w, c.face, x, reach, 0) == 0:
        return 0
    for j in range(c.vertex.shape[0]):
        i = c.vertex[j]
        at = x[w, i]
        for ix in range(beside(c.faces, w, 0, at[0], -1), beside(c.faces, w, 0, at[0], 1) + 1):
            for iy in range(beside(c.faces, w, 1, at[1], -1), beside(c.faces, w, 1, at[1], 1) + 1):
                for iz in range(beside(c.faces, w, 2, at[2], -1), beside(c.faces, w, 2, at[2], 1) + 1):
                    cell = cell_at(c.faces, w, ix, iy, iz)
                    for k in range(c.faces.first[w, cell], c.faces.first[w, cell + 1]):
                        face_near(c, w, h, reach, i, c.faces.item[w, k], x, v)
    fill_cells(c.edges, w, c.edge, x, reach, 1)
    for e in range(c.edge.shape[0]):
        at = c.edges.center[w, e]
        for ix in range(beside(c.edges, w, 0, at[0], -1), beside(c.edges, w, 0, at[0], 1) + 1):
            for iy in range(beside(c.edges, w, 1, at[1], -1), beside(c.edges, w, 1, at[1], 1) + 1):
                for iz in range(beside(c.edges, w, 2, at[2], -1), beside(c.edges, w, 2, at[2], 1) + 1):
                    cell = cell_at(c.edges, w, ix, iy, iz)
                    for k in range(c.edges.first[w, cell], c.edges.first[w, cell + 1]):
                        if c.edges.item[w, k] > e:
                            edge_near(c, w, h, reach, e, c.edges.item[w, k], x, v)
    if c.pairs[w] > c.room:
        c.pairs[w] = c.room
        return 0
    return 1


@wp.func
def first_tangle(c: SelfContacts, w: int, x: wp.array2d(dtype=vec3)) -> wp.vec2i:
    """An edge that passes through a face and that face, or −1, −1."""
    found = wp.vec2i(-1, -1)
    if c.count == 0:
        return found
    longest = real(0.0)
    for e in range(c.edge.shape[0]):
        longest = wp.max(longest, real(0.5) * wp.length(x[w, c.edge[e, 0]] - x[w, c.edge[e, 1]]))
    if fill_cells(c.faces, w, c.face, x, longest, 0) == 0:
        return found
    for e in range(c.edge.shape[0]):
        i, j = c.edge[e, 0], c.edge[e, 1]
        p, q = x[w, i], x[w, j]
        at = real(0.5) * (p + q)
        for ix in range(beside(c.faces, w, 0, at[0], -1), beside(c.faces, w, 0, at[0], 1) + 1):
            for iy in range(beside(c.faces, w, 1, at[1], -1), beside(c.faces, w, 1, at[1], 1) + 1):
                for iz in range(beside(c.faces, w, 2, at[2], -1), beside(c.faces, w, 2, at[2], 1) + 1):
                    cell = cell_at(c.faces, w, ix, iy, iz)
                    for k in range(c.faces.first[w, cell], c.faces.first[w, cell + 1]):
                        f = c.faces.item[w, k]
                        i1, i2, i3 = c.face[f, 0], c.face[f, 1], c.face[f, 2]
                        apart = i != i1 and i != i2 and i != i3 and j != i1 and j != i2 and j != i3
                        if apart and crosses(p, q, x[w, i1], x[w, i2], x[w, i3]) == 1 and found[0] < 0:
                            found = wp.vec2i(e, f)
    return found
