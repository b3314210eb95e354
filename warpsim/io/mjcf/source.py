"""A compiled MuJoCo model with a unique name for each of its items and the notes taken while reading it."""

from __future__ import annotations

import numpy as np

from warpsim.io.mjcf.engine import mujoco
from warpsim.scene.ledger import LedgerEntry

_OBJECTS = {
    "body": (mujoco.mjtObj.mjOBJ_BODY, "nbody"),
    "joint": (mujoco.mjtObj.mjOBJ_JOINT, "njnt"),
    "geom": (mujoco.mjtObj.mjOBJ_GEOM, "ngeom"),
    "site": (mujoco.mjtObj.mjOBJ_SITE, "nsite"),
    "mesh": (mujoco.mjtObj.mjOBJ_MESH, "nmesh"),
    "hfield": (mujoco.mjtObj.mjOBJ_HFIELD, "nhfield"),
    "pair": (mujoco.mjtObj.mjOBJ_PAIR, "npair"),
    "equality": (mujoco.mjtObj.mjOBJ_EQUALITY, "neq"),
    "tendon": (mujoco.mjtObj.mjOBJ_TENDON, "ntendon"),
    "actuator": (mujoco.mjtObj.mjOBJ_ACTUATOR, "nactuator"),
    "sensor": (mujoco.mjtObj.mjOBJ_SENSOR, "nsensor"),
}
"""Kind → MuJoCo's object type, and the field of MjModel that counts it."""


class MjSource:
    """What every converter of this package reads from and reports to.

    Attributes:
        model: The compiled model; never changed.
        names: Kind → unique names in MuJoCo's order. Unnamed items are called by kind and index, e.g. "joint_2".
        notes: Entries for the scene's ledger, in the order found.
    """

    def __init__(self, model: mujoco.MjModel) -> None:
        self.model = model
        self.names = {kind: _unique_names(model, kind) for kind in _OBJECTS}
        self.notes: list[LedgerEntry] = []

    def body_name(self, index: int) -> str | None:
        """Name of a body; None for the world, as the Scene has it."""
        return self.names["body"][index] if index > 0 else None

    def disabled(self, flag: str) -> bool:
        """Whether the standard feature `flag`, e.g. "gravity", is switched off."""
        return bool(self.model.opt.disableflags & int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{flag.upper()}")))

    def enabled(self, flag: str) -> bool:
        """Whether the optional feature `flag`, e.g. "sleep", is switched on."""
        return bool(self.model.opt.enableflags & int(getattr(mujoco.mjtEnableBit, f"mjENBL_{flag.upper()}")))

    def path(self, kind: str, index: int) -> str:
        """How ledger entries call an item, e.g. "joint 'knee'"."""
        return f"{kind} {self.names[kind][index]!r}"

    def unsupported(self, path: str, attribute: str, reason: str) -> None:
        """Notes something that would have changed the physics."""
        self.notes.append(LedgerEntry(path, attribute, "unsupported", reason))

    def ignored(self, path: str, attribute: str, reason: str) -> None:
        """Notes something without influence on the physics."""
        self.notes.append(LedgerEntry(path, attribute, "ignored", reason))

    def used(self, path: str, attribute: str, how: str) -> None:
        """Notes something that was read with a change the user should know of."""
        self.notes.append(LedgerEntry(path, attribute, "used", how))

    def unsupported_nonzero(self, kind: str, indices: range, prefix: str, fields: dict[str, str]) -> None:
        """Notes each value of MjModel's `prefix_field` arrays that is not zero; `fields` maps field → reason."""
        for field, reason in fields.items():
            values = getattr(self.model, f"{prefix}_{field}")
            for index in indices:
                if np.any(values[index] != 0):
                    self.unsupported(self.path(kind, index), field, f"{values[index]}: {reason}")


def interval(numbers: np.ndarray) -> tuple[float, float]:
    """A (lower, upper) range of MjModel as plain numbers."""
    return float(numbers[0]), float(numbers[1])


def _unique_names(model: mujoco.MjModel, kind: str) -> list[str]:
    object_type, count = _OBJECTS[kind]
    given = [mujoco.mj_id2name(model, object_type, index) for index in range(getattr(model, count))]
    taken = {name for name in given if name}
    names = []
    for index, name in enumerate(given):
        if not name:
            name = f"{kind}_{index}"
            while name in taken:
                name += "_"
            taken.add(name)
        names.append(name)
    return names
