"""What pulls and drives: tendons, muscles, actuators, joint drives, as described in a scene (see `description`)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from warpsim.scene.defaults import DEFAULT_SOLIMP, DEFAULT_SOLREF


@dataclass
class TendonPoint:
    """A place on the way of a spatial tendon."""

    kind: str
    """"site": passes through it; "shape": wraps around a sphere or cylinder that stands between two sites; "pulley":
    a branch of the tendon ends and another begins."""
    name: str = ""
    """Of the site or shape."""
    side: str | None = None
    """shape: name of a site on the side on which the tendon passes; one inside the shape makes it pass through."""
    divisor: float = 1.0
    """pulley: what lengths of the branch after it are divided by."""


@dataclass
class Tendon:
    """A fixed tendon, length = Σ coefficient · q over hinge and slide joints, or a spatial one, with a `path`.

    Length, and what is made of it, is in m for spatial tendons, otherwise in the unit of the joints.
    """

    name: str
    joints: list[str] = field(default_factory=list)
    coefficients: np.ndarray = field(default_factory=lambda: np.zeros(0))
    stiffness: float = 0.0
    damping: float = 0.0
    spring_range: tuple[float, float] | None = None
    """No spring force for lengths inside; None: the length at the reference configuration."""
    limit: tuple[float, float] | None = None
    limit_margin: float = 0.0
    limit_solref: np.ndarray = field(default_factory=lambda: np.array(DEFAULT_SOLREF))
    limit_solimp: np.ndarray = field(default_factory=lambda: np.array(DEFAULT_SOLIMP))
    friction_loss: float = 0.0
    friction_solref: np.ndarray = field(default_factory=lambda: np.array(DEFAULT_SOLREF))
    friction_solimp: np.ndarray = field(default_factory=lambda: np.array(DEFAULT_SOLIMP))
    path: list[TendonPoint] = field(default_factory=list)
    """Of a spatial tendon, whose length is that of the shortest way; empty for a fixed one."""
    rod: float = 0.0
    """m; above 0, a slider-crank: a rod of this length joins the second site of the path, the crank pin, to a point
    that slides on the z axis of the first. The length is that point's place on the axis."""
    armature: float = 0.0
    """Mass that moves at the rate of the length, kg, or kg·m² where the length is an angle. Not for paths around
    shapes. Joints on different branches are not coupled by it, as in MuJoCo."""


@dataclass(frozen=True)
class Muscle:
    """MuJoCo's muscle in place of an actuator's gain, its bias, or both (see `warpsim.rigid.dynamics.muscle`)."""

    force: float = 1.0
    """Largest active force at rest, N."""
    range: tuple[float, float] = (0.75, 1.05)
    """Shortest and longest, as shares of the resting length."""
    length_range: tuple[float, float] = (0.0, 1.0)
    """Lengths of the transmission at which it is so short and so long, m or rad."""
    lmin: float = 0.5
    """Share of the resting length below which there is no active force."""
    lmax: float = 1.6
    """Above which there is none."""
    vmax: float = 1.5
    """Speed of shortening at which there is none, resting lengths per s."""
    fpmax: float = 1.3
    """Passive force at `lmax`, as a share of `force`."""
    fvmax: float = 1.2
    """Active force at fast lengthening, as a share of `force`."""
    active: bool = True
    """Whether it is the gain."""
    passive: bool = True
    """Whether it is the bias."""


@dataclass(frozen=True)
class DcMotor:
    """MuJoCo's direct-current motor in place of an actuator's gain and bias; the control is a voltage.

    force = constant · current, less what cogs. The current is (control − constant · velocity) / resistance at once, or
    follows that within the actuator's `time_constant`, inductance over resistance, where its dynamics is "current".
    """

    resistance: float = 1.0
    """Ω."""
    constant: float = 1.0
    """Force per current, N/A or N·m/A, and voltage per velocity."""
    cogging: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """(force, number per unit of length, phase): force · sin(number · length + phase), which no force range cuts."""


@dataclass
class Actuator:
    """force = (gain₀ + gain₁·length + gain₂·velocity)·input + bias₀ + bias₁·length + bias₂·velocity, as in MuJoCo.

    The input is the control, or the activation where `dynamics` is not "none".
    """

    name: str
    transmission: str
    """"joint", "tendon", "site", or "body" for adhesion: one pull of a body towards all it touches, out to the margin
    and gap of its contacts, shared equally among them. Gears play no part in it, nor do length and velocity."""
    target: str
    """Name of the joint, tendon, site or body."""
    gear: np.ndarray = field(default_factory=lambda: np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0]))
    """(6,): first number for hinge, slide, tendon; 3 for ball; 6 for free; (force, torque) in the frame of a site."""
    gain: np.ndarray = field(default_factory=lambda: np.array([1.0, 0.0, 0.0]))
    bias: np.ndarray = field(default_factory=lambda: np.zeros(3))
    damping_ratio: float = 0.0
    """Above 0: bias₂ is set to this many times −2 √(gain₀ m) when the scene is compiled, m being the inertia that the
    transmission feels at the reference configuration (MuJoCo's dampratio). For gain₀ = −bias₁ > 0 on a hinge, a slide
    or a tendon."""
    dynamics: str = "none"
    time_constant: float = 1.0
    """s, for "filter", "filterexact" and "current"; for "muscle", of rising activation."""
    deactivation_time: float = 0.04
    """s, for "muscle": time constant of falling activation."""
    activation_smoothing: float = 0.0
    """For "muscle": width, in control, over which the time constant changes; 0: at once."""
    control_range: tuple[float, float] | None = None
    force_range: tuple[float, float] | None = None
    activation_range: tuple[float, float] | None = None
    initial_activation: float = 0.0
    activation_early: bool = False
    """Force from the activation at the end of the step instead of its start (MuJoCo's actearly)."""
    muscle: Muscle | None = None
    """Set where it takes the place of `gain` or `bias`."""
    motor: DcMotor | None = None
    """Set where it takes the place of `gain` and `bias`."""


@dataclass
class Drive:
    """A USD joint drive: force = stiffness·(target − q) + damping·(target velocity − qd), clamped; radians and meters.

    Treated implicitly by the Euler integrators, so that stiff drives stay stable.
    """

    name: str
    joint: str
    """A hinge or slide; with `axis`, an equality of kind "axes"."""
    axis: int | None = None
    """Which coordinate of that equality is driven: a free one of 0 to 5."""
    stiffness: float = 0.0
    damping: float = 0.0
    target: float = 0.0
    target_velocity: float = 0.0
    max_force: float = np.inf
    acceleration: bool = False
    """Gains act per unit of the dof's effective inertia at the reference configuration."""
