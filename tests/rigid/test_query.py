"""Queries against MuJoCo, and their gradients against central differences."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import warp as wp

from finite_differences import directional_difference, relative_error
from random_models import random_state
from rigid_support import ROBOTS, random_model, robot, scene_of
from warpsim.core.errors import InputError, UnknownNameError
from warpsim.rigid import query
from warpsim.rigid.compile.compile import compile_model
from warpsim.rigid.compile.derive import Derivation
from warpsim.rigid.model.model import Model

TOLERANCE = 1e-9


def our_model(model: mujoco.MjModel, worlds: int = 1) -> Model:
    ours = compile_model(scene_of(model), worlds=worlds)
    Derivation(ours).run()
    return ours


def mujoco_at(model: mujoco.MjModel, seed: int) -> mujoco.MjData:
    data = mujoco.MjData(model)
    random_state(model, seed).apply(data)
    mujoco.mj_forward(model, data)
    mujoco.mj_energyPos(model, data)
    mujoco.mj_energyVel(model, data)
    mujoco.mj_subtreeVel(model, data)
    return data


def bodies_of(model: mujoco.MjModel, ours: Model) -> list[tuple[int, str]]:
    return [(index, name) for index, name in enumerate(ours.layout.body_names) if index]


def compare(model: mujoco.MjModel, seed: int) -> dict[str, float]:
    """Relative deviations of all queries from MuJoCo."""
    ours, data = our_model(model), mujoco_at(model, seed)
    state = query.make_state(ours, {"q": data.qpos, "qd": data.qvel})
    motion = query.evaluate(ours, state)
    mass_matrix = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, mass_matrix)
    momentum = query.momentum(ours, state, motion=motion)
    about_origin = query.momentum(ours, state, about="origin", motion=motion)
    com, mass = data.subtree_com[0], model.body_subtreemass[0]
    linear = mass * data.subtree_linvel[0]
    errors = {
        "kinetic": relative_error(query.kinetic_energy(ours, state, motion=motion).numpy()[0], data.energy[1]),
        "potential": relative_error(query.potential_energy(ours, state, motion=motion).numpy()[0], data.energy[0]),
        "com": relative_error(query.center_of_mass(ours, state, motion=motion).numpy()[0], com),
        "linear": relative_error(momentum.linear.numpy()[0], linear),
        "angular": relative_error(momentum.angular.numpy()[0], data.subtree_angmom[0]),
        "about origin": relative_error(about_origin.angular.numpy()[0], data.subtree_angmom[0] + np.cross(com, linear)),
        "mass matrix": relative_error(query.mass_matrix(ours, state, motion=motion).numpy()[0], mass_matrix),
        "bias": relative_error(query.bias_force(ours, state).numpy()[0], data.qfrc_bias),
    }
    return errors | jacobian_errors(model, data, ours, state, motion)


def jacobian_errors(model, data, ours, state, motion) -> dict[str, float]:
    errors = {"jacobian": 0.0, "velocity": 0.0, "twists": 0.0}
    local = np.array([0.3, -0.2, 0.5])
    for index, name in bodies_of(model, ours):
        point = data.xpos[index] + data.xmat[index].reshape(3, 3) @ local
        translation, rotation = np.zeros((3, model.nv)), np.zeros((3, model.nv))
        mujoco.mj_jac(model, data, translation, rotation, point, index)
        expected = np.concatenate([rotation, translation])
        jacobian = query.body_jacobian(ours, state, name, local, motion=motion).numpy()[0]
        velocity = query.point_velocity(ours, state, name, local, motion=motion).numpy()[0]
        twists = query.dof_twists(ours, state, point, motion=motion).numpy()[0].T
        moving = expected.any(axis=0)
        errors["jacobian"] = max(errors["jacobian"], relative_error(jacobian, expected))
        errors["velocity"] = max(errors["velocity"], relative_error(velocity, expected @ data.qvel))
        errors["twists"] = max(errors["twists"], relative_error(twists[:, moving], expected[:, moving]))
    return errors


@pytest.mark.parametrize("path", ROBOTS, ids=lambda path: path.stem)
def test_robots_match_mujoco(path):
    errors = compare(robot(path), 0)
    assert all(error < TOLERANCE for error in errors.values()), errors


def test_random_trees_match_mujoco():
    for seed in range(8):
        errors = compare(random_model(seed), seed)
        assert all(error < TOLERANCE for error in errors.values()), (seed, errors)


@pytest.mark.long
def test_more_random_trees_match_mujoco():
    for seed in range(8, 100):
        errors = compare(random_model(seed), seed)
        assert all(error < TOLERANCE for error in errors.values()), (seed, errors)


@pytest.mark.parametrize("q", [-0.5, 0.2, 0.9])
def test_the_energy_of_a_tendon_with_slack_is_mujocos(q):
    """Below, within and above the lengths at which its spring rests."""
    model = mujoco.MjModel.from_xml_string(
        """<mujoco><option gravity="0 0 0"><flag energy="enable"/></option>
          <worldbody><body><joint name="j" type="slide"/><geom size=".1"/></body></worldbody>
          <tendon><fixed stiffness="7" springlength=".1 .4"><joint joint="j" coef="1"/></fixed></tendon></mujoco>"""
    )
    data = mujoco.MjData(model)
    data.qpos[:] = q
    mujoco.mj_forward(model, data)
    ours = our_model(model)
    found = query.potential_energy(ours, query.make_state(ours, {"q": data.qpos})).numpy()[0]
    assert found == pytest.approx(data.energy[0], abs=1e-12)
    assert (found == 0.0) == (0.1 <= q <= 0.4)


def scalars(ours: Model, state) -> dict[str, wp.array]:
    """One array per differentiable query."""
    motion = query.evaluate(ours, state)
    name = ours.layout.body_names[-1]
    momentum = query.momentum(ours, state, motion=motion)
    poses = query.body_poses(ours, state, motion=motion)
    return {
        "kinetic": query.kinetic_energy(ours, state, motion=motion),
        "potential": query.potential_energy(ours, state, motion=motion),
        "com": query.center_of_mass(ours, state, motion=motion),
        "linear": momentum.linear,
        "angular": momentum.angular,
        "position": poses.position,
        "rotation": poses.rotation,
        "velocity": query.point_velocity(ours, state, name, (0.1, 0.2, 0.3), motion=motion),
        "jacobian": query.body_jacobian(ours, state, name, (0.1, 0.2, 0.3), motion=motion),
        "twists": query.dof_twists(ours, state, (0.1, 0.2, 0.3), motion=motion),
        "bias": query.bias_force(ours, state),
    }


@pytest.mark.parametrize("seed", [2, 5])
def test_gradients_match_central_differences(seed):
    """With respect to q, qd and masses, for a random combination of each query's numbers."""
    model = random_model(seed)
    ours, start, rng = our_model(model), random_state(model, seed), np.random.default_rng(seed)
    ours.require_gradients(["body.mass"])
    values = {"q": start.qpos, "qd": start.qvel, "mass": ours.body.mass.numpy()[0].copy()}
    weights = {name: rng.normal(size=a.numpy().shape) for name, a in scalars(ours, query.make_state(ours)).items()}

    def losses(changed: dict[str, np.ndarray]) -> np.ndarray:
        now = values | changed
        ours.body.mass.assign(now["mass"][None])
        arrays = scalars(ours, query.make_state(ours, {"q": now["q"], "qd": now["qd"]}))
        return np.array([(arrays[name].numpy() * weight).sum() for name, weight in weights.items()])

    directions = {name: rng.normal(size=value.shape) for name, value in values.items()}
    expected = {
        name: directional_difference(lambda x, n=name: losses({n: x}), values[name], direction)
        for name, direction in directions.items()
    }
    losses({})
    for index, (name, weight) in enumerate(weights.items()):
        state = query.make_state(ours, {"q": start.qpos, "qd": start.qvel}, requires_grad=True)
        ours.body.mass.grad.zero_()
        tape = wp.Tape()
        with tape:
            result = scalars(ours, state)[name]
        result.grad.assign(weight)
        tape.backward()
        found = {"q": state.q.grad, "qd": state.qd.grad, "mass": ours.body.mass.grad}
        for argument, gradient in found.items():
            terms = gradient.numpy()[0] * directions[argument]
            assert abs(terms.sum() - expected[argument][index]) <= 1e-6 * np.abs(terms).sum() + 1e-10, (name, argument)


