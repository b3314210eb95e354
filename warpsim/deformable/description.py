"""What a matter consists of: points, and sheets, volumes and curves between them; checked before anything is built."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from warpsim.core.errors import SceneError
from warpsim.scene.description import MESH_KINDS


@dataclass(frozen=True)
class Sheet:
    """Cloth, paper, a membrane: triangles. Materials are one number for all, or one for each triangle.

    Attributes:
        triangles: (n, 3) vertices.
        young: Young's modulus, Pa.
        poisson: Poisson's ratio, above −1 and below ½.
        thickness: m.
        density: kg/m³.
        damping: Stiffness damping β, s: viscosity is β times Young's modulus.
        bending: What the bending stiffness E t³/12(1 − ν²) of a plate is multiplied by: woven cloth bends more easily
            than a plate that stretches as it does. One number, or one for each inner edge in `topology.hinges`' order;
            0 for all: it has no hinges.
        angle: Angles of rest of inner edges in that order, rad, one or one for each; None: flat, which is quicker.
        shaped: Whether to add the angle that an inner edge has in the rest shape; one or one for each. Counts where
            there are angles.
        name: For messages.
    """

    triangles: Any
    young: Any = 1e6
    poisson: Any = 0.3
    thickness: Any = 1e-3
    density: Any = 1000.0
    damping: Any = 0.0
    bending: Any = 1.0
    angle: Any = None
    shaped: Any = False
    name: str = "sheet"


@dataclass(frozen=True)
class Volume:
    """A soft body: tetrahedra, of positive volume at rest.

    Attributes:
        tetrahedra: (n, 4) vertices; (n, 10): with the middles of edges, quadratic, see `interpolation`.
        young, poisson, density, damping, name: As in `Sheet`.
    """

    tetrahedra: Any
    young: Any = 1e5
    poisson: Any = 0.3
    density: Any = 1000.0
    damping: Any = 0.0
    name: str = "volume"


@dataclass(frozen=True)
class Curve:
    """A cable of round section: a chain of vertices, straight at rest.

    Attributes:
        vertices: (n + 1,) in order.
        radius: m.
        young, density, damping, name: As in `Sheet`; one value for all, or one for each of the n segments.
        bending: What the bending stiffness E π r⁴/4 is multiplied by; one value, or one for each of n − 1 joints; 0 for
            all: it has no joints.
    """

    vertices: Any
    young: Any = 1e6
    radius: Any = 5e-3
    density: Any = 1000.0
    damping: Any = 0.0
    bending: Any = 1.0
    name: str = "curve"


@dataclass(frozen=True)
class Obstacle:
    """A shape that stands still, and that vertices touch.

    Attributes:
        kind: "plane" (z up), "sphere", "box", "capsule", "cylinder", "cone" or "ellipsoid"; "mesh", "hull" and
            "heightfield" where the model is given their distance fields.
        size: As `scene.Shape.size`, m: radius; half extents; radius and half length.
        position: m, world axes.
        rotation: Unit quaternion (w, x, y, z), shape → world.
        friction: μ.
    """

    kind: str
    size: Sequence[float] = (0.0, 0.0, 0.0)
    position: Sequence[float] = (0.0, 0.0, 0.0)
    rotation: Sequence[float] = (1.0, 0.0, 0.0, 0.0)
    friction: float = 0.5


SELF_LAW = ("stiffness", "damping", "distance", "friction")
"""Numbers of a `SelfContact`, each of which may carry a gradient."""


@dataclass(frozen=True)
class SelfContact:
    """How a matter touches itself: vertices with faces, edges with edges.

    Attributes:
        distance: At which two of them touch, m: the thickness of a sheet, the diameter of a cable.
        stiffness: k of each pair, N/m.
        damping: c of each pair, N s/m.
        friction: μ.
    """

    distance: float
    stiffness: float = 1e3
    damping: float = 0.0
    friction: float = 0.5


@dataclass(frozen=True)
class Matter:
    """One deformable thing, or several that share a solve.

    Attributes:
        points: (n, 3) places at rest, m, world axes.
        parts: Sheets, volumes and curves over these points.
        fixed: Vertices that never move.
        pinned: Vertices that a control places.
        obstacles: Shapes that vertices touch.
        faces: (m, 3) triangles of the surface that touch by points of their own, too.
        contact_stiffness: k of each vertex, N/m; one value or one for each.
        contact_damping: c of each vertex, N s/m; at most kh keeps it from sticking.
        radius: Distance from a shape at which a vertex touches it, m.
        sprung: Vertices that springs attach to places, which each step is given.
        spring_stiffness: k of each spring, N/m; one value or one for each.
        spring_damping: c of each spring, N s/m; likewise.
        self_contact: None: its parts pass through each other.
    """

    points: Any
    parts: Sequence[Sheet | Volume | Curve]
    fixed: Sequence[int] = field(default_factory=tuple)
    pinned: Sequence[int] = field(default_factory=tuple)
    obstacles: Sequence[Obstacle] = ()
    faces: Any = ()
    contact_stiffness: Any = 1e3
    contact_damping: Any = 0.0
    radius: Any = 0.0
    sprung: Sequence[int] = field(default_factory=tuple)
    spring_stiffness: Any = 1e3
    spring_damping: Any = 0.0
    self_contact: SelfContact | None = None


OBSTACLE_KINDS = ("plane", "sphere", "box", "capsule", "cylinder", "cone", "ellipsoid", *MESH_KINDS)
_POSITIVE = ("young", "thickness", "density", "radius")
_NOT_NEGATIVE = ("damping", "bending")


def vertices_of(part: Sheet | Volume | Curve) -> np.ndarray:
    """(n, corners) vertices of a part's elements."""
    if isinstance(part, Curve):
        chain = np.asarray(part.vertices, np.int32).ravel()
        return np.stack([chain[:-1], chain[1:]], axis=1)
    if isinstance(part, Sheet):
        return np.asarray(part.triangles, np.int32).reshape(-1, 3)
    given = np.asarray(part.tetrahedra, np.int32)
    return given.reshape(-1, given.shape[-1] if given.ndim == 2 else 4)


