"""Shared by tests of the rigid core: models from MuJoCo, rollouts, and gradients of a random linear loss."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import mujoco
import numpy as np
import warp as wp

from random_models import RandomState, random_mjcf
from warpsim.core.precision import numpy_real
from warpsim.io.mjcf import scene_from_mjmodel
from warpsim.rigid.compile.compile import compile_model
from warpsim.rigid.compile.derive import Derivation
from warpsim.rigid.model.fields import control_fields
from warpsim.rigid.model.model import Model
from warpsim.rigid.step import step
from warpsim.rigid.step.program import RigidProgram
from warpsim.rigid.work.state import Scratch, Work, make_scratch, make_work, state_fields
from warpsim.scene import Scene
from warpsim.tape.arena import Arena, Arenas, ArenaSize
from warpsim.tape.checkpointed import CheckpointedTape
from warpsim.tape.memory import Memory
from warpsim.tape.program import Arrays, Field

INTEGRATORS = {"euler": "Euler", "implicitfast": "implicitfast", "rk4": "RK4"}
"""Name in a Scene → name in MJCF."""
ROBOTS = sorted((Path(__file__).resolve().parents[3] / "shared" / "assets").glob("*/mjcf/*.xml"))
"""Third-party robots that stand beside the project; none where they are absent, and their tests are skipped."""


def unconstrained(model: mujoco.MjModel, integrator: str | None = None) -> mujoco.MjModel:
    """Switches all constraints off, in place, and sets the integrator by its name in a Scene."""
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    if integrator is not None:
        model.opt.integrator = int(getattr(mujoco.mjtIntegrator, f"mjINT_{integrator.upper()}"))
    return model


def robot(path: Path, integrator: str | None = None) -> mujoco.MjModel:
    """A robot of the assets without constraints."""
    return unconstrained(mujoco.MjModel.from_xml_path(str(path)), integrator)


def random_model(seed: int, integrator: str = "euler") -> mujoco.MjModel:
    """A random model without constraints; every second one stands in a medium."""
    xml = random_mjcf(seed, integrator=INTEGRATORS[integrator], medium=bool(seed % 2))
    return unconstrained(mujoco.MjModel.from_xml_string(xml))


def scene_of(model: mujoco.MjModel) -> Scene:
    """The scene of a MuJoCo model; what only constraints would need is left out."""
    return scene_from_mjmodel(model, strict=False)


def components(f: Field) -> tuple[int, ...]:
    """NumPy shape of a field: vector components last."""
    width = getattr(f.dtype, "_length_", 1)
    return f.shape if width == 1 else (*f.shape, width)


def to_arrays(kind: str, fields, values: dict, device) -> Arrays:
    """Device arrays of all fields; values without a world axis are repeated."""
    made = {}
    for f in fields:
        value = np.broadcast_to(np.asarray(values[f.name], numpy_real), components(f))
        made[f.name] = wp.array(np.ascontiguousarray(value), dtype=f.dtype, shape=f.shape, device=device)
    return Arrays(kind, made)


@dataclass
class Evaluation:
    """One evaluation of the dynamics on arrays that held NaN before, run stage by stage or as a whole."""

    model: Model
    state: Arrays
    control: Arrays
    work: Work
    scratch: Scratch
    arena: Arena

    def poison(self) -> None:
        """Fills all intermediates with NaN; what must start from zero is zeroed again."""
        self.arena.fill(np.nan)
        for array in vars(self.scratch).values():
            if isinstance(array, wp.array) and array.size:
                array.fill_(np.nan)
        self.arena.zero_accumulators()

    def forward(self) -> Work:
        """Accelerations, without a tape."""
        self.poison()
        step.forward(self.model, self.state, self.control, self.work, self.scratch, None)
        return self.work


def evaluation(scene: Scene, values: dict, *, worlds: int = 1, gradients: bool = False) -> Evaluation:
    """Compiles a scene and loads a state and controls; fields that are not given are the scene's start, and zero."""
    model = compile_model(scene, worlds=worlds)
    if gradients:
        model.require_gradients(list(model.authored))
    Derivation(model).run()
    size = ArenaSize()
    make_work(model, Arena(model.device, size, None, None))
    arena = Arenas(model.device, size, 1, gradients=gradients)[0]
    start = {"q": model.initial_q, "qd": model.initial_qd, "activation": model.initial_activation}
    controls = {f.name: values.get(f.name, np.zeros(components(f)[1:])) for f in control_fields(model).values()}
    return Evaluation(
        model,
        to_arrays("state", state_fields(model), {**start, **values}, model.device),
        to_arrays("control", control_fields(model).values(), controls, model.device),
        make_work(model, arena),
        make_scratch(model),
        arena,
    )


