"""What a scene will contain once it is compiled: sizes, names, fields of states, controls and outputs.

Of rigid bodies nothing is compiled for this, so that a command that only tells of a scene starts at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import warp as wp

from warpsim.coupling.fields import scene_fields
from warpsim.matter.matter import CompileContext, Matter
from warpsim.rigid.model.fields import control_fields, observable_fields, output_fields
from warpsim.rigid.model.outline import BodyOutline, outline_bodies
from warpsim.scene import Scene
from warpsim.scene.matters import matter_kind
from warpsim.tape.program import Field


@dataclass(frozen=True)
class SceneOutline:
    """Fields as those of the `CompiledScene`, for one world.

    Attributes:
        model: Its rigid bodies.
        matters: What else there is, compiled: only a kind of matter itself knows its fields.
    """

    model: BodyOutline
    matters: tuple[Matter, ...] = ()

    @property
    def has_bodies(self) -> bool:
        """Whether the state has coordinates of bodies."""
        return bool(self.model.nv) or not self.matters

    @property
    def matter_state(self) -> tuple[Field, ...]:
        """Fields of the state that are no bodies'."""
        return tuple(f for m in self.matters for f in scene_fields(m, m.state))

    @property
    def controls(self) -> dict[str, Field]:
        """Everything that a step can be given."""
        rigid = control_fields(self.model) if self.has_bodies else {}
        return {**rigid, **{f.name: f for m in self.matters for f in scene_fields(m, m.controls)}}

    @property
    def outputs(self) -> dict[str, Field]:
        """Everything that a rollout can report."""
        rigid = output_fields(self.model) if self.has_bodies else observable_fields(self.model)
        return {**rigid, **{f.name: f for m in self.matters for f in scene_fields(m, (*m.outputs, *m.observables))}}


def outline_scene(scene: Scene) -> SceneOutline:
    """Tells what a scene will contain."""
    bodies = outline_bodies(scene)
    if not scene.matters:
        return SceneOutline(bodies)
    context = CompileContext(1, wp.get_device("cpu"), bodies.layout.body_names, scene)
    matters = tuple(matter_kind(d.kind).compile(d, context) for d in scene.matters)
    for matter in matters:
        matter.check()
    return SceneOutline(bodies, matters)
