"""What is measured: the cases, as data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
ASSETS = HERE.parents[2] / "shared" / "assets"
"""Third-party robots, which stand beside the project and are not part of it."""

LEAST_PUSH = 1e-3
"""m."""


@dataclass(frozen=True)
class Case:
    """One simulation to time."""

    name: str
    model: str
    """MJCF file: `models/…` is our own, others are relative to `ASSETS`."""
    worlds: int
    steps: int
    integrator: str = "euler"
    """One of warpsim's integrator names: euler, implicitfast, rk4."""
    contact: bool = False
    """False leaves out all constraints: contacts, joint limits, dry friction, equalities."""
    settle_steps: int = 0
    """Steps that MuJoCo runs before the measured start, e.g. to bring a robot down to the ground."""
    least_contacts: int = 0
    """Fewer at the start or the end, in any world, and the case is not what it says."""
    pushed: str = ""
    """Body that must have moved by `LEAST_PUSH` at the end."""
    tolerance: float = 1e-6
    """Largest deviation of the final q and qd from MuJoCo's, over their largest magnitude."""

    gradient_tolerance: float = 1e-5
    """Largest relative error of a gradient against central differences."""

    @property
    def path(self) -> Path:
        """Where the model file is expected."""
        return (HERE if self.model.startswith("models/") else ASSETS) / self.model


@dataclass(frozen=True)
class Inputs:
    """What every side starts from."""

    q: np.ndarray
    """(worlds, nq) in MuJoCo's layout."""
    qd: np.ndarray
    """(worlds, nv)."""
    controls: np.ndarray
    """(worlds, steps, nu) actuator inputs."""


_HUMANOID = "mujoco_humanoid/mjcf/humanoid.xml"


def _humanoid_on_ground(name: str, *, worlds: int, steps: int) -> Case:
    """A fallen humanoid. Contact lets tiny differences grow, so the tolerance is wider and horizons are short."""
    return Case(name, _HUMANOID, worlds, steps, contact=True, settle_steps=400, least_contacts=1, tolerance=1e-4)


def _quadruped(name: str, *, worlds: int, steps: int) -> Case:
    """A quadruped that stands on its four feet."""
    return Case(
        name,
        "models/quadruped.xml",
        worlds,
        steps,
        "implicitfast",
        contact=True,
        settle_steps=200,
        least_contacts=4,
        tolerance=1e-4,
    )


CASES: dict[str, Case] = {
    case.name: case
    for case in (
        Case("cartpole", "brax_cartpole/mjcf/inverted_pendulum.xml", worlds=1, steps=500),
        Case("humanoid-smooth", _HUMANOID, worlds=1, steps=1000),
        Case("humanoid-smooth-64", _HUMANOID, worlds=64, steps=20),
        _humanoid_on_ground("humanoid-ground", worlds=1, steps=200),
        _humanoid_on_ground("humanoid-ground-256", worlds=256, steps=10),
        Case(
            "ant-ground", "brax_ant/mjcf/ant.xml", worlds=1, steps=100, contact=True, settle_steps=100, tolerance=1e-4
        ),
        Case("ant-smooth", "brax_ant/mjcf/ant.xml", worlds=1, steps=1000),
        Case("cartpole-smooth", "brax_cartpole/mjcf/inverted_pendulum.xml", worlds=1, steps=1000),
        Case("hopper-ground", "brax_hopper/mjcf/hopper.xml", worlds=1, steps=100, contact=True, settle_steps=100),
        _quadruped("quadruped-ground", worlds=1, steps=100),
        _quadruped("quadruped-ground-64", worlds=64, steps=20),
        Case(
            "arm-object",
            "models/arm_object.xml",
            worlds=1,
            steps=100,
            contact=True,
            settle_steps=125,
            least_contacts=2,
            pushed="box",
            tolerance=1e-4,
        ),
    )
}
