"""A matter in arrays: topology shared by all worlds, materials and rest shape of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import warp as wp

from warpsim.collision.kinds import KIND_CODE
from warpsim.core.errors import InputError, unknown_name, whole_number
from warpsim.core.kernels import initialize
from warpsim.core.precision import numpy_real, real, vec3, vec6
from warpsim.deformable.arrays import STRUCTS, Rooms, contact_arrays, element_arrays, self_arrays, spring_arrays
from warpsim.deformable.contact import Contacts, Surfaces
from warpsim.deformable.derive import derive
from warpsim.deformable.description import SELF_LAW, Matter, check
from warpsim.deformable.features import Features, features_of
from warpsim.deformable.inertia import Inertia
from warpsim.deformable.interpolation import corner_shares, reference_gradients
from warpsim.deformable.matrix import Pattern, make_pattern
from warpsim.deformable.samples import touching_samples
from warpsim.deformable.self_contact import SelfContacts
from warpsim.deformable.self_room import make_self_contacts
from warpsim.deformable.springs import Springs
from warpsim.deformable.terms import Elements
from warpsim.deformable.topology import Topology, make_topology
from warpsim.deformable.types import FIXED, FREE, PINNED
from warpsim.scene.description import MESH_KINDS

DIRECT = ("time_step", "gravity", "mass_damping", "obstacles.", "contact.", "springs.", "self.")
"""Beginnings of the names of parameters that steps read as they are authored."""


@dataclass(frozen=True)
class DeformableModel:
    """What `DeformableProgram` steps.

    Attributes:
        device: Where the arrays live.
        worlds: W.
        points: (n, 3) places at rest, m.
        topology: Elements.
        pattern: Of the Hessian and its factor.
        kind: (n,) what moves each vertex, see `types.FREE`.
        index: Connectivity on the device, see `derive.derive`.
        authored: "rest" (W, n) and materials (W, elements): change them, then call `derive`.
        physical: What steps read, (W, …): derived from `authored`, and "time_step", "gravity", "mass_damping".
        inner: Intermediates of the derivation.
        obstacles: Kinds of the shapes that samples touch.
        corners: (samples, 3) vertices of the points that touch, see `samples`.
        shares: (samples, 3) of the corners.
        weights: (samples,) stiffness over that of a vertex.
        surfaces: Distance fields of meshes and hulls among the shapes.
        sprung: (springs,) vertices that springs hold.
        features: What touches what within it; None: nothing does.
        tolerance: m/s², of the residual √(rᵀM⁻¹r / Σm).
        maximum_iterations: Of Newton's method in a step.
    """

    device: wp.Device
    worlds: int
    points: np.ndarray
    topology: Topology
    pattern: Pattern
    kind: np.ndarray
    index: Mapping[str, wp.array]
    authored: dict[str, wp.array]
    physical: dict[str, wp.array]
    inner: Mapping[str, wp.array]
    obstacles: tuple[str, ...]
    corners: np.ndarray
    shares: np.ndarray
    weights: np.ndarray
    surfaces: Surfaces
    sprung: np.ndarray
    features: Features | None
    tolerance: float
    maximum_iterations: int

    @property
    def count(self) -> int:
        """Number of vertices."""
        return len(self.points)

    @property
    def pinned(self) -> np.ndarray:
        """Vertices that a control places, in their order."""
        return np.flatnonzero(self.kind == int(PINNED))

    def set(self, name: str, value: Any) -> None:
        """Gives a parameter, authored or one of the world's, a value that broadcasts to (W, …)."""
        known = {**self.authored, **{k: a for k, a in self.physical.items() if k.startswith(DIRECT)}}
        if name not in known:
            raise unknown_name("parameter", name, known)
        array = known[name]
        target = array.numpy()
        array.assign(np.broadcast_to(np.asarray(value, numpy_real), target.shape))

    def derive(self) -> None:
        """Fills the derived parameters; to be called after a change of the authored ones."""
        derive(self.index, self.authored, self.physical, self.inner)

    def authored_gradients(self) -> dict[str, np.ndarray]:
        """Gradients of the authored parameters, from those of the derived ones, which stay as they are."""
        kept = {name: array.grad.numpy().copy() for name, array in self.physical.items() if array.grad is not None}
        for group in (self.authored, self.inner):
            for array in group.values():
                array.grad.zero_()
        with wp.Tape() as tape:
            self.derive()
        for name, values in kept.items():
            self.physical[name].grad.assign(values)
        tape.backward()
        for name, values in kept.items():
            self.physical[name].grad.assign(values)
        return {name: array.grad.numpy().copy() for name, array in self.authored.items()}

    @cached_property
    def inertia(self) -> Inertia:
        """The quadratic part."""
        out = Inertia()
        pin = np.zeros(self.count, np.int32)
        pin[self.pinned] = np.arange(len(self.pinned))
        for name, values in (("kind", self.kind), ("node", self.pattern.node), ("pin", pin)):
            setattr(out, name, wp.array(values.astype(np.int32), dtype=wp.int32, device=self.device))
        out.mass, out.damping = self.physical["mass"], self.physical["mass_damping"]
        return out

    @cached_property
    def elements(self) -> Elements:
        """The energy."""
        out = Elements()
        for kind, (cls, names) in STRUCTS.items():
            struct = cls()
            if kind in self.index:
                vertices = self.index[kind].numpy()
                struct.count, struct.vertex = len(vertices), self.index[kind]
                places = self.pattern.places(vertices, carried=True)
                struct.place = wp.array(places, dtype=wp.int32, device=self.device)
                if kind == "tetrahedra":
                    struct.corners = vertices.shape[1]
                for name in names:
                    setattr(struct, name, self.physical[f"{kind}.{name}"])
            setattr(out, kind, struct)
        return out

    @cached_property
    def contacts(self) -> Contacts:
        """How samples touch; where shapes are is a step's own."""
        out = Contacts()
        if not self.obstacles:
            return out
        out.count, out.samples, out.surfaces = len(self.obstacles), len(self.corners), self.surfaces
        for name, values in (("corner", self.corners), ("place", self.pattern.places(self.corners))):
            setattr(out, name, wp.array(values, dtype=wp.int32, device=self.device))
        out.share = wp.array(self.shares.astype(numpy_real), dtype=real, device=self.device)
        codes = np.array([KIND_CODE[kind] for kind in self.obstacles], np.int32)
        out.kind = wp.array(codes, dtype=wp.int32, device=self.device)
        for name in ("stiffness", "damping", "radius"):
            setattr(out, name, self.physical[f"contact.{name}"])
        shape = (self.worlds, out.count * out.samples)
        out.pairs = wp.zeros(self.worlds, dtype=wp.int32, device=self.device)
        out.pair = wp.zeros(shape, dtype=wp.int32, device=self.device)
        out.normal, out.bias, out.at = (wp.zeros(shape, dtype=vec3, device=self.device) for _ in range(3))
        shape = (self.worlds, out.count)
        out.acceleration, out.step = (wp.zeros(shape, dtype=vec6, device=self.device) for _ in range(2))
        return out

    @cached_property
    def springs(self) -> Springs:
        """Springs; where their other ends are is a step's own."""
        out = Springs()
        if len(self.sprung):
            out.count = len(self.sprung)
            out.vertex = wp.array(self.sprung.astype(np.int32), dtype=wp.int32, device=self.device)
            out.stiffness, out.damping = self.physical["springs.stiffness"], self.physical["springs.damping"]
            shape = (self.worlds, out.count)
            out.acceleration, out.step = (wp.zeros(shape, dtype=vec3, device=self.device) for _ in range(2))
        return out

    @cached_property
    def self_contacts(self) -> SelfContacts:
        """How it touches itself."""
        if self.features is None:
            return SelfContacts()
        rest, law = self.authored["rest"], {n: self.physical[f"self.{n}"] for n in SELF_LAW}
        return make_self_contacts(self.features, self.pattern, rest, law)

    def over(self, first: int, last: int) -> DeformableModel:
        """The model of worlds first … last − 1, with views of the same parameters."""

        def part(group: Mapping[str, wp.array]) -> dict[str, wp.array]:
            return {name: array[first:last] for name, array in group.items()}

        return replace(
            self,
            worlds=last - first,
            authored=part(self.authored),
            physical=part(self.physical),
            inner=part(self.inner),
        )


