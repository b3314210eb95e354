"""What adhesive actuators hold on to: contacts out to margin plus gap, beside those that the solver sees."""

from __future__ import annotations

from dataclasses import dataclass

import warp as wp

from warpsim.collision.contacts import Contacts
from warpsim.core.precision import mat33, quat, real, vec3
from warpsim.rigid.model.model import Model
from warpsim.tape.arena import Arena


@dataclass
class GlueWork:
    """Intermediates of one evaluation."""

    contacts: Contacts
    position: wp.array  # (W, nshape) vec3, m, world
    rotation: wp.array  # (W, nshape) quat, world
    touching: wp.array  # (W, nu) int32: contacts of the body that an actuator holds on with, −1: no places for them


def contact_space(m: Model, arena: Arena) -> Contacts:
    """Places for the contacts of one evaluation."""
    shape = (m.worlds, m.max_contacts)

    def fixed(dtype: type) -> wp.array:
        return arena.array(shape, dtype, differentiable=False)

    return Contacts(
        count=arena.array((m.worlds,), wp.int32, differentiable=False),
        pair=fixed(wp.int32),
        feature=fixed(wp.int64),
        seed=fixed(vec3),
        distance=arena.array(shape, real),
        point=arena.array(shape, vec3),
        frame=arena.array(shape, mat33),
    )


def make_glue_work(m: Model, arena: Arena) -> GlueWork | None:
    """Allocates one evaluation's intermediates; None without adhesive actuators."""
    if not m.has_adhesion:
        return None
    shapes = (m.worlds, m.shape_body.shape[0])
    return GlueWork(
        contacts=contact_space(m, arena),
        position=arena.array(shapes, vec3),
        rotation=arena.array(shapes, quat),
        touching=arena.array((m.worlds, m.nu), wp.int32, differentiable=False),
    )
