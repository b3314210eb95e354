"""What is reported of a step and carries no gradient: energies, the solver's iterations and status."""

from __future__ import annotations

import warp as wp

from warpsim.core.indexing import natural
from warpsim.core.precision import real, vec3
from warpsim.deformable.inertia import Inertia
from warpsim.deformable.self_contact import SelfContacts
from warpsim.deformable.terms import Elements, elastic_energy


@wp.kernel(enable_backward=False)
def report_kernel(
    m: Inertia,
    elements: Elements,
    pairs: SelfContacts,
    status: wp.array2d(dtype=wp.int32),
    error: wp.array(dtype=real),
    x: wp.array2d(dtype=vec3),
    v: wp.array2d(dtype=vec3),
    # out
    energy: wp.array2d(dtype=real),
    iterations: wp.array(dtype=wp.int32),
    code: wp.array(dtype=wp.int32),
    solver_error: wp.array(dtype=real),
    tangle: wp.array2d(dtype=wp.int32),
):
    """Reports of one world, as far as they are asked for."""
    w = natural(wp.tid())
    if energy:
        kinetic, potential = real(0.0), real(0.0)
        for i in range(x.shape[1]):
            kinetic += real(0.5) * m.mass[w, i] * wp.length_sq(v[w, i])
            potential += -m.mass[w, i] * wp.dot(m.gravity[w], x[w, i])
        energy[w, 0] = kinetic
        energy[w, 1] = elastic_energy(elements, w, x)
        energy[w, 2] = potential
    if iterations:
        iterations[w] = status[w, 0]
    if code:
        code[w] = status[w, 1]
    if solver_error:
        solver_error[w] = error[w]
    if tangle:
        for k in range(5):
            tangle[w, k] = -1
        if status[w, 2] >= 0:
            for k in range(2):
                tangle[w, k] = pairs.edge[status[w, 2], k]
            for k in range(3):
                tangle[w, 2 + k] = pairs.face[status[w, 3], k]
