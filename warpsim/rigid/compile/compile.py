"""Scene → Model: validated description in, device arrays out."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import warp as wp

from warpsim.collision.contacts import PairTable
from warpsim.collision.ray_cast import RayCast
from warpsim.core.errors import InputError
from warpsim.core.precision import quat, real, vec2, vec3, vec5, vec6
from warpsim.geometry.mesh_mass import mesh_mass_properties
from warpsim.rigid.compile.damping_ratio import set_ratio_damping
from warpsim.rigid.compile.tendons import set_slack_lengths, tendons
from warpsim.rigid.model.actuators import DYNAMICS_CODES, ActuatorTopology, DriveTopology
from warpsim.rigid.model.contact_mixing import contact_mixing, no_pairs
from warpsim.rigid.model.equalities import equalities
from warpsim.rigid.model.limits import joint_limits, tendon_limits
from warpsim.rigid.model.loops import loop_coordinates, loops
from warpsim.rigid.model.model import Model
from warpsim.rigid.model.parameters import (
    ActuatorParameters,
    BodyParameters,
    DriveParameters,
    FluidParameters,
    JointParameters,
    ShapeParameters,
    SiteParameters,
    WeightParameters,
    WorldParameters,
)
from warpsim.rigid.model.shape_mass import SHAPE_CODES, ShapeMassTopology
from warpsim.rigid.model.tables import Tables
from warpsim.rigid.model.topology import Layout, build_topology, to_device
from warpsim.scene import Body, Joint, Scene, Shape, Tendon, validate
from warpsim.scene.actuation import Actuator, DcMotor, Muscle
from warpsim.scene.description import JOINT_DOF_SIZE, SITE_FORMS

_OPEN = (-np.inf, np.inf)


def sym6(matrix: np.ndarray) -> list[float]:
    """(3, 3) symmetric → xx, yy, zz, xy, xz, yz."""
    m = np.asarray(matrix, np.float64)
    return [m[0, 0], m[1, 1], m[2, 2], m[0, 1], m[0, 2], m[1, 2]]


def reference_q(joint: Joint, body: Body) -> np.ndarray:
    """The joint's coordinates at the reference configuration."""
    if joint.kind == "free":
        return np.concatenate([body.position, body.rotation])
    if joint.kind == "ball":
        return np.array([1.0, 0.0, 0.0, 0.0])
    return np.array([joint.reference])


def _joint_rows(joints: list[Joint], bodies: dict[str, Body]) -> SimpleNamespace:
    rows = SimpleNamespace(reference=[], rest=[], q0=[], qd0=[], damping=[], armature=[], force_range=[])
    for j in joints:
        reference = reference_q(j, bodies[j.body])
        rows.reference.extend(reference)
        rows.rest.extend(reference if j.rest is None else np.atleast_1d(j.rest))
        rows.q0.extend(reference if j.initial_q is None else np.atleast_1d(j.initial_q))
        dofs = JOINT_DOF_SIZE[j.kind]
        rows.qd0.extend(np.zeros(dofs) if j.initial_qd is None else np.atleast_1d(j.initial_qd))
        rows.damping.extend([j.damping] * dofs)
        rows.armature.extend([j.armature] * dofs)
        rows.force_range.extend([j.actuator_force_limit or _OPEN] * dofs)
    return rows


def _body_parameters(t: Tables, bodies: list[Body]) -> BodyParameters:
    zero3, zero6 = np.zeros(3), np.zeros(6)
    p = BodyParameters()
    p.position = t.parameter("body.position", [zero3] + [b.position for b in bodies], vec3)
    p.rotation = t.parameter("body.rotation", [[1, 0, 0, 0]] + [b.rotation for b in bodies], quat, derived=True)
    p.mass = t.parameter("body.mass", [0.0] + [b.mass or 0.0 for b in bodies], real, derived=True)
    p.com = t.parameter("body.com", [zero3] + [zero3 if b.com is None else b.com for b in bodies], vec3, derived=True)
    inertia = [zero6] + [zero6 if b.inertia is None else sym6(b.inertia) for b in bodies]
    p.inertia = t.parameter("body.inertia", inertia, vec6, derived=True)
    compensation = [0.0] + [b.gravity_compensation for b in bodies]
    p.gravity_compensation = t.parameter("body.gravity_compensation", compensation, real)
    return p


