"""The object users hold: the same scene from any source, names, resets, defaults, saving."""

from __future__ import annotations

import warnings

import mujoco
import numpy as np
import pytest
import torch

import warpsim
from simulator_support import ARM, PENDULUM_USD, TUMBLER, arm, compiled, tumbler
from warpsim.cli.main import main
from warpsim.core.driving import drive
from warpsim.core.errors import InputError, UnknownNameError
from warpsim.io.mjcf import scene_from_mjmodel
from warpsim.optimizers.evaluation import evaluate
from warpsim.rigid.model.tangent import basis, projection, shift
from warpsim.scene import Body, Drive, Joint, Scene
from warpsim.sim.simulator import Simulator
from warpsim.sim.start import Start

XML = ARM.format(integrator="Euler")

URDF = """<robot name="pendulum">
  <link name="base"/>
  <link name="bob"><inertial><origin xyz="0 0 -0.5"/><mass value="2"/>
    <inertia ixx=".1" iyy=".1" izz=".01" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="hinge" type="continuous"><parent link="base"/><child link="bob"/><axis xyz="0 1 0"/></joint>
</robot>"""


def drive_scene() -> Scene:
    return Scene(
        bodies=[Body("bob", mass=2.0, com=np.array([0.0, 0.0, -0.5]), inertia=np.diag([0.1, 0.1, 0.01]))],
        joints=[Joint("hinge", "hinge", "bob", axis=np.array([0.0, 1.0, 0.0]))],
        drives=[Drive("servo", "hinge", stiffness=500.0, damping=50.0, target=0.7)],
    )


def test_public_names_resolve():
    for name in warpsim.__all__:
        assert getattr(warpsim, name).__name__ == name
    assert set(warpsim.__all__) <= set(dir(warpsim))
    with pytest.raises(AttributeError, match="public names"):
        warpsim.Simulater  # noqa: B018


def test_usd_urdf_mjcf_and_scene_give_one_motion(tmp_path):
    (tmp_path / "a.usda").write_text(PENDULUM_USD)
    (tmp_path / "a.urdf").write_text(URDF)
    xml = """<mujoco><worldbody><body name="bob"><joint name="hinge" axis="0 1 0"/>
      <inertial pos="0 0 -.5" mass="2" diaginertia=".1 .1 .01"/></body></worldbody></mujoco>"""
    (tmp_path / "a.xml").write_text(xml)
    scene = drive_scene()
    scene.drives = []
    runs = [Simulator(source).rollout(steps=20, q=[0.5]).q for source in (tmp_path / "a.xml", scene)]
    runs += [Simulator(str(tmp_path / f"a.{suffix}")).rollout(steps=20, q=[0.5]).q for suffix in ("usda", "urdf")]
    for run in runs[1:]:
        torch.testing.assert_close(run, runs[0], rtol=1e-6, atol=1e-8)  # UsdPhysics attributes are single precision


def test_physics_that_is_left_out_is_told_unless_that_was_decided(tmp_path):
    known = "float physics:mass = 2"
    (tmp_path / "a.usda").write_text(PENDULUM_USD.replace(known, f"{known}\n        float physics:mas = 3"))
    with pytest.warns(
        warpsim.UnsupportedPhysicsWarning, match=r"a.usda has physics that is not simulated: /World/Bob: physics:mas"
    ):
        Simulator(tmp_path / "a.usda")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Simulator(tmp_path / "a.usda", strict=False)


def test_what_a_file_leaves_open_is_told(tmp_path, capsys):
    """Without inertia and colliders the period of a pendulum is anyone's guess."""
    inertia = "float3 physics:diagonalInertia = (0.1, 0.1, 0.01)"
    assert inertia in PENDULUM_USD
    (tmp_path / "a.usda").write_text(PENDULUM_USD.replace(inertia, ""))
    (tmp_path / "b.usda").write_text(PENDULUM_USD)
    says = r"a.usda leaves physics open: /World/Bob: physics:diagonalInertia assumed \(.*radius 0.1 m; author it\)"
    for strict in (None, True):
        with pytest.warns(warpsim.AssumedWarning, match=says):
            Simulator(tmp_path / "a.usda", strict=strict)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Simulator(tmp_path / "a.usda", strict=False)
        Simulator(tmp_path / "b.usda")
    assert main(["inspect", "--lenient", str(tmp_path / "a.usda")]) == 0
    shown = capsys.readouterr().out
    assert "1 assumed" in shown and "/World/Bob: physics:diagonalInertia assumed" in shown


