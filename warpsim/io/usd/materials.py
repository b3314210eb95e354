"""Physics materials and contact attributes → the contact fields of a `Shape`."""

from __future__ import annotations

import numpy as np
from pxr import Sdf, Usd, UsdPhysics, UsdShade

from warpsim.io.usd.context import Context
from warpsim.io.usd.extensions import lookup
from warpsim.io.usd.ledger_scan import applied_apis
from warpsim.scene import Shape

_COMBINE = ("average", "min", "multiply", "max")


def bound_material(context: Context, prim: Usd.Prim) -> Usd.Prim | None:
    """The physics material bound to a collider, directly or through an ancestor; None if there is none."""
    material, relationship = UsdShade.MaterialBindingAPI(prim).ComputeBoundMaterial("physics")
    if relationship:
        for target in relationship.GetForwardedTargets():
            if not context.prim(Sdf.Path(target).GetPrimPath()):
                context.ledger.unsupported(relationship.GetPrim(), relationship.GetName(), f"{target} does not exist")
    if not material or not material.GetPrim().HasAPI(UsdPhysics.MaterialAPI):
        return None
    return material.GetPrim()


def set_contact(context: Context, prim: Usd.Prim, material: Usd.Prim | None, shape: Shape) -> None:
    """Fills friction, restitution, softness and margins of a shape."""
    is_mjc = "MjcCollisionAPI" in applied_apis(prim)
    shape.friction_combine = "max" if is_mjc else "average"
    if material is not None:
        _friction(context, material, shape, is_mjc)
        context.take(shape, "restitution", material, "physics:restitution")
    _softness(context, prim, material, shape)
    for concept in ("margin", "gap"):
        found = lookup(context, prim, concept)
        if found is not None:
            setattr(shape, concept, found.value)
    for field, name in (
        ("condim", "mjc:condim"),
        ("priority", "mjc:priority"),
        ("contact_type", "mjc:contype"),
        ("contact_affinity", "mjc:conaffinity"),
    ):
        value = context.read.number(prim, name)
        if value is not None:
            setattr(shape, field, int(value))
    context.take(shape, "solmix", prim, "mjc:solmix")


def _friction(context: Context, material: Usd.Prim, shape: Shape, is_mjc: bool) -> None:
    static = context.read.number(material, "physics:staticFriction", mark=False)
    dynamic = context.read.number(material, "physics:dynamicFriction")
    chosen = "physics:dynamicFriction"
    if dynamic is None and static is not None:
        chosen = "physics:staticFriction"
        context.ledger.used(material, chosen, "no dynamicFriction is authored, so it holds for sliding too")
    elif static is not None and static == dynamic:
        context.ledger.used(
            material, "physics:staticFriction", "as the dynamic one: contact has one sliding coefficient"
        )
    elif static is not None:
        reason = "contact has one sliding coefficient, the dynamic one"
        context.ledger.unsupported(material, "physics:staticFriction", reason)
    shape.friction[0] = static if dynamic is None and static is not None else (dynamic or 0.0)
    unit = context.units.length
    for place, name in ((1, "newton:torsionalFriction"), (2, "newton:rollingFriction")):
        value = context.read.number(material, name)
        if value is not None:
            shape.friction[place] = unit * value
            if not is_mjc and value > 0:  # MuJoCo's colliders say by condim which kinds act
                shape.condim = max(shape.condim, (4, 6)[place - 1])
    mode = context.read.token(material, "physxMaterial:frictionCombineMode", choices=_COMBINE)
    if mode is not None:
        shape.friction_combine = mode


def _softness(context: Context, prim: Usd.Prim, material: Usd.Prim | None, shape: Shape) -> None:
    """Stiffness and damping per unit of contact inertia, as MuJoCo's solref means them.

    Newton's material values win over the collider's MuJoCo ones, unless both say the same: then MuJoCo's are kept,
    which are double precision and held above two time steps.
    """
    context.take(shape, "solimp", prim, "mjc:solimp", scale=(1, 1, context.units.length, 1, 1))
    solref = context.read.vector(prim, "mjc:solref", 2)
    stiffness = damping = None
    if material is not None:
        stiffness, damping = (_given(context, material, f"newton:contact{name}") for name in ("Stiffness", "Damping"))
    if solref is not None:
        shape.solref = solref
    if stiffness is None or damping is None:
        return
    direct = np.array([-stiffness, -damping])
    if solref is not None and np.allclose(_direct_form(solref), direct, rtol=1e-5):
        return
    if solref is not None:
        context.ledger.ignored(prim, "mjc:solref", "the material's newton:contactStiffness is used")
    shape.solref = direct
    # solref has both or none: the pair is the parameter


def _given(context: Context, material: Usd.Prim, name: str) -> float | None:
    """An authored number; an infinite one leaves the choice to the engine."""
    value = context.read.number(material, name, mark=False, finite=False)
    if value is None:
        return None
    if not np.isfinite(value):
        context.ledger.ignored(material, name, "infinite: left to the engine")
        return None
    context.ledger.used(material, name)
    return value


def _direct_form(solref: np.ndarray) -> np.ndarray:
    """(−stiffness, −damping) of a solref given as (time constant, damping ratio)."""
    if solref[0] <= 0:
        return solref
    time, ratio = solref
    return np.array([-1.0 / (time * ratio) ** 2, -2.0 / time])
