"""Sizes of policies, and the features that each kind of joint has."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from warpsim.core.errors import InputError, UnknownNameError
from warpsim.policy.senses import SENSES
from warpsim.policy.spec import COORDINATE, LOCAL_VELOCITY, ROTATION, VELOCITY, Feature, PolicySpec


def spec(**changes) -> PolicySpec:
    given = dict(
        features=(Feature(COORDINATE, 0), Feature(VELOCITY, 0), Feature(VELOCITY, 1)),
        widths=(5, 2),
        activations=("tanh", "identity"),
        center=(0.0, 0.0),
        reach=(1.0, 1.0),
        controls=("actuator",),
        sizes=(2,),
    )
    return PolicySpec(**{**given, **changes})


def test_weights_and_biases_are_counted():
    assert spec().weight_count == (3 + 1) * 5 + (5 + 1) * 2


@pytest.mark.parametrize(
    ("hold", "delay", "pending"), [(1, 0, 1), (1, 3, 4), (4, 0, 1), (4, 1, 2), (4, 4, 2), (4, 5, 3)]
)
def test_controls_that_must_be_remembered(hold, delay, pending):
    assert spec(hold=hold, delay=delay).pending == pending


def test_policies_that_are_none_are_refused():
    with pytest.raises(UnknownNameError, match="tanh"):
        spec(activations=("tan", "identity"))
    with pytest.raises(InputError, match="2 layers have 1 activations"):
        spec(activations=("tanh",))
    with pytest.raises(InputError, match="sees nothing"):
        spec(features=())


def joint(kind: str, q: int, dof: int) -> SimpleNamespace:
    sizes = {"free": (7, 6), "ball": (4, 3), "hinge": (1, 1)}[kind]
    return SimpleNamespace(kind=kind, q=slice(q, q + sizes[0]), dofs=slice(dof, dof + sizes[1]))


def test_features_of_a_free_joint():
    free = joint("free", 10, 20)
    assert SENSES["height"](free) == [Feature(COORDINATE, 12)]
    assert SENSES["up"](free) == [Feature(ROTATION, 13, entry=e) for e in (6, 7, 8)]
    assert SENSES["rotation"](free) == [Feature(ROTATION, 13, entry=e) for e in range(9)]
    assert SENSES["base_velocity"](free) == [Feature(VELOCITY, k) for k in (20, 21, 22)]
    assert SENSES["angular_velocity"](free) == [Feature(VELOCITY, k) for k in (23, 24, 25)]
    assert SENSES["local_velocity"](free) == [Feature(LOCAL_VELOCITY, 20, entry=e, quaternion=13) for e in range(3)]
    assert SENSES["joint_position"](free) == SENSES["joint_velocity"](free) == []


def test_features_of_other_joints():
    ball, hinge = joint("ball", 3, 2), joint("hinge", 5, 7)
    assert SENSES["joint_position"](ball) == [Feature(ROTATION, 3, entry=e) for e in range(9)]
    assert SENSES["joint_position"](hinge) == [Feature(COORDINATE, 5)]
    assert SENSES["joint_velocity"](ball) == [Feature(VELOCITY, k) for k in (2, 3, 4)]
    assert SENSES["joint_velocity"](hinge) == [Feature(VELOCITY, 7)]
    for name in ("height", "up", "rotation", "base_velocity", "local_velocity", "angular_velocity"):
        assert SENSES[name](ball) == SENSES[name](hinge) == []
