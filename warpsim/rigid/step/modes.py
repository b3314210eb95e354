"""The output "mode": one number per step and world that stands for all its decisions.

Equal numbers: the same contacts and features, the same zones of all constraint rows, the same ranges that cut, the same
impacts, so that both steps lie in one smooth piece of the simulation. The number itself is a hash and means nothing;
`warpsim.check.gradcheck.modes` tells which decisions they are. Nothing here is taped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import warp as wp

from warpsim.core.indexing import natural
from warpsim.core.precision import real
from warpsim.core.stages import after_stage
from warpsim.rigid.constraint.impact import LONGEST
from warpsim.rigid.constraint.zones import cone_zone, row_zone
from warpsim.rigid.model.model import Model
from warpsim.rigid.step.impact_work import ImpactWork
from warpsim.rigid.work.constraint_work import ConstraintScratch, ConstraintWork
from warpsim.rigid.work.state import RungeKuttaWork, Work
from warpsim.solve.rows import ELLIPTIC, Rows

_SOLVE = "constraint.stage.newton"
_SPREAD = wp.constant(wp.uint64(0x9E3779B97F4A7C15))
_HALF = wp.constant(wp.uint64(32))


@wp.func
def _mixed(mode: wp.int64, value: wp.int64) -> wp.int64:
    """A hash with one more number in it; each bit of either reaches the upper half, which is folded back."""
    h = (wp.uint64(mode) + wp.uint64(value) + wp.uint64(1)) * _SPREAD
    return wp.int64(h ^ (h >> _HALF))


@wp.kernel(enable_backward=False)
def _zone_kernel(rows: Rows, y: wp.array2d(dtype=real), mode: wp.array(dtype=wp.int64)):
    w = natural(wp.tid())
    h = mode[w]
    for i in range(rows.used[w, 2]):
        h = _mixed(h, wp.int64(rows.column[w, i]))
    for g in range(rows.used[w, 0]):
        first = rows.first_row[w, g]
        last = rows.first_row[w, g + 1]
        h = _mixed(h, wp.int64(last - first))
        if rows.kind[w, g] == ELLIPTIC:
            h = _mixed(h, wp.int64(cone_zone(rows, y, w, first, last)))
        else:
            for r in range(first, last):
                h = _mixed(h, wp.int64(row_zone(rows.kind[w, g], y[w, r], rows.weight[w, r], rows.scale[w, r])))
    mode[w] = h


@wp.kernel(enable_backward=False)
def _contact_kernel(
    count: wp.array(dtype=wp.int32),
    pair: wp.array2d(dtype=wp.int32),
    feature: wp.array2d(dtype=wp.int64),
    mode: wp.array(dtype=wp.int64),
):
    w = natural(wp.tid())
    h = _mixed(mode[w], wp.int64(count[w]))
    for k in range(wp.min(count[w], pair.shape[1])):
        h = _mixed(_mixed(h, wp.int64(pair[w, k])), feature[w, k])
    mode[w] = h


@wp.kernel(enable_backward=False)
def _role_kernel(count: wp.array(dtype=wp.int32), role: wp.array2d(dtype=wp.int32), mode: wp.array(dtype=wp.int64)):
    w = natural(wp.tid())
    h = _mixed(mode[w], wp.int64(count[w]))
    for k in range(wp.min(count[w], role.shape[1])):
        h = _mixed(h, wp.int64(role[w, k]))
    mode[w] = h


@wp.kernel(enable_backward=False)
def _saturation_kernel(saturated: wp.array2d(dtype=wp.int32), mode: wp.array(dtype=wp.int64)):
    w = natural(wp.tid())
    h = mode[w]
    for i in range(saturated.shape[1]):
        h = _mixed(h, wp.int64(saturated[w, i]))
    mode[w] = h


@wp.kernel(enable_backward=False)
def _touch_kernel(
    timestep: wp.array(dtype=real),
    first: wp.array2d(dtype=wp.int32),
    back: wp.array2d(dtype=real),
    pair: wp.array2d(dtype=wp.int32),
    mode: wp.array(dtype=wp.int64),
):
    """Whose touch each tree goes back to, and whether that is cut short."""
    w = natural(wp.tid())
    h = mode[w]
    for t in range(first.shape[1]):
        struck = int(-1)
        if first[w, t] >= 0:
            struck = pair[w, first[w, t]]
        h = _mixed(_mixed(h, wp.int64(struck)), wp.int64(wp.where(back[w, t] >= LONGEST * timestep[w], 1, 0)))
    mode[w] = h


def _launch(m: Model, kernel: wp.Kernel, inputs: list, mode: wp.array) -> None:
    wp.launch(kernel, dim=m.worlds, inputs=inputs, outputs=[mode], device=m.device, record_tape=False)


@contextmanager
def zones_into(m: Model, scratch: ConstraintScratch | None, mode: wp.array | None) -> Iterator[None]:
    """While open, each solve leaves the zones of its rows in `mode`, (W,), which starts at zero here."""
    if mode is None:
        yield
        return
    mode.zero_()

    def read() -> None:
        if scratch is not None:
            _launch(m, _zone_kernel, [scratch.rows, scratch.vectors.y], mode)

    with after_stage(_SOLVE, read):
        yield


def decisions_into(
    m: Model, first: Work, solves: Sequence[ConstraintWork], impact: ImpactWork | None, mode: wp.array
) -> None:
    """Adds what a step decided beside zones: ranges that cut, contacts of every solve, impacts."""
    _launch(m, _saturation_kernel, [first.saturated], mode)
    if not m.max_contacts:
        return
    if first.glue is not None:
        glue = first.glue.contacts
        _launch(m, _contact_kernel, [glue.count, glue.pair, glue.feature], mode)
    for c in solves:
        _launch(m, _contact_kernel, [c.contacts.count, c.contacts.pair, c.contacts.feature], mode)
    if impact is None:
        return
    assert impact.touch.constraint is not None
    pair = impact.touch.constraint.contacts.pair
    _launch(m, _touch_kernel, [m.world.timestep, impact.first, impact.back, pair], mode)
    free = impact.free.evaluations if isinstance(impact.free, RungeKuttaWork) else [impact.free]
    for work in (*free, impact.strike, impact.rest):
        assert work.constraint is not None
        _launch(m, _role_kernel, [work.constraint.contacts.count, work.constraint.role], mode)
