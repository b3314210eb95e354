"""What a stress test changes, and which frames of a result are kept: exact numbers."""

from __future__ import annotations

import numpy as np
import pytest

from warpsim.io.usd.motion import Motion
from warpsim.scene import Body, Joint, Scene, Shape
from warpsim.task.outcome import FRAMES_PER_SECOND, _thinned
from warpsim.task.variations import scaled_friction, scaled_mass


def test_masses_and_frictions_are_multiplied_each_and_nothing_else():
    scene = Scene(
        bodies=[Body("a", mass=2.0, inertia=np.diag([1.0, 2.0, 2.5])), Body("b")],
        joints=[Joint("j", "hinge", "a", friction_loss=0.4, damping=0.7), Joint("k", "slide", "b")],
        shapes=[
            Shape(
                "s", "sphere", "b", size=np.array([0.1, 0.0, 0.0]), density=500.0, friction=np.array([0.5, 0.02, 0.01])
            )
        ],
    )
    rough = scaled_friction(scene, 1.5)
    assert [j.friction_loss for j in rough.joints] == pytest.approx([0.6, 0.0])
    assert rough.joints[0].damping == 0.7
    assert rough.shapes[0].friction == pytest.approx([0.75, 0.03, 0.015]) and rough.shapes[0].density == 500.0
    heavy = scaled_mass(scene, 1.5)
    assert (heavy.bodies[0].mass, heavy.bodies[1].mass, heavy.shapes[0].density) == (3.0, None, 750.0)
    assert heavy.bodies[0].inertia == pytest.approx(np.diag([1.5, 3.0, 3.75]))
    assert heavy.shapes[0].friction == pytest.approx([0.5, 0.02, 0.01])


@pytest.mark.parametrize(
    ("steps", "every", "kept"),
    [
        (100, 1 / 600.0, list(range(0, 101, 10))),  # ten steps are one frame of the picture
        (96, 1 / 600.0, list(range(0, 97, 8))),  # the largest divisor that is not too long
        (97, 1 / 600.0, [*range(0, 97, 10), 97]),  # a prime: the last interval is shorter
        (7, 1 / 130.0, list(range(8))),  # two steps would be one frame: all are kept rather than a short interval
        (5, 1 / 30.0, list(range(6))),  # longer steps than frames
    ],
)
def test_frames_that_are_kept(steps, every, kept):
    times = every * np.arange(steps + 1)
    count = len(times)
    column = np.arange(count, dtype=float)[:, None]
    motion = Motion(times, column, column, np.zeros((count, 1, 3)), np.tile([1.0, 0.0, 0.0, 0.0], (count, 1, 1)))
    thin = _thinned(motion)
    assert thin.q[:, 0].tolist() == kept and thin.times == pytest.approx(times[kept])
    assert np.diff(thin.times).max() < 1.0 / FRAMES_PER_SECOND + 1e-9 or len(kept) == count
