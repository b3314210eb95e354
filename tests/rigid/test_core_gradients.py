"""Rollouts: gradients of a random form of all states against central differences, with respect to everything.

Everything: the initial state, all five controls, and every authored parameter array of the model.
"""

from __future__ import annotations

import numpy as np
import pytest

from core_scenes import rich_scene, rich_state
from isolated_stage import check_direction, direction_for
from random_models import random_state
from rigid_support import INTEGRATORS, ROBOTS, Rollout, initial_state, random_model, robot, scene_of
from warpsim.rigid.compile.compile import compile_model
from warpsim.rigid.model.fields import control_fields
from warpsim.rigid.model.model import Model
from warpsim.scene import Body, Drive, Joint, Medium, Options, Scene, Shape, Tendon, TendonPoint
from warpsim.tape.memory import Memory

CONTROLS = ("joint_force", "actuator", "drive_target", "drive_velocity", "wrench")


SMOOTH_GROUPS = ("body", "joint", "tendon", "actuator", "drive", "site", "world")
SHAPE_MASS = ("shape.size", "shape.density", "shape.mass", "shape.position", "shape.rotation")
"""The parameters of smooth dynamics; all others are read by constraints."""


def carried(model: Model) -> tuple[str, ...]:
    """Authored arrays of smooth dynamics that hold numbers."""
    smooth = [name for name in model.authored if name.split(".")[0] in SMOOTH_GROUPS or name in SHAPE_MASS]
    return tuple(name for name in smooth if model.authored[name].size)


def full_rollout(scene: Scene, steps: int, **given) -> Rollout:
    model = compile_model(scene)
    controls = tuple(name for name, f in control_fields(model).items() if f.nbytes)
    return Rollout(scene, steps, controls, carried(model), **given)


def rollout_inputs(rollout: Rollout, state: dict[str, np.ndarray], scale: float = 1.0) -> dict[str, np.ndarray]:
    start = initial_state(rollout.model, state["q"], state["qd"], state.get("activation", np.zeros(0)))
    return start | rollout.random_controls(scale) | rollout.parameter_values()


def check_rollout(rollout: Rollout, inputs: dict[str, np.ndarray], seed: int = 0) -> dict[str, float]:
    """Asserts the gradient with respect to every input; returns the deviations of those that are not zero."""
    rng = np.random.default_rng(seed)
    gradients = rollout.gradient(inputs)
    assert set(gradients) == set(inputs)
    deviations = {}
    for name, gradient in gradients.items():
        if not inputs[name].size:
            continue
        direction = direction_for(name, inputs[name], rng)
        f = lambda x, n=name: rollout.loss(inputs | {n: x})  # noqa: E731
        found = check_direction(name, gradient, direction, f, inputs[name])
        if gradient.any():
            deviations[name] = found
    return deviations


QUICK = {("euler", "random"), ("euler", "rest"), ("implicitfast", "identity"), ("rk4", "random")}
CASES = [
    pytest.param(integrator, kind, marks=[] if (integrator, kind) in QUICK else pytest.mark.long)
    for integrator in INTEGRATORS
    for kind in ("random", "rest", "identity")
]


@pytest.mark.parametrize(("integrator", "kind"), CASES)
def test_everything_at_once(integrator, kind):
    """All joints, actuators, drives (one saturated), tendons, shapes that give mass, a kinematic body, a medium."""
    scene = rich_scene(integrator)
    scene.tendons[1].armature = 0.05
    scene.tendons.append(
        Tendon(
            "crank", path=[TendonPoint("site", "ground hook"), TendonPoint("site", "nozzle")], rod=0.9, stiffness=3.0
        )
    )
    rollout = full_rollout(scene, 3)
    reached = set(check_rollout(rollout, rollout_inputs(rollout, rich_state(kind))))
    assert {"q", "qd", "activation", *CONTROLS} <= reached
    # No activation is cut here; the one force that is cut may be cut again by its joint's range. Targets are given as
    # controls, which take the place of the scene's own.
    replaced = {"drive.target", "drive.target_velocity"}
    assert set(rollout.parameters) - reached <= {"actuator.activation_range", "actuator.force_range", *replaced}


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_random_models(integrator):
    for seed in range(1, 2):
        model = random_model(seed, integrator)
        rollout = full_rollout(scene_of(model), 4)
        state = random_state(model, seed)
        check_rollout(rollout, rollout_inputs(rollout, {"q": state.qpos, "qd": state.qvel, "activation": state.act}))


@pytest.mark.long
@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_more_random_models(integrator):
    for seed in range(2, 12):
        model = random_model(seed, integrator)
        rollout = full_rollout(scene_of(model), 4)
        state = random_state(model, seed)
        check_rollout(rollout, rollout_inputs(rollout, {"q": state.qpos, "qd": state.qvel, "activation": state.act}))


