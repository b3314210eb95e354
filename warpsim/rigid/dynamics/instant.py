"""Going back to the moment within a step at which trees were struck, and on from there to the step's end."""

from __future__ import annotations

import warp as wp

from warpsim.core.indexing import natural
from warpsim.core.precision import real
from warpsim.core.stages import stage
from warpsim.rigid.dynamics.integrate import turn
from warpsim.rigid.model.model import Model
from warpsim.rigid.model.topology import BALL, FREE, HINGE, SLIDE, Topology
from warpsim.rigid.work.state import State


@wp.func
def _move(
    t: Topology,
    i: int,
    w: int,
    seconds: real,
    q: wp.array2d(dtype=real),
    rate: wp.array2d(dtype=real),
    q_out: wp.array2d(dtype=real),
):
    """Coordinates of link i, moved along `rate` for a time."""
    kind = t.link_kind[i]
    a = t.link_q[i]
    d = t.link_dof[i]
    if kind == HINGE or kind == SLIDE:
        q_out[w, a] = q[w, a] + seconds * rate[w, d]
    elif kind == BALL:
        turn(q, rate, q_out, w, a, d, seconds)
    elif kind == FREE:
        for e in range(3):
            q_out[w, a + e] = q[w, a + e] + seconds * rate[w, d + e]
        turn(q, rate, q_out, w, a + 3, d + 3, seconds)


@wp.func
def _keep(t: Topology, i: int, w: int, q: wp.array2d(dtype=real), q_out: wp.array2d(dtype=real)):
    """Coordinates of link i as they are, to the last bit."""
    kind = t.link_kind[i]
    a = t.link_q[i]
    if kind == HINGE or kind == SLIDE:
        q_out[w, a] = q[w, a]
    elif kind == BALL:
        for e in range(4):
            q_out[w, a + e] = q[w, a + e]
    elif kind == FREE:
        for e in range(7):
            q_out[w, a + e] = q[w, a + e]


@wp.kernel
def _go_back_kernel(
    # topology
    t: Topology,
    # the step's end, its acceleration, and how long ago each tree was struck
    q: wp.array2d(dtype=real),
    qd: wp.array2d(dtype=real),
    qdd: wp.array2d(dtype=real),
    back: wp.array2d(dtype=real),
    # state out
    q_out: wp.array2d(dtype=real),
    qd_out: wp.array2d(dtype=real),
):
    w = natural(wp.tid())
    for d in range(t.nv):
        qd_out[w, d] = qd[w, d] - back[w, t.body_tree[t.dof_body[d]]] * qdd[w, d]
    for i in range(1, t.nlink):
        s = back[w, t.link_tree[i]]
        if s > real(0.0):
            _move(t, i, w, -s, q, qd, q_out)
        else:
            _keep(t, i, w, q, q_out)


@stage
def go_back(m: Model, end: State, qdd: wp.array, back: wp.array, out: State) -> None:
    """The state in which each tree was struck; `end` where it was not."""
    wp.launch(
        _go_back_kernel,
        dim=m.worlds,
        inputs=[m.topology, end.q, end.qd, qdd, back],
        outputs=[out.q, out.qd],
        device=m.device,
    )


@wp.kernel
def _jump_kernel(qd: wp.array2d(dtype=real), change: wp.array2d(dtype=real), out: wp.array2d(dtype=real)):
    w, d = wp.tid()
    out[w, d] = qd[w, d] + change[w, d]


@stage
def jump(m: Model, qd: wp.array, change: wp.array, out: wp.array) -> None:
    """out = qd + change, (W, nv) each."""
    wp.launch(_jump_kernel, dim=out.shape, inputs=[qd, change], outputs=[out], device=m.device)


@wp.kernel
def _go_on_kernel(
    # topology
    t: Topology,
    # the end without impacts; the state after them, its acceleration, and the time that is left
    q_end: wp.array2d(dtype=real),
    qd_end: wp.array2d(dtype=real),
    q: wp.array2d(dtype=real),
    qd: wp.array2d(dtype=real),
    qdd: wp.array2d(dtype=real),
    back: wp.array2d(dtype=real),
    # state out
    q_out: wp.array2d(dtype=real),
    qd_out: wp.array2d(dtype=real),
):
    w = natural(wp.tid())
    for d in range(t.nv):
        s = back[w, t.body_tree[t.dof_body[d]]]
        if s > real(0.0):
            qd_out[w, d] = qd[w, d] + s * qdd[w, d]
        else:
            qd_out[w, d] = qd_end[w, d]
    for i in range(1, t.nlink):
        s = back[w, t.link_tree[i]]
        if s > real(0.0):
            _move(t, i, w, s, q, qd_out, q_out)
        else:
            _keep(t, i, w, q_end, q_out)


@stage
def go_on(m: Model, end: State, after: State, qdd: wp.array, back: wp.array, out: State) -> None:
    """The step's end: from `after` on for trees that were struck, `end` for the others."""
    wp.launch(
        _go_on_kernel,
        dim=m.worlds,
        inputs=[m.topology, end.q, end.qd, after.q, after.qd, qdd, back],
        outputs=[out.q, out.qd],
        device=m.device,
    )
