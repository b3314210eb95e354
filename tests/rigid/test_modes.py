"""The output "mode" against the decisions themselves, read step by step."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import warp as wp

from warpsim.check.gradcheck.modes import ModeObserver
from warpsim.core.precision import real
from warpsim.io.load import load_scene
from warpsim.rigid.constraint.zones import ZONE_TEXT, row_zone
from warpsim.rigid.step.modes import _touch_kernel
from warpsim.sim.simulator import Simulator
from warpsim.solve.rows import DRY_FRICTION, EQUALITY, UNILATERAL

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


@wp.kernel(enable_backward=False)
def _zones_kernel(kind: wp.array(dtype=wp.int32), y: wp.array(dtype=real), zone: wp.array(dtype=wp.int32)):
    i = wp.tid()
    zone[i] = row_zone(kind[i], y[i], real(4.0), real(2.0))


def test_zones_of_single_rows():
    """Dry friction of 2 N with a weight of 4: it holds while |y| is below a half."""
    expected = [
        (DRY_FRICTION, -0.6, "sliding back"),
        (DRY_FRICTION, -0.4, "sticking"),
        (DRY_FRICTION, 0.0, "sticking"),
        (DRY_FRICTION, 0.4, "sticking"),
        (DRY_FRICTION, 0.6, "sliding"),
        (UNILATERAL, 0.1, "open"),
        (UNILATERAL, -0.1, "pushing"),
        (EQUALITY, 0.1, "pushing"),
    ]
    kind = wp.array([int(row[0]) for row in expected], dtype=wp.int32)
    y, zone = wp.array([row[1] for row in expected], dtype=real), wp.full(len(expected), -1, dtype=wp.int32)
    wp.launch(_zones_kernel, dim=len(expected), inputs=[kind, y], outputs=[zone])
    assert [ZONE_TEXT[k] for k in zone.numpy().tolist()] == [row[2] for row in expected]


def test_a_touch_that_is_cut_short_is_a_mode_of_its_own():
    """At two steps back or more; how far back it is otherwise is no decision."""
    back = np.array([0.4, 1.5, 2.0, 2.5]) * 0.01
    worlds = len(back)
    mode = wp.zeros(worlds, dtype=wp.int64)
    inputs = [
        wp.full(worlds, 0.01, dtype=real),
        wp.zeros((worlds, 1), dtype=wp.int32),
        wp.array(back[:, None], dtype=real),
        wp.full((worlds, 1), 7, dtype=wp.int32),
    ]
    wp.launch(_touch_kernel, dim=worlds, inputs=inputs, outputs=[mode])
    a, b, c, d = mode.numpy().tolist()
    assert a == b != c == d
