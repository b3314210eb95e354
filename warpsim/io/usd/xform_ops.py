"""A prim's local transform from its xformOps, in double precision and with quaternions made unit.

`Xformable.GetLocalTransformation` takes an orient op's angle from its real part alone: of a float32 quaternion near the
identity that loses half the digits (2·acos(1 − 3e-8) is off by 2e-4 rad), and off the unit sphere it is no rotation
that one could differentiate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pxr import Gf, UsdGeom

_OP = UsdGeom.XformOp
_AXES = {"X": Gf.Vec3d(1, 0, 0), "Y": Gf.Vec3d(0, 1, 0), "Z": Gf.Vec3d(0, 0, 1)}
_TURNS = {
    getattr(_OP, f"TypeRotate{order}"): order
    for order in ("X", "Y", "Z", "XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX")
}  # fmt: skip
_SEVERAL = (_OP.TypeTransform, _OP.TypeOrient, _OP.TypeTranslate, _OP.TypeScale)
_ALONG = {getattr(_OP, f"TypeTranslate{axis}"): axis for axis in "XYZ"}
_SCALED = {getattr(_OP, f"TypeScale{axis}"): axis for axis in "XYZ"}


def local_matrix(xformable: UsdGeom.Xformable, value_of: Callable[[UsdGeom.XformOp], Any]) -> Gf.Matrix4d:
    """The product of a prim's ops, for row vectors, as USD has it.

    Args:
        xformable: The prim.
        value_of: Gives the value of an op; None counts as the identity.

    Raises:
        TypeError, ValueError: A value is of a type that its op does not take.
    """
    matrix = Gf.Matrix4d(1.0)
    for op in reversed(xformable.GetOrderedXformOps()):  # the last op acts on points first
        value = value_of(op)
        if value is not None:
            single = _matrix(op.GetOpType(), value)
            matrix *= single.GetInverse() if op.IsInverseOp() else single
    return matrix


def _matrix(kind: Any, value: Any) -> Gf.Matrix4d:
    matrix = Gf.Matrix4d(1.0)
    if kind in _SEVERAL and isinstance(value, (int, float)):
        raise TypeError(f"one number, {value}, for an op that takes several")  # Gf would repeat it
    if kind == _OP.TypeTransform:
        return Gf.Matrix4d(value)
    if kind == _OP.TypeOrient:
        return matrix.SetRotate(Gf.Quatd(value).GetNormalized())
    if kind == _OP.TypeTranslate:
        return matrix.SetTranslate(Gf.Vec3d(value))
    if kind == _OP.TypeScale:
        return matrix.SetScale(Gf.Vec3d(value))
    if kind in _ALONG:
        return matrix.SetTranslate(_AXES[_ALONG[kind]] * float(value))
    if kind in _SCALED:
        axis = _AXES[_SCALED[kind]]
        return matrix.SetScale(Gf.Vec3d(1, 1, 1) + axis * (float(value) - 1.0))
    order = _TURNS[kind]
    angles = [value] if len(order) == 1 else [value["XYZ".index(axis)] for axis in order]
    for axis, angle in zip(order, angles, strict=True):
        matrix *= Gf.Matrix4d(1.0).SetRotate(Gf.Rotation(_AXES[axis], float(angle)))
    return matrix
