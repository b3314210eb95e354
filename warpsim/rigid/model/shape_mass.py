"""Mass, center and inertia of shapes and of the bodies made of them, as differentiable kernels.

A body's mass properties are authored, derived from its shapes, or (mass authored, inertia not) derived and scaled.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import quat, real, vec3, vec6
from warpsim.core.spatial import quat_matrix, quat_rotate, quat_unit, sym_point_mass, sym_rotate

SHAPE_CODES = {
    "plane": 0,
    "sphere": 1,
    "capsule": 2,
    "box": 3,
    "cylinder": 4,
    "cone": 5,
    "ellipsoid": 6,
    "mesh": 7,
    "hull": 8,
    "heightfield": 9,
}
_SPHERE = wp.constant(1)
_CAPSULE = wp.constant(2)
_BOX = wp.constant(3)
_CYLINDER = wp.constant(4)
_CONE = wp.constant(5)
_ELLIPSOID = wp.constant(6)
_MESH = wp.constant(7)
_HULL = wp.constant(8)
_PI = wp.constant(real(3.141592653589793))


@wp.struct
class ShapeMassTopology:
    """Which shapes weigh for which body, and what of a body is authored."""

    start: wp.array(dtype=wp.int32)  # (nbody + 1,)
    shape: wp.array(dtype=wp.int32)  # shapes of the bodies, in body order
    kind: wp.array(dtype=wp.int32)  # (nshape,)
    has_mass: wp.array(dtype=wp.int32)  # (nshape,) 1: the shape's mass is authored, 0: its density counts
    mass_given: wp.array(dtype=wp.int32)  # (nbody,)
    com_given: wp.array(dtype=wp.int32)  # (nbody,)
    inertia_given: wp.array(dtype=wp.int32)  # (nbody,)
    unit_volume: wp.array(dtype=real)  # (nshape,) m³ of meshes at scale one
    unit_com: wp.array(dtype=vec3)  # (nshape,) m
    unit_inertia: wp.array(dtype=vec6)  # (nshape,) m⁵ about the center, density one


@wp.func
def shape_volume(kind: int, s: vec3, unit: real) -> real:
    """Volume of a shape of size s, m³."""
    if kind == _SPHERE:
        return real(4.0) / real(3.0) * _PI * s[0] * s[0] * s[0]
    if kind == _CAPSULE:
        return _PI * s[0] * s[0] * (real(2.0) * s[1] + real(4.0) / real(3.0) * s[0])
    if kind == _BOX:
        return real(8.0) * s[0] * s[1] * s[2]
    if kind == _CYLINDER:
        return real(2.0) * _PI * s[0] * s[0] * s[1]
    if kind == _CONE:
        return real(2.0) / real(3.0) * _PI * s[0] * s[0] * s[1]
    if kind == _ELLIPSOID:
        return real(4.0) / real(3.0) * _PI * s[0] * s[1] * s[2]
    if kind == _MESH or kind == _HULL:
        return unit * s[0] * s[0] * s[0]
    return real(0.0)


@wp.func
def shape_center(kind: int, s: vec3, unit: vec3) -> vec3:
    """Center of mass in the shape's frame, m."""
    if kind == _CONE:
        # a quarter of the height above the base, which lies at z = −half height
        return vec3(real(0.0), real(0.0), real(-0.5) * s[1])
    if kind == _MESH or kind == _HULL:
        return unit * s[0]
    return vec3(real(0.0), real(0.0), real(0.0))


@wp.func
def _diagonal(x: real, y: real, z: real) -> vec6:
    return vec6(x, y, z, real(0.0), real(0.0), real(0.0))


@wp.func
def _capsule_inertia(r: real, half: real) -> vec6:
    height = real(2.0) * half
    tube = height / (height + real(4.0) / real(3.0) * r)
    caps = real(1.0) - tube
    side = tube * (height * height / real(12.0) + r * r / real(4.0)) + caps * (
        real(2.0) / real(5.0) * r * r + height * height / real(4.0) + real(3.0) / real(8.0) * height * r
    )
    along = tube * r * r / real(2.0) + caps * real(2.0) / real(5.0) * r * r
    return _diagonal(side, side, along)


