"""The layers of a stage before USD composes them: which files they name, and how many prims they would make.

USD opens whatever a layer refers to and composes however many prims that gives; nested references multiply. Layers
alone are small, so they are walked first: one by one, each only after its path was found to be allowed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pxr import Ar, Sdf, Tf

from warpsim.core.errors import SceneError
from warpsim.io.reading_limits import Reach, check_count

_CLIP_KEYS = ("assetPaths", "manifestAssetPath", "templateAssetPath")
_PHYSICS = {"PhysicsRigidBodyAPI", "PhysicsCollisionAPI"}
_PRIMS_PER_OBJECT = 20
"""Of prims without physics there may be so many times more."""

Node = tuple[str, Sdf.Path]
"""A prim of the stack of layers below a layer, named by its identifier."""


def check_layers(path: str) -> list[Sdf.Layer]:
    """Refuses a file that should not be composed.

    Args:
        path: Of the root layer.

    Returns:
        The layers; held until the stage is open, they are not read twice.

    Raises:
        SceneError: It refers to files outside its folder tree or to addresses, or would compose to too many prims.
    """
    reach = Reach.of(path)
    root = _open(path)
    if root is None:
        return []  # USD says what is wrong with it
    walk = _Walk(reach)
    walk.visit(root)
    prims, objects = walk.count(root)
    check_count(reach.scene, objects, "bodies, colliders and joints")
    check_count(reach.scene, -(-prims // _PRIMS_PER_OBJECT), f"times {_PRIMS_PER_OBJECT} prims")
    return [root, *(layer for layer in walk.layers.values() if layer is not None)]


def _open(identifier: str) -> Sdf.Layer | None:
    try:
        return Sdf.Layer.FindOrOpen(identifier)
    except Tf.ErrorException:
        return None


class _Walk:
    """All layers that a root leads to."""

    def __init__(self, reach: Reach) -> None:
        self.reach = reach
        self.layers: dict[tuple[str, str], Sdf.Layer | None] = {}
        self._stacks: dict[str, list[Sdf.Layer]] = {}

    def visit(self, root: Sdf.Layer) -> None:
        """Opens what may be opened, layer by layer."""
        waiting, seen = [root], {root.identifier}
        while waiting:
            layer = waiting.pop()
            for reference in sorted({*layer.GetCompositionAssetDependencies(), *_clips(layer)}):
                found = self._follow(layer, reference)
                if found is not None and found.identifier not in seen:
                    seen.add(found.identifier)
                    waiting.append(found)

    def _follow(self, layer: Sdf.Layer, reference: str) -> Sdf.Layer | None:
        """The layer that a reference leads to, if there is one."""
        key = (layer.identifier, reference)
        if key not in self.layers:
            self.layers[key] = None
            if reference.startswith("`"):
                raise SceneError(
                    f"{self.reach.scene} refers to {reference}, an expression, whose value is not known before it is "
                    "opened; name the file"
                )
            self.reach.refuse_address(reference)
            identifier = layer.ComputeAbsolutePath(reference)
            plain = Ar.SplitPackageRelativePathOuter(Sdf.Layer.SplitIdentifier(identifier)[0])[0]
            if not layer.anonymous or Path(plain).is_absolute():
                self.reach.check(reference, Path(plain))
            self.layers[key] = _open(identifier)
        return self.layers[key]

    def count(self, root: Sdf.Layer) -> tuple[int, int]:
        """Prims, and those of them with physics, that the stage would have; every variant counts."""
        start: Node = (root.identifier, Sdf.Path.absoluteRootPath)
        self._stacks[root.identifier] = self._stack(root)
        totals: dict[Node, tuple[int, int]] = {start: (0, 0)}
        trail: list[tuple[Node, list[Node], list[Node]]] = [(start, *self._needs(start))]
        while trail:
            node, needed, waiting = trail[-1]
            if waiting:
                following = waiting.pop()
                if following not in totals:
                    totals[following] = (0, 0)  # also where it leads back to itself, a circle that USD breaks
                    trail.append((following, *self._needs(following)))
                continue
            prims = 1 + sum(totals[other][0] for other in needed)
            totals[node] = prims, self._has_physics(node) + sum(totals[other][1] for other in needed)
            trail.pop()
        return totals[start]

    def _stack(self, layer: Sdf.Layer) -> list[Sdf.Layer]:
        """A layer and all below it."""
        found, waiting = [layer], [layer]
        while waiting:
            above = waiting.pop()
            for path in above.subLayerPaths:
                below = self._follow(above, str(path))
                if below is not None and below not in found:
                    found.append(below)
                    waiting.append(below)
        return found

    def _specs(self, node: Node) -> list[tuple[Sdf.Layer, Sdf.PrimSpec]]:
        found = [(layer, layer.GetPrimAtPath(node[1])) for layer in self._stacks[node[0]]]
        return [(layer, spec) for layer, spec in found if spec is not None]

    def _needs(self, node: Node) -> tuple[list[Node], list[Node]]:
        """What a prim is made of, each as often as it is there; twice, for one of the lists is used up."""
        found: dict[Node, None] = {}
        for layer, spec in self._specs(node):
            found |= {(node[0], child.path): None for child in spec.nameChildren}
            for variants in spec.variantSets.values():
                found |= {(node[0], variant.primSpec.path): None for variant in variants.variants.values()}
            for paths in (spec.inheritPathList, spec.specializesList):
                found |= {(node[0], path): None for path in paths.GetAddedOrExplicitItems()}
            for arcs in (spec.referenceList, spec.payloadList):
                for arc in arcs.GetAddedOrExplicitItems():
                    found |= dict.fromkeys(self._targets(node[0], layer, arc))
        return list(found), list(found)

    def _targets(self, stack: str, layer: Sdf.Layer, arc: Any) -> list[Node]:
        """The prim that a reference or payload leads to."""
        target = self._follow(layer, arc.assetPath) if arc.assetPath else self._stacks[stack][0]
        if target is None:
            return []
        if target.identifier not in self._stacks:
            self._stacks[target.identifier] = self._stack(target)
        if arc.primPath:
            return [(target.identifier, arc.primPath)]
        return [(target.identifier, Sdf.Path(f"/{target.defaultPrim}"))] if target.defaultPrim else []

    def _has_physics(self, node: Node) -> int:
        for _layer, spec in self._specs(node):
            schemas = spec.GetInfo("apiSchemas") if spec.HasInfo("apiSchemas") else None
            applied = schemas.GetAddedOrExplicitItems() if schemas is not None else ()
            if _PHYSICS & set(applied) or (spec.typeName.startswith("Physics") and spec.typeName.endswith("Joint")):
                return 1
        return 0


def _clips(layer: Sdf.Layer) -> Iterator[str]:
    """Files of value clips, which USD opens when a value is asked for."""
    found: list[str] = []

    def look(path: Sdf.Path) -> None:
        spec = layer.GetPrimAtPath(path) if path.IsPrimPath() or path.IsPrimVariantSelectionPath() else None
        clips: Any = spec.GetInfo("clips") if spec is not None and spec.HasInfo("clips") else None
        for named in (clips or {}).values():
            for key in _CLIP_KEYS:
                value = named.get(key) if hasattr(named, "get") else None
                if value is not None:
                    several = value if hasattr(value, "__iter__") and not isinstance(value, str) else [value]
                    found.extend(str(getattr(item, "path", item)) for item in several)

    layer.Traverse(Sdf.Path.absoluteRootPath, look)
    return iter(path for path in found if path)
