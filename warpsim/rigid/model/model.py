"""The compiled model: integer topology and real parameters of a scene, on a device, for a number of worlds.

Two tables of parameters: `authored` is what a user sets and asks gradients of; `physical` is what the steps read. Where
both need the same numbers they are the same array; the others are made by `rigid.compile.derive`, once per rollout.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import warp as wp

from warpsim.collision.contacts import PairTable
from warpsim.collision.ray_cast import RayCast
from warpsim.core.errors import InputError, unknown_name
from warpsim.core.precision import numpy_real
from warpsim.rigid.model.actuators import ActuatorTopology, DriveTopology
from warpsim.rigid.model.contact_mixing import ContactMixing
from warpsim.rigid.model.equalities import EqualityTopology
from warpsim.rigid.model.loops import LoopTopology
from warpsim.rigid.model.parameter_checks import check_parameter_values
from warpsim.rigid.model.parameters import (
    ActuatorParameters,
    BodyParameters,
    DriveParameters,
    EqualityParameters,
    FluidParameters,
    JointParameters,
    LimitParameters,
    LoopParameters,
    PairParameters,
    ShapeParameters,
    SiteParameters,
    TendonLimitParameters,
    TendonParameters,
    WeightParameters,
    WorldParameters,
)
from warpsim.rigid.model.shape_mass import ShapeMassTopology
from warpsim.rigid.model.tendons import TendonTopology
from warpsim.rigid.model.topology import Layout, Topology
from warpsim.scene.description import Options, Sensor
from warpsim.solve.sparsity import TreeSparsity, tree_sparsity

DRIVE_GAINS = ("drive.stiffness", "drive.damping")
WEIGHTS = ("weight.body", "weight.dof", "weight.tendon", *DRIVE_GAINS)
"""Inverse weights, and the gains of drives that act per unit of effective inertia."""
PATHS = ("weight.tendon", "weight.tendon_length")
"""What the paths of spatial tendons at the reference configuration set."""
_FROM_INERTIA = ("body.inertia", "fluid.box", "fluid.rotation", *WEIGHTS)
_FROM_MASS = ("body.mass", "body.com", *_FROM_INERTIA)
_CONTACT = {
    "friction": ("pair.friction",),
    "solref": ("pair.solref", "pair.solref_friction", "pair.restitution"),
    "solimp": ("pair.solimp",),
    "margin": ("pair.margin",),
}
FEEDS = {
    **{name: (name, *_FROM_INERTIA) for name in ("body.mass", "body.com")},
    "body.inertia": _FROM_INERTIA,
    **dict.fromkeys(("shape.density", "shape.mass"), _FROM_MASS),
    "shape.size": ("shape.size", *_FROM_MASS),
    **{name: (name, "body.com", *_FROM_INERTIA) for name in ("shape.position", "shape.rotation")},
    **{name: (name, *WEIGHTS) for name in ("body.position", "body.rotation", "joint.anchor", "joint.axis")},
    "joint.reference": ("joint.reference", *WEIGHTS),  # of balls and free joints: where weights are taken
    "joint.armature": ("joint.armature", *WEIGHTS),
    "tendon.coefficient": ("tendon.coefficient", "weight.tendon"),
    "tendon.armature": ("tendon.armature", *WEIGHTS),
    "site.rotation": ("site.rotation",),
    "equality.relative_rotation": ("equality.relative_rotation",),
    "equality.axes": ("equality.axes",),
    **{f"shape.{field}": reached for field, reached in _CONTACT.items()},
    **{f"contact_override.{field}": reached for field, reached in _CONTACT.items()},
    "contact_override.solref": ("pair.solref", "pair.restitution"),
    "contact_override.solref_friction": ("pair.solref_friction",),
    "shape.solmix": ("pair.solref", "pair.solref_friction", "pair.solimp"),
    "shape.restitution": ("pair.solref", "pair.restitution"),
    "world.timestep": ("world.timestep", "pair.solref"),
}
"""Authored parameter → the physical ones it reaches; a parameter that is not listed is physical itself."""
SPATIAL_FEEDS = {
    **dict.fromkeys(("site.position", "shape.size", "shape.position", "shape.rotation"), PATHS),
    **dict.fromkeys(("body.position", "body.rotation", "joint.anchor", "joint.reference"), PATHS),
}
"""What they reach besides where there are spatial tendons."""
INERTIAL_FEEDS = dict.fromkeys(("tendon.coefficient", "site.position"), WEIGHTS)
"""What they reach besides where there is inertia along tendons."""

OPTIONAL_STAGES = {
    **dict.fromkeys(("tendon.stiffness", "tendon.damping", "tendon.spring_range"), "has_tendon_forces"),
    **dict.fromkeys(("world.medium_density", "world.medium_viscosity", "world.wind"), "has_medium"),
    "joint.force_range": "has_force_limits",
    "tendon.armature": "has_tendon_armature",
}
"""Parameter → the flag of `Model` without which no stage reads it."""

GROUPS = (
    "body",
    "joint",
    "tendon",
    "actuator",
    "drive",
    "site",
    "shape",
    "world",
    "fluid",
    "pair",
    "weight",
    "limit",
    "tendon_limit",
    "equality",
    "loop",
)


@dataclass
class Model:
    """A scene ready to step. Built by `warpsim.rigid.compile.compile.compile_model`.

    Sizes: worlds W, nq, nv, na activations, nu actuators, nd drives, nbody and nlink (world included), nm entries of
    the mass matrix, ntree trees.
    """

    device: wp.Device
    worlds: int
    options: Options
    layout: Layout
    topology: Topology
    tendon_topology: TendonTopology
    actuator_topology: ActuatorTopology
    drive_topology: DriveTopology
    shape_mass_topology: ShapeMassTopology
    shape_body: wp.array  # (nshape,) int32: the body each shape is fixed to
    shape_whole: wp.array  # (nshape,) int32: the shape of which it is a convex piece, or itself
    equality_topology: EqualityTopology
    equality_names: tuple[str, ...]  # the active ones
    loop_topology: LoopTopology
    pair_table: PairTable  # empty without contacts
    contact_mixing: ContactMixing
    max_contacts: int  # places for contacts per world
    body: BodyParameters
    joint: JointParameters
    tendon: TendonParameters
    actuator: ActuatorParameters
    drive: DriveParameters
    site: SiteParameters
    shape: ShapeParameters
    world: WorldParameters
    fluid: FluidParameters
    pair: PairParameters
    weight: WeightParameters
    limit: LimitParameters
    tendon_limit: TendonLimitParameters
    equality: EqualityParameters
    loop: LoopParameters
    joint_force_range: wp.array  # (W, nv) vec2, N·m or N: range of the summed actuator force
    inertia_axes: np.ndarray  # (nbody, 4) rotations near which principal axes are looked for
    authored: dict[str, wp.array]
    described: dict[str, np.ndarray]  # (n, …) float64: the scene's own values of the authored parameters
    sensors: tuple[Sensor, ...]
    site_form: wp.array  # (nsite,) int32: place in SITE_FORMS
    site_size: wp.array  # (nsite,) vec3, m
    range_rays: RayCast | None  # those of range finders, in the order of their sensors
    na: int
    initial_q: np.ndarray  # (nq,)
    initial_qd: np.ndarray  # (nv,)
    initial_activation: np.ndarray  # (na,)
    has_tendon_forces: bool
    has_tendon_armature: bool
    has_spatial_tendons: bool
    has_medium: bool
    has_joint_actuators: bool
    has_site_actuators: bool
    has_adhesion: bool
    has_force_limits: bool
    actuators_compensate: bool  # whether a joint with a range of actuator forces counts compensation among them
    dof_compensated: wp.array  # (nv,) int32: 1 where it does
    has_constraints: bool  # whether a step has anything for the contact solver to do
    drives_loops: bool  # whether a drive acts on a joint that closes a loop
    damped: bool  # whether a joint has damping
    sparsity: TreeSparsity = field(init=False)  # of the mass matrix, as the solver sees it
    zero_dofs: wp.array = field(init=False)
    no_activation: wp.array = field(init=False)

    def __post_init__(self) -> None:
        real = self.world.timestep.dtype
        t = self.topology
        self.sparsity = tree_sparsity(self.nv, t.row_start, t.row_column, t.dof_prescribed)
        self.zero_dofs = wp.zeros((self.worlds, self.nv), dtype=real, device=self.device)
        self.no_activation = wp.zeros((self.worlds, 0), dtype=real, device=self.device)

    @property
    def nq(self) -> int:
        """Coordinates."""
        return self.layout.nq

    @property
    def nv(self) -> int:
        """Dofs."""
        return self.layout.nv

    @property
    def nm(self) -> int:
        """Entries of the tree-sparse mass matrix."""
        return self.layout.nm

    @property
    def ntree(self) -> int:
        """Kinematic trees."""
        return self.layout.ntree

    @property
    def nu(self) -> int:
        """Actuators."""
        return len(self.layout.actuator_names)

    @property
    def nd(self) -> int:
        """Drives."""
        return len(self.layout.drive_names)

    @property
    def nbody(self) -> int:
        """Bodies, the world included."""
        return self.topology.nbody

    @property
    def nlink(self) -> int:
        """Links, the world included."""
        return self.topology.nlink

    @property
    def nshape(self) -> int:
        """Shapes."""
        return len(self.layout.shape_names)

    @property
    def npair(self) -> int:
        """Pairs of shapes that may touch."""
        return self.pair_table.pair_count

    @property
    def pair_condim(self) -> wp.array:
        """(np,) int32: dimension of the contacts of each pair, 1, 3, 4 or 6."""
        return self.contact_mixing.condim

    @property
    def implicit_damping(self) -> bool:
        """Whether joint damping is on the left-hand side of the equation solved for the acceleration.

        Euler does so only if a joint was damped when the model was compiled; damping set later is explicit there.
        """
        o = self.options
        return o.integrator == "implicitfast" or (o.integrator == "euler" and o.implicit_damping and self.damped)

    @property
    def saturation_size(self) -> int:
        """Numbers that report cuts of a world: actuators, drives and, if a joint limits its actuators' force, dofs."""
        return self.nu + self.nd + (self.nv if self.has_force_limits and self.nu else 0)

    @property
    def two_stage(self) -> bool:
        """Whether the integrator solves a system of its own after the contact solver's."""
        return self.implicit_damping

    @property
    def softened_backward(self) -> bool:
        """Whether contacts act from a distance in the backward pass, and only there."""
        o = self.options
        return self.max_contacts > 0 and o.contact_softening > 0.0 and o.softening_pass == "backward"

    @property
    def has_impacts(self) -> bool:
        """Whether contacts that close fast are impacts of their own (`Options.impacts`)."""
        return self.max_contacts > 0 and self.options.impacts

    @property
    def has_special_laws(self) -> bool:
        """Whether an actuator is a muscle, by its force or its activation, or a motor."""
        return self.actuator.muscle_force.shape[1] > 0

    @property
    def measures_inertia(self) -> bool:
        """Whether a sensor reads the principal axes of a body."""
        return any("inertia" in (s.target_kind, s.reference_kind) for s in self.sensors)

    @property
    def implicit_drives(self) -> bool:
        """Whether drives act on the left-hand side too; an explicit integrator has none."""
        return self.options.integrator != "rk4"

    @property
    def physical(self) -> dict[str, wp.array]:
        """Every array the steps read, by "group.field"."""
        table = {}
        for group in GROUPS:
            struct = getattr(self, group)
            for name in struct._cls.vars:
                table[f"{group}.{name}"] = getattr(struct, name)
        table["joint.force_range"] = self.joint_force_range
        return table

    def with_room(self, contacts: int) -> Model:
        """The same model, over the same parameters, with places for so many contacts per world."""
        return replace(self, max_contacts=contacts)

    def set_parameter(self, name: str, value: np.ndarray) -> None:
        """Sets an authored parameter.

        Args:
            name: "group.field", as in `authored`.
            value: (n, …) for all worlds alike, or (W, n, …) one row per world, SI.

        Raises:
            RangeError: A number cannot be simulated with.
        """
        array = self._authored(name)
        current = array.numpy()
        value = np.asarray(value, dtype=numpy_real)
        if value.shape not in (current.shape, current.shape[1:]):
            raise InputError(
                f"parameter {name!r} has shape {current.shape} (worlds first) or {current.shape[1:]}; got {value.shape}"
            )
        check_parameter_values(name, np.broadcast_to(value, current.shape), self.described[name])
        flag = OPTIONAL_STAGES.get(name)
        if flag is not None and not getattr(self, flag) and (value != current).any():
            raise InputError(
                f"parameter {name!r} acts on nothing here: its stage was left out because the scene gives it no value; "
                "give the scene one, however small"
            )
        array.assign(np.ascontiguousarray(np.broadcast_to(value, current.shape)))

    def require_gradients(self, names: list[str]) -> None:
        """Lets authored parameters carry gradients; call before a rollout is recorded."""
        reached: set[str] = set()
        for name in names:
            self._authored(name).requires_grad = True
            reached.update(FEEDS.get(name, (name,)))
            if self.has_spatial_tendons:
                reached.update(SPATIAL_FEEDS.get(name, ()))
            if self.has_tendon_armature:
                reached.update(INERTIAL_FEEDS.get(name, ()))
        for group in GROUPS:
            struct = getattr(self, group)
            for field_name in struct._cls.vars:
                if f"{group}.{field_name}" in reached:
                    array = getattr(struct, field_name)
                    array.requires_grad = True
                    setattr(struct, field_name, array)  # the struct keeps a copy of the pointers

    def _authored(self, name: str) -> wp.array:
        if name not in self.authored:
            raise unknown_name("parameter", name, self.authored)
        return self.authored[name]
