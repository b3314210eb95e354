"""Refusing what cannot be simulated, before anything runs: native code has no bounds checks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import warp as wp

from warpsim.collision.kinds import KIND_CODE
from warpsim.core.errors import InputError
from warpsim.core.precision import numpy_real, quat, real, vec3
from warpsim.core.spatial import quat_matrix, quat_unit
from warpsim.particles.domain import Domain
from warpsim.particles.liquid import Liquid
from warpsim.particles.walls import WallSet, wall_distance

LEAST_PER_CELL = 4
"""Particles; with fewer a liquid has holes that the grid sees."""


@wp.kernel(enable_backward=False)
def _depth_kernel(
    shapes: int,
    kind: wp.array(dtype=wp.int32),
    size: wp.array2d(dtype=vec3),
    position: wp.array2d(dtype=vec3),
    rotation: wp.array2d(dtype=quat),
    x: wp.array2d(dtype=vec3),
    distance: wp.array2d(dtype=real),
    nearest: wp.array2d(dtype=wp.int32),
):
    w, p = wp.tid()
    least = real(1e30)
    wall = int(-1)
    for s in range(shapes):
        frame = quat_matrix(quat_unit(rotation[w, s]))
        d, _n = wall_distance(kind[s], size[w, s], position[w, s], frame, x[w, p])
        if d < least:
            least = d
            wall = s
    distance[w, p] = least
    nearest[w, p] = wall


def wall_distances(
    walls: WallSet, position: np.ndarray, rotation: np.ndarray, x: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(W, n) signed distance (m) of points x, (W, n, 3), from the nearest wall, and that wall's number (−1: none)."""
    device = walls.size.device
    shape = x.shape[:2]
    distance = wp.empty(shape, dtype=real, device=device)
    nearest = wp.empty(shape, dtype=wp.int32, device=device)
    if not walls.shapes:
        return np.full(shape, np.inf), np.full(shape, -1)
    poses = [
        wp.array(np.ascontiguousarray(value, dtype=numpy_real), dtype=dtype, device=device)
        for value, dtype in ((position, vec3), (rotation, quat), (x, vec3))
    ]
    wp.launch(
        _depth_kernel,
        dim=shape,
        inputs=[walls.shapes, walls.kind, walls.size, *poses],
        outputs=[distance, nearest],
        device=device,
        record_tape=False,
    )
    return distance.numpy(), nearest.numpy()


def check_step_length(liquid: Liquid, spacing: float, step: float, speed: float = 0.0) -> None:
    """Raises where sound, or the liquid itself, would cross more than three quarters of a cell in one step."""
    if not (np.isfinite(step) and step > 0.0):
        raise InputError(f"a particle step takes a positive time in s, not {step}")
    largest = liquid.largest_step(spacing, speed)
    if step > largest:
        sound = np.sqrt(liquid.bulk_modulus / liquid.density)
        raise InputError(
            f"a step of {step:g} s is too long: sound travels at {sound:.3g} m/s and the liquid at {speed:.3g} m/s on "
            f"cells of {spacing:g} m; use at most {largest:.3g} s (more substeps), larger cells, a smaller bulk "
            "modulus or viscosity"
        )


def check_volume(domain: Domain, volume: float) -> None:
    """Raises where so few particles would be in a cell that the liquid has holes."""
    if not (np.isfinite(volume) and volume > 0.0):
        raise InputError(f"a particle's volume is positive, in m³, not {volume}")
    per_cell = domain.spacing**3 / volume
    if per_cell < LEAST_PER_CELL:
        raise InputError(
            f"{per_cell:.2g} particles of {volume:g} m³ fill a cell of {domain.spacing:g} m; use at least "
            f"{LEAST_PER_CELL} (8 are usual): smaller particles or larger cells"
        )


def check_particles(domain: Domain, x: np.ndarray, v: np.ndarray) -> None:
    """Raises for particles that are outside the domain or not finite; x and v are (W, n, 3)."""
    if x.ndim != 3 or x.shape[2] != 3 or x.shape[1] == 0 or v.shape != x.shape:
        raise InputError(f"particles need positions and velocities (worlds, n, 3), not {x.shape} and {v.shape}")
    if not np.isfinite(v).all():
        raise InputError("a particle's velocity is not finite")
    outside = ~domain.inside(x)
    if outside.any():
        world, particle = np.argwhere(outside)[0]
        low, high = domain.reach
        raise InputError(
            f"{outside.sum()} particles are outside the domain, e.g. number {particle} of world {world} at "
            f"{x[world, particle]} m; it reaches from {low} to {high} m"
        )


def check_clear_of_walls(
    walls: WallSet,
    position: np.ndarray,
    rotation: np.ndarray,
    x: np.ndarray,
    *,
    allowed: float = 0.0,
    names: Sequence[str] = (),
) -> None:
    """Raises for particles inside a wall.

    Args:
        walls: The walls.
        position: (W, shapes, 3) m.
        rotation: (W, shapes, 4), w first.
        x: (W, n, 3) m.
        allowed: m that they may be inside.
        names: Of the walls; none: they have numbers.
    """
    distance, nearest = wall_distances(walls, position, rotation, x)
    inside = distance < -allowed
    if not inside.any():
        return
    world, particle = np.argwhere(inside)[0]
    wall = int(nearest[world, particle])
    kind = next(name for name, code in KIND_CODE.items() if code == int(walls.kind.numpy()[wall]))
    name = names[wall] if names else f"wall {wall}"
    raise InputError(
        f"{inside.sum()} particles are inside walls, e.g. number {particle} of world {world} lies "
        f"{-distance[world, particle]:.2g} m deep in {name}, a {kind}; move them, or leave them out of the fill"
    )
