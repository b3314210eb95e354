"""Pictures on surfaces: the base color texture of a UsdPreviewSurface, and where it lies on a mesh."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pxr import Ar, Sdf, Usd, UsdGeom, UsdShade

_INPUT = "diffuseColor"
_DEFAULT_PRIMVAR = "st"
KINDS = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".webp": "image/webp"}
"""Suffixes of pictures that browsers show."""


@dataclass(frozen=True)
class Texture:
    """A picture file."""

    path: str
    """As USD resolved it."""
    kind: str
    """MIME type."""
    data: bytes
    primvar: str
    """Name of the texture coordinates."""


def base_texture(shader: UsdShade.Shader) -> Texture | None:
    """The texture of a surface's base color; None: it has none, or one that cannot be read or shown."""
    source = shader.GetInput(_INPUT)
    found = source.GetConnectedSources()[0] if source else []
    if not found:
        return None
    image = UsdShade.Shader(found[0].source.GetPrim())
    file = image.GetInput("file").Get() if image and image.GetInput("file") else None
    if not isinstance(file, Sdf.AssetPath) or not file.resolvedPath:
        return None
    kind = KINDS.get("." + Ar.GetResolver().GetExtension(file.resolvedPath).lower())
    asset = Ar.GetResolver().OpenAsset(Ar.ResolvedPath(file.resolvedPath)) if kind else None
    if kind is None or asset is None:
        return None
    return Texture(file.resolvedPath, kind, bytes(asset.GetBuffer()), _primvar(image))


def _primvar(image: UsdShade.Shader) -> str:
    """What the texture's `st` reads."""
    source = image.GetInput("st")
    found = source.GetConnectedSources()[0] if source else []
    reader = UsdShade.Shader(found[0].source.GetPrim()) if found else None
    name = reader.GetInput("varname") if reader else None
    return str((name.Get() if name else None) or _DEFAULT_PRIMVAR)


def texture_coordinates(prim: Usd.Prim, name: str, indices: np.ndarray, time: Usd.TimeCode) -> np.ndarray | None:
    """(len(indices), 2): coordinates of each corner of a mesh's polygons; None: it has none that fit.

    Args:
        prim: The mesh.
        name: Of the primvar.
        indices: Its faceVertexIndices.
        time: When.
    """
    primvar = UsdGeom.PrimvarsAPI(prim).FindPrimvarWithInheritance(name)
    values = primvar.ComputeFlattened(time) if primvar and primvar.HasValue() else None
    if values is None:
        return None
    uvs = np.array(values, dtype=float)
    if uvs.ndim != 2 or uvs.shape[1] != 2:
        return None
    if primvar.GetInterpolation() == UsdGeom.Tokens.faceVarying:
        return uvs if len(uvs) == len(indices) else None
    if primvar.GetInterpolation() in (UsdGeom.Tokens.vertex, UsdGeom.Tokens.varying):
        return uvs[indices] if len(uvs) > indices.max() else None
    return None
