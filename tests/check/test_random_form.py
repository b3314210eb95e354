"""The random linear form whose gradient a check compares, and what tells two scenes apart."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from warpsim.check.gradcheck.losses import RandomForm
from warpsim.check.records.fingerprint import scene_hash
from warpsim.matter import MatterDescription
from warpsim.scene import Scene


def test_a_form_is_linear_in_the_last_frame_with_weights_of_its_seed():
    rng = np.random.default_rng(0)
    made = {"q": torch.as_tensor(rng.normal(size=(3, 2, 4))), "qd": torch.as_tensor(rng.normal(size=(3, 2, 5)))}
    weights = np.random.default_rng(7)
    first, second = weights.normal(size=4), weights.normal(size=5)
    expected = made["q"][-1].numpy() @ first + made["qd"][-1].numpy() @ second
    form = RandomForm(7, ("q", "activation", "qd"))
    assert form(made).numpy() == pytest.approx(expected, rel=1e-14)
    size = np.abs(made["q"][-1, 0].numpy() * first).sum() + np.abs(made["qd"][-1, 0].numpy() * second).sum()
    assert form.size(made) == pytest.approx(size, rel=1e-14)
    assert form.text == "a random linear form of the final q and qd"


def test_the_matter_of_a_scene_is_part_of_its_hash():
    def scene(level: float) -> Scene:
        return Scene(matters=[MatterDescription("decay", "decay", parameters={"rate": np.array(level)})])

    assert len({scene_hash(Scene()), scene_hash(scene(1.0)), scene_hash(scene(2.0))}) == 3
    assert scene_hash(scene(1.0)) == scene_hash(scene(1.0))
