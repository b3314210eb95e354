"""Energy of a matter as a term of an objective: value, gradient, Hessian blocks, polynomial along a line. Not taped.

Whoever minimizes needs these four alone; they know neither masses nor time beyond the viscosity's h.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import mat33, real, vec3, vec6
from warpsim.deformable.bend import Bends, bend_energy, bend_gradient, bend_line
from warpsim.deformable.fold import Folds, fold_energy, fold_terms
from warpsim.deformable.membrane import Membrane, membrane_energy, membrane_line, membrane_terms
from warpsim.deformable.segment import Segments, segment_energy, segment_line, segment_terms
from warpsim.deformable.tetrahedron import Tetrahedra, tet_energy, tet_line, tet_terms


@wp.struct
class Elements:
    """All elements of a matter."""

    membrane: Membrane
    tetrahedra: Tetrahedra
    segments: Segments
    bends: Bends
    folds: Folds


@wp.func
def elastic_energy(m: Elements, w: int, x: wp.array2d(dtype=vec3)) -> real:
    """Energy stored at x in world w, J."""
    total = real(0.0)
    for e in range(m.membrane.count):
        total += membrane_energy(m.membrane, w, e, x)
    for e in range(m.tetrahedra.count):
        total += tet_energy(m.tetrahedra, w, e, x)
    for e in range(m.segments.count):
        total += segment_energy(m.segments, w, e, x)
    for e in range(m.bends.count):
        total += bend_energy(m.bends, w, e, x)
    for e in range(m.folds.count):
        total += fold_energy(m.folds, w, e, x)
    return total


@wp.func
def energy_terms(
    m: Elements,
    w: int,
    h: real,
    x: wp.array2d(dtype=vec3),
    end: wp.array2d(dtype=vec3),
    scale: real,
    convex: int,
    gradient: wp.array2d(dtype=vec3),
    blocks: wp.array2d(dtype=mat33),
):
    """Adds to the gradient and, unless scale is 0, to the Hessian's blocks, but for the part of flat bending.

    Args:
        m: The elements.
        w: World.
        h: Time step, s.
        x: (W, n) places at the start of the step, m.
        end: (W, n) places at its end, where to differentiate.
        scale: What the Hessian is multiplied by, e.g. h².
        convex: 1 leaves out what may be negative: stress in compression. For a direction that goes down where the
            Hessian is not positive definite.
        gradient: (W, n) N.
        blocks: (W, blocks) of the matter's `Pattern`.
    """
    membrane_terms(m.membrane, w, h, x, end, scale, convex, gradient, blocks)
    tet_terms(m.tetrahedra, w, h, x, end, scale, convex, gradient, blocks)
    segment_terms(m.segments, w, h, x, end, scale, convex, gradient, blocks)
    bend_gradient(m.bends, w, end, gradient)
    fold_terms(m.folds, w, end, scale, convex, gradient, blocks)


@wp.func
def energy_line(
    m: Elements,
    w: int,
    h: real,
    x: wp.array2d(dtype=vec3),
    end: wp.array2d(dtype=vec3),
    step: wp.array2d(dtype=vec3),
) -> vec6:
    """Coefficients of α … α⁶ of Ψ(end + α·step) − Ψ(end): exact, and free of the cancellation of two energies.

    Hinges with angles of rest are no polynomial: see `fold_line`.
    """
    return (
        membrane_line(m.membrane, w, h, x, end, step)
        + tet_line(m.tetrahedra, w, h, x, end, step)
        + segment_line(m.segments, w, h, x, end, step)
        + bend_line(m.bends, w, end, step)
    )