def _inertia_axes(scene: Scene, body: Body) -> np.ndarray:
    """Where to look for a body's principal axes."""
    if body.inertia_axes is not None:
        return np.asarray(body.inertia_axes, np.float64)
    shapes = [shape.rotation for shape in scene.shapes if shape.body == body.name]
    return np.asarray(shapes[0] if len(shapes) == 1 else [1.0, 0.0, 0.0, 0.0], np.float64)


def _joint_parameters(t: Tables, joints: list[Joint], rows: SimpleNamespace) -> JointParameters:
    p = JointParameters()
    p.anchor = t.parameter("joint.anchor", [j.anchor for j in joints], vec3)
    p.axis = t.parameter("joint.axis", [j.axis for j in joints], vec3, derived=True)
    p.stiffness = t.parameter("joint.stiffness", [j.stiffness for j in joints], real)
    p.reference = t.parameter("joint.reference", rows.reference, real)
    p.rest = t.parameter("joint.rest", rows.rest, real)
    p.damping = t.parameter("joint.damping", rows.damping, real)
    p.armature = t.parameter("joint.armature", rows.armature, real)
    return p


def _transmission(scene: Scene, layout: Layout, kind: str, target: str) -> tuple[int, int, int, int]:
    """Code, target index, first coordinate and first dof of a transmission."""
    if kind == "tendon":
        return 1, layout.tendon_names.index(target), 0, 0
    if kind == "site":
        return 2, layout.site_names.index(target), 0, 0
    if kind == "body":
        return 5, layout.body(target), 0, 0
    j = layout.joint(target)
    code = {"ball": 3, "free": 4}.get(layout.joint_kinds[j], 0)
    return code, j, int(layout.joint_q[j]), int(layout.joint_dof[j])


def _actuators(t: Tables, scene: Scene, layout: Layout) -> tuple[ActuatorTopology, ActuatorParameters, list[float]]:
    columns = [_transmission(scene, layout, a.transmission, a.target) for a in scene.actuators]
    places: list[int] = []
    initial: list[float] = []
    for a in scene.actuators:
        places.append(len(initial) if a.dynamics != "none" else -1)
        initial += [a.initial_activation] if a.dynamics != "none" else []
    topology = ActuatorTopology()
    topology.count = len(scene.actuators)
    topology.transmission = t.integers([c[0] for c in columns])
    topology.target = t.integers([c[1] for c in columns])
    topology.q = t.integers([c[2] for c in columns])
    topology.dof = t.integers([c[3] for c in columns])
    topology.dynamics = t.integers([DYNAMICS_CODES[a.dynamics] for a in scene.actuators])
    topology.activation = t.integers(places)
    topology.early = t.integers([int(a.activation_early) for a in scene.actuators])
    topology.site_body = t.integers([layout.body(s.body) for s in scene.sites])
    p = ActuatorParameters()
    p.gear = t.parameter("actuator.gear", [a.gear for a in scene.actuators], vec6)
    p.gain = t.parameter("actuator.gain", [a.gain for a in scene.actuators], vec3)
    p.bias = t.parameter("actuator.bias", [a.bias for a in scene.actuators], vec3)
    p.time_constant = t.parameter("actuator.time_constant", [a.time_constant for a in scene.actuators], real)
    p.control_range = t.parameter("actuator.control_range", [a.control_range or _OPEN for a in scene.actuators], vec2)
    p.force_range = t.parameter("actuator.force_range", [a.force_range or _OPEN for a in scene.actuators], vec2)
    ranges = [a.activation_range or _OPEN for a in scene.actuators]
    p.activation_range = t.parameter("actuator.activation_range", ranges, vec2)
    _special_laws(t, scene, topology, p)
    return topology, p, initial


def _law(a: Actuator) -> int:
    if a.motor is not None:
        return 8 if a.dynamics == "current" else 4
    return 0 if a.muscle is None else a.muscle.active + 2 * a.muscle.passive


