"""The plain description of a scene, in SI units and NumPy: what readers make and what `Model` is compiled from."""

from warpsim.scene.actuation import Actuator, Drive, Muscle, Tendon, TendonPoint
from warpsim.scene.constraints import ContactOverride, Equality
from warpsim.scene.description import (
    Body,
    Decomposition,
    Joint,
    Medium,
    Mesh,
    Options,
    Scene,
    Sensor,
    Shape,
    Site,
)
from warpsim.scene.heightfield import heightfield_mesh
from warpsim.scene.matters import MatterDescription, MatterKind, register_matter
from warpsim.scene.validate import validate

__all__ = [
    "Actuator",
    "Body",
    "ContactOverride",
    "Decomposition",
    "Drive",
    "Equality",
    "Joint",
    "MatterDescription",
    "MatterKind",
    "Medium",
    "Mesh",
    "Muscle",
    "Options",
    "Scene",
    "Sensor",
    "Shape",
    "Site",
    "Tendon",
    "TendonPoint",
    "heightfield_mesh",
    "register_matter",
    "validate",
]
