"""Shared by tests of constraint rows: rows and rollouts beside MuJoCo's, gradients beside central differences."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from contact_support import converging
from finite_differences import directional_estimate, relative_error
from random_models import RandomState, random_mjcf, random_state
from rigid_support import INTEGRATORS, Evaluation, Rollout, evaluation, inputs_of, scene_of
from warpsim.rigid.compile.compile import compile_model
from warpsim.rigid.compile.derive import Derivation
from warpsim.rigid.step.program import RigidProgram
from warpsim.scene import Scene
from warpsim.solve.rows import DRY_FRICTION
from warpsim.tape.checkpointed import CheckpointedTape
from warpsim.tape.memory import Memory

SOLVER_TOLERANCE = 1e-13
NUDGE = 1e-12
STEPS = (1e-4, 1e-5, 1e-6)
"""Of the differences; the active set is compared over the widest."""
LEAST_SLOPE = 1e-2
"""What counts as a derivative of size; those of the losses used are of the order of one."""


def constrained_model(seed: int, integrator: str = "euler", *, soft: bool = True, **contents) -> mujoco.MjModel:
    """A random model whose solver converges; contents as in `random_mjcf`, and with `soft` every row's own softness."""
    model = mujoco.MjModel.from_xml_string(random_mjcf(seed, integrator=INTEGRATORS[integrator], **contents))
    rng = np.random.default_rng([seed, 6])
    for prefix in ("eq_sol{}", "tendon_sol{}_lim", "tendon_sol{}_fri", "jnt_sol{}", "dof_sol{}") if soft else ():
        solref, solimp = getattr(model, prefix.format("ref")), getattr(model, prefix.format("imp"))
        for row in range(len(solref)):
            solref[row] = -rng.uniform([50, 5], [2000, 80]) if row % 3 == 2 else rng.uniform([0.01, 0.5], [0.1, 1.5])
            solimp[row] = rng.uniform([0.5, 0.9, 0.05, 0.2, 1.5], [0.85, 0.98, 0.8, 0.8, 3.0])
    first = model.jnt_dofadr[model.dof_jntid]  # dofs of one joint are alike in a scene
    model.dof_solref[:], model.dof_solimp[:] = model.dof_solref[first], model.dof_solimp[first]
    model.tendon_margin[:] = rng.uniform(0.0, 0.05, model.ntendon)
    return converging(model)


def scene_to_solve(model: mujoco.MjModel) -> Scene:
    """Its scene without contacts, solved to rounding."""
    scene = scene_of(model)
    scene.options.contacts = False
    scene.options.solver_tolerance = SOLVER_TOLERANCE
    return scene


def evaluated(scene: Scene, values: dict, worlds: int = 1) -> Evaluation:
    """One evaluation from a cold start."""
    e = evaluation(scene, {"warm_start": 0.0, **values}, worlds=worlds)
    e.forward()
    return e


@dataclass
class RowTable:
    """Rows of one world, dense."""

    jacobian: np.ndarray
    weight: np.ndarray
    reference: np.ndarray
    force: np.ndarray
    scale: np.ndarray
    kind: np.ndarray


def our_rows(e: Evaluation, world: int = 0) -> RowTable:
    """The rows the solver was given, and its forces on them."""
    rows = e.scratch.constraint.rows
    groups, count = rows.used.numpy()[world, :2]
    names = ("first_row", "first_column", "first_entry", "column", "entry", "kind")
    first_row, first_column, first_entry, column, entry, kind = (getattr(rows, n).numpy()[world] for n in names)
    jacobian = np.zeros((count, e.model.nv))
    for g in range(groups):
        dim = first_row[g + 1] - first_row[g]
        for n, c in enumerate(range(first_column[g], first_column[g + 1])):
            start = first_entry[g] + n * dim
            jacobian[first_row[g] : first_row[g + 1], column[c]] += entry[start : start + dim]  # a dof may come twice
    arrays = (rows.weight, rows.reference, e.scratch.constraint.vectors.force, rows.scale)
    per_row = [array.numpy()[world][:count] for array in arrays]
    return RowTable(jacobian, *per_row, np.repeat(kind[:groups], np.diff(first_row[: groups + 1])))


def mujoco_rows(model: mujoco.MjModel, data: mujoco.MjData) -> RowTable:
    """MuJoCo's rows in our order: equalities of bodies come before those of joints and tendons."""
    coupled = np.isin(model.eq_type, [mujoco.mjtEq.mjEQ_JOINT, mujoco.mjtEq.mjEQ_TENDON])
    equality = data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY
    place = np.where(equality, np.append(coupled, 0)[np.where(equality, data.efc_id, -1)], 2)
    order = np.argsort(place, kind="stable")
    jacobian = np.zeros((data.nefc, model.nv))
    if mujoco.mj_isSparse(model):
        mujoco.mju_sparse2dense(jacobian, data.efc_J, data.efc_J_rownnz, data.efc_J_rowadr, data.efc_J_colind)
    else:
        jacobian[:] = data.efc_J[: jacobian.size].reshape(jacobian.shape)  # rows of no dof leave room behind
    values = (jacobian, data.efc_D, data.efc_aref, data.efc_force, data.efc_frictionloss, data.efc_type)
    return RowTable(*(np.array(value)[order] for value in values))


