"""Light and color, linear RGB: sky, sun, sky light, checkered ground, haze. Warp functions, float32."""

from __future__ import annotations

import numpy as np
import warp as wp

_SUN_AZIMUTH, _SUN_ELEVATION = np.radians(-25.0), np.radians(50.0)
SUN_DIRECTION = np.array(
    [
        np.cos(_SUN_ELEVATION) * np.cos(_SUN_AZIMUTH),
        np.cos(_SUN_ELEVATION) * np.sin(_SUN_AZIMUTH),
        np.sin(_SUN_ELEVATION),
    ]
)
"""Unit vector toward the sun, in the Z-up world: over the right shoulder of the automatic camera."""
SUN_STRENGTH = 0.66
"""What a white surface that faces the sun sends out."""
AMBIENT_UP, AMBIENT_DOWN = 0.34, 0.17
"""What a white surface sends out of sky light: facing up, facing down."""
CHECKER_CONTRAST = 0.22
"""Dark squares of the ground are this much darker."""
HAZE_DISTANCES = 30.0
"""The ground fades into the horizon at this many sizes of the scene."""

_SUN = wp.constant(wp.vec3(*SUN_DIRECTION.tolist()))
_SUN_STRENGTH = wp.constant(SUN_STRENGTH)
_AMBIENT_UP, _AMBIENT_DOWN = wp.constant(AMBIENT_UP), wp.constant(AMBIENT_DOWN)
_CONTRAST = wp.constant(CHECKER_CONTRAST)
_HORIZON = wp.constant(wp.vec3(0.76, 0.83, 0.90))
_ZENITH = wp.constant(wp.vec3(0.22, 0.42, 0.72))
_NADIR = wp.constant(wp.vec3(0.50, 0.53, 0.57))


@wp.func
def sun_direction() -> wp.vec3:
    """Unit vector toward the sun."""
    return _SUN


@wp.func
def sky(d: wp.vec3) -> wp.vec3:
    """Color of the background in a direction (a unit vector)."""
    if d[2] >= 0.0:
        return wp.lerp(_HORIZON, _ZENITH, wp.sqrt(d[2]))
    return wp.lerp(_HORIZON, _NADIR, wp.min(1.0, -2.0 * d[2]))


@wp.func
def light(color: wp.vec3, normal: wp.vec3, sunlit: float) -> wp.vec3:
    """Color of a matt surface.

    Args:
        color: Of the surface.
        normal: Unit vector.
        sunlit: 0 in shadow, 1 in the sun.
    """
    ambient = wp.lerp(_AMBIENT_DOWN, _AMBIENT_UP, 0.5 + 0.5 * normal[2])
    return color * (ambient + sunlit * _SUN_STRENGTH * wp.max(0.0, wp.dot(normal, _SUN)))


@wp.func
def checker(color: wp.vec3, x: float, y: float, cell: float, footprint: float) -> wp.vec3:
    """A color on a checkerboard that fades where squares get too small to see.

    Args:
        color: Of the light squares.
        x: Place on the plane, m.
        y: Place on the plane, m.
        cell: Edge of a square, m.
        footprint: Width of a sample on the plane, m.
    """
    fade = wp.exp(-2.0 * footprint / cell)
    even = wp.floor(x / cell) + wp.floor(y / cell)
    odd = even - 2.0 * wp.floor(0.5 * even)
    return color * (1.0 - _CONTRAST * (0.5 + (odd - 0.5) * fade))


@wp.func
def haze(color: wp.vec3, distance: float, far: float) -> wp.vec3:
    """A color seen through air that hides what is farther than about `far`."""
    ratio = distance / far
    return wp.lerp(_HORIZON, color, wp.exp(-ratio * ratio))


@wp.func
def encode(x: float) -> wp.uint8:
    """Linear intensity → a byte, by the sRGB transfer function (IEC 61966-2-1)."""
    y = wp.clamp(x, 0.0, 1.0)
    if y <= 0.0031308:
        y = 12.92 * y
    else:
        y = 1.055 * wp.pow(y, 1.0 / 2.4) - 0.055
    return wp.uint8(wp.int32(255.0 * y + 0.5))
