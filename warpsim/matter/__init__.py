"""What a matter beside rigid bodies is made of, for those who write one: see docs/matter.md."""

from warpsim.matter.manifolds import UnitQuaternions
from warpsim.matter.matter import Bodies, CompileContext, Environment, Matter, Shapes
from warpsim.scene.matters import MatterDescription, MatterKind, register_matter

__all__ = [
    "Bodies",
    "CompileContext",
    "Environment",
    "Matter",
    "MatterDescription",
    "MatterKind",
    "Shapes",
    "UnitQuaternions",
    "register_matter",
]
