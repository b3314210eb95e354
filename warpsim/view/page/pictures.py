"""Textures as text that a page holds, not larger than a page needs them."""

from __future__ import annotations

import base64
import io

from PIL import Image

from warpsim.view.items.textures import Texture

MAXIMUM_EDGE = 1024
"""Pixels: larger pictures are scaled down."""


def picture_url(texture: Texture) -> str:
    """The picture as a data: address."""
    data, kind = texture.data, texture.kind
    with Image.open(io.BytesIO(data)) as picture:
        if max(picture.size) > MAXIMUM_EDGE:
            small = picture.convert("RGBA" if "A" in picture.getbands() else "RGB")
            small.thumbnail((MAXIMUM_EDGE, MAXIMUM_EDGE))
            out = io.BytesIO()
            small.save(out, "PNG")
            data, kind = out.getvalue(), "image/png"
    return f"data:{kind};base64,{base64.b64encode(data).decode('ascii')}"
