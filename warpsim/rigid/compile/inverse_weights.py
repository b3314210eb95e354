"""MuJoCo's `body_invweight0`, `dof_invweight0` and `tendon_invweight0`, with exact derivatives.

A weight is a mean of j M⁻¹ jᵀ over a few Jacobian rows j at the reference configuration: motion of a body's center of
mass along three axes, its rotation about them, a dof, a tendon. With x = M⁻¹jᵀ found off the tape and held fixed, the
taped kernel evaluates

    2 j x − xᵀ M x,

which equals j M⁻¹ jᵀ and, x being the stationary point of this expression, has the same derivative in j and M (envelope
theorem). j x is a velocity and xᵀMx twice a kinetic energy, both read off the twists of bodies if x were the velocity;
so M needs no adjoint.
"""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import warp as wp

from warpsim.core.precision import quat, real, vec2, vec3, vec6
from warpsim.core.spatial import angular, linear, sym_mul
from warpsim.rigid.compile.weight_rows import DOF, IMMOBILE, ROTATION, SLIDING, TRANSLATION, WeightRows, weight_rows
from warpsim.rigid.dynamics.kinematics import kinematics
from warpsim.rigid.dynamics.mass_matrix import mass_matrix
from warpsim.rigid.model.model import Model
from warpsim.rigid.model.tendons import TendonTopology
from warpsim.rigid.model.topology import Topology
from warpsim.rigid.work.tendon_work import TendonWork, make_tendon_work, tendon_motion
from warpsim.solve.sparse_ldl import ldl_factor
from warpsim.tape.program import Arrays

_TAPED = ("link_position", "link_rotation", "axis", "com", "inertia", "velocity")


@wp.kernel(enable_backward=False)
def _factor_kernel(t: Topology, matrix: wp.array2d(dtype=real), factor: wp.array2d(dtype=real)):
    w = wp.tid()
    for e in range(t.row_start[t.nv]):
        factor[w, e] = matrix[w, e]
    ldl_factor(t.nv, t.row_start, t.row_column, w, factor)


@wp.func
def _point_rate(twist: vec6, arm: vec3) -> vec3:
    return linear(twist) + wp.cross(angular(twist), arm)


@wp.kernel(enable_backward=False)
def _response_kernel(
    # topology, parameters
    t: Topology,
    tendon: TendonTopology,
    rows: WeightRows,
    moment: wp.array2d(dtype=real),
    # work in
    axis: wp.array2d(dtype=vec6),
    com: wp.array2d(dtype=vec3),
    factor: wp.array2d(dtype=real),
    # out
    x: wp.array2d(dtype=real),
):
    """x = M⁻¹jᵀ, over the dofs of the row's tree."""
    w, r = wp.tid()
    first = rows.first[r]
    index = rows.index[r]
    begin = rows.tree_dof_start[rows.tree[r]]
    size = rows.tree_dof_start[rows.tree[r] + 1] - begin
    for i in range(size):
        x[w, first + i] = real(0.0)
    if rows.kind[r] == TRANSLATION or rows.kind[r] == ROTATION:
        last = t.body_last_dof[index]
        for e in range(t.row_start[last - 1], t.row_start[last]):
            d = t.row_column[e]
            if t.dof_prescribed[d] == 0:
                rate = angular(axis[w, d])
                if rows.kind[r] == TRANSLATION:
                    rate = _point_rate(axis[w, d], com[w, index])
                x[w, first + rows.dof_place[d]] = rate[rows.axis[r]]
    elif rows.kind[r] == DOF:
        x[w, first + rows.dof_place[index]] = real(1.0)
    else:
        for k in range(tendon.start[index], tendon.start[index + 1]):
            d = tendon.dof[k]
            if t.body_tree[t.dof_body[d]] == rows.tree[r]:
                x[w, first + rows.dof_place[d]] = x[w, first + rows.dof_place[d]] + moment[w, k]
    # LᵀDL solve (see `sparse_ldl`), restricted to the tree
    for n in range(size):
        i = size - 1 - n
        d = rows.tree_dof[begin + i]
        for e in range(t.row_start[d] + 1, t.row_start[d + 1]):
            c = first + rows.dof_place[t.row_column[e]]
            x[w, c] = x[w, c] - factor[w, e] * x[w, first + i]
    for i in range(size):
        d = rows.tree_dof[begin + i]
        x[w, first + i] = x[w, first + i] / factor[w, t.row_start[d]]
        for e in range(t.row_start[d] + 1, t.row_start[d + 1]):
            x[w, first + i] = x[w, first + i] - factor[w, e] * x[w, first + rows.dof_place[t.row_column[e]]]


@wp.func
def _twist(
    t: Topology,
    rows: WeightRows,
    axis: wp.array2d(dtype=vec6),
    x: wp.array2d(dtype=real),
    w: int,
    first: int,
    body: int,
) -> vec6:
    """Twist of a body if x were the velocity."""
    total = vec6()
    last = t.body_last_dof[body]
    for e in range(t.row_start[last - 1], t.row_start[last]):
        d = t.row_column[e]
        total += axis[w, d] * x[w, first + rows.dof_place[d]]
    return total


