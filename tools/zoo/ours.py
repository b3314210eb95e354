"""warpsim's answers at the states of a model: contacts, accelerations, motions and the error of its gradients."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import warp as wp

from tools.zoo.states import State, Touch, touch_of
from warpsim.check.gradcheck.verdicts import WRONG
from warpsim.core.precision import numpy_real
from warpsim.rigid.compile.compile import compile_model
from warpsim.rigid.compile.derive import Derivation
from warpsim.rigid.model.fields import control_fields
from warpsim.rigid.model.model import Model
from warpsim.rigid.step import step
from warpsim.rigid.step.program import RigidProgram
from warpsim.rigid.work.state import make_scratch, make_work, state_fields
from warpsim.scene import Scene
from warpsim.scene.description import JOINT_DOF_SIZE, JOINT_Q_SIZE
from warpsim.sim.simulator import Simulator
from warpsim.tape import CheckpointedTape
from warpsim.tape.arena import Arena, Arenas, ArenaSize
from warpsim.tape.program import Arrays, Field


def _width(f: Field) -> tuple[int, ...]:
    size = getattr(f.dtype, "_length_", 1)
    return f.shape if size == 1 else (*f.shape, size)


def _shared(scene: Scene, model: Model, sizes: Mapping[str, int]) -> np.ndarray:
    """Which coordinates, or dofs, MuJoCo has too: mocap bodies have no joint there, and stay where they start."""
    kinematic = {body.name for body in scene.bodies if body.kinematic}
    joints = {joint.name: joint for joint in scene.joints}
    order = [joints[name] for name in model.layout.joint_names]
    return np.repeat([j.body not in kinematic for j in order], [sizes[j.kind] for j in order])


def _values(scene: Scene, model: Model, states: list[State]) -> dict[str, np.ndarray]:
    coordinates, dofs = _shared(scene, model, JOINT_Q_SIZE), _shared(scene, model, JOINT_DOF_SIZE)
    q, qd = np.tile(model.initial_q, (len(states), 1)), np.zeros((len(states), model.nv))
    q[:, coordinates], qd[:, dofs] = [s.q for s in states], [s.qd for s in states]
    return {
        "q": q,
        "qd": qd,
        "activation": np.array([s.activation for s in states]),
        "actuator": np.array([s.control for s in states]),
    }


def evaluate(scene: Scene, states: list[State]) -> tuple[np.ndarray, list[list[Touch]]]:
    """Accelerations (n, nv) and contacts at all states, as worlds of one batch."""
    model = compile_model(scene, worlds=len(states))
    if model.pair_table is not None and model.max_contacts < model.pair_table.candidates:
        scene.options.max_contacts = min(model.pair_table.candidates, 4000)
        model = compile_model(scene, worlds=len(states))
    Derivation(model).run()
    size = ArenaSize()
    make_work(model, Arena(model.device, size, None, None))
    work, scratch = make_work(model, Arenas(model.device, size, 1, gradients=False)[0]), make_scratch(model)
    values = _values(scene, model, states)

    def arrays(kind: str, fields: list[Field]) -> Arrays:
        made = {}
        for f in fields:
            value = np.broadcast_to(np.asarray(values.get(f.name, 0.0), numpy_real), _width(f))
            made[f.name] = wp.array(np.ascontiguousarray(value), dtype=f.dtype, shape=f.shape, device=model.device)
        return Arrays(kind, made)

    state = arrays("state", list(state_fields(model)))
    step.forward(model, state, arrays("control", list(control_fields(model).values())), work, scratch, None)
    dofs = _shared(scene, model, JOINT_DOF_SIZE)
    if not model.has_constraints:
        return work.qdd.numpy()[:, dofs], [[] for _ in states]
    c = work.constraint
    return c.qdd.numpy()[:, dofs], _contacts(model, c.contacts, len(states))


def _contacts(model: object, contacts: object, worlds: int) -> list[list[Touch]]:
    if model.pair_table is None or not model.max_contacts:
        return [[] for _ in range(worlds)]
    contacts.check_overflow()
    shapes = model.pair_table.pair_shapes.numpy()
    count, pair = contacts.count.numpy(), contacts.pair.numpy()
    distance, point, frame = contacts.distance.numpy(), contacts.point.numpy(), contacts.frame.numpy()
    return [
        [
            touch_of(*map(int, shapes[pair[w, k]]), float(distance[w, k]), point[w, k], frame[w, k][0])
            for k in range(count[w])
        ]
        for w in range(worlds)
    ]


def motion(scene: Scene, state: State, steps: int) -> np.ndarray:
    """(steps, nq + nv): the motion from a state under its own controls."""
    model = compile_model(scene, worlds=1)
    Derivation(model).run()
    program = RigidProgram(model, controls=("actuator",) if model.nu else ())
    tape = CheckpointedTape(program, steps=steps)
    values = _values(scene, model, [state])
    start = {f.name: np.ascontiguousarray(values.get(f.name, np.zeros(_width(f))), numpy_real) for f in program.state}
    controls = {"actuator": np.repeat(values["actuator"][None], steps, axis=0)} if model.nu else {}
    run = tape.forward(start, controls, keep_states=["q", "qd"], keep_every=1, differentiate=False)
    q, qd = (x.numpy()[1:, 0] for x in (run.states.q, run.states.qd))
    rows = np.concatenate(
        [q[:, _shared(scene, model, JOINT_Q_SIZE)], qd[:, _shared(scene, model, JOINT_DOF_SIZE)]], axis=1
    )
    run.release()
    return rows


def wrong_gradients(scene: Scene, seed: int) -> int:
    """How many of the inputs' gradients (controls, state, mass, friction, …) differ from differences."""
    report = Simulator(scene).gradcheck(steps=60, seed=seed)
    return sum(verdict == WRONG for verdict in report.verdicts().values())
