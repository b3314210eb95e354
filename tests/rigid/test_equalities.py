"""Equalities, limits and dry friction, from MuJoCo's compiled model to the parameters that constraints read."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from random_models import random_mjcf
from warpsim.io.mjcf import scene_from_mjmodel
from warpsim.rigid.compile.compile import compile_model
from warpsim.rigid.compile.derive import Derivation
from warpsim.scene.description import EQUALITY_KINDS


def scene_and_model(seed: int):
    mj = mujoco.MjModel.from_xml_string(random_mjcf(seed, equalities=8, limits=True, friction_loss=True, tendons=3))
    return mj, scene_from_mjmodel(mj)


@pytest.mark.parametrize("seed", range(6))
def test_points_left_open_are_those_of_the_reference_configuration(seed):
    mj, scene = scene_and_model(seed)
    for equality in scene.equalities:
        equality.anchor_b = equality.relative_pose = None
    model = compile_model(scene)
    Derivation(model).run()
    t, p = model.equality_topology, model.equality
    assert t.count == len(scene.equalities) == len(model.equality_names)
    for i, equality in enumerate(scene.equalities):
        data = mj.eq_data[i]
        assert EQUALITY_KINDS[t.kind.numpy()[i]] == equality.kind
        anchor_a, anchor_b = p.anchor_a.numpy()[0, i], p.anchor_b.numpy()[0, i]
        if equality.kind == "connect":
            np.testing.assert_allclose(np.concatenate([anchor_a, anchor_b]), data[:6], atol=1e-12)
        elif equality.kind == "weld":
            rotation = p.relative_rotation.numpy()[0, i]
            np.testing.assert_allclose(np.concatenate([anchor_b, anchor_a]), data[:6], atol=1e-12)
            np.testing.assert_allclose(abs(rotation @ data[6:10]), 1.0, atol=1e-12)
            assert p.torque_scale.numpy()[0, i] == data[10]
        else:
            np.testing.assert_array_equal(p.polynomial.numpy()[0, i], data[:5])
            assert t.b.numpy()[i] == mj.eq_obj2id[i]
            assert t.a.numpy()[i] == mj.eq_obj1id[i]


def test_inactive_equalities_are_left_out():
    _, scene = scene_and_model(1)
    scene.equalities[0].active = False
    assert compile_model(scene).equality_names == tuple(e.name for e in scene.equalities[1:])


@pytest.mark.parametrize("seed", range(3))
def test_limits_and_dry_friction(seed):
    mj, scene = scene_and_model(seed)
    model = compile_model(scene)
    p, limited = model.limit, mj.jnt_limited.astype(bool)
    assert limited.any()
    np.testing.assert_array_equal(p.range.numpy()[0][limited], mj.jnt_range[limited])
    assert np.isinf(p.range.numpy()[0][~limited]).all()
    np.testing.assert_array_equal(p.margin.numpy()[0], mj.jnt_margin)
    np.testing.assert_array_equal(p.solimp.numpy()[0], mj.jnt_solimp)
    np.testing.assert_array_equal(p.friction_loss.numpy()[0], mj.dof_frictionloss)
    np.testing.assert_array_equal(p.friction_solref.numpy()[0], mj.dof_solref)
    tendon, limited = model.tendon_limit, mj.tendon_limited.astype(bool)
    np.testing.assert_array_equal(tendon.range.numpy()[0][limited], mj.tendon_range[limited])
    np.testing.assert_array_equal(tendon.friction_loss.numpy()[0], mj.tendon_frictionloss)


def test_nothing_holds_without_constraints():
    _, scene = scene_and_model(0)
    scene.options.constraints = False
    model = compile_model(scene)
    Derivation(model).run()
    assert model.equality_topology.count == 0 and model.equality_names == ()
    assert np.isinf(model.limit.range.numpy()).all() and np.isinf(model.tendon_limit.range.numpy()).all()
    assert (model.limit.friction_loss.numpy() == 0).all()
