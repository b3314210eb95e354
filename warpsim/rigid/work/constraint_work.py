"""What the constraint stage keeps of a step for its adjoint, and the scratch it works in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import warp as wp

from warpsim.collision.contacts import Contacts, SearchWork
from warpsim.core.precision import real, vec6
from warpsim.rigid.model.model import Model
from warpsim.rigid.work.glue_work import contact_space
from warpsim.rigid.work.row_settings import (
    ContactSettings,
    EqualitySettings,
    JointRowSettings,
    LoopRowSettings,
    TendonRowSettings,
)
from warpsim.scene.description import EQUALITY_KINDS
from warpsim.solve.newton import NewtonVectors, allocate_vectors
from warpsim.solve.rows import RowCapacity, Rows, allocate_rows
from warpsim.solve.sparsity import hessian_sizes
from warpsim.tape.arena import Arena


@dataclass
class ConstraintWork:
    """Intermediates of one evaluation; mc contact places per world."""

    contacts: Contacts
    soft_contacts: Contacts  # those the adjoint sees: others only if softening acts in the backward pass alone
    role: wp.array  # (W, mc) int32: COMPLIANT … HELD; empty where all contacts are compliant
    lift: wp.array  # (W, mc), m/s, in an impact's solve: see `impact`; else empty
    contact_force: wp.array  # (W, mc) vec6, N and N·m: (normal, tangents, torsion, rolling) in the contact's frame
    qdd: wp.array  # (W, nv): the solver's a*; the step's own qdd where the integrator adds nothing to it
    qdd_fixed: wp.array  # the memory of qdd, without gradient
    twist: wp.array  # (W, nv + 1) vec6: twists if a* were the velocity
    bias: (
        wp.array
    )  # (W, nv + 1) vec6: spatial accelerations if q̈ were zero, gravity left out; with equalities of bodies
    acceleration: wp.array  # (W, nv + 1) vec6, gravity included
    body_force: wp.array  # (W, nbody) vec6
    residual: wp.array  # (W, nv): of the equation of motion at a*, constraint forces included
    factor: wp.array  # (W, …): of H at a*, no gradient
    envelope: wp.array  # (W, …) int32: which entries the factor holds
    status: wp.array  # (W, 2) int32: iterations, code of `newton.STATUS_TEXT`
    error: wp.array  # (W,): scaled norm of the solver's gradient


@dataclass
class ConstraintScratch:
    """Untaped space and fixed tables, one set for all steps of a program."""

    contact_settings: ContactSettings
    soft_settings: ContactSettings  # those the adjoint sees
    reach: wp.array  # (W, np), m: distance below which softened contacts act
    equality_settings: EqualitySettings
    joint_settings: JointRowSettings
    tendon_settings: TendonRowSettings
    loop_settings: LoopRowSettings
    search: SearchWork
    rows: Rows
    vectors: NewtonVectors
    residual: wp.array  # (W, nv): −M a*, what the integrator's solve takes as its right-hand side, negated


def make_constraint_work(m: Model, arena: Arena, qdd: wp.array) -> ConstraintWork:
    """Allocates one evaluation's intermediates; `qdd` is the step's own acceleration."""
    w, mc = m.worlds, m.max_contacts

    def live(count: int, dtype: type) -> wp.array:
        return arena.array((w, count), dtype)

    def fixed(count: int, dtype: type) -> wp.array:
        return arena.array((w, count), dtype, differentiable=False)

    contacts = contact_space(m, arena)
    solver_qdd = live(m.nv, real) if m.two_stage else qdd
    factor_size, list_size = hessian_sizes(m.sparsity)
    return ConstraintWork(
        contacts=contacts,
        soft_contacts=contact_space(m, arena) if m.softened_backward else contacts,
        role=fixed(mc if m.has_impacts else 0, wp.int32),
        lift=live(0, real),
        contact_force=live(mc, vec6),
        qdd=solver_qdd,
        qdd_fixed=wp.array(ptr=solver_qdd.ptr, shape=solver_qdd.shape, dtype=real, device=m.device),
        twist=live(m.nv + 1, vec6),
        bias=live(m.nv + 1 if m.equality_topology.count else 0, vec6),
        acceleration=live(m.nv + 1 if m.two_stage else 0, vec6),
        body_force=live(m.nbody if m.two_stage else 0, vec6),
        residual=live(m.nv if m.two_stage else 0, real),
        factor=fixed(factor_size, real),
        envelope=fixed(list_size, wp.int32),
        status=fixed(2, wp.int32),
        error=arena.array((w,), real, differentiable=False),
    )


def _chain_lengths(m: Model) -> np.ndarray:
    """(nbody,) dofs that move each body."""
    start, last = m.topology.row_start.numpy(), m.topology.body_last_dof.numpy()
    return np.array([start[k] - start[k - 1] if k else 0 for k in last])


_EQUALITY_ROWS = {"connect": 3, "weld": 6, "joint": 1, "tendon": 1, "distance": 1, "axes": 6}
"""At most."""


def _equality_capacity(m: Model, capacity: RowCapacity) -> RowCapacity:
    """With the rows of all equalities."""
    x = m.equality_topology
    bodies, terms = _chain_lengths(m), np.diff(m.tendon_topology.start.numpy())
    for code, *ends in zip(x.kind.numpy(), x.a.numpy(), x.b.numpy(), strict=True):
        kind = EQUALITY_KINDS[code]
        sizes = {"joint": np.ones(len(m.layout.joint_names), int), "tendon": terms}.get(kind, bodies)
        capacity = capacity.plus(1, _EQUALITY_ROWS[kind], int(sum(sizes[i] for i in ends if i >= 0)))
    return capacity


def _loop_capacity(m: Model, capacity: RowCapacity) -> RowCapacity:
    """With the rows of limits and drives of joints that close loops."""
    chains, x = _chain_lengths(m), m.equality_topology
    a, b = x.a.numpy(), x.b.numpy()
    for i in m.loop_topology.equality.numpy():
        capacity = capacity.plus(2, 1, int(chains[a[i]] + chains[b[i]]))
    return capacity


def _capacity(m: Model, joint: JointRowSettings, tendon: TendonRowSettings) -> RowCapacity:
    capacity = RowCapacity().plus(joint.friction_count, 1, 1).plus(2 * joint.limit_count, 1, 3)
    terms, limited = np.diff(m.tendon_topology.start.numpy()), tendon.limit_tendon.numpy()
    for i in [*tendon.friction_tendon.numpy(), *limited, *limited]:
        capacity = capacity.plus(1, 1, int(terms[i]))
    capacity = _loop_capacity(m, _equality_capacity(m, capacity))
    if m.max_contacts:
        capacity = capacity.plus(m.max_contacts, *_contact_rows(m))
    return capacity


def _contact_rows(m: Model) -> tuple[int, int]:
    """Most rows and columns of a contact."""
    chains = _chain_lengths(m)[m.shape_body.numpy()]
    pairs = m.pair_table.pair_shapes.numpy()
    columns = int((chains[pairs[:, 0]] + chains[pairs[:, 1]]).max())
    dim = int(m.contact_mixing.condim.numpy().max())
    rows = 2 * (dim - 1) if m.options.cone == "pyramidal" and dim > 1 else dim
    return rows, min(columns, m.nv)


def contact_bytes(m: Model) -> int:
    """Bytes of all places for contacts: in the scratch of a program, and in one evaluation's intermediates."""
    if not m.max_contacts:
        return 0
    number = wp.types.type_size_in_bytes(real)
    rows, columns = _contact_rows(m)
    scratch = 6 * rows * number + columns * (rows * number + 4) + 5 * 4  # `Rows` and `NewtonVectors`
    values = 2 * 4 + (3 + 1 + 3 + 9 + 6) * number  # `Contacts`, and the force
    adjoints = (1 + 3 + 9 + 6) * number
    return m.worlds * m.max_contacts * (scratch + values + adjoints)


