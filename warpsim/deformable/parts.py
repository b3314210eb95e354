"""From a deformable of a scene to what the core builds: its elements with their materials, and what holds them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from warpsim.core.errors import SceneError
from warpsim.deformable.description import SELF_LAW, Curve, Matter, Obstacle, SelfContact, Sheet, Volume, check
from warpsim.deformable.topology import make_topology
from warpsim.scene.matters import MatterDescription

FORMS = {"surface": "membrane", "volume": "tetrahedra", "curve": "segments"}
"""Form of a matter → kind of its elements."""
MATERIAL = {
    "surface": ("young", "poisson", "thickness", "density", "damping"),
    "volume": ("young", "poisson", "density", "damping"),
    "curve": ("young", "radius", "density", "damping"),
}
"""Form → the element's parameters: one number, and for some a factor for each element, "<name>_scale"."""
BENDS = {"surface": ("hinges", "folds"), "curve": ("joints",)}


def parts_of(description: MatterDescription) -> Matter:
    """What the core needs of a description.

    Raises:
        SceneError: Something cannot be simulated; names the prim and the element.
    """
    data, form, given = description.data, description.data["form"], description.parameters
    where = description.path or description.name
    values = {name: _of_elements(given, name) for name in MATERIAL[form]}
    parts: list[Any]
    if form == "surface":
        angle = {"angle": given.get("rest_angle"), "shaped": data.get("shaped", False)}
        parts = [Sheet(data["elements"], bending=_bending(given), name=where, **angle, **values)]
    elif form == "volume":
        parts = [Volume(data["elements"], name=where, **values)]
    else:
        chains = np.split(np.arange(int(sum(data["counts"]))), np.cumsum(data["counts"])[:-1])
        single = {name: float(given[name]) for name in MATERIAL[form]}
        parts = [Curve(chain, bending=_bending(given), name=where, **single) for chain in chains]
    try:
        return Matter(
            given["rest"],
            parts,
            fixed=data["fixed"].tolist(),
            pinned=[*data["pinned"].tolist(), *data["held"].tolist()],
            obstacles=[Obstacle(kind) for kind in data["shape_kinds"]],
            faces=data["faces"] if "faces" in data and (data["shape_kinds"] or data["self_collision"]) else (),
            sprung=data["sprung"].tolist(),
            self_contact=_self_contact(given) if data["self_collision"] else None,
        )
    except ValueError as error:
        raise SceneError(f"{where}: {error}") from error


def _self_contact(given: Mapping[str, np.ndarray]) -> SelfContact:
    return SelfContact(**{name: float(given[f"self_{name}"]) for name in SELF_LAW})


def _of_elements(given: Mapping[str, np.ndarray], name: str) -> np.ndarray:
    return np.asarray(given[name], float) * np.asarray(given.get(f"{name}_scale", 1.0), float)


def _bending(given: Mapping[str, np.ndarray]) -> Any:
    """0 where nothing resists bending, and so no parameter says how much."""
    return _of_elements(given, "bending") if "bending" in given else 0.0


def check_parts(description: MatterDescription) -> None:
    """Raises `SceneError` for elements that cannot be simulated, with the prim and the element."""
    where, parts = description.path or description.name, parts_of(description)
    try:
        check(parts)
        make_topology(parts)
    except SceneError as error:
        raise error if where in str(error) else SceneError(f"{where}: {error}") from error
