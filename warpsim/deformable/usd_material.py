"""Materials of deformables on a stage → SI numbers of a description."""

from __future__ import annotations

from typing import Any

import numpy as np
from pxr import Usd, UsdShade

from warpsim.core.errors import SceneError
from warpsim.io.usd.attributes import place
from warpsim.io.usd.context import Context
from warpsim.io.usd.ledger_scan import applied_apis

FAMILIES = ("physics", "omniphysics")
"""Prefixes of the proposal's attributes, as the standard has them and as another engine's."""
DEFAULTS = {
    "surface": {"young": 1e5, "poisson": 0.3, "thickness": 1e-3, "density": 300.0},
    "volume": {"young": 1e5, "poisson": 0.3, "density": 1000.0},
    "curve": {"young": 1e6, "thickness": 1e-2, "density": 1000.0},
}
"""What holds without a value: Pa, –, m, kg/m³."""
FRICTION = 0.5
_MOST = {"young": 1e13, "density": 1e5}
"""Pa, kg/m³: more than any matter has; a number beyond is in other units than the stage's."""


def read_number(context: Context, prim: Usd.Prim, name: str) -> float | None:
    """An attribute of either family."""
    for family in FAMILIES:
        value = context.read.number(prim, f"{family}:{name}")
        if value is not None:
            return value
    return None


def read_array(context: Context, prim: Usd.Prim, name: str, ndim: int = 1) -> np.ndarray | None:
    """An array of either family."""
    for family in FAMILIES:
        values = context.read.array(prim, f"{family}:{name}", ndim=ndim)
        if values is not None:
            return values
    return None


def bound_material(prim: Usd.Prim) -> Usd.Prim | None:
    """The physics material of a prim, directly or through an ancestor."""
    material, _ = UsdShade.MaterialBindingAPI(prim).ComputeBoundMaterial("physics")
    return material.GetPrim() if material else None


def deformable_body(prim: Usd.Prim) -> Usd.Prim | None:
    """The nearest prim, itself included, that is marked as a deformable body."""
    while prim and not prim.IsPseudoRoot():
        if any(name.endswith("PhysicsDeformableBodyAPI") for name in applied_apis(prim)):
            return prim
        prim = prim.GetParent()
    return None


def read_material(context: Context, prim: Usd.Prim, form: str, measure: Any) -> dict[str, np.ndarray]:
    """Material of a whole deformable.

    Args:
        context: The reading.
        prim: The simulated geometry.
        form: "surface", "volume" or "curve".
        measure: From a thickness, m, to the volume at rest, m³.

    Raises:
        SceneError: A value that cannot be simulated with.
    """
    units, material = context.units, bound_material(prim)
    pressure = units.mass / units.length
    found = dict(DEFAULTS[form])
    names = {
        "young": ("youngsModulus", pressure),
        "poisson": ("poissonsRatio", 1.0),
        "thickness": ("thickness", units.length),
        "density": ("density", units.density),
    }
    given: set[str] = set()
    for field in found:
        value = None if material is None else read_number(context, material, names[field][0])
        if value is not None:
            found[field] = names[field][1] * value
            given.add(field)
            if found[field] <= 0.0 and field != "poisson":
                path = place(material, f"physics:{names[field][0]}")
                raise SceneError(f"{path}: {value:g} of {prim.GetPath()}; it must be above 0")
            if found[field] > _MOST.get(field, np.inf):
                path = place(material, f"physics:{names[field][0]}")
                told = f"{found[field]:.3g} {'Pa' if field == 'young' else 'kg/m³'} of {prim.GetPath()}"
                raise SceneError(f"{path}: {value:g} is {told}, more than any material; is it in the stage's units?")
    out = {"damping": 0.0, "mass_damping": 0.0, "bending": 1.0, "own_friction": FRICTION}
    if material is not None:
        _stiffnesses(context, material, form, found, out)
        _friction(context, material, out)
        for field, name in (("damping", "warpsim:stiffnessDamping"), ("mass_damping", "warpsim:massDamping")):
            out[field] = context.read.number(material, name) or 0.0
    _mass(context, prim, found, measure)
    for field in set(found) - given:
        if field in ("young", "thickness"):
            context.ledger.assumed(prim, f"physics:{names[field][0]}", f"not set; {found[field]:g} in SI is taken")
    if form == "curve":
        out["radius"] = 0.5 * found.pop("thickness")
    return {name: np.array(value) for name, value in {**found, **out}.items()}


def _stiffnesses(context: Context, material: Usd.Prim, form: str, found: dict, out: dict) -> None:
    """Stiffnesses of the proposal win over moduli: EA or Et for stretch, EI or D for bending."""
    scale, units = context.read.number(material, "warpsim:bendingScale"), context.units
    out["bending"] = 1.0 if scale is None else scale
    if form == "volume":
        return
    thickness = found["thickness"]
    section = thickness if form == "surface" else 0.25 * np.pi * thickness**2
    stretch, bend = (read_number(context, material, f"{name}Stiffness") for name in ("stretch", "bend"))
    if stretch:
        force = units.mass if form == "surface" else units.mass * units.length
        found["young"] = force * stretch / section
    if bend is not None:
        if form == "surface":
            own = found["young"] * thickness**3 / (12.0 * (1.0 - found["poisson"] ** 2))
            factor = units.mass * units.length**2
        else:
            own, factor = found["young"] * np.pi * thickness**4 / 64.0, units.mass * units.length**3
        out["bending"] = factor * bend / own


def _friction(context: Context, material: Usd.Prim, out: dict) -> None:
    dynamic, static = (read_number(context, material, f"{name}Friction") for name in ("dynamic", "static"))
    for name, value in (("static", static), ("dynamic", dynamic)):
        if value is None:
            continue
        if not value >= 0.0:
            raise SceneError(f"{place(material, f'physics:{name}Friction')}: {value:g}; it must not be negative")
        out["own_friction"] = value


def _mass(context: Context, prim: Usd.Prim, found: dict, measure: Any) -> None:
    """The body's mass wins over its density, and that over the material's."""
    body = deformable_body(prim)
    if body is None:
        return
    mass, density = (read_number(context, body, name) for name in ("mass", "density"))
    if mass:
        found["density"] = context.units.mass * mass / measure(found.get("thickness"))
    elif density:
        found["density"] = context.units.density * density
