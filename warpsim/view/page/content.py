"""`Page`: what a page shows, in the SI, Z-up world of a `Scene`; one list of things to draw for any kind of matter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from warpsim.io.usd.motion import ContactFrame
from warpsim.view.items.item import Item, Look

DEFAULT_LOOK = Look()


@dataclass(frozen=True, eq=False)
class RigidDrawable:
    """A shape that moves with a body, or stands."""

    item: Item
    """`to_world` is shape → body frame, or → world without a body."""
    visual: bool = True
    collider: bool = False
    takes: tuple[int, ...] | None = None
    """Takes that it is drawn in; None: all."""


@dataclass(frozen=True, eq=False)
class SurfaceDrawable:
    """A mesh whose points each take moves: cloth, a soft body."""

    path: str
    faces: np.ndarray
    """(m, 3) indices of points, counterclockwise seen from outside."""
    color: np.ndarray
    """(3,) linear RGB."""
    look: Look = DEFAULT_LOOK


@dataclass(frozen=True, eq=False)
class CloudDrawable:
    """Points that each take moves: a liquid, grains."""

    path: str
    color: np.ndarray
    radius: float
    """m."""


@dataclass(frozen=True, eq=False)
class CurveDrawable:
    """Polylines whose points each take moves: a cable, a rod."""

    path: str
    counts: np.ndarray
    """(n,) points of each polyline."""
    color: np.ndarray
    width: float
    """m."""


Drawable = RigidDrawable | SurfaceDrawable | CloudDrawable | CurveDrawable


@dataclass(frozen=True, eq=False)
class BodyInfo:
    """A frame that moves, and what is known of it."""

    path: str
    mass: float | None = None
    """kg."""
    com: np.ndarray | None = None
    """(3,) m, in the body's frame."""


@dataclass(frozen=True, eq=False)
class JointInfo:
    """A joint, for its frame and its plot."""

    path: str
    kind: str
    """One of `JOINT_KINDS`."""
    body: str
    anchor: np.ndarray
    """(3,) m, in the body's frame."""
    axis: np.ndarray
    """(3,), in the body's frame."""
    column: int | None = None
    """Of `Take.values`, for hinges and slides; None: nothing to plot."""
    limit: tuple[float, float] | None = None
    """rad or m."""


@dataclass(frozen=True, eq=False)
class Take:
    """One motion of everything."""

    name: str
    times: np.ndarray
    """(frames,) s."""
    positions: np.ndarray
    """(frames, bodies, 3) m."""
    rotations: np.ndarray
    """(frames, bodies, 4) unit quaternions (w, x, y, z)."""
    values: np.ndarray | None = None
    """(frames, columns) of joints, rad or m."""
    points: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Path of a drawable → (frames, n, 3) m."""
    contacts: Sequence[ContactFrame] | None = None
    ghost: bool = False
    """Drawn translucent, to compare with."""
    over: int | None = None
    """Place of the take that this one stays with when takes stand side by side; None: it has a place of its own."""
    iteration: int | None = None
    """Of a search: shown when chosen on the curve, one at a time."""
    loss: float | None = None


@dataclass(frozen=True, eq=False)
class Target:
    """A place that a term of a task wants something to be at."""

    name: str
    times: np.ndarray
    """(n,) s."""
    positions: np.ndarray
    """(n, 3) m; one row: it stands still."""
    subject: str | None = None
    """Path of the body that is to be there."""
    offset: np.ndarray | None = None
    """(3,) m: the place on the body, in its frame."""
    tolerance: float | None = None
    """m."""


@dataclass(frozen=True, eq=False)
class LossCurve:
    """Loss over the iterations of a search."""

    iterations: np.ndarray
    losses: np.ndarray


@dataclass(frozen=True, eq=False)
class SliderInfo:
    """A number that a live page may change."""

    name: str
    low: float
    high: float
    value: float
    unit: str = ""
    group: str = ""
    """Heading that it stands under."""


@dataclass(frozen=True, eq=False)
class LivePanel:
    """What a live page offers."""

    sliders: Sequence[SliderInfo] = ()
    drag: bool = False
    """Whether bodies can be pulled."""
    contacts: int = 0
    """That are shown at most."""
    edition: int = 0
    """Pages of an older one load themselves again."""


@dataclass(frozen=True, eq=False)
class Page:
    """Everything a page holds."""

    title: str
    bodies: Sequence[BodyInfo]
    drawables: Sequence[Drawable]
    takes: Sequence[Take]
    joints: Sequence[JointInfo] = ()
    targets: Sequence[Target] = ()
    loss: LossCurve | None = None
    notes: Sequence[str] = ()
    """Lines of text for the reader, e.g. what was changed."""
    live: LivePanel | None = None
    """For pages that follow a running simulation."""
