"""Shared by tests of the contact solver: MuJoCo set to converge, states in contact, and small scenes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import mujoco
import numpy as np
import pytest

from finite_differences import DEFAULT_STEPS, directional_estimate
from rigid_support import Evaluation, components, evaluation
from warpsim.rigid.compile.compile import compile_model
from warpsim.rigid.compile.derive import Derivation
from warpsim.rigid.constraint.contact_output import contact_forces
from warpsim.rigid.constraint.stage import constraint_forces
from warpsim.rigid.model.fields import control_fields, output_fields
from warpsim.rigid.model.model import Model
from warpsim.rigid.step import step
from warpsim.rigid.step.program import RigidProgram
from warpsim.rigid.work.constraint_work import ConstraintScratch, ConstraintWork
from warpsim.rigid.work.state import Work, state_fields
from warpsim.scene import Body, Joint, Options, Scene, Shape
from warpsim.tape.arena import Arena, Arenas, ArenaSize
from warpsim.tape.checkpointed import CheckpointedTape
from warpsim.tape.memory import Memory


def converging(model: mujoco.MjModel, cone: str | None = None) -> mujoco.MjModel:
    """Has MuJoCo solve to rounding error, in place.

    Its tolerance is on the cost as well: even at 1e-14 it can stop with forces good to 3e-8 by its own inverse
    dynamics, so it takes all its iterations.
    """
    model.opt.tolerance, model.opt.iterations = 0.0, 200
    model.opt.ls_tolerance, model.opt.ls_iterations = 1e-10, 200
    if cone is not None:
        model.opt.cone = int(getattr(mujoco.mjtCone, f"mjCONE_{cone.upper()}"))
    return model


@dataclass
class Sample:
    """States of a model and MuJoCo's answers, one row per state."""

    q: np.ndarray
    qd: np.ndarray
    activation: np.ndarray
    actuator: np.ndarray
    qacc: np.ndarray
    shape_force: np.ndarray  # (n, ngeom, 3) N, world axes
    rounding: np.ndarray  # (n,) what one rounding of the accelerations changes forces by, as a share of the largest
    contacts: list[list[tuple[int, int, float, np.ndarray, np.ndarray]]]  # geoms, distance, point, frame


def _shape_forces(model: mujoco.MjModel, data: mujoco.MjData) -> np.ndarray:
    total, force = np.zeros((model.ngeom, 3)), np.zeros(6)
    for k in range(data.ncon):
        contact = data.contact[k]
        mujoco.mj_contactForce(model, data, k, force)
        push = contact.frame.reshape(3, 3).T @ force[:3]
        total[contact.geom2] += push
        total[contact.geom1] -= push
    return total


def ask_mujoco(model: mujoco.MjModel, states: list[tuple[np.ndarray, ...]]) -> Sample:
    """Accelerations, forces and contacts at (qpos, qvel, act, ctrl)."""
    data = mujoco.MjData(model)
    qacc, forces, rounding, contacts = [], [], [], []
    for qpos, qvel, act, ctrl in states:
        mujoco.mj_resetData(model, data)
        data.qpos[:], data.qvel[:], data.act[:], data.ctrl[:] = qpos, qvel, act, ctrl
        mujoco.mj_forward(model, data)
        qacc.append(data.qacc.copy())
        forces.append(_shape_forces(model, data))
        contacts.append(
            [
                (int(c.geom1), int(c.geom2), float(c.dist), c.pos.copy(), c.frame.reshape(3, 3).copy())
                for c in (data.contact[k] for k in range(data.ncon))
                if c.exclude == 0
            ]
        )
        rounding.append(_rounding(model, data))
    columns = [np.array(column) for column in zip(*states, strict=True)]
    return Sample(*columns, np.array(qacc), np.array(forces), np.array(rounding), contacts)


def _rounding(model: mujoco.MjModel, data: mujoco.MjData) -> float:
    """What one rounding of the accelerations changes forces by, as a share of the largest.

    A force is D·(J·qacc − aref) of its row: where friction is stiff, D makes a visible force of the last bit of qacc,
    and no two solvers can agree better than that.
    """
    jacobian = np.zeros((data.nefc, model.nv))
    if mujoco.mj_isSparse(model):
        mujoco.mju_sparse2dense(jacobian, data.efc_J, data.efc_J_rownnz, data.efc_J_rowadr, data.efc_J_colind)
    else:
        jacobian[:] = data.efc_J.reshape(jacobian.shape)
    size = data.efc_D * (np.abs(jacobian) @ np.abs(data.qacc) + np.abs(data.efc_aref))
    largest = np.abs(data.qfrc_constraint).max()
    return float(np.finfo(float).eps * size.max() / largest) if largest > 0.0 else 0.0


