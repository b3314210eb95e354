"""Contact generation: from shape poses to packed contacts, in four stages.

1. *Broad phase* (untaped): lists the pairs that are near, where there are many; see `broad`.
2. *Narrow phase* (untaped): every near pair writes the integer features that touch to its own places.
3. *Pack* (untaped): one thread per world gathers them, in pair order, into the contact places.
4. *Rebuild* (taped): distance, point and frame of every contact from poses, sizes and the frozen integers, with the
   true derivative of all three in both poses and both sizes.

How to call it::

    table = PairTable.from_scene(scene, device)            # once per model
    search = SearchWork.allocate(table, worlds)            # scratch, may be shared by all tape slots
    contacts = Contacts.allocate(worlds, table.max_contacts, device, requires_grad=True)   # one per tape slot

    shapes = ShapePoses(position, rotation, size)          # (worlds, shapes) arrays of the slot
    find_contacts(table, shapes, pair_margin, search, contacts)       # stages 1 to 3
    rebuild_contacts(table, shapes, contacts)                         # stage 4
    contacts.check_overflow()                                         # on the host, when convenient

`table.pair_shapes` and `pair_margin[world, pair]` share the table's own pair order. Only the first
`min(count, max_contacts)` places of a world are written.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from warpsim.collision.broad import BroadPhase
from warpsim.collision.candidates import default_room, family_case
from warpsim.collision.geometry import Geometry, build_geometry
from warpsim.collision.groups import GROUPS, PairGroup, group_of
from warpsim.collision.kinds import KIND_CODE, pair_case
from warpsim.collision.pack import pack_kernel
from warpsim.collision.pairs import collision_pairs
from warpsim.collision.search_room import SearchRoom, make_search_room
from warpsim.core.errors import InputError, SimulationError
from warpsim.core.precision import mat33, real, vec3
from warpsim.scene.description import MESH_KINDS, Scene


@dataclass(frozen=True)
class ShapePoses:
    """World poses and sizes of all shapes; the differentiable input of contact generation."""

    position: wp.array
    """(W, ns) vec3, m, world frame."""
    rotation: wp.array
    """(W, ns) unit quat (w, x, y, z)."""
    size: wp.array
    """(W, ns) vec3 as `Shape.size`; meshes and hulls: uniform scale in the first component."""


@dataclass(frozen=True)
class PairTable:
    """The fixed data of contact generation: kinds, pairs and where each pair keeps its candidates."""

    shape_kind: wp.array
    """(ns,) int32, codes of `kinds`."""
    pair_shapes: wp.array
    """(np, 2) int32."""
    pair_case: wp.array
    """(np,) int32."""
    pair_start: wp.array
    """(np,) int32: the pair's first candidate place."""
    ranges: tuple[tuple[PairGroup, int, int], ...]
    """Group of pairs, its first pair and one past its last."""
    pair_order: tuple[int, ...]
    """For each pair of the table its place in the list it was made from."""
    candidates: int
    """Candidate places of a world."""
    seeds: int
    """Candidate places that carry a search result, the first ones."""
    geometry: Geometry
    """Hulls and signed distance grids of the shapes that need them."""

    @staticmethod
    def from_scene(scene: Scene, device: wp.DeviceLike = None) -> PairTable:
        """Builds the table of all pairs that may touch in a scene."""
        return PairTable.from_pairs(scene, collision_pairs(scene), device)

    @staticmethod
    def from_pairs(
        scene: Scene,
        pairs: np.ndarray,
        device: wp.DeviceLike = None,
        *,
        geometry: Geometry | None = None,
        exact: bool = False,
    ) -> PairTable:
        """Builds the table of given pairs.

        Args:
            scene: Where the shapes are described.
            pairs: (np, 2) indices into `scene.shapes`, first kinds first as `collision_pairs` gives them.
            device: Where the arrays live.
            geometry: Mesh data of the same scene, to share it; None builds it.
            exact: Whether box pairs take the general convex search, whose distance is true when they are apart; the
                separating axes of the closed form then give less.
        """
        touching = {int(i) for i in np.asarray(pairs).reshape(-1)}
        if geometry is None:
            geometry = build_geometry(scene, device, shapes=touching)
        kinds = [shape.kind for shape in scene.shapes]
        absent = [i for i in touching - geometry.shapes if kinds[i] in MESH_KINDS]
        if absent:
            raise InputError(
                f"the geometry lacks shape {scene.shapes[absent[0]].name!r}; build it with this shape in it"
            )
        cases = [(kinds[a], kinds[b]) for a, b in pairs]
        families = [family_case(scene, int(a), int(b), exact) for a, b in pairs]
        order = sorted(
            range(len(pairs)), key=lambda i: (GROUPS.index(group_of(*families[i], exact)), pair_case(*cases[i]), i)
        )
        cases, families = [cases[i] for i in order], [families[i] for i in order]
        groups = [group_of(*family, exact) for family in families]
        counts = np.array([g.candidates[family] for g, family in zip(groups, families, strict=True)], np.int64)
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        ranges = []
        for group in GROUPS:
            members = [i for i, g in enumerate(groups) if g is group]
            if members:
                ranges.append((group, members[0], members[-1] + 1))
        seeded = [stop for group, _start, stop in ranges if group.seeded]

        def integers(values: object, shape: tuple[int, ...]) -> wp.array:
            return wp.array(np.array(values, np.int32).reshape(shape), dtype=wp.int32, device=device)

        return PairTable(
            shape_kind=integers([KIND_CODE[kind] for kind in kinds], (-1,)),
            pair_shapes=integers(np.asarray(pairs)[order], (-1, 2)),
            pair_case=integers([pair_case(*case) for case in cases], (-1,)),
            pair_start=integers(starts[:-1], (-1,)),
            ranges=tuple(ranges),
            pair_order=tuple(order),
            candidates=int(starts[-1]),
            seeds=int(starts[max(seeded)]) if seeded else 0,
            geometry=geometry,
        )

    def mesh_data(self, group: PairGroup) -> list[object]:
        """The mesh data a group's kernels take."""
        return [getattr(self.geometry, name) for name in group.geometry]

    @property
    def pair_count(self) -> int:
        """Pairs in the table."""
        return self.pair_shapes.shape[0]

    @property
    def max_contacts(self) -> int:
        """A default for the contact places of a world: all candidates of a small scene, a share of a large one's."""
        return default_room(self.candidates, len(np.unique(self.pair_shapes.numpy())))


