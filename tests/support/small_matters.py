"""Small matters of the tests' own: one that sinks and meets nothing, one that pushes a body."""

from __future__ import annotations

import numpy as np
import warp as wp

from warpsim.core.precision import real, vec3, vec6
from warpsim.matter import Matter, MatterDescription, MatterKind, register_matter
from warpsim.tape.program import Field


@wp.kernel
def _sink_kernel(
    timestep: wp.array(dtype=real),
    rate: wp.array(dtype=real),
    push: wp.array2d(dtype=real),
    level: wp.array2d(dtype=real),
    after: wp.array2d(dtype=real),
):
    w, i = wp.tid()
    after[w, i] = level[w, i] + timestep[w] * (push[w, i] - rate[w] * level[w, i])


@wp.kernel
def _push_kernel(force: wp.array(dtype=real), wrench: wp.array2d(dtype=vec6)):
    w = wp.tid()
    zero = real(0.0)
    wrench[w, 1] = vec6(force[w], zero, zero, zero, zero, zero)


@wp.kernel
def _seen_kernel(
    position: wp.array2d(dtype=vec3),
    com: wp.array2d(dtype=vec3),
    velocity: wp.array2d(dtype=vec6),
    mass: wp.array2d(dtype=real),
    seen: wp.array2d(dtype=real),
):
    w = wp.tid()
    seen[w, 0] = position[w, 1][0]
    seen[w, 1] = com[w, 1][1]
    seen[w, 2] = velocity[w, 1][3]
    seen[w, 3] = mass[w, 1]


class Sink(Matter):
    """Levels that sink at a rate."""

    def __init__(self, description, context) -> None:
        super().__init__(description, context)
        shape = (self.worlds, len(description.initial["level"]))
        self.state, self.controls = (Field("level", shape, real),), (Field("push", shape, real),)

    def finish(self, state, inputs, work, around, next_state, outputs) -> None:
        given = [around.timestep, self.physical["rate"], inputs.push, state.level]
        wp.launch(_sink_kernel, dim=state.level.shape, inputs=given, outputs=[next_state.level])


class Push(Matter):
    """A force along x on the first body, and what it sees of that."""

    meets_bodies = True

    def __init__(self, description, context) -> None:
        super().__init__(description, context)
        self.outputs = (Field("seen", (self.worlds, 4), real),)

    def forces(self, state, inputs, work, around) -> None:
        wp.launch(_push_kernel, dim=self.worlds, inputs=[self.physical["force"]], outputs=[around.bodies.wrench])

    def finish(self, state, inputs, work, around, next_state, outputs) -> None:
        if "seen" in outputs:
            b = around.bodies
            given = [b.position, b.com, b.velocity, b.mass]
            wp.launch(_seen_kernel, dim=self.worlds, inputs=given, outputs=[outputs["seen"]])


class SinkKind(MatterKind):
    name = "test sink"

    def compile(self, description, context) -> Sink:
        return Sink(description, context)


class PushKind(MatterKind):
    name = "test push"

    def compile(self, description, context) -> Push:
        return Push(description, context)


for kind in (SinkKind(), PushKind()):
    register_matter(kind)


def decay(name: str, rate: float = 1.5) -> MatterDescription:
    """Two levels that sink."""
    return MatterDescription("test sink", name, parameters={"rate": np.array(rate)}, initial={"level": np.ones(2)})


def push(name: str, force: float) -> MatterDescription:
    """So many newtons along x."""
    return MatterDescription("test push", name, parameters={"force": np.array(force)})
