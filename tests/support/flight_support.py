"""Rollouts seen as functions from the initial state, with the gradient of one number of the state they end in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from warpsim.rigid.compile.compile import compile_model
from warpsim.rigid.compile.derive import Derivation
from warpsim.rigid.step.program import RigidProgram
from warpsim.scene import Body, Joint, Options, Scene, Shape
from warpsim.tape.checkpointed import CheckpointedTape
from warpsim.tape.memory import Memory


@dataclass
class Result:
    value: float
    q: np.ndarray
    qd: np.ndarray
    parameters: dict[str, np.ndarray]


class Flight:
    """Final states of a scene, and the gradient of one coordinate or velocity of them."""

    def __init__(self, scene: Scene, steps: int, parameters: tuple[str, ...] = (), worlds: int = 1, segment: int = 8):
        self.model = compile_model(scene, worlds=worlds)
        self.model.require_gradients(list(parameters))
        self.parameters = parameters
        self.derivation = Derivation(self.model)
        self.derivation.run(record=True)
        self.tape = CheckpointedTape(RigidProgram(self.model, controls=()), steps=steps, memory=Memory(segment=segment))

    def _start(self, q, qd) -> dict[str, np.ndarray]:
        m = self.model
        start = {"q": m.initial_q if q is None else q, "qd": m.initial_qd if qd is None else qd}
        shapes = {"q": (m.worlds, m.nq), "qd": (m.worlds, m.nv), "warm_start": (m.worlds, m.nv)}
        start["warm_start"] = np.zeros(m.nv)
        return {name: np.ascontiguousarray(np.broadcast_to(start[name], shape)) for name, shape in shapes.items()}

    def final(self, q=None, qd=None) -> tuple[np.ndarray, np.ndarray]:
        """(W, nq) and (W, nv) at the end."""
        run = self.tape.forward(
            self._start(q, qd), keep_states=True, keep_every=self.tape.plan.steps, differentiate=False
        )
        with run:
            return run.states["q"].numpy()[-1].copy(), run.states["qd"].numpy()[-1].copy()

    def gradient(self, field: str, index: int, q=None, qd=None) -> Result:
        """Of one number of the final state in world 0."""
        start = self._start(q, qd)
        run = self.tape.forward(start, keep_states=True, keep_every=self.tape.plan.steps)
        value = float(run.states[field].numpy()[-1, 0, index])
        seed = np.zeros_like(start[field])
        seed[0, index] = 1.0
        found = self.tape.backward(run, state_seeds={field: {-1: seed}})
        self.derivation.backward()
        parameters = {name: self.model.authored[name].grad.numpy()[0].copy() for name in self.parameters}
        return Result(value, found.initial_state["q"].numpy()[0], found.initial_state["qd"].numpy()[0], parameters)


def on_rails(shape: Shape, axes: str, options: Options, *walls: Shape) -> Scene:
    """A body that only slides along the given axes, without turning."""
    directions = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}
    shape.body = "body"
    joints = [Joint(a, "slide", "body", axis=np.array(directions[a])) for a in axes]
    return Scene(bodies=[Body("body")], joints=joints, shapes=[*walls, shape], options=options)


def end_slopes(
    scene: Scene,
    steps: int,
    q: np.ndarray,
    qd: np.ndarray,
    ways: Sequence[tuple[str, np.ndarray]],
    sizes: Sequence[float],
) -> np.ndarray:
    """(ways, sizes, nq): central difference quotients of the final q along ways of the initial "q" or "qd"."""
    moves = [(of, sign * size * way) for of, way in ways for size in sizes for sign in (1.0, -1.0)]
    start = {"q": np.repeat(q[None], len(moves), axis=0), "qd": np.repeat(qd[None], len(moves), axis=0)}
    for k, (of, move) in enumerate(moves):
        start[of][k] += move
    end = Flight(scene, steps, worlds=len(moves), segment=2).final(**start)[0].reshape(len(ways), len(sizes), 2, -1)
    return (end[:, :, 0] - end[:, :, 1]) / (2.0 * np.asarray(sizes)[:, None])
