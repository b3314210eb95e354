"""What every part of the reader shares: the stage, its units, typed access, prims' frames, and the scene being made."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from pxr import Gf, Sdf, Tf, Usd, UsdGeom

from warpsim.core.errors import SceneError
from warpsim.io.usd.attributes import AttributeReader
from warpsim.io.usd.frames import Frame, split_affine
from warpsim.io.usd.ledger_scan import Ledger, prims
from warpsim.io.usd.units import StageUnits
from warpsim.io.usd.xform_ops import local_matrix
from warpsim.scene import Scene
from warpsim.scene.matters import MatterKind


@dataclass
class Context:
    """One reading of one stage."""

    stage: Usd.Stage
    units: StageUnits
    ledger: Ledger
    read: AttributeReader
    scene: Scene = field(default_factory=Scene)
    order: dict[Sdf.Path, int] = field(default_factory=dict)
    """Path → place in composed prim order."""
    matters: dict[Sdf.Path, MatterKind] = field(default_factory=dict)
    """Prims that are of other matter than bodies, and its kind."""
    _world: dict[Sdf.Path, Gf.Matrix4d] = field(default_factory=dict)
    _frames: dict[Sdf.Path, Frame] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.order = {prim.GetPath(): place for place, prim in enumerate(prims(self.stage))}

    def prim(self, path: Sdf.Path | str) -> Usd.Prim:
        """The prim at a path, invalid if there is none."""
        return self.stage.GetPrimAtPath(path)

    def sorted(self, paths: Iterable[Sdf.Path]) -> list[Sdf.Path]:
        """Paths in composed prim order, each once."""
        return sorted(set(paths), key=lambda path: (self.order.get(path, len(self.order)), str(path)))

    def frame(self, prim: Usd.Prim) -> Frame:
        """The prim's frame in the Z-up world, m, with its scale split off.

        Raises:
            SceneError: The transform is not invertible or not finite.
        """
        path = prim.GetPath()
        if path not in self._frames:
            matrix = np.array(self.local_to_world(prim)).T  # USD multiplies rows; columns are used here
            if not np.isfinite(matrix).all():
                raise SceneError(f"{path}: its world transform holds NaN or infinite numbers; check its xformOps")
            linear = matrix[:3, :3]
            lengths = np.linalg.norm(linear, axis=0)
            if (lengths == 0).any() or abs(np.linalg.det(linear / np.where(lengths == 0, 1, lengths))) < 1e-9:
                raise SceneError(f"{path}: its world transform is singular (a zero scale?); check its xformOps")
            turn = self.units.to_world
            self._frames[path] = split_affine(turn @ linear, self.units.length * (turn @ matrix[:3, 3]))
        return self._frames[path]

    def local_to_world(self, prim: Usd.Prim) -> Gf.Matrix4d:
        """The prim's world transform in stage units and axes, for row vectors, as USD has it."""
        path = prim.GetPath()
        if path not in self._world:
            if prim.IsPseudoRoot():
                self._world[path] = Gf.Matrix4d(1.0)
            else:
                local, resets = self._local(prim)
                self._world[path] = local if resets else local * self.local_to_world(prim.GetParent())
        return self._world[path]

    def _local(self, prim: Usd.Prim) -> tuple[Gf.Matrix4d, bool]:
        xformable = UsdGeom.Xformable(prim)
        if not xformable:
            return Gf.Matrix4d(1.0), False
        try:
            return local_matrix(xformable, self._op_value), xformable.GetResetXformStack()
        except (Tf.ErrorException, TypeError, ValueError) as error:  # values of types that the ops do not take
            raise SceneError(
                f"{prim.GetPath()}: its xformOps cannot be evaluated; author them anew\n{error}"
            ) from error

    def _op_value(self, op: UsdGeom.XformOp) -> Any:
        attribute = op.GetAttr()
        given = self.read.given(attribute.GetPrim(), attribute.GetName())
        if given is not None:
            return given
        value = op.Get(self.read.time)
        if value is None and self.read.time.IsDefault():  # only time samples
            value = op.Get(Usd.TimeCode.EarliestTime())
        return value

    def take(
        self, item: Any, field_name: str, prim: Usd.Prim, attribute: str, factor: float = 1.0, *, scale: Any = None
    ) -> bool:
        """Reads an authored number, or with `scale` a vector as long, into a field of a scene item.

        Args:
            item: Of the scene.
            field_name: Its field.
            prim: Where the attribute is.
            attribute: Its name.
            factor: SI value per authored value.
            scale: (n,) further factor of each component of a vector.

        Returns:
            Whether anything is authored.
        """
        if scale is None:
            number = self.read.number(prim, attribute)
            value = None if number is None else factor * number
        else:
            numbers = self.read.vector(prim, attribute, len(scale))
            value = None if numbers is None else factor * np.asarray(scale) * numbers
        if value is None:
            return False
        setattr(item, field_name, value)
        return True
