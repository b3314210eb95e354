"""Numbers that a live viewer may change: controls, and USD attributes that were named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from warpsim.core.errors import InputError
from warpsim.sim.simulator import Simulator
from warpsim.view.page.content import SliderInfo

MAXIMUM = 64
"""Sliders of controls: nobody moves more."""
_HEADINGS = {
    "actuator": "Actuators",
    "drive_target": "Drive targets",
    "drive_velocity": "Drive velocities",
    "joint_force": "Joint forces",
}


class Slider:
    """One number.

    Attributes:
        control: Name of the control that it is a part of; None: an attribute.
        place: In the flattened control of a world.
        value: As it is now, in the unit of the simulator or, of an attribute, of the file.
    """

    def __init__(self, info: SliderInfo, control: str | None = None, place: int = 0) -> None:
        self._info, self.control, self.place = info, control, place
        self.value = info.value

    def facts(self) -> SliderInfo:
        """For the page."""
        return self._info

    def set(self, sim: Simulator, value: float) -> None:
        """Takes a value, within the slider's ends."""
        self.value = float(np.clip(value, self._info.low, self._info.high))
        if self.control is None:
            sim.set_parameters({self._info.name: self.value})


def control_sliders(sim: Simulator) -> Iterator[Slider]:
    """One for each number of the controls, but for wrenches, forces on free bodies, and what moves other matters."""
    authored = {name: value[0, 0].reshape(-1).tolist() for name, value in sim.all_controls(1).items()}
    free = tuple(f"{joint.name}:" for joint in sim.scene.joints if joint.kind == "free")  # the mouse pulls at those
    left = MAXIMUM
    for control in sim.control_names:
        if control not in _HEADINGS:
            continue
        for place, (name, low, high, unit) in enumerate(_ranges(sim, control)):
            if left == 0:
                return
            if control == "joint_force" and f"{name}:".startswith(free):
                continue
            left -= 1
            value = authored[control][place]
            low, high = min(low, value), max(high, value)
            yield Slider(SliderInfo(name, low, high, value, unit, _HEADINGS[control]), control, place)


def _ranges(sim: Simulator, control: str) -> Iterator[tuple[str, float, float, str]]:
    """Name, ends and unit of each number of a control."""
    joints = {joint.name: joint for joint in sim.scene.joints}
    if control == "actuator":
        ranges = {actuator.name: actuator.control_range for actuator in sim.scene.actuators}
        for name in sim.actuator_names:
            low, high = ranges.get(name) or (-1.0, 1.0)
            yield name, float(low), float(high), ""
    elif control in ("drive_target", "drive_velocity"):
        drives = {drive.name: drive for drive in sim.scene.drives}
        for name in sim.drive_names:
            joint = joints.get(drives[name].joint) if name in drives else None
            slides = joint is not None and joint.kind == "slide"
            limit = None if joint is None or control == "drive_velocity" else joint.limit
            low, high = (-1.0, 1.0) if slides else (-np.pi, np.pi)
            if limit is not None:
                low, high = max(low, limit[0]), min(high, limit[1])
            yield name, low, high, ("m" if slides else "rad") + ("/s" if control == "drive_velocity" else "")
    else:
        weight = 9.81 * float(sim.model.body.mass.numpy()[0].sum())
        for name in sim.dof_names:
            yield name, -weight, weight, "N, N·m"


def attribute_sliders(sim: Simulator, ends: Mapping[str, tuple[float, float]]) -> Iterator[Slider]:
    """One for each USD attribute that was named.

    Raises:
        InputError: An attribute that is not one number, or ends that are no range.
    """
    for path, (low, high) in ends.items():
        numbers = np.asarray(sim.attribute(path).numbers, dtype=float).reshape(-1)
        if len(numbers) != 1:
            raise InputError(f"slider {path!r}: the attribute has {len(numbers)} numbers; a slider moves one")
        if not low < high:
            raise InputError(f"slider {path!r}: {low:g} to {high:g} is no range")
        yield Slider(SliderInfo(path, float(low), float(high), float(numbers[0]), "", "Attributes"))
