"""The PhysicsScene prim → gravity, time step, solver settings and the medium."""

from __future__ import annotations

import numpy as np
from pxr import Usd

from warpsim.core.errors import SceneError
from warpsim.core.numpy_quaternions import unit
from warpsim.io.usd.context import Context
from warpsim.io.usd.extensions import lookup
from warpsim.io.usd.ledger_scan import applied_apis
from warpsim.io.usd.physics_objects import PhysicsObjects
from warpsim.io.usd.units import EARTH_GRAVITY
from warpsim.scene.description import CONES, SOFTENING_PASSES

_INTEGRATORS = {"euler": "euler", "implicitfast": "implicitfast", "rk4": "rk4"}


def read_options(context: Context, objects: PhysicsObjects) -> None:
    """Fills `scene.options` and `scene.medium`; a stage without a PhysicsScene has earth's gravity."""
    options, up = context.scene.options, context.units.up
    options.gravity = -EARTH_GRAVITY * (context.units.to_world @ up)
    if not objects.scenes:
        return
    prim = objects.scenes[0]
    for other in objects.scenes[1:]:
        context.ledger.unsupported(other, "PhysicsScene", f"one scene is simulated: {prim.GetPath()}")
        context.ledger.switched_off(other, "of a scene that is not simulated")
    _gravity(context, prim)
    _stepping(context, prim)
    _medium(context, prim)
    _settle_owners(context, objects, prim)


def _gravity(context: Context, prim: Usd.Prim) -> None:
    direction = context.read.vector(prim, "physics:gravityDirection", 3)
    magnitude = context.read.number(prim, "physics:gravityMagnitude", finite=False)
    if direction is None or not direction.any():
        direction = -context.units.up
    factor = context.units.length
    if magnitude is None or magnitude < 0:  # −inf, UsdPhysics' sentinel, included
        strength = EARTH_GRAVITY
    elif np.isfinite(magnitude):
        strength = factor * magnitude
    else:
        raise SceneError(f"{prim.GetPath()}.physics:gravityMagnitude is {magnitude}; give a finite value")
    if not context.read.flag(prim, "newton:gravityEnabled", True):
        strength = 0.0
    turned = context.units.to_world @ unit(direction)
    context.scene.options.gravity = strength * turned


def _stepping(context: Context, prim: Usd.Prim) -> None:
    options = context.scene.options
    rate = lookup(context, prim, "steps_per_second")
    step = context.read.number(prim, "mjc:option:timestep", mark=False)
    if rate is not None:
        if rate.value <= 0:
            raise SceneError(f"{prim.GetPath()}.{rate.attribute} is {rate.value}; it must be above zero")
        options.timestep = 1.0 / rate.value
        if step is not None:
            context.ledger.ignored(prim, "mjc:option:timestep", f"{rate.attribute} is used")
    elif step is not None:
        options.timestep = step
        context.ledger.used(prim, "mjc:option:timestep")
    iterations = lookup(context, prim, "solver_iterations")
    if iterations is not None and iterations.value > 0:
        options.solver_iterations = int(iterations.value)
        context.scene.option_places["solver_iterations"] = (str(prim.GetPath()), iterations.attribute)
    integrator = context.read.token(prim, "mjc:option:integrator")
    if integrator is not None and integrator in _INTEGRATORS:
        options.integrator = _INTEGRATORS[integrator]
    elif integrator is not None:
        context.ledger.unsupported(prim, "mjc:option:integrator", f"{integrator!r} is not known; Euler is used")
    _cone(context, prim)
    options.impacts = context.read.flag(prim, "warpsim:impacts", False)
    context.take(options, "impact_speed", prim, "warpsim:impactSpeed", context.units.length)
    context.take(options, "contact_softening", prim, "warpsim:contactSoftening", context.units.length)
    softening_pass = context.read.token(prim, "warpsim:softeningPass", choices=SOFTENING_PASSES)
    if softening_pass is not None:
        options.softening_pass = softening_pass
    _max_contacts(context, prim)
    context.take(options, "impratio", prim, "mjc:option:impratio")
    if context.take(options, "solver_tolerance", prim, "mjc:option:tolerance"):
        context.scene.option_places["solver_tolerance"] = (str(prim.GetPath()), "mjc:option:tolerance")


def _max_contacts(context: Context, prim: Usd.Prim) -> None:
    count = context.read.number(prim, "warpsim:maxContacts")
    if count is None:
        return
    if count < 1 or count != int(count):
        raise SceneError(
            f"{prim.GetPath()}.warpsim:maxContacts is {count:g}; give a whole number from 1 on, or leave it out for as "
            "many contacts as are needed"
        )
    context.scene.options.max_contacts = int(count)


def _cone(context: Context, prim: Usd.Prim) -> None:
    """The authored cone; else MuJoCo's default where its schema is applied, for its converters leave defaults out."""
    options = context.scene.options
    cone = context.read.token(prim, "mjc:option:cone", choices=CONES)
    if cone is not None:
        options.cone = cone
    elif "MjcSceneAPI" in applied_apis(prim):
        options.cone = "pyramidal"
        context.ledger.used(prim, "MjcSceneAPI", "no mjc:option:cone is authored: pyramidal, MuJoCo's default")


def _medium(context: Context, prim: Usd.Prim) -> None:
    units, medium = context.units, context.scene.medium
    factors = {"density": units.density, "viscosity": units.mass / units.length}
    for field, factor in factors.items():
        context.take(medium, field, prim, f"mjc:option:{field}", factor)
    wind = context.read.vector(prim, "mjc:option:wind", 3)
    if wind is not None:
        medium.wind = units.length * (units.to_world @ wind)


def _settle_owners(context: Context, objects: PhysicsObjects, scene: Usd.Prim) -> None:
    owned = [*objects.bodies.values(), *(collider.prim for collider in objects.colliders.values())]
    for prim in owned:
        for target in context.read.targets(prim, "physics:simulationOwner"):
            if target != scene.GetPath():
                context.ledger.unsupported(prim, "physics:simulationOwner", f"only {scene.GetPath()} is simulated")