def compare_rows(model: mujoco.MjModel, state: RandomState) -> dict[str, float]:
    """Relative deviations from MuJoCo of rows, forces on them, and accelerations; same number of rows asserted."""
    data = mujoco.MjData(model)
    state.apply(data)
    mujoco.mj_forward(model, data)
    e = evaluated(scene_to_solve(model), inputs_of(state))
    ours, theirs = our_rows(e), mujoco_rows(model, data)
    assert ours.weight.shape == theirs.weight.shape
    names = ("jacobian", "reference")
    errors = {name: relative_error(getattr(ours, name), getattr(theirs, name)) for name in names}
    # rows that no dof moves (a weld's rotation between slides) have D = 1e15: their force is rounding, and does nothing
    moved = np.abs(theirs.jacobian).max(1) > 0.0
    errors["force"] = relative_error(ours.force[moved], theirs.force[moved])
    errors["weight"] = relative_error(ours.weight / theirs.weight, np.ones(len(ours.weight)))
    errors["acceleration"] = relative_error(e.work.constraint.qdd.numpy()[0], data.qacc)
    return errors


def mujoco_path(model: mujoco.MjModel, q: np.ndarray, qd: np.ndarray, steps: int) -> np.ndarray:
    """(steps, nq + nv) without controls."""
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = q, qd
    path = []
    for _ in range(steps):
        mujoco.mj_step(model, data)
        path.append(np.concatenate([data.qpos, data.qvel]))
    assert not any(warning.number for warning in data.warning), "MuJoCo reset the simulation"
    return np.array(path)


def our_path(scene: Scene, q: np.ndarray, qd: np.ndarray, steps: int) -> np.ndarray:
    """The same by ours."""
    model = compile_model(scene)
    Derivation(model).run()
    tape = CheckpointedTape(RigidProgram(model, controls=()), steps=steps, memory=Memory(segment=4))
    start = {"q": q[None], "qd": qd[None], "warm_start": np.zeros((1, model.nv))}
    if model.na:
        start["activation"] = np.zeros((1, model.na))
    with tape.forward(start, {}, keep_states=True, differentiate=False) as run:
        return np.concatenate([run.states[name].numpy()[1:, 0] for name in ("q", "qd")], axis=1)


def path_ratio(model: mujoco.MjModel, q: np.ndarray, qd: np.ndarray, steps: int) -> float:
    """Largest of (our distance from MuJoCo) / (MuJoCo's from itself under nudges so far), over all steps."""
    model.opt.tolerance = 1e-14  # all iterations at every step would take minutes
    theirs, spread = mujoco_path(model, q, qd, steps), np.zeros(steps)
    for seed in range(3):
        nudged = q.copy()
        mujoco.mj_integratePos(model, nudged, NUDGE * np.random.default_rng([seed, 5]).normal(size=model.nv), 1.0)
        spread = np.maximum(spread, np.abs(mujoco_path(model, nudged, qd, steps) - theirs).max(1))
    ours = np.abs(our_path(scene_to_solve(model), q, qd, steps) - theirs).max(1)
    return float((ours / (np.maximum.accumulate(spread) + 1e-15)).max())


def near_reference(model: mujoco.MjModel, seed: int, spread: float = 0.15) -> RandomState:
    """A random state whose configuration is near the reference one, where equalities are not far from holding."""
    state = random_state(model, seed)
    rng = np.random.default_rng([seed, 7])
    state.qpos[:] = model.qpos0
    mujoco.mj_integratePos(model, state.qpos, spread * rng.normal(size=model.nv), 1.0)
    return state


class ZoneProbe:
    """Tells which rows act along a rollout, and in which zone, by evaluating all its states as worlds of one batch."""

    def __init__(self, rollout: Rollout):
        self.rollout = rollout
        self.evaluation = evaluation(rollout.scene, {"warm_start": 0.0}, worlds=rollout.steps)
        self.derivation = Derivation(self.evaluation.model)

    def zones(self, inputs: dict[str, np.ndarray]) -> list:
        """Per step and row: its kind, and whether its force is zero, inside its bounds, or at a friction bound."""
        e, states = self.evaluation, self.rollout.states(inputs)
        for name in self.rollout.parameters:
            # differences at the end of a range leave it, which `set_parameter` refuses
            array = e.model.authored[name]
            array.assign(np.ascontiguousarray(np.broadcast_to(inputs[name][0], array.numpy().shape)))
        self.derivation.run()
        for name in e.state:
            if name != "warm_start":
                e.state[name].assign(np.ascontiguousarray(states[name][:-1, 0]))
        for name in self.rollout.controls:
            e.control[name].assign(np.ascontiguousarray(inputs[name][:, 0]))
        e.forward()
        found = []
        for w in range(self.rollout.steps):
            rows = our_rows(e, w)
            bound = (rows.kind == DRY_FRICTION) & (np.abs(rows.force) >= rows.scale)
            found.append((rows.kind.tolist(), np.where(bound, 2 * np.sign(rows.force), rows.force != 0.0).tolist()))
        return found


