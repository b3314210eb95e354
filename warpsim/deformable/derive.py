"""From rest shape and materials to what a step reads: measures, shape gradients, moduli, lumped masses. Taped.

It depends on no state, so it runs once before a rollout, and its adjoint once after the backward pass.
"""

from __future__ import annotations

from collections.abc import Mapping

import warp as wp

from warpsim.core.precision import mat33, real, vec3
from warpsim.deformable.fold import fold_angle
from warpsim.deformable.types import mat22, vec4

_PI = wp.constant(real(3.141592653589793))


@wp.kernel
def _sheet_kernel(
    vertex: wp.array2d(dtype=wp.int32),
    rest: wp.array2d(dtype=vec3),
    young: wp.array2d(dtype=real),
    poisson: wp.array2d(dtype=real),
    thickness: wp.array2d(dtype=real),
    density: wp.array2d(dtype=real),
    damping: wp.array2d(dtype=real),
    # out
    area: wp.array2d(dtype=real),
    shape: wp.array2d(dtype=mat22),
    mu: wp.array2d(dtype=real),
    lam: wp.array2d(dtype=real),
    viscosity: wp.array2d(dtype=real),
    plate: wp.array2d(dtype=real),
    mass: wp.array2d(dtype=real),
):
    """Plane stress of a sheet, and the bending stiffness of a plate."""
    w, e = wp.tid()
    one, two = real(1.0), real(2.0)
    d1 = rest[w, vertex[e, 1]] - rest[w, vertex[e, 0]]
    d2 = rest[w, vertex[e, 2]] - rest[w, vertex[e, 0]]
    length = wp.length(d1)
    twice = wp.length(wp.cross(d1, d2))
    along, height = wp.dot(d1, d2) / length, twice / length
    area[w, e] = twice / two
    shape[w, e] = mat22(one / length, -along / (length * height), real(0.0), one / height)
    nu, sheet = poisson[w, e], young[w, e] * thickness[w, e]
    mu[w, e] = sheet / (two * (one + nu))
    lam[w, e] = sheet * nu / (one - nu * nu)
    viscosity[w, e] = damping[w, e] * sheet
    plate[w, e] = sheet * thickness[w, e] * thickness[w, e] / (real(12.0) * (one - nu * nu))
    mass[w, e] = density[w, e] * thickness[w, e] * twice / two


@wp.func
def _at_rest(
    vertex: wp.array2d(dtype=wp.int32),
    reference: wp.array2d(dtype=vec3),
    rest: wp.array2d(dtype=vec3),
    w: int,
    e: int,
) -> mat33:
    """Derivative of places at rest by the unit tetrahedron's coordinates, at an element's point of quadrature."""
    total = mat33()
    for i in range(1, vertex.shape[1]):
        edge = rest[w, vertex[e, i]] - rest[w, vertex[e, 0]]
        total += wp.outer(edge, reference[e % reference.shape[0], i])
    return total


@wp.kernel
def _volume_kernel(
    vertex: wp.array2d(dtype=wp.int32),
    reference: wp.array2d(dtype=vec3),
    rest: wp.array2d(dtype=vec3),
    young: wp.array2d(dtype=real),
    poisson: wp.array2d(dtype=real),
    density: wp.array2d(dtype=real),
    damping: wp.array2d(dtype=real),
    # out
    volume: wp.array2d(dtype=real),
    shape: wp.array3d(dtype=vec3),
    mu: wp.array2d(dtype=real),
    lam: wp.array2d(dtype=real),
    viscosity: wp.array2d(dtype=real),
    mass: wp.array2d(dtype=real),
):
    """An element is a point of quadrature of a tetrahedron, with its part of the volume."""
    w, e = wp.tid()
    one, two = real(1.0), real(2.0)
    d = _at_rest(vertex, reference, rest, w, e)
    six = wp.determinant(d)
    c = wp.matrix_from_rows(wp.cross(d[1], d[2]), wp.cross(d[2], d[0]), wp.cross(d[0], d[1]))
    for i in range(vertex.shape[1]):
        shape[w, e, i] = (c @ reference[e % reference.shape[0], i]) / six
    part = six / (real(6.0) * real(reference.shape[0]))
    volume[w, e] = part
    nu = poisson[w, e]
    mu[w, e] = young[w, e] / (two * (one + nu))
    lam[w, e] = young[w, e] * nu / ((one + nu) * (one - two * nu))
    viscosity[w, e] = damping[w, e] * young[w, e]
    mass[w, e] = density[w, e] * part