@wp.func
def _tendon_rate(
    t: Topology,
    tendon: TendonTopology,
    rows: WeightRows,
    moment: wp.array2d(dtype=real),
    x: wp.array2d(dtype=real),
    w: int,
    r: int,
) -> real:
    total = real(0.0)
    for k in range(tendon.start[rows.index[r]], tendon.start[rows.index[r] + 1]):
        d = tendon.dof[k]
        if t.body_tree[t.dof_body[d]] == rows.tree[r]:
            total += moment[w, k] * x[w, rows.first[r] + rows.dof_place[d]]
    return total


@wp.func
def _double_energy(
    t: Topology,
    rows: WeightRows,
    mass: wp.array2d(dtype=real),
    armature: wp.array2d(dtype=real),
    axis: wp.array2d(dtype=vec6),
    com: wp.array2d(dtype=vec3),
    inertia: wp.array2d(dtype=vec6),
    x: wp.array2d(dtype=real),
    w: int,
    r: int,
) -> real:
    """xᵀMx."""
    tree = rows.tree[r]
    first = rows.first[r]
    total = real(0.0)
    for k in range(rows.tree_body_start[tree], rows.tree_body_start[tree + 1]):
        b = rows.tree_body[k]
        twist = _twist(t, rows, axis, x, w, first, b)
        v = _point_rate(twist, com[w, b])
        omega = angular(twist)
        total += mass[w, b] * wp.dot(v, v) + wp.dot(omega, sym_mul(inertia[w, b], omega))
    for k in range(rows.tree_dof_start[tree], rows.tree_dof_start[tree + 1]):
        d = rows.tree_dof[k]
        rate = x[w, first + rows.dof_place[d]]
        total += armature[w, d] * rate * rate
    return total


@wp.func
def _tendon_energy(
    t: Topology,
    tendon: TendonTopology,
    rows: WeightRows,
    armature: wp.array2d(dtype=real),
    moment: wp.array2d(dtype=real),
    x: wp.array2d(dtype=real),
    w: int,
    r: int,
) -> real:
    """What inertia along tendons adds to xᵀMx; x of prescribed dofs is zero."""
    total = real(0.0)
    for n in range(tendon.pair_count):
        a = tendon.pair_a[n]
        b = tendon.pair_b[n]
        if t.body_tree[t.dof_body[tendon.dof[a]]] == rows.tree[r]:
            rate_a = moment[w, a] * x[w, rows.first[r] + rows.dof_place[tendon.dof[a]]]
            rate_b = moment[w, b] * x[w, rows.first[r] + rows.dof_place[tendon.dof[b]]]
            total += armature[w, tendon.pair_tendon[n]] * rate_a * rate_b
    return total


@wp.kernel
def _row_kernel(
    # topology, parameters
    t: Topology,
    tendon: TendonTopology,
    rows: WeightRows,
    mass: wp.array2d(dtype=real),
    armature: wp.array2d(dtype=real),
    tendon_armature: wp.array2d(dtype=real),
    moment: wp.array2d(dtype=real),
    # work in
    axis: wp.array2d(dtype=vec6),
    com: wp.array2d(dtype=vec3),
    inertia: wp.array2d(dtype=vec6),
    x: wp.array2d(dtype=real),
    # out
    value: wp.array2d(dtype=real),
):
    # One thread per world: all rows of a tree add to the same adjoints, in a fixed order.
    w = wp.tid()
    for r in range(rows.count):
        energy = _double_energy(t, rows, mass, armature, axis, com, inertia, x, w, r)
        energy += _tendon_energy(t, tendon, rows, tendon_armature, moment, x, w, r)
        index = rows.index[r]
        if rows.kind[r] == TRANSLATION:
            rate = _point_rate(_twist(t, rows, axis, x, w, rows.first[r], index), com[w, index])
            value[w, r] = real(2.0) * rate[rows.axis[r]] - energy
        elif rows.kind[r] == ROTATION:
            turn = angular(_twist(t, rows, axis, x, w, rows.first[r], index))
            value[w, r] = real(2.0) * turn[rows.axis[r]] - energy
        elif rows.kind[r] == DOF:
            value[w, r] = real(2.0) * x[w, rows.first[r] + rows.dof_place[index]] - energy
        else:
            value[w, r] = real(2.0) * _tendon_rate(t, tendon, rows, moment, x, w, r) - energy


@wp.func
def _sum(value: wp.array2d(dtype=real), w: int, first: int, count: int) -> real:
    total = real(0.0)
    for r in range(first, first + count):
        total += value[w, r]
    return total


