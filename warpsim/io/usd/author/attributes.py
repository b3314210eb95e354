"""Setting attributes by name: a name that no schema knows raises, so a typing error cannot pass for physics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from pxr import Gf, Sdf, Usd, Vt

from warpsim.core.errors import InputError, unknown_name
from warpsim.io.usd.ledger_scan import applied_apis
from warpsim.io.usd.state_names import D6_AXES

_FLOAT, _DOUBLE, _INT, _BOOL, _TOKEN = (
    getattr(Sdf.ValueTypeNames, n) for n in ("Float", "Double", "Int", "Bool", "Token")
)
_WITHOUT_MUJOCO = {"mjc:option:cone": "elliptic", "mjc:flag:filterparent": False}
"""What a PhysicsScene means without MjcSceneAPI, where the schema alone would mean MuJoCo's default."""
_DOUBLES, _INTS = Sdf.ValueTypeNames.DoubleArray, Sdf.ValueTypeNames.IntArray


def _named(prefix: str, api: str, types: Mapping[Any, str]) -> dict[str, tuple[Any, str]]:
    return {f"{prefix}:{name}": (kind, api) for kind, names in types.items() for name in names.split()}


EXTENSIONS: dict[str, tuple[Any, str]] = {
    **_named("newton", "NewtonJointAPI", {_FLOAT: "armature friction damping"}),
    **_named("newton", "NewtonMimicAPI", {_FLOAT: "mimicCoef0 mimicCoef1", _BOOL: "mimicEnabled"}),
    **_named(
        "newton", "NewtonMaterialAPI", {_FLOAT: "contactStiffness contactDamping torsionalFriction rollingFriction"}
    ),
    **_named("newton", "NewtonCollisionAPI", {_FLOAT: "contactMargin contactGap"}),
    **_named("newton", "NewtonSDFCollisionAPI", {_INT: "sdfMaxResolution"}),
    **_named("newton", "NewtonMeshCollisionAPI", {_INT: "maxHullVertices"}),
    **_named(
        "physxConvexDecompositionCollision",
        "PhysxConvexDecompositionCollisionAPI",
        {_INT: "maxConvexHulls hullVertexLimit"},
    ),
    **_named("newton", "NewtonArticulationRootAPI", {_BOOL: "selfCollisionEnabled"}),
    **_named("newton", "NewtonMassAPI", {_DOUBLES: "inertia"}),
    **_named("newton", "NewtonSceneAPI", {_INT: "timeStepsPerSecond maxSolverIterations"}),
    **_named(
        "mjc:option",
        "MjcSceneAPI",
        {
            _DOUBLE: "timestep density viscosity impratio tolerance",
            _TOKEN: "integrator cone",
            _INT: "iterations",
            Sdf.ValueTypeNames.Double3: "wind",
        },
    ),
    **_named("mjc:flag", "MjcSceneAPI", {_BOOL: "filterparent"}),
    **_named(
        "mjc",
        "MjcJointAPI",
        {
            _DOUBLE: "stiffness springref actuatorfrcrange:min actuatorfrcrange:max",
            _DOUBLES: "solreflimit solimplimit solreffriction solimpfriction",
        },
    ),
    **_named(
        "mjc",
        "MjcCollisionAPI",
        {_INT: "condim priority contype conaffinity", _DOUBLE: "solmix", _DOUBLES: "solref solimp"},
    ),
    **_named("mjc", "MjcEqualityJointAPI", {_DOUBLE: "coef0 coef1 coef2 coef3 coef4"}),
    **_named("mjc", "MjcBodyAPI", {_DOUBLE: "gravcomp"}),
    **_named("warpsim:sensor", "", {_TOKEN: "kind targetKind referenceKind", _DOUBLE: "noise cutoff"}),
    "warpsim:ellipsoid": (Sdf.ValueTypeNames.Double3, ""),
    "warpsim:convexTolerance": (_DOUBLE, ""),
    "warpsim:hullVertices": (_INTS, ""),
    "warpsim:hullFaces": (_INTS, ""),
    "warpsim:hullNormals": (_DOUBLES, ""),
    "warpsim:impacts": (_BOOL, ""),
    "warpsim:impactSpeed": (_DOUBLE, ""),
    "warpsim:contactSoftening": (_DOUBLE, ""),
    "warpsim:softeningPass": (_TOKEN, ""),
    "warpsim:maxContacts": (_INT, ""),
    **_named(
        "mjc",
        "",
        {
            _DOUBLES: "gear gainPrm biasPrm dynPrm path:coef path:divisors springlength",
            _INTS: "path:indices path:segments sideSites:indices",
            _DOUBLE: "ctrlRange:min ctrlRange:max forceRange:min forceRange:max actRange:min actRange:max "
            "range:min range:max lengthRange:min lengthRange:max armature damping frictionloss margin crankLength",
            _TOKEN: "gainType biasType dynType ctrlLimited forceLimited actLimited limited type",
            _BOOL: "actEarly",
        },
    ),
    "physxRigidBody:disableGravity": (_BOOL, "PhysxRigidBodyAPI"),
    "physxMaterial:frictionCombineMode": (_TOKEN, "PhysxMaterialAPI"),
    **{
        f"state:{axis}:physics:{quantity}": (_FLOAT, f"PhysicsJointStateAPI:{axis}")
        for axis in ("angular", "linear", *D6_AXES)
        for quantity in ("position", "velocity")
    },
    "warpsim:q": (_DOUBLES, ""),
    "warpsim:qd": (_DOUBLES, ""),
}
"""Attribute → (type, API schema to apply with it) of the extension attributes that the reader honors."""