def test_worlds_are_independent():
    model = random_model(4)
    states = [random_state(model, seed) for seed in range(3)]
    batch, single = our_model(model, worlds=3), our_model(model)
    together = query.make_state(batch, {"q": [s.qpos for s in states], "qd": [s.qvel for s in states]})
    for name, array in scalars(batch, together).items():
        for world, s in enumerate(states):
            alone = scalars(single, query.make_state(single, {"q": s.qpos, "qd": s.qvel}))[name]
            np.testing.assert_array_equal(array.numpy()[world], alone.numpy()[0], err_msg=name)


def test_wrong_arguments_are_named():
    ours = our_model(random_model(0))
    state = query.make_state(ours)
    with pytest.raises(UnknownNameError, match="no body 'elbow'"):
        query.body_jacobian(ours, state, "elbow")
    with pytest.raises(InputError, match="point has shape"):
        query.point_velocity(ours, state, "b0", np.zeros(4))
    with pytest.raises(InputError, match="about='center'"):
        query.momentum(ours, state, about="center")
    with pytest.raises(InputError, match="state 'q' has shape"):
        query.make_state(ours, {"q": np.zeros(ours.nq + 1)})
    with pytest.raises(UnknownNameError, match="'qdd'"):
        query.make_state(ours, {"qdd": np.zeros(ours.nv)})


def test_a_state_of_a_constrained_model():
    """What the contact solver starts from is part of its state: zero unless given, and without a gradient."""
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><worldbody><geom type="plane" size="1 1 1"/><body pos="0 0 .1"><freejoint/>'
        '<geom size=".1"/></body></worldbody></mujoco>'
    )
    ours = our_model(model, worlds=2)
    assert ours.has_constraints
    state = query.make_state(ours, requires_grad=True)
    assert not state.warm_start.numpy().any() and not state.warm_start.requires_grad
    np.testing.assert_allclose(query.kinetic_energy(ours, state).numpy(), 0.0)
    warm = np.arange(6.0)
    given = query.make_state(ours, {"warm_start": warm, "qd": np.array([1.0, 0, 0, 0, 0, 0])})
    np.testing.assert_array_equal(given.warm_start.numpy(), np.stack([warm, warm]))
    np.testing.assert_allclose(query.kinetic_energy(ours, given).numpy(), 0.5 * model.body_mass[1], rtol=1e-12)
