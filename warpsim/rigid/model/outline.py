"""What is known of a scene's bodies before it is compiled, without any kernel: sizes, names, masses, contact places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from warpsim.collision.candidates import count_candidates, default_room
from warpsim.collision.pairs import collision_pairs
from warpsim.geometry.mesh_mass import mesh_mass_properties
from warpsim.rigid.model.topology import Layout, build_topology
from warpsim.scene import Scene, Shape, validate
from warpsim.scene.description import MESH_KINDS, Sensor

_VOLUMES = {
    "sphere": lambda s: 4.0 / 3.0 * np.pi * s[0] ** 3,
    "capsule": lambda s: np.pi * s[0] ** 2 * (2.0 * s[1] + 4.0 / 3.0 * s[0]),
    "box": lambda s: 8.0 * s[0] * s[1] * s[2],
    "cylinder": lambda s: 2.0 * np.pi * s[0] ** 2 * s[1],
    "cone": lambda s: 2.0 / 3.0 * np.pi * s[0] ** 2 * s[1],
    "ellipsoid": lambda s: 4.0 / 3.0 * np.pi * s[0] * s[1] * s[2],
}
"""m³ by kind and size, as `shape_mass.shape_volume` on the device; others but meshes have none."""


@dataclass(frozen=True)
class BodyOutline:
    """Sizes of one world's model, as `Model` would have them; `Sizes` of `warpsim.rigid.model.fields`.

    Attributes:
        layout: Names and addresses.
        body_mass: (nbody,) kg, in the layout's order; the world has none.
        npair: Pairs of shapes that may touch.
        max_contacts: Places for contacts, at first or as the scene limits them.
        saturation_size: Numbers that report cuts.
        sensors: In the order of the measurement vector.
        worlds: 1.
    """

    layout: Layout
    body_mass: np.ndarray
    npair: int
    max_contacts: int
    saturation_size: int
    sensors: Sequence[Sensor]
    worlds: int = 1

    @property
    def nv(self) -> int:
        """Dofs."""
        return self.layout.nv

    @property
    def nu(self) -> int:
        """Actuators."""
        return len(self.layout.actuator_names)

    @property
    def nd(self) -> int:
        """Drives."""
        return len(self.layout.drive_names)

    @property
    def nbody(self) -> int:
        """Bodies, the world included."""
        return len(self.layout.body_names)

    @property
    def nshape(self) -> int:
        """Shapes."""
        return len(self.layout.shape_names)


def outline_bodies(scene: Scene) -> BodyOutline:
    """Validates a scene and tells how large its model will be."""
    validate(scene)
    _, layout, joints, _ = build_topology(scene)
    options = scene.options
    pairs = collision_pairs(scene) if options.constraints and options.contacts else np.zeros((0, 2), np.int32)
    room = default_room(count_candidates(scene, pairs), len(np.unique(pairs)))
    limited = scene.actuators and any(joint.actuator_force_limit is not None for joint in joints)
    return BodyOutline(
        layout=layout,
        body_mass=_body_masses(scene, layout),
        npair=len(pairs),
        max_contacts=room if options.max_contacts is None or not len(pairs) else options.max_contacts,
        saturation_size=len(scene.actuators) + len(scene.drives) + (layout.nv if limited else 0),
        sensors=tuple(scene.sensors),
    )


def _body_masses(scene: Scene, layout: Layout) -> np.ndarray:
    """(nbody,) kg: authored, or those of the shapes."""
    masses = np.zeros(len(layout.body_names))
    for shape in scene.shapes:
        if shape.body is not None:
            masses[layout.body(shape.body)] += _shape_mass(scene, shape)
    for body in scene.bodies:
        if body.mass is not None:
            masses[layout.body(body.name)] = body.mass
    return masses


def _shape_mass(scene: Scene, shape: Shape) -> float:
    """A shape's kg."""
    if shape.mass is not None:
        return shape.mass
    if shape.kind in MESH_KINDS:
        return shape.density * mesh_mass_properties(scene, shape).volume * float(shape.size[0]) ** 3
    volume = _VOLUMES.get(shape.kind)
    return 0.0 if volume is None else float(shape.density * volume(shape.size))
