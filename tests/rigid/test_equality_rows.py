"""Equalities against MuJoCo and closed forms: rows, forces, accelerations, rollouts, gradients."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from scipy.optimize import brentq

from contact_support import converging
from finite_differences import relative_error
from random_models import random_state
from rigid_support import INTEGRATORS, ROBOTS, Rollout, inputs_of
from row_support import (
    assert_gradients,
    assert_small,
    compare_rows,
    constrained_model,
    evaluated,
    gradient_case,
    near_reference,
    our_path,
    our_rows,
    path_ratio,
    scene_to_solve,
)
from warpsim.scene import Body, Equality, Joint, Options, Scene
from warpsim.sim.simulator import Simulator

EVERYTHING = dict(equalities=5, tendons=3, limits=True, friction_loss=True)
PANDA = [path for path in ROBOTS if path.stem == "panda"]
GROUPS = ("equality", "tendon_limit", "limit")
UPSTREAM = ("body.mass", "body.position", "body.rotation", "joint.anchor", "joint.reference", "tendon.coefficient")
"""Parameters that reach the rows through inverse weights, points, lengths."""


def check_random(seed: int) -> None:
    model = constrained_model(seed, **EVERYTHING)
    for state in (near_reference(model, seed), random_state(model, seed, speed=3.0)):
        assert_small(compare_rows(model, state), f"seed {seed}")


@pytest.mark.parametrize("seed", range(8))
def test_random_rows_match_mujoco(seed):
    check_random(seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(8, 260))
def test_many_random_rows_match_mujoco(seed):
    check_random(seed)


@pytest.mark.parametrize("path", PANDA, ids=lambda path: path.stem)
def test_coupled_fingers_of_a_robot(path):
    model = converging(mujoco.MjModel.from_xml_path(str(path)))
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
    assert model.neq == 1
    for seed in range(3):
        assert_small(compare_rows(model, random_state(model, seed)), f"seed {seed}")


HELD = """
<mujoco>
  <option timestep="0.002"><flag contact="{contact}"/></option>
  <worldbody>
    <body name="hand" mocap="true" pos="0.1 0.2 0.9" quat="0.9 0.1 0.3 0.2"><geom type="box" size=".3 .3 .1"/></body>
    <body name="load" pos="0 0 1.2"><freejoint/><geom size="0.25" mass="2"/>
      <body name="tail" pos="0.3 0 0"><joint axis="0 1 0"/><geom size="0.05" pos="0.2 0 0" mass="0.5"/></body>
    </body>
  </worldbody>
  <equality>
    <weld body1="hand" body2="load" anchor="0 0.1 0" torquescale="0.7"/>
    <connect body1="tail" body2="hand" anchor="0.2 0 0"/>
  </equality>
</mujoco>
"""


@pytest.mark.parametrize("contact", ["enable", "disable"])
def test_kinematic_bodies_hold_and_are_not_moved(contact):
    model = converging(mujoco.MjModel.from_xml_string(HELD.format(contact=contact)))
    data, state = mujoco.MjData(model), near_reference(model, 3)
    data.qpos[:], data.qvel[:] = state.qpos, state.qvel
    mujoco.mj_forward(model, data)
    assert data.ncon == (contact == "enable")
    scene = scene_to_solve(model)
    scene.options.contacts = contact == "enable"
    hand = np.concatenate([model.body_pos[1], model.body_quat[1]])
    e = evaluated(scene, {"q": np.concatenate([hand, state.qpos]), "qd": np.concatenate([np.zeros(6), state.qvel])})
    qdd = e.work.constraint.qdd.numpy()[0]
    assert (qdd[:6] == 0.0).all()
    assert relative_error(qdd[6:], data.qacc) < 1e-10
    np.testing.assert_array_equal(our_rows(e).jacobian[:, :6], 0.0)


WIRE = """
<mujoco>
  <option timestep="0.002"><flag contact="disable"/></option>
  <worldbody>
    <site name="hook" pos="0.2 0 1"/>
    <body name="base"><freejoint/><geom size=".1" mass="1.5"/>
      <body name="arm" pos="0.2 0 0"><joint type="ball"/><geom size=".05" pos=".2 .1 0" mass="0.7"/>
        <site name="a" pos="0.1 0.05 0.2"/></body>
      <body name="leg" pos="-0.2 0 0"><joint axis="0 1 0"/><geom size=".05" pos="-.2 0 .1" mass="0.6"/>
        <site name="b" pos="-0.1 0.1 0.05"/></body>
    </body>
  </worldbody>
  <tendon>
    <spatial name="inner" limited="true" range="0.6 0.7" solreflimit="0.03 0.8" solimplimit="0.7 0.96 0.2 0.4 2">
      <site site="a"/><site site="b"/></spatial>
    <spatial name="outer" limited="true" range="1.0 1.1" solreflimit="-300 -20">
      <site site="hook"/><site site="b"/></spatial>
  </tendon>
