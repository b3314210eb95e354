"""Arrays of a matter's parameters, one row for each world: what elements, contacts and springs read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from warpsim.core.precision import numpy_real, quat, real, vec3, vec6
from warpsim.deformable.bend import Bends
from warpsim.deformable.description import SELF_LAW, Matter
from warpsim.deformable.fold import Folds
from warpsim.deformable.membrane import Membrane
from warpsim.deformable.segment import Segments
from warpsim.deformable.tetrahedron import Tetrahedra
from warpsim.deformable.types import mat22, vec4

STRUCTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "membrane": (Membrane, {"area": real, "shape": mat22, "mu": real, "lam": real, "viscosity": real}),
    "tetrahedra": (Tetrahedra, {"volume": real, "shape": [vec3], "mu": real, "lam": real, "viscosity": real}),
    "segments": (Segments, {"length": real, "stiffness": real, "viscosity": real}),
    "bends": (Bends, {"coefficient": vec4, "stiffness": real}),
    "folds": (Folds, {"stiffness": real, "angle": real}),
}
"""Kind of element → its struct, and the types of its derived parameters; in brackets: one for each corner."""
_INNER = {"membrane": ("plate", "mass"), "tetrahedra": ("mass",), "segments": ("beam", "mass")}


@dataclass(frozen=True)
class Rooms:
    """Makes arrays.

    Attributes:
        worlds: W, axis 0 of all.
        device: Where they live.
        gradients: Whether they carry gradients.
    """

    worlds: int
    device: wp.Device
    gradients: bool

    def empty(self, sizes: tuple[int, ...], dtype: Any) -> wp.array:
        """(W, *sizes) zeros."""
        return wp.zeros((self.worlds, *sizes), dtype=dtype, device=self.device, requires_grad=self.gradients)

    def filled(self, values: Any, dtype: Any) -> wp.array:
        """The same values in every world."""
        content = np.broadcast_to(values, (self.worlds, *np.shape(values))).astype(numpy_real)
        return wp.array(content, dtype=dtype, device=self.device, requires_grad=self.gradients)


def element_arrays(
    rooms: Rooms, stencils: Mapping[str, np.ndarray], vertices: int
) -> tuple[dict[str, wp.array], dict[str, wp.array]]:
    """Room for masses and for what the elements of all kinds read, and for the intermediates of its derivation."""
    physical = {"mass": rooms.empty((vertices,), real)}
    inner: dict[str, wp.array] = {}
    for name, corners in stencils.items():
        if len(corners):
            types = STRUCTS[name][1].items()
            for p, dtype in types:
                each = isinstance(dtype, list)
                sizes = corners.shape if each else corners.shape[:1]
                physical[f"{name}.{p}"] = rooms.empty(sizes, dtype[0] if each else dtype)
            inner |= {f"{name}.{p}": rooms.empty(corners.shape[:1], real) for p in _INNER.get(name, ())}
    return physical, inner


def contact_arrays(rooms: Rooms, matter: Matter, weights: np.ndarray) -> dict[str, wp.array]:
    """Of shapes and of samples, whose stiffness and damping are those of a vertex times their weights.

    Args:
        rooms: Makes them.
        matter: With obstacles or without.
        weights: (samples,) vertices first, see `samples`.
    """
    found: dict[str, wp.array] = {}
    if not matter.obstacles:
        return found
    for name, dtype in (("position", vec3), ("rotation", quat), ("size", vec3), ("friction", real)):
        found[f"obstacles.{name}"] = rooms.filled(np.array([getattr(o, name) for o in matter.obstacles]), dtype)
    found["obstacles.velocity"] = rooms.empty((len(matter.obstacles),), vec6)
    count = len(np.asarray(matter.points))
    given = {"stiffness": matter.contact_stiffness, "damping": matter.contact_damping, "radius": matter.radius}
    for name, value in given.items():
        of_vertices = np.broadcast_to(np.asarray(value, np.float64), count)
        scale = np.ones(len(weights)) if name == "radius" else weights
        # a face takes the mean, so that one value for all stays that value
        values = np.concatenate([of_vertices, np.full(len(weights) - count, of_vertices.mean())])
        found[f"contact.{name}"] = rooms.filled(scale * values, real)
    return found


def self_arrays(rooms: Rooms, matter: Matter) -> dict[str, wp.array]:
    """The law of self-contact."""
    law = matter.self_contact
    return {f"self.{name}": rooms.filled(float(getattr(law, name)), real) for name in SELF_LAW if law is not None}


def spring_arrays(rooms: Rooms, matter: Matter) -> dict[str, wp.array]:
    """Stiffness and damping of springs."""
    count = len(matter.sprung)
    given = {"stiffness": matter.spring_stiffness, "damping": matter.spring_damping} if count else {}
    return {f"springs.{name}": rooms.filled(np.broadcast_to(value, count), real) for name, value in given.items()}
