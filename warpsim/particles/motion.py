"""What happens to particles: what they carry to the grid, and how they move with what they get back.

Volume: J̄ and ∇J come filtered from the grid (which keeps linear fields and takes out what its forces cannot see),
J̄ exp(Δt tr C) is drawn toward the absolute density's ρ₀/ρ within a relaxation time, and never exceeds 1: a drop that
is torn off would expand for ever. Near walls the density counts what the kernel B₂ ∗ B₂ = B₅ misses:
ρ = Σ w mᵢ/Δx³ / max(0.08, Π(1 − T₅(φ_k/Δx))).

Forecast contact: a particle may approach a wall by no more than its distance in one step, u·n ≥ −φ/Δt, and one inside
leaves by a share of its depth per step. Walls act in turn; bodies get the opposite impulses.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.indexing import natural
from warpsim.core.precision import mat33, real, vec3, vec6
from warpsim.core.spatial import spatial
from warpsim.particles.cells import CROWDED, LOST, NODES, Cells
from warpsim.particles.domain import Domain
from warpsim.particles.nearby import PARTICLE_WALLS
from warpsim.particles.pairs import NearWalls, Pairs
from warpsim.particles.parameters import ParticleParameters, ParticleState
from warpsim.particles.splines import quintic_tail
from warpsim.particles.transfer_native import carried
from warpsim.particles.walls import WallMotion, WallSet, wall_velocity

_RECOVERY = wp.constant(real(0.2))
"""Share of its depth by which a particle inside a wall leaves it in one step."""

_DENSEST = wp.constant(real(0.9))
"""Least J that the density estimate may ask for: liquid on both sides of a thin wall is counted twice."""

_NAN = wp.constant(real(float("nan")))


@wp.kernel
def _carry_kernel(
    # topology
    spacing: real,
    substeps: int,
    # parameters
    timestep: wp.array(dtype=real),
    volume: wp.array(dtype=real),
    density: wp.array(dtype=real),
    # state
    v: wp.array2d(dtype=vec3),
    rate: wp.array2d(dtype=mat33),
    volume_ratio: wp.array2d(dtype=real),
    slope: wp.array2d(dtype=vec3),
    # work read
    stress: wp.array2d(dtype=mat33),
    # work written
    particle: wp.array2d(dtype=carried),
):
    w, p = wp.tid()
    w = natural(w)
    p = natural(p)
    step = timestep[w] / real(substeps)
    mass = density[w] * volume[w]
    a = mass * rate[w, p] - (real(4.0) * step * volume[w] / (spacing * spacing)) * stress[w, p]
    mv = mass * v[w, p]
    mg = mass * slope[w, p]
    particle[w, p] = carried(
        mv[0], mv[1], mv[2],
        a[0, 0], a[0, 1], a[0, 2], a[1, 0], a[1, 1], a[1, 2], a[2, 0], a[2, 1], a[2, 2],
        mass * volume_ratio[w, p],
        mg[0], mg[1], mg[2],
        mass,
    )  # fmt: skip


@wp.func
def _kept_within(place: real, low: real, high: real) -> real:
    if place < low:
        return low
    if place > high:
        return high
    return place


@wp.struct
class _MoveRule:
    """How particles move; no gradient."""

    lowest: vec3  # m: where they may be
    highest: vec3
    spacing: real  # m, of the grid
    substeps: int  # particle steps in a time step
    relaxation_time: real  # s
    capacity: int  # nodes that there is room for


@wp.kernel
def _move_kernel(
    # topology
    rule: _MoveRule,
    body: wp.array(dtype=wp.int32),
    # parameters
    timestep: wp.array(dtype=real),
    volume: wp.array(dtype=real),
    density: wp.array(dtype=real),
    # state
    position: wp.array2d(dtype=vec3),
    twist: wp.array2d(dtype=vec6),
    x: wp.array2d(dtype=vec3),
    # work read
    count: wp.array2d(dtype=wp.int32),
    walls: NearWalls,
    particle: wp.array2d(dtype=carried),
    # written
    x_next: wp.array2d(dtype=vec3),
    v_next: wp.array2d(dtype=vec3),
    rate_next: wp.array2d(dtype=mat33),
    ratio_next: wp.array2d(dtype=real),
    slope_next: wp.array2d(dtype=vec3),
    wrench: wp.array2d(dtype=vec6),
):
    w, p = wp.tid()
    w = natural(w)
    p = natural(p)
    spacing = rule.spacing
    step = timestep[w] / real(rule.substeps)
    got = particle[w, p]
    at = x[w, p]
    velocity = vec3(got[0], got[1], got[2])
    free = real(1.0)
    start = walls.first[w, p]
    near = walls.first[w, p + 1] - start
    for k in range(wp.static(int(PARTICLE_WALLS))):
        if k < near:
            s = walls.wall[w, start + k]
            seen = walls.plane[w, start + k]
            distance = seen[0]
            normal = vec3(seen[1], seen[2], seen[3])
            free = free * (real(1.0) - quintic_tail(distance / spacing))
            u = wp.dot(velocity - wall_velocity(twist[w, s], position[w, s], at), normal)
            least = -distance / step
            if distance < real(0.0):
                least = _RECOVERY * least
            if u < least:
                change = (least - u) * normal
                velocity = velocity + change
                impulse = density[w] * volume[w] * change
                wp.atomic_add(wrench, w, body[s], -spatial(wp.cross(at, impulse), impulse) / timestep[w])
    cell = spacing * spacing * spacing
    found = got[16] / (cell * wp.max(real(0.08), free))
    absolute = wp.max(wp.min(density[w] / found, real(1.0)), _DENSEST)
    followed = got[12] * wp.exp(step * (got[3] + got[7] + got[11]))
    kept = wp.exp(-step / rule.relaxation_time)
    ratio = wp.min(kept * followed + (real(1.0) - kept) * absolute, real(1.0))
    moved = at + step * velocity
    moved = vec3(
        _kept_within(moved[0], rule.lowest[0], rule.highest[0]),
        _kept_within(moved[1], rule.lowest[1], rule.highest[1]),
        _kept_within(moved[2], rule.lowest[2], rule.highest[2]),
    )
    if count[w, LOST] > 0 or count[w, CROWDED] > 0 or count[w, NODES] > rule.capacity:
        moved = vec3(_NAN, _NAN, _NAN)
    x_next[w, p] = moved
    v_next[w, p] = velocity
    rate_next[w, p] = mat33(got[3], got[4], got[5], got[6], got[7], got[8], got[9], got[10], got[11])
    ratio_next[w, p] = ratio
    slope_next[w, p] = vec3(got[13], got[14], got[15])


def carry(
    domain: Domain,
    parameters: ParticleParameters,
    timestep: wp.array,
    substeps: int,
    state: ParticleState,
    stress: wp.array,
    particle: wp.array,
) -> None:
    """What particles carry to the grid, (W, n) `carried`, from their state and Kirchhoff stress (Pa)."""
    p = parameters
    wp.launch(
        _carry_kernel,
        dim=particle.shape,
        inputs=[real(domain.spacing), substeps, timestep, p.volume, p.density, *state.arrays[1:], stress],
        outputs=[particle],
        device=particle.device,
    )


def _bounds(domain: Domain, closed: bool) -> tuple[vec3, vec3]:
    """Where particles may be: in the domain, or anywhere."""
    if not closed:
        return vec3(-1e30, -1e30, -1e30), vec3(1e30, 1e30, 1e30)
    low, high = domain.reach
    inset = 1e-3 * domain.spacing
    return vec3(*(low + inset)), vec3(*(high - inset))


def move_particles(
    domain: Domain,
    walls: WallSet,
    parameters: ParticleParameters,
    timestep: wp.array,
    substeps: int,
    relaxation_time: float,
    capacity: int,
    closed: bool,
    motion: WallMotion,
    x: wp.array,
    cells: Cells,
    pairs: Pairs,
    particle: wp.array,
    next_state: ParticleState,
    wrench: wp.array,
) -> None:
    """The next state of particles.

    Args:
        domain: The grid.
        walls: Shapes.
        parameters: Of the liquid.
        timestep: (W,) s; the wrench is the mean over it.
        substeps: Particle steps in it.
        relaxation_time: Within which J is drawn to the absolute density's, s.
        capacity: Nodes that there is room for; where more are in use, positions become NaN.
        closed: Whether the domain's faces stop particles.
        motion: Of the walls.
        x: (W, n) m.
        cells: In use.
        pairs: Walls near the particles.
        particle: What they got from the grid.
        next_state: Written.
        wrench: (W, bodies) N·m, N; added to.
    """
    rule = _MoveRule()
    rule.lowest, rule.highest = _bounds(domain, closed)
    rule.spacing, rule.substeps = domain.spacing, substeps
    rule.relaxation_time, rule.capacity = relaxation_time, capacity
    wp.launch(
        _move_kernel,
        dim=x.shape,
        inputs=[rule, walls.body, timestep, parameters.volume, parameters.density]
        + [motion.position, motion.twist, x, cells.count, pairs.walls(), particle],
        outputs=[*next_state.arrays, wrench],
        device=x.device,
    )