@dataclass(frozen=True)
class SearchWork:
    """Scratch of the untaped search; nothing in it outlives `find_contacts`."""

    broad: BroadPhase
    """Which pairs are near."""
    pair_count: wp.array
    """(W, np) int32: active candidates of a near pair."""
    candidate_feature: wp.array
    """(W, nc) int64."""
    candidate_seed: wp.array
    """(W, ns) vec3: result of an iterative search."""
    room: SearchRoom
    """Of iterative searches."""

    @staticmethod
    def allocate(table: PairTable, worlds: int) -> SearchWork:
        """Allocates scratch for a number of worlds on the table's device."""
        device = table.pair_case.device
        pairs, kinds = table.pair_shapes.numpy(), table.shape_kind.numpy()
        first = [start for _group, start, _stop in table.ranges] + [table.pair_count]
        broad = BroadPhase.allocate(pairs, kinds, first, worlds, device)
        searched = max((stop - start for group, start, stop in table.ranges if group.seeded), default=0)
        return SearchWork(
            broad=broad,
            pair_count=wp.zeros((worlds, table.pair_count), dtype=wp.int32, device=device),
            candidate_feature=wp.zeros((worlds, table.candidates), dtype=wp.int64, device=device),
            candidate_seed=wp.zeros((worlds, table.seeds), dtype=vec3, device=device),
            room=make_search_room(worlds, broad.near.lanes, searched, device),
        )