def touching_states(
    model: mujoco.MjModel,
    count: int,
    seed: int,
    *,
    shift: tuple[int, float] = (0, 0.0),
    run: int = 40,
    speed: float = 0.3,
) -> list[tuple[np.ndarray, ...]]:
    """States of random motions that are in contact, joint limits or dry friction included, with a random shove each.

    Args:
        model: Whose states.
        count: How many.
        seed: Of everything random.
        shift: A coordinate, and what is added to it before each motion, so that it soon touches.
        run: Least number of steps of a motion.
        speed: Standard deviation of the shove.
    """
    rng = np.random.default_rng([seed, 2])
    data, states = mujoco.MjData(model), []
    tolerance, model.opt.tolerance = model.opt.tolerance, 1e-8  # the way there need not be exact
    while len(states) < count:
        mujoco.mj_resetData(model, data)
        data.qpos[:] += rng.uniform(-0.1, 0.1, model.nq)
        data.qpos[shift[0]] += shift[1]
        data.qvel[:] = rng.normal(size=model.nv)
        for _ in range(int(rng.integers(run, 4 * run))):
            data.ctrl[:] = rng.normal(size=model.nu)
            mujoco.mj_step(model, data)
        data.qvel[:] += speed * rng.normal(size=model.nv)
        mujoco.mj_normalizeQuat(model, data.qpos)
        mujoco.mj_forward(model, data)
        if data.nefc and np.abs(data.qacc).max() < 1e6:
            states.append((data.qpos.copy(), data.qvel.copy(), data.act.copy(), rng.normal(size=model.nu)))
    model.opt.tolerance = tolerance
    return states


@contextmanager
def given_contacts(sample: Sample) -> Iterator[None]:
    """Has the step take MuJoCo's contacts instead of finding its own, world k those of state k."""

    def collide(m: Model, work: Work, c: ConstraintWork, scratch: ConstraintScratch) -> None:
        places = {tuple(pair): i for i, pair in enumerate(m.pair_table.pair_shapes.numpy().tolist())}
        x, arrays = c.contacts, {}
        for name in ("count", "pair", "distance", "point", "frame"):
            arrays[name] = np.nan_to_num(getattr(x, name).numpy())
        for w, contacts in enumerate(sample.contacts):
            arrays["count"][w] = len(contacts)
            for k, (a, b, distance, point, frame) in enumerate(contacts):
                straight = (a, b) in places
                arrays["pair"][w, k] = places[(a, b) if straight else (b, a)]
                arrays["distance"][w, k], arrays["point"][w, k] = distance, point
                # the normal points from the first shape to the second; two rows turn, and the frame stays right-handed
                arrays["frame"][w, k] = frame if straight else frame * np.array([[-1.0], [-1.0], [1.0]])
        for name, value in arrays.items():
            getattr(x, name).assign(value)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(step, "collide", collide)
        yield


@dataclass
class Answer:
    """What our solver says, one row per world."""

    qacc: np.ndarray
    shape_force: np.ndarray
    count: np.ndarray
    status: np.ndarray


def ask_ours(scene: Scene, sample: Sample) -> Answer:
    """The solver's accelerations and the forces on shapes, all states as worlds of one batch."""
    worlds = len(sample.q)
    values = {"q": sample.q, "qd": sample.qd, "activation": sample.activation, "actuator": sample.actuator}
    e: Evaluation = evaluation(scene, {**values, "warm_start": np.zeros_like(sample.qd)}, worlds=worlds)
    work = e.forward()
    c, scratch = work.constraint, e.scratch.constraint
    constraint_forces(e.model, e.state, work, c, scratch)
    size = ArenaSize()
    f = output_fields(e.model)["contact_force"]
    Arena(e.model.device, size, None, None).array(f.shape, f.dtype)
    out = Arenas(e.model.device, size, 1, gradients=False)[0].array(f.shape, f.dtype)
    if e.model.max_contacts:
        contact_forces(e.model, c, scratch, out)
    return Answer(c.qdd.numpy(), out.numpy(), c.contacts.count.numpy(), c.status.numpy())