def inputs_of(state: RandomState) -> dict[str, np.ndarray]:
    """A state and controls of MuJoCo by the names of ours."""
    return {
        "q": state.qpos,
        "qd": state.qvel,
        "activation": state.act,
        "actuator": state.ctrl,
        "joint_force": state.qfrc_applied,
        "wrench": state.xfrc_applied,
    }


def dense_mass_matrix(model: Model, rows: np.ndarray) -> np.ndarray:
    """(nv, nv) from the sparse rows of one world."""
    start, column = model.topology.row_start.numpy(), model.topology.row_column.numpy()
    full = np.zeros((model.nv, model.nv))
    for d in range(model.nv):
        for e in range(start[d], start[d + 1]):
            full[d, column[e]] = full[column[e], d] = rows[e]
    return full


def initial_state(model: Model, q: np.ndarray, qd: np.ndarray, activation: np.ndarray) -> dict[str, np.ndarray]:
    """State values by field, repeated over worlds."""
    values = {"q": q, "qd": qd, "activation": activation}
    return {
        f.name: np.ascontiguousarray(np.broadcast_to(np.asarray(values[f.name], numpy_real), f.shape))
        for f in state_fields(model)
    }


@dataclass
class Rollout:
    """A rollout as a plain function of named NumPy inputs, and its gradient."""

    scene: Scene
    steps: int
    controls: tuple[str, ...]
    parameters: tuple[str, ...] = ()
    worlds: int = 1
    seed: int = 0
    options: dict = field(
        default_factory=lambda: {"memory": Memory(segment=4)}
    )  # of the tape; few slots are captured quickly

    def __post_init__(self) -> None:
        self.model = compile_model(self.scene, worlds=self.worlds)
        self.model.require_gradients(list(self.parameters))
        self.derivation = Derivation(self.model)
        self.derivation.run(record=True)
        self.program = RigidProgram(self.model, controls=self.controls)
        self.tape = CheckpointedTape(self.program, steps=self.steps, **self.options)
        rng = np.random.default_rng(self.seed)
        smooth = [f for f in self.program.state if f.differentiable]
        self.weights = {f.name: rng.normal(size=(self.steps + 1, *components(f))) for f in smooth}

    def random_controls(self, scale: float = 1.0) -> dict[str, np.ndarray]:
        rng = np.random.default_rng(self.seed + 1)
        fields = control_fields(self.model)
        return {n: scale * rng.normal(size=(self.steps, *components(fields[n]))) for n in self.controls}

    def parameter_values(self) -> dict[str, np.ndarray]:
        return {name: self.model.authored[name].numpy().copy() for name in self.parameters}

    def _run(self, inputs: dict[str, np.ndarray]):
        for name in self.parameters:
            self.model.authored[name].assign(np.ascontiguousarray(inputs[name], numpy_real))
        self.derivation.run(record=True)
        state = {f.name: np.ascontiguousarray(inputs[f.name], numpy_real) for f in self.program.state}
        controls = {name: np.ascontiguousarray(inputs[name], numpy_real) for name in self.controls}
        return self.tape.forward(state, controls, keep_states=True)

    def states(self, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """(steps + 1, W, …) by field."""
        run = self._run(inputs)
        found = {name: array.numpy().copy() for name, array in run.states.items()}
        run.release()
        return found

    def final(self, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The last state, (W, …) by field."""
        return {name: array[-1] for name, array in self.states(inputs).items()}

    def loss(self, inputs: dict[str, np.ndarray]) -> float:
        """Σ weights · states, over all steps."""
        states = self.states(inputs)
        return sum(float((self.weights[name] * states[name]).sum()) for name in self.weights)

    def gradient(self, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Gradient of `loss` with respect to every input, by reverse mode."""
        run = self._run(inputs)
        for name in self.parameters:
            self.model.authored[name].grad.zero_()
        seeds = {n: np.ascontiguousarray(w, numpy_real) for n, w in self.weights.items()}
        gradients = self.tape.backward(run, state_seeds=seeds)
        self.derivation.backward()
        result = {name: array.numpy().copy() for name, array in gradients.initial_state.items()}
        result.update({name: array.numpy().copy() for name, array in gradients.inputs.items()})
        result.update({name: self.model.authored[name].grad.numpy().copy() for name in self.parameters})
        return result
