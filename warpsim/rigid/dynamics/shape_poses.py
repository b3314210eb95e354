"""World poses of shapes, from the links that carry their bodies."""

from __future__ import annotations

import warp as wp

from warpsim.collision.contacts import ShapePoses
from warpsim.core.indexing import natural
from warpsim.core.precision import quat, vec3
from warpsim.core.spatial import quat_mul, quat_rotate
from warpsim.core.stages import stage
from warpsim.rigid.model.model import Model
from warpsim.rigid.model.parameters import ShapeParameters
from warpsim.rigid.work.state import Work


@wp.kernel
def _shape_poses_kernel(
    # topology, parameters
    shape_body: wp.array(dtype=wp.int32),
    body_link: wp.array(dtype=wp.int32),
    shape: ShapeParameters,
    # work in
    link_position: wp.array2d(dtype=vec3),
    link_rotation: wp.array2d(dtype=quat),
    # work out
    position: wp.array2d(dtype=vec3),
    rotation: wp.array2d(dtype=quat),
):
    w = natural(wp.tid())
    # One thread per world: shapes of one body add to the adjoint of one link, in a fixed order.
    for i in range(shape_body.shape[0]):
        link = body_link[shape_body[i]]
        r = link_rotation[w, link]
        position[w, i] = link_position[w, link] + quat_rotate(r, shape.position[w, i])
        rotation[w, i] = quat_mul(r, shape.rotation[w, i])


@stage
def shape_poses(m: Model, work: Work) -> None:
    """`work.shape_position` and `work.shape_rotation` from the poses of links; nothing where no shapes collide."""
    if m.npair:
        place_shapes(m, work, work.shape_position, work.shape_rotation)


def place_shapes(m: Model, work: Work, position: wp.array, rotation: wp.array) -> None:
    """World poses of all shapes, (W, nshape), from the poses of links."""
    wp.launch(
        _shape_poses_kernel,
        dim=m.worlds,
        inputs=[m.shape_body, m.topology.body_link, m.shape, work.link_position, work.link_rotation],
        outputs=[position, rotation],
        device=m.device,
    )


def collision_input(m: Model, work: Work) -> ShapePoses:
    """What contact generation reads: the poses of `shape_poses` and the shapes' sizes."""
    return ShapePoses(work.shape_position, work.shape_rotation, m.shape.size)
