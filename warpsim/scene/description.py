"""Dataclasses that describe a scene: SI units, radians, NumPy, (w, x, y, z) quaternions, names instead of indices.

Conventions, which are MuJoCo's so that states can be exchanged with it:

- A body's frame is placed in its parent's frame by `position`, `rotation` at the reference configuration; its joints
  then move it, in list order (the first joint is nearest the parent). Several one-dof joints on one body make a
  compound.
- `q` of a free joint is position (3) then quaternion (4) in the world; of a ball joint a quaternion; of a hinge
  radians; of a slide meters. `qd` of a free joint is world linear velocity (3) then angular velocity in the body's
  frame (3); of a ball joint angular velocity in the body's frame.
- Names are unique per kind. Readers use the USD path or the MJCF name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from warpsim.core.notebook import facts_html
from warpsim.scene.actuation import Actuator, Drive, Tendon
from warpsim.scene.constraints import ContactOverride, Equality
from warpsim.scene.defaults import DEFAULT_FRICTION, DEFAULT_SOLIMP, DEFAULT_SOLREF, identity_quat, zeros3
from warpsim.scene.matters import MatterDescription

JOINT_KINDS = ("free", "ball", "hinge", "slide")
JOINT_Q_SIZE = {"free": 7, "ball": 4, "hinge": 1, "slide": 1}
JOINT_DOF_SIZE = {"free": 6, "ball": 3, "hinge": 1, "slide": 1}
SHAPE_KINDS = ("plane", "sphere", "capsule", "box", "cylinder", "cone", "ellipsoid", "mesh", "hull", "heightfield")
MESH_KINDS = ("mesh", "hull", "heightfield")
"""Kinds of shape that name a mesh."""
SHAPE_SIZES_USED = {"plane": 0, "sphere": 1, "capsule": 2, "cylinder": 2, "cone": 2}
"""How many leading numbers of `Shape.size` a kind reads; three where not listed."""
INTEGRATORS = ("euler", "implicitfast", "rk4")
CONES = ("elliptic", "pyramidal")
SOFTENING_PASSES = ("both", "backward")
SOLVER_STOPS = ("converged", "authored")
TRANSMISSIONS = ("joint", "tendon", "site", "body")
ACTUATOR_DYNAMICS = ("none", "integrator", "filter", "filterexact", "muscle", "current")
EQUALITY_KINDS = ("connect", "weld", "joint", "tendon", "distance", "axes")
SENSOR_KINDS = (
    "jointpos",
    "jointvel",
    "jointacc",
    "ballquat",
    "ballangvel",
    "tendonpos",
    "tendonvel",
    "actuatorfrc",
    "framepos",
    "framequat",
    "framexaxis",
    "frameyaxis",
    "framezaxis",
    "framelinvel",
    "frameangvel",
    "framelinacc",
    "frameangacc",
    "velocimeter",
    "gyro",
    "accelerometer",
    "contactforce",
    "rangefinder",
    "subtreecom",
    "subtreelinvel",
    "subtreeangmom",
    "tendonactfrc",
    "touch",
    "force",
    "torque",
    "jointactfrc",
    "actuatorpos",
    "actuatorvel",
    "jointlimitpos",
    "jointlimitvel",
    "jointlimitfrc",
    "tendonlimitpos",
    "tendonlimitvel",
    "tendonlimitfrc",
    "contact",
)
"""Kinds of sensors that can be simulated; a scene may hold others."""
SENSOR_TARGETS = ("", "body", "inertia", "site", "shape", "joint", "tendon", "actuator", "subtree")
SITE_FORMS = ("sphere", "capsule", "ellipsoid", "cylinder", "box")
CONTACT_DATA = {"found": 1, "force": 3, "torque": 3, "dist": 1, "pos": 3, "normal": 3, "tangent": 3}
"""What a "contact" sensor can tell of a contact, in this order, and how many numbers each is."""
CONTACT_CHOICES = ("none", "mindist", "maxforce", "netforce")
"""Which contacts fill the slots of a "contact" sensor: the first ones, the deepest, the strongest, or their sum."""


@dataclass
class Body:
    """A rigid body.

    Mass properties that are None are derived from the body's shapes: mass is the shapes' sum, the center their weighted
    mean, and the inertia theirs about that center, scaled by (authored mass / shapes' mass) where only a mass is given.
    """

    name: str
    parent: str | None = None
    """Name of the parent body; None is the world."""
    position: np.ndarray = field(default_factory=zeros3)
    """Origin in the parent's frame at the reference configuration, m."""
    rotation: np.ndarray = field(default_factory=identity_quat)
    mass: float | None = None
    """kg."""
    com: np.ndarray | None = None
    """Center of mass in the body's frame, m."""
    inertia: np.ndarray | None = None
    """(3, 3) about the center of mass, in the body's axes, kg·m²."""
    inertia_axes: np.ndarray | None = None
    """(4,) rotation of the principal axes, along which a medium drags; counts where moments are equal and the inertia
    leaves the choice. None: nearest the axes of the body's only shape, or else its own."""
    kinematic: bool = False
    """Moves as its velocity says and feels no force. Must hang on the world and have exactly one free joint."""
    gravity_compensation: float = 0.0
    """Fraction of the body's weight canceled by an upward force at its center of mass."""


@dataclass
class Joint:
    """A joint between a body and its parent. A body without joints is fixed to its parent."""

    name: str
    kind: str
    """One of JOINT_KINDS."""
    body: str
    """The child body."""
    anchor: np.ndarray = field(default_factory=zeros3)
    """Joint center in the child's frame, m (hinge, ball). Ignored by free joints."""
    axis: np.ndarray = field(default_factory=lambda: np.array([0.0, 0.0, 1.0]))
    """Unit axis in the child's frame (hinge, slide)."""
    reference: float = 0.0
    """Hinge, slide: the value of q at which the body stands as `Body.position`, `rotation` say."""
    initial_q: np.ndarray | None = None
    """(q size of the kind,) start of a rollout; None: the reference configuration."""
    initial_qd: np.ndarray | None = None
    """(dofs of the kind,); None: at rest."""
    stiffness: float = 0.0
    """Passive spring toward `rest`, N·m/rad or N/m; the same for every dof of the joint."""
    rest: np.ndarray | None = None
    """(q size of the kind,) where the spring is slack; None: the reference configuration."""
    damping: float = 0.0
    """Viscous, N·m·s/rad or N·s/m; the same for every dof of the joint."""
    armature: float = 0.0
    """Added to the mass matrix's diagonal, kg·m² or kg."""
    friction_loss: float = 0.0
    """Dry friction, N·m or N."""
    friction_solref: np.ndarray = field(default_factory=lambda: np.array(DEFAULT_SOLREF))
    friction_solimp: np.ndarray = field(default_factory=lambda: np.array(DEFAULT_SOLIMP))
    limit: tuple[float, float] | None = None
    """(lower, upper) in rad or m, ±inf for an open side; a ball joint uses (0, largest angle)."""
    limit_margin: float = 0.0
    limit_solref: np.ndarray = field(default_factory=lambda: np.array(DEFAULT_SOLREF))
    limit_solimp: np.ndarray = field(default_factory=lambda: np.array(DEFAULT_SOLIMP))
    actuator_force_limit: tuple[float, float] | None = None
    """Range of the summed actuator force on this hinge or slide, N·m or N."""
    actuators_compensate: bool = False
    """Whether compensation of weight counts among the actuators' forces, whose range then cuts it too."""


@dataclass
class Mesh:
    """A triangle mesh in its own frame."""

    name: str
    vertices: np.ndarray
    """(n, 3), m."""
    faces: np.ndarray
    """(m, 3) vertex indices, counterclockwise seen from outside."""
    hull_vertices: np.ndarray | None = None
    """(k,) indices of the vertices whose hull collides where the mesh does as kind hull. None: all."""
    hull_faces: np.ndarray | None = None
    """The flat parts by which the hull lies on others: for each its number of vertices, then their indices,
    counterclockwise seen from outside. None: the hull's faces."""
    hull_normals: np.ndarray | None = None
    """(number of flat parts, 3) their outward unit normals; None without `hull_faces`."""
    prisms: tuple[int, int, float] | None = None
    """Of a height field that collides with convex shapes as MuJoCo's, by a prism under each half of every cell: rows,
    columns and depth of the prisms' base (m below z = 0). The first rows · columns vertices are its heights. None: it
    collides as a smooth surface."""


@dataclass(frozen=True)
class Decomposition:
    """How a mesh is taken apart into convex pieces."""

    tolerance: float = 0.02
    """The furthest a piece may stick out of the mesh, as a share of the mesh's longest edge."""
    max_pieces: int = 32
    """With fewer than the tolerance needs, pieces stick out further."""
    max_vertices: int = 64
    """Of one piece, 4 or more."""


@dataclass
class Shape:
    """A collider (or only a giver of mass), fixed to a body or to the world.

    `size` by kind, in m: plane (0, 0, 0), normal +z; sphere (radius, 0, 0); capsule, cylinder, cone (radius, half
    height along z, 0), the capsule's half height without its caps, the cone's apex at +z; box half edges; ellipsoid
    half axes; mesh, hull and heightfield: scale applied to the mesh's vertices (already baked in by readers: ones).
    """

    name: str
    kind: str
    body: str | None = None
    """Name of the body it is fixed to; None is the world."""
    position: np.ndarray = field(default_factory=zeros3)
    rotation: np.ndarray = field(default_factory=identity_quat)
    size: np.ndarray = field(default_factory=zeros3)
    mesh: str | None = None
    """Name in `Scene.meshes`, for mesh, hull and heightfield."""
    density: float = 1000.0
    """kg/m³; counts where the body's mass or inertia is derived from shapes."""
    mass: float | None = None
    """kg; overrides density. 0 for a shape that weighs nothing."""
    collides: bool = True
    contact_type: int = 1
    """Bit mask: a pair collides if one's type meets the other's affinity."""
    contact_affinity: int = 1
    friction: np.ndarray = field(default_factory=lambda: np.array(DEFAULT_FRICTION))
    """Sliding (1), torsional (m), rolling (m)."""
    friction_combine: str = "max"
    """How two shapes' frictions mix: "max" (MuJoCo), "average", "min", "multiply" (USD, PhysX)."""
    restitution: float = 0.0
    """0 to 1; above 0 it replaces solref by the spring and damper that bounce so."""
    condim: int = 3
    """1 frictionless, 3 sliding, 4 and torsional, 6 and rolling."""
    solref: np.ndarray = field(default_factory=lambda: np.array(DEFAULT_SOLREF))
    solimp: np.ndarray = field(default_factory=lambda: np.array(DEFAULT_SOLIMP))
    solmix: float = 1.0
    priority: int = 0
    margin: float = 0.0
    """Contacts act below the sum of the two shapes' margins, m."""
    gap: float = 0.0
    """Contacts are found, but do not act, up to this far beyond the margin (summed likewise), m."""
    sdf_resolution: int = 64
    """Cells along the longest edge, for meshes and height fields, which collide as signed distance grids."""
    decomposition: Decomposition | None = None
    """Set where a mesh collides through convex pieces (`warpsim.scene.pieces`) and not itself."""
    piece_of: str | None = None
    """Name of the shape of which this is a convex piece."""
    color: tuple[float, float, float] = (0.6, 0.6, 0.65)
    visible: bool = True


@dataclass
class Site:
    """A named frame on a body: where an actuator pushes or a sensor sits."""

    name: str
    body: str | None = None
    position: np.ndarray = field(default_factory=zeros3)
    rotation: np.ndarray = field(default_factory=identity_quat)
    form: str = "sphere"
    """One of SITE_FORMS: the volume in which sensors of contacts feel."""
    size: np.ndarray = field(default_factory=zeros3)
    """(3,) m: radius; radius and half length; or half extents."""


@dataclass
class Sensor:
    """A named measurement."""

    name: str
    kind: str
    target: str
    """Name of what is measured; "" is the world, or nothing where `target_kind` is ""."""
    reference: str | None = None
    """Name of what it is measured from; None is the world."""
    noise: float = 0.0
    """Standard deviation, in the measurement's unit; added where a simulation is given a seed for it."""
    cutoff: float = 0.0
    """Largest absolute value, in the measurement's unit; 0: none."""
    target_kind: str = "site"
    """One of SENSOR_TARGETS; "body" is its frame, "inertia" that of its principal axes at its center of mass,
    "subtree", of contacts, a body with all that hangs on it."""
    reference_kind: str = "site"
    data: list[str] = field(default_factory=lambda: ["found"])
    """Of kind "contact": what it tells of a contact, a selection of CONTACT_DATA in that order."""
    reduce: str = "none"
    """Of kind "contact": one of CONTACT_CHOICES."""
    slots: int = 1
    """Of kind "contact": how many contacts it tells of."""


@dataclass
class Medium:
    """A fluid that fills the world; drag is MuJoCo's inertia-box model."""

    density: float = 0.0
    """kg/m³."""
    viscosity: float = 0.0
    """Pa·s."""
    wind: np.ndarray = field(default_factory=zeros3)
    """m/s, world frame."""


@dataclass
class Options:
    """How the scene is stepped."""

    gravity: np.ndarray = field(default_factory=lambda: np.array([0.0, 0.0, -9.81]))
    timestep: float = 0.002
    integrator: str = "euler"
    cone: str = "elliptic"
    impratio: float = 1.0
    solver_iterations: int = 100
    solver_tolerance: float = 1e-10
    solver_stop: str = "converged"
    """One of SOLVER_STOPS. "converged": steps are solved to the optimum, whatever cap the two numbers above set (see
    `warpsim.scene.convergence`); "authored": they stop where those say, and have no gradients."""
    implicit_damping: bool = True
    """Euler only: joint damping is integrated implicitly (MuJoCo's eulerdamp)."""
    limit_timeconst: bool = True
    """Time constants of solref are kept at two steps or more (MuJoCo's refsafe)."""
    max_contacts: int | None = None
    """Most active contacts per world, for which there is room from the start; None: as many as are needed."""
    constraints: bool = True
    """False leaves out contacts, limits, dry friction and equalities."""
    contacts: bool = True
    contact_softening: float = 0.0
    """m; above 0 contacts act from this far outside their margin, with an impedance that starts from 0 there: an aid
    to optimization, with a bias that `warpsim.solve.softening` states. It makes more contacts active."""
    softening_pass: str = "both"
    """Where softening acts: "both" passes, or "backward", which changes gradients only."""
    impacts: bool = False
    """Whether contacts that close fast are impacts, at their own moment within the step and with the authored
    restitution, so that gradients of bounces and landings are right; see `warpsim.rigid.constraint.impact`."""
    impact_speed: float = 0.1
    """m/s: contacts that close more slowly are left to the compliant model."""


@dataclass
class Scene:
    """Everything a simulation needs to know, in SI. Readers build it; `warpsim.Model` is compiled from it."""

    bodies: list[Body] = field(default_factory=list)
    joints: list[Joint] = field(default_factory=list)
    shapes: list[Shape] = field(default_factory=list)
    sites: list[Site] = field(default_factory=list)
    tendons: list[Tendon] = field(default_factory=list)
    actuators: list[Actuator] = field(default_factory=list)
    drives: list[Drive] = field(default_factory=list)
    equalities: list[Equality] = field(default_factory=list)
    sensors: list[Sensor] = field(default_factory=list)
    matters: list[MatterDescription] = field(default_factory=list)
    """What is not rigid bodies."""
    meshes: dict[str, Mesh] = field(default_factory=dict)
    medium: Medium = field(default_factory=Medium)
    options: Options = field(default_factory=Options)
    excluded_pairs: set[frozenset[str]] = field(default_factory=set)
    """Pairs of shape names that never collide."""
    excluded_bodies: set[frozenset[str]] = field(default_factory=set)
    """Pairs of body names ("" is the world) whose shapes never collide."""
    filter_parent: bool = True
    """A body's shapes do not collide with its parent's (the world excepted, as in MuJoCo)."""
    contact_overrides: list[ContactOverride] = field(default_factory=list)
    option_places: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Fields of the options that the ledger speaks of → prim path and attribute they were authored at."""
    ledger: list[Any] = field(default_factory=list)
    """Reader's notes: what was used, ignored or unsupported."""
    name: str = "scene"

    def _repr_html_(self) -> str:
        kinds = (
            "bodies",
            "joints",
            "shapes",
            "sites",
            "tendons",
            "actuators",
            "drives",
            "equalities",
            "sensors",
            "matters",
        )
        facts = {kind: len(getattr(self, kind)) for kind in kinds if getattr(self, kind)}
        return facts_html(f"Scene {self.name}", {**facts, "time step": f"{self.options.timestep:g} s"})
