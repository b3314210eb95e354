"""Damping of position servos that is given as a ratio of the critical one, as MuJoCo's compiler resolves it."""

from __future__ import annotations

import numpy as np

from warpsim.rigid.compile.derive import Derivation
from warpsim.rigid.compile.inverse_weights import InverseWeights
from warpsim.rigid.model.model import Model
from warpsim.scene import Scene


def set_ratio_damping(model: Model, scene: Scene) -> None:
    """Sets the bias of servos with a damping ratio ζ to −2 ζ √(kp m), 1/m = j M⁻¹ jᵀ with j the servo's moment arms.

    M is that of the reference configuration. The number becomes an authored parameter: changing masses later does not
    change it.
    """
    servos = [(i, actuator) for i, actuator in enumerate(scene.actuators) if actuator.damping_ratio > 0]
    if not servos:
        return
    Derivation(model)  # fills masses, on which inverse weights depend
    InverseWeights(model).run(model)
    layout = model.layout
    inverse = {"joint": model.weight.dof.numpy()[0], "tendon": model.weight.tendon.numpy()[0]}
    bias = model.authored["actuator.bias"].numpy()
    for i, actuator in servos:
        if actuator.transmission == "joint":
            place = int(layout.joint_dof[layout.joint(actuator.target)])
        else:
            place = layout.tendon_names.index(actuator.target)
        mass = 1.0 / (actuator.gear[0] ** 2 * inverse[actuator.transmission][place])
        bias[:, i, 2] = -2.0 * actuator.damping_ratio * np.sqrt(actuator.gain[0] * mass)
    model.authored["actuator.bias"].assign(bias)
