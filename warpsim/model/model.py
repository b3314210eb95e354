"""The compiled model: integer topology and real parameters of a scene, on a device, for a number of worlds.

Two tables of parameters: `authored` is what a user sets and asks gradients of; `physical` is what the steps read. Where
both need the same numbers they are the same array; the others are made by `warpsim.model.derive`, once per rollout.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import warp as wp

from warpsim.errors import InputError, unknown_name
from warpsim.model.actuators import ActuatorTopology, DriveTopology
from warpsim.model.parameters import (
    ActuatorParameters,
    BodyParameters,
    DriveParameters,
    FluidParameters,
    JointParameters,
    SiteParameters,
    TendonParameters,
    WorldParameters,
)
from warpsim.model.shape_mass import ShapeMassTopology
from warpsim.model.tendons import TendonTopology
from warpsim.model.topology import Layout, Topology
from warpsim.precision import numpy_real
from warpsim.scene.description import Options

MASS_PARAMETERS = ("body.mass", "body.com", "body.inertia")
FEEDS = {
    **dict.fromkeys(
        (
            *MASS_PARAMETERS,
            "shape.size",
            "shape.density",
            "shape.mass",
            "shape.position",
            "shape.rotation",
        ),
        (*MASS_PARAMETERS, "fluid.box", "fluid.rotation"),
    ),
    "body.rotation": ("body.rotation",),
    "site.rotation": ("site.rotation",),
    "joint.axis": ("joint.axis",),
}
"""Authored parameter → the derived ones it reaches; a parameter that is not listed is physical itself."""

GROUPS = ("body", "joint", "tendon", "actuator", "drive", "site", "world", "fluid")


@dataclass
class Model:
    """A scene ready to step. Built by `warpsim.model.compile.compile_model`.

    Sizes: worlds W, nq, nv, na activations, nu actuators, nd drives, nbody and nlink (world included), nm entries of the
    mass matrix, ntree trees.
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
    body: BodyParameters
    joint: JointParameters
    tendon: TendonParameters
    actuator: ActuatorParameters
    drive: DriveParameters
    site: SiteParameters
    world: WorldParameters
    fluid: FluidParameters
    joint_force_range: wp.array  # (W, nv) vec2, N·m or N: range of the summed actuator force
    authored: dict[str, wp.array]
    na: int
    initial_q: np.ndarray  # (nq,)
    initial_qd: np.ndarray  # (nv,)
    initial_activation: np.ndarray  # (na,)
    default_target: np.ndarray  # (nd,) drive targets of the scene
    default_target_velocity: np.ndarray  # (nd,)
    has_tendon_forces: bool
    has_medium: bool
    has_joint_actuators: bool
    has_site_actuators: bool
    has_force_limits: bool
    zero_dofs: wp.array = field(init=False)
    no_activation: wp.array = field(init=False)

    def __post_init__(self) -> None:
        real = self.world.timestep.dtype
        self.zero_dofs = wp.zeros((self.worlds, self.nv), dtype=real, device=self.device)
        self.no_activation = wp.zeros((self.worlds, 0), dtype=real, device=self.device)

    @property
    def nq(self) -> int:
        return self.layout.nq

    @property
    def nv(self) -> int:
        return self.layout.nv

    @property
    def nm(self) -> int:
        return self.layout.nm

    @property
    def ntree(self) -> int:
        return self.layout.ntree

    @property
    def nu(self) -> int:
        return len(self.layout.actuator_names)

    @property
    def nd(self) -> int:
        return len(self.layout.drive_names)

    @property
    def nbody(self) -> int:
        return self.topology.nbody

    @property
    def nlink(self) -> int:
        return self.topology.nlink

    @property
    def implicit_damping(self) -> bool:
        """Whether joint damping is on the left-hand side of the equation solved for the acceleration."""
        o = self.options
        return o.integrator == "implicitfast" or (o.integrator == "euler" and o.implicit_damping)

    @property
    def implicit_drives(self) -> bool:
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

    def set_parameter(self, name: str, value: np.ndarray) -> None:
        """Sets an authored parameter.

        Args:
            name: "group.field", as in `authored`.
            value: (n, …) for all worlds alike, or (W, n, …) one row per world, SI.
        """
        array = self._authored(name)
        current = array.numpy()
        value = np.asarray(value, dtype=numpy_real)
        if value.shape not in (current.shape, current.shape[1:]):
            raise InputError(
                f"parameter {name!r} has shape {current.shape} (worlds first) or {current.shape[1:]}; got {value.shape}"
            )
        if np.isnan(value).any():
            raise InputError(f"parameter {name!r} was given NaN")
        array.assign(np.ascontiguousarray(np.broadcast_to(value, current.shape)))

    def require_gradients(self, names: list[str]) -> None:
        """Lets authored parameters carry gradients; call before a rollout is recorded."""
        reached = set()
        for name in names:
            self._authored(name).requires_grad = True
            reached.update(FEEDS.get(name, (name,)))
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
