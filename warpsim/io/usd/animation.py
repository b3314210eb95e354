"""A rollout → one USD layer of time samples over the source's prims, in stage units and axes.

Samples go to the body's own translate and orient ops where it has just these (and a scale), so that the authored
default pose survives; any other stack of ops is replaced by one matrix op whose default is the authored pose. Joint
coordinates and velocities are kept beside them in double arrays of our own, because poses lose hinge turns and
precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pxr import Gf, Sdf, Usd, UsdGeom, Vt

from warpsim.core.numpy_quaternions import matrix_to_quat, quat_to_matrix
from warpsim.io.usd.context import Context
from warpsim.io.usd.matters import STATE_PREFIX
from warpsim.io.usd.motion import Motion
from warpsim.io.usd.state_names import Q_ATTRIBUTE, QD_ATTRIBUTE, state_place
from warpsim.io.usd.units import DEGREE
from warpsim.scene import Scene
from warpsim.scene.description import JOINT_DOF_SIZE, JOINT_Q_SIZE

_MATRIX_OP = "xformOp:transform:warpsim"
_QUATERNIONS = {"quatd": Gf.Quatd, "quatf": Gf.Quatf, "quath": Gf.Quath}
_VECTORS = {"double3": Gf.Vec3d, "float3": Gf.Vec3f, "half3": Gf.Vec3h}
_NO_SHEAR = 1e-6


@dataclass
class _Track:
    """A body's way through the frames, in stage units and axes."""

    prim: Usd.Prim
    local: np.ndarray
    """(frames, 4, 4) to the prim's parent; columns."""


def write_animation(
    context: Context, scene: Scene, motion: Motion, layer: Sdf.Layer, codes: np.ndarray, *, states: bool = True
) -> None:
    """Fills a layer with samples of poses, joint states and velocities.

    Args:
        context: A reading of the source stage.
        scene: What was simulated; its names are the source's prim paths.
        motion: The rollout, checked.
        layer: An empty layer.
        codes: (frames,) time codes.
        states: Whether joint states and velocities are written, or poses alone.
    """
    with Sdf.ChangeBlock():
        for track in _tracks(context, scene, motion):
            _open_instance(layer, track.prim)
            _write_pose(layer, track, codes)
        for path, points in motion.points.items():
            _write_points(context, layer, path, points, codes)
        if states:
            _write_matter_states(motion, layer, codes)
            _write_states(scene, motion, layer, codes)
            _write_velocities(context, scene, motion, layer, codes)


def _worlds(context: Context, scene: Scene, motion: Motion) -> np.ndarray:
    """(bodies, frames, 4, 4) world matrices, scale and mirror of the authored prim kept."""
    units = context.units
    worlds = np.zeros((len(scene.bodies), len(motion.times), 4, 4))
    worlds[..., 3, 3] = 1.0
    for index, body in enumerate(scene.bodies):
        frame = context.frame(context.prim(body.name))
        stretch = frame.pose.matrix.T @ frame.linear
        turns = quat_to_matrix(motion.rotations[:, index])
        worlds[index, :, :3, :3] = units.to_world.T @ turns @ stretch
        worlds[index, :, :3, 3] = motion.positions[:, index] @ units.to_world / units.length
    return worlds


def _tracks(context: Context, scene: Scene, motion: Motion) -> list[_Track]:
    """local = (parent's animated world)⁻¹ · world, for every body."""
    worlds = _worlds(context, scene, motion)
    index = {body.name: place for place, body in enumerate(scene.bodies)}
    tracks = []
    for place, body in enumerate(scene.bodies):
        prim = context.prim(body.name)
        parent = prim.GetParent()
        if UsdGeom.Xformable(prim).GetResetXformStack():
            tracks.append(_Track(prim, worlds[place]))
            continue
        outer = np.array(context.local_to_world(parent)).T
        carrier = parent
        while carrier and not carrier.IsPseudoRoot() and str(carrier.GetPath()) not in index:
            carrier = carrier.GetParent()
        if carrier and not carrier.IsPseudoRoot():
            authored = np.array(context.local_to_world(carrier)).T
            outer = worlds[index[str(carrier.GetPath())]] @ np.linalg.inv(authored) @ outer
        tracks.append(_Track(prim, np.linalg.inv(outer) @ worlds[place]))
    return tracks


