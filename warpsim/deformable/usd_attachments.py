"""`PhysicsAttachment` prims → what holds the points of a deformable."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from pxr import Usd

from warpsim.core.errors import SceneError
from warpsim.deformable.usd_material import read_array, read_number
from warpsim.io.usd.context import Context
from warpsim.io.usd.ledger_scan import prims


@dataclass
class Held:
    """Points that something holds, by how it does.

    Attributes:
        fixed: Points that never move.
        pinned: Points that a control moves.
        held: Points that bodies carry: point, body ("": the world), place in its frame (m).
        sprung: Springs: point, body, place, stiffness (N/m), damping (N s/m).
    """

    fixed: list[int] = field(default_factory=list)
    pinned: list[int] = field(default_factory=list)
    held: list[tuple[int, str, np.ndarray]] = field(default_factory=list)
    sprung: list[tuple[int, str, np.ndarray, float, float]] = field(default_factory=list)

    def check(self, where: str, count: int) -> None:
        """Raises where a point does not exist, or is held twice."""
        hard = [*self.fixed, *self.pinned, *(item[0] for item in self.held)]
        for point in (*hard, *(item[0] for item in self.sprung)):
            if not 0 <= point < count:
                raise SceneError(f"{where}: point {point} is attached, and there are {count} points")
        twice = [point for point in hard if hard.count(point) > 1]
        if twice:
            raise SceneError(f"{where}: point {twice[0]} is held twice; keep one attachment")


def read_attachments(context: Context, prim: Usd.Prim, points: np.ndarray) -> Held:
    """Everything that holds the points of a deformable.

    Args:
        context: The reading; its bodies are known.
        prim: The simulated geometry.
        points: (n, 3) where its points are at first, m.
    """
    out = Held()
    moved = context.read.array(prim, "warpsim:pinned")
    out.pinned = [] if moved is None else moved.astype(int).tolist()
    for item in prims(context.stage):
        if item.GetTypeName() == "PhysicsAttachment" and prim.GetPath() in context.read.targets(item, "physics:src0"):
            _read(context, item, points, out)
    out.check(str(prim.GetPath()), len(points))
    return out


def _read(context: Context, item: Usd.Prim, points: np.ndarray, out: Held) -> None:
    path, read = item.GetPath(), context.read
    if not read.flag(item, "physics:attachmentEnabled", True):
        context.ledger.switched_off(item, "the attachment is disabled")
        return
    for name, known in (("physics:type0", "point"), ("physics:type1", "xform")):
        kind = read.token(item, name)
        if kind not in (None, known):
            context.ledger.unsupported(item, name, f"{kind} sites are not read; attach by {known}")
            return
    indices = read_array(context, item, "indices0")
    if indices is None or not len(indices):
        raise SceneError(f"{path}: physics:indices0 names no point")
    chosen = indices.astype(int)
    if chosen.min() < 0 or chosen.max() >= len(points):
        raise SceneError(f"{path}: physics:indices0 holds {int(chosen.max())}; there are {len(points)} points")
    targets = read.targets(item, "physics:src1")
    target = context.prim(targets[0]) if targets else None
    coordinates = read_array(context, item, "coords1", ndim=2)
    places = points[chosen]
    if coordinates is not None:
        if target is None or coordinates.shape != (len(chosen), 3):
            raise SceneError(f"{path}: physics:coords1 needs physics:src1 and {len(chosen)} places")
        frame = context.frame(target)
        places = context.units.length * coordinates @ frame.linear.T + frame.pose.position
    body = _body(context, target)
    if body:
        pose = context.frame(context.prim(body)).pose
        local = (places - pose.position) @ pose.matrix
    else:
        local = places
    stiffness = context.read.number(item, "physics:stiffness", finite=False)
    damping = read_number(context, item, "damping") or 0.0
    if stiffness is not None and np.isfinite(stiffness):
        unit = context.units.mass
        context.ledger.used(item, "physics:stiffness", "force per length, of each point")
        out.sprung += [
            (int(i), body, at, unit * stiffness, unit * damping) for i, at in zip(chosen, local, strict=True)
        ]
    elif not body and coordinates is None:
        out.fixed += chosen.tolist()
    else:
        out.held += [(int(i), body, at) for i, at in zip(chosen, local, strict=True)]


def _body(context: Context, target: Usd.Prim | None) -> str:
    """The body that carries a prim; "": the world."""
    names = {body.name for body in context.scene.bodies}
    while target and not target.IsPseudoRoot():
        if str(target.GetPath()) in names:
            return str(target.GetPath())
        target = target.GetParent()
    return ""