def _special_laws(t: Tables, scene: Scene, topology: ActuatorTopology, p: ActuatorParameters) -> None:
    """What muscles and motors have besides; parameters of every actuator, or of none where no actuator is one."""
    codes = [_law(a) for a in scene.actuators]
    topology.law = t.integers(codes)
    muscular = any(codes) or any(a.dynamics == "muscle" for a in scene.actuators)
    actuators = scene.actuators if muscular else []
    muscles = [a.muscle or Muscle() for a in actuators]
    p.deactivation_time = t.parameter("actuator.deactivation_time", [a.deactivation_time for a in actuators], real)
    smoothing = [a.activation_smoothing for a in actuators]
    p.activation_smoothing = t.parameter("actuator.activation_smoothing", smoothing, real)
    p.muscle_force = t.parameter("actuator.muscle_force", [x.force for x in muscles], real)
    p.muscle_range = t.parameter("actuator.muscle_range", [x.range for x in muscles], vec2)
    p.muscle_length_range = t.parameter("actuator.muscle_length_range", [x.length_range for x in muscles], vec2)
    curves = [(x.lmin, x.lmax, x.vmax, x.fpmax, x.fvmax) for x in muscles]
    p.muscle_curve = t.parameter("actuator.muscle_curve", curves, vec5)
    motors = [a.motor or DcMotor() for a in actuators]
    p.resistance = t.parameter("actuator.resistance", [x.resistance for x in motors], real)
    p.motor_constant = t.parameter("actuator.motor_constant", [x.constant for x in motors], real)
    p.cogging = t.parameter("actuator.cogging", [x.cogging for x in motors], vec3)


def _compensated(joints: list[Joint], bodies: list[Body]) -> list[int]:
    """Per dof, whether weight compensation acts through the joint's range of actuator forces."""
    used = any(body.gravity_compensation != 0.0 for body in bodies)
    flags = [used and j.actuators_compensate and j.actuator_force_limit is not None for j in joints]
    return [int(flag) for flag, j in zip(flags, joints, strict=True) for _ in range(JOINT_DOF_SIZE[j.kind])]


def _drives(t: Tables, scene: Scene, layout: Layout) -> tuple[DriveTopology, DriveParameters]:
    index = [layout.joint(d.joint) if d.axis is None else None for d in scene.drives]
    places = {coordinate.key: i for i, coordinate in enumerate(loop_coordinates(scene))}
    topology = DriveTopology()
    topology.count = len(scene.drives)
    topology.q = t.integers([0 if j is None else int(layout.joint_q[j]) for j in index])
    topology.dof = t.integers([0 if j is None else int(layout.joint_dof[j]) for j in index])
    topology.loop = t.integers([-1 if d.axis is None else places.get((d.joint, d.axis), -2) for d in scene.drives])
    p = DriveParameters()
    topology.per_inertia = t.integers([int(d.acceleration) for d in scene.drives])
    p.stiffness = t.parameter("drive.stiffness", [d.stiffness for d in scene.drives], real, derived=True)
    p.damping = t.parameter("drive.damping", [d.damping for d in scene.drives], real, derived=True)
    p.max_force = t.parameter("drive.max_force", [d.max_force for d in scene.drives], real)
    p.target = t.parameter("drive.target", [d.target for d in scene.drives], real)
    p.target_velocity = t.parameter("drive.target_velocity", [d.target_velocity for d in scene.drives], real)
    return topology, p


def _shape_parameters(t: Tables, shapes: list[Shape]) -> ShapeParameters:
    p = ShapeParameters()
    p.position = t.parameter("shape.position", [s.position for s in shapes], vec3)
    p.rotation = t.parameter("shape.rotation", [s.rotation for s in shapes], quat, derived=True)
    p.size = t.parameter("shape.size", [s.size for s in shapes], vec3)
    return p


