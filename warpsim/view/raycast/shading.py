"""Light and color, linear RGB, as pages have them: sky, sun, sky light, a grid on the ground, haze. Warp, float32."""

from __future__ import annotations

import numpy as np
import warp as wp

SUN_DIRECTION = np.array([0.45, -0.55, 1.15]) / np.linalg.norm([0.45, -0.55, 1.15])
"""Unit vector toward the sun, in the Z-up world: over the right shoulder of the automatic camera, as on pages."""
SUN_STRENGTH = np.array([0.84, 0.79, 0.73])
"""What a white surface that faces the sun sends out, linear RGB."""
AMBIENT_UP, AMBIENT_DOWN = np.array([0.25, 0.26, 0.275]), np.array([0.11, 0.11, 0.12])
"""What a white surface sends out of sky light: facing up, facing down."""
GROUND = np.array([0.479, 0.565, 0.687])
GROUND_SHARE = 0.25
"""Endless planes have this color, and so much of their own."""
LINE = np.array([0.212, 0.254, 0.314])
"""Of the ground's grid."""
CHECK = 0.1
"""How much darker every other square of the ground is."""
HAZE_START, HAZE_END, GRID_END = 5.0, 18.0, 9.0
"""Sizes of the scene from which and at which the ground has faded into the horizon, and its grid from a quarter on."""

_SUN = wp.constant(wp.vec3(*SUN_DIRECTION.tolist()))
_SUN_STRENGTH = wp.constant(wp.vec3(*SUN_STRENGTH.tolist()))
_AMBIENT_UP, _AMBIENT_DOWN = wp.constant(wp.vec3(*AMBIENT_UP.tolist())), wp.constant(wp.vec3(*AMBIENT_DOWN.tolist()))
_LINE = wp.constant(wp.vec3(*LINE.tolist()))
_HAZE_START, _HAZE_END, _GRID_END = wp.constant(HAZE_START), wp.constant(HAZE_END), wp.constant(GRID_END)
_CHECK = wp.constant(CHECK)
_HORIZON = wp.constant(wp.vec3(0.815, 0.863, 0.922))
_ZENITH = wp.constant(wp.vec3(0.159, 0.347, 0.687))
_NADIR = wp.constant(wp.vec3(0.624, 0.672, 0.723))


@wp.func
def sun_direction() -> wp.vec3:
    """Unit vector toward the sun."""
    return _SUN


@wp.func
def sky(d: wp.vec3) -> wp.vec3:
    """Color of the background in a direction (a unit vector)."""
    if d[2] >= 0.0:
        return wp.lerp(_HORIZON, _ZENITH, wp.pow(d[2], 0.6))
    return wp.lerp(_HORIZON, _NADIR, wp.pow(wp.min(1.0, -3.0 * d[2]), 0.7))


@wp.func
def light(color: wp.vec3, normal: wp.vec3, sunlit: float) -> wp.vec3:
    """Color of a matt surface.

    Args:
        color: Of the surface.
        normal: Unit vector.
        sunlit: 0 in shadow, 1 in the sun.
    """
    ambient = wp.lerp(_AMBIENT_DOWN, _AMBIENT_UP, 0.5 + 0.5 * normal[2])
    return wp.cw_mul(color, ambient + sunlit * wp.max(0.0, wp.dot(normal, _SUN)) * _SUN_STRENGTH)


@wp.func
def _smoothstep(low: float, high: float, x: float) -> float:
    y = wp.clamp((x - low) / (high - low), 0.0, 1.0)
    return y * y * (3.0 - 2.0 * y)


@wp.func
def _line(x: float, footprint: float, width: float) -> float:
    """How much of a sample a line at every whole number covers; lines too narrow to see fade.

    Args:
        x: Place.
        footprint: Width of a sample.
        width: Of a line, in samples.
    """
    away = wp.abs(x - wp.floor(x + 0.5))
    inner = footprint * wp.max(width - 0.6, 0.0)
    outer = footprint * (width + 0.6)
    return (1.0 - _smoothstep(inner, outer, away)) * (1.0 - _smoothstep(0.25, 0.6, footprint))


@wp.func
def _square_wave(x: float, footprint: float) -> float:
    """±0.5 on one and the other side of every whole number, smooth over a sample."""
    y = 0.5 * x + 0.25
    return wp.clamp((wp.abs(2.0 * (y - wp.floor(y)) - 1.0) - 0.5) / wp.max(footprint, 1.0e-6), -0.5, 0.5)


@wp.func
def grid(color: wp.vec3, x: float, y: float, wide_x: float, wide_y: float, cell: float, away: float) -> wp.vec3:
    """A color with fine lines at every cell, strong ones at every fifth, and every other square between these darker.

    Args:
        color: Of the ground.
        x: Place on the plane, m.
        y: Place on the plane, m.
        wide_x: Width of a sample along x, m.
        wide_y: Width of a sample along y, m.
        cell: Between fine lines, m.
        away: Distance in sizes of the scene.
    """
    fine = 0.16 * wp.max(_line(x / cell, wide_x / cell, 0.5), _line(y / cell, wide_y / cell, 0.5))
    large = 5.0 * cell
    coarse = 0.4 * wp.max(_line(x / large, wide_x / large, 0.7), _line(y / large, wide_y / large, 0.7))
    veil = 1.0 - _smoothstep(0.25, 1.0, away / _GRID_END)
    check = 0.5 - 2.0 * _square_wave(x / large, wide_x / large) * _square_wave(y / large, wide_y / large)
    return wp.lerp(color * (1.0 - _CHECK * check * veil), _LINE, wp.max(fine, coarse) * veil)


@wp.func
def haze(color: wp.vec3, away: float) -> wp.vec3:
    """A color seen through air, from so many sizes of the scene away."""
    return wp.lerp(color, _HORIZON, wp.clamp((away - _HAZE_START) / (_HAZE_END - _HAZE_START), 0.0, 1.0))


@wp.func
def encode(x: float) -> wp.uint8:
    """Linear intensity → a byte, by the sRGB transfer function (IEC 61966-2-1)."""
    y = wp.clamp(x, 0.0, 1.0)
    if y <= 0.0031308:
        y = 12.92 * y
    else:
        y = 1.055 * wp.pow(y, 1.0 / 2.4) - 0.055
    return wp.uint8(wp.int32(255.0 * y + 0.5))
