"""What never changes in a model: counts and integer arrays, shared by all worlds.

A *link* is one joint's worth of motion: a body with n joints is a chain of n links, the last of which carries the
body's frame; a jointless body is one fixed link. Links let every array entry of the kinematic pass be written once,
which is what makes Warp's adjoint of that pass right. Index 0 of bodies and links is the world.

Dof recursions (velocity, acceleration) use arrays of length nv + 1 whose entry 0 is the world; `dof_prev`, `dof_base`
and `body_last_dof` point into them.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import warp as wp

from warpsim.core.errors import SceneError
from warpsim.scene.description import JOINT_DOF_SIZE, JOINT_Q_SIZE, Joint, Scene

FIXED = wp.constant(0)
FREE = wp.constant(1)
BALL = wp.constant(2)
HINGE = wp.constant(3)
SLIDE = wp.constant(4)
LINK_CODES = {"free": 1, "ball": 2, "hinge": 3, "slide": 4}


@wp.struct
class Topology:
    """Integer arrays read by the articulated stages; (n,) int32 each."""

    nbody: wp.int32  # bodies, the world included
    nlink: wp.int32  # links, the world included
    nv: wp.int32
    prescribed_count: wp.int32  # dofs whose acceleration is given (kinematic bodies)

    link_kind: wp.array(dtype=wp.int32)  # FIXED … SLIDE
    link_parent: wp.array(dtype=wp.int32)
    link_body: wp.array(dtype=wp.int32)
    link_first: wp.array(dtype=wp.int32)  # 1: nearest the parent, so the body's own offset comes before it
    link_joint: wp.array(dtype=wp.int32)  # -1 for fixed links
    link_q: wp.array(dtype=wp.int32)  # first coordinate in q
    link_dof: wp.array(dtype=wp.int32)  # first dof
    link_tree: wp.array(dtype=wp.int32)
    link_root: wp.array(dtype=wp.int32)  # 1: first link of its tree, which sets the tree's reference point

    body_parent: wp.array(dtype=wp.int32)
    body_link: wp.array(dtype=wp.int32)  # the link that carries the body's frame
    body_last_dof: wp.array(dtype=wp.int32)  # into arrays of length nv + 1
    body_tree: wp.array(dtype=wp.int32)

    dof_body: wp.array(dtype=wp.int32)
    dof_joint: wp.array(dtype=wp.int32)
    dof_prev: wp.array(dtype=wp.int32)  # the dof before this one on the way to the world, into arrays of length nv + 1
    dof_base: wp.array(dtype=wp.int32)  # whose velocity carries this dof's axis along
    dof_prescribed: wp.array(dtype=wp.int32)

    row_start: wp.array(
        dtype=wp.int32
    )  # (nv + 1,) rows of the mass matrix: dof, its parent dof, … the tree's first dof
    row_column: wp.array(dtype=wp.int32)  # (nm,)

    free_count: wp.int32  # trees that move as one free body, where their gyroscopic derivative is used
    free_dof: wp.array(dtype=wp.int32)  # (free_count,) first dof
    free_link: wp.array(dtype=wp.int32)  # (free_count,) the free joint's link
    free_start: wp.array(dtype=wp.int32)  # (free_count + 1,)
    free_body: wp.array(dtype=wp.int32)  # bodies of these trees


@dataclass(frozen=True)
class Layout:
    """Names and addresses on the host: how a scene's things map to indices."""

    body_names: tuple[str, ...]  # [0] is "" (world)
    joint_names: tuple[str, ...]
    joint_kinds: tuple[str, ...]
    joint_q: np.ndarray  # (njoint,) first coordinate
    joint_dof: np.ndarray  # (njoint,) first dof
    joint_body: np.ndarray  # (njoint,)
    site_names: tuple[str, ...]
    tendon_names: tuple[str, ...]
    actuator_names: tuple[str, ...]
    drive_names: tuple[str, ...]
    shape_names: tuple[str, ...]
    nq: int
    nv: int
    nm: int
    ntree: int

    def body(self, name: str | None) -> int:
        """Index of a body by name; None is the world."""
        return 0 if name is None else self.body_names.index(name)

    def joint(self, name: str) -> int:
        """Index of a joint by name."""
        return self.joint_names.index(name)


