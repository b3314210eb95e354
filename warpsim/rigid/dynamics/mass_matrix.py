"""The joint-space mass matrix by composite rigid bodies (Featherstone, ch. 6), in the tree's sparse rows. Not taped.

No derivative of the matrix is ever needed: accelerations are differentiated through the residual of the equation of
motion (see `inverse_dynamics`).
"""

from __future__ import annotations

import warp as wp

from warpsim.core.indexing import natural
from warpsim.core.precision import real, vec3, vec6
from warpsim.core.spatial import angular, linear, spatial, sym_mul, sym_point_mass
from warpsim.core.stages import stage
from warpsim.rigid.dynamics.tendon_inertia import add_tendon_inertia
from warpsim.rigid.model.model import Model
from warpsim.rigid.model.topology import Topology
from warpsim.rigid.work.state import Scratch, Work


@wp.func
def free_prescribed(t: Topology, w: int, matrix: wp.array2d(dtype=real)):
    """Decouples dofs whose acceleration is prescribed: their rows become those of the identity."""
    for d in range(t.nv):
        for e in range(t.row_start[d], t.row_start[d + 1]):
            c = t.row_column[e]
            if t.dof_prescribed[d] == 1 or t.dof_prescribed[c] == 1:
                matrix[w, e] = wp.where(c == d, real(1.0), real(0.0))


@wp.kernel(enable_backward=False)
def _mass_matrix_kernel(
    # topology, parameters
    t: Topology,
    mass: wp.array2d(dtype=real),
    armature: wp.array2d(dtype=real),
    # work in
    axis: wp.array2d(dtype=vec6),
    com: wp.array2d(dtype=vec3),
    inertia: wp.array2d(dtype=vec6),
    # scratch: composite mass, first moment and inertia about the tree's reference point
    composite_mass: wp.array2d(dtype=real),
    composite_moment: wp.array2d(dtype=vec3),
    composite_inertia: wp.array2d(dtype=vec6),
    # work out
    mass_matrix: wp.array2d(dtype=real),
):
    w = natural(wp.tid())
    for b in range(1, t.nbody):
        r = com[w, b]
        composite_mass[w, b] = mass[w, b]
        composite_moment[w, b] = mass[w, b] * r
        composite_inertia[w, b] = inertia[w, b] + sym_point_mass(mass[w, b], r)
    for i in range(1, t.nbody):
        b = t.nbody - i
        p = t.body_parent[b]
        if p > 0:
            composite_mass[w, p] = composite_mass[w, p] + composite_mass[w, b]
            composite_moment[w, p] = composite_moment[w, p] + composite_moment[w, b]
            composite_inertia[w, p] = composite_inertia[w, p] + composite_inertia[w, b]
    for d in range(t.nv):
        b = t.dof_body[d]
        s = axis[w, d]
        h = composite_moment[w, b]
        torque = sym_mul(composite_inertia[w, b], angular(s)) + wp.cross(h, linear(s))
        force = composite_mass[w, b] * linear(s) + wp.cross(angular(s), h)
        momentum = spatial(torque, force)
        start = t.row_start[d]
        mass_matrix[w, start] = wp.dot(s, momentum) + armature[w, d]
        for k in range(start + 1, t.row_start[d + 1]):
            mass_matrix[w, k] = wp.dot(axis[w, t.row_column[k]], momentum)
    if t.prescribed_count > 0:
        free_prescribed(t, w, mass_matrix)


@stage
def mass_matrix(m: Model, work: Work, scratch: Scratch) -> None:
    """Fills `work.mass_matrix`, armature included; row d lists dof d, then its ancestors up to the tree's first.

    Rows of prescribed dofs (kinematic bodies) are those of the identity.
    """
    wp.launch(
        _mass_matrix_kernel,
        dim=m.worlds,
        inputs=[m.topology, m.body.mass, m.joint.armature, work.axis, work.com, work.inertia],
        outputs=[
            scratch.composite_mass,
            scratch.composite_moment,
            scratch.composite_inertia,
            work.mass_matrix,
        ],
        device=m.device,
        record_tape=False,
    )
    if m.has_tendon_armature:
        add_tendon_inertia(m, work, work.mass_matrix)
