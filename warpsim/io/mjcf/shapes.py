"""Geoms, meshes, sites and contact pairs of a MuJoCo model."""

from __future__ import annotations

import numpy as np

from warpsim.io.mjcf.engine import mujoco
from warpsim.io.mjcf.frames import item_frame
from warpsim.io.mjcf.heightfields import heightfield_name, heightfield_resolution, read_heightfield
from warpsim.io.mjcf.hulls import hull_faces, hull_members
from warpsim.io.mjcf.source import MjSource
from warpsim.scene.constraints import ContactOverride
from warpsim.scene.description import MESH_KINDS, SHAPE_SIZES_USED, Mesh, Shape, Site

_SHAPE_KINDS = {
    mujoco.mjtGeom.mjGEOM_PLANE: "plane",
    mujoco.mjtGeom.mjGEOM_SPHERE: "sphere",
    mujoco.mjtGeom.mjGEOM_CAPSULE: "capsule",
    mujoco.mjtGeom.mjGEOM_ELLIPSOID: "ellipsoid",
    mujoco.mjtGeom.mjGEOM_CYLINDER: "cylinder",
    mujoco.mjtGeom.mjGEOM_BOX: "box",
    mujoco.mjtGeom.mjGEOM_MESH: "mesh",
    mujoco.mjtGeom.mjGEOM_HFIELD: "heightfield",
}
_UNCOLORED = (0.5, 0.5, 0.5, 1.0)
"""The rgba of a geom that sets none; its material's then shows."""
_VISIBLE_GROUPS = 3
"""MuJoCo's viewers show geoms of groups 0, 1 and 2."""

_UNSUPPORTED_GEOM_FIELDS = {
    "surfacevel": "moving surfaces are not modeled",
    "adhesion": "adhesive contact is not modeled",
}


def read_shapes(source: MjSource) -> tuple[list[Shape], dict[str, Mesh]]:
    """Geoms that can be modeled, and the meshes they use. Shapes weigh nothing: bodies carry explicit masses."""
    model = source.model
    source.unsupported_nonzero("geom", range(model.ngeom), "geom", _UNSUPPORTED_GEOM_FIELDS)
    paired = set(model.pair_geom1.tolist()) | set(model.pair_geom2.tolist())
    shapes, meshes = [], {}
    for index in range(model.ngeom):
        collides = bool(model.geom_contype[index] or model.geom_conaffinity[index]) or index in paired
        _note_fluid(source, index)
        if mujoco.mjtGeom(model.geom_type[index]) not in _SHAPE_KINDS:
            _note_unknown_kind(source, index, collides)
            continue
        shape = _read_shape(source, index, collides)
        shapes.append(shape)
        if shape.kind == "heightfield":
            shape.sdf_resolution = heightfield_resolution(source, model.geom_dataid[index])
        if shape.mesh is not None and shape.mesh not in meshes:
            read = read_heightfield if shape.kind == "heightfield" else _read_mesh
            meshes[shape.mesh] = read(source, model.geom_dataid[index])
    return shapes, meshes


def _read_shape(source: MjSource, index: int, collides: bool) -> Shape:
    model = source.model
    position, rotation = item_frame(model, "geom", index)
    kind = _SHAPE_KINDS[mujoco.mjtGeom(model.geom_type[index])]
    if kind == "mesh" and collides:
        kind = "hull"  # MuJoCo collides a mesh as its convex hull
    size = np.ones(3) if kind in MESH_KINDS else np.zeros(3)
    used = 0 if kind in MESH_KINDS else SHAPE_SIZES_USED.get(kind, 3)
    size[:used] = model.geom_size[index, :used]
    rgba = _color(model, index)
    return Shape(
        name=source.names["geom"][index],
        kind=kind,
        body=source.body_name(model.geom_bodyid[index]),
        position=position,
        rotation=rotation,
        size=size,
        mesh=_mesh_name(source, kind, model.geom_dataid[index]) if kind in MESH_KINDS else None,
        mass=0.0,
        collides=collides,
        contact_type=int(model.geom_contype[index]),
        contact_affinity=int(model.geom_conaffinity[index]),
        friction=model.geom_friction[index].copy(),
        condim=int(model.geom_condim[index]),
        solref=model.geom_solref[index].copy(),
        solimp=model.geom_solimp[index].copy(),
        solmix=float(model.geom_solmix[index]),
        priority=int(model.geom_priority[index]),
        margin=float(model.geom_margin[index]),
        gap=float(model.geom_gap[index]),
        color=(float(rgba[0]), float(rgba[1]), float(rgba[2])),
        visible=bool(rgba[3] > 0 and model.geom_group[index] < _VISIBLE_GROUPS),
    )


