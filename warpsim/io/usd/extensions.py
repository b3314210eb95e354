"""One concept, several spellings: where Newton's, MuJoCo's and PhysX' schemas each author it, and in which units.

`lookup` returns the first authored spelling in the order newton, mjc, physx; the others enter the ledger as ignored.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pxr import Usd

from warpsim.io.usd.context import Context

FORCE, GAIN, LENGTH, PURE = "force", "gain", "length", "pure"
"""Dimension of a value: along a joint's dof (force; force per coordinate or rate), a length (radians on angular
dofs), or none."""


@dataclass(frozen=True)
class Spelling:
    """One schema's attribute for a concept; "{axis}" stands for the joint axis token, e.g. "angular"."""

    attribute: str
    dimension: str = PURE
    degrees: bool = False
    """The value is per degree on angular axes."""


@dataclass(frozen=True)
class Found:
    """An authored extension value, in SI."""

    value: float
    attribute: str
    factor: float
    """SI value / authored value."""


CONCEPTS: dict[str, tuple[Spelling, ...]] = {
    "armature": (
        Spelling("newton:armature", GAIN),
        Spelling("mjc:armature", GAIN),
        Spelling("physxJoint:armature", GAIN),
    ),
    "friction_loss": (
        Spelling("newton:friction", FORCE),
        Spelling("mjc:frictionloss", FORCE),
        Spelling("physxJoint:jointFriction", FORCE),
    ),
    "damping": (
        Spelling("newton:damping", GAIN, degrees=True),
        Spelling("mjc:damping", GAIN),
        Spelling("physxJointAxis:{axis}:viscousFrictionCoefficient", GAIN, degrees=True),
    ),
    "stiffness": (Spelling("mjc:stiffness", GAIN),),
    "limit_margin": (Spelling("mjc:margin", LENGTH),),
    "margin": (Spelling("newton:contactMargin", LENGTH), Spelling("mjc:margin", LENGTH)),
    "gap": (Spelling("newton:contactGap", LENGTH), Spelling("mjc:gap", LENGTH)),
    "steps_per_second": (
        Spelling("newton:timeStepsPerSecond"),
        Spelling("physxScene:timeStepsPerSecond"),
    ),
    "solver_iterations": (
        Spelling("newton:maxSolverIterations"),
        Spelling("mjc:option:iterations"),
    ),
    "sdf_resolution": (
        Spelling("newton:sdfMaxResolution"),
        Spelling("physxSDFMeshCollision:sdfResolution"),
    ),
    "hull_vertices": (Spelling("newton:maxHullVertices"), Spelling("mjc:maxhullvert")),
    "piece_tolerance": (Spelling("warpsim:convexTolerance"),),
    "piece_count": (Spelling("physxConvexDecompositionCollision:maxConvexHulls"),),
    "piece_vertices": (
        Spelling("newton:maxHullVertices"),
        Spelling("physxConvexDecompositionCollision:hullVertexLimit"),
    ),
}


def lookup(context: Context, prim: Usd.Prim, concept: str, *, angular: bool = False, axis: str = "") -> Found | None:
    """The first authored spelling of a concept, in SI.

    Args:
        context: The reading.
        prim: Where to look.
        concept: A key of CONCEPTS.
        angular: Whether the joint's dof is a rotation.
        axis: The joint's axis token in multiple-apply schemas ("angular", "linear", "rotX" …).
    """
    found = None
    for spelling in CONCEPTS[concept]:
        name = spelling.attribute.format(axis=axis)
        value = context.read.number(prim, name, mark=False, finite=False)
        if value is None:
            continue
        if not np.isfinite(value):
            context.ledger.ignored(prim, name, "infinite: left to the engine")
            continue
        if found is not None:
            context.ledger.ignored(prim, name, f"{found.attribute} is used")
            continue
        context.ledger.used(prim, name)
        factor = _factor(context, spelling, angular)
        found = Found(factor * value, name, factor)
    return found


def _factor(context: Context, spelling: Spelling, angular: bool) -> float:
    if spelling.dimension == FORCE:
        return context.units.force(angular)
    if spelling.dimension == GAIN:
        return context.units.gain(angular, degrees=spelling.degrees)
    return context.units.length if spelling.dimension == LENGTH and not angular else 1.0
