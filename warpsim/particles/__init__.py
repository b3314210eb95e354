"""Matter made of particles: liquids by MLS-MPM, differentiable, among walls that stand or move."""

from warpsim.particles.domain import Domain
from warpsim.particles.fill import box_lattice
from warpsim.particles.liquid import Liquid
from warpsim.particles.program import ParticleProgram
from warpsim.particles.walls import WallShape

__all__ = ["Domain", "Liquid", "ParticleProgram", "WallShape", "box_lattice"]