def _color(model: mujoco.MjModel, geom: int) -> np.ndarray:
    rgba, material = model.geom_rgba[geom], model.geom_matid[geom]
    return model.mat_rgba[material] if material >= 0 and np.array_equal(rgba, _UNCOLORED) else rgba


def _mesh_name(source: MjSource, kind: str, index: int) -> str:
    return heightfield_name(source, index) if kind == "heightfield" else source.names["mesh"][index]


def _read_mesh(source: MjSource, index: int) -> Mesh:
    """Vertices as stored: MuJoCo has moved them to the mesh's inertial frame, and geom_pos and geom_quat undo that."""
    model = source.model
    vertices = model.mesh_vert[model.mesh_vertadr[index] :][: model.mesh_vertnum[index]]
    faces = model.mesh_face[model.mesh_faceadr[index] :][: model.mesh_facenum[index]]
    kept, cut = hull_members(model, index)
    if kept is not None and cut:
        how = f"collides as MuJoCo's hull of {len(kept)} of its {len(vertices)} vertices"
        source.used(source.path("mesh", index), "maxhullvert", how)
    flat, normals = hull_faces(model, index)
    return Mesh(source.names["mesh"][index], vertices.astype(np.float64), faces.astype(np.int32), kept, flat, normals)


def _note_unknown_kind(source: MjSource, index: int, collides: bool) -> None:
    kind = mujoco.mjtGeom(source.model.geom_type[index]).name.removeprefix("mjGEOM_").lower()
    if collides:
        source.unsupported(source.path("geom", index), f"type {kind}", "this shape is not modeled")
    else:
        source.ignored(source.path("geom", index), f"type {kind}", "it does not collide")


def _note_fluid(source: MjSource, index: int) -> None:
    model, path = source.model, source.path("geom", index)
    if model.geom_fluid[index, 0] == 0:
        return
    if model.opt.density > 0 or model.opt.viscosity > 0:
        source.unsupported(path, "fluidshape", "drag is modeled by inertia boxes, not ellipsoids")
    else:
        source.ignored(path, "fluidshape", "there is no medium")


def read_sites(source: MjSource) -> list[Site]:
    """All sites, with the volumes in which sensors of contacts feel."""
    model = source.model
    return [
        Site(
            name=source.names["site"][index],
            body=source.body_name(model.site_bodyid[index]),
            position=item_frame(model, "site", index)[0],
            rotation=item_frame(model, "site", index)[1],
            form=mujoco.mjtGeom(model.site_type[index]).name.removeprefix("mjGEOM_").lower(),
            size=model.site_size[index].copy(),
        )
        for index in range(model.nsite)
    ]


def read_contact_overrides(source: MjSource, shapes: list[Shape]) -> list[ContactOverride]:
    """The `<pair>` elements between shapes that were read."""
    model = source.model
    source.unsupported_nonzero("pair", range(model.npair), "pair", {"adhesion": _UNSUPPORTED_GEOM_FIELDS["adhesion"]})
    known = {shape.name for shape in shapes}
    overrides = []
    for index in range(model.npair):
        a = source.names["geom"][model.pair_geom1[index]]
        b = source.names["geom"][model.pair_geom2[index]]
        if a in known and b in known:
            overrides.append(
                ContactOverride(
                    a=a,
                    b=b,
                    condim=int(model.pair_dim[index]),
                    friction=model.pair_friction[index].copy(),
                    solref=model.pair_solref[index].copy(),
                    solref_friction=model.pair_solreffriction[index].copy(),
                    solimp=model.pair_solimp[index].copy(),
                    margin=float(model.pair_margin[index]),
                    gap=float(model.pair_gap[index]),
                )
            )
    return overrides


def read_excluded_bodies(source: MjSource) -> set[frozenset[str]]:
    """The `<exclude>` elements; MuJoCo stores each as body1 · 2¹⁶ + body2."""
    return {
        frozenset(source.body_name(body) or "" for body in (signature >> 16, signature & 0xFFFF))
        for signature in source.model.exclude_signature.tolist()
    }
