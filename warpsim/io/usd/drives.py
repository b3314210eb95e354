"""`PhysicsDriveAPI` → `Drive`: gains per degree and targets in degrees become radians, forces and lengths SI."""

from __future__ import annotations

import numpy as np

from warpsim.core.errors import SceneError
from warpsim.io.usd.context import Context
from warpsim.io.usd.joints import ENDLESS, Dof, JointSpec
from warpsim.io.usd.ledger_scan import applied_apis
from warpsim.io.usd.tree import Link
from warpsim.io.usd.units import DEGREE
from warpsim.scene import Drive


def add_drives(context: Context, link: Link) -> None:
    """Adds the drives applied to a link's hinges and slides."""
    for spec in link.joints:
        for dof in driven_dofs(context, spec):
            context.scene.drives.append(read_drive(context, spec, dof))


def driven_dofs(context: Context, spec: JointSpec) -> list[Dof]:
    """The joint's hinges and slides with a drive."""
    apis = applied_apis(spec.prim)
    driven = [dof for dof in spec.dofs if f"PhysicsDriveAPI:{dof.token}" in apis]
    for dof in driven:
        if dof.kind == "ball":
            context.ledger.unsupported(spec.prim, f"PhysicsDriveAPI:{dof.token}", "ball joints are not driven")
    return [dof for dof in driven if dof.kind != "ball"]


def read_drive(context: Context, spec: JointSpec, dof: Dof) -> Drive:
    """The drive of one dof, on the joint of the same name."""
    name, prefix = spec.name + dof.suffix, f"drive:{dof.token}:physics:"
    drive = Drive(name, name)
    kind = context.read.token(spec.prim, prefix + "type", choices=("force", "acceleration"))
    drive.acceleration = kind == "acceleration"
    units = context.units
    coordinate = units.coordinate(dof.angular)
    if drive.acceleration:  # force per unit of inertia: only the coordinate has a unit
        gain = 1.0 / DEGREE if dof.angular else 1.0
    else:
        gain = units.gain(dof.angular, degrees=True)
    factors = {
        "stiffness": (gain, "stiffness"),
        "damping": (gain, "damping"),
        "target": (coordinate, "targetPosition"),
        "target_velocity": (coordinate, "targetVelocity"),
    }
    for field, (factor, attribute) in factors.items():
        value = context.read.number(spec.prim, prefix + attribute)
        if value is not None:
            setattr(drive, field, factor * value)
    limit = context.read.number(spec.prim, prefix + "maxForce", finite=False)
    if limit is not None and limit < 0:
        raise SceneError(f"{spec.name}.{prefix}maxForce is {limit}; it must not be negative")
    drive.max_force = np.inf if limit is None or limit >= ENDLESS else units.force(dof.angular) * limit
    return drive