def test_values_out_of_range_are_input_and_simulation_errors(tmp_path):
    """Wrong as input; in a search, a candidate to step around."""
    (tmp_path / "a.usda").write_text(PENDULUM_USD)
    sim = Simulator(tmp_path / "a.usda")
    mass = "/World/Bob.physics:mass"

    class Lightest:
        start, lower, upper, names = torch.tensor([1.0]), torch.tensor([-10.0]), torch.tensor([10.0]), ["mass"]

        def loss(self, x: torch.Tensor) -> torch.Tensor:
            return sim.rollout(3, parameters={mass: x[0]}, q=[0.5]).q.sum() + x.sum()

    assert drive(evaluate(Lightest(), torch.tensor([-1.0]))).loss == np.inf
    with pytest.raises(InputError, match="must be above 0"):
        drive(evaluate(Lightest(), torch.tensor([-1.0]), strict=True))
    assert np.isfinite(drive(evaluate(Lightest(), torch.tensor([1.0]))).loss)


def test_a_scene_in_which_nothing_moves_is_told_so(tmp_path):
    (tmp_path / "a.usda").write_text('#usda 1.0\n(defaultPrim = "W")\ndef Xform "W" {}\n')
    with pytest.raises(InputError, match="nothing in this scene can move"):
        Simulator(tmp_path / "a.usda").rollout(5)
    with pytest.raises(InputError, match="an `MjModel` or an `MjSpec`, not None"):
        Simulator(None)