def values_of(part: Any, attribute: str, count: int) -> np.ndarray:
    """(count,) values of a part's material."""
    given = np.asarray(getattr(part, attribute), np.float64)
    if given.ndim > 1 or given.size not in (1, count):
        raise SceneError(f"{part.name}: {attribute} has shape {given.shape}; give one value or {count}")
    return np.broadcast_to(given, (count,)).copy()


def check(matter: Matter) -> None:
    """Raises for whatever cannot be simulated, naming the part and the element."""
    points = np.asarray(matter.points, np.float64)
    if points.ndim != 2 or points.shape[1] != 3 or not np.isfinite(points).all():
        raise SceneError(f"points must be (n, 3) finite numbers, not of shape {points.shape}; meters")
    used = np.zeros(len(points), bool)
    for part in matter.parts:
        vertices = vertices_of(part)
        outside = (vertices < 0) | (vertices >= len(points))
        if outside.any():
            e = int(np.argwhere(outside)[0][0])
            raise SceneError(f"{part.name}: element {e} has vertices {vertices[e].tolist()}, of {len(points)} points")
        used[vertices] = True
        _check_material(part, len(vertices))
        _check_rest(part, vertices, points)
    for what in ("fixed", "pinned", "sprung"):
        chosen = np.asarray(getattr(matter, what), np.int64)
        if chosen.size and (chosen.min() < 0 or chosen.max() >= len(points)):
            raise SceneError(f"{what}: vertex {int(chosen.max())} of {len(points)}")
        used[chosen] = True
    both = set(matter.fixed) & set(matter.pinned)
    if both:
        raise SceneError(f"vertex {min(both)} is fixed and pinned; choose one")
    for k, obstacle in enumerate(matter.obstacles):
        if obstacle.kind not in OBSTACLE_KINDS:
            raise SceneError(f"obstacle {k}: kind {obstacle.kind!r}; use one of {', '.join(OBSTACLE_KINDS)}")
        if not obstacle.friction >= 0.0:
            raise SceneError(f"obstacle {k}: friction is {obstacle.friction:g}; it must not be negative")
    if matter.obstacles and not (np.asarray(matter.contact_stiffness, np.float64) > 0.0).all():
        raise SceneError("contact_stiffness must be positive")
    if matter.self_contact is not None:
        _check_self_contact(matter.self_contact)
    if not used.all():
        raise SceneError(f"point {int(np.argmin(used))} belongs to no element, so it has no mass; leave it out")


def _check_self_contact(law: SelfContact) -> None:
    for name, least in (("distance", 0.0), ("stiffness", 0.0), ("damping", -1.0), ("friction", -1.0)):
        value = float(getattr(law, name))
        if not (np.isfinite(value) and value > least and value >= 0.0):
            kind = "positive" if least == 0.0 else "0 or more"
            raise SceneError(f"self-contact: {name} is {value:g}; it must be {kind}")


def _check_material(part: Any, count: int) -> None:
    for name in (*_POSITIVE, *_NOT_NEGATIVE):
        if not hasattr(part, name):
            continue
        values = np.asarray(getattr(part, name), np.float64) if name == "bending" else values_of(part, name, count)
        bad = ~np.isfinite(values) | (values < 0.0 if name in _NOT_NEGATIVE else values <= 0.0)
        if bad.any():
            e = int(np.argmax(bad))
            raise SceneError(f"{part.name}: {name} of element {e} is {values.ravel()[e]:g}; it must be positive")
    if hasattr(part, "poisson"):
        values = values_of(part, "poisson", count)
        bad = ~((values > -1.0) & (values < 0.5))
        if bad.any():
            e = int(np.argmax(bad))
            raise SceneError(f"{part.name}: poisson of element {e} is {values[e]:g}; it must be above −1 and below ½")


def _check_rest(part: Any, vertices: np.ndarray, points: np.ndarray) -> None:
    """Raises for elements without extent, and for tetrahedra that are inside out."""
    edges = points[vertices[:, 1:4]] - points[vertices[:, :1]]
    longest = np.linalg.norm(edges, axis=2).max(axis=1, initial=0.0)
    if isinstance(part, Sheet):
        size, power = np.linalg.norm(np.cross(edges[:, 0], edges[:, 1]), axis=1), 2
    elif isinstance(part, Volume):
        size, power = np.linalg.det(edges), 3
    else:
        size, power = np.linalg.norm(edges[:, 0], axis=1), 1
    bad = size <= 1e-9 * longest**power
    if bad.any():
        e = int(np.argmax(bad))
        what = "is inside out" if size[e] < -1e-9 * longest[e] ** power else "has no extent"
        raise SceneError(f"{part.name}: element {e} (vertices {vertices[e].tolist()}) {what} at rest")
