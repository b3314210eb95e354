"""Cloth, soft bodies and cables: energies of their elements, the implicit step, its adjoint, and a `Program` of it."""

from warpsim.deformable.description import Matter, Sheet
from warpsim.deformable.model import build
from warpsim.deformable.program import DeformableProgram

__all__ = ["DeformableProgram", "Matter", "Sheet", "build"]
