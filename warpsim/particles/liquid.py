"""A weakly compressible, viscous liquid: its stress. Another material is another file like this one.

p = K (J⁻⁷ − 1)/7 for J < 1, else 0        (Tait)
τ = J σ = J (μ (C + Cᵀ) − p I)             (Kirchhoff stress; C is the velocity gradient)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from warpsim.core.errors import InputError
from warpsim.core.indexing import natural
from warpsim.core.precision import mat33, real


@dataclass(frozen=True)
class Liquid:
    """Constants of a liquid.

    Attributes:
        density: ρ at rest, kg/m³.
        bulk_modulus: K, Pa. Sound travels at √(K/ρ), which bounds the time step; a tenfold of the largest speed keeps
            the density within one percent.
        viscosity: μ, Pa·s.
    """

    density: float = 1000.0
    bulk_modulus: float = 1.0e5
    viscosity: float = 0.0

    def __post_init__(self) -> None:
        for name, value, zero in (
            ("density", self.density, False),
            ("bulk_modulus", self.bulk_modulus, False),
            ("viscosity", self.viscosity, True),
        ):
            if not np.isfinite(value) or value < 0.0 or (value == 0.0 and not zero):
                raise InputError(f"the liquid's {name} is {value}; it must be {'at least 0' if zero else 'positive'}")

    def largest_step(self, spacing: float, speed: float = 0.0) -> float:
        """The longest stable time step (s) on cells of `spacing` (m) for liquid that moves at `speed` (m/s).

        Sound may cross three quarters of a cell, and momentum may not diffuse further than explicit steps carry it.
        """
        sound = float(np.sqrt(self.bulk_modulus / self.density))
        step = 0.75 * spacing / (sound + speed)
        if self.viscosity > 0.0:
            step = min(step, 0.125 * self.density * spacing**2 / self.viscosity)
        return step


_STRAIGHT = 0.9
_STRAIGHT_RATIO = wp.constant(real(_STRAIGHT))
"""Below this J pressure goes on along its tangent: a hard impact must not outrun the sound that the step allows for."""
_STRAIGHT_PRESSURE = wp.constant(real((_STRAIGHT**-7 - 1.0) / 7.0))
_STRAIGHT_SLOPE = wp.constant(real(_STRAIGHT**-8))


@wp.func
def liquid_pressure(volume_ratio: real, bulk_modulus: real) -> real:
    """p (Pa) at J; none where the liquid is expanded, which lets it part."""
    if volume_ratio >= real(1.0):
        return real(0.0)
    if volume_ratio < _STRAIGHT_RATIO:
        return bulk_modulus * (_STRAIGHT_PRESSURE + _STRAIGHT_SLOPE * (_STRAIGHT_RATIO - volume_ratio))
    inverse = real(1.0) / volume_ratio
    square = inverse * inverse
    return bulk_modulus * (square * square * square * inverse - real(1.0)) / real(7.0)


@wp.kernel
def _liquid_stress_kernel(
    # parameters
    bulk_modulus: wp.array(dtype=real),
    viscosity: wp.array(dtype=real),
    # state
    rate: wp.array2d(dtype=mat33),
    volume_ratio: wp.array2d(dtype=real),
    # work written
    stress: wp.array2d(dtype=mat33),
):
    w, p = wp.tid()
    w = natural(w)
    p = natural(p)
    j = volume_ratio[w, p]
    c = rate[w, p]
    pressure = liquid_pressure(j, bulk_modulus[w])
    identity = wp.identity(n=3, dtype=real)
    stress[w, p] = j * (viscosity[w] * (c + wp.transpose(c)) - pressure * identity)


def liquid_stress(
    bulk_modulus: wp.array, viscosity: wp.array, rate: wp.array, volume_ratio: wp.array, stress: wp.array
) -> None:
    """Kirchhoff stress (Pa) of each particle, (W, n), from C (1/s) and J."""
    wp.launch(
        _liquid_stress_kernel,
        dim=stress.shape,
        inputs=[bulk_modulus, viscosity, rate, volume_ratio],
        outputs=[stress],
        device=stress.device,
    )