def order_bodies(scene: Scene) -> list[int]:
    """Indices of `scene.bodies` so that parents come before children, otherwise in the scene's own order."""
    index = {b.name: i for i, b in enumerate(scene.bodies)}
    order: list[int] = []
    placed: set[int] = set()
    pending = list(range(len(scene.bodies)))
    while pending:
        waiting = []
        for i in pending:
            parent = scene.bodies[i].parent
            if parent is None or index[parent] in placed:
                order.append(i)
                placed.add(i)
            else:
                waiting.append(i)
        if len(waiting) == len(pending):
            names = ", ".join(scene.bodies[i].name for i in waiting[:5])
            raise SceneError(f"bodies {names} are their own ancestors; give one of them a parent outside the cycle")
        pending = waiting
    return order


class _Builder:
    """Walks the bodies in order and appends links and dofs."""

    def __init__(self, scene: Scene):
        self.scene = scene
        self.links: dict[str, list[int]] = {
            k: [v] for k, v in dict(kind=0, parent=0, body=0, first=0, joint=-1, q=0, dof=0, tree=0, root=0).items()
        }
        self.bodies: dict[str, list[int]] = {k: [0] for k in ("parent", "link", "last_dof", "tree")}
        self.dofs: dict[str, list[int]] = {k: [] for k in ("body", "joint", "prev", "base", "prescribed")}
        self.joints: list[Joint] = []
        self.joint_q: list[int] = []
        self.joint_dof: list[int] = []
        self.joint_body: list[int] = []
        self.nq = 0
        self.ntree = 0

    def run(self) -> None:
        order = order_bodies(self.scene)
        number = {self.scene.bodies[i].name: n + 1 for n, i in enumerate(order)}
        by_body: dict[str, list[Joint]] = {}
        for joint in self.scene.joints:
            by_body.setdefault(joint.body, []).append(joint)
        for n, i in enumerate(order):
            body = self.scene.bodies[i]
            parent = 0 if body.parent is None else number[body.parent]
            self._add_body(n + 1, parent, by_body.get(body.name, []), body.kinematic)
        self.body_names = ("",) + tuple(self.scene.bodies[i].name for i in order)
        self.body_order = order

    def _add_body(self, body: int, parent: int, joints: list[Joint], kinematic: bool) -> None:
        if parent == 0:
            tree, self.ntree = self.ntree, self.ntree + 1
        else:
            tree = self.bodies["tree"][parent]
        link_parent = self.bodies["link"][parent]
        last_dof = self.bodies["last_dof"][parent]
        for k, joint in enumerate(joints or [None]):
            self._add_link(body, link_parent, joint, first=k == 0, tree=tree, root=parent == 0 and k == 0)
            link_parent = len(self.links["kind"]) - 1
            if joint is not None:
                last_dof = self._add_joint(body, joint, last_dof, kinematic)
        for key, value in (("parent", parent), ("link", link_parent), ("last_dof", last_dof), ("tree", tree)):
            self.bodies[key].append(value)

    def _add_link(self, body: int, parent: int, joint: Joint | None, *, first: bool, tree: int, root: bool) -> None:
        values = dict(
            kind=0 if joint is None else LINK_CODES[joint.kind],
            parent=parent,
            body=body,
            first=int(first),
            joint=-1 if joint is None else len(self.joints),
            q=self.nq,
            dof=len(self.dofs["body"]),
            tree=tree,
            root=int(root),
        )
        for key, value in values.items():
            self.links[key].append(value)

    def _add_joint(self, body: int, joint: Joint, last_dof: int, kinematic: bool) -> int:
        """Appends the joint's dofs and returns the last one's place in arrays of length nv + 1."""
        self.joint_q.append(self.nq)
        self.joint_dof.append(len(self.dofs["body"]))
        self.joint_body.append(body)
        base = last_dof
        for k in range(JOINT_DOF_SIZE[joint.kind]):
            # A free joint's rotation axes are carried by its translation; the three axes of a ball turn together.
            if joint.kind == "free" and k == 3:
                base = last_dof
            elif joint.kind in ("hinge", "slide"):
                base = last_dof
            row = dict(body=body, joint=len(self.joints), prev=last_dof, base=base, prescribed=int(kinematic))
            for key, value in row.items():
                self.dofs[key].append(value)
            last_dof = len(self.dofs["body"])
        self.nq += JOINT_Q_SIZE[joint.kind]
        self.joints.append(joint)
        return last_dof


