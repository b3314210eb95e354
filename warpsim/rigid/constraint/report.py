"""What the constraint stage tells about a step: solver status, contacts, penetration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import warp as wp

from warpsim.core.indexing import natural
from warpsim.core.precision import PRECISION, real
from warpsim.rigid.model.fields import report_fields
from warpsim.rigid.model.model import Model
from warpsim.rigid.work.constraint_work import ConstraintWork
from warpsim.solve.newton import CONVERGED, NOT_DEFINITE, STATUS_TEXT, TOO_FEW_ITERATIONS


@wp.kernel(enable_backward=False)
def _report_kernel(
    # work in
    status: wp.array2d(dtype=wp.int32),
    error: wp.array(dtype=real),
    count: wp.array(dtype=wp.int32),
    distance: wp.array2d(dtype=real),
    # out
    iterations: wp.array(dtype=wp.int32),
    code: wp.array(dtype=wp.int32),
    solver_error: wp.array(dtype=real),
    contacts: wp.array(dtype=wp.int32),
    penetration: wp.array(dtype=real),
):
    w = natural(wp.tid())
    deepest = real(0.0)
    for k in range(wp.min(count[w], distance.shape[1])):
        deepest = wp.max(deepest, -distance[w, k])
    if iterations:
        iterations[w] = status[w, 0]
    if code:
        code[w] = status[w, 1]
    if solver_error:
        solver_error[w] = error[w]
    if contacts:
        contacts[w] = count[w]
    if penetration:
        penetration[w] = deepest


@wp.func
def _graver(a: int, b: int) -> int:
    """The worse of two status codes: not definite, too few iterations, at rounding, converged."""
    if a == NOT_DEFINITE or b == NOT_DEFINITE:
        return int(NOT_DEFINITE)
    if a == TOO_FEW_ITERATIONS or b == TOO_FEW_ITERATIONS:
        return int(TOO_FEW_ITERATIONS)
    return wp.max(a, b)


@wp.kernel(enable_backward=False)
def _worst_kernel(
    # work in
    status: wp.array2d(dtype=wp.int32),
    error: wp.array(dtype=real),
    # out
    iterations: wp.array(dtype=wp.int32),
    code: wp.array(dtype=wp.int32),
    solver_error: wp.array(dtype=real),
):
    w = natural(wp.tid())
    if iterations:
        iterations[w] = wp.max(iterations[w], status[w, 0])
    if code:
        code[w] = _graver(code[w], status[w, 1])
    if solver_error:
        solver_error[w] = wp.max(solver_error[w], error[w])


def report(m: Model, solves: Sequence[ConstraintWork], outputs: Mapping[str, wp.array]) -> None:
    """Fills those of `report_fields` that are in `outputs`.

    Args:
        m: The model.
        solves: Of the step, in their order: contacts are the first one's, the solver's status is the worst.
        outputs: By name.
    """
    wanted = {f.name: outputs[f.name] for f in report_fields(m) if f.name in outputs}
    if not wanted:
        return
    if not solves:
        for array in wanted.values():
            array.zero_()
        return
    out, first = [wanted.get(f.name) for f in report_fields(m)], solves[0]

    def launch(kernel: wp.Kernel, inputs: list, outputs: list) -> None:
        wp.launch(kernel, dim=m.worlds, inputs=inputs, outputs=outputs, device=m.device, record_tape=False)

    launch(_report_kernel, [first.status, first.error, first.contacts.count, first.contacts.distance], out)
    if any(array is not None for array in out[:3]):
        for c in solves[1:]:
            launch(_worst_kernel, [c.status, c.error], out[:3])


ACCEPTED_RESIDUAL = 1e-6 if PRECISION == "float64" else 1e-2
"""Residual up to which a solve that ended above its tolerance counts as converged: what rounding leaves of stiff rows
lies below it, and such a residual moves a gradient by less than differences can show."""


def unsolved(solves: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray | None:
    """Residuals of the worst solves that did not converge, 0 elsewhere; None: all converged.

    Args:
        solves: Status (…, 2) and error (…) of each solve, as in `ConstraintWork`.
    """
    doubtful = [(status[..., 1], error) for status, error in solves if status[..., 1].any()]  # CONVERGED is 0
    if not doubtful:
        return None
    worst = np.zeros(doubtful[0][1].shape)
    for code, error in doubtful:
        failed = (code == int(NOT_DEFINITE)) | ((code != int(CONVERGED)) & ~(error <= ACCEPTED_RESIDUAL))
        residual = np.where(np.isfinite(error) & (error > 0.0), error, np.inf)
        worst = np.maximum(worst, np.where(failed, residual, 0.0))
    return worst


def solver_text(c: ConstraintWork, world: int) -> str:
    """The solver's status in one world, in words."""
    iterations, code = (int(x) for x in c.status.numpy()[world])
    return f"{STATUS_TEXT[code]} after {iterations} iterations, gradient {float(c.error.numpy()[world]):.1e}"