@wp.kernel
def _curve_kernel(
    vertex: wp.array2d(dtype=wp.int32),
    rest: wp.array2d(dtype=vec3),
    young: wp.array2d(dtype=real),
    radius: wp.array2d(dtype=real),
    density: wp.array2d(dtype=real),
    damping: wp.array2d(dtype=real),
    # out
    length: wp.array2d(dtype=real),
    stiffness: wp.array2d(dtype=real),
    viscosity: wp.array2d(dtype=real),
    beam: wp.array2d(dtype=real),
    mass: wp.array2d(dtype=real),
):
    """Axial stiffness of a round section, and its bending stiffness."""
    w, e = wp.tid()
    section = _PI * radius[w, e] * radius[w, e]
    span = wp.length(rest[w, vertex[e, 1]] - rest[w, vertex[e, 0]])
    length[w, e] = span
    stiffness[w, e] = young[w, e] * section
    viscosity[w, e] = damping[w, e] * young[w, e] * section
    beam[w, e] = young[w, e] * section * radius[w, e] * radius[w, e] / real(4.0)
    mass[w, e] = density[w, e] * section * span


@wp.func
def cotangent(a: vec3, b: vec3) -> real:
    """Of the angle between a and b."""
    return wp.dot(a, b) / wp.length(wp.cross(a, b))


@wp.kernel
def _hinge_kernel(
    vertex: wp.array2d(dtype=wp.int32),
    side: wp.array2d(dtype=wp.int32),
    rest: wp.array2d(dtype=vec3),
    factor: wp.array2d(dtype=real),
    area: wp.array2d(dtype=real),
    plate: wp.array2d(dtype=real),
    # out
    coefficient: wp.array2d(dtype=vec4),
    stiffness: wp.array2d(dtype=real),
):
    """Bergou's weights: |Σ cx| is edge length times angle; the plates on both sides give the stiffness.

    Over the sum of the areas, not a third of it: bending into a cylinder, which is how a sheet bends that hardly
    stretches, then costs what it costs a plate. With a third the sphere would be right and the cylinder three times too
    stiff.
    """
    w, e = wp.tid()
    x0, x1 = rest[w, vertex[e, 0]], rest[w, vertex[e, 1]]
    x2, x3 = rest[w, vertex[e, 2]], rest[w, vertex[e, 3]]
    c01, c02 = cotangent(x1 - x0, x2 - x0), cotangent(x1 - x0, x3 - x0)
    c03, c04 = cotangent(x0 - x1, x2 - x1), cotangent(x0 - x1, x3 - x1)
    coefficient[w, e] = vec4(c03 + c04, c01 + c02, -c01 - c03, -c02 - c04)
    mean = real(0.5) * (plate[w, side[e, 0]] + plate[w, side[e, 1]])
    stiffness[w, e] = factor[w, e] * mean / (area[w, side[e, 0]] + area[w, side[e, 1]])


@wp.kernel
def _fold_kernel(
    vertex: wp.array2d(dtype=wp.int32),
    side: wp.array2d(dtype=wp.int32),
    shaped: wp.array(dtype=wp.int32),
    rest: wp.array2d(dtype=vec3),
    factor: wp.array2d(dtype=real),
    given: wp.array2d(dtype=real),
    area: wp.array2d(dtype=real),
    plate: wp.array2d(dtype=real),
    # out
    stiffness: wp.array2d(dtype=real),
    angle: wp.array2d(dtype=real),
):
    """As stiff as a flat hinge; the angle of rest is what is given, on top of the rest shape's where that counts."""
    w, e = wp.tid()
    x0, x1 = rest[w, vertex[e, 0]], rest[w, vertex[e, 1]]
    mean = real(0.5) * (plate[w, side[e, 0]] + plate[w, side[e, 1]])
    along = wp.dot(x1 - x0, x1 - x0)
    stiffness[w, e] = factor[w, e] * mean * along / (area[w, side[e, 0]] + area[w, side[e, 1]])
    own = given[w, e]
    if shaped[e] == 1:
        own += fold_angle(x0, x1, rest[w, vertex[e, 2]], rest[w, vertex[e, 3]])
    angle[w, e] = own


