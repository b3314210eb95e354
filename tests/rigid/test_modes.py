"""The output "mode" against the decisions themselves, read step by step."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from warpsim.check.gradcheck.modes import ModeObserver
from warpsim.io.load import load_scene
from warpsim.sim.simulator import Simulator

SCENES = Path(__file__).resolve().parents[2] / "scenes"
CASES = {
    "throw": (500, {}),
    "bowl": (120, {}),
    "bowl, rk4": (60, {"integrator": "rk4"}),
    "stack": (60, {}),
    "hopper": (80, {}),
    "cartpole": (60, {}),
    "bounce_shot, impacts": (300, {"impacts": True}),
    "tumble_shot, impacts": (350, {"impacts": True}),
}


@pytest.mark.parametrize("name", CASES)
def test_modes_change_when_decisions_do(name, rng):
    steps, options = CASES[name]
    scene = load_scene(SCENES / f"{name.partition(',')[0]}.usda")
    sim = Simulator(replace(scene, options=replace(scene.options, **options)), worlds=2)
    shape = sim.all_controls(steps, None)[sim.control_names[0]].shape
    held = np.repeat(rng.normal(scale=2.0, size=(-(-steps // 10), *shape[1:])), 10, axis=0)[:steps]  # beyond ranges
    actions = sim.all_controls(steps, torch.tensor(held))
    made = sim.rollout(controls=actions, outputs=("mode",))
    modes = made.numpy("mode")[1:]
    observer = ModeObserver(sim.compiled, tuple(actions))
    signatures = [[step.signature(w) for w in range(2)] for step in observer.modes(made, actions)]
    for w in range(2):
        true = [a[w] != b[w] for a, b in zip(signatures, signatures[1:], strict=False)]
        assert (np.diff(modes[:, w]) != 0).tolist() == true
        assert len(set(modes[:, w])) == len({s[w] for s in signatures})
    assert any(len(set(modes[:, w])) > 1 for w in range(2)), "nothing happened in this case"