def object_scene(*shapes: Shape, options: Options | None = None, floor: dict | None = None, **material) -> Scene:
    """Free bodies with one shape each above a plane, where the shapes' own positions and rotations say.

    Args:
        shapes: One per body, named alike.
        options: Of the scene.
        floor: Fields of the plane that differ from `material`.
        material: Fields of every shape, the plane included.
    """
    scene = Scene(options=options or Options())
    scene.shapes.append(Shape("floor", "plane", **{**material, **(floor or {})}))
    for shape in shapes:
        scene.bodies.append(Body(shape.name, position=shape.position, rotation=shape.rotation))
        scene.joints.append(Joint(shape.name, "free", shape.name))
        scene.shapes.append(
            replace(shape, body=shape.name, position=np.zeros(3), rotation=np.array([1.0, 0.0, 0.0, 0.0]), **material)
        )
    return scene


def solid(kind: str, size: tuple[float, ...], position: tuple[float, ...], turn: tuple[float, ...] = ()) -> Shape:
    """A shape named after its kind and place; `turn` is a rotation vector."""
    rotation = np.array([1.0, 0.0, 0.0, 0.0])
    if turn:
        angle = float(np.linalg.norm(turn))
        rotation = np.append(np.cos(angle / 2), np.sin(angle / 2) * np.asarray(turn) / angle)
    padded = np.zeros(3)
    padded[: len(size)] = size
    name = f"{kind} {position[0]:g} {position[1]:g} {position[2]:g}"
    return Shape(name, kind, position=np.array(position, float), rotation=rotation, size=padded)


@dataclass
class Comparison:
    """A derivative along one input, by reverse mode and by differences."""

    name: str
    adjoint: float
    difference: float
    error: float  # of the difference, by its own estimate
    scale: float

    def switching(self, tolerance: float) -> bool:
        """Whether differences at several steps disagree: the state is beside a mode switch, and they say nothing."""
        return self.error > 0.3 * tolerance * self.scale

    @property
    def deviation(self) -> float:
        return abs(self.adjoint - self.difference) / self.scale


