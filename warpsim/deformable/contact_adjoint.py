"""Adjoint of the contacts at fixed acceleration: of places, velocities, shapes, contact stiffness and the time step.

As for elements, the adjoint of a taped kernel runs over copies in shared scratch, one for each pair of a shape and a
vertex, and sums follow in a fixed order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import warp as wp

from warpsim.core.indexing import natural
from warpsim.core.precision import quat, real, vec3
from warpsim.deformable.contact import Contacts, contact_work

OF_SHAPES = {"position": vec3, "rotation": quat, "size": vec3, "friction": real}
OF_VERTICES = {"stiffness": real, "damping": real, "radius": real}
_COPIES = {"x": vec3, "v": vec3, "a": vec3, "multiplier": vec3, **OF_SHAPES, **OF_VERTICES, "h": real, "work": real}


@wp.kernel(enable_backward=False)
def _copy_kernel(
    c: Contacts,
    time_step: wp.array(dtype=real),
    state_x: wp.array2d(dtype=vec3),
    state_v: wp.array2d(dtype=vec3),
    next_v: wp.array2d(dtype=vec3),
    state_multiplier: wp.array2d(dtype=vec3),
    # out
    x: wp.array3d(dtype=vec3),
    v: wp.array3d(dtype=vec3),
    a: wp.array3d(dtype=vec3),
    multiplier: wp.array3d(dtype=vec3),
    position: wp.array3d(dtype=vec3),
    rotation: wp.array3d(dtype=quat),
    size: wp.array3d(dtype=vec3),
    friction: wp.array3d(dtype=real),
    stiffness: wp.array3d(dtype=real),
    damping: wp.array3d(dtype=real),
    radius: wp.array3d(dtype=real),
    h: wp.array3d(dtype=real),
    seed: wp.array3d(dtype=real),
):
    """What each pair reads; seeds θ̄ = −∂_θ(λᵀ∇s)."""
    w, s, i = wp.tid()
    x[w, s, i] = state_x[w, i]
    v[w, s, i] = state_v[w, i]
    a[w, s, i] = (next_v[w, i] - state_v[w, i]) / time_step[w]
    multiplier[w, s, i] = state_multiplier[w, i]
    position[w, s, i] = c.position[w, s]
    rotation[w, s, i] = c.rotation[w, s]
    size[w, s, i] = c.size[w, s]
    friction[w, s, i] = c.friction[w, s]
    stiffness[w, s, i] = c.stiffness[w, i]
    damping[w, s, i] = c.damping[w, i]
    radius[w, s, i] = c.radius[w, i]
    h[w, s, i] = time_step[w]
    seed[w, s, i] = real(-1.0)


@wp.kernel(enable_backward=False)
def _vertex_sum_kernel(
    by_x: wp.array3d(dtype=vec3),
    by_v: wp.array3d(dtype=vec3),
    by_stiffness: wp.array3d(dtype=real),
    by_damping: wp.array3d(dtype=real),
    by_radius: wp.array3d(dtype=real),
    # in and out
    adj_x: wp.array2d(dtype=vec3),
    adj_v: wp.array2d(dtype=vec3),
    adj_stiffness: wp.array2d(dtype=real),
    adj_damping: wp.array2d(dtype=real),
    adj_radius: wp.array2d(dtype=real),
):
    w, i = wp.tid()
    for s in range(by_x.shape[1]):
        adj_x[w, i] += by_x[w, s, i]
        adj_v[w, i] += by_v[w, s, i]
        adj_stiffness[w, i] += by_stiffness[w, s, i]
        adj_damping[w, i] += by_damping[w, s, i]
        adj_radius[w, i] += by_radius[w, s, i]


@wp.kernel(enable_backward=False)
def _shape_sum_kernel(
    by_position: wp.array3d(dtype=vec3),
    by_rotation: wp.array3d(dtype=quat),
    by_size: wp.array3d(dtype=vec3),
    by_friction: wp.array3d(dtype=real),
    # in and out
    adj_position: wp.array2d(dtype=vec3),
    adj_rotation: wp.array2d(dtype=quat),
    adj_size: wp.array2d(dtype=vec3),
    adj_friction: wp.array2d(dtype=real),
):
    w, s = wp.tid()
    for i in range(by_position.shape[2]):
        adj_position[w, s] += by_position[w, s, i]
        adj_rotation[w, s] += by_rotation[w, s, i]
        adj_size[w, s] += by_size[w, s, i]
        adj_friction[w, s] += by_friction[w, s, i]


@wp.kernel(enable_backward=False)
def _step_sum_kernel(by_h: wp.array3d(dtype=real), adj_time_step: wp.array(dtype=real)):
    w = natural(wp.tid())
    total = real(0.0)
    for s in range(by_h.shape[1]):
        for i in range(by_h.shape[2]):
            total += by_h[w, s, i]
    adj_time_step[w] += total


class ContactAdjoint:
    """Copies for each pair, and the launches of the adjoint."""

    def __init__(self, model: Any) -> None:
        """Makes room for a `DeformableModel`."""
        self._model, self._contacts = model, model.contacts
        shape = (model.worlds, self._contacts.count, model.count)
        self._copies = {
            name: wp.zeros(shape, dtype=dtype, device=model.device, requires_grad=True)
            for name, dtype in _COPIES.items()
        }
        self._shape: tuple[int, ...] = tuple(np.array(shape).tolist())

    def run(self, state: Mapping[str, wp.array], next_state: Mapping[str, wp.array], multiplier: wp.array) -> None:
        """Adds to the gradients of the state and of the parameters, given λ."""
        p, c = self._model.physical, self._copies
        worlds, shapes, vertices = self._shape

        def launch(kernel: wp.Kernel, dim: Any, inputs: list, outputs: list) -> None:
            wp.launch(kernel, dim=dim, inputs=inputs, outputs=outputs, device=self._model.device, record_tape=False)

        copied = [c[name] for name in _COPIES if name != "work"]
        for array in copied:
            array.grad.zero_()
        inputs = [self._contacts, p["time_step"], state["x"], state["v"], next_state["v"], multiplier]
        launch(_copy_kernel, self._shape, inputs, [*copied, c["work"].grad])
        wp.launch(
            contact_work,
            dim=self._shape,
            inputs=[self._contacts.kind, *copied],
            outputs=[c["work"]],
            adj_inputs=[None, *(array.grad for array in copied)],
            adj_outputs=[c["work"].grad],
            adjoint=True,
            device=self._model.device,
            record_tape=False,
        )
        by = [c[name].grad for name in ("x", "v", *OF_VERTICES)]
        into = [state["x"].grad, state["v"].grad, *(p[f"contact.{name}"].grad for name in OF_VERTICES)]
        launch(_vertex_sum_kernel, (worlds, vertices), by, into)
        into = [p[f"obstacles.{name}"].grad for name in OF_SHAPES]
        launch(_shape_sum_kernel, (worlds, shapes), [c[name].grad for name in OF_SHAPES], into)
        launch(_step_sum_kernel, worlds, [c["h"].grad], [p["time_step"].grad])