def _mass_matrix_rows(prev: list[int]) -> tuple[np.ndarray, np.ndarray]:
    starts, columns = [0], []
    for dof in range(len(prev)):
        j = dof
        while j >= 0:
            columns.append(j)
            j = prev[j] - 1
        starts.append(len(columns))
    return np.array(starts, np.int32), np.array(columns, np.int32)


def _free_bodies(scene: Scene, builder: _Builder) -> dict[str, int | np.ndarray]:
    """Trees with one free joint and no other, kinematic ones left out; only "implicitfast" tells them apart."""
    dofs, links, starts, bodies = [], [], [0], []
    trees = np.array(builder.bodies["tree"])[np.array(builder.dofs["body"], int)]
    for k, joint in enumerate(builder.joints):
        first = builder.joint_dof[k]
        alone = joint.kind == "free" and not builder.dofs["prescribed"][first] and (trees == trees[first]).sum() == 6
        if alone and scene.options.integrator == "implicitfast":
            dofs.append(first)
            links.append(builder.links["joint"].index(k))
            bodies += [b for b in range(1, len(builder.bodies["tree"])) if builder.bodies["tree"][b] == trees[first]]
            starts.append(len(bodies))
    return dict(
        free_count=len(dofs),
        free_dof=np.array(dofs, np.int32),
        free_link=np.array(links, np.int32),
        free_start=np.array(starts, np.int32),
        free_body=np.array(bodies, np.int32),
    )


def build_topology(scene: Scene) -> tuple[SimpleNamespace, Layout, list[Joint], list[int]]:
    """Lays out bodies, links, joints and dofs.

    Returns:
        The integer arrays by the field names of `Topology` (NumPy), the host layout, the joints in dof order, and the
        indices of `scene.bodies` in model order (without the world).
    """
    builder = _Builder(scene)
    builder.run()
    nv = len(builder.dofs["body"])
    row_start, row_column = _mass_matrix_rows(builder.dofs["prev"])
    arrays = SimpleNamespace(
        nbody=len(builder.bodies["parent"]),
        nlink=len(builder.links["kind"]),
        nv=nv,
        prescribed_count=int(sum(builder.dofs["prescribed"])),
        row_start=row_start,
        row_column=row_column,
        **_free_bodies(scene, builder),
    )
    for prefix, table in (("link", builder.links), ("body", builder.bodies), ("dof", builder.dofs)):
        for key, values in table.items():
            setattr(arrays, f"{prefix}_{key}", np.array(values, np.int32))
    layout = Layout(
        body_names=builder.body_names,
        joint_names=tuple(j.name for j in builder.joints),
        joint_kinds=tuple(j.kind for j in builder.joints),
        joint_q=np.array(builder.joint_q, np.int32),
        joint_dof=np.array(builder.joint_dof, np.int32),
        joint_body=np.array(builder.joint_body, np.int32),
        site_names=tuple(s.name for s in scene.sites),
        tendon_names=tuple(t.name for t in scene.tendons),
        actuator_names=tuple(a.name for a in scene.actuators),
        drive_names=tuple(d.name for d in scene.drives),
        shape_names=tuple(s.name for s in scene.shapes),
        nq=builder.nq,
        nv=nv,
        nm=len(row_column),
        ntree=builder.ntree,
    )
    return arrays, layout, builder.joints, builder.body_order


def to_device(arrays: SimpleNamespace, device: wp.Device) -> Topology:
    """Copies the arrays into a `Topology` on a device."""
    topology = Topology()
    for name in Topology.vars:  # type: ignore[attr-defined]  # added by wp.struct
        value = getattr(arrays, name)
        setattr(topology, name, value if isinstance(value, int) else wp.array(value, dtype=wp.int32, device=device))
    return topology
