"""Paths of spatial tendons, slider-cranks, and the laws of muscles and motors, from MuJoCo's schemas.

`mjc:path` names sites and colliders, each once; `mjc:path:indices` is the way over them, `mjc:path:segments` the branch
that each place belongs to, `mjc:path:divisors` what lengths of a branch are divided by, `mjc:sideSites` and its
`indices` (−1: none) the sites on whose side the tendon passes a collider.
"""

from __future__ import annotations

import numpy as np
from pxr import Usd

from warpsim.core.errors import SceneError
from warpsim.io.usd.context import Context
from warpsim.io.usd.physics_objects import Collider, PhysicsObjects
from warpsim.io.usd.shapes import add_shape
from warpsim.scene.actuation import Actuator, DcMotor, Muscle, Tendon, TendonPoint

_WRAPPED = {"Sphere": "sphere", "Cylinder": "cylinder"}
_LAW = 9
"""Numbers of a muscle's gainPrm or biasPrm."""


def add_wrapped_shapes(context: Context, objects: PhysicsObjects) -> None:
    """Adds spheres and cylinders that tendons wrap around and that do not collide; they weigh nothing."""
    for path in context.order:
        prim = context.prim(path)
        if prim.GetTypeName() != "MjcTendon" or context.read.token(prim, "mjc:type") == "fixed":
            continue
        known = {site.name for site in context.scene.sites} | {shape.name for shape in context.scene.shapes}
        for target in context.read.targets(prim, "mjc:path"):
            round_one = context.stage.GetPrimAtPath(target)
            kind = _WRAPPED.get(round_one.GetTypeName()) if round_one else None
            if kind is not None and str(target) not in known:
                add_shape(context, objects, Collider(round_one, kind, objects.owner(round_one)))
                shape = context.scene.shapes[-1]
                shape.collides, shape.mass = False, 0.0


def read_path(context: Context, prim: Usd.Prim) -> list[TendonPoint] | None:
    """The way of a spatial tendon; None, and an entry in the ledger, where it leads over something else.

    Raises:
        SceneError: The arrays of the path do not fit together.
    """
    targets = [str(path) for path in context.read.targets(prim, "mjc:path")]
    sides = [str(path) for path in context.read.targets(prim, "mjc:sideSites")]
    order = _integers(context, prim, "mjc:path:indices", np.arange(len(targets)))
    segments = _integers(context, prim, "mjc:path:segments", np.zeros(len(order)))
    side = _integers(context, prim, "mjc:sideSites:indices", np.full(len(order), -1))
    divisors = context.read.array(prim, "mjc:path:divisors")
    divisors = np.ones(segments.max(initial=0) + 1) if divisors is None else divisors
    fits = len(order) == len(segments) == len(side) and bool((np.diff(segments) >= 0).all())
    for indices, low, count in ((order, 0, len(targets)), (segments, 0, len(divisors)), (side, -1, len(sides))):
        fits = fits and bool(((indices >= low) & (indices < count)).all())
    if not fits or not len(order):
        raise SceneError(f"{prim.GetPath()}: the arrays of mjc:path, its segments and side sites do not fit together")
    sites, shapes = ({item.name for item in items} for items in (context.scene.sites, context.scene.shapes))
    if any(name not in sites | shapes for name in targets) or any(name not in sites for name in sides):
        context.ledger.unsupported(prim, "mjc:path", "a spatial tendon runs over sites and colliders")
        return None
    points: list[TendonPoint] = []
    for n, (place, segment) in enumerate(zip(order, segments, strict=True)):
        starts = n > 0 and segment != segments[n - 1]
        if starts or (n == 0 and divisors[segment] != 1.0):
            points.append(TendonPoint("pulley", divisor=float(divisors[segment])))
        name = targets[place]
        if name in sites:
            points.append(TendonPoint("site", name))
        else:
            points.append(TendonPoint("shape", name, sides[side[n]] if side[n] >= 0 else None))
    return points


