"""What `stress` changes: the scene and the way of its controls, one thing at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from warpsim.scene import Scene
from warpsim.task.transmission import Transmission

NOISE = 0.01
"""Standard deviation of control noise: share of the control's range, or of its value where that is open."""


def _as_it_is(scene: Scene) -> Scene:
    return scene


@dataclass(frozen=True)
class Variation:
    """One change.

    Attributes:
        name: For people.
        scene: Makes the changed scene; the time step is changed by `step`.
        step: Factor of the time step.
        transmission: What becomes of controls on their way; None: they arrive.
    """

    name: str
    scene: Callable[[Scene], Scene] = _as_it_is
    step: float = 1.0
    transmission: Transmission | None = None


def variations(scene: Scene, *, contacts: bool, controls: bool, seed: int = 0) -> Iterator[Variation]:
    """All that apply.

    Args:
        scene: Of the result.
        contacts: Whether anything in it can collide.
        controls: Whether the task has controls.
        seed: Of control noise.
    """
    o = scene.options
    yield Variation("half step", step=0.5)
    yield Variation("double step", step=2.0)
    other = other_integrator(scene)
    yield Variation(f"integrator {other}", partial(_options, integrator=other))
    for factor, sign in ((0.9, "−"), (1.1, "+")):
        yield Variation(f"mass {sign}10 %", partial(scaled_mass, factor=factor))
    if contacts or any(joint.friction_loss for joint in scene.joints):
        for factor, sign in ((0.9, "−"), (1.1, "+")):
            yield Variation(f"friction {sign}10 %", partial(scaled_friction, factor=factor))
    if contacts:
        for factor, sign in ((0.5, "×½"), (2.0, "×2")):
            yield Variation(f"contact stiffness {sign}", partial(scaled_contact, stiffness=factor))
            yield Variation(f"contact damping {sign}", partial(scaled_contact, damping=factor))
        yield Variation(f"impacts {'off' if o.impacts else 'on'}", partial(_options, impacts=not o.impacts))
        if o.contact_softening > 0.0:
            yield Variation("softening off", partial(_options, contact_softening=0.0))
    if controls:
        yield Variation("control noise 1 %", transmission=Transmission(noise=NOISE, seed=seed))
        yield Variation("control 1 step late", transmission=Transmission(delay=1))
        yield Variation("control 3 steps late", transmission=Transmission(delay=3))


def _options(scene: Scene, **changes: Any) -> Scene:
    return replace(scene, options=replace(scene.options, **changes))


def other_integrator(scene: Scene) -> str:
    """The one of another order, or, where stiff drives need implicit steps, the other implicit one."""
    if scene.drives:
        return "implicitfast" if scene.options.integrator == "euler" else "euler"
    return "rk4" if scene.options.integrator != "rk4" else "euler"


def scaled_mass(scene: Scene, factor: float) -> Scene:
    """All masses and inertias times a factor."""

    def times(value: Any) -> Any:
        return None if value is None else factor * value

    bodies = [replace(b, mass=times(b.mass), inertia=times(b.inertia)) for b in scene.bodies]
    shapes = [replace(s, mass=times(s.mass), density=factor * s.density) for s in scene.shapes]
    return replace(scene, bodies=bodies, shapes=shapes)


def scaled_friction(scene: Scene, factor: float) -> Scene:
    """All coefficients of contacts, and dry friction of joints, times a factor."""
    return replace(
        scene,
        shapes=[replace(s, friction=factor * s.friction) for s in scene.shapes],
        contact_overrides=[replace(c, friction=factor * c.friction) for c in scene.contact_overrides],
        joints=[replace(j, friction_loss=factor * j.friction_loss) for j in scene.joints],
    )


def scaled_contact(scene: Scene, *, stiffness: float = 1.0, damping: float = 1.0) -> Scene:
    """Contacts with other springs and dampers; those of a restitution above 0 keep theirs, which follow from it."""

    def changed(solref: np.ndarray) -> np.ndarray:
        return scaled_solref(solref, stiffness, damping)

    overrides = [
        replace(c, solref=changed(c.solref), solref_friction=changed(c.solref_friction))
        for c in scene.contact_overrides
    ]
    shapes = [replace(s, solref=changed(s.solref)) for s in scene.shapes]
    return replace(scene, shapes=shapes, contact_overrides=overrides)


def scaled_solref(solref: np.ndarray, stiffness: float, damping: float) -> np.ndarray:
    """MuJoCo's (time constant τ, damping ratio ζ) or (−k, −b) with k and b times factors: k ∝ 1/(τζ)², b ∝ 1/τ."""
    if solref[0] <= 0.0:
        return np.asarray(solref) * (stiffness, damping)
    return np.array([solref[0] / damping, solref[1] * damping / np.sqrt(stiffness)])