def _open_instance(layer: Sdf.Layer, prim: Usd.Prim) -> None:
    """Prims inside an instance cannot be overridden: the instance is opened in this layer."""
    while prim and prim.IsInstanceProxy():
        prim = prim.GetParent()
        if prim.IsInstance():
            Sdf.CreatePrimInLayer(layer, prim.GetPath()).instanceable = False


def _attribute(layer: Sdf.Layer, path: Sdf.Path, name: str, kind: Sdf.ValueTypeName, *, custom: bool) -> Sdf.Path:
    spec = Sdf.CreatePrimInLayer(layer, path)
    if name not in spec.attributes:
        Sdf.AttributeSpec(spec, name, kind, Sdf.VariabilityVarying, custom)
    return path.AppendProperty(name)


def _samples(layer: Sdf.Layer, path: Sdf.Path, codes: np.ndarray, values: Sequence) -> None:
    for code, value in zip(codes, values, strict=True):
        layer.SetTimeSample(path, float(code), value)


def _write_pose(layer: Sdf.Layer, track: _Track, codes: np.ndarray) -> None:
    ops = {op.GetOpName(): op for op in UsdGeom.Xformable(track.prim).GetOrderedXformOps()}
    names = list(ops)
    plain = names[:2] == ["xformOp:translate", "xformOp:orient"] and names[2:] in ([], ["xformOp:scale"])
    if not plain or not _is_rigid(track, ops.get("xformOp:scale")):
        _write_matrix(layer, track, codes)
        return
    path = track.prim.GetPath()
    kind = ops["xformOp:translate"].GetAttr().GetTypeName()
    vector = _VECTORS[str(kind)]
    at = _attribute(layer, path, "xformOp:translate", kind, custom=False)
    _samples(layer, at, codes, [vector(*row) for row in track.local[:, :3, 3].tolist()])
    kind = ops["xformOp:orient"].GetAttr().GetTypeName()
    quaternion = _QUATERNIONS[str(kind)]
    scales = np.linalg.norm(track.local[:, :3, :3], axis=1, keepdims=True)
    turns = _continuous(matrix_to_quat(track.local[:, :3, :3] / scales))
    at = _attribute(layer, path, "xformOp:orient", kind, custom=False)
    _samples(layer, at, codes, [quaternion(*row) for row in turns.tolist()])


def _is_rigid(track: _Track, scale: UsdGeom.XformOp | None) -> bool:
    """Whether translate and orient beside the authored scale can say every local matrix."""
    factors = np.ones(3) if scale is None else np.array(scale.Get() or (1, 1, 1), dtype=float)
    linear = track.local[:, :3, :3] / factors
    off = np.abs(linear.transpose(0, 2, 1) @ linear - np.eye(3)).max()
    return bool(off < _NO_SHEAR and (np.linalg.det(linear) > 0).all())


def _continuous(quaternions: np.ndarray) -> np.ndarray:
    """Signs chosen so that neighbors are near: viewers interpolate between them."""
    flips = np.sign(np.einsum("ij,ij->i", quaternions[1:], quaternions[:-1]))
    signs = np.cumprod(np.concatenate([[1.0], np.where(flips == 0, 1.0, flips)]))
    return quaternions * signs[:, None]