def _shape_masses(t: Tables, scene: Scene, owners: list[int], bodies: list[Body]) -> ShapeMassTopology:
    shapes = scene.shapes
    t.parameter("shape.density", [s.density for s in shapes], real)
    t.parameter("shape.mass", [s.mass or 0.0 for s in shapes], real)
    starts, members = [0], []
    for b in range(len(bodies) + 1):
        members += [i for i, owner in enumerate(owners) if owner == b]
        starts.append(len(members))
    units = [mesh_mass_properties(scene, s) for s in shapes]
    topology = ShapeMassTopology()
    topology.start, topology.shape = t.integers(starts), t.integers(members)
    topology.kind = t.integers([SHAPE_CODES[s.kind] for s in shapes])
    topology.has_mass = t.integers([int(s.mass is not None) for s in shapes])
    topology.mass_given = t.integers([1] + [int(b.mass is not None) for b in bodies])
    topology.com_given = t.integers([1] + [int(b.com is not None) for b in bodies])
    topology.inertia_given = t.integers([1] + [int(b.inertia is not None) for b in bodies])
    topology.unit_volume = wp.array([u.volume for u in units], dtype=real, device=t.device)
    topology.unit_com = wp.array(np.array([u.com for u in units]).reshape(-1, 3), dtype=vec3, device=t.device)
    topology.unit_inertia = wp.array(np.array([u.inertia for u in units]).reshape(-1, 6), dtype=vec6, device=t.device)
    return topology


def _weights(t: Tables, layout: Layout) -> WeightParameters:
    p = WeightParameters()
    p.body = t.derived(len(layout.body_names), vec2)
    p.dof = t.derived(layout.nv, real)
    p.tendon = t.derived(len(layout.tendon_names), real)
    p.tendon_length = t.derived(len(layout.tendon_names), real)
    return p


def _world_parameters(t: Tables, scene: Scene) -> WorldParameters:
    p = WorldParameters()
    p.gravity = t.per_world("world.gravity", scene.options.gravity, vec3)
    p.timestep = t.per_world("world.timestep", scene.options.timestep, real)
    p.medium_density = t.per_world("world.medium_density", scene.medium.density, real)
    p.medium_viscosity = t.per_world("world.medium_viscosity", scene.medium.viscosity, real)
    p.wind = t.per_world("world.wind", scene.medium.wind, vec3)
    return p


def _has_limits(scene: Scene) -> bool:
    """Whether a joint or tendon has a limit or dry friction."""
    things: list[Joint | Tendon] = [*scene.joints, *scene.tendons]
    return any((x.limit is not None and np.isfinite(x.limit).any()) or x.friction_loss > 0 for x in things)


def _constraints(t: Tables, scene: Scene, layout: Layout, joints: list[Joint], bodies: list[Body]) -> dict[str, Any]:
    """The fields of `Model` that constraints read."""
    options = scene.options
    table = PairTable.from_scene(scene, t.device) if options.constraints and options.contacts else no_pairs(t.device)
    given = options.max_contacts
    max_contacts = table.max_contacts if given is None or not table.pair_count else given
    mixing, pair = contact_mixing(t, scene, table)
    equality_topology, equality, equality_names = equalities(t, scene, layout, bodies)
    loop_topology, loop = loops(t, scene, equality_names)
    return dict(
        pair_table=table,
        contact_mixing=mixing,
        pair=pair,
        max_contacts=max_contacts,
        equality_topology=equality_topology,
        equality=equality,
        equality_names=equality_names,
        loop_topology=loop_topology,
        loop=loop,
        limit=joint_limits(t, joints, constraints=options.constraints),
        tendon_limit=tendon_limits(t, scene.tendons, constraints=options.constraints),
        weight=_weights(t, layout),
        has_constraints=bool(max_contacts or equality_names or _has_limits(scene)) and options.constraints,
    )


def _range_rays(scene: Scene, worlds: int, device: wp.Device) -> RayCast | None:
    """Rays of the range finders; each may meet all shapes but those of its site's body and those nobody can notice."""
    sites = {site.name: site for site in scene.sites}
    starts = [sites[s.target] for s in scene.sensors if s.kind == "rangefinder" and s.target in sites]
    if not starts:
        return None
    solid = [shape for shape in scene.shapes if shape.piece_of is None]
    noticed = [shape for shape in solid if shape.collides or shape.visible or shape.decomposition is not None]
    targets = [[shape.name for shape in noticed if shape.body != site.body] for site in starts]
    return RayCast(scene, len(starts), worlds, device, targets=targets)


def _site_parameters(t: Tables, scene: Scene) -> SiteParameters:
    site = SiteParameters()
    site.position = t.parameter("site.position", [s.position for s in scene.sites], vec3)
    site.rotation = t.parameter("site.rotation", [s.rotation for s in scene.sites], quat, derived=True)
    return site


