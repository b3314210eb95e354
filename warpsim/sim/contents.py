"""What a compiled scene contains: sizes, names, and things looked up by name or USD path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from warpsim.core.errors import InputError, unknown_name
from warpsim.core.names import Handle, find
from warpsim.coupling.compiled import CompiledScene
from warpsim.rigid.model import joint_names as joints
from warpsim.rigid.model.model import Model
from warpsim.sim.control_names import ControlNames


class SceneOwner(Protocol):
    """What holds a compiled scene, and may replace it by one with more room for contacts: an engine."""

    compiled: CompiledScene


class Contents:
    """Sizes and names of a model and of the controls chosen for it."""

    def __init__(self, owner: SceneOwner, controls: ControlNames) -> None:
        self._owner = owner
        self._controls = controls

    @property
    def model(self) -> Model:
        """The compiled bodies; when contacts need more places others, over the same parameters."""
        return self._owner.compiled.model

    @property
    def compiled(self) -> CompiledScene:
        """The compiled scene: bodies and other matters, as named fields."""
        return self._owner.compiled

    @property
    def state_names(self) -> tuple[str, ...]:
        """Fields of the state that carry gradients: "q", "qd", "activation", and "matter.field" of other matters."""
        return tuple(f.name for f in self.compiled.state if f.differentiable)

    @property
    def worlds(self) -> int:
        """W, independent copies that are stepped together."""
        return self.model.worlds

    @property
    def nq(self) -> int:
        """Length of q."""
        return self.model.nq

    @property
    def nv(self) -> int:
        """Length of qd: degrees of freedom."""
        return self.model.nv

    @property
    def control_names(self) -> tuple[str, ...]:
        """The controls a step takes, in the order in which one tensor holds them."""
        return self._controls.names

    @property
    def control_size(self) -> int:
        """Numbers of control per world and step."""
        return self._controls.size

    def control_slice(self, name: str) -> slice:
        """Where a control lies in the tensor of all controls."""
        return self._controls.slice(name)

    @property
    def output_names(self) -> tuple[str, ...]:
        """Outputs that can be asked for."""
        return tuple(self.compiled.outputs)

    def check_outputs(self, outputs: Sequence[str]) -> tuple[str, ...]:
        """The outputs a caller asks for, each once; states, which are always shown, are left out.

        Raises:
            InputError: There is no such output, or nothing it could report on.
        """
        if isinstance(outputs, str):
            raise InputError(f"outputs={outputs!r}; give a list of names, e.g. ({outputs!r},)")
        known, states = self.compiled.outputs, {f.name for f in self.compiled.state}
        outputs = [name for name in outputs if name not in states]
        for name in outputs:
            if name not in known:
                raise unknown_name("output", name, known)
            if not known[name].nbytes:
                raise InputError(f"output {name!r} is empty: this scene has nothing it could report on; leave it out")
        return tuple(dict.fromkeys(outputs))

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Parameters that can be set and differentiated, "group.field"."""
        return tuple(self.compiled.authored)

    @property
    def body_names(self) -> tuple[str, ...]:
        """Bodies in the order of outputs and of "body.…" parameters; [0] is the world, named ""."""
        return self.model.layout.body_names

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Joints in the order of q."""
        return self.model.layout.joint_names

    @property
    def dof_names(self) -> tuple[str, ...]:
        """One name per dof, in the order of qd."""
        return joints.dof_names(self.model.layout)

    @property
    def actuator_names(self) -> tuple[str, ...]:
        """Actuators in the order of the control "actuator"."""
        return self.model.layout.actuator_names

    @property
    def drive_names(self) -> tuple[str, ...]:
        """Drives in the order of the control "drive_target"."""
        return self.model.layout.drive_names

    @property
    def sensor_names(self) -> tuple[str, ...]:
        """Sensors in the order of the output "sensors"."""
        return tuple(sensor.name for sensor in self.model.sensors)

    def body(self, name: str) -> Handle:
        """A body by name or USD path."""
        return find("body", name, self.body_names)

    def joint(self, name: str) -> joints.JointHandle:
        """A joint by name or USD path, with its places in q and qd."""
        return joints.find_joint(self.model.layout, name)

    def dof(self, name: str) -> Handle:
        """A degree of freedom by name."""
        return find("dof", name, self.dof_names)

    def actuator(self, name: str) -> Handle:
        """An actuator by name or USD path."""
        return find("actuator", name, self.actuator_names)

    def drive(self, name: str) -> Handle:
        """A drive by name or USD path."""
        return find("drive", name, self.drive_names)