def _write_matrix(layer: Sdf.Layer, track: _Track, codes: np.ndarray) -> None:
    path, xformable = track.prim.GetPath(), UsdGeom.Xformable(track.prim)
    at = _attribute(layer, path, _MATRIX_OP, Sdf.ValueTypeNames.Matrix4d, custom=False)
    layer.GetAttributeAtPath(at).default = xformable.GetLocalTransformation()
    spec = Sdf.CreatePrimInLayer(layer, path)
    order = Sdf.AttributeSpec(spec, "xformOpOrder", Sdf.ValueTypeNames.TokenArray, Sdf.VariabilityUniform)
    resets = ["!resetXformStack!"] if xformable.GetResetXformStack() else []
    order.default = Vt.TokenArray([*resets, _MATRIX_OP])
    _samples(layer, at, codes, [Gf.Matrix4d(matrix.T.tolist()) for matrix in track.local])


def _write_states(scene: Scene, motion: Motion, layer: Sdf.Layer, codes: np.ndarray) -> None:
    for name, values, sizes in ((Q_ATTRIBUTE, motion.q, JOINT_Q_SIZE), (QD_ATTRIBUTE, motion.qd, JOINT_DOF_SIZE)):
        at = 0
        for joint in scene.joints:
            size = sizes[joint.kind]
            part = np.ascontiguousarray(values[:, at : at + size], dtype=float)
            at += size
            path, suffix = state_place(joint.name)
            target = _attribute(layer, path, name + suffix, Sdf.ValueTypeNames.DoubleArray, custom=True)
            rows = [Vt.DoubleArray.FromNumpy(row) for row in part]
            layer.GetAttributeAtPath(target).default = rows[0]
            _samples(layer, target, codes, rows)


def _write_points(context: Context, layer: Sdf.Layer, path: str, points: np.ndarray, codes: np.ndarray) -> None:
    """Samples of a mesh's, a cloud's or curves' points, in the prim's frame and stage units."""
    prim = context.prim(path)
    if not prim or not prim.IsA(UsdGeom.PointBased):
        return
    inverse = np.linalg.inv(np.array(context.local_to_world(prim)).T)
    world = points @ context.units.to_world / context.units.length
    local = world @ inverse[:3, :3].T + inverse[:3, 3]
    at = _attribute(layer, prim.GetPath(), "points", Sdf.ValueTypeNames.Point3fArray, custom=False)
    rows = [Vt.Vec3fArray.FromNumpy(np.ascontiguousarray(row, dtype=np.float32)) for row in local]
    _samples(layer, at, codes, rows)
    extents = [Vt.Vec3fArray.FromNumpy(np.stack([r.min(0), r.max(0)]).astype(np.float32)) for r in local]
    at = _attribute(layer, prim.GetPath(), "extent", Sdf.ValueTypeNames.Float3Array, custom=False)
    _samples(layer, at, codes, extents)


def _write_matter_states(motion: Motion, layer: Sdf.Layer, codes: np.ndarray) -> None:
    for path, fields in motion.matter_states.items():
        for name, values in fields.items():
            at = _attribute(layer, Sdf.Path(path), STATE_PREFIX + name, Sdf.ValueTypeNames.DoubleArray, custom=True)
            flat = np.ascontiguousarray(values, dtype=float).reshape(len(values), -1)
            rows = [Vt.DoubleArray.FromNumpy(row) for row in flat]
            layer.GetAttributeAtPath(at).default = rows[0]
            _samples(layer, at, codes, rows)


def _write_velocities(context: Context, scene: Scene, motion: Motion, layer: Sdf.Layer, codes: np.ndarray) -> None:
    """`physics:velocity` and `physics:angularVelocity` (degrees), in the body's frame as UsdPhysics has them."""
    for name, values, factor in (
        ("physics:velocity", motion.velocities, 1.0 / context.units.length),
        ("physics:angularVelocity", motion.angular_velocities, 1.0 / DEGREE),
    ):
        if values is None:
            continue
        for index, body in enumerate(scene.bodies):
            turns = quat_to_matrix(motion.rotations[:, index])
            local = factor * np.einsum("fij,fi->fj", turns, values[:, index])
            at = _attribute(layer, Sdf.Path(body.name), name, Sdf.ValueTypeNames.Vector3f, custom=False)
            _samples(layer, at, codes, [Gf.Vec3f(*row) for row in local.tolist()])