@dataclass(frozen=True)
class Contacts:
    """The packed contacts of one step; mc places per world."""

    count: wp.array
    """(W,) int32: places needed; may exceed mc, which is an overflow."""
    pair: wp.array
    """(W, mc) int32 into the table's pairs."""
    feature: wp.array
    """(W, mc) int64: which features of the pair touch, a code of the pair's kind."""
    seed: wp.array
    """(W, mc) vec3: where an iterative search ended; no gradient."""
    distance: wp.array
    """(W, mc) real, m, negative where the shapes overlap."""
    point: wp.array
    """(W, mc) vec3, world frame, midway between the surfaces."""
    frame: wp.array
    """(W, mc) mat33, rows: unit normal from the first shape to the second, two tangents (MuJoCo's rule)."""

    @staticmethod
    def allocate(
        worlds: int, max_contacts: int, device: wp.DeviceLike = None, *, requires_grad: bool = True
    ) -> Contacts:
        """Allocates the contact places of one step."""
        shape = (worlds, max_contacts)
        return Contacts(
            count=wp.zeros(worlds, dtype=wp.int32, device=device),
            pair=wp.zeros(shape, dtype=wp.int32, device=device),
            feature=wp.zeros(shape, dtype=wp.int64, device=device),
            seed=wp.zeros(shape, dtype=vec3, device=device),
            distance=wp.zeros(shape, dtype=real, device=device, requires_grad=requires_grad),
            point=wp.zeros(shape, dtype=vec3, device=device, requires_grad=requires_grad),
            frame=wp.zeros(shape, dtype=mat33, device=device, requires_grad=requires_grad),
        )

    def check_overflow(self, where: str = "contact generation") -> None:
        """Raises if a world needed more contact places than there are (reads from the device).

        Raises:
            SimulationError: Naming the world and the `max_contacts` that would do.
        """
        needed = self.count.numpy()
        world = int(np.argmax(needed)) if len(needed) else 0
        places = self.pair.shape[1]
        if len(needed) and needed[world] > places:
            raise SimulationError(
                f"{where}: world {world} has {needed[world]} contacts but only {places} places; "
                f"set max_contacts={needed[world]} or more (Scene.options.max_contacts)"
            )


def find_contacts(
    table: PairTable, shapes: ShapePoses, pair_margin: wp.array, search: SearchWork, contacts: Contacts
) -> None:
    """Decides, untaped, which features touch: writes count, pair, feature and seed of `contacts`.

    Args:
        table: From `PairTable.from_scene`.
        shapes: Poses and sizes.
        pair_margin: (W, np) real, m: a contact is active where its distance is less.
        search: Scratch.
        contacts: Its integers and seeds are written.
    """
    worlds = shapes.position.shape[0]
    device = table.pair_case.device
    search.broad.find(table.shape_kind, table.geometry.unit_radius, shapes.position, shapes.size, pair_margin)
    for number, (group, first, stop) in enumerate(table.ranges):
        lanes = search.room.lanes if group.seeded else search.broad.near.lanes
        wp.launch(
            group.narrow,
            dim=(worlds, min(stop - first, lanes)),
            inputs=[
                number,
                table.shape_kind,
                table.geometry.unit_radius,
                table.pair_shapes,
                table.pair_case,
                table.pair_start,
                *table.mesh_data(group),
                *(getattr(table.geometry, name) for name in group.bounds),
                search.broad.near,
                shapes.position,
                shapes.rotation,
                shapes.size,
                pair_margin,
                *([search.room] if group.seeded else []),
            ],
            outputs=[search.pair_count, search.candidate_feature] + [search.candidate_seed] * group.seeded,
            device=device,
            record_tape=False,
        )
    wp.launch(
        pack_kernel,
        dim=worlds,
        inputs=[
            table.pair_start,
            search.broad.near,
            search.pair_count,
            search.candidate_feature,
            search.candidate_seed,
        ],
        outputs=[contacts.count, contacts.pair, contacts.feature, contacts.seed],
        device=device,
        record_tape=False,
    )


def rebuild_contacts(table: PairTable, shapes: ShapePoses, contacts: Contacts) -> None:
    """Computes, taped, distance, point and frame of the contacts that `find_contacts` chose."""
    for group, first, stop in table.ranges:
        wp.launch(
            group.rebuild,
            dim=contacts.pair.shape,
            inputs=[
                first,
                stop,
                table.pair_shapes,
                table.pair_case,
                *table.mesh_data(group),
                contacts.count,
                contacts.pair,
                contacts.feature,
                *([contacts.seed] if group.seeded else []),
                shapes.position,
                shapes.rotation,
                shapes.size,
            ],
            outputs=[contacts.distance, contacts.point, contacts.frame],
            device=table.pair_case.device,
        )