@wp.kernel
def _joint_kernel(
    first: int,
    side: wp.array2d(dtype=wp.int32),
    factor: wp.array2d(dtype=real),
    length: wp.array2d(dtype=real),
    beam: wp.array2d(dtype=real),
    # out
    coefficient: wp.array2d(dtype=vec4),
    stiffness: wp.array2d(dtype=real),
):
    """Curvature of two segments, over half of each."""
    w, e = wp.tid()
    one, half = real(1.0), real(0.5)
    a, b = length[w, side[e, 0]], length[w, side[e, 1]]
    coefficient[w, first + e] = vec4(one / a, -one / a - one / b, one / b, real(0.0))
    stiffness[w, first + e] = factor[w, e] * half * (beam[w, side[e, 0]] + beam[w, side[e, 1]]) / (half * (a + b))


@wp.kernel
def _lump_kernel(
    first: wp.array(dtype=wp.int32),
    corner: wp.array(dtype=wp.int32),
    corners: int,
    share: wp.array(dtype=real),
    element: wp.array2d(dtype=real),
    # in and out
    mass: wp.array2d(dtype=real),
):
    """Each element's mass to its vertices, in equal parts unless shares are given."""
    w, i = wp.tid()
    for k in range(first[i], first[i + 1]):
        if share:
            mass[w, i] += element[w, corner[k] // corners] * share[corner[k] % corners]
        else:
            mass[w, i] += element[w, corner[k] // corners] / real(corners)


def derive(
    index: Mapping[str, wp.array],
    authored: Mapping[str, wp.array],
    physical: Mapping[str, wp.array],
    inner: Mapping[str, wp.array],
) -> None:
    """Fills `physical` from `authored`.

    Args:
        index: Connectivity: kinds' vertices, "hinges.side", "joints.side", "<kind>.first" and "<kind>.corner"; with
            tetrahedra, "tetrahedra.reference" and "tetrahedra.share", see `interpolation`.
        authored: "rest" and materials by kind, (W, …).
        physical: What steps read, (W, …).
        inner: "<kind>.mass", "membrane.plate" and "segments.beam", (W, n): intermediates.
    """
    rest, mass = authored["rest"], physical["mass"]
    device, worlds = rest.device, rest.shape[0]

    def launch(kernel: wp.Kernel, count: int, inputs: list, outputs: list) -> None:
        wp.launch(kernel, dim=(worlds, count), inputs=inputs, outputs=outputs, device=device)

    def of(group: Mapping[str, wp.array], kind: str, *names: str) -> list[wp.array]:
        return [group[f"{kind}.{name}"] for name in names]

    mass.zero_()
    kinds = {
        "membrane": (_sheet_kernel, ("young", "poisson", "thickness", "density", "damping")),
        "tetrahedra": (_volume_kernel, ("young", "poisson", "density", "damping")),
        "segments": (_curve_kernel, ("young", "radius", "density", "damping")),
    }
    derived = {
        "membrane": (("area", "shape", "mu", "lam", "viscosity"), ("plate", "mass")),
        "tetrahedra": (("volume", "shape", "mu", "lam", "viscosity"), ("mass",)),
        "segments": (("length", "stiffness", "viscosity"), ("beam", "mass")),
    }
    for kind, (kernel, names) in kinds.items():
        if kind not in index:
            continue
        vertex, (outer, between) = index[kind], derived[kind]
        outputs = [*of(physical, kind, *outer), *of(inner, kind, *between)]
        reference = [index[f"{kind}.reference"]] if kind == "tetrahedra" else []
        launch(kernel, vertex.shape[0], [vertex, *reference, rest, *of(authored, kind, *names)], outputs)
        shares = index.get(f"{kind}.share")
        lump = [*of(index, kind, "first", "corner"), vertex.shape[1], shares, inner[f"{kind}.mass"]]
        launch(_lump_kernel, mass.shape[1], lump, [mass])
    count = index["hinges"].shape[0] if "hinges" in index else 0
    if count:
        inputs = [index["hinges"], index["hinges.side"], rest, authored["hinges.factor"]]
        inputs += [physical["membrane.area"], inner["membrane.plate"]]
        launch(_hinge_kernel, count, inputs, of(physical, "bends", "coefficient", "stiffness"))
    if "folds" in index:
        inputs = [*(index[name] for name in ("folds", "folds.side", "folds.shaped")), rest]
        inputs += [*of(authored, "folds", "factor", "angle"), physical["membrane.area"], inner["membrane.plate"]]
        launch(_fold_kernel, index["folds"].shape[0], inputs, of(physical, "folds", "stiffness", "angle"))
    if "joints.side" in index:
        side = index["joints.side"]
        inputs = [count, side, authored["joints.factor"], physical["segments.length"], inner["segments.beam"]]
        launch(_joint_kernel, side.shape[0], inputs, of(physical, "bends", "coefficient", "stiffness"))
