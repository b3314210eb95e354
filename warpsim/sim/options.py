"""What a simulator can be told about its scene when it is made."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypedDict

from warpsim.core.errors import unknown_name, whole_number
from warpsim.io.load import SceneSource, load_scene, source_path, warn_of_ledger
from warpsim.scene import Scene
from warpsim.scene.convergence import with_stop

_OF_SCENE = ("impacts", "contact_softening", "softening_pass", "max_contacts")


class SimulatorOptions(TypedDict, total=False):
    """Keyword arguments of `Simulator` about how a scene is read and stepped; what is left out is as in the scene.

    Attributes:
        strict: Whether physics that is not modeled raises; None: see `load_scene`.
        keyframe: MJCF only: the keyframe that gives the initial state.
        sensor_seed: Seed of the sensors' noise, whose standard deviations the scene gives; None: exact sensors. A
            number depends on the seed, its world, its step (of the rollout, or since the last full reset) and its
            sensor alone.
        impacts: Whether bounces and landings are impacts at their own moment within a step, with the authored
            restitution and gradients that are the motion's (see docs/differentiation.md).
        contact_softening: How far outside their margins contacts begin to act, m; 0: contacts as they are. An aid to
            optimization with a bias (see docs/contact.md).
        softening_pass: Where softening acts: "both" passes, or "backward", which changes gradients only.
        max_contacts: Contacts per world for which there is room from the start, and no more: a step with more raises.
            Left out, and not set in the scene, room is made as contacts need it.
        iterations: "converged": the constraint solver goes to the optimum, whatever cap the scene sets on it;
            "authored": it stops at the scene's cap, and there are no gradients. Left out: "converged", unless the scene
            was made otherwise in Python.
        unconverged: What a gradient does about a step whose solver did not converge all the same: "raise"
            `UnconvergedError`, which names step, world and residual, or "warn" and return what was computed.
    """

    strict: bool | None
    keyframe: str | None
    sensor_seed: int | None
    impacts: bool | None
    contact_softening: float | None
    softening_pass: str | None
    max_contacts: int | None
    iterations: str | None
    unconverged: str


def read_scene(source: SceneSource, options: SimulatorOptions) -> Scene:
    """The scene that a simulator with these options runs; warns of what its file leaves open.

    Raises:
        UnknownNameError: There is no such option.
    """
    for name in options:
        if name not in SimulatorOptions.__annotations__:
            raise unknown_name("option", name, SimulatorOptions.__annotations__)
    strict = options.get("strict")
    loaded = load_scene(source, strict=strict, keyframe=options.get("keyframe"))
    scene = with_stop(loaded, options.get("iterations"))
    if strict is not False and not isinstance(source, Scene):
        warn_of_ledger(scene, str(source_path(source) or scene.name))
    max_contacts = options.get("max_contacts")
    if max_contacts is not None:
        whole_number("max_contacts", max_contacts)
    chosen: dict[str, Any] = {name: value for name, value in options.items() if name in _OF_SCENE and value is not None}
    return replace(scene, options=replace(scene.options, **chosen)) if chosen else scene
