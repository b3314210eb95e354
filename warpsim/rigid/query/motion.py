"""The motion of a state: kinematics on arrays of its own, and the bodies' poses read from it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import warp as wp

from warpsim.core.errors import InputError, unknown_name
from warpsim.core.precision import numpy_real, quat, vec3
from warpsim.rigid.dynamics.kinematics import kinematics
from warpsim.rigid.model.model import Model
from warpsim.rigid.model.topology import Topology
from warpsim.rigid.work.state import Motion, State, Work, make_work, state_fields
from warpsim.tape.arena import Arena, Arenas, ArenaSize
from warpsim.tape.program import Arrays


class Poses(NamedTuple):
    """Body frames in the world; index 0 is the world itself."""

    position: wp.array  # (W, nbody) vec3, m
    rotation: wp.array  # (W, nbody) quat


@wp.kernel
def _pose_kernel(
    t: Topology,
    link_position: wp.array2d(dtype=vec3),
    link_rotation: wp.array2d(dtype=quat),
    position: wp.array2d(dtype=vec3),
    rotation: wp.array2d(dtype=quat),
):
    w, b = wp.tid()
    position[w, b] = link_position[w, t.body_link[b]]
    rotation[w, b] = link_rotation[w, t.body_link[b]]


def make_state(model: Model, values: dict[str, Any] | None = None, *, requires_grad: bool = False) -> State:
    """A state on the model's device.

    Args:
        model: The model.
        values: `q` (nq,) or (W, nq), `qd`, `activation`, `warm_start`; fields left out are those the scene starts from.
        requires_grad: Whether its arrays carry gradients.
    """
    start = {"q": model.initial_q, "qd": model.initial_qd, "activation": model.initial_activation}
    fields = {f.name: f for f in state_fields(model)}
    given = dict(values or {})
    for name in given:
        if name not in fields:
            raise unknown_name("state", name, fields)
    arrays = {}
    for name, f in fields.items():
        value = np.asarray(given.get(name, start.get(name, np.zeros(f.shape))), numpy_real)
        if value.shape not in (f.shape, f.shape[1:]):
            raise InputError(f"state {name!r} has shape {f.shape} (worlds first) or {f.shape[1:]}; got {value.shape}")
        full = np.ascontiguousarray(np.broadcast_to(value, f.shape))
        carried = requires_grad and f.differentiable
        arrays[name] = wp.array(full, dtype=f.dtype, device=model.device, requires_grad=carried)
    return Arrays("state", arrays)


def evaluate(model: Model, state: State) -> Work:
    """Kinematics of a state on newly allocated, otherwise zero, intermediates; on the active tape, if there is one."""
    size = ArenaSize()
    make_work(model, Arena(model.device, size, None, None))
    work = make_work(model, Arenas(model.device, size, 1, gradients=True)[0])
    kinematics(model, state, work)
    return work


def body_poses(model: Model, state: State, *, motion: Motion | None = None, out: Poses | None = None) -> Poses:
    """Position and rotation of every body's frame; written to `out` if given."""
    motion = motion or evaluate(model, state)
    shape = (model.worlds, model.nbody)
    poses = out or Poses(
        wp.zeros(shape, dtype=vec3, device=model.device, requires_grad=True),
        wp.zeros(shape, dtype=quat, device=model.device, requires_grad=True),
    )
    wp.launch(
        _pose_kernel,
        dim=shape,
        inputs=[model.topology, motion.link_position, motion.link_rotation],
        outputs=[poses.position, poses.rotation],
        device=model.device,
    )
    return poses