def set_attribute(prim: Usd.Prim, name: str, value: Any) -> None:
    """Sets an attribute that one of the prim's schemas, or an extension that warpsim reads, defines.

    The first `mjc:option:*` of a PhysicsScene brings MjcSceneAPI along, and with it what the schema alone would change,
    as it was without: an elliptic `mjc:option:cone` and no `mjc:flag:filterparent`.

    Args:
        prim: Where to author it.
        name: Full name, e.g. "physics:mass" or "newton:armature".
        value: In stage units, and degrees where USD uses degrees. Sequences and NumPy arrays are converted.

    Raises:
        UnknownNameError: No schema of the prim knows the name; the message offers the nearest ones.
        InputError: The value does not fit the attribute's type.
    """
    attribute = prim.GetAttribute(name)
    if not attribute or not attribute.IsDefined():
        if name not in EXTENSIONS:
            raise unknown_name(f"attribute of {prim.GetPath()}", name, [*prim.GetPropertyNames(), *EXTENSIONS])
        kind, api = EXTENSIONS[name]
        attribute = prim.CreateAttribute(name, kind, custom=False)
        if api:
            _apply(prim, api)
    kind = attribute.GetTypeName()
    if not attribute.Set(fit_value(kind, value)):
        raise InputError(f"{prim.GetPath()}.{name}: {value!r} does not fit the type {kind}")


def _apply(prim: Usd.Prim, api: str) -> None:
    """Applies an API schema without changing what the prim has said so far."""
    if api == "MjcSceneAPI" and api not in applied_apis(prim):
        # a density or a tolerance must not bring in how MuJoCo slides and filters
        for name, value in _WITHOUT_MUJOCO.items():
            attribute = prim.GetAttribute(name)
            if not attribute or not attribute.HasAuthoredValue():
                prim.CreateAttribute(name, EXTENSIONS[name][0], custom=False).Set(value)
    prim.AddAppliedSchema(api)


def set_attributes(prim: Usd.Prim, values: Mapping[str, Any]) -> None:
    """Sets several attributes; a value of None is left unauthored."""
    for name, value in values.items():
        if value is not None:
            set_attribute(prim, name, value)


def fit_value(kind: Sdf.ValueTypeName, value: Any) -> Any:
    """Converts sequences and NumPy numbers to what USD takes for a type."""
    name = str(kind)
    try:
        if name.startswith("quat"):
            w, x, y, z = (float(part) for part in value)
            return {"quatf": Gf.Quatf, "quatd": Gf.Quatd, "quath": Gf.Quath}[name](w, x, y, z)
        if kind.isArray:
            return _array(kind, value)
        if name in ("float", "double"):
            return float(value)
        if name == "int":
            return int(value)
        if name == "timecode":
            return Sdf.TimeCode(float(value))
        if name == "bool":
            return bool(value)
        if name[-1] in "fd23" and isinstance(value, Iterable) and not isinstance(value, str):
            return kind.type.pythonClass(*(float(part) for part in value))
    except (TypeError, ValueError) as error:
        raise InputError(f"{value!r} does not fit the type {kind}") from error
    return value


def _array(kind: Sdf.ValueTypeName, value: Any) -> Any:
    element = str(kind.scalarType)
    if element in ("double", "float"):
        return (Vt.DoubleArray if element == "double" else Vt.FloatArray)([float(v) for v in value])
    if element == "int":
        return Vt.IntArray([int(v) for v in value])
    if element == "token":
        return Vt.TokenArray([str(v) for v in value])
    return kind.type.pythonClass.FromNumpy(np.ascontiguousarray(value, dtype=np.float32))
