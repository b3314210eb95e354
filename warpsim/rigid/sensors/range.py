"""Range finders: rays from sites along their z axes to the first shape that is not on the site's own body.

As in MuJoCo, where they would be called `rangefinder`; shapes that can neither be touched nor seen are passed through.
"""

from __future__ import annotations

from dataclasses import dataclass

import warp as wp

from warpsim.collision.contacts import ShapePoses
from warpsim.collision.ray_cast import RayHits
from warpsim.core.precision import quat, real, vec3
from warpsim.core.spatial import quat_mul, quat_rotate
from warpsim.rigid.dynamics.shape_poses import place_shapes
from warpsim.rigid.model.model import Model
from warpsim.rigid.model.parameters import SiteParameters
from warpsim.rigid.model.topology import Topology
from warpsim.rigid.sensors.layout import SensorTopology
from warpsim.rigid.work.state import Work
from warpsim.tape.arena import Arena


@dataclass
class RangeWork:
    """Intermediates of one step's rays."""

    origin: wp.array  # (W, rays) vec3, m, world
    direction: wp.array  # (W, rays) vec3
    shape_position: wp.array  # (W, nshape) vec3, m, world
    shape_rotation: wp.array  # (W, nshape) quat
    hits: RayHits


def make_range_work(m: Model, rays: int, arena: Arena) -> RangeWork:
    """Allocates them."""
    w, shapes = m.worlds, len(m.layout.shape_names)
    hits = RayHits(
        distance=arena.array((w, rays), real),
        point=arena.array((w, rays), vec3),
        normal=arena.array((w, rays), vec3),
        shape=arena.array((w, rays), wp.int32, differentiable=False),
        piece=arena.array((w, rays), wp.int32, differentiable=False),
        found=arena.array((w, rays), real, differentiable=False),
    )
    return RangeWork(
        origin=arena.array((w, rays), vec3),
        direction=arena.array((w, rays), vec3),
        shape_position=arena.array((w, shapes), vec3),
        shape_rotation=arena.array((w, shapes), quat),
        hits=hits,
    )


@wp.kernel
def _ray_kernel(
    # topology, parameters
    c: SensorTopology,
    t: Topology,
    site: SiteParameters,
    # work in
    link_position: wp.array2d(dtype=vec3),
    link_rotation: wp.array2d(dtype=quat),
    # work out
    origin: wp.array2d(dtype=vec3),
    direction: wp.array2d(dtype=vec3),
):
    w = wp.tid()
    # One thread per world: sites of one body add to the adjoint of one link, in a fixed order.
    for n in range(c.ray.shape[0]):
        i = c.target[c.ray[n]]
        link = t.body_link[c.site_body[i]]
        r = link_rotation[w, link]
        origin[w, n] = link_position[w, link] + quat_rotate(r, site.position[w, i])
        z = vec3(real(0.0), real(0.0), real(1.0))
        direction[w, n] = quat_rotate(quat_mul(r, site.rotation[w, i]), z)


@wp.kernel
def _store_kernel(c: SensorTopology, distance: wp.array2d(dtype=real), out: wp.array2d(dtype=real)):
    w, n = wp.tid()
    out[w, c.start[c.ray[n]]] = distance[w, n]


def measure_ranges(m: Model, c: SensorTopology, work: Work, r: RangeWork, out: wp.array) -> None:
    """Casts the rays and writes their lengths, m, to the measurement vector (W, size); −1 where nothing is met."""
    assert m.range_rays is not None
    place_shapes(m, work, r.shape_position, r.shape_rotation)
    wp.launch(
        _ray_kernel,
        dim=m.worlds,
        inputs=[c, m.topology, m.site, work.link_position, work.link_rotation],
        outputs=[r.origin, r.direction],
        device=m.device,
    )
    m.range_rays(r.origin, r.direction, ShapePoses(r.shape_position, r.shape_rotation, m.shape.size), r.hits)
    wp.launch(_store_kernel, dim=r.origin.shape, inputs=[c, r.hits.distance], outputs=[out], device=m.device)