</mujoco>
"""


def wire_scene(model: mujoco.MjModel) -> Scene:
    """The two wires as distances; MuJoCo's are made as soft as those, whose inverse inertia is that of the bodies."""
    scene = scene_to_solve(model)
    scene.tendons.clear()
    for k, (a, b) in enumerate((("a", "b"), ("hook", "b"))):
        sites = [mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_SITE, name) for name in (a, b)]
        bodies = model.site_bodyid[sites]
        model.tendon_invweight0[k] = model.body_invweight0[bodies, 0].sum()
        names = [model.body(body).name if body else None for body in bodies]
        scene.equalities.append(
            Equality(
                f"wire{k}",
                "distance",
                *names,
                anchor=model.site_pos[sites[0]].copy(),
                anchor_b=model.site_pos[sites[1]].copy(),
                distance_range=tuple(model.tendon_range[k]),
                solref=model.tendon_solref_lim[k].copy(),
                solimp=model.tendon_solimp_lim[k].copy(),
            )
        )
    return scene


def test_distances_act_like_limits_of_wires():
    model = converging(mujoco.MjModel.from_xml_string(WIRE))
    scene, data, ends = wire_scene(model), mujoco.MjData(model), set()
    for seed in range(12):
        state = near_reference(model, seed, spread=0.5)
        state.apply(data)
        mujoco.mj_forward(model, data)
        e = evaluated(scene, inputs_of(state))
        ours, sides = our_rows(e), np.sign(data.ten_length - model.tendon_range.mean(1))
        ends.update((k, side) for k, side in zip(data.efc_id, sides[data.efc_id], strict=True))
        assert len(ours.force) == data.nefc
        if data.nefc:
            assert relative_error(ours.reference, data.efc_aref) < 1e-12
            assert relative_error(ours.weight, data.efc_D) < 1e-12
            assert relative_error(ours.force, data.efc_force) < 1e-10
        assert relative_error(e.work.constraint.qdd.numpy()[0], data.qacc) < 1e-10
    assert len(ends) == 4, "both ends of both wires"


def hanging(distance_range: tuple[float, float], height: float, **options) -> Scene:
    """A free 2 kg body `height` above the origin, tied to it."""
    scene = Scene(options=Options(timestep=0.002, **options))
    scene.bodies.append(
        Body("mass", position=np.array([0.0, 0.0, height]), mass=2.0, com=np.zeros(3), inertia=np.eye(3))
    )
    scene.joints.append(Joint("free", "free", "mass"))
    scene.equalities.append(
        Equality("tie", "distance", "mass", None, anchor_b=np.zeros(3), distance_range=distance_range)
    )
    return scene


@pytest.mark.parametrize(("distance_range", "height"), [((0.0, 1.0), -1.0), ((1.0, 1.0), -1.0), ((1.0, 1.0), 1.0)])
def test_a_rope_hangs_and_a_rod_also_stands(distance_range, height):
    """At rest k d r = R f: the tie gives by r where its force is the weight."""
    scene = hanging(distance_range, height)
    start = np.array([0.0, 0.0, height, 1.0, 0.0, 0.0, 0.0])
    end = our_path(scene, start, np.zeros(6), 1500)[-1]

    def imbalance(r: float) -> float:
        x = min(r / 0.001, 1.0)  # solimp 0.9 0.95 0.001 0.5 2
        d = 0.9 + 0.05 * (2 * x * x if x < 0.5 else 1 - 2 * (1 - x) ** 2)
        return r * d / (0.95 * 0.02) ** 2 - (1 - d) / d / 2.0 * (2.0 * 9.81)

    give = brentq(imbalance, 0.0, 0.01, xtol=1e-15)
    assert abs(end[2] - (height - give)) < 1e-9
    assert np.abs(end[7:]).max() < 1e-9


@pytest.mark.parametrize("kind", ["connect", "weld", "distance"])
def test_equalities_of_no_length_have_finite_forces_and_gradients(kind):
    """Points that coincide: nothing to say which way to push, or by how much the softness changes."""
    scene = hanging((0.1, 0.2), 0.0)
    scene.equalities[0].kind = kind
    rollout = Rollout(scene, 2, ("joint_force",), ("equality.anchor_a", "equality.range", "equality.solimp"))
    inputs = {"q": np.array([[0.0, 0, 0, 1, 0, 0, 0]]), "qd": np.zeros((1, 6)), "warm_start": np.zeros((1, 6))}
    inputs |= {"joint_force": np.zeros((2, 1, 6)), **rollout.parameter_values()}
    assert all(np.isfinite(x).all() for x in rollout.states(inputs).values())
    assert all(np.isfinite(x).all() for x in rollout.gradient(inputs).values())


