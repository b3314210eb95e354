"""Texture coordinates of a mesh's corners, by the primvar that its texture reads."""

from __future__ import annotations

import numpy as np
import pytest
from pxr import Sdf, Usd, UsdGeom

from warpsim.view.items.textures import texture_coordinates

INDICES = np.array([0, 1, 2, 2, 1, 3])
TIME = Usd.TimeCode.Default()


@pytest.fixture
def mesh():
    stage = Usd.Stage.CreateInMemory()
    yield UsdGeom.Mesh.Define(stage, "/Up/Mesh").GetPrim()


def given(prim: Usd.Prim, values, interpolation: str, kind=Sdf.ValueTypeNames.TexCoord2fArray, name: str = "st"):
    primvar = UsdGeom.PrimvarsAPI(prim).CreatePrimvar(name, kind, interpolation)
    if values is not None:
        primvar.Set(values)
    return primvar


def coordinates(prim: Usd.Prim):
    return texture_coordinates(prim, "st", INDICES, TIME)


def test_there_are_none_where_nothing_is_said(mesh):
    assert coordinates(mesh) is None
    given(mesh, [(0, 0)], "vertex", name="other")
    assert coordinates(mesh) is None
    given(mesh, None, "vertex")
    assert coordinates(mesh) is None


def test_of_each_corner_and_of_each_point(mesh):
    six = [(0.1 * k, 0.5) for k in range(6)]
    given(mesh, six, "faceVarying")
    assert coordinates(mesh) == pytest.approx(np.array(six), abs=1e-6)
    given(mesh, six[:5], "faceVarying")
    assert coordinates(mesh) is None
    for interpolation in ("vertex", "varying"):
        given(mesh, six[:4], interpolation)
        assert coordinates(mesh) == pytest.approx(np.array(six)[INDICES], abs=1e-6)
        given(mesh, six[:3], interpolation)
        assert coordinates(mesh) is None
    given(mesh, six[:1], "constant")
    assert coordinates(mesh) is None
    given(mesh, [(0, 0, 0)] * 4, "vertex", Sdf.ValueTypeNames.TexCoord3fArray, "deep")
    assert texture_coordinates(mesh, "deep", INDICES, TIME) is None


def test_those_of_a_prim_above_count(mesh):
    up = mesh.GetParent()
    given(up, [(0.5, 0.25)] * 4, "vertex")
    found = coordinates(mesh)
    assert found is None or found[0].tolist() == [0.5, 0.25]  # USD hands down constants alone
