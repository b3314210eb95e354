"""Equalities and contact settings of pairs, as described in a scene (see `description`)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from warpsim.scene.defaults import DEFAULT_SOLIMP, DEFAULT_SOLREF, identity_quat, zeros3


@dataclass
class Equality:
    """A constraint that holds two things together.

    connect: `anchor` on body_a coincides with the point of body_b it meets at the reference configuration.
    weld: frame b keeps `relative_pose` in frame a.
    joint, tendon: a − a₀ = polynomial(b − b₀), of q or length, where a₀, b₀ are those of the reference configuration;
        without b: a − a₀ = polynomial[0].
    distance: |point a − point b| within `distance_range`.
    axes: as a weld, but only the `locked` ones of six coordinates are held: the translation of b's point along axes
        that turn with a, then turns about x, y and z in that order. Free ones may have limits, and drives (`Drive`).
    """

    name: str
    kind: str
    a: str | None = None
    b: str | None = None
    anchor: np.ndarray = field(default_factory=zeros3)
    """connect, distance: point in a's frame, m; weld, axes: the point in b's frame that is held."""
    anchor_b: np.ndarray | None = None
    """connect, distance: point in b's frame; None: where `anchor` is at the reference configuration."""
    relative_pose: np.ndarray | None = None
    """weld, axes: (7,) pose of b in a (axes: where its coordinates are zero); None: that of the reference
    configuration."""
    axes: np.ndarray = field(default_factory=identity_quat)
    """axes: rotation of the six coordinates' axes in b's frame, where they are zero."""
    locked: tuple[bool, ...] = (True,) * 6
    """axes: translations along x, y, z and turns about x, y, z that are held at zero."""
    limits: np.ndarray = field(default_factory=lambda: np.tile([-np.inf, np.inf], (6, 1)))
    """axes: (6, 2) bounds of the free coordinates, m and rad. A turn is known within ±π, the second of three within
    ±π/2."""
    turn_limit: float = np.inf
    """axes, with three free turns: largest angle of the whole rotation, rad, at most π."""
    limit_solref: np.ndarray = field(default_factory=lambda: np.array(DEFAULT_SOLREF))
    limit_solimp: np.ndarray = field(default_factory=lambda: np.array(DEFAULT_SOLIMP))
    torque_scale: float = 1.0
    polynomial: np.ndarray = field(default_factory=lambda: np.array([0.0, 1.0, 0.0, 0.0, 0.0]))
    distance_range: tuple[float, float] = (0.0, np.inf)
    active: bool = True
    solref: np.ndarray = field(default_factory=lambda: np.array(DEFAULT_SOLREF))
    solimp: np.ndarray = field(default_factory=lambda: np.array(DEFAULT_SOLIMP))


@dataclass
class ContactOverride:
    """A pair of shapes whose contact parameters are given outright instead of mixed from the two."""

    a: str
    b: str
    condim: int = 3
    friction: np.ndarray = field(default_factory=lambda: np.array([1.0, 1.0, 0.005, 0.0001, 0.0001]))
    solref: np.ndarray = field(default_factory=lambda: np.array(DEFAULT_SOLREF))
    solref_friction: np.ndarray = field(default_factory=lambda: np.zeros(2))
    """solref of the friction rows; zeros: as `solref`."""
    solimp: np.ndarray = field(default_factory=lambda: np.array(DEFAULT_SOLIMP))
    margin: float = 0.0
    gap: float = 0.0