def test_a_saved_rollout_keeps_the_attributes_it_was_given(tmp_path):
    """Loaded again, the file gives the same motion: of the world saved, where each has its own."""
    (tmp_path / "a.usda").write_text(PENDULUM_USD)
    mass, com = "/World/Bob.physics:mass", "/World/Bob.physics:centerOfMass"
    sim = Simulator(tmp_path / "a.usda", worlds=2)
    masses = torch.tensor([3.0, 5.0], requires_grad=True)
    made = sim.rollout(40, q=[0.5], parameters={mass: masses, com: [0.0, 0.0, -0.25]})
    assert not torch.equal(made.q, sim.rollout(40, q=[0.5]).q)
    made.every(4).save(tmp_path / "b.usda", world=1)
    again = Simulator(tmp_path / "b.usda")
    assert again.attribute(mass).value == 5.0
    torch.testing.assert_close(again.rollout(40).q[:, 0], made.q[:, 1], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(made.every(4).times, made.times[::4], rtol=1e-14)
    sim.rollout(4).save(tmp_path / "c.usda")
    assert not (tmp_path / "c.values.usda").exists()


def test_a_rollout_is_mujocos():
    model = compiled(XML)
    data = mujoco.MjData(model)
    rng = np.random.default_rng(0)
    controls = rng.normal(size=(50, 2))
    trajectory = Simulator(scene_from_mjmodel(model)).rollout(controls=torch.tensor(controls))
    for step, control in enumerate(controls):
        data.ctrl[:] = control
        mujoco.mj_step(model, data)
        np.testing.assert_allclose(trajectory.numpy("q")[step + 1, 0], data.qpos, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(trajectory.numpy("qd")[step + 1, 0], data.qvel, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("scene", "controls"),
    [(arm(), ("actuator",)), (drive_scene(), ("drive_target",)), (tumbler(), ("joint_force",))],
)
def test_default_controls(scene, controls):
    sim = Simulator(scene)
    assert sim.control_names == controls
    assert sim.control_size == {"actuator": 2, "drive_target": 1, "joint_force": sim.nv}[controls[0]]


def test_drives_hold_the_scenes_targets_unless_controlled():
    sim = Simulator(drive_scene())
    np.testing.assert_allclose(sim.rollout(steps=3000).numpy("q")[-1, 0, 0], 0.7, atol=0.02)
    np.testing.assert_allclose(sim.rollout(controls=torch.full((3000, 1), -0.2)).numpy("q")[-1, 0, 0], -0.2, atol=0.02)


def test_names_and_places():
    sim = Simulator(tumbler())
    assert sim.body("flail").index == sim.body_names.index("flail") == 2
    assert sim.joint("ball").q == slice(7, 11) and sim.joint("ball").dofs == slice(6, 9)
    assert sim.dof_names[:7] == ("float:x", "float:y", "float:z", "float:rx", "float:ry", "float:rz", "ball:rx")
    trajectory = sim.rollout(steps=2)
    assert torch.equal(trajectory.joint_position("ball"), trajectory.q[..., 7:11])
    assert torch.equal(trajectory.joint_velocity("ball"), trajectory.qd[..., 6:9])
    assert torch.equal(trajectory.body_rotation("hub"), trajectory["body_rotation"][..., 1, :])


@pytest.mark.parametrize(
    ("look_up", "message"),
    [
        (lambda sim: sim.body("for"), "no body 'for'; did you mean 'fore'"),
        (lambda sim: sim.joint("elbo"), "did you mean 'elbow'"),
        (lambda sim: sim.actuator("lft"), "did you mean 'lift'"),
        (lambda sim: sim.drive("servo"), "no drive 'servo'; drive names: \\(none\\)"),
        (lambda sim: sim.dof("sholder"), "did you mean 'shoulder'"),
        (lambda sim: sim.parameter("bodymass"), "did you mean 'body.mass'"),
        (lambda sim: sim.rollout(steps=1).body_position("uper"), "did you mean 'upper'"),
        (lambda sim: sim.rollout(steps=1)["kinetic_energy"], "ask for outputs with"),
        (lambda sim: Simulator(arm(), controls=("actuators",)), "did you mean 'actuator'"),
    ],
)
def test_unknown_names_suggest_the_near_ones(look_up, message):
    with pytest.raises(UnknownNameError, match=message):
        look_up(Simulator(arm()))


def test_unknown_files_and_suffixes(tmp_path):
    with pytest.raises(InputError, match="no file"):
        Simulator(tmp_path / "none.usda")
    (tmp_path / "robot.json").write_text("{}")
    with pytest.raises(InputError, match="unknown suffix '.json'"):
        Simulator(tmp_path / "robot.json")


def test_reset_of_some_worlds_keeps_the_others():
    sim = Simulator(arm(), worlds=3)
    sim.reset(q=torch.arange(6.0).reshape(3, 2))
    sim.reset(worlds=[1], q=[7.0, 8.0])
    assert sim.state.q.tolist() == [[0, 1], [7, 8], [4, 5]]
    sim.reset(worlds=np.array([True, False, True]))
    assert sim.state.q.tolist() == [[0, 0], [7, 8], [0, 0]]
    with pytest.raises(InputError, match="mask of worlds has shape"):
        sim.reset(worlds=[True, False])
    with pytest.raises(InputError, match="indices within 0 … 2"):
        sim.reset(worlds=[3])


def test_noise_is_seeded_per_world_and_stays_on_the_manifold():
    few, many = Simulator(tumbler(), worlds=2), Simulator(tumbler(), worlds=5)
    noise = dict(seed=3, position_noise=0.3, velocity_noise=0.5)
    a, b = few.reset(start=Start(**noise)), many.reset(start=Start(**noise))
    assert torch.equal(a.q, b.q[:2]) and torch.equal(a.qd, b.qd[:2])
    assert not torch.equal(b.q[0], b.q[1])
    torch.testing.assert_close(b.q[:, 3:7].norm(dim=1), torch.ones(5, dtype=torch.float64))
    assert not torch.equal(many.reset(start=Start(**{**noise, "seed": 4})).q, b.q)
    with pytest.raises(InputError, match="give seed="):
        few.reset(start=Start(position_noise=0.1))


def test_worlds_do_not_depend_on_each_other():
    u = torch.randn(10, 4, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    many = Simulator(arm(), worlds=4).rollout(controls=u)
    one = Simulator(arm()).rollout(controls=u[:, 2:3])
    assert torch.equal(many.q[:, 2:3], one.q)


def test_parameters_hold_until_changed_and_per_world_values_act_per_world():
    sim = Simulator(arm(), worlds=2)
    plain = sim.rollout(steps=5).q
    gravity = sim.parameter("world.gravity") * torch.tensor([[1.0], [0.5]], dtype=torch.float64)
    sim.set_parameters({"world.gravity": gravity})
    changed = sim.rollout(steps=5).q
    assert torch.equal(changed[:, 0], plain[:, 0]) and not torch.equal(changed[:, 1], plain[:, 1])
    sim.set_parameters(None)
    assert torch.equal(sim.rollout(steps=5).q, plain)


def test_python_numbers_keep_their_digits():
    """Lists and floats are not rounded to float32 on their way in."""
    sim = Simulator(arm())
    count = len(sim.model.initial_q)
    wanted = torch.full((1, count), 0.1, dtype=sim.torch_dtype)
    assert torch.equal(sim.initial_state(q=[0.1] * count)["q"], wanted)
    sim.set_parameters({"world.timestep": 0.003})
    assert sim.timestep == wanted.new_tensor(0.003).item()


def test_tangent_moves_are_mujocos():
    model = compiled(TUMBLER)
    layout = Simulator(tumbler()).model.layout
    rng = np.random.default_rng(0)
    q, delta = np.array(model.qpos0), rng.normal(size=model.nv)
    mujoco.mj_integratePos(model, q, rng.normal(size=model.nv), 1.0)
    expected = q.copy()
    mujoco.mj_integratePos(model, expected, delta, 1.0)
    at, move = torch.tensor(q), torch.tensor(delta)
    np.testing.assert_allclose(shift(layout, at, move).numpy(), expected, atol=1e-14)
    jacobian = torch.autograd.functional.jacobian(lambda d: shift(layout, at, d), 1e-9 * move)
    np.testing.assert_allclose(basis(layout, at).numpy(), jacobian.numpy(), atol=1e-8)
    np.testing.assert_allclose((projection(layout, at) @ basis(layout, at)).numpy(), np.eye(model.nv), atol=1e-14)


def test_plan_can_be_printed_before_anything_runs():
    plan = Simulator(arm()).plan(10_000, memory="20MB")
    assert plan.steps == 10_000
    assert "segment" in str(plan)


def test_saving_arrays(tmp_path):
    sim = Simulator(arm(), worlds=2, outputs=("kinetic_energy",))
    trajectory = sim.rollout(steps=4)
    assert trajectory.save(tmp_path / "run.npz") == [tmp_path / "run.npz"]
    saved = np.load(tmp_path / "run.npz")
    np.testing.assert_array_equal(saved["q"], trajectory.numpy("q"))
    np.testing.assert_array_equal(saved["kinetic_energy"], trajectory.numpy("kinetic_energy"))
    np.testing.assert_allclose(saved["times"], 0.01 * np.arange(5))
    assert list(saved["body_names"]) == ["", "upper", "fore"]
    with pytest.raises(InputError, match="saved as .html, .glb, .npz, .usda or .usdc"):
        trajectory.save(tmp_path / "run.csv")


def test_saving_usd_and_loading_it_again(tmp_path):
    (tmp_path / "pendulum.usda").write_text(PENDULUM_USD)
    sim = Simulator(tmp_path / "pendulum.usda")
    trajectory = sim.rollout(steps=10, q=[0.4])
    written = trajectory.save(tmp_path / "out.usda")
    assert written[0] == tmp_path / "out.usda" and all(path.is_file() for path in written)
    again = Simulator(tmp_path / "out.usda")
    assert torch.equal(again.state.q, trajectory.q[0])


def test_controls_and_outputs_without_entries_are_refused():
    with pytest.raises(InputError, match="control 'drive_target' is empty"):
        Simulator(arm(), controls=("drive_target",))
    with pytest.raises(InputError, match="output 'saturated' is empty"):
        Simulator(tumbler(), outputs=("saturated",))


def test_softening_is_an_option_of_the_constructor():
    """A ball 5 mm above the floor feels it only where contacts are softened, as by the scene's own option."""
    ball = """<mujoco>{option}<worldbody><geom type="plane" size="1 1 1"/>
      <body pos="0 0 .105"><freejoint/><geom type="sphere" size=".1"/></body></worldbody></mujoco>"""
    scene = scene_from_mjmodel(mujoco.MjModel.from_xml_string(ball.format(option="")))
    plain, soft = Simulator(scene), Simulator(scene, contact_softening=0.02)
    assert soft.scene.options.contact_softening == 0.02 and scene.options.contact_softening == 0.0
    fall = -9.81 * plain.timestep
    assert plain.rollout(1).qd[1, 0, 2] == pytest.approx(fall, rel=1e-12)
    assert soft.rollout(1).qd[1, 0, 2] > 0.9 * fall
    assert torch.equal(soft.with_worlds(2).rollout(5).q[:, 1], soft.rollout(5).q[:, 0])
    assert Simulator(scene, contact_softening=0.02, softening_pass="backward").rollout(1).qd[1, 0, 2] == pytest.approx(
        fall, rel=1e-12
    )