def _integers(m: Model, values: Sequence[int] | np.ndarray) -> wp.array:
    return wp.array(np.asarray(values, np.int32), dtype=wp.int32, device=m.device)


def _limited(m: Model, group: str) -> np.ndarray:
    """Joints ("limit") or tendons ("tendon_limit") with a limit in any world."""
    return np.flatnonzero(np.isfinite(m.authored[f"{group}.range"].numpy()).any(axis=(0, 2)))


def _rough(m: Model, group: str) -> np.ndarray:
    """Dofs or tendons with dry friction in any world, or whose friction is differentiated."""
    loss = m.authored[f"{group}.friction_loss"]
    return np.flatnonzero((loss.numpy() > 0).any(axis=0) | bool(loss.requires_grad))


def _joint_settings(m: Model) -> JointRowSettings:
    layout = m.layout
    held = m.topology.dof_prescribed.numpy() == 1
    limited = [j for j in _limited(m, "limit") if not held[layout.joint_dof[j]]]
    rough = [d for d in _rough(m, "limit") if not held[d]]
    settings = JointRowSettings()
    settings.limit_count = len(limited)
    settings.limit_joint = _integers(m, limited)
    settings.limit_q = _integers(m, layout.joint_q[limited])
    settings.limit_dof = _integers(m, layout.joint_dof[limited])
    settings.limit_ball = _integers(m, [int(layout.joint_kinds[j] == "ball") for j in limited])
    settings.friction_count = len(rough)
    settings.friction_dof = _integers(m, rough)
    settings.safe = int(m.options.limit_timeconst)
    return settings


