"""warpsim's side of a case: forward rollouts, gradients through the checkpointed tape, and Jacobians of all steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from tools.bench.cases import Case, Inputs
from tools.bench.differences import directional_error
from tools.bench.timing import Workload
from warpsim.core.precision import numpy_real
from warpsim.io.mjcf import read_mjcf
from warpsim.rigid.compile.compile import compile_model
from warpsim.rigid.compile.derive import Derivation
from warpsim.rigid.model.tangent import difference, shift
from warpsim.rigid.step.program import RigidProgram
from warpsim.sim.simulator import Simulator
from warpsim.tape import CheckpointedTape, Memory
from warpsim.tape.segment import Segment

_SEED = 11


@dataclass
class Rollout:
    """One case; the loss is a random linear function of the final state."""

    case: Case
    inputs: Inputs
    threads: int = 1
    segment: int | None = None
    """Steps after which the tape is cut; None: as it is by default."""

    def __post_init__(self) -> None:
        case = self.case
        scene = read_mjcf(case.path)
        scene.options.integrator = case.integrator
        scene.options.constraints = case.contact
        self.model = compile_model(scene, worlds=case.worlds)
        Derivation(self.model).run()
        self.program = RigidProgram(self.model, controls=("actuator",) if self.model.nu else ())
        self.tape = CheckpointedTape(
            self.program, steps=case.steps, threads=self.threads, memory=Memory(segment=self.segment)
        )
        self.state = {"q": self.inputs.q, "qd": self.inputs.qd}
        if self.model.has_constraints:
            self.state["warm_start"] = np.zeros_like(self.inputs.qd)
        self.state = {name: np.ascontiguousarray(value, numpy_real) for name, value in self.state.items()}
        self.controls = np.ascontiguousarray(self.inputs.controls.transpose(1, 0, 2), numpy_real)
        self.weights = np.random.default_rng(_SEED).normal(size=self.inputs.q.shape).astype(numpy_real)
        self.final = np.full((case.worlds, self.model.nq + self.model.nv), np.nan)
        self.gradient: np.ndarray | None = None

    def forward(self) -> None:
        """All steps; keeps the final state."""
        run = self.tape.forward(
            self.state,
            self.inputs_by_name(),
            keep_states=["q", "qd"],
            keep_every=self.case.steps,
            differentiate=False,
        )
        self._finish(run)
        run.release()

    def differentiate(self) -> None:
        """All steps forward and back; keeps the final state and the gradient by all controls, if there are any."""
        run = self.tape.forward(self.state, self.inputs_by_name(), keep_states=["q", "qd"], keep_every=self.case.steps)
        self._finish(run)
        gradients = self.tape.backward(run, state_seeds={"q": {-1: self.weights}})
        if self.model.nu:
            self.gradient = gradients.inputs.actuator.numpy()

    def gradient_error(self) -> float:
        """Relative error of the gradient against central differences along one random direction."""
        self.differentiate()
        assert self.gradient is not None
        gradient, controls = self.gradient, self.controls
        steps = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8)  # contact makes the larger ones straddle switches
        error = directional_error(gradient, controls, self._loss, steps=steps, seed=_SEED + 1)
        self.controls = controls
        self.differentiate()  # the final state is again that of the controls themselves
        return error

    def inputs_by_name(self) -> dict[str, np.ndarray]:
        """What each step is given, (steps, worlds, …) each."""
        return {"actuator": self.controls} if self.model.nu else {}

    def _loss(self, controls: np.ndarray) -> float:
        self.controls = controls
        self.forward()
        return float((self.weights * self.final[:, : self.model.nq]).sum())

    def _finish(self, run) -> None:
        self.final = np.concatenate([run.states.q.numpy()[-1], run.states.qd.numpy()[-1]], axis=1)


def bytes_per_step(rollout: Rollout, budget: str) -> float:
    """What a longer horizon adds to the tape's memory under a budget, by its plan from 10,000 to 100,000 steps."""
    short, long = (
        CheckpointedTape(rollout.program, steps=steps, memory=budget).plan.bytes for steps in (10_000, 100_000)
    )
    return (long - short) / 90_000


