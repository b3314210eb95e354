"""`Document`: the parts of a glTF file as they are put together (glTF 2.0, Khronos Group)."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
from PIL import Image

from warpsim.core.files import MARK
from warpsim.view.items.item import Look
from warpsim.view.items.textures import Texture

FLOAT, UNSIGNED_INT = 5126, 5125
VERTICES, INDICES = 34962, 34963
LINES, TRIANGLES = 1, 4
_TYPES = {1: "SCALAR", 2: "VEC2", 3: "VEC3", 4: "VEC4"}
_JSON, _BIN = b"JSON", b"BIN\x00"


class Document:
    """Collects numbers and what refers to them; the same calls give the same bytes."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._materials: dict[tuple[Any, ...], int] = {}
        self._textures: dict[str, int] = {}
        self.content: dict[str, Any] = {
            "asset": {"version": "2.0", "generator": MARK.decode()},
            "scene": 0,
            "scenes": [],
            "nodes": [],
        }

    def add(self, kind: str, value: dict[str, Any]) -> int:
        """Appends to one of the file's lists; returns the index."""
        rows = self.content.setdefault(kind, [])
        rows.append(value)
        return len(rows) - 1

    def view(self, data: bytes, target: int | None = None) -> int:
        """Bytes of the buffer."""
        padded = data + b"\x00" * (-len(data) % 4)
        self._parts.append(padded)
        where = {"buffer": 0, "byteOffset": self._size, "byteLength": len(data)}
        self._size += len(padded)
        return self.add("bufferViews", where if target is None else {**where, "target": target})

    def floats(self, values: np.ndarray, *, target: int | None = None, bounds: bool = False) -> int:
        """An accessor of float32, (n,) or (n, 2 to 4)."""
        rows = np.asarray(values, dtype="<f4")
        flat = rows.reshape(len(rows), -1)
        made = {
            "bufferView": self.view(flat.tobytes(), target),
            "componentType": FLOAT,
            "count": len(flat),
            "type": _TYPES[flat.shape[1]],
        }
        if bounds:
            made |= {"min": flat.min(axis=0).tolist(), "max": flat.max(axis=0).tolist()}
        return self.add("accessors", made)

    def indices(self, values: np.ndarray) -> int:
        """An accessor of vertex numbers."""
        flat = np.asarray(values, dtype="<u4").reshape(-1)
        where = self.view(flat.tobytes(), INDICES)
        return self.add(
            "accessors", {"bufferView": where, "componentType": UNSIGNED_INT, "count": len(flat), "type": "SCALAR"}
        )

    def material(self, color: np.ndarray, look: Look, *, textured: bool) -> int:
        """A material; base colors are linear in glTF as here."""
        texture = look.texture if textured else None
        key = (*np.asarray(color).tolist(), look.roughness, look.metallic, look.opacity, texture and texture.path)
        if key not in self._materials:
            rgb = [1.0, 1.0, 1.0] if texture is not None else [float(np.clip(x, 0.0, 1.0)) for x in color]
            surface: dict[str, Any] = {
                "baseColorFactor": [*rgb, look.opacity],
                "metallicFactor": look.metallic,
                "roughnessFactor": look.roughness,
            }
            if texture is not None:
                surface["baseColorTexture"] = {"index": self._texture(texture)}
            made: dict[str, Any] = {"pbrMetallicRoughness": surface, "doubleSided": True}
            if look.opacity < 1.0:
                made["alphaMode"] = "BLEND"
            self._materials[key] = self.add("materials", made)
        return self._materials[key]

    def _texture(self, texture: Texture) -> int:
        if texture.path not in self._textures:
            data, kind = texture.data, texture.kind
            if kind not in ("image/png", "image/jpeg"):  # the only two that glTF knows
                out = io.BytesIO()
                with Image.open(io.BytesIO(data)) as picture:
                    picture.convert("RGBA").save(out, "PNG")
                data, kind = out.getvalue(), "image/png"
            image = self.add("images", {"bufferView": self.view(data), "mimeType": kind})
            self._textures[texture.path] = self.add("textures", {"source": image})
        return self._textures[texture.path]

    def to_bytes(self) -> bytes:
        """The .glb file: header, JSON chunk padded by spaces, binary chunk padded by zeros."""
        data = b"".join(self._parts)
        content = {**self.content, "buffers": [{"byteLength": len(data)}]} if data else self.content
        text = json.dumps(content, separators=(",", ":"), allow_nan=False).encode()
        text += b" " * (-len(text) % 4)
        chunks = _chunk(_JSON, text) + (_chunk(_BIN, data) if data else b"")
        return b"glTF" + (2).to_bytes(4, "little") + (12 + len(chunks)).to_bytes(4, "little") + chunks


def _chunk(kind: bytes, data: bytes) -> bytes:
    return len(data).to_bytes(4, "little") + kind + data
