"""Which Jacobian rows the inverse weights of bodies, dofs and tendons are made of: integer tables.

A row belongs to one tree and its response M⁻¹jᵀ has one number per dof of that tree, so hundreds of free bodies stay
cheap. A tendon over several trees has one row in each; the mass matrix has no entries between trees, so their weights
add up.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from warpsim.rigid.model.model import Model

TRANSLATION = wp.constant(0)
ROTATION = wp.constant(1)
DOF = wp.constant(2)
TENDON = wp.constant(3)

IMMOBILE = wp.constant(-1)
SLIDING = wp.constant(-2)

_ALIGNED = 1e-6
"""How far (relative) a body's inertial frame may be from its own to count as the same, as in MuJoCo."""


@wp.struct
class WeightRows:
    """Rows, trees, and the rows that make up each weight."""

    count: wp.int32
    kind: wp.array(dtype=wp.int32)  # (count,) TRANSLATION … TENDON
    index: wp.array(dtype=wp.int32)  # (count,) body, dof or tendon
    axis: wp.array(dtype=wp.int32)  # (count,) 0, 1, 2: world axis, of bodies
    tree: wp.array(dtype=wp.int32)  # (count,)
    first: wp.array(dtype=wp.int32)  # (count,) where the row's response begins
    tree_dof_start: wp.array(dtype=wp.int32)  # (ntree + 1,)
    tree_dof: wp.array(dtype=wp.int32)  # dofs of the trees, rising
    tree_body_start: wp.array(dtype=wp.int32)  # (ntree + 1,)
    tree_body: wp.array(dtype=wp.int32)  # moving bodies of the trees
    dof_place: wp.array(dtype=wp.int32)  # (nv,) place of a dof within its tree
    body_row: wp.array(dtype=wp.int32)  # (nbody,) first of six rows, IMMOBILE or SLIDING
    dof_row: wp.array(dtype=wp.int32)  # (nv,) first row of the mean, IMMOBILE or SLIDING
    dof_rows: wp.array(dtype=wp.int32)  # (nv,) rows of the mean: 3 for axes of free and ball joints, else 1
    tendon_row: wp.array(dtype=wp.int32)  # (ntendon + 1,) first row


def _starts(lists: list[list[int]]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum([len(x) for x in lists])])


def sliding_bodies(m: Model) -> np.ndarray:
    """(nbody,) bool: bodies that MuJoCo calls simple and without rotation, whose weight is 1/mass in every direction.

    They have slides along their own axes only, no children, the world (or a body fixed to it) as parent, and their own
    frame as inertial frame. The decision is made once, from the values of world 0 when the model is first derived.
    """
    t = m.topology
    parent, last = t.body_parent.numpy(), t.body_last_dof.numpy()
    com, inertia = m.body.com.numpy()[0], m.body.inertia.numpy()[0]
    anchor, axis = m.joint.anchor.numpy()[0], m.joint.axis.numpy()[0]
    kinds = np.array(m.layout.joint_kinds, object)
    result = np.zeros(m.nbody, bool)
    for b in range(1, m.nbody):
        joints = np.flatnonzero(m.layout.joint_body == b)
        rooted = last[parent[b]] == 0 and parent[parent[b]] == 0
        if not len(joints) or not rooted or b in parent[1:] or any(kinds[joints] != "slide"):
            continue
        aligned = (np.abs(axis[joints]) > 1e-14).sum(1) == 1
        same_frame = np.abs(com[b]).max() < _ALIGNED and np.abs(inertia[b, 3:]).max() <= _ALIGNED * inertia[b].max()
        result[b] = aligned.all() and np.abs(anchor[joints]).max() < _ALIGNED and same_frame
    return result


class _Rows:
    """Collects rows in order."""

    def __init__(self, tree_sizes: list[int]):
        self.sizes = tree_sizes
        self.columns: list[tuple[int, int, int, int, int]] = []
        self.length = 0

    def add(self, kind: int, index: int, axis: int, tree: int) -> None:
        self.columns.append((kind, index, axis, tree, self.length))
        self.length += self.sizes[tree]