@pytest.mark.parametrize("kind", ["sphere", "capsule", "box", "cylinder"])
def test_symmetric_bodies_in_a_medium(kind):
    """Equal moments, where axes of the drag could turn without bound."""
    size = np.array({"sphere": (0.1, 0.0, 0.0), "box": (0.1, 0.1, 0.2)}.get(kind, (0.06, 0.15, 0.0)))
    turn = np.array([0.8, 0.36, 0.48, 0.0])
    scene = Scene(
        bodies=[Body("body"), Body("limb", "body", position=np.array([0.0, 0.3, 0.0]))],
        joints=[Joint("float", "free", "body"), Joint("bend", "hinge", "limb", axis=np.array([0.6, 0.0, 0.8]))],
        shapes=[Shape(name, kind, name, size=size, rotation=turn) for name in ("body", "limb")],
        medium=Medium(density=500.0, viscosity=0.1, wind=np.array([0.3, -0.2, 0.1])),
        options=Options(integrator="implicitfast", constraints=False),
    )
    rollout = full_rollout(scene, 3)
    rng = np.random.default_rng(1)
    state = {"q": rollout.model.initial_q, "qd": rng.normal(size=rollout.model.nv)}
    reached = check_rollout(rollout, rollout_inputs(rollout, state))
    assert {"shape.size", "shape.density", "world.medium_density", "world.wind"} <= set(reached)


def humanoid_scene(integrator: str) -> Scene:
    """MuJoCo's humanoid with two drives, so that all five controls act."""
    model = robot(next(path for path in ROBOTS if path.stem == "humanoid"), integrator)
    scene = scene_of(model)
    scene.drives = [
        Drive("knee", "knee_left", stiffness=20.0, damping=2.0, max_force=500.0),
        Drive("elbow", "elbow_right", stiffness=10.0, damping=1.0, max_force=2.0),
    ]
    return scene


@pytest.mark.skipif(not ROBOTS, reason="the third-party robot assets are not beside the project")
@pytest.mark.parametrize(
    "integrator",
    ["euler", pytest.param("implicitfast", marks=pytest.mark.long), pytest.param("rk4", marks=pytest.mark.long)],
)
def test_humanoid_for_a_hundred_steps(integrator):
    scene = humanoid_scene(integrator)
    rollout = full_rollout(scene, 100, options={"memory": Memory(segment=10)})
    model = rollout.model
    rng = np.random.default_rng(0)
    state = {"q": model.initial_q + 0.0, "qd": 0.3 * rng.normal(size=model.nv)}
    state["q"][7:] += 0.1 * rng.normal(size=model.nq - 7)
    check_rollout(rollout, rollout_inputs(rollout, state, scale=0.3))


def test_worlds_have_independent_gradients():
    """Each world with its own state, controls and parameters gets, bit for bit, what it gets alone."""
    scene, worlds = rich_scene("euler"), 3
    together = full_rollout(scene, 4, worlds=worlds)
    rng = np.random.default_rng(2)
    inputs = rollout_inputs(together, rich_state("random"))
    for name, value in inputs.items():
        axis = 1 if name in CONTROLS else 0
        changed = np.where(np.isfinite(value), value * (1.0 + 0.05 * rng.normal(size=value.shape)), value)
        inputs[name] = np.ascontiguousarray(changed)
        assert value.shape[axis] == worlds
    states, gradients = together.states(inputs), together.gradient(inputs)
    alone = full_rollout(scene, 4)
    for world in range(worlds):
        pick = slice(world, world + 1)
        own = {n: v[:, pick] if n in CONTROLS else v[pick] for n, v in inputs.items()}
        alone.weights = {n: w[:, pick] for n, w in together.weights.items()}
        for name, value in alone.states(own).items():
            np.testing.assert_array_equal(value, states[name][:, pick], err_msg=name)
        for name, gradient in alone.gradient(own).items():
            expected = gradients[name][:, pick] if name in CONTROLS else gradients[name][pick]
            np.testing.assert_array_equal(gradient, expected, err_msg=name)


def test_a_gradient_is_not_shared_by_worlds():
    """A loss of world 1 alone leaves nothing on the others."""
    rollout = full_rollout(rich_scene("implicitfast"), 3, worlds=3)
    for weight in rollout.weights.values():
        weight[:, [0, 2]] = 0.0
    inputs = rollout_inputs(rollout, rich_state("random"))
    for name, gradient in rollout.gradient(inputs).items():
        others = gradient[:, [0, 2]] if name in CONTROLS else gradient[[0, 2]]
        assert not others.any(), name