def build(
    matter: Matter,
    *,
    worlds: int = 1,
    time_step: float = 0.01,
    gravity: Any = (0.0, 0.0, -9.81),
    mass_damping: float = 0.0,
    tolerance: float = 1e-9,
    maximum_iterations: int = 100,
    device: Any = None,
    gradients: bool = True,
    surfaces: Surfaces | None = None,
    carried: Sequence[int] = (),
) -> DeformableModel:
    """Lays a matter out in arrays and derives its parameters.

    Args:
        matter: What to simulate.
        worlds: W, independent copies.
        time_step: h, s.
        gravity: m/s².
        mass_damping: α, 1/s: each vertex is slowed by αm times its velocity.
        tolerance: m/s², see `DeformableModel`.
        maximum_iterations: Of Newton's method in a step.
        device: Where; by default Warp's.
        gradients: Whether parameters carry gradients from the start.
        surfaces: Distance fields of the meshes and hulls among the obstacles.
        carried: Pinned vertices that bodies carry which may be unknowns of the same solve.
    """
    initialize()
    check(matter)
    whole_number("worlds", worlds)
    if not (np.isfinite(time_step) and time_step > 0.0):
        raise InputError(f"time_step={time_step!r}; give a positive number of seconds")
    _check_surfaces(matter, surfaces)
    rooms = Rooms(worlds, wp.get_device(device), gradients)
    points = np.asarray(matter.points, np.float64)
    topology, kind = make_topology(matter), _kinds(matter, len(points))
    free = kind == int(FREE)
    stencils = {name: getattr(topology, name) for name in STRUCTS}
    faces = np.asarray(matter.faces, np.int32).reshape(-1, 3)
    corners, shares, weights = touching_samples(len(points), faces, free)
    physical, inner = element_arrays(rooms, stencils, len(points))
    physical |= {
        "time_step": rooms.filled(time_step, real),
        "gravity": rooms.filled(np.asarray(gravity, np.float64), vec3),
        "mass_damping": rooms.filled(mass_damping, real),
        **contact_arrays(rooms, matter, weights),
        **spring_arrays(rooms, matter),
        **self_arrays(rooms, matter),
    }
    authored = {"rest": rooms.filled(points, vec3)}
    authored |= {name: rooms.filled(values, real) for name, values in topology.values.items() if len(values)}
    model = DeformableModel(
        device=rooms.device,
        worlds=worlds,
        points=points,
        topology=topology,
        pattern=make_pattern(len(points), free, [*stencils.values(), faces], carried),
        kind=kind,
        index=_index(topology, stencils, len(points), rooms.device),
        authored=authored,
        physical=physical,
        inner=inner,
        obstacles=tuple(o.kind for o in matter.obstacles),
        corners=corners,
        shares=shares,
        weights=weights,
        surfaces=surfaces or Surfaces(),
        sprung=np.asarray(matter.sprung, np.int64),
        features=None if matter.self_contact is None else features_of(matter),
        tolerance=tolerance,
        maximum_iterations=maximum_iterations,
    )
    model.derive()
    return model


