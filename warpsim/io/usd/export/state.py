"""What the parts of the exporter share: the stage, the prims made so far, and what could not be kept."""

from __future__ import annotations

from dataclasses import dataclass, field

from pxr import Tf, Usd

from warpsim.scene import Scene
from warpsim.scene.ledger import LedgerEntry


@dataclass
class Export:
    """A scene on its way to USD."""

    scene: Scene
    stage: Usd.Stage
    prims: dict[tuple[str, str], Usd.Prim] = field(default_factory=dict)
    """(kind, name in the scene) → prim."""
    notes: list[LedgerEntry] = field(default_factory=list)
    """What USD cannot say."""

    @property
    def world(self) -> Usd.Prim:
        """The default prim."""
        return self.stage.GetDefaultPrim()

    def body(self, name: str | None) -> Usd.Prim | None:
        """A body's prim; None for the world."""
        return None if name is None else self.prims[("body", name)]

    def name(self, parent: Usd.Prim, wanted: str) -> str:
        """A prim name like the wanted one, valid and not taken under the parent."""
        stem = Tf.MakeValidIdentifier(wanted.rstrip("/").rsplit("/", 1)[-1].replace(":", "_") or "unnamed")
        taken, name, count = {str(child.GetName()) for child in parent.GetAllChildren()}, stem, 1
        while name in taken:
            count += 1
            name = f"{stem}_{count}"
        return name

    def lost(self, kind: str, name: str, what: str, reason: str) -> None:
        """Notes that something is not in the USD file."""
        self.notes.append(LedgerEntry(f"{kind} {name!r}", what, "unsupported", reason))
