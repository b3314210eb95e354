"""A matter in arrays: topology shared by all worlds, materials and rest shape of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import warp as wp

from warpsim.collision.kinds import KIND_CODE
from warpsim.core.errors import InputError, unknown_name, whole_number
from warpsim.core.kernels import initialize
from warpsim.core.precision import mat33, numpy_real, quat, real, vec3, vec6
from warpsim.deformable.bend import Bends
from warpsim.deformable.contact import Contacts
from warpsim.deformable.derive import derive
from warpsim.deformable.description import Matter, check
from warpsim.deformable.inertia import Inertia
from warpsim.deformable.matrix import Pattern, make_pattern
from warpsim.deformable.membrane import Membrane
from warpsim.deformable.segment import Segments
from warpsim.deformable.springs import Springs
from warpsim.deformable.terms import Elements
from warpsim.deformable.tetrahedron import Tetrahedra
from warpsim.deformable.topology import Topology, make_topology
from warpsim.deformable.types import FIXED, FREE, PINNED, mat22, vec4

_STRUCTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "membrane": (Membrane, {"area": real, "shape": mat22, "mu": real, "lam": real, "viscosity": real}),
    "tetrahedra": (Tetrahedra, {"volume": real, "shape": mat33, "mu": real, "lam": real, "viscosity": real}),
    "segments": (Segments, {"length": real, "stiffness": real, "viscosity": real}),
    "bends": (Bends, {"coefficient": vec4, "stiffness": real}),
}
DIRECT = ("time_step", "gravity", "mass_damping", "obstacles.", "contact.", "springs.")
"""Beginnings of the names of parameters that steps read as they are authored."""
_INNER = {"membrane": ("plate", "mass"), "tetrahedra": ("mass",), "segments": ("beam", "mass")}


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
        obstacles: Kinds of the shapes that vertices touch.
        sprung: (springs,) vertices that springs hold.
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
    sprung: np.ndarray
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
        for kind, (cls, names) in _STRUCTS.items():
            struct = cls()
            if kind in self.index:
                vertices = self.index[kind].numpy()
                struct.count, struct.vertex = len(vertices), self.index[kind]
                struct.place = wp.array(self.pattern.places(vertices), dtype=wp.int32, device=self.device)
                for name in names:
                    setattr(struct, name, self.physical[f"{kind}.{name}"])
            setattr(out, kind, struct)
        return out

    @cached_property
    def contacts(self) -> Contacts:
        """How vertices touch; where shapes are is a step's own."""
        out = Contacts()
        if not self.obstacles:
            return out
        out.count = len(self.obstacles)
        codes = np.array([KIND_CODE[kind] for kind in self.obstacles], np.int32)
        out.kind = wp.array(codes, dtype=wp.int32, device=self.device)
        for name in ("stiffness", "damping", "radius"):
            setattr(out, name, self.physical[f"contact.{name}"])
        shape = (self.worlds, out.count * self.count)
        out.pairs = wp.zeros(self.worlds, dtype=wp.int32, device=self.device)
        out.pair = wp.zeros(shape, dtype=wp.int32, device=self.device)
        out.normal, out.bias = (wp.zeros(shape, dtype=vec3, device=self.device) for _ in range(2))
        return out

    @cached_property
    def springs(self) -> Springs:
        """Springs; where their other ends are is a step's own."""
        out = Springs()
        if len(self.sprung):
            out.count = len(self.sprung)
            out.vertex = wp.array(self.sprung.astype(np.int32), dtype=wp.int32, device=self.device)
            out.stiffness, out.damping = self.physical["springs.stiffness"], self.physical["springs.damping"]
        return out

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
    """
    initialize()
    check(matter)
    whole_number("worlds", worlds)
    if not (np.isfinite(time_step) and time_step > 0.0):
        raise InputError(f"time_step={time_step!r}; give a positive number of seconds")
    place = wp.get_device(device)
    points = np.asarray(matter.points, np.float64)
    topology = make_topology(matter)
    kind = _kinds(matter, len(points))
    stencils = {name: getattr(topology, name) for name in _STRUCTS}
    pattern = make_pattern(len(points), kind == int(FREE), stencils.values())

    def room(count: int, dtype: Any) -> wp.array:
        return wp.zeros((worlds, count), dtype=dtype, device=place, requires_grad=gradients)

    def filled(values: Any, dtype: Any) -> wp.array:
        content = np.broadcast_to(values, (worlds, *np.shape(values))).astype(numpy_real)
        return wp.array(content, dtype=dtype, device=place, requires_grad=gradients)

    physical = {"mass": room(len(points), real)}
    inner: dict[str, wp.array] = {}
    for name, vertices in stencils.items():
        if len(vertices):
            physical |= {f"{name}.{p}": room(len(vertices), dtype) for p, dtype in _STRUCTS[name][1].items()}
            inner |= {f"{name}.{p}": room(len(vertices), real) for p in _INNER.get(name, ())}
    physical |= {
        "time_step": filled(time_step, real),
        "gravity": filled(np.asarray(gravity, np.float64), vec3),
        "mass_damping": filled(mass_damping, real),
    }
    if matter.obstacles:
        for name, dtype in (("position", vec3), ("rotation", quat), ("size", vec3), ("friction", real)):
            physical[f"obstacles.{name}"] = filled(np.array([getattr(o, name) for o in matter.obstacles]), dtype)
        physical["obstacles.velocity"] = room(len(matter.obstacles), vec6)
        physical["obstacles.yielding"] = room(len(matter.obstacles), real)
        given = {"stiffness": matter.contact_stiffness, "damping": matter.contact_damping, "radius": matter.radius}
        for name, value in given.items():
            physical[f"contact.{name}"] = filled(np.broadcast_to(value, len(points)), real)
    sprung = np.asarray(matter.sprung, np.int64)
    if len(sprung):
        for name, value in (("stiffness", matter.spring_stiffness), ("damping", matter.spring_damping)):
            physical[f"springs.{name}"] = filled(np.broadcast_to(value, len(sprung)), real)
    authored = {"rest": filled(points, vec3)}
    authored |= {name: filled(values, real) for name, values in topology.values.items() if len(values)}
    index = _index(topology, stencils, len(points), place)
    model = DeformableModel(
        place,
        worlds,
        points,
        topology,
        pattern,
        kind,
        index,
        authored,
        physical,
        inner,
        tuple(o.kind for o in matter.obstacles),
        sprung,
        tolerance,
        maximum_iterations,
    )
    model.derive()
    return model


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
    if len(topology.joints):
        found["joints.side"] = topology.joint_segments
    return {name: wp.array(values.astype(np.int32), dtype=wp.int32, device=device) for name, values in found.items()}