def _check_surfaces(matter: Matter, surfaces: Surfaces | None) -> None:
    wanting = [o.kind for o in matter.obstacles if o.kind in MESH_KINDS]
    if wanting and surfaces is None:
        raise InputError(f"an obstacle of kind {wanting[0]!r} needs its distance field; give `surfaces`")


def _kinds(matter: Matter, count: int) -> np.ndarray:
    """FREE, FIXED or PINNED for each vertex."""
    kind = np.full(count, int(FREE), np.int32)
    kind[list(matter.fixed)] = int(FIXED)
    kind[list(matter.pinned)] = int(PINNED)
    return kind


def _index(
    topology: Topology, stencils: Mapping[str, np.ndarray], count: int, device: wp.Device
) -> dict[str, wp.array]:
    """Connectivity on the device."""
    found = {}
    for name, vertices in stencils.items():
        if len(vertices):
            order = np.argsort(vertices.ravel(), kind="stable")
            found[name] = vertices
            found[f"{name}.corner"] = order
            found[f"{name}.first"] = np.searchsorted(vertices.ravel()[order], np.arange(count + 1))
    if len(topology.hinges):
        found |= {"hinges": topology.hinges, "hinges.side": topology.hinge_triangles}
    if len(topology.folds):
        found |= {"folds.side": topology.fold_triangles, "folds.shaped": topology.fold_shaped}
    if len(topology.joints):
        found["joints.side"] = topology.joint_segments
    made = {name: wp.array(values.astype(np.int32), dtype=wp.int32, device=device) for name, values in found.items()}
    if "tetrahedra" in found:
        corners = found["tetrahedra"].shape[1]
        gradients, shares = (make(corners).astype(numpy_real) for make in (reference_gradients, corner_shares))
        made["tetrahedra.reference"] = wp.array(gradients, dtype=vec3, device=device)
        made["tetrahedra.share"] = wp.array(shares, dtype=real, device=device)
    return made
