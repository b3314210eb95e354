"""What happens at the nodes: velocity and gravity, the pressure of walls, and contact with them.

A wall is seen from where a node's liquid is: distance φ and normal n are those at the mass centroid, continued to the
node as a plane. So the side is right in walls thinner than a cell, and the node needs no wall of a certain thickness.

Traction: near a wall the particles' stress lacks the wall's own part ∮ p n w dA. With s = φ/Δx, the quadratic B-spline
B₂ and its upper tail T₂, ψ = T₂(s) is the share of the node's kernel in the wall, and

    Δ(m v) = Δt p_w Δx² B₂(s_k) Π_{j≠k}(1 − ψ_j) n_k,   p_w = p(J − φ n·∇J) · min(1, V/(Δx³ max(0.3, Π(1 − ψ)))).

Contact: the velocity u relative to the wall loses its part into the wall, β min(0, u·n) n, and the share `stick` β of
the rest; β rises from 0 at φ = `wall_reach` Δx, by default one cell, to 1 at the surface. Over half a cell, a node in
the middle of a cell at the wall would not be held and would move particles into the wall, which cannot follow: that
looks like an expansion of the liquid above, and the level sinks. Walls act in turn. Bodies get the opposite impulses.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.indexing import natural
from warpsim.core.precision import real, vec3, vec5, vec6
from warpsim.core.spatial import clamp_range, spatial
from warpsim.particles.cells import NODES, Cells
from warpsim.particles.domain import Domain
from warpsim.particles.liquid import liquid_pressure
from warpsim.particles.nearby import LEAST_MASS, NODE_WALLS, node_point
from warpsim.particles.pairs import NearWalls, Pairs
from warpsim.particles.parameters import ParticleParameters
from warpsim.particles.splines import quadratic, quadratic_tail
from warpsim.particles.transfer_native import received
from warpsim.particles.walls import WallMotion, WallSet, wall_velocity

_OPEN = wp.constant(real(1e-6))
"""A node with a smaller share of its kernel outside a wall gets no traction from it."""


@wp.kernel
def _free_nodes_kernel(
    # topology
    substeps: int,
    # parameters
    timestep: wp.array(dtype=real),
    gravity: wp.array(dtype=vec3),
    # work read
    count: wp.array2d(dtype=wp.int32),
    first: wp.array2d(dtype=wp.int32),
    node_sum: wp.array2d(dtype=received),
    # work written
    node_value: wp.array2d(dtype=vec5),
):
    w = natural(wp.tid())
    # One thread per world, here and below: there is room for many more nodes than there are.
    for i in range(wp.min(count[w, NODES], node_sum.shape[1])):
        if first[w, i + 1] == first[w, i]:
            node = node_sum[w, i]
            mass = node[7]
            if mass > LEAST_MASS:
                velocity = vec3(node[0], node[1], node[2]) / mass + timestep[w] / real(substeps) * gravity[w]
                node_value[w, i] = vec5(velocity[0], velocity[1], velocity[2], node[3] / mass, mass)
            else:
                node_value[w, i] = vec5(real(0.0), real(0.0), real(0.0), real(1.0), mass)


@wp.kernel
def _walled_nodes_kernel(
    # topology
    lower: vec3,
    spacing: real,
    steepness: real,
    substeps: int,
    body: wp.array(dtype=wp.int32),
    # parameters
    timestep: wp.array(dtype=real),
    gravity: wp.array(dtype=vec3),
    density: wp.array(dtype=real),
    bulk_modulus: wp.array(dtype=real),
    stick: wp.array2d(dtype=real),
    # state
    position: wp.array2d(dtype=vec3),
    twist: wp.array2d(dtype=vec6),
    # work read
    count: wp.array2d(dtype=wp.int32),
    place: wp.array2d(dtype=wp.vec3i),
    walls: NearWalls,
    node_sum: wp.array2d(dtype=received),
    # work written
    node_value: wp.array2d(dtype=vec5),
    wrench: wp.array2d(dtype=vec6),
):
    w = natural(wp.tid())
    step = timestep[w] / real(substeps)
    for i in range(wp.min(count[w, NODES], node_sum.shape[1])):
        start = walls.first[w, i]
        near = walls.first[w, i + 1] - start
        if near > 0:
            node = node_sum[w, i]
            mass = node[7]
            at = node_point(lower, spacing, place[w, i])
            ratio = node[3] / mass
            slope = vec3(node[4], node[5], node[6]) / mass
            velocity = vec3(node[0], node[1], node[2]) / mass + step * gravity[w]
            free = real(1.0)
            for k in range(wp.static(int(NODE_WALLS))):
                if k < near:
                    free = free * (real(1.0) - quadratic_tail(walls.plane[w, start + k][0] / spacing))
            filled = wp.min(mass / (density[w] * spacing * spacing * spacing * wp.max(real(0.3), free)), real(1.0))
            for k in range(wp.static(int(NODE_WALLS))):
                if k < near:
                    seen = walls.plane[w, start + k]
                    normal = vec3(seen[1], seen[2], seen[3])
                    own = real(1.0) - quadratic_tail(seen[0] / spacing)
                    if own > _OPEN:
                        pressure = liquid_pressure(ratio - seen[0] * wp.dot(normal, slope), bulk_modulus[w])
                        area = spacing * spacing * quadratic(seen[0] / spacing) * free / own
                        impulse = step * pressure * filled * area * normal
                        velocity = velocity + impulse / mass
                        b = body[walls.wall[w, start + k]]
                        wp.atomic_add(wrench, w, b, -spatial(wp.cross(at, impulse), impulse) / timestep[w])
            for k in range(wp.static(int(NODE_WALLS))):
                if k < near:
                    s = walls.wall[w, start + k]
                    seen = walls.plane[w, start + k]
                    normal = vec3(seen[1], seen[2], seen[3])
                    hold = clamp_range(real(1.0) - steepness * seen[0] / spacing, real(0.0), real(1.0))
                    if hold > real(0.0):
                        u = velocity - wall_velocity(twist[w, s], position[w, s], at)
                        inward = wp.min(wp.dot(u, normal), real(0.0))
                        along = u - wp.dot(u, normal) * normal
                        change = -hold * (inward * normal + stick[w, s] * along)
                        velocity = velocity + change
                        held = mass * change
                        wp.atomic_add(wrench, w, body[s], -spatial(wp.cross(at, held), held) / timestep[w])
            node_value[w, i] = vec5(velocity[0], velocity[1], velocity[2], ratio, mass)


def node_velocities(
    domain: Domain,
    walls: WallSet,
    parameters: ParticleParameters,
    timestep: wp.array,
    substeps: int,
    wall_reach: float,
    motion: WallMotion,
    cells: Cells,
    pairs: Pairs,
    node_sum: wp.array,
    node_value: wp.array,
    wrench: wp.array,
) -> None:
    """What nodes give back, (W, nodes): velocity with gravity, traction and contact of walls (m/s), J, mass (kg).

    Args:
        domain: The grid.
        walls: Shapes.
        parameters: Of the liquid.
        timestep: (W,) s; the wrench is the mean over it.
        substeps: Particle steps in it.
        wall_reach: Cells from a wall within which it holds nodes.
        motion: Of the walls.
        cells: Nodes in use.
        pairs: Walls near them.
        node_sum: What they received.
        node_value: Written.
        wrench: (W, bodies) N·m, N; added to.
    """
    p, worlds = parameters, node_sum.shape[0]
    wp.launch(
        _free_nodes_kernel,
        dim=worlds,
        inputs=[substeps, timestep, p.gravity, cells.count, pairs.first, node_sum],
        outputs=[node_value],
        device=node_sum.device,
    )
    if walls.shapes:
        wp.launch(
            _walled_nodes_kernel,
            dim=worlds,
            inputs=[vec3(*domain.lower), real(domain.spacing), real(1.0 / wall_reach), substeps]
            + [walls.body, timestep, p.gravity, p.density, p.bulk_modulus, walls.stick, motion.position, motion.twist]
            + [cells.count, cells.place, pairs.walls(), node_sum],
            outputs=[node_value, wrench],
            device=node_sum.device,
        )
