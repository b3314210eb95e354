"""Random MuJoCo models and states: every seed compiles, and the same seed gives the same model for ever.

The models hold what smooth dynamics can hold: several trees with fixed and floating bases, every joint kind and
compounds of them, jointless and massless bodies, full inertias, springs, dampers, armature, gravity compensation,
fixed tendons, actuators of every modeled kind, a medium. Constraints (limits, dry friction, equalities, contacts) are
added on request.
"""

from __future__ import annotations

from dataclasses import dataclass
from xml.etree import ElementTree

import mujoco
import numpy as np

INTEGRATORS = ("Euler", "RK4", "implicitfast")

_JOINT_SETS = (
    ("hinge",),
    ("hinge",),
    ("slide",),
    ("ball",),
    ("ball",),
    ("hinge", "hinge"),
    ("slide", "hinge"),
    ("hinge", "slide"),
    ("slide", "ball"),
    ("hinge", "hinge", "hinge"),
    ("slide", "slide", "hinge"),
    ("hinge", "slide", "hinge"),
    (),
)
"""What hangs a body on its parent, the last one fixed; the weights are in the repetition."""

_ACTUATOR_KINDS = ("motor", "position", "velocity", "general", "general", "integrator", "filter", "filterexact")


@dataclass(frozen=True)
class RandomState:
    """A state and inputs of a model, in MuJoCo's layout."""

    qpos: np.ndarray
    qvel: np.ndarray
    act: np.ndarray
    ctrl: np.ndarray
    qfrc_applied: np.ndarray
    xfrc_applied: np.ndarray

    def apply(self, data: mujoco.MjData) -> None:
        """Copies the state into `data`."""
        for field in self.__dataclass_fields__:
            getattr(data, field)[:] = getattr(self, field)


def random_state(model: mujoco.MjModel, seed: int, *, speed: float = 1.0) -> RandomState:
    """A state anywhere in configuration space, with unit quaternions and forces on every dof and body.

    Args:
        model: The model.
        seed: Same seed, same state.
        speed: Scale of the velocities, in m/s and rad/s.
    """
    rng = np.random.default_rng([seed, 1])
    qpos = model.qpos0 + rng.uniform(-1.2, 1.2, model.nq)
    for kind, offset in ((mujoco.mjtJoint.mjJNT_FREE, 3), (mujoco.mjtJoint.mjJNT_BALL, 0)):
        for first in model.jnt_qposadr[model.jnt_type == kind] + offset:
            qpos[first : first + 4] = _unit(rng, 4)
    xfrc = rng.normal(size=(model.nbody, 6))
    xfrc[0] = 0.0
    return RandomState(
        qpos=qpos,
        qvel=speed * rng.normal(size=model.nv),
        act=rng.normal(size=model.na),
        ctrl=rng.normal(size=model.nu),
        qfrc_applied=rng.normal(size=model.nv),
        xfrc_applied=xfrc,
    )


def random_mjcf(
    seed: int,
    *,
    bodies: int = 8,
    tendons: int = 2,
    actuators: int = 6,
    sites: int = 3,
    integrator: str = "Euler",
    medium: bool = False,
    limits: bool = False,
    friction_loss: bool = False,
    equalities: int = 0,
    contacts: bool = False,
) -> str:
    """The XML of a random model.

    Args:
        seed: Same arguments, same model.
        bodies: Number of bodies, at least 1; massless ones bring one more each.
        tendons: Number of fixed tendons, where there are hinges or slides to run over.
        actuators: Number of actuators, where there is something to act on.
        sites: Number of sites.
        integrator: One of INTEGRATORS.
        medium: Whether the world is filled with a windy, viscous medium.
        limits: Whether some joints and tendons are limited.
        friction_loss: Whether some joints and tendons have dry friction.
        equalities: Number of equality constraints of random kinds.
        contacts: Whether bodies carry geoms that collide, with each other and with a floor.
    """
    if integrator not in INTEGRATORS:
        raise ValueError(f"integrator {integrator!r}; use one of {INTEGRATORS}")
    builder = _Builder(seed, limits=limits, friction_loss=friction_loss, contacts=contacts)
    builder.set_options(integrator, medium)
    for _ in range(bodies):
        builder.add_body()
    for _ in range(sites):
        builder.add_site()
    for _ in range(tendons):
        builder.add_tendon()
    for _ in range(actuators):
        builder.add_actuator()
    for _ in range(equalities):
        builder.add_equality()
    return ElementTree.tostring(builder.root, encoding="unicode")


