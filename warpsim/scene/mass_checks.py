"""Checks of mass and inertia: what must be positive for the equations of motion to have a solution."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from warpsim.core.errors import SceneError
from warpsim.scene.checks import place
from warpsim.scene.description import Body, Scene, Shape
from warpsim.scene.ranges import NOT_NEGATIVE

MASSLESS_SHAPES = ("plane", "heightfield")
"""Shapes without a volume: they give their body no mass."""

_INERTIA_TOLERANCE = 1e-6
"""Relative to the largest principal inertia: exported files are rounded to about as many digits."""


def check_masses(scene: Scene) -> None:
    """Given values are physical, and each moving group of rigidly joined bodies has mass and inertia.

    As in MuJoCo, a body that moves needs both, unless a body fixed to it (directly or through others) brings them.
    """
    shapes: dict[str | None, list[Shape]] = defaultdict(list)
    for shape in scene.shapes:
        shapes[shape.body].append(shape)
    for body in scene.bodies:
        _check_given_mass(body)
        _check_given_inertia(body)
    for leader, members in _moving_groups(scene).items():
        _check_group(leader, members, shapes)


def _check_given_mass(body: Body) -> None:
    if body.mass is not None and NOT_NEGATIVE.outside(np.asarray(body.mass)):
        raise SceneError(f"{place(body)}: mass is {body.mass}; give a mass above zero, or None to use its shapes'")


def _check_given_inertia(body: Body) -> None:
    if body.inertia is None:
        return
    inertia = np.asarray(body.inertia, dtype=float)
    tolerance = _INERTIA_TOLERANCE * float(np.abs(inertia).max())
    if np.abs(inertia - inertia.T).max() > tolerance:
        raise SceneError(f"{place(body)}: inertia is not symmetric; use (I + Iᵀ)/2 if the difference is noise")
    small, middle, large = np.linalg.eigvalsh(0.5 * (inertia + inertia.T))
    if small < -tolerance:
        raise SceneError(f"{place(body)}: inertia has the negative principal value {small:.6g}; all must be ≥ 0")
    if small + middle < large - tolerance:
        raise SceneError(
            f"{place(body)}: principal inertias {small:.6g} + {middle:.6g} < {large:.6g}; no mass distribution has "
            "that (I₁ + I₂ ≥ I₃ must hold): check the frame and the units"
        )


def _moving_groups(scene: Scene) -> dict[str, list[Body]]:
    """First body of each moving group (it has the joints) → it and the bodies fixed to it; kinematic ones left out."""
    jointed = {joint.body for joint in scene.joints}
    by_name = {body.name: body for body in scene.bodies}
    groups: dict[str, list[Body]] = {}
    for body in scene.bodies:
        leader: Body | None = body
        while leader is not None and leader.name not in jointed:
            leader = by_name[leader.parent] if leader.parent is not None else None
        if leader is not None and not leader.kinematic:
            groups.setdefault(leader.name, []).append(body)
    return groups


def massless_bodies(scene: Scene) -> list[str]:
    """Bodies that move although neither they nor what is fixed to them has mass."""
    shapes: dict[str | None, list[Shape]] = defaultdict(list)
    for shape in scene.shapes:
        shapes[shape.body].append(shape)
    groups = _moving_groups(scene).items()
    return [leader for leader, members in groups if not any(_has_mass(b, shapes[b.name]) for b in members)]


def _check_group(leader: str, members: list[Body], shapes: dict[str | None, list[Shape]]) -> None:
    if not any(_has_mass(body, shapes[body.name]) for body in members):
        raise SceneError(
            f"body {leader!r} moves but has no mass; set Body.mass, or give it (or a body fixed to it) a shape with "
            "density or mass above zero"
        )
    if not any(_has_mass(body, shapes[body.name]) and _has_inertia(body, shapes[body.name]) for body in members):
        raise SceneError(
            f"body {leader!r} moves but its rotational inertia is zero or unknown; set Body.inertia, or give it (or a "
            "body fixed to it) a shape from which it can be derived"
        )


def _has_mass(body: Body, shapes: list[Shape]) -> bool:
    return body.mass > 0 if body.mass is not None else any(_gives_mass(shape) for shape in shapes)


def _has_inertia(body: Body, shapes: list[Shape]) -> bool:
    if body.inertia is None:
        return any(_gives_mass(shape) for shape in shapes)
    return bool(np.linalg.eigvalsh(np.asarray(body.inertia, dtype=float))[0] > 0)


def _gives_mass(shape: Shape) -> bool:
    if shape.kind in MASSLESS_SHAPES:
        return False
    return shape.density > 0 if shape.mass is None else shape.mass > 0
