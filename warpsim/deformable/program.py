"""Matter as a `Program` for the checkpointed tape: places and velocities, loads and pins, the solver's report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import warp as wp

from warpsim.core.errors import unknown_name
from warpsim.core.precision import numpy_real, real, vec3
from warpsim.deformable.model import DeformableModel
from warpsim.deformable.report import report_kernel
from warpsim.deformable.step_terms import Around
from warpsim.deformable.stepper import Stepper, StepWork
from warpsim.deformable.types import SOLVED
from warpsim.tape.arena import Arena
from warpsim.tape.program import Arrays, Field, SlotValues


def control_fields(model: DeformableModel) -> dict[str, Field]:
    """Every control, by name."""
    return {
        "force": Field("force", (model.worlds, model.count), vec3),  # N, on each vertex
        "pin": Field("pin", (model.worlds, len(model.pinned)), vec3),  # m, pinned vertices at the end of the step
    }


def output_fields(model: DeformableModel) -> dict[str, Field]:
    """Every output, by name; none carries a gradient."""
    w = model.worlds
    fields = (
        Field("energy", (w, 3), real, differentiable=False),  # J: kinetic, elastic, in gravity; at the end of the step
        Field("solver_iterations", (w,), wp.int32, differentiable=False),
        Field("solver_status", (w,), wp.int32, differentiable=False),  # see `types.STATUS_TEXT`
        Field("solver_error", (w,), real, differentiable=False),  # m/s²
    )
    return {f.name: f for f in fields}


class DeformableProgram:
    """Implicit steps of one matter.

    Attributes:
        constants: Controls that are not inputs: no force, pinned vertices at their rest places.
    """

    def __init__(
        self,
        model: DeformableModel,
        *,
        controls: Sequence[str] = (),
        outputs: Sequence[str] = (),
        constants: Mapping[str, wp.array] | None = None,
    ) -> None:
        """Chooses what a rollout varies and reports.

        Args:
            model: What is stepped.
            controls: Names from `control_fields` that become per-step inputs.
            outputs: Names from `output_fields`.
            constants: Arrays (W, …) of the other controls.
        """
        fields, reported = control_fields(model), output_fields(model)
        for kind, names, known in (("control", controls, fields), ("output", outputs, reported)):
            for name in names:
                if name not in known:
                    raise unknown_name(kind, name, known)
        self.model = model
        self.device, self.worlds = model.device, model.worlds
        shape = (model.worlds, model.count)
        self.state = (Field("x", shape, vec3), Field("v", shape, vec3))
        self.inputs = tuple(fields[name] for name in controls)
        self.outputs = tuple(reported[name] for name in outputs)
        self.parameters: Mapping[str, wp.array] = model.physical
        self.constants = dict(constants) if constants is not None else self._held_controls()
        self._stepper = Stepper(model)
        shapes = ("position", "rotation", "velocity", "size", "friction")
        held = {name: model.physical.get(f"obstacles.{name}") for name in shapes}
        self._around = Around(model.physical["time_step"], model.physical["gravity"], **held)

    def _room(self) -> wp.array:
        return wp.zeros((self.worlds, self.model.count), dtype=vec3, device=self.device)

    def _held_controls(self) -> dict[str, wp.array]:
        m = self.model
        places = np.broadcast_to(m.points[m.pinned], (m.worlds, len(m.pinned), 3)).astype(numpy_real)
        return {"force": self._room(), "pin": wp.array(places, dtype=vec3, device=self.device)}

    def initial_state(self) -> dict[str, np.ndarray]:
        """The rest shape, not moving: x and v, (W, n, 3) each."""
        x = self.model.authored["rest"].numpy().copy()
        return {"x": x, "v": np.zeros_like(x)}

    def make_work(self, arena: Arena) -> StepWork:
        """The solver's report."""
        return self._stepper.make_work(arena)

    def step(
        self,
        state: Arrays,
        inputs: Arrays,
        work: StepWork,
        next_state: Arrays,
        outputs: Arrays,
        *,
        tape: wp.Tape | None,
    ) -> None:
        """One implicit step; on the tape, with its adjoint."""
        control = Arrays("control", {**self.constants, **inputs})
        terms = self._stepper.solve(self._around, state, control, work, next_state, tape)
        if outputs:
            given = [terms.inertia, terms.elements, terms.pairs]
            names = ("energy", "solver_iterations", "solver_status", "solver_error")
            wp.launch(
                report_kernel,
                dim=self.worlds,
                inputs=[*given, work.status, work.error, next_state.x, next_state.v],
                outputs=[*(outputs[name] if name in outputs else None for name in names), None],
                device=self.device,
                record_tape=False,
            )

    def unsolved(self, work: StepWork, values: SlotValues) -> np.ndarray:
        """(slots, W) residuals of steps that did not converge, or ended at a saddle; 0 elsewhere."""
        code, error = values(work.status)[..., 1], values(work.error)
        residual = np.where(np.isfinite(error) & (error > 0.0), error, np.inf)
        return np.where(np.isin(code, SOLVED), 0.0, residual)

    def split(self, groups: int) -> list[DeformableProgram]:
        """Programs over contiguous ranges of worlds, sharing this one's parameters."""
        edges = np.linspace(0, self.worlds, groups + 1).astype(int).tolist()
        parts = []
        for first, last in zip(edges[:-1], edges[1:], strict=True):
            constants = {name: a[first:last] if a.size else a for name, a in self.constants.items()}
            parts.append(
                DeformableProgram(
                    self.model.over(first, last),
                    controls=[f.name for f in self.inputs],
                    outputs=[f.name for f in self.outputs],
                    constants=constants,
                )
            )
        return parts
