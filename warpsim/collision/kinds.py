"""Integer codes of shape kinds and of pairs of kinds, as kernels see them."""

from __future__ import annotations

import warp as wp

from warpsim.scene.description import SHAPE_KINDS

KIND_CODE = {kind: code for code, kind in enumerate(SHAPE_KINDS)}
"""Code of each shape kind: its place in `SHAPE_KINDS`."""

KINDS = wp.constant(len(SHAPE_KINDS))
"""A pair's case is its first kind times this, plus its second."""
PLANE = wp.constant(KIND_CODE["plane"])
SPHERE = wp.constant(KIND_CODE["sphere"])
CAPSULE = wp.constant(KIND_CODE["capsule"])
BOX = wp.constant(KIND_CODE["box"])
CYLINDER = wp.constant(KIND_CODE["cylinder"])
CONE = wp.constant(KIND_CODE["cone"])
ELLIPSOID = wp.constant(KIND_CODE["ellipsoid"])
MESH = wp.constant(KIND_CODE["mesh"])
HULL = wp.constant(KIND_CODE["hull"])
HEIGHTFIELD = wp.constant(KIND_CODE["heightfield"])

_ORDER = ("plane", "heightfield", "sphere", "capsule", "ellipsoid", "cylinder", "box", "hull", "cone", "mesh")
KIND_ORDER = {kind: place for place, kind in enumerate(_ORDER)}
"""The first shape of a pair is the one whose kind comes first here (MuJoCo's order), so normals agree with MuJoCo's."""


def pair_case(first: str, second: str) -> int:
    """Code of an ordered pair of kinds."""
    return KIND_CODE[first] * len(SHAPE_KINDS) + KIND_CODE[second]


PLANE_SPHERE = wp.constant(pair_case("plane", "sphere"))
PLANE_CAPSULE = wp.constant(pair_case("plane", "capsule"))
PLANE_BOX = wp.constant(pair_case("plane", "box"))
PLANE_CYLINDER = wp.constant(pair_case("plane", "cylinder"))
PLANE_CONE = wp.constant(pair_case("plane", "cone"))
PLANE_ELLIPSOID = wp.constant(pair_case("plane", "ellipsoid"))
SPHERE_SPHERE = wp.constant(pair_case("sphere", "sphere"))
SPHERE_CAPSULE = wp.constant(pair_case("sphere", "capsule"))
CAPSULE_CAPSULE = wp.constant(pair_case("capsule", "capsule"))
SPHERE_BOX = wp.constant(pair_case("sphere", "box"))
SPHERE_CYLINDER = wp.constant(pair_case("sphere", "cylinder"))
CAPSULE_BOX = wp.constant(pair_case("capsule", "box"))
BOX_BOX = wp.constant(pair_case("box", "box"))
