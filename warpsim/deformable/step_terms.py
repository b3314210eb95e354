"""What one step minimizes: masses and loads, elements, contacts, springs, in the arrays of that step."""

from __future__ import annotations

from dataclasses import dataclass

import warp as wp

from warpsim.deformable.contact import Contacts
from warpsim.deformable.inertia import Inertia
from warpsim.deformable.self_contact import SelfContacts
from warpsim.deformable.springs import Springs
from warpsim.deformable.terms import Elements


@dataclass(frozen=True)
class Around:
    """What surrounds a matter during a step, (W, …) each.

    Attributes:
        time_step: (W,) s.
        gravity: (W,) m/s².
        position, rotation, velocity, size: Of the shapes that vertices touch, in the world, see `Contacts`.
        friction: (W, shapes) μ.
        place, place_velocity: (W, springs) m, m/s: what vertices are attached to.
        acceleration, place_acceleration: Jq̈ of both, as the velocities; None: zero.
    """

    time_step: wp.array
    gravity: wp.array
    position: wp.array | None = None
    rotation: wp.array | None = None
    velocity: wp.array | None = None
    size: wp.array | None = None
    friction: wp.array | None = None
    place: wp.array | None = None
    place_velocity: wp.array | None = None
    acceleration: wp.array | None = None
    place_acceleration: wp.array | None = None


@dataclass(frozen=True)
class Terms:
    """Structs for kernels, and the arrays in them that may carry gradients.

    Attributes:
        inertia, elements, contacts, springs, pairs: Structs.
        time_step, gravity: (W,).
        contact_arrays: Members of the contacts, from the position of shapes to the radius of samples.
        spring_arrays: In the order of `spring_work`, from the place to the damping.
        pair_arrays: The law of self-contact.
    """

    inertia: Inertia
    elements: Elements
    contacts: Contacts
    springs: Springs
    pairs: SelfContacts
    time_step: wp.array
    gravity: wp.array
    contact_arrays: tuple[wp.array, ...]
    spring_arrays: tuple[wp.array, ...]
    pair_arrays: tuple[wp.array, ...]