@wp.kernel
def _weight_kernel(
    # topology, parameters
    t: Topology,
    rows: WeightRows,
    mass: wp.array2d(dtype=real),
    # work in
    value: wp.array2d(dtype=real),
    # out
    body: wp.array2d(dtype=vec2),
    dof: wp.array2d(dtype=real),
    tendon: wp.array2d(dtype=real),
):
    w = wp.tid()
    third = real(1.0) / real(3.0)
    for b in range(t.nbody):
        r = rows.body_row[b]
        if r == IMMOBILE:
            body[w, b] = vec2(real(0.0), real(0.0))
        elif r == SLIDING:
            body[w, b] = vec2(real(1.0) / mass[w, b], real(0.0))
        else:
            body[w, b] = vec2(_sum(value, w, r, 3) * third, _sum(value, w, r + 3, 3) * third)
    for d in range(t.nv):
        r = rows.dof_row[d]
        if r == IMMOBILE:
            dof[w, d] = real(0.0)
        elif r == SLIDING:
            dof[w, d] = real(1.0) / mass[w, t.dof_body[d]]
        else:
            dof[w, d] = _sum(value, w, r, rows.dof_rows[d]) / real(rows.dof_rows[d])
    for k in range(tendon.shape[1]):
        tendon[w, k] = _sum(value, w, rows.tendon_row[k], rows.tendon_row[k + 1] - rows.tendon_row[k])


def _reference_work(m: Model) -> Any:
    """What `kinematics` and `mass_matrix` write, of `Work` and `Scratch`."""

    def array(count: int, dtype: type, *, taped: bool) -> wp.array:
        return wp.zeros((m.worlds, count), dtype=dtype, device=m.device, requires_grad=taped)

    counts = {
        **dict(link_position=(m.nlink, vec3), link_rotation=(m.nlink, quat), axis=(m.nv, vec6)),
        **dict(com=(m.nbody, vec3), inertia=(m.nbody, vec6), velocity=(m.nv + 1, vec6)),
        **dict(origin=(m.ntree, vec3), mass_matrix=(m.nm, real), factor=(m.nm, real)),
        **dict(composite_mass=(m.nbody, real), composite_moment=(m.nbody, vec3), composite_inertia=(m.nbody, vec6)),
    }
    return SimpleNamespace(
        **{name: array(count, dtype, taped=name in _TAPED) for name, (count, dtype) in counts.items()},
        tendon=make_tendon_work(m, partial(array, taped=True), partial(array, taped=False)),
    )


class InverseWeights:
    """Derives `Model.weight`; made once the model's masses have been derived."""

    def __init__(self, model: Model):
        self._rows, length = weight_rows(model)
        self._reference = Arrays("state", {"q": model.joint.reference, "qd": model.zero_dofs})
        self._work = _reference_work(model)
        self._response = wp.zeros((model.worlds, length), dtype=real, device=model.device)
        shape = (model.worlds, self._rows.count)
        self._value = wp.zeros(shape, dtype=real, device=model.device, requires_grad=True)

    def run(self, m: Model) -> None:
        """Fills `m.weight`; taped if a tape records."""
        work, rows, weight = self._work, self._rows, m.weight
        kinematics(m, self._reference, work)
        mass_matrix(m, work, work)
        self._respond(m)
        wp.launch(
            _row_kernel,
            dim=m.worlds,
            inputs=[
                m.topology,
                m.tendon_topology,
                rows,
                m.body.mass,
                m.joint.armature,
                m.tendon.armature,
                tendon_motion(m, work.tendon).moment,
                work.axis,
                work.com,
                work.inertia,
                self._response,
            ],
            outputs=[self._value],
            device=m.device,
        )
        wp.launch(
            _weight_kernel,
            dim=m.worlds,
            inputs=[m.topology, rows, m.body.mass, self._value],
            outputs=[weight.body, weight.dof, weight.tendon],
            device=m.device,
        )
        if work.tendon is not None:
            wp.copy(weight.tendon_length, work.tendon.length)

    def zero_adjoints(self) -> None:
        """Clears the adjoints of intermediates, before a backward pass."""
        self._value.grad.zero_()
        for name in _TAPED:
            getattr(self._work, name).grad.zero_()
        tendon: TendonWork | None = self._work.tendon
        if tendon is not None:
            for array in (tendon.span_length, tendon.pull, tendon.length, tendon.moment, tendon.bias, tendon.drift):
                array.grad.zero_()

    def _respond(self, m: Model) -> None:
        """x = M⁻¹jᵀ of all rows, untaped."""
        work, device = self._work, m.device
        wp.launch(
            _factor_kernel,
            dim=m.worlds,
            inputs=[m.topology, work.mass_matrix],
            outputs=[work.factor],
            device=device,
            record_tape=False,
        )
        wp.launch(
            _response_kernel,
            dim=(m.worlds, self._rows.count),
            inputs=[
                m.topology,
                m.tendon_topology,
                self._rows,
                tendon_motion(m, work.tendon).moment,
                work.axis,
                work.com,
                work.factor,
            ],
            outputs=[self._response],
            device=device,
            record_tape=False,
        )
