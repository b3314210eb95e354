"""A bound on each particle's adjoint: a biased gradient that stays finite through splashes.

Where drops collide, the exact adjoint grows without limit and says little about where to go. With a bound, the adjoint
of each field of a particle's state is scaled down to it at each step of the backward pass. What comes out is no
gradient of anything, but often still leads downhill. It is off (0) unless a task asks for it by name.
"""

from __future__ import annotations

from typing import Any

import warp as wp

from warpsim.core.indexing import natural
from warpsim.core.precision import mat33, real, vec3
from warpsim.particles.parameters import ParticleState


@wp.func
def _scale(size: real, bound: real) -> real:
    if size > bound:
        return bound / size
    return real(1.0)


@wp.kernel(enable_backward=False)
def _bound_kernel(
    bound: wp.array(dtype=real),
    x: wp.array2d(dtype=vec3),
    v: wp.array2d(dtype=vec3),
    rate: wp.array2d(dtype=mat33),
    volume_ratio: wp.array2d(dtype=real),
    slope: wp.array2d(dtype=vec3),
):
    w, p = wp.tid()
    w = natural(w)
    p = natural(p)
    most = bound[0]
    if most > real(0.0):
        x[w, p] = _scale(wp.length(x[w, p]), most) * x[w, p]
        v[w, p] = _scale(wp.length(v[w, p]), most) * v[w, p]
        c = rate[w, p]
        rate[w, p] = _scale(wp.sqrt(wp.ddot(c, c)), most) * c
        volume_ratio[w, p] = _scale(wp.abs(volume_ratio[w, p]), most) * volume_ratio[w, p]
        slope[w, p] = _scale(wp.length(slope[w, p]), most) * slope[w, p]


def bound_adjoints(bound: wp.array, state: ParticleState, tape: Any) -> None:
    """Records that the adjoint of a state is bounded before the step that left it is passed backward.

    Args:
        bound: (1,) largest norm of each field's adjoint of a particle; 0: none.
        state: What the step leaves.
        tape: Where to record; None: nowhere.
    """
    if tape is None:
        return

    def adjoint() -> None:
        adjoints = [array.grad for array in state.arrays]
        wp.launch(_bound_kernel, dim=state.x.shape, inputs=[bound], outputs=adjoints, device=bound.device)

    tape.record_func(adjoint, arrays=state.arrays)
