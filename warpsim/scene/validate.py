"""`validate`: refuses a scene that cannot be simulated, naming the item at fault and the fix.

It never changes the scene. Order matters: names and shapes of arrays are checked first, and later checks rely on them.
"""

from __future__ import annotations

import numpy as np

from warpsim.core.errors import SceneError
from warpsim.scene.actuation import Drive, Tendon, TendonPoint
from warpsim.scene.actuator_checks import check_actuators
from warpsim.scene.checks import (
    check_arrays,
    check_choice,
    check_fields,
    check_names,
    check_reference,
    check_unit,
    place,
    sensor_targets,
)
from warpsim.scene.constraints import ContactOverride, Equality
from warpsim.scene.description import (
    ACTUATOR_DYNAMICS,
    CONES,
    EQUALITY_KINDS,
    INTEGRATORS,
    JOINT_KINDS,
    MESH_KINDS,
    SENSOR_TARGETS,
    SHAPE_KINDS,
    SHAPE_SIZES_USED,
    SOFTENING_PASSES,
    SOLVER_STOPS,
    TRANSMISSIONS,
    Mesh,
    Scene,
    Shape,
)
from warpsim.scene.mass_checks import check_masses
from warpsim.scene.matters import check_matters
from warpsim.scene.ranges import POSITIVE
from warpsim.scene.tree_checks import check_joints, check_tree

CONDIMS = (1, 3, 4, 6)
FRICTION_COMBINES = ("max", "average", "min", "multiply")


def validate(scene: Scene) -> None:
    """Checks that a scene can be compiled and simulated.

    Raises:
        SceneError: Names the first body, joint, shape … found wrong, what is wrong, and how to mend it.
    """
    check_names(scene)
    _check_kinds(scene)
    check_arrays(scene)
    check_tree(scene)
    check_joints(scene)
    check_masses(scene)
    _check_shapes(scene)
    _check_sites(scene)
    _check_tendons(scene)
    check_actuators(scene)
    _check_drives(scene)
    _check_equalities(scene)
    _check_pairs(scene)
    _check_sensors(scene)
    _check_world(scene)
    check_matters(scene.matters)


def _check_kinds(scene: Scene) -> None:
    for joint in scene.joints:
        check_choice(place(joint), "kind", joint.kind, JOINT_KINDS)
    for shape in scene.shapes:
        check_choice(place(shape), "kind", shape.kind, SHAPE_KINDS)
        check_choice(place(shape), "friction_combine", shape.friction_combine, FRICTION_COMBINES)
    for actuator in scene.actuators:
        check_choice(place(actuator), "transmission", actuator.transmission, TRANSMISSIONS)
        check_choice(place(actuator), "dynamics", actuator.dynamics, ACTUATOR_DYNAMICS)
    for equality in scene.equalities:
        check_choice(place(equality), "kind", equality.kind, EQUALITY_KINDS)
    check_choice("options", "integrator", scene.options.integrator, INTEGRATORS)
    check_choice("options", "cone", scene.options.cone, CONES)


def _check_shapes(scene: Scene) -> None:
    bodies = {body.name for body in scene.bodies}
    for mesh in scene.meshes.values():
        _check_mesh(mesh)
    for shape in scene.shapes:
        where = place(shape)
        if shape.body is not None:
            check_reference(f"{where}, body", "body", shape.body, bodies)
        check_unit(shape, "rotation")
        check_choice(where, "condim", shape.condim, CONDIMS)
        check_fields(shape, "density", "friction", "solmix", "restitution", "mass")
        if shape.sdf_resolution < 2:
            raise SceneError(f"{where}: sdf_resolution is {shape.sdf_resolution}; give at least 2 cells")
        _check_size(shape)
        if shape.kind in MESH_KINDS:
            check_reference(f"{where}, mesh", "mesh", shape.mesh, scene.meshes)
    _check_pieces(scene)