FOUR_BAR = """
<mujoco>
  <option timestep="0.001"><flag contact="disable"/></option>
  <default>
    <joint axis="0 1 0" damping="0.02"/><geom type="capsule" size="0.02" mass="0.5"/><equality solref="0.002 1"/>
  </default>
  <worldbody>
    <body name="crank"><joint/><geom fromto="0 0 0 0 0 0.2"/>
      <body name="coupler" pos="0 0 0.2"><joint/><geom fromto="0 0 0 0.5 0 0.2"/>
        <body name="rocker" pos="0.5 0 0.2"><joint/><geom fromto="0 0 0 0 0 -0.2"/></body>
      </body>
    </body>
    {ground}
  </worldbody>
  <equality>{closure}</equality>
</mujoco>
"""
CLOSURES = {
    "connect": ("", '<connect body1="rocker" anchor="0 0 -0.4"/>'),
    "weld": (
        '<body name="stand" pos="0.5 0 0"><joint/><geom fromto="0 0 0 0 0 0.2"/></body>',
        '<weld body1="rocker" body2="stand" anchor="0 0 0.2"/>',
    ),
}


@pytest.mark.parametrize("kind", CLOSURES)
def test_a_four_bar_linkage_stays_closed(kind):
    ground, closure = CLOSURES[kind]
    model = mujoco.MjModel.from_xml_string(FOUR_BAR.format(ground=ground, closure=closure))
    data = mujoco.MjData(model)
    # a velocity the closed loop allows: what MuJoCo makes of a spun crank after a while
    data.qvel[0] = 1.0
    for _ in range(100):
        mujoco.mj_step(model, data)
    path = our_path(scene_to_solve(model), data.qpos.copy(), data.qvel.copy(), 10000)
    turned, gaps = np.abs(np.diff(path[:, 0])).sum(), []
    for row in path[::20]:
        data.qpos[:] = row[: model.nq]
        mujoco.mj_forward(model, data)
        gaps.append(np.linalg.norm(data.efc_pos[:3]))
    assert turned > 5.0, "it moves"
    assert max(gaps) < 1e-4


def check_path(seed: int, integrator: str) -> None:
    model = constrained_model(seed, integrator, **EVERYTHING, actuators=0)
    state = near_reference(model, seed)
    assert path_ratio(model, state.qpos, state.qvel, 200) < 100.0


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_rollouts_part_no_faster_than_mujoco_from_itself(integrator):
    check_path(1, integrator)


@pytest.mark.long
@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("seed", range(10, 30))
def test_many_rollouts_part_no_faster_than_mujoco_from_itself(seed, integrator):
    check_path(seed, integrator)


@pytest.mark.parametrize(("integrator", "steps"), [("euler", 1), ("implicitfast", 20), ("rk4", 20)])
def test_gradients(integrator, steps):
    rollout, inputs = gradient_case(constrained_model(1, integrator, **EVERYTHING), 1, steps, GROUPS)
    assert_gradients(rollout, inputs)


def test_gradients_of_what_rows_are_made_of():
    rollout, inputs = gradient_case(constrained_model(0, **EVERYTHING), 0, 1, (), UPSTREAM)
    assert_gradients(rollout, inputs)


def test_gradients_of_distances():
    model = mujoco.MjModel.from_xml_string(WIRE)
    scene = wire_scene(model)
    rollout, inputs = gradient_case(model, 1, 5, ("equality",), scene=scene, spread=0.5)
    assert_gradients(rollout, inputs)


@pytest.mark.long
@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("steps", [1, 20])
def test_many_gradients(integrator, steps):
    checked, left_out = 0, 0
    for seed in range(2, 22):
        rollout, inputs = gradient_case(
            constrained_model(seed, integrator, **EVERYTHING), seed, steps, GROUPS, UPSTREAM
        )
        check = assert_gradients(rollout, inputs, seed, most=1.0)
        checked, left_out = checked + len(check.errors), left_out + len(check.excluded)
    assert left_out < 0.1 * (checked + left_out)


def test_constraint_error_is_the_largest_violation():
    """Against MuJoCo's row positions at random states, of a connect and of joint couplings; and of a joint's limit."""
    ground, closure = CLOSURES["connect"]
    model = mujoco.MjModel.from_xml_string(FOUR_BAR.format(ground=ground, closure=closure))
    scene = scene_to_solve(model)
    sim, data = Simulator(scene, outputs=("constraint_error",)), mujoco.MjData(model)
    for seed in range(3):
        data.qpos[:] = 0.2 * np.random.default_rng(seed).normal(size=model.nq)
        mujoco.mj_forward(model, data)
        found = sim.rollout(steps=1, q=data.qpos).numpy("constraint_error")[1, 0]
        assert found == pytest.approx(np.linalg.norm(data.efc_pos[:3]), rel=1e-12)
    scene.joints[0].limit = (-0.5, 3.0)
    data.qpos[:] = (-2.5, 0.0, 0.0)
    mujoco.mj_forward(model, data)
    expected = max(2.0, np.linalg.norm(data.efc_pos[:3]))
    found = Simulator(scene, outputs=("constraint_error",)).rollout(steps=1, q=data.qpos).numpy("constraint_error")
    assert found[1, 0] == pytest.approx(expected, rel=1e-12)