def _tendon_settings(m: Model) -> TendonRowSettings:
    limited, rough = _limited(m, "tendon_limit"), _rough(m, "tendon_limit")
    settings = TendonRowSettings()
    settings.limit_count = len(limited)
    settings.limit_tendon = _integers(m, limited)
    settings.friction_count = len(rough)
    settings.friction_tendon = _integers(m, rough)
    settings.safe = int(m.options.limit_timeconst)
    return settings


def _equality_settings(m: Model) -> EqualitySettings:
    kinds = [EQUALITY_KINDS[code] for code in m.equality_topology.kind.numpy()]
    couplings = [i for i, kind in enumerate(kinds) if kind in ("joint", "tendon")]
    axes = [i for i, kind in enumerate(kinds) if kind == "axes"]
    bodies = [i for i in range(len(kinds)) if i not in couplings and i not in axes]
    settings = EqualitySettings()
    settings.body_count = len(bodies)
    settings.body_equality = _integers(m, bodies)
    settings.axes_count = len(axes)
    settings.axes_equality = _integers(m, axes)
    settings.coupling_count = len(couplings)
    settings.coupling = _integers(m, couplings)
    settings.joint_q = _integers(m, m.layout.joint_q)
    settings.joint_dof = _integers(m, m.layout.joint_dof)
    settings.safe = int(m.options.limit_timeconst)
    return settings


def _loop_settings(m: Model) -> LoopRowSettings:
    loop = m.drive_topology.loop.numpy()
    driven = np.flatnonzero(loop >= 0) if m.implicit_drives else np.zeros(0, int)
    driven = driven[np.argsort(loop[driven], kind="stable")]
    settings = LoopRowSettings()
    settings.count = m.loop_topology.count
    settings.drive_start = _integers(m, np.searchsorted(loop[driven], np.arange(m.loop_topology.count + 1)))
    settings.drive = _integers(m, driven)
    settings.drive_cut = _integers(m, m.nu + driven)
    settings.safe = int(m.options.limit_timeconst)
    return settings


def contact_settings(m: Model, softening: float) -> ContactSettings:
    """What is fixed about a model's contacts, softened by so many meters."""
    settings = ContactSettings()
    settings.pair_shapes = m.pair_table.pair_shapes
    settings.pair_dim = m.contact_mixing.condim
    settings.shape_body = m.shape_body
    settings.pyramidal = int(m.options.cone == "pyramidal")
    settings.safe = int(m.options.limit_timeconst)
    settings.root_impratio = float(np.sqrt(m.options.impratio))
    settings.softening = softening
    settings.roles = int(m.has_impacts)
    settings.impact_speed = m.options.impact_speed
    return settings


def make_constraint_scratch(m: Model) -> ConstraintScratch:
    """Allocates the scratch of a program."""
    joint, tendon = _joint_settings(m), _tendon_settings(m)
    capacity = _capacity(m, joint, tendon)
    return ConstraintScratch(
        contact_settings=contact_settings(m, 0.0 if m.softened_backward else m.options.contact_softening),
        soft_settings=contact_settings(m, m.options.contact_softening),
        reach=wp.zeros((m.worlds, m.npair), dtype=real, device=m.device),
        equality_settings=_equality_settings(m),
        joint_settings=joint,
        tendon_settings=tendon,
        loop_settings=_loop_settings(m),
        search=SearchWork.allocate(m.pair_table, m.worlds),
        rows=allocate_rows(m.worlds, capacity, m.device),
        vectors=allocate_vectors(m.worlds, capacity.rows, m.nv, m.device),
        residual=wp.zeros((m.worlds, m.nv), dtype=real, device=m.device),
    )
