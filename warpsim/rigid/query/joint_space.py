"""Mass matrix and bias force: M and c of M·qdd + c = forces."""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import real
from warpsim.rigid.dynamics import mass_matrix as composite
from warpsim.rigid.dynamics.inverse_dynamics import residual_at_solution
from warpsim.rigid.model.model import Model
from warpsim.rigid.model.topology import Topology
from warpsim.rigid.query.motion import evaluate
from warpsim.rigid.work.state import State, Work, make_scratch


@wp.kernel(enable_backward=False)
def _dense_kernel(t: Topology, rows: wp.array2d(dtype=real), dense: wp.array3d(dtype=real)):
    w, d = wp.tid()
    for e in range(t.row_start[d], t.row_start[d + 1]):
        dense[w, d, t.row_column[e]] = rows[w, e]
        dense[w, t.row_column[e], d] = rows[w, e]


def mass_matrix(model: Model, state: State, *, motion: Work | None = None) -> wp.array:
    """Joint-space mass matrix, armature included: (W, nv, nv). Carries no gradient.

    Rows and columns of kinematic bodies are those of the identity, since no force moves them.
    Derivatives of accelerations never need the matrix's; see `warpsim.rigid.dynamics.inverse_dynamics`.
    """
    motion = motion or evaluate(model, state)
    composite.mass_matrix(model, motion, make_scratch(model))
    dense = wp.zeros((model.worlds, model.nv, model.nv), dtype=real, device=model.device)
    wp.launch(
        _dense_kernel,
        dim=(model.worlds, model.nv),
        inputs=[model.topology, motion.mass_matrix],
        outputs=[dense],
        device=model.device,
        record_tape=False,
    )
    return dense


def bias_force(model: Model, state: State) -> wp.array:
    """Coriolis, centrifugal and gravity forces: (W, nv), N·m or N; what holds the state at zero acceleration."""
    work = evaluate(model, state)  # of its own: all forces and the acceleration in it are zero
    residual_at_solution(model, state, work)
    return work.residual
