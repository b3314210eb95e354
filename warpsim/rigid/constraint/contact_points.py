"""Where each contact of a step is and what it pushes with, as outputs to look at."""

from __future__ import annotations

import warp as wp

from warpsim.core.indexing import natural
from warpsim.core.precision import mat33, real, vec3, vec6
from warpsim.rigid.model.model import Model
from warpsim.rigid.work.constraint_work import ConstraintScratch, ConstraintWork
from warpsim.rigid.work.row_settings import ContactSettings


@wp.kernel(enable_backward=False)
def _contact_points_kernel(
    c: ContactSettings,
    shape_body: wp.array(dtype=wp.int32),
    count: wp.array(dtype=wp.int32),
    contact_pair: wp.array2d(dtype=wp.int32),
    point: wp.array2d(dtype=vec3),
    frame: wp.array2d(dtype=mat33),
    force: wp.array2d(dtype=vec6),
    points: wp.array2d(dtype=vec3),
    forces: wp.array2d(dtype=vec3),
):
    w = natural(wp.tid())
    places = wp.min(count[w], point.shape[1])
    for k in range(point.shape[1]):
        place = vec3(real(0.0), real(0.0), real(0.0))
        push = vec3(real(0.0), real(0.0), real(0.0))
        if k < places:
            f = force[w, k]
            place = point[w, k]
            push = wp.transpose(frame[w, k]) * vec3(f[0], f[1], f[2])
            if shape_body[c.pair_shapes[contact_pair[w, k], 1]] == 0:
                push = -push
        if points:
            points[w, k] = place
        if forces:
            forces[w, k] = push


def contact_points(
    m: Model,
    c: ConstraintWork,
    scratch: ConstraintScratch,
    points: wp.array | None,
    forces: wp.array | None,
    *,
    softened: bool = False,
) -> None:
    """Fills the outputs of `contact_point_fields`, or one of them. Not taped.

    `softened` as it was when `constraint_forces` found the forces.
    """
    x = c.soft_contacts if softened else c.contacts
    wp.launch(
        _contact_points_kernel,
        dim=m.worlds,
        inputs=[scratch.contact_settings, m.shape_body, x.count, x.pair, x.point, x.frame, c.contact_force],
        outputs=[points, forces],
        device=m.device,
        record_tape=False,
    )