@wp.func
def shape_unit_inertia(kind: int, s: vec3, unit: vec6, unit_volume: real) -> vec6:
    """Inertia about the center divided by mass, shape axes, m²."""
    if kind == _SPHERE:
        i = real(0.4) * s[0] * s[0]
        return _diagonal(i, i, i)
    if kind == _CAPSULE:
        return _capsule_inertia(s[0], s[1])
    if kind == _BOX or kind == _ELLIPSOID:
        c = real(1.0) / real(3.0)
        if kind == _ELLIPSOID:
            c = real(0.2)
        x = s[0] * s[0]
        y = s[1] * s[1]
        z = s[2] * s[2]
        return _diagonal(c * (y + z), c * (x + z), c * (x + y))
    if kind == _CYLINDER:
        side = s[0] * s[0] / real(4.0) + s[1] * s[1] / real(3.0)
        return _diagonal(side, side, s[0] * s[0] / real(2.0))
    if kind == _CONE:
        side = real(3.0) / real(20.0) * (s[0] * s[0] + s[1] * s[1])
        return _diagonal(side, side, real(0.3) * s[0] * s[0])
    if kind == _MESH or kind == _HULL:
        return unit * (s[0] * s[0] / unit_volume)
    return vec6()


@wp.kernel
def _shape_kernel(
    # topology, parameters
    t: ShapeMassTopology,
    size: wp.array2d(dtype=vec3),
    density: wp.array2d(dtype=real),
    given_mass: wp.array2d(dtype=real),
    position: wp.array2d(dtype=vec3),
    rotation: wp.array2d(dtype=quat),
    # out
    mass: wp.array2d(dtype=real),
    com: wp.array2d(dtype=vec3),
    inertia: wp.array2d(dtype=vec6),
):
    """Mass, center (body frame) and inertia (about that center, body axes) of each shape."""
    w, i = wp.tid()
    kind = t.kind[i]
    s = size[w, i]
    m = given_mass[w, i]
    if t.has_mass[i] == 0:
        m = density[w, i] * shape_volume(kind, s, t.unit_volume[i])
    r = quat_unit(rotation[w, i])
    mass[w, i] = m
    com[w, i] = position[w, i] + quat_rotate(r, shape_center(kind, s, t.unit_com[i]))
    inertia[w, i] = sym_rotate(quat_matrix(r), shape_unit_inertia(kind, s, t.unit_inertia[i], t.unit_volume[i])) * m


@wp.func
def _total_mass(t: ShapeMassTopology, mass: wp.array2d(dtype=real), w: int, b: int) -> real:
    total = real(0.0)
    for k in range(t.start[b], t.start[b + 1]):
        total += mass[w, t.shape[k]]
    return total


@wp.func
def _total_moment(
    t: ShapeMassTopology, mass: wp.array2d(dtype=real), com: wp.array2d(dtype=vec3), w: int, b: int
) -> vec3:
    total = vec3(real(0.0), real(0.0), real(0.0))
    for k in range(t.start[b], t.start[b + 1]):
        total += com[w, t.shape[k]] * mass[w, t.shape[k]]
    return total


@wp.func
def _total_inertia(
    t: ShapeMassTopology,
    mass: wp.array2d(dtype=real),
    com: wp.array2d(dtype=vec3),
    inertia: wp.array2d(dtype=vec6),
    center: vec3,
    w: int,
    b: int,
) -> vec6:
    total = vec6()
    for k in range(t.start[b], t.start[b + 1]):
        i = t.shape[k]
        total += inertia[w, i] + sym_point_mass(mass[w, i], com[w, i] - center)
    return total


@wp.kernel
def _body_kernel(
    # topology, authored values
    t: ShapeMassTopology,
    given_mass: wp.array2d(dtype=real),
    given_com: wp.array2d(dtype=vec3),
    given_inertia: wp.array2d(dtype=vec6),
    # shapes
    shape_mass: wp.array2d(dtype=real),
    shape_com: wp.array2d(dtype=vec3),
    shape_inertia: wp.array2d(dtype=vec6),
    # out
    mass: wp.array2d(dtype=real),
    com: wp.array2d(dtype=vec3),
    inertia: wp.array2d(dtype=vec6),
):
    w, b = wp.tid()
    total = _total_mass(t, shape_mass, w, b)
    m = given_mass[w, b]
    if t.mass_given[b] == 0:
        m = total
    c = given_com[w, b]
    if t.com_given[b] == 0 and total > real(0.0):
        c = _total_moment(t, shape_mass, shape_com, w, b) / total
    mass[w, b] = m
    com[w, b] = c
    if t.inertia_given[b] == 1:
        inertia[w, b] = given_inertia[w, b]
    elif total > real(0.0):
        inertia[w, b] = _total_inertia(t, shape_mass, shape_com, shape_inertia, c, w, b) * (m / total)
    else:
        inertia[w, b] = vec6()