def _check_pieces(scene: Scene) -> None:
    shapes = {shape.name: shape for shape in scene.shapes}
    for shape in scene.shapes:
        settings = shape.decomposition
        if settings is not None and (shape.kind != "mesh" or shape.collides or shape.piece_of is not None):
            raise SceneError(
                f"{place(shape)} has a decomposition; it must be a mesh that does not collide itself and is no piece"
            )
        if settings is not None and not (
            0.0 < settings.tolerance < 1.0 and settings.max_pieces >= 1 and settings.max_vertices >= 4
        ):
            raise SceneError(
                f"{place(shape)}: {settings}; tolerance lies between 0 and 1, max_pieces is 1 or more, "
                "max_vertices 4 or more"
            )
        if shape.piece_of is None:
            continue
        whole = shapes[check_reference(f"{place(shape)}, piece_of", "shape", shape.piece_of, shapes)]
        if shape.kind != "hull" or whole.decomposition is None or whole.body != shape.body:
            raise SceneError(
                f"{place(shape)} is a piece of {whole.name!r}; it must be a hull on the same body, "
                "of a shape that has a decomposition"
            )


def _check_size(shape: Shape) -> None:
    used = np.asarray(shape.size, dtype=float)[: SHAPE_SIZES_USED.get(shape.kind, 3)]
    if np.any(POSITIVE.outside(used)):
        raise SceneError(
            f"{place(shape)}: size {shape.size} of a {shape.kind}; the first {len(used)} of three must be above zero"
        )


def _check_mesh(mesh: Mesh) -> None:
    where, faces = place(mesh), np.asarray(mesh.faces)
    if len(mesh.vertices) == 0 or len(faces) == 0:
        raise SceneError(f"{where} has {len(mesh.vertices)} vertices and {len(faces)} faces; it must have some of both")
    if not np.issubdtype(faces.dtype, np.integer):
        raise SceneError(f"{where}: faces hold {faces.dtype}; they are vertex indices and must be integers")
    bad = np.flatnonzero((faces < 0).any(axis=1) | (faces >= len(mesh.vertices)).any(axis=1))
    if bad.size:
        raise SceneError(
            f"{where}: face {bad[0]} {faces[bad[0]]} points outside its {len(mesh.vertices)} vertices; "
            "indices run from 0 to one less than that"
        )


def _check_sites(scene: Scene) -> None:
    bodies = {body.name for body in scene.bodies}
    for site in scene.sites:
        check_unit(site, "rotation")
        if site.body is not None:
            check_reference(f"{place(site)}, body", "body", site.body, bodies)


def _check_scalar_joint(where: str, name: str | None, kinds: dict[str, str]) -> None:
    """`name` is a hinge or slide; `kinds` maps every joint's name to its kind."""
    name = check_reference(where, "joint", name, kinds)
    if kinds[name] not in ("hinge", "slide"):
        raise SceneError(f"{where}: joint {name!r} is {kinds[name]}; only hinge and slide joints can be used there")


def _check_tendons(scene: Scene) -> None:
    kinds = {joint.name: joint.kind for joint in scene.joints}
    for tendon in scene.tendons:
        if tendon.path:
            _check_path(scene, tendon)
        elif not tendon.joints:
            raise SceneError(f"{place(tendon)} runs over no joint; name at least one")
        for joint in tendon.joints:
            _check_scalar_joint(place(tendon), joint, kinds)
        check_fields(tendon, "stiffness", "damping", "armature", "friction_loss", "limit", "spring_range", "rod")
        if tendon.rod > 0 and ([point.kind for point in tendon.path] != ["site", "site"] or tendon.armature):
            raise SceneError(
                f"{place(tendon)} has a rod, which makes it a slider-crank: its path is the slider's site and the "
                "crank pin's, and it has no armature"
            )
        if tendon.armature and any(point.kind == "shape" for point in tendon.path):
            raise SceneError(
                f"{place(tendon)} has armature and wraps around a shape; lead it over sites alone, or set armature to 0"
            )