def weight_rows(m: Model) -> tuple[WeightRows, int]:
    """The tables of a model whose masses have been derived, and the length of all responses of a world."""
    t = m.topology
    dof_body, prescribed = t.dof_body.numpy(), t.dof_prescribed.numpy()
    body_tree, last, dof_prev = t.body_tree.numpy(), t.body_last_dof.numpy(), t.dof_prev.numpy()
    dof_tree = body_tree[dof_body] if m.nv else np.zeros(0, int)
    tree_dofs = [np.flatnonzero(dof_tree == k).tolist() for k in range(m.ntree)]
    tree_bodies = [[b for b in range(1, m.nbody) if last[b] and body_tree[b] == k] for k in range(m.ntree)]
    free = np.zeros(m.nv + 1, bool)  # after each dof: does any dof so far move of itself?
    for d in range(m.nv):
        free[d + 1] = free[dof_prev[d]] or not prescribed[d]
    sliding = sliding_bodies(m)
    rows = _Rows([len(x) for x in tree_dofs])

    body_row = np.full(m.nbody, -1)
    body_row[sliding] = -2
    for b in np.flatnonzero(free[last] & ~sliding).tolist():
        body_row[b] = len(rows.columns)
        for turning in (0, 1):
            for axis in range(3):
                rows.add(turning, b, axis, body_tree[b])
    dof_row, dof_rows = np.full(m.nv, -1), np.ones(m.nv, int)
    for j, kind in enumerate(m.layout.joint_kinds):
        size = 3 if kind in ("free", "ball") else 1
        for first in m.layout.joint_dof[j] + np.arange(0, 6 if kind == "free" else size, size):
            group = slice(first, first + size)
            dof_rows[group] = size
            if sliding[dof_body[first]]:
                dof_row[group] = -2
            elif not prescribed[first]:
                dof_row[group] = len(rows.columns)
                for d in range(first, first + size):
                    rows.add(2, d, 0, dof_tree[d])
    tendon_row = _tendon_rows(m, rows, dof_tree)
    return _to_device(m, rows, tree_dofs, tree_bodies, body_row, dof_row, dof_rows, tendon_row), rows.length


def _tendon_rows(m: Model, rows: _Rows, dof_tree: np.ndarray) -> list[int]:
    start, dof = m.tendon_topology.start.numpy(), m.tendon_topology.dof.numpy()
    result = [len(rows.columns)]
    for k in range(m.tendon_topology.count):
        for tree in sorted({int(dof_tree[d]) for d in dof[start[k] : start[k + 1]]}):
            rows.add(3, k, 0, tree)
        result.append(len(rows.columns))
    return result


def _to_device(m: Model, rows: _Rows, tree_dofs, tree_bodies, body_row, dof_row, dof_rows, tendon_row) -> WeightRows:
    place = np.zeros(m.nv, int)
    for dofs in tree_dofs:
        place[dofs] = np.arange(len(dofs))
    columns = np.array(rows.columns, int).reshape(-1, 5)
    tables = dict(
        kind=columns[:, 0],
        index=columns[:, 1],
        axis=columns[:, 2],
        tree=columns[:, 3],
        first=columns[:, 4],
        tree_dof_start=_starts(tree_dofs),
        tree_dof=[d for dofs in tree_dofs for d in dofs],
        tree_body_start=_starts(tree_bodies),
        tree_body=[b for bodies in tree_bodies for b in bodies],
        dof_place=place,
        body_row=body_row,
        dof_row=dof_row,
        dof_rows=dof_rows,
        tendon_row=tendon_row,
    )
    result = WeightRows()
    result.count = len(columns)
    for name, values in tables.items():
        setattr(result, name, wp.array(np.asarray(values, np.int32), dtype=wp.int32, device=m.device))
    return result
