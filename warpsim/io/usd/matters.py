"""Prims that a registered kind of matter claims: described by it, and the state that a result left on them."""

from __future__ import annotations

import numpy as np

from warpsim.core.errors import SceneError
from warpsim.io.usd.attributes import place
from warpsim.io.usd.context import Context
from warpsim.io.usd.ledger_scan import applied_apis, prims
from warpsim.scene.matters import MatterDescription, claiming_kind

STATE_PREFIX = "warpsim:state:"
"""double[] on a matter's prim, by field of its state: one world's value laid flat, SI, z up."""


def find_matters(context: Context) -> None:
    """Lists the prims that a kind of matter claims: whatever else they look like, they are nothing else."""
    for prim in prims(context.stage):
        kind = claiming_kind(prim, applied_apis(prim))
        if kind is not None:
            context.matters[prim.GetPath()] = kind


def add_matters(context: Context) -> None:
    """Adds what claimed prims describe to the scene."""
    for path, kind in context.matters.items():
        prim = context.prim(path)
        described = kind.read(prim, context)
        for name in described.initial:
            _take_state(described, name, context)
        context.ledger.claimed(prim, f"of matter {described.name!r}, which does not read it")
        context.scene.matters.append(described)


def _take_state(described: MatterDescription, name: str, context: Context) -> None:
    prim = context.prim(described.path)
    values = context.read.array(prim, STATE_PREFIX + name)
    if values is None:
        return
    shape = np.shape(described.initial[name])
    if values.size != np.prod(shape):
        raise SceneError(
            f"{place(prim, STATE_PREFIX + name)}: {values.size} numbers, but the state has {int(np.prod(shape))}; "
            "remove it, or save the result of this scene anew"
        )
    described.initial[name] = values.reshape(shape)