def _check_path(scene: Scene, tendon: Tendon) -> None:
    """A path leads from site to site, with at most one shape between two; pulleys part branches of two or more."""
    where, sites = place(tendon), {site.name for site in scene.sites}
    if tendon.joints:
        raise SceneError(f"{where} has both joints and a path; a tendon is fixed or spatial")
    round_shapes = {shape.name for shape in scene.shapes if shape.kind in ("sphere", "cylinder")}
    for point in tendon.path:
        if point.kind not in ("site", "shape", "pulley"):
            raise SceneError(f"{where}: a path has no {point.kind!r}; use site, shape or pulley")
        if point.kind == "pulley" and not point.divisor > 0:
            raise SceneError(f"{where}: a pulley's divisor is {point.divisor:g}; it must be above zero")
        if point.kind != "pulley":
            known = sites if point.kind == "site" else round_shapes
            check_reference(
                f"{where}, path", "site" if point.kind == "site" else "sphere or cylinder", point.name, known
            )
        if point.side is not None:
            check_reference(f"{where}, side", "site", point.side, sites)
    for branch in path_branches(tendon):
        kinds = [point.kind for point in branch]
        whole = len(kinds) >= 2 and kinds[0] == kinds[-1] == "site"
        if not whole or any(a == b == "shape" for a, b in zip(kinds, kinds[1:], strict=False)):
            shown = ", ".join(kinds) or "nothing"
            raise SceneError(f"{where}: a branch of its path is {shown}; begin and end with sites, one between shapes")


def path_branches(tendon: Tendon) -> list[list[TendonPoint]]:
    """What stands between pulleys on a spatial tendon's path."""
    branches: list[list[TendonPoint]] = [[]]
    for n, point in enumerate(tendon.path):
        if point.kind != "pulley":
            branches[-1].append(point)
        elif n:
            branches.append([])
    return branches


def _check_drives(scene: Scene) -> None:
    kinds = {joint.name: joint.kind for joint in scene.joints}
    loops = {equality.name: equality for equality in scene.equalities if equality.kind == "axes"}
    for drive in scene.drives:
        if drive.axis is None:
            _check_scalar_joint(place(drive), drive.joint, kinds)
        else:
            _check_loop_drive(drive, loops)
        check_fields(drive, "stiffness", "damping", "max_force")


def _check_loop_drive(drive: Drive, loops: dict[str, Equality]) -> None:
    check_reference(f"{place(drive)}, joint", "axes equality", drive.joint, loops)
    free = [axis for axis, held in enumerate(loops[drive.joint].locked) if not held]
    if drive.axis not in free:
        raise SceneError(f"{place(drive)}: axis is {drive.axis}; free ones of {drive.joint!r} are {free}")
    if drive.acceleration:
        raise SceneError(f"{place(drive)}: a drive of a joint that closes a loop cannot act per unit of inertia")


def _check_loop_limits(equality: Equality) -> None:
    where, turns = place(equality), [axis for axis in (3, 4, 5) if not equality.locked[axis]]
    for axis, (low, high) in enumerate(np.asarray(equality.limits)):
        if low > high:
            raise SceneError(f"{where}: limits[{axis}] is ({low:g}, {high:g}); lower must not exceed upper")
        if np.isinf([low, high]).all():
            continue
        if equality.kind != "axes" or equality.locked[axis]:
            raise SceneError(f"{where}: limits[{axis}] bounds what is no free coordinate; leave it (-inf, inf)")
        reach = np.pi / 2 if len(turns) == 3 and axis == 4 else np.pi
        if axis in turns and any(np.isfinite(bound) and abs(bound) > reach for bound in (low, high)):
            raise SceneError(f"{where}: limits[{axis}] is ({low:g}, {high:g}); this turn is known within ±{reach:.4g}")
    if np.isfinite(equality.turn_limit) and (len(turns) < 3 or not 0 < equality.turn_limit <= np.pi):
        raise SceneError(f"{where}: turn_limit is {equality.turn_limit:g}; it needs three free turns and (0, π]")