@dataclass
class GradientCheck:
    """Deviation of the gradient from differences per input, and the inputs whose differences say nothing."""

    errors: dict[str, float]
    excluded: list[str]


def _directions(values: dict[str, np.ndarray], seed: int) -> dict[str, np.ndarray]:
    """A random direction per input, in proportion to parameters' values where their sign or size matters."""
    rng = np.random.default_rng([seed, 8])
    relative = ("solref", "solimp", "friction_loss", "torque_scale", "margin", "mass")
    result = {}
    for name, value in values.items():
        direction = rng.normal(size=value.shape)
        result[name] = direction * (np.where(np.isfinite(value), value, 0.0) if name.endswith(relative) else 1.0)
        result[name][~np.isfinite(value)] = 0.0
    return result


def check_gradients(
    rollout: Rollout, inputs: dict[str, np.ndarray], seed: int = 0, tolerance: float = 1e-6
) -> GradientCheck:
    """Gradients of all inputs against central differences, along one random direction each.

    An input is left out if the rows that act, or the zones of their forces, differ between the ends of the widest
    difference at any step, or if differences at several steps disagree with each other by a third of the tolerance (a
    switch in one of the evaluations within a Runge–Kutta step): rules that know nothing of the gradient.
    """
    gradient, directions = rollout.gradient(inputs), _directions(inputs, seed)
    result, probe = GradientCheck({}, []), ZoneProbe(rollout)
    for name, direction in directions.items():
        if name == "warm_start" or not inputs[name].size:
            continue

        def moved(h: float, name: str = name, direction: np.ndarray = direction) -> dict[str, np.ndarray]:
            return {**inputs, name: inputs[name] + h * direction}

        if probe.zones(moved(STEPS[0])) != probe.zones(moved(-STEPS[0])):
            result.excluded.append(name)
            continue
        estimate = directional_estimate(lambda h, moved=moved: rollout.loss(moved(float(h))), 0.0, 1.0, STEPS)
        ours, truth = float((gradient[name] * direction)[np.isfinite(inputs[name])].sum()), float(estimate.value)
        scale = max(abs(truth), LEAST_SLOPE)
        if estimate.error > 0.3 * tolerance * scale:
            result.excluded.append(name)
        else:
            result.errors[name] = abs(ours - truth) / scale
    return result


def assert_small(errors: dict[str, float], where: str, tolerance: float = 1e-9) -> None:
    """All errors below the tolerance."""
    assert all(error < tolerance for error in errors.values()), (where, errors)


def gradient_case(
    model: mujoco.MjModel,
    seed: int,
    steps: int,
    groups: tuple[str, ...],
    parameters: tuple[str, ...] = (),
    *,
    scene: Scene | None = None,
    spread: float = 0.15,
) -> tuple[Rollout, dict[str, np.ndarray]]:
    """A rollout from a random state with random controls, and its inputs: all parameters of some groups and others."""
    scene = scene or scene_to_solve(model)
    state = near_reference(model, seed, spread)
    names = tuple(name for name in compile_model(scene).authored if name.split(".")[0] in groups) + parameters
    controls = ("actuator",) if scene.actuators else ()
    controls += ("drive_target", "drive_velocity", "joint_force") if scene.drives else ("joint_force",)
    rollout = Rollout(scene, steps, controls, names, seed=seed)
    inputs = {"q": state.qpos[None], "qd": state.qvel[None], "warm_start": np.zeros((1, model.nv))}
    if model.na:
        inputs["activation"] = state.act[None]
    return rollout, {**inputs, **rollout.random_controls(), **rollout.parameter_values()}


def assert_gradients(
    rollout: Rollout, inputs: dict[str, np.ndarray], seed: int = 0, *, tolerance: float = 1e-6, most: float = 0.1
) -> GradientCheck:
    """Gradients agree with differences; at most a share `most` of the inputs is left out."""
    check = check_gradients(rollout, inputs, seed, tolerance)
    assert_small(check.errors, "gradient", tolerance)
    assert len(check.excluded) <= most * (len(check.errors) + len(check.excluded)), check.excluded
    return check
