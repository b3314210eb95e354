"""Contacts that act from a distance: a gradient where there is no touch, and what stays as it was."""

from __future__ import annotations

import numpy as np
import pytest

from contact_support import ContactRollout, object_scene, solid
from warpsim.core.errors import SceneError
from warpsim.rigid.compile.compile import compile_model
from warpsim.scene import Options, Scene

HEIGHT = 0.005
"""Gap between the ball and the floor, m."""


def hovering(softening: float = 0.0, where: str = "both", height: float = HEIGHT) -> Scene:
    options = Options(contact_softening=softening, softening_pass=where, solver_tolerance=1e-14)
    return object_scene(solid("sphere", (0.1,), (0.0, 0.0, 0.1 + height)), options=options)


def by_height(scene: Scene) -> tuple[float, float]:
    """Vertical speed after a step from rest, and its derivative by the height."""
    rollout = ContactRollout(scene, 1, ("joint_force",))
    for weight in rollout.weights.values():
        weight[:] = 0.0
    rollout.weights["qd"][1, 2] = 1.0
    with rollout._run(rollout._open(1, False), {n: v[None] for n, v in rollout.base.items()}, differentiate=False) as r:
        speed = float(r.states["qd"].numpy()[1, 0, 2])
    return speed, float(rollout.gradient()["q"][2])


def test_without_it_a_hovering_ball_feels_nothing():
    assert by_height(hovering())[1] == 0.0


@pytest.mark.parametrize("where", ["both", "backward"])
def test_a_hovering_ball_is_pulled(where):
    """Nearer to the floor it is pushed more, so its speed falls with its height."""
    assert by_height(hovering(0.02, where))[1] < -1e-3


def test_beyond_the_distance_there_is_nothing():
    assert by_height(hovering(0.5 * HEIGHT))[1] == 0.0


def test_the_motion_is_unchanged_if_only_gradients_are_softened():
    plain, _ = by_height(hovering(height=-0.001))
    softened, _ = by_height(hovering(0.02, "backward", height=-0.001))
    assert softened == plain
    assert by_height(hovering(0.02, "both", height=-0.001))[0] != plain


def test_forces_start_from_zero():
    """Just inside the distance a ball falls almost as if there were no floor."""
    free = by_height(hovering(height=0.02))[0]
    near = by_height(hovering(0.02, height=0.02 - 1e-4))[0]
    deep = by_height(hovering(0.02, height=0.01))[0]
    assert 0.0 <= near - free < 1e-3 * (deep - free)


@pytest.mark.parametrize("cone", ["elliptic", "pyramidal"])
def test_gradients_agree_with_differences_where_both_passes_are_softened(cone):
    scene = object_scene(
        solid("sphere", (0.1,), (0.0, 0.0, 0.105)),
        solid("box", (0.1, 0.2, 0.15), (0.0, 0.7, 0.155), (0.02, 0.01, 0.3)),
        options=Options(cone=cone, contact_softening=0.02, solver_tolerance=1e-14, max_contacts=20),
        friction=np.array([0.5, 0.02, 0.01]),
        floor=dict(friction=np.array([0.4, 0.015, 0.008])),
        condim=4,
    )
    rollout = ContactRollout(scene, 3, ("joint_force",), ("contact_force",))
    rollout.base["qd"] = 0.2 * np.random.default_rng(0).normal(size=rollout.base["qd"].shape)
    found = rollout.compare()
    assert all(c.deviation < 1e-6 for c in found if not c.switching(1e-6)), found
    assert sum(c.switching(1e-6) for c in found) <= 0.1 * len(found)


def test_an_unknown_pass_is_refused():
    with pytest.raises(SceneError, match="softening_pass"):
        compile_model(hovering(0.01, "forward"))
