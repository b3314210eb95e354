"""Local transforms from xformOps, against USD's own and against the rotation a quaternion stands for."""

from __future__ import annotations

import numpy as np
import pytest
from pxr import Gf, Usd, UsdGeom

from warpsim.io.usd.xform_ops import local_matrix

OP = UsdGeom.XformOp
VALUES = {
    "Translate": Gf.Vec3d(1, -2, 3),
    "TranslateX": 0.5,
    "TranslateY": -0.5,
    "TranslateZ": 1.5,
    "Scale": Gf.Vec3d(1, 2, 0.5),
    "ScaleX": 2.0,
    "ScaleY": 3.0,
    "ScaleZ": 0.25,
    "RotateX": 30.0,
    "RotateY": -50.0,
    "RotateZ": 70.0,
    **{f"Rotate{order}": Gf.Vec3d(10, -20, 130) for order in ("XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX")},
    "Orient": Gf.Quatd(0.5, 0.5, -0.5, 0.5),
    "Transform": Gf.Matrix4d(1, 2, 0, 0, 0, 1, 3, 0, 1, 0, 1, 0, 4, 5, 6, 1),
}


def _prim(stage: Usd.Stage, *names: str, inverse: bool = False) -> UsdGeom.Xform:
    xform = UsdGeom.Xform.Define(stage, "/A")
    for place, name in enumerate(names):
        op = xform.AddXformOp(getattr(OP, f"Type{name}"), OP.PrecisionDouble, f"n{place}")
        op.Set(VALUES[name])
    if inverse:
        xform.AddXformOp(getattr(OP, f"Type{names[0]}"), OP.PrecisionDouble, "n0", True)
    return xform


@pytest.fixture
def stage():
    return Usd.Stage.CreateInMemory()


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("inverse", [False, True])
def test_every_op_is_usds(stage, name, inverse):
    if inverse and name in ("ScaleX", "ScaleY", "ScaleZ"):
        pytest.skip("USD inverts the scale of one axis by its sign")
    xform = _prim(stage, name, "Translate", "RotateXYZ", inverse=inverse)
    np.testing.assert_allclose(
        np.array(local_matrix(xform, lambda op: op.Get())), np.array(xform.GetLocalTransformation()), atol=1e-12
    )


def test_small_single_precision_rotations_keep_their_digits(stage):
    half = 1e-4
    xform = UsdGeom.Xform.Define(stage, "/A")
    xform.AddOrientOp().Set(Gf.Quatf(float(np.cos(half)), float(np.sin(half)), 0, 0))
    angle = np.arcsin(local_matrix(xform, lambda op: op.Get())[1][2])
    assert angle == pytest.approx(2 * half, rel=1e-7)


def test_quaternions_of_any_length_are_rotations(stage):
    xform = _prim(stage, "Orient")
    matrix = np.array(local_matrix(xform, lambda _: Gf.Quatd(2, 1, 0, 0)))[:3, :3]
    np.testing.assert_allclose(matrix @ matrix.T, np.eye(3), atol=1e-15)
    np.testing.assert_allclose(matrix[1], (0, 0.6, 0.8), atol=1e-15)