def _sums_actuator_forces(scene: Scene, joints: list[Joint]) -> bool:
    """Whether actuator forces are summed by dof: limits cut the sums, and a sensor reads them."""
    limited = any(joint.actuator_force_limit is not None for joint in joints)
    return limited or any(sensor.kind == "jointactfrc" for sensor in scene.sensors)


def _fluid(worlds: int, bodies: int, device: wp.DeviceLike) -> FluidParameters:
    p = FluidParameters()
    p.box = wp.zeros((worlds, bodies), dtype=vec3, device=device)
    p.rotation = wp.zeros((worlds, bodies), dtype=quat, device=device)
    return p


def compile_model(scene: Scene, *, worlds: int = 1, device: str | wp.Device = "cpu") -> Model:
    """Compiles a scene for a device.

    Args:
        scene: The description; validated here.
        worlds: Number of independent copies stepped together.
        device: Warp device.

    Returns:
        The model; `Derivation(model).run()` has to fill the derived parameters before a step.
    """
    if worlds < 1:
        raise InputError(f"worlds={worlds}; at least 1 is needed")
    validate(scene)
    device = wp.get_device(device)
    arrays, layout, joints, order = build_topology(scene)
    bodies = [scene.bodies[i] for i in order]
    rows = _joint_rows(joints, {b.name: b for b in bodies})
    t = Tables(worlds, device)
    body = _body_parameters(t, bodies)
    joint = _joint_parameters(t, joints, rows)
    tendon_topology, tendon = tendons(t, scene, layout, arrays)
    actuator_topology, actuator, activation = _actuators(t, scene, layout)
    drive_topology, drive = _drives(t, scene, layout)
    site = _site_parameters(t, scene)
    transmissions = {a.transmission for a in scene.actuators}
    compensated = _compensated(joints, bodies)
    owners = [layout.body(s.body) for s in scene.shapes]
    model = Model(
        device=device,
        worlds=worlds,
        options=scene.options,
        layout=layout,
        topology=to_device(arrays, device),
        tendon_topology=tendon_topology,
        actuator_topology=actuator_topology,
        drive_topology=drive_topology,
        shape_mass_topology=_shape_masses(t, scene, owners, bodies),
        shape_body=t.integers(owners),
        shape_whole=t.integers([layout.shape_names.index(s.piece_of or s.name) for s in scene.shapes]),
        body=body,
        joint=joint,
        tendon=tendon,
        actuator=actuator,
        drive=drive,
        site=site,
        shape=_shape_parameters(t, scene.shapes),
        world=_world_parameters(t, scene),
        fluid=_fluid(worlds, len(bodies) + 1, device),
        joint_force_range=t.parameter("joint.force_range", rows.force_range, vec2),
        inertia_axes=np.array([[1.0, 0.0, 0.0, 0.0]] + [_inertia_axes(scene, b) for b in bodies]),
        authored=t.authored,
        described=t.described,
        sensors=tuple(scene.sensors),
        site_form=t.integers([SITE_FORMS.index(s.form) for s in scene.sites]),
        site_size=wp.array(np.array([s.size for s in scene.sites]).reshape(-1, 3), dtype=vec3, device=device),
        range_rays=_range_rays(scene, worlds, device),
        na=len(activation),
        initial_q=np.array(rows.q0, np.float64),
        initial_qd=np.array(rows.qd0, np.float64),
        initial_activation=np.array(activation, np.float64),
        has_tendon_forces=any(x.stiffness or x.damping for x in scene.tendons),
        has_tendon_armature=any(x.armature for x in scene.tendons),
        has_spatial_tendons=any(x.path for x in scene.tendons),
        has_medium=bool(scene.medium.density or scene.medium.viscosity),
        has_joint_actuators=bool(transmissions - {"site", "body"}),
        has_site_actuators="site" in transmissions,
        has_adhesion="body" in transmissions,
        drives_loops=bool((drive_topology.loop.numpy() >= 0).any()),
        has_force_limits=_sums_actuator_forces(scene, joints),
        actuators_compensate=any(compensated),
        dof_compensated=t.integers(compensated),
        damped=any(j.damping > 0 for j in joints),
        **_constraints(t, scene, layout, joints, bodies),
    )
    set_slack_lengths(model, scene)
    set_ratio_damping(model, scene)
    return model