class _Captured:
    """The captured step itself and its adjoint, replayed segment by segment without the tape's bookkeeping."""

    def __init__(self, rollout: Rollout, slots: int = 20) -> None:
        self.rollout = rollout
        self.slots = slots
        self.segment = Segment(rollout.program, slots)
        for name, value in rollout.state.items():
            self.segment.states.fields[name].host[0] = value
        self.start = self.segment.states.data.host[0].copy()
        self.segment.steps(0, slots, recorded=True)()
        self.segment.adjoint_steps(0, slots)()
        self.final = np.full(1, np.nan)

    def forward(self) -> None:
        """All steps, plain."""
        states, inputs = self.segment.states.data.host, self.segment.inputs.fields["actuator"].host
        states[0] = self.start
        for first in range(0, self.rollout.case.steps, self.slots):
            inputs[:] = self.rollout.controls[first : first + self.slots]
            self.segment.steps(0, self.slots, recorded=False)()
            states[0] = states[self.slots]
        rows = self.segment.states.fields
        self.final = np.concatenate([rows["q"].host[0], rows["qd"].host[0]], axis=1)

    def backward(self) -> None:
        """As many adjoint steps, of one recorded segment again and again."""
        self.segment.adjoints.states.fields["q"].host[:] = 1.0
        for _ in range(0, self.rollout.case.steps, self.slots):
            self.segment.adjoint_steps(0, self.slots)()


class _Jacobians:
    """A rollout, and A and B of all its steps."""

    def __init__(self, case: Case, inputs: Inputs) -> None:
        scene = read_mjcf(case.path)
        scene.options.integrator = case.integrator
        scene.options.constraints = case.contact
        self.sim = Simulator(scene, controls=("actuator",))
        self.start = {"q": inputs.q, "qd": inputs.qd}
        self.controls = torch.tensor(inputs.controls.transpose(1, 0, 2), dtype=self.sim.torch_dtype)
        self.final = np.full(1, np.nan)
        self.a = torch.full((1, 1), torch.nan)

    def run(self) -> None:
        """As `mjd_transitionFD` at every step and the steps themselves."""
        trajectory = self.sim.rollout(controls=self.controls, outputs=(), **self.start)
        self.a = self.sim.jacobians(trajectory, self.controls).A
        self.final = np.concatenate([trajectory.numpy("q")[-1], trajectory.numpy("qd")[-1]], axis=1)

    def gradient_error(self) -> float:
        """Relative error of A at the first step along one random direction, against central differences."""
        layout, nv = self.sim.model.layout, self.sim.nv
        direction = torch.tensor(np.random.default_rng(_SEED).normal(size=2 * nv), dtype=self.sim.torch_dtype)
        q, qd = (torch.tensor(self.start[name][0], dtype=self.sim.torch_dtype) for name in ("q", "qd"))
        expected = self.a[0, 0] @ direction
        errors = []
        for step in (1e-5, 1e-6, 1e-7):  # contact makes the larger ones straddle switches
            ends = []
            for size in (step, -step):
                moved = shift(layout, q, size * direction[:nv])
                ends.append(
                    self.sim.rollout(controls=self.controls[:1], q=moved, qd=qd + size * direction[nv:], outputs=())
                )
            change = torch.cat(
                [difference(layout, ends[0].q[1, 0], ends[1].q[1, 0]), ends[0].qd[1, 0] - ends[1].qd[1, 0]]
            )
            errors.append(float((change / (2 * step) - expected).norm() / expected.norm()))
        return min(errors)


def workloads(case: Case, inputs: Inputs) -> list[Workload]:
    """Forward and gradient on one thread and, with many worlds, on two."""
    made = []
    if case.worlds == 1:
        captured = _Captured(Rollout(case, inputs))
        made.append(Workload("warpsim captured step", captured.forward, lambda: captured.final))
        made.append(Workload("warpsim captured adjoint", captured.backward, lambda: captured.final))
        jacobians = _Jacobians(case, inputs)
        made.append(Workload("warpsim jacobians", jacobians.run, lambda: jacobians.final, jacobians.gradient_error))
    for threads in (1, 2) if case.worlds > 1 else (1,):
        rollout = Rollout(case, inputs, threads)
        suffix = "" if threads == 1 else f", {threads} threads"

        def final(rollout: Rollout = rollout) -> np.ndarray:
            return rollout.final

        error = rollout.gradient_error
        made.append(Workload(f"warpsim forward{suffix}", rollout.forward, final, threads=threads))
        made.append(Workload(f"warpsim gradient{suffix}", rollout.differentiate, final, error, threads=threads))
    return made
