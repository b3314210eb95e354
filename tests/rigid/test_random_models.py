"""The random models are the same for ever, always compile, and between them hold every feature they promise."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from random_models import random_mjcf, random_state


def compiled(seeds: range, **arguments: object) -> list[mujoco.MjModel]:
    return [mujoco.MjModel.from_xml_string(random_mjcf(seed, **arguments)) for seed in seeds]


def test_a_seed_gives_one_model_and_one_state():
    assert random_mjcf(5) == random_mjcf(5)
    assert random_mjcf(5) != random_mjcf(6)
    model = compiled(range(5, 6))[0]
    first, second, other = (random_state(model, seed) for seed in (1, 1, 2))
    assert all(np.array_equal(getattr(first, field), getattr(second, field)) for field in first.__dataclass_fields__)
    assert not np.array_equal(first.qpos, other.qpos)


def test_every_feature_occurs():
    models = compiled(range(60))
    kinds = np.concatenate([model.jnt_type for model in models])
    assert set(kinds) == {int(kind) for kind in mujoco.mjtJoint.__members__.values()}
    joints_on_a_body = np.concatenate([model.body_jntnum[1:] for model in models])
    assert set(joints_on_a_body) == {0, 1, 2, 3}
    assert any(np.count_nonzero(model.body_parentid[1:] == 0) > 2 for model in models)
    assert any((model.body_mass[1:] == 0).any() for model in models)
    for field in (
        "jnt_stiffness",
        "dof_damping",
        "dof_armature",
        "body_gravcomp",
        "tendon_stiffness",
        "tendon_damping",
    ):
        assert any(getattr(model, field).any() for model in models), field
    assert any((model.jnt_stiffness * (model.jnt_type == mujoco.mjtJoint.mjJNT_BALL)).any() for model in models)
    assert any((model.qpos_spring != model.qpos0).any() for model in models)
    for field in ("ctrllimited", "forcelimited", "actlimited", "actearly"):
        assert any(getattr(model, f"actuator_{field}").any() for model in models), field
    for field, count in (("trntype", 4), ("dyntype", 4), ("gaintype", 2), ("biastype", 2)):
        assert len(set(np.concatenate([getattr(model, f"actuator_{field}") for model in models]))) == count, field
    constrained = compiled(range(20), limits=True, friction_loss=True, equalities=3, contacts=True)
    for field in ("jnt_limited", "tendon_limited", "dof_frictionloss", "geom_contype"):
        assert any(getattr(model, field).any() for model in constrained), field
    assert {int(kind) for model in constrained for kind in model.eq_type} == {0, 1, 2, 3}


@pytest.mark.parametrize("bodies", [1, 8, 20])
def test_states_are_sound_and_dynamics_finite(bodies):
    for seed, model in enumerate(compiled(range(10), bodies=bodies, medium=True)):
        assert model.nv > 0
        data = mujoco.MjData(model)
        random_state(model, seed).apply(data)
        stated = data.qpos.copy()
        mujoco.mj_normalizeQuat(model, data.qpos)
        np.testing.assert_allclose(data.qpos, stated, rtol=0, atol=1e-15)
        mujoco.mj_forward(model, data)
        assert np.isfinite(data.qacc).all()


def test_an_unknown_integrator_is_refused():
    with pytest.raises(ValueError, match="implicitfast"):
        random_mjcf(0, integrator="implicit")