def read_crank(context: Context, prim: Usd.Prim, sliders: list[str], pin: str) -> Tendon | None:
    """The slider-crank of an actuator with `mjc:sliderSite`; None, and an entry in the ledger, where it is none."""
    sites, rod = {site.name for site in context.scene.sites}, context.read.number(prim, "mjc:crankLength") or 0.0
    if len(sliders) != 1 or not {pin, *sliders} <= sites or rod <= 0:
        reason = "a slider-crank has a site that slides, a site for its target and a mjc:crankLength above zero"
        context.ledger.unsupported(prim, "mjc:sliderSite", f"{reason}; the actuator is left out")
        return None
    path = [TendonPoint("site", sliders[0]), TendonPoint("site", pin)]
    return Tendon(f"{prim.GetPath()}:crank", path=path, rod=context.units.length * rod)


def _integers(context: Context, prim: Usd.Prim, name: str, default: np.ndarray) -> np.ndarray:
    values = context.read.array(prim, name)
    return (default if values is None else values).astype(int)


def read_muscle(context: Context, prim: Usd.Prim, actuator: Actuator, *, active: bool, passive: bool) -> bool:
    """Sets an actuator's muscle; False, and an entry in the ledger, where it is not modeled."""
    laws = {}
    for name, wanted in (("mjc:gainPrm", active), ("mjc:biasPrm", passive)):
        values = context.read.array(prim, name) if wanted else None
        if values is not None and len(values) >= _LAW:
            laws[name] = values[:_LAW]
    law = next(iter(laws.values()), None)
    if actuator.transmission == "site" or law is None or law[2] < 0:
        reason = "a muscle at a site, or one whose force is not given; the actuator is left out"
        context.ledger.unsupported(prim, "mjc:gainType", reason)
        return False
    if any(not np.array_equal(law, other) for other in laws.values()):
        reason = "a muscle's active and passive force have the same parameters; the actuator is left out"
        context.ledger.unsupported(prim, "mjc:biasPrm", reason)
        return False
    length = context.units.length
    bounds = [context.read.number(prim, f"mjc:lengthRange:{side}") or 0.0 for side in ("min", "max")]
    actuator.muscle = Muscle(
        force=context.units.force(False) * float(law[2]),
        range=(float(law[0]), float(law[1])),
        length_range=(length * bounds[0], length * bounds[1]),
        **{name: float(law[4 + k]) for k, name in enumerate(("lmin", "lmax", "vmax", "fpmax", "fvmax"))},
        active=active,
        passive=passive,
    )
    return True


def read_motor(context: Context, prim: Usd.Prim, actuator: Actuator, types: set[str]) -> bool:
    """Sets an actuator's gear and motor; False, and an entry in the ledger, where it is not modeled.

    Volts and amperes are those of meters, kilograms and seconds: resistance and constant are not converted.
    """
    gain, bias, dynamics, gear = (
        context.read.array(prim, f"mjc:{name}") for name in ("gainPrm", "biasPrm", "dynPrm", "gear")
    )
    gain, bias, dynamics = (np.zeros(0) if x is None else x for x in (gain, bias, dynamics))
    more = gain[2:].any() or bias[3:].any() or dynamics[1:].any()
    if types != {"dcmotor"} or len(gain) < 2 or gain[0] <= 0 or more or actuator.transmission in ("site", "body"):
        reason = "of dcmotors resistance, constant, inductance and cogging are modeled, at joints and tendons"
        context.ledger.unsupported(prim, "mjc:gainType", f"{reason}; the actuator is left out")
        return False
    if gear is not None:
        actuator.gear = np.resize(np.append(gear, np.zeros(6)), 6)
    cogging = np.append(bias, np.zeros(3))[:3]
    actuator.motor = DcMotor(float(gain[0]), float(gain[1]), (float(cogging[0]), float(cogging[1]), float(cogging[2])))
    actuator.gain = np.zeros(3)
    if len(dynamics) and dynamics[0] > 0:
        actuator.dynamics, actuator.time_constant = "current", float(dynamics[0])
    return True