def _check_equalities(scene: Scene) -> None:
    bodies = {body.name for body in scene.bodies}
    joints = {joint.name: joint.kind for joint in scene.joints}
    tendons = {tendon.name for tendon in scene.tendons}
    for equality in scene.equalities:
        _check_ends(equality, bodies, joints, tendons)
        check_fields(equality, "distance_range", "torque_scale")
        if equality.relative_pose is not None:
            check_unit(equality, "relative_pose", part=slice(3, None))
        check_unit(equality, "axes")
        _check_loop_limits(equality)
        if not any(equality.locked):
            raise SceneError(f"{place(equality)}: locked is {equality.locked}, which holds nothing; lock an axis")


def _check_ends(equality: Equality, bodies: set[str], joints: dict[str, str], tendons: set[str]) -> None:
    where = place(equality)
    if equality.a == equality.b:
        raise SceneError(f"{where} holds {equality.a!r} to itself; name two different ends")
    if equality.kind == "joint":
        _check_scalar_joint(f"{where}, a", equality.a, joints)
        if equality.b is not None:
            _check_scalar_joint(f"{where}, b", equality.b, joints)
    elif equality.kind == "tendon":
        check_reference(f"{where}, a", "tendon", equality.a, tendons)
        if equality.b is not None:
            check_reference(f"{where}, b", "tendon", equality.b, tendons)
    else:
        for end, name in (("a", equality.a), ("b", equality.b)):
            if name is not None:
                check_reference(f"{where}, {end}", "body", name, bodies)


def _check_pairs(scene: Scene) -> None:
    shapes = {shape.name for shape in scene.shapes}
    bodies = {body.name for body in scene.bodies} | {""}
    for kind, pairs, known in (
        ("shape", scene.excluded_pairs, shapes),
        ("body", scene.excluded_bodies, bodies),
    ):
        for pair in pairs:
            if not 1 <= len(pair) <= 2:
                raise SceneError(f"excluded {kind} pair {sorted(pair)}; give two names")
            for name in sorted(pair):
                check_reference(f"excluded {kind} pair {sorted(pair)}", kind, name, known)
    for override in scene.contact_overrides:
        _check_override(override, shapes)


def _check_override(override: ContactOverride, shapes: set[str]) -> None:
    where = place(override)
    check_reference(where, "shape", override.a, shapes)
    check_reference(where, "shape", override.b, shapes)
    check_choice(where, "condim", override.condim, CONDIMS)
    check_fields(override, "friction")


def _check_sensors(scene: Scene) -> None:
    known = sensor_targets(scene)
    for sensor in scene.sensors:
        where = place(sensor)
        check_choice(where, "target_kind", sensor.target_kind, SENSOR_TARGETS)
        check_choice(where, "reference_kind", sensor.reference_kind, SENSOR_TARGETS)
        check_reference(f"{where}, target", sensor.target_kind, sensor.target, known[sensor.target_kind])
        if sensor.reference is not None:
            check_reference(
                f"{where}, reference", sensor.reference_kind, sensor.reference, known[sensor.reference_kind]
            )
        check_fields(sensor, "noise", "cutoff")


def _check_world(scene: Scene) -> None:
    options = scene.options
    check_fields(options, "timestep", "impratio", "solver_iterations", "solver_tolerance", "contact_softening")
    check_choice("options", "softening_pass", options.softening_pass, SOFTENING_PASSES)
    check_choice("options", "solver_stop", options.solver_stop, SOLVER_STOPS)
    check_fields(options, "impact_speed")
    if options.impacts and options.contact_softening > 0:
        raise SceneError("options: contacts are softened or have impacts, not both; set contact_softening = 0")
    if options.max_contacts is not None and options.max_contacts < 1:
        raise SceneError(
            f"options: max_contacts is {options.max_contacts}; give a count of 1 or more, or None for as many as are "
            "needed; contacts = False leaves them out"
        )
    check_fields(scene.medium, "density", "viscosity")
