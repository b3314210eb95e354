"""An MJCF document that is being written: elements with numbers at full precision, and what it could not hold."""

from __future__ import annotations

from dataclasses import dataclass, field
from xml.etree import ElementTree

import numpy as np

from warpsim.scene.defaults import DEFAULT_SOLIMP, DEFAULT_SOLREF
from warpsim.scene.description import Scene
from warpsim.scene.ledger import LedgerEntry

OPEN = 1e10
"""Stands for an end of a range that is open: MuJoCo's ranges are finite."""


def text_of(value: object) -> str:
    """A value as MJCF writes it; floats to the last bit."""
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (float, np.floating)):
        return repr(float(np.clip(value, -OPEN, OPEN)))
    if isinstance(value, (list, tuple, np.ndarray)):
        return " ".join(text_of(x) for x in np.asarray(value).reshape(-1).tolist())
    return str(value)


@dataclass
class Document:
    """The root element and its sections."""

    scene: Scene
    root: ElementTree.Element = field(default_factory=lambda: ElementTree.Element("mujoco"))
    notes: list[LedgerEntry] = field(default_factory=list)
    bodies: dict[str | None, ElementTree.Element] = field(default_factory=dict)
    """Name → element; None is the world."""

    def section(self, name: str) -> ElementTree.Element:
        """The section of a name, made where it is not there yet."""
        found = self.root.find(name)
        return ElementTree.SubElement(self.root, name) if found is None else found

    def lost(self, kind: str, name: str, attribute: str, reason: str) -> None:
        """Notes what MJCF cannot hold."""
        self.notes.append(LedgerEntry(f"{kind} {name!r}", attribute, "unsupported", reason))


def add(parent: ElementTree.Element, tag: str, **values: object) -> ElementTree.Element:
    """An element with those of the values that are not None; a trailing "_" of a name is left out."""
    made = ElementTree.SubElement(parent, tag)
    for name, value in values.items():
        if value is not None:
            made.set(name.rstrip("_"), text_of(value))
    return made


def softness(solref: np.ndarray, solimp: np.ndarray, suffix: str = "") -> dict[str, object]:
    """solref and solimp, where they are not MuJoCo's own."""
    values: dict[str, object] = {}
    if not np.array_equal(solref, DEFAULT_SOLREF):
        values[f"solref{suffix}"] = solref
    if not np.array_equal(solimp, DEFAULT_SOLIMP):
        values[f"solimp{suffix}"] = solimp
    return values
