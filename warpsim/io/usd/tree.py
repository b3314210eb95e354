"""Joints → a tree of bodies that hangs on the world, plus the joints left over, which close loops.

Each connected set of bodies gets a root: where an articulation root says so, else a kinematic body, else a body
jointed to the world, else the first body in prim order. From there the tree grows breadth first in joint order, so
that a loop is cut far from the root and both of its halves stay short.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, field

from pxr import Sdf

from warpsim.io.usd.context import Context
from warpsim.io.usd.joints import JointSpec, is_joint
from warpsim.io.usd.physics_objects import PhysicsObjects


@dataclass
class Link:
    """A body, its parent, and the joints between them."""

    body: Sdf.Path
    parent: Sdf.Path | None
    joints: list[JointSpec] = field(default_factory=list)
    """Nearest the parent first; empty: a free body."""
    reverse: bool = False
    """The joints' body0 is the child."""


@dataclass
class Tree:
    """The spanning tree and what it left over."""

    links: list[Link]
    """Depth first in composed prim order, parents before children."""
    loops: list[JointSpec]
    component: dict[Sdf.Path, int]
    """Body → number of its connected set."""


class _Graph:
    """Edges of the joint graph that a tree may use, grouped into compounds."""

    def __init__(self, context: Context, specs: list[JointSpec], kinematic: set[Sdf.Path]) -> None:
        self.context = context
        self.kinematic = kinematic
        self.compounds: list[list[JointSpec]] = []
        self.at: dict[Sdf.Path | None, list[list[JointSpec]]] = defaultdict(list)
        for spec in specs:
            if not spec.closes_loop and spec.kind == "moving":
                self._add(spec)

    def _add(self, spec: JointSpec) -> None:
        """Appends to the compound of the same two bodies if all of it are single hinges and slides."""
        for compound in self.at[spec.body0]:
            first = compound[0]
            if (first.body0, first.body1) == (spec.body0, spec.body1) and all(map(_is_simple, [first, spec])):
                compound.append(spec)
                return
        compound = [spec]
        self.compounds.append(compound)
        for end in spec.ends:
            self.at[end].append(compound)

    def component(self, start: Sdf.Path) -> set[Sdf.Path]:
        """Bodies reachable from one without passing through the world."""
        found, queue = {start}, deque([start])
        while queue:
            for compound in self.at[queue.popleft()]:
                for end in compound[0].ends - {None} - found:
                    found.add(end)
                    queue.append(end)
        return found


def _is_simple(spec: JointSpec) -> bool:
    return len(spec.dofs) == 1 and spec.dofs[0].kind in ("hinge", "slide")


def build_tree(context: Context, objects: PhysicsObjects, specs: list[JointSpec], kinematic: set[Sdf.Path]) -> Tree:
    """Chooses each body's parent and joints."""
    graph = _Graph(context, specs, kinematic)
    links: dict[Sdf.Path, Link] = {}
    component: dict[Sdf.Path, int] = {}
    number = 0
    for body in objects.bodies:
        if body in component:
            continue
        members = graph.component(body)
        component.update(dict.fromkeys(members, number))
        number += 1
        for root in _roots(context, objects, graph, members):
            _grow(graph, links, root)
    used = {id(spec) for link in links.values() for spec in link.joints}
    loops = [spec for spec in specs if id(spec) not in used and spec.kind != "free"]
    return Tree(_depth_first(context, links), loops, component)


def _roots(context: Context, objects: PhysicsObjects, graph: _Graph, members: set[Sdf.Path]) -> list[Link]:
    """Where to start in a connected set; several if it holds several kinematic bodies."""
    kinematic = context.sorted(members & graph.kinematic)
    if kinematic:
        return [Link(body, None) for body in kinematic]
    for prim_path in (path for item in objects.articulations for path in item.rootPrims):
        if prim_path in members:
            return [_root_link(graph, prim_path)]
        prim = context.prim(prim_path)
        if is_joint(prim):
            for compound in graph.at[None]:
                if compound[0].prim == prim and (compound[0].ends - {None}) <= members:
                    return [_root_link(graph, next(iter(compound[0].ends - {None})))]
    for compound in graph.at[None]:
        (body,) = compound[0].ends - {None}
        if body in members:
            return [_root_link(graph, body)]
    return [Link(context.sorted(members)[0], None)]


def _root_link(graph: _Graph, body: Sdf.Path) -> Link:
    for compound in graph.at[body]:
        if None in compound[0].ends:
            return _link(compound, body)
    return Link(body, None)


def _link(compound: list[JointSpec], child: Sdf.Path) -> Link:
    reverse = compound[0].body0 == child
    parent = compound[0].body1 if reverse else compound[0].body0
    # J₁J₂…Jₙ traversed backwards is Jₙ⁻¹…J₁⁻¹: the order turns round too.
    return Link(child, parent, compound[::-1] if reverse else compound, reverse)


def _grow(graph: _Graph, links: dict[Sdf.Path, Link], root: Link) -> None:
    links[root.body] = root
    queue = deque([root.body])
    while queue:
        body = queue.popleft()
        for compound in graph.at[body]:
            for child in compound[0].ends - {body, None}:
                if child not in links and child not in graph.kinematic:
                    links[child] = _link(compound, child)
                    queue.append(child)


def _depth_first(context: Context, links: dict[Sdf.Path, Link]) -> list[Link]:
    children: dict[Sdf.Path | None, list[Sdf.Path]] = defaultdict(list)
    for path in context.sorted(links):
        children[links[path].parent].append(path)
    ordered, stack = [], children[None][::-1]
    while stack:
        path = stack.pop()
        ordered.append(links[path])
        stack += children[path][::-1]
    return ordered
