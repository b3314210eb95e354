"""Authored arrays given in Python are held to what files are: the same table, `warpsim.scene.ranges`."""

from __future__ import annotations

import numpy as np

from warpsim.core.errors import RangeError
from warpsim.core.precision import numpy_real
from warpsim.scene.ranges import FIELDS, INFINITE_ALLOWED, NOT_NEGATIVE, POSITIVE, Field, Range

_FIELD_OF = {
    "limit.range": ("joint", "limit"),
    "limit.friction_loss": ("joint", "friction_loss"),
    "joint.force_range": ("joint", "actuator_force_limit"),
    "tendon_limit.range": ("tendon", "limit"),
    "tendon_limit.friction_loss": ("tendon", "friction_loss"),
    "equality.range": ("equality", "distance_range"),
    "equality.relative_rotation": ("equality", "axes"),
    "loop.range": ("joint", "limit"),
    "world.timestep": ("options", "timestep"),
    "world.medium_density": ("medium", "density"),
    "world.medium_viscosity": ("medium", "viscosity"),
}
"""Arrays whose names are not those of the item and the field that they hold."""

_POSITIVE_WHERE_GIVEN = ("body.mass", "shape.size")
"""Arrays with a zero where the scene gives no number, or a shape reads none; others must be above it."""

_TOLERANCE = 1e-6
"""Of principal inertias, relative to the largest: as for files."""


def check_parameter_values(name: str, values: np.ndarray, described: np.ndarray) -> None:
    """Raises where an array holds a number that nothing can be simulated with.

    Args:
        name: "group.field".
        values: (W, n, …), SI.
        described: (n, …), the scene's own, which are right: some of them stand for "not given".

    Raises:
        RangeError: Names the array, the first wrong place and value, and all worlds that have one.
    """
    kind, field = _FIELD_OF.get(name, tuple(name.split(".", 1)))
    own = np.broadcast_to(described.astype(numpy_real), values.shape)
    changed = values != own  # NaN differs from everything
    if not changed.any():
        return
    not_a_number = np.isnan(values) if field in INFINITE_ALLOWED else ~np.isfinite(values)
    _refuse(name, values, not_a_number & changed, "it must be a finite number")
    if name == "body.inertia":
        _check_inertias(name, values, changed)
        return
    rule: Field | None = FIELDS.get(kind, {}).get(field)
    if rule in ("ordered", "lengths"):
        _refuse(name, values, _spread(values[..., 0] > values[..., 1], values) & changed, "lower must not exceed upper")
    if rule == "direction":
        zero = np.logical_not(values.any(axis=-1))
        _refuse(name, values, _spread(zero, values) & changed, "it is zero and so has no direction")
    if rule == "lengths":
        rule = NOT_NEGATIVE
    if name in _POSITIVE_WHERE_GIVEN:
        _refuse(name, values, POSITIVE.outside(values) & changed & (own > 0), POSITIVE.words)
        rule = NOT_NEGATIVE
    if isinstance(rule, Range):
        _refuse(name, values, rule.outside(values) & changed, rule.words)


def _check_inertias(name: str, values: np.ndarray, changed: np.ndarray) -> None:
    """Principal inertias are not negative. That two add up to the third is left to files: differences step across."""
    xx, yy, zz, xy, xz, yz = np.moveaxis(values, -1, 0)
    matrices = np.stack([np.stack(row, -1) for row in ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))], -2)
    least = np.linalg.eigvalsh(matrices)[..., 0]
    negative = (least < -_TOLERANCE * np.abs(values).max(-1)) & changed.any(-1)
    _refuse(name, values, _spread(negative, values), "a principal inertia is negative")


def _spread(items: np.ndarray, values: np.ndarray) -> np.ndarray:
    """(W, n) as (W, n, …)."""
    return np.broadcast_to(items[..., None], values.shape)


def _refuse(name: str, values: np.ndarray, wrong: np.ndarray, words: str) -> None:
    """Raises if anything is wrong."""
    if not wrong.any():
        return
    worlds = np.flatnonzero(wrong.reshape(len(wrong), -1).any(1)).tolist()
    place = tuple(int(i) for i in np.argwhere(wrong)[0])
    item = place[1] if len(place) > 1 else None
    given = values[place[:2]]
    shown = given.tolist() if given.ndim else float(given)
    where = f"parameter {name!r}" + ("" if item is None else f", item {item}")
    world = f" of world {place[0]}" if len(values) > 1 else ""
    raise RangeError(f"{where}{world} was given {shown}; {words}", worlds if len(values) > 1 else ())
