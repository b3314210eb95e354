"""Adjoint of the step of bodies and deformables: one solve with the whole Hessian at its end. Not taped.

    H(λ, λ_q) = (h²x̄⁺ + hv̄⁺, q̈̄)

The bodies' part goes to their residual, which the tape carries on through what deformables exert on them; that of the
deformables to `StepAdjoint`.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.indexing import natural
from warpsim.core.precision import real, vec3
from warpsim.deformable.border import Border, Chain, System, push
from warpsim.deformable.contact import prepare_contacts
from warpsim.deformable.elimination import factor_middle, factor_systems
from warpsim.deformable.joint_newton import assemble_system, complete_all, couple, reduce_all
from warpsim.deformable.near import prepare_self
from warpsim.deformable.newton import prepare_matrix
from warpsim.solve.hessian import ENVELOPE, FOREST, HessianKernels, HessianStorage
from warpsim.solve.sparsity import TreeSparsity


@wp.func
def seed_system(s: System, c: Chain, w: int, right: wp.array2d(dtype=real)):
    """Adjoints of accelerations, h²x̄⁺ + hv̄⁺: of vertices in place of the gradient, of carried ones to their bodies."""
    h = s.inertia.time_step[w]
    for i in range(s.x.shape[1]):
        s.vectors.gradient[w, i] = h * (h * s.adj_end[w, i] + s.adj_velocity[w, i])
    for j in range(s.carried):
        k = s.carried_pin[j]
        push(c, w, s.pin_body[k], s.hold[w, k], s.vectors.gradient[w, s.pin[k]], right)


def _joint_adjoint_kernel(storage: HessianStorage) -> wp.Kernel:
    solve_hessian = storage.solve

    # a module for each form: a scene compiles the one that it needs
    @wp.kernel(enable_backward=False, name=f"joint_adjoint_{storage.name}_kernel", module=f"{__name__}_{storage.name}")
    def joint_adjoint_kernel(
        systems: wp.array(dtype=System),
        c: Chain,
        t: TreeSparsity,
        b: Border,
        factor: wp.array2d(dtype=real),
        envelope: wp.array2d(dtype=wp.int32),
        a: wp.array2d(dtype=real),
        qdd_adjoint: wp.array2d(dtype=real),
        # out
        residual_adjoint: wp.array2d(dtype=real),
    ):
        """λ of each system, and −λ of the bodies; places, velocities and adjoints have been copied to the systems."""
        w = natural(wp.tid())
        for d in range(t.nv):
            b.right[w, d] = qdd_adjoint[w, d]
        for k in range(systems.shape[0]):
            s = systems[k]
            prepare_matrix(s.inertia, s.elements, s.factor, w)
            prepare_contacts(s.contacts, w, s.inertia.time_step[w], s.x, s.v)
            prepare_self(s.pairs, w, s.inertia.time_step[w], s.x, s.v)
            assemble_system(s, c, w, a, 0)
            seed_system(s, c, w, b.right)
        for d in range(t.nv):
            if t.dof_prescribed[d] == 1:
                b.right[w, d] = real(0.0)
        factor_systems(systems, w, 0)
        couple(systems, c, t.nv, b, w)
        for d in range(b.count[w]):
            solve_hessian(t, w, factor, envelope, b.inverse[d])
        factor_middle(b, w)
        reduce_all(systems, b, w, real(1.0))
        solve_hessian(t, w, factor, envelope, b.right)
        complete_all(systems, t.nv, b, w, real(1.0))
        for k in range(systems.shape[0]):
            s = systems[k]
            for i in range(s.x.shape[1]):
                s.multiplier[w, i] = vec3()
                if s.inertia.node[i] >= 0:
                    s.multiplier[w, i] = s.factor.vector[w, s.inertia.node[i]]
        for d in range(t.nv):
            residual_adjoint[w, d] = -b.right[w, d]

    return joint_adjoint_kernel


_joint_adjoint_envelope_kernel = _joint_adjoint_kernel(ENVELOPE)
_joint_adjoint_forest_kernel = _joint_adjoint_kernel(FOREST)
JOINT_ADJOINT_KERNELS = HessianKernels(_joint_adjoint_envelope_kernel, _joint_adjoint_forest_kernel)