def _unit(rng: np.random.Generator, size: int) -> np.ndarray:
    vector = rng.normal(size=size)
    return vector / np.linalg.norm(vector)


def _text(value: object) -> str:
    """Numbers at full precision, so that the XML loses nothing."""
    if isinstance(value, str):
        return value
    return " ".join(repr(float(number)) for number in np.atleast_1d(value))


class _Builder:
    """Grows the XML tree, one random element at a time."""

    def __init__(self, seed: int, *, limits: bool, friction_loss: bool, contacts: bool) -> None:
        self.rng = np.random.default_rng([seed, 0])
        self.limits, self.friction_loss, self.contacts = limits, friction_loss, contacts
        self.root = ElementTree.Element("mujoco", model=f"random_{seed}")
        self.add(self.root, "compiler", angle="radian", autolimits="true", inertiafromgeom="false")
        self.option = self.add(self.root, "option")
        self.world = self.add(self.root, "worldbody")
        self.sections: dict[str, ElementTree.Element] = {}
        self.bodies: list[ElementTree.Element] = []
        self.joints: dict[str, str] = {}  # name → kind
        self.counts: dict[str, int] = {}
        if contacts:
            self.add(self.world, "geom", name="floor", type="plane", size="0 0 1", pos="0 0 -1")

    # ---- helpers

    def add(self, parent: ElementTree.Element, tag: str, **attributes: object) -> ElementTree.Element:
        """Appends an element; attributes that are None are left out."""
        given = {name: _text(value) for name, value in attributes.items() if value is not None}
        return ElementTree.SubElement(parent, tag, given)

    def section(self, tag: str) -> ElementTree.Element:
        if tag not in self.sections:
            self.sections[tag] = self.add(self.root, tag)
        return self.sections[tag]

    def name(self, kind: str) -> str:
        self.counts[kind] = self.counts.get(kind, 0) + 1
        return f"{kind}{self.counts[kind] - 1}"

    def names(self, kind: str) -> list[str]:
        return [f"{kind}{index}" for index in range(self.counts.get(kind, 0))]

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def uniform(self, low: float, high: float, size: int | None = None):
        return self.rng.uniform(low, high, size)

    def maybe(self, probability: float, low: float, high: float, size: int | None = None):
        """A number (or `size` of them) between the bounds, or None."""
        value = self.uniform(low, high, size)
        return value if self.chance(probability) else None

    def interval(self, low: float, high: float) -> np.ndarray:
        """A range around zero whose ends are at least `low` and at most `high` away from it."""
        return np.array([-self.uniform(low, high), self.uniform(low, high)])

    def pick(self, options: list[str]) -> str:
        return options[int(self.rng.integers(len(options)))]

    # ---- elements

    def set_options(self, integrator: str, medium: bool) -> None:
        attributes = {"integrator": integrator, "timestep": 0.002, "gravity": self.uniform(-10.0, 10.0, 3)}
        if medium:
            attributes |= {"density": self.uniform(0.5, 50.0), "viscosity": self.uniform(0.001, 0.5)}
            attributes["wind"] = self.uniform(-2.0, 2.0, 3)
        self.option.attrib.update({name: _text(value) for name, value in attributes.items()})
        if not self.contacts:
            self.add(self.option, "flag", contact="disable")

    def add_body(self) -> None:
        at_world = not self.bodies or self.chance(0.2)
        parent = self.world if at_world else self.bodies[int(self.rng.integers(len(self.bodies)))]
        body = self.place_body(parent)
        self.bodies.append(body)
        sets = _JOINT_SETS if self.joints else _JOINT_SETS[:-1]  # every model has at least one dof
        kinds = ("free",) if at_world and self.chance(0.5) else sets[int(self.rng.integers(len(sets)))]
        axes: list[np.ndarray] = []
        for kind in kinds:
            self.add_joint(body, kind, axes)
        if kinds and self.chance(0.1):  # a massless link: a body fixed to it brings the mass
            self.add_inertia(self.place_body(body))
        else:
            self.add_inertia(body)
        if self.contacts:
            self.add_geom(body)

    def place_body(self, parent: ElementTree.Element) -> ElementTree.Element:
        return self.add(
            parent,
            "body",
            name=self.name("b"),
            pos=self.uniform(-0.5, 0.5, 3),
            quat=_unit(self.rng, 4),
            gravcomp=self.maybe(0.2, 0.1, 1.5),
        )

    def add_inertia(self, body: ElementTree.Element) -> None:
        """The inertia of a random box of random mass, as principal moments in a turned frame or as a full matrix."""
        mass, edges = self.uniform(0.3, 3.0), self.uniform(0.1, 0.6, 3)
        squares = edges**2
        principal = mass / 12.0 * (squares.sum() - squares)
        quat, pos = _unit(self.rng, 4), self.uniform(-0.2, 0.2, 3)
        if self.chance(0.5):
            self.add(body, "inertial", pos=pos, mass=mass, quat=quat, diaginertia=principal)
            return
        rotation = np.empty(9)
        mujoco.mju_quat2Mat(rotation, quat)
        rotation = rotation.reshape(3, 3)
        full = rotation @ np.diag(principal) @ rotation.T
        self.add(body, "inertial", pos=pos, mass=mass, fullinertia=full[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]])

    def add_joint(self, body: ElementTree.Element, kind: str, axes: list[np.ndarray]) -> None:
        name = self.name("j")
        self.joints[name] = kind
        scalar = kind in ("hinge", "slide")
        limited = self.limits and kind != "free" and self.chance(0.5)
        ball_limit = np.array([0.0, self.uniform(0.3, 1.5)])
        self.add(
            body,
            "joint",
            name=name,
            type=kind,
            pos=self.uniform(-0.3, 0.3, 3) if kind != "free" else None,
            axis=self.independent_axis(axes) if scalar else None,
            ref=self.maybe(0.3, -0.5, 0.5) if scalar else None,
            springref=self.maybe(0.5, -0.5, 0.5) if scalar else None,
            stiffness=self.maybe(0.2 if kind == "free" else 0.5, 0.5, 20.0),
            damping=self.maybe(0.5, 0.05, 2.0),
            armature=self.maybe(0.5, 0.01, 0.5),
            frictionloss=self.maybe(0.5, 0.05, 1.0) if self.friction_loss else None,
            range=None if not limited else (ball_limit if kind == "ball" else self.interval(0.1, 0.8)),
            margin=self.maybe(0.3, 0.01, 0.1) if limited else None,
            actuatorfrcrange=self.interval(0.2, 3.0) if scalar and self.chance(0.15) else None,
        )

    def independent_axis(self, axes: list[np.ndarray]) -> np.ndarray:
        """A unit vector well apart from the body's earlier axes, so that the mass matrix stays well conditioned."""
        axis = _unit(self.rng, 3)
        while any(abs(axis @ other) > 0.7 for other in axes):
            axis = _unit(self.rng, 3)
        axes.append(axis)
        return axis

    def add_geom(self, body: ElementTree.Element) -> None:
        kind = self.pick(["sphere", "capsule", "box", "cylinder", "ellipsoid"])
        count = {"sphere": 1, "capsule": 2, "cylinder": 2}.get(kind, 3)
        self.add(
            body,
            "geom",
            name=self.name("g"),
            type=kind,
            size=self.uniform(0.05, 0.2, count),
            pos=self.uniform(-0.1, 0.1, 3),
            quat=_unit(self.rng, 4),
            condim=self.pick(["1", "3", "4", "6"]),
            friction=np.array([self.uniform(0.3, 1.2), self.uniform(0.001, 0.01), self.uniform(0.0001, 0.001)]),
            margin=self.maybe(0.3, 0.0, 0.02),
        )

    def add_site(self) -> None:
        parent = self.bodies[int(self.rng.integers(len(self.bodies)))]
        self.add(parent, "site", name=self.name("s"), pos=self.uniform(-0.3, 0.3, 3), quat=_unit(self.rng, 4))

    def scalar_joints(self) -> list[str]:
        return [name for name, kind in self.joints.items() if kind in ("hinge", "slide")]

    def add_tendon(self) -> None:
        joints = self.scalar_joints()
        if not joints:
            return
        chosen = self.rng.permutation(joints)[: int(self.rng.integers(1, 5))]
        low, width = self.uniform(0.0, 0.3), self.uniform(0.05, 0.3)
        slack = [None, low, np.array([low, low + width])][int(self.rng.integers(3))]
        tendon = self.add(
            self.section("tendon"),
            "fixed",
            name=self.name("t"),
            stiffness=self.maybe(0.7, 0.5, 10.0),
            damping=self.maybe(0.7, 0.05, 1.0),
            springlength=slack,
            frictionloss=self.maybe(0.5, 0.05, 1.0) if self.friction_loss else None,
            range=self.interval(0.1, 0.5) if self.limits and self.chance(0.5) else None,
        )
        for joint in chosen:
            self.add(tendon, "joint", joint=str(joint), coef=self.uniform(-1.5, 1.5))

    def add_actuator(self) -> None:
        target = self.transmission()
        if target is None:
            return
        kind = self.pick(list(_ACTUATOR_KINDS))
        common = {
            **target,
            "name": self.name("a"),
            "ctrlrange": self.interval(0.3, 1.5) if self.chance(0.4) else None,
            "forcerange": self.interval(0.5, 5.0) if self.chance(0.3) else None,
        }
        section = self.section("actuator")
        if kind == "motor":
            self.add(section, "motor", **common)
        elif kind == "position":
            self.add(section, "position", kp=self.uniform(0.5, 10.0), kv=self.maybe(0.5, 0.1, 1.0), **common)
        elif kind == "velocity":
            self.add(section, "velocity", kv=self.uniform(0.1, 1.0), **common)
        else:
            self.add(section, "general", **self.affine(kind), **common)

    def affine(self, kind: str) -> dict[str, object]:
        """Gains and biases on length and velocity; the activation dynamics where `kind` names one."""
        attributes: dict[str, object] = {
            "gaintype": self.pick(["fixed", "affine"]),
            "gainprm": self.uniform(-1.0, 1.0, 3),
            "biastype": self.pick(["none", "affine"]),
            "biasprm": np.array([self.uniform(-1.0, 1.0), self.uniform(-2.0, 0.0), self.uniform(-0.5, 0.0)]),
        }
        if kind != "general":
            attributes |= {"dyntype": kind, "dynprm": self.uniform(0.01, 0.2)}
            attributes["actrange"] = self.interval(0.3, 1.5) if self.chance(0.4) else None
            attributes["actearly"] = "true" if self.chance(0.3) else None
        return attributes

    def transmission(self) -> dict[str, object] | None:
        """What an actuator acts on, with a gear of the right number of axes; None if there is nothing."""
        targets = [("joint", name) for name in self.joints]
        targets += [("tendon", name) for name in self.names("t")] * 2
        targets += [("site", name) for name in self.names("s")] * 2
        if not targets:
            return None
        word, name = targets[int(self.rng.integers(len(targets)))]
        axes = {"tendon": 1, "site": 6}.get(word) or {"ball": 3, "free": 6}.get(self.joints[name], 1)
        if word == "joint" and self.joints[name] in ("hinge", "slide") and self.chance(0.1):
            word = "jointinparent"
        gear = self.uniform(0.3, 2.0, axes) * self.rng.choice([-1.0, 1.0], axes)
        return {word: name, "gear": gear}

    def add_equality(self) -> None:
        kind = self.pick(["connect", "weld", "joint", "tendon"])
        section = self.section("equality")
        pool = {"joint": self.scalar_joints(), "tendon": self.names("t")}.get(kind, self.names("b"))
        if not pool:
            return
        names = [str(name) for name in self.rng.permutation(pool)[: int(self.rng.integers(1, 3))]]
        word = kind if kind in ("joint", "tendon") else "body"
        ends = {f"{word}{number}": name for number, name in enumerate(names, start=1)}
        if kind in ("joint", "tendon"):
            self.add(section, kind, polycoef=self.uniform(-0.5, 0.5, 5), **ends)
        elif kind == "connect":
            self.add(section, kind, anchor=self.uniform(-0.2, 0.2, 3), **ends)
        else:
            self.add(section, kind, anchor=self.uniform(-0.2, 0.2, 3), torquescale=self.uniform(0.5, 1.5), **ends)
