"""Angles of rest between the triangles of a surface, from a stage and back: `restBendAngles` and their default."""

from __future__ import annotations

from typing import Any

import numpy as np
from pxr import Sdf, Usd, Vt

from warpsim.core.errors import SceneError
from warpsim.deformable.topology import hinges
from warpsim.deformable.usd_material import FAMILIES, read_array
from warpsim.io.usd.context import Context
from warpsim.io.usd.units import DEGREE

_DEFAULTS = ("flatDefault", "restShapeDefault")


def read_angles(
    context: Context, prim: Usd.Prim, form: str, geometry: dict[str, Any], parameters: dict[str, np.ndarray]
) -> dict[str, Any]:
    """What inner edges are bent by at rest; adds parameter "rest_angle" where the stage says that any are.

    Without bending there is nothing that could rest: then its parameters are taken out.

    Raises:
        SceneError: Pairs of triangles that share no edge, or are named twice, or numbers that do not fit.
    """
    if form == "volume":
        return {}
    if float(parameters["bending"]) == 0.0:
        for name in ("bending", "bending_scale"):
            parameters.pop(name, None)
        context.ledger.assumed(prim, "bending", "its stiffness is 0: it has no hinges, and no parameter for them")
        return {}
    if form == "curve":
        return {}
    given = (context.read.token(prim, f"{family}:restBendAnglesDefault", choices=_DEFAULTS) for family in FAMILIES)
    shaped = next((token for token in given if token is not None), _DEFAULTS[0]) == _DEFAULTS[1]
    pairs, angles = read_array(context, prim, "restAdjTriPairs", ndim=2), read_array(context, prim, "restBendAngles")
    path = str(prim.GetPath())
    if pairs is None and angles is None and not shaped:
        return {}
    _, sides = hinges(geometry["elements"], path)
    found, own = np.zeros(len(sides)), np.full(len(sides), shaped)
    if pairs is not None or angles is not None:
        chosen = _edges(path, pairs, angles, sides)
        found[chosen], own[chosen] = DEGREE * np.asarray(angles, float), False
    parameters["rest_angle"] = found
    return {"shaped": own}


def _edges(path: str, pairs: np.ndarray | None, angles: np.ndarray | None, sides: np.ndarray) -> np.ndarray:
    """(n,) inner edges that pairs of triangles name."""
    if pairs is None or angles is None or pairs.shape != (len(angles), 2):
        counts = ["no" if values is None else str(len(values)) for values in (angles, pairs)]
        raise SceneError(f"{path}: {counts[0]} restBendAngles for {counts[1]} restAdjTriPairs; give one for each")
    wrong = ~(np.isfinite(angles) & (np.abs(angles) <= 180.0))
    if wrong.any():
        k = int(np.argmax(wrong))
        raise SceneError(f"{path}: restBendAngles {k} is {angles[k]:g}; it must be within ±180 degrees")
    edge = {tuple(sorted(pair)): k for k, pair in enumerate(sides.tolist())}
    chosen = np.full(len(pairs), -1)
    for k, pair in enumerate(np.sort(pairs.astype(int), axis=1).tolist()):
        chosen[k] = edge.get(tuple(pair), -1)
        if chosen[k] < 0:
            raise SceneError(f"{path}: restAdjTriPairs {k}: triangles {pair[0]} and {pair[1]} share no edge")
        if (chosen[:k] == chosen[k]).any():
            raise SceneError(f"{path}: restAdjTriPairs {k}: triangles {pair[0]} and {pair[1]} are named twice")
    return chosen


def write_angles(prim: Usd.Prim, triangles: np.ndarray, angles: np.ndarray, shaped: np.ndarray) -> None:
    """Authors angles (n,) of inner edges, rad; where they come on top of the rest shape's they must be zero."""
    if shaped.any():
        kind = Sdf.ValueTypeNames.Token
        prim.CreateAttribute("physics:restBendAnglesDefault", kind, False, Sdf.VariabilityUniform).Set(_DEFAULTS[1])
    _, sides = hinges(triangles)
    own = ~shaped
    if own.any():
        rows = Vt.Vec2iArray.FromNumpy(np.ascontiguousarray(sides[own], np.int32))
        prim.CreateAttribute("physics:restAdjTriPairs", Sdf.ValueTypeNames.Int2Array, False).Set(rows)
        degrees = Vt.FloatArray.FromNumpy((angles[own] / DEGREE).astype(np.float32))
        prim.CreateAttribute("physics:restBendAngles", Sdf.ValueTypeNames.FloatArray, False).Set(degrees)
