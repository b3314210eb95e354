"""Shared by tests of the rigid core: models from MuJoCo, rollouts, and gradients of a random linear loss."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import warp as wp

from warpsim.model.compile import compile_model
from warpsim.model.derive import Derivation
from warpsim.model.model import Model
from warpsim.model.state import control_fields, state_fields
from warpsim.precision import numpy_real
from warpsim.program import RigidProgram
from warpsim.scene import Scene
from warpsim.tape.checkpointed import CheckpointedTape
from warpsim.tape.program import Arrays, Field


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
    options: dict = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.model = compile_model(self.scene, worlds=self.worlds)
        self.model.require_gradients(list(self.parameters))
        self.derivation = Derivation(self.model)
        self.derivation.run(record=True)
        self.program = RigidProgram(self.model, controls=self.controls)
        self.tape = CheckpointedTape(self.program, steps=self.steps, **self.options)
        rng = np.random.default_rng(self.seed)
        self.weights = {f.name: rng.normal(size=(self.steps + 1, *components(f))) for f in self.program.state}

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

    def loss(self, inputs: dict[str, np.ndarray]) -> float:
        """Σ weights · states, over all steps."""
        run = self._run(inputs)
        value = sum(float((self.weights[n] * run.states[n].numpy()).sum()) for n in self.weights)
        run.release()
        return value

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
