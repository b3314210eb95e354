"""Height fields of a MuJoCo model, as closed meshes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from warpsim.io.mjcf.source import MjSource
from warpsim.scene.description import Mesh
from warpsim.scene.heightfield import BASE_SHARE, heightfield_mesh

_RESOLUTIONS = (64, 128)
"""Least and most cells of the distance grid along the longest edge."""


def heightfield_name(source: MjSource, index: int) -> str:
    """Name of its mesh; MuJoCo lets a mesh and a height field share theirs."""
    name, taken = source.names["hfield"][index], set(source.names["mesh"])
    while name in taken:
        name += "_heights"
    return name


def heightfield_resolution(source: MjSource, index: int) -> int:
    """Cells of the distance grid along the longest edge: as fine as the heights, within bounds of memory."""
    model = source.model
    longest = float(model.hfield_size[index, :2].max())
    least, most = _RESOLUTIONS
    squares = np.maximum([model.hfield_ncol[index] - 1, model.hfield_nrow[index] - 1], 1)
    wanted = int(np.ceil(longest * (squares / model.hfield_size[index, :2]).max()))
    if wanted > most:
        source.used(
            source.path("hfield", index),
            "elevation",
            f"{wanted} heights along an edge, a distance grid of {most} cells; raise sdf_resolution for more",
        )
    return min(max(wanted, least), most)


def read_heightfield(source: MjSource, index: int) -> Mesh:
    """The solid between the heights and the base, which is deepened where the distance grid could not resolve it."""
    model = source.model
    half_x, half_y, top, base = (float(number) for number in model.hfield_size[index])
    rows, columns = int(model.hfield_nrow[index]), int(model.hfield_ncol[index])
    data = model.hfield_data[model.hfield_adr[index] :][: rows * columns]
    heights = top * data.astype(np.float64).reshape(rows, columns)
    depth = max(base, BASE_SHARE * 2.0 * max(half_x, half_y))
    if depth > base:
        source.used(
            source.path("hfield", index), "size", f"the base is {depth:g} m deep, not {base:g}, for the distance grid"
        )
    mesh = heightfield_mesh(heightfield_name(source, index), heights, (half_x, half_y), depth)
    return replace(mesh, prisms=(rows, columns, base))
