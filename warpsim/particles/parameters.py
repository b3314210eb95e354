"""Parameters and state of a liquid of particles: which arrays there are."""

from __future__ import annotations

from dataclasses import dataclass

import warp as wp

from warpsim.core.precision import mat33, real, vec3


@dataclass
class ParticleParameters:
    """Parameters of all worlds, (W,) each, with gradients.

    Attributes:
        volume: V₀ of a particle, m³; without gradient.
        density: kg/m³.
        bulk_modulus: Pa.
        viscosity: Pa·s.
        gravity: m/s², vectors.
    """

    volume: wp.array
    density: wp.array
    bulk_modulus: wp.array
    viscosity: wp.array
    gravity: wp.array


@dataclass
class ParticleState:
    """State of n particles, arrays (W, n).

    Attributes:
        x: Position, m.
        v: Velocity, m/s.
        rate: C, the affine velocity field about each particle, 1/s.
        volume_ratio: J, volume over that at rest.
        slope: ∇J, 1/m.
    """

    x: wp.array
    v: wp.array
    rate: wp.array
    volume_ratio: wp.array
    slope: wp.array

    @property
    def arrays(self) -> list[wp.array]:
        """In the order of the fields."""
        return [self.x, self.v, self.rate, self.volume_ratio, self.slope]


FIELDS = (("x", vec3), ("v", vec3), ("rate", mat33), ("volume_ratio", real), ("slope", vec3))
"""Names and types of the state."""
