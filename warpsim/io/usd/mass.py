"""Authored mass properties: what is explicit goes to the `Body`, what comes from colliders stays with its shapes.

Precedence, for a body: its own mass > its colliders' masses > density; for a collider's density: its own > its body's >
its material's > 1000 kg/m³. A value of zero (and a center of −inf) means "not set" in UsdPhysics.
"""

from __future__ import annotations

import numpy as np
from pxr import Usd

from warpsim.core.errors import SceneError
from warpsim.core.numpy_quaternions import quat_to_matrix
from warpsim.io.usd.context import Context
from warpsim.scene import Body, Scene, Shape
from warpsim.scene.mass_checks import massless_bodies

DEFAULT_DENSITY = 1000.0
"""kg/m³."""
BARE_MASS = 1.0
"""kg: of a body that moves and that nothing gives a mass."""
BARE_RADIUS = 0.1
"""m: a body with mass but neither inertia nor colliders turns like a solid sphere of this radius, as in UsdPhysics."""


def set_shape_mass(
    context: Context, prim: Usd.Prim, material: Usd.Prim | None, body: Usd.Prim | None, shape: Shape
) -> None:
    """Sets a shape's mass or density."""
    mass = _positive(context, prim, "physics:mass")
    if body is None or shape.kind == "plane":
        reason = "static colliders weigh nothing" if body is None else "planes weigh nothing"
        for name in ("physics:mass", "physics:density"):
            _ignore(context, prim, name, reason)
        return
    _refuse_collider_inertia(context, prim, body)
    hidden = _hidden(context, body)
    if mass is None and prim != body:
        _ignore(context, prim, "physics:mass", "zero means not set: density is used")
    elif mass is not None and prim != body:
        shape.mass = context.units.mass * mass
        _settle(context, "mass", prim, hidden)
    places = [place for place in dict.fromkeys((prim, body, material)) if place is not None]  # nearest first
    densities = [(place, _positive(context, place, "physics:density")) for place in places]
    authored = [(place, value) for place, value in densities if value is not None]
    shape.density = context.units.density * authored[0][1] if authored else DEFAULT_DENSITY
    for rank, (place, _) in enumerate(authored):
        if rank == 0 and shape.mass is None:
            _settle(context, "density", place, hidden)
        else:
            _ignore(context, place, "physics:density", "a mass or a nearer density is authored")


def _hidden(context: Context, body: Usd.Prim) -> str:
    """Why a collider's mass cannot matter; empty if it can (it still shapes an inertia or a center left open)."""
    if _positive(context, body, "physics:mass") is None:
        return ""
    inertia = context.read.array(body, "newton:inertia", mark=False)
    diagonal = context.read.vector(body, "physics:diagonalInertia", 3, mark=False)
    center = context.read.vector(body, "physics:centerOfMass", 3, mark=False, finite=False)
    has_inertia = (inertia is not None and inertia.size > 0) or (diagonal is not None and diagonal.any())
    has_center = center is not None and np.isfinite(center).all()
    return "the body's mass, center and inertia are authored" if has_inertia and has_center else ""


def set_body_mass(context: Context, prim: Usd.Prim, body: Body, shapes: list[Shape]) -> None:
    """Sets what is authored explicitly on a body: mass, center, inertia."""
    units = context.units
    mass = _positive(context, prim, "physics:mass")
    if mass is not None:
        body.mass = units.mass * mass
        context.ledger.used(prim, "physics:mass")
    else:
        _ignore(context, prim, "physics:mass", "zero means not set: the colliders' mass is used")
    center = context.read.vector(prim, "physics:centerOfMass", 3, finite=False)
    if center is not None and np.isfinite(center).all():
        scale = context.frame(prim).scale
        body.com = units.length * scale * center
    _inertia(context, prim, body)
    has_volume = any(shape.kind != "plane" for shape in shapes)
    if body.mass is not None and not has_volume:
        body.com = np.zeros(3) if body.com is None else body.com
        if body.inertia is None:
            _assume_inertia(context, prim, body, body.mass)
    _ignore(context, prim, "physics:density", "no collider of the body uses it")