class ContactRollout:
    """A rollout as a function of state, controls and parameters, differentiated both ways along random directions.

    The loss weighs states (and contact forces) of all steps at random. Differences perturb one input per world, all in
    one batch.
    """

    def __init__(
        self, scene: Scene, steps: int, controls: tuple[str, ...], outputs: tuple[str, ...] = (), seed: int = 0
    ):
        self.scene, self.steps, self.controls, self.outputs = scene, steps, controls, outputs
        self.rng = np.random.default_rng([seed, 11])
        model = compile_model(scene)
        fields = {f.name: f for f in (*state_fields(model), *(output_fields(model)[name] for name in outputs))}
        self.weights = {
            name: self.rng.normal(size=(steps + (name not in outputs), *components(f)[1:]))
            for name, f in fields.items()
            if f.differentiable
        }
        for name in outputs:
            self.weights[name] *= 1e-2  # forces are larger than velocities
        self.base = {f.name: np.zeros(components(f)[1:]) for f in state_fields(model)}
        self.base.update(q=model.initial_q, qd=model.initial_qd)
        for name in controls:
            size = components(control_fields(model)[name])[1:]
            self.base[name] = 0.3 * self.rng.normal(size=(steps, *size))
        self.parameters = sorted(name for name in model.authored if _differentiable(name, model.authored[name].numpy()))
        self.base.update({name: model.authored[name].numpy()[0] for name in self.parameters})

    def _open(self, worlds: int, gradients: bool):
        model = compile_model(self.scene, worlds=worlds)
        if gradients:
            model.require_gradients(self.parameters)
        derivation = Derivation(model)
        program = RigidProgram(model, controls=self.controls, outputs=self.outputs)
        tape = CheckpointedTape(program, steps=self.steps, memory=Memory(segment=min(self.steps, 10)), capture=False)
        return model, derivation, tape

    def _run(self, opened, inputs: dict[str, np.ndarray], *, differentiate: bool):
        """`inputs` have the world first."""
        model, derivation, tape = opened
        for name in self.parameters:
            model.authored[name].assign(np.ascontiguousarray(inputs[name]))
        derivation.run(record=differentiate)
        state = {f.name: np.ascontiguousarray(inputs[f.name]) for f in tape.program.state}
        control = {name: np.ascontiguousarray(np.swapaxes(inputs[name], 0, 1)) for name in self.controls}
        return tape.forward(state, control, keep_states=True, keep_outputs=True, differentiate=differentiate)

    def gradient(self) -> dict[str, np.ndarray]:
        """Of the loss by every input, at the base values."""
        opened = self._open(1, gradients=True)
        run = self._run(opened, {name: value[None] for name, value in self.base.items()}, differentiate=True)
        seeds = {name: np.ascontiguousarray(weight[:, None]) for name, weight in self.weights.items()}
        gradients = opened[2].backward(
            run,
            state_seeds={name: seed for name, seed in seeds.items() if name not in self.outputs},
            output_seeds={name: seed for name, seed in seeds.items() if name in self.outputs},
        )
        opened[1].backward()
        found = {name: array.numpy()[0].copy() for name, array in gradients.initial_state.items()}
        found.update({name: array.numpy()[:, 0].copy() for name, array in gradients.inputs.items()})
        found.update({name: opened[0].authored[name].grad.numpy()[0].copy() for name in self.parameters})
        return found

    def losses(self, inputs: dict[str, np.ndarray]) -> np.ndarray:
        """(W,), with respect to the base trajectory's, so that no digits are lost on what does not change."""
        worlds = len(inputs["q"])
        with self._run(self._open(worlds, gradients=False), inputs, differentiate=False) as run:
            paths = {**run.states, **run.outputs}
            total = np.zeros(worlds)
            for name, weight in self.weights.items():
                path = paths[name].numpy()
                change = path - path[:, :1]
                total += np.einsum("twi,ti->w", change.reshape(*change.shape[:2], -1), weight.reshape(len(weight), -1))
        return total

    def compare(self, steps: tuple[float, ...] = DEFAULT_STEPS) -> list[Comparison]:
        """Every input along one random direction, relative to its own size."""
        gradient = self.gradient()
        names = [name for name in gradient if self.base[name].size]
        ways = {name: _direction(name, self.base[name], self.rng) for name in names}
        probes = [(name, sign * h) for name in names for h in steps for sign in (1.0, -1.0)]
        inputs = {name: np.repeat(value[None], len(probes) + 1, axis=0) for name, value in self.base.items()}
        for w, (name, h) in enumerate(probes, start=1):
            inputs[name][w] += h * ways[name]
        table = dict(zip(probes, self.losses(inputs)[1:], strict=True))
        found = []
        for name in names:
            estimate = directional_estimate(lambda t, name=name: table[name, float(t)], 0.0, 1.0, steps)
            parts = gradient[name] * ways[name]
            fd = float(estimate.value)
            scale = max(abs(fd), float(np.sqrt((parts**2).sum())))
            found.append(Comparison(name, float(parts.sum()), fd, estimate.error, scale))
        found = [c for c in found if c.scale > 0.0]  # the others reach nothing in this scene
        largest = max(c.scale for c in found)
        for c in found:
            c.scale = max(c.scale, LEAST * largest)  # below it, rounding of the loss is all that differences see
        return found


LEAST = 1e-5
_SWITCHES = ("shape.restitution", "limit.friction_loss", "tendon_limit.friction_loss")
"""At zero, where they are off, these have a derivative on one side only."""


def _differentiable(name: str, value: np.ndarray) -> bool:
    return value.size > 0 and bool(np.isfinite(value).all()) and (name not in _SWITCHES or bool((value > 0).all()))


_MOVES = {
    **dict.fromkeys(("q", "qd", "joint_force", "actuator", "world.gravity", "shape.rotation", "body.rotation"), 0.1),
    **dict.fromkeys(("body.position", "body.com", "shape.position", "joint.anchor", "world.wind"), 0.01),
    **dict.fromkeys(("shape.margin", "limit.margin", "joint.reference"), 1e-3),
}
"""How far entries at zero move, where zero is an ordinary value."""


def _direction(name: str, value: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Random, of each entry's own size."""
    return rng.normal(size=value.shape) * (np.abs(value) + _MOVES.get(name, 0.0))
