"""Contact parameters of pairs: against MuJoCo's contacts, closed forms, integrated rebounds and central differences."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from derive_support import DerivedLoss
from warpsim.io.mjcf import scene_from_mjmodel
from warpsim.rigid.compile.compile import compile_model
from warpsim.rigid.compile.derive import Derivation
from warpsim.rigid.step.program import world_range
from warpsim.scene import Body, ContactOverride, Joint, Scene, Shape

PAIR = ["pair.friction", "pair.solref", "pair.solref_friction", "pair.solimp", "pair.margin"]
GEOMS = 6


def _text(values) -> str:
    return " ".join(repr(float(v)) for v in np.atleast_1d(values))


def _solref(rng: np.random.Generator) -> np.ndarray:
    return rng.uniform(0.01, 0.1, 2) * [1, 10] if rng.random() < 0.7 else -rng.uniform(1, 100, 2)


def _solimp(rng: np.random.Generator) -> np.ndarray:
    return rng.uniform([0.1, 0.8, 0.001, 0.2, 1.0], [0.8, 0.99, 0.1, 0.8, 3.0])


def overlapping_spheres(seed: int) -> mujoco.MjModel:
    """Spheres that all touch, with random contact parameters, and two pairs given outright."""
    rng = np.random.default_rng(seed)
    geoms = "".join(
        f'<body pos="{_text(0.05 * rng.normal(size=3))}"><freejoint/><geom name="g{k}" size="1" '
        f'priority="{rng.integers(2)}" condim="{rng.choice([1, 3, 4, 6])}" '
        f'solmix="{rng.choice([0, 0, rng.uniform(0, 3)])}" '
        f'friction="{_text(rng.choice([0.0, 1e-6, 0.3, 0.8], 3))}" solref="{_text(_solref(rng))}" '
        f'solimp="{_text(_solimp(rng))}" margin="{rng.uniform(0, 0.1)}" gap="{rng.uniform(0, 0.1)}"/></body>'
        for k in range(GEOMS)
    )
    pairs = (
        f'<pair geom1="g3" geom2="g1" condim="4" friction="{_text(rng.uniform(0, 1, 5))}" margin="0.02" gap="0.01" '
        f'solref="{_text(_solref(rng))}" solreffriction="0.03 0.7" solimp="{_text(_solimp(rng))}"/>'
        '<pair geom1="g0" geom2="g5"/>'
    )
    return mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{geoms}</worldbody><contact>{pairs}</contact></mujoco>")


@pytest.mark.parametrize("seed", range(12))
def test_same_as_mujoco(seed):
    mj = overlapping_spheres(seed)
    data = mujoco.MjData(mj)
    mujoco.mj_forward(mj, data)
    model = compile_model(scene_from_mjmodel(mj))
    for name in PAIR:
        model.physical[name].fill_(np.nan)
    Derivation(model).run()
    pairs = {frozenset(p): i for i, p in enumerate(model.pair_table.pair_shapes.numpy().tolist())}
    assert data.ncon == len(pairs) == GEOMS * (GEOMS - 1) // 2
    ours = {name: model.physical[name].numpy()[0] for name in PAIR}
    for contact in data.contact:
        i = pairs[frozenset(contact.geom.tolist())]
        assert model.pair_condim.numpy()[i] == contact.dim
        for name, expected in (
            ("pair.friction", contact.friction),
            ("pair.solref", contact.solref),
            ("pair.solref_friction", contact.solreffriction),
            ("pair.solimp", contact.solimp),
            ("pair.margin", contact.includemargin),
        ):
            np.testing.assert_allclose(ours[name][i], expected, rtol=1e-12, err_msg=name)


def two_balls(**fields: tuple) -> Scene:
    """Two free balls whose contact fields are given as pairs of values."""
    scene = Scene()
    for k, name in enumerate("ab"):
        values = {field: np.asarray(v[k]) if np.ndim(v[k]) else v[k] for field, v in fields.items()}
        scene.bodies.append(Body(name))
        scene.joints.append(Joint(name, "free", name))
        scene.shapes.append(Shape(name, "sphere", name, size=np.array([0.1, 0.0, 0.0]), **values))
    return scene


def mixed(scene: Scene) -> dict[str, np.ndarray]:
    model = compile_model(scene)
    Derivation(model).run()
    return {name.removeprefix("pair."): model.physical[name].numpy()[0, 0] for name in PAIR}


@pytest.mark.parametrize(
    ("modes", "expected"),
    [
        (("average", "average"), 0.35),
        (("average", "min"), 0.2),
        (("multiply", "min"), 0.1),
        (("max", "multiply"), 0.5),
        (("max", "max"), 0.5),
    ],
)
def test_friction_combine(modes, expected):
    scene = two_balls(friction=([0.2, 0.2, 0.2], [0.5, 0.5, 0.5]), friction_combine=modes)
    np.testing.assert_allclose(mixed(scene)["friction"], expected, rtol=1e-14)


def rebound(stiffness: float, damping: float) -> float:
    """Speed after the impact of a unit mass at unit speed on a spring and damper that cannot pull."""

    def force(_t, y):
        return -stiffness * y[0] - damping * y[1]

    force.terminal, force.direction = True, -1
    sol = solve_ivp(lambda t, y: [y[1], force(t, y)], (0, 1), [0.0, -1.0], events=force, rtol=1e-11, atol=1e-13)
    return sol.y[1, -1]


@pytest.mark.parametrize("e", [0.005, 0.02, 0.1, np.exp(-2.0), 0.136, 0.3, 0.5, 0.8, 0.97, 1.0])
def test_restitution_of_the_contact_spring(e):
    values = mixed(two_balls(restitution=(e, e), solref=((0.05, 0.9), (0.03, 1.1))))
    k, b = -values["solref"]
    assert abs(rebound(k, b) - e) < 1e-7
    np.testing.assert_allclose(values["solref_friction"], [0.04, 1.0], rtol=1e-14)


def test_restitution_is_averaged_and_follows_priority():
    half = mixed(two_balls(restitution=(0.4, 0.4)))["solref"]
    np.testing.assert_array_equal(mixed(two_balls(restitution=(0.8, 0.0)))["solref"], half)
    np.testing.assert_array_equal(mixed(two_balls(restitution=(0.4, 0.9), priority=(1, 0)))["solref"], half)
    none = mixed(two_balls(restitution=(0.0, 0.9), priority=(1, 0)))
    np.testing.assert_array_equal(none["solref"], [0.02, 1.0])
    np.testing.assert_array_equal(none["solref_friction"], [0.0, 0.0])


@pytest.mark.parametrize("e", [0.3, 0.6, 0.9, 1.0])
def test_rebound_in_mujoco(e):
    """A ball dropped on the floor in MuJoCo with our solref, over many places of the impact within a step."""
    values = mixed(two_balls(restitution=(e, e)))
    mj = mujoco.MjModel.from_xml_string(
        '<mujoco><option gravity="0 0 0" cone="elliptic"/><worldbody><geom name="f" type="plane" size="0 0 1"/>'
        '<body pos="0 0 .1"><freejoint/><geom name="b" size=".1"/></body></worldbody>'
        f'<contact><pair geom1="f" geom2="b" solref="{_text(values["solref"])}"/></contact></mujoco>'
    )
    data, speeds = mujoco.MjData(mj), []
    for start in np.linspace(0.0, 0.002, 20, endpoint=False):
        mujoco.mj_resetData(mj, data)
        data.qpos[2] += 1e-4 + start
        data.qvel[2] = -1.0
        mujoco.mj_step(mj, data, 60)
        assert data.qpos[2] > 0.1
        speeds.append(data.qvel[2])
    assert abs(np.mean(speeds) - e) < 0.03
    assert np.abs(np.array(speeds) - e).max() < 0.06


@pytest.mark.parametrize("bouncing", [False, True])
def test_gradients(bouncing):
    rng = np.random.default_rng(5)
    scene = Scene()
    modes = ("max", "average", "min", "multiply", "max", "max")
    for k in range(6):
        direct = k == 5
        scene.bodies.append(Body(f"b{k}"))
        scene.joints.append(Joint(f"j{k}", "free", f"b{k}"))
        scene.shapes.append(
            Shape(
                f"s{k}",
                "sphere",
                f"b{k}",
                size=np.array([0.1, 0.0, 0.0]),
                friction=rng.uniform(0.1, 1.0, 3),
                friction_combine=modes[k],
                restitution=rng.uniform(0.2, 0.8) if bouncing else 0.0,
                solref=-rng.uniform(1, 10, 2) if direct else rng.uniform(0.1, 1.0, 2),
                solimp=_solimp(rng),
                solmix=rng.uniform(0.5, 2.0),
                priority=int(k == 4),
                margin=rng.uniform(0.01, 0.1),
            )
        )
    scene.contact_overrides.append(ContactOverride("s1", "s0", friction=rng.uniform(0.1, 1, 5)))
    fields = ("friction", "solref", "solimp", "margin")
    names = [f"shape.{f}" for f in (*fields, "solmix")]
    names += [f"contact_override.{f}" for f in (*fields, "solref_friction")]
    names += ["shape.restitution", "world.timestep"] if bouncing else []
    bench = DerivedLoss(scene, names, PAIR, worlds=2)
    gradients = bench.gradients(names)
    for name in names:
        scale = {"world.timestep": 2e-4, "shape.restitution": 0.05}.get(name, 0.05)
        assert bench.error(name, gradients[name], scale) < 1e-6, name


def test_tied_frictions_share_the_derivative():
    bench = DerivedLoss(two_balls(), ["shape.friction"], ["pair.friction"])
    bench.weights["pair.friction"][:] = 1.0
    np.testing.assert_allclose(bench.gradients(["shape.friction"])["shape.friction"][0], [[1.0, 0.5, 1.0]] * 2)


@pytest.mark.parametrize("option", ["constraints", "contacts"])
def test_no_pairs_without_contacts(option):
    scene = two_balls()
    setattr(scene.options, option, False)
    model = compile_model(scene, worlds=2)
    Derivation(model).run(record=True)
    assert model.npair == 0 and model.max_contacts == 0
    assert model.pair.friction.shape == (2, 0) and model.pair_condim.shape == (0,)


def test_an_empty_scene():
    model = compile_model(Scene())
    derivation = Derivation(model)
    derivation.run(record=True)
    derivation.backward()
    assert model.npair == 0 and model.weight.body.numpy().tolist() == [[[0.0, 0.0]]]


def test_ranges_of_worlds_share_the_pairs():
    """Groups without rows (tendons, equalities …) included."""
    model = compile_model(two_balls(restitution=(0.5, 0.7)), worlds=4)
    part = world_range(model, 1, 3)
    Derivation(model).run()
    np.testing.assert_array_equal(part.pair.solref.numpy(), model.pair.solref.numpy()[1:3])
    assert part.equality.range.shape == (2, 0) and part.npair == 1


def test_max_contacts_is_the_option_where_given():
    scene = two_balls()
    assert compile_model(scene).max_contacts == 1
    scene.options.max_contacts = 7
    assert compile_model(scene).max_contacts == 7