def assume_masses(context: Context) -> None:
    """Gives bodies that move, and that nothing gives a mass, that of PhysX: 1 kg."""
    bodies = {body.name: body for body in context.scene.bodies}
    for name in massless_bodies(context.scene):
        body, prim = bodies[name], context.prim(name)
        body.mass = BARE_MASS
        body.com = np.zeros(3) if body.com is None else body.com
        reason = f"not set, and no collider to derive it from: {BARE_MASS:g} kg, as in PhysX; author it"
        context.ledger.assumed(prim, "physics:mass", reason)
        if body.inertia is None:
            _assume_inertia(context, prim, body, BARE_MASS)


def _assume_inertia(context: Context, prim: Usd.Prim, body: Body, mass: float) -> None:
    """Gives a body that nothing else is known of the inertia of a small ball."""
    body.inertia = np.eye(3) * 0.4 * mass * BARE_RADIUS**2
    if _turns(context.scene, body):
        context.ledger.assumed(
            prim,
            "physics:diagonalInertia",
            f"not set, and no collider to derive it from: turns like a solid ball of radius {BARE_RADIUS} m; author it",
        )


def _turns(scene: Scene, body: Body) -> bool:
    """Whether some coordinate turns the body: only then does its inertia matter."""
    parents = {other.name: other for other in scene.bodies}
    turned = {joint.body for joint in scene.joints if joint.kind != "slide"}
    above: Body | None = body
    while above is not None and not above.kinematic:
        if above.name in turned:
            return True
        above = parents[above.parent] if above.parent is not None else None
    return False


def _inertia(context: Context, prim: Usd.Prim, body: Body) -> None:
    """`newton:inertia` (xx, yy, zz, xy, xz, yz) or the diagonal with its principal axes."""
    factor = context.units.inertia
    full = context.read.array(prim, "newton:inertia")
    if full is not None and full.size == 0:  # Newton's "not set"
        full = None
    diagonal = context.read.vector(prim, "physics:diagonalInertia", 3, mark=False)
    if full is not None:
        if full.shape != (6,):
            raise SceneError(f"{prim.GetPath()}.newton:inertia holds {full.size} numbers; give xx, yy, zz, xy, xz, yz")
        xx, yy, zz, xy, xz, yz = full
        body.inertia = factor * np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        for name in ("physics:diagonalInertia", "physics:principalAxes"):
            _ignore(context, prim, name, "newton:inertia is used")
        return
    if diagonal is None or not diagonal.any():
        _ignore(context, prim, "physics:diagonalInertia", "zero means not set: the colliders' inertia is used")
        return
    context.ledger.used(prim, "physics:diagonalInertia")
    axes = context.read.quaternion(prim, "physics:principalAxes", zero_is_unset=True)
    turn = np.eye(3) if axes is None else quat_to_matrix(axes)
    body.inertia = factor * (turn @ np.diag(diagonal) @ turn.T)


def _refuse_collider_inertia(context: Context, prim: Usd.Prim, body: Usd.Prim) -> None:
    if prim == body:
        return
    for name in ("physics:centerOfMass", "physics:diagonalInertia", "newton:inertia"):
        if prim.GetAttribute(name).HasAuthoredValue():
            context.ledger.unsupported(prim, name, "of a collider; author it on the body")


def _positive(context: Context, prim: Usd.Prim, name: str) -> float | None:
    """An authored value above zero; zero and below mean "not set" (below zero is an error)."""
    value = context.read.number(prim, name, mark=False)
    if value is not None and value < 0:
        raise SceneError(f"{prim.GetPath()}.{name} is {value}; it must be positive, or 0 for 'not set'")
    return value if value else None


def _ignore(context: Context, prim: Usd.Prim, name: str, reason: str) -> None:
    if prim.GetAttribute(name).HasAuthoredValue():
        context.ledger.ignored(prim, name, reason)


def _settle(context: Context, field: str, prim: Usd.Prim, hidden: str) -> None:
    """Marks a mass or density as used, or as ignored because something stronger hides it."""
    attribute = f"physics:{field}"
    if hidden:
        context.ledger.ignored(prim, attribute, hidden)
    else:
        context.ledger.used(prim, attribute)
