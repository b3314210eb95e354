"""Tasks whose answer lies on a bound of a variable: the search ends there, and its result is a scene like any other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from task_scenes import loaded_loss, saved
from warpsim.core.errors import TaskError
from warpsim.io.usd import author
from warpsim.task import optimize


def glide(folder: Path, speed: float, wanted: float, **bounds: object) -> Path:
    """A ball without gravity, whose speed along x may vary; half a second."""
    stage = author.new_stage()
    author.physics_scene(stage, gravity=0.0, steps_per_second=100)
    world = author.world(stage)
    ball = author.body(world, "Ball", velocity=(speed, 0, 0), attributes={"physics:mass": None})
    author.sphere(ball, "Shape", 0.1, density=500)
    task = author.task(world, duration=0.5)
    author.task_part(task, "Reach", "There", subject="/World/Ball", position=(wanted, 0, 0), tolerance=0.01)
    attribute = ball.GetAttribute("physics:velocity")
    author.task_part(task, "Variable", "Speed", attributes=attribute, components=[0], **bounds)
    return saved(stage, folder)


BOUNDS = {
    "two": (dict(lower=[-1.0], upper=[0.75]), 0.2, 1.0, 0.75),
    "below": (dict(lower=[0.125]), 0.5, -1.0, 0.125),
    "positive": (dict(positive=True), 0.5, -1.0, 0.0),
}


CASES = [("two", "lbfgs"), ("below", "levenberg_marquardt")]
OTHERS = [
    (kind, method) for kind in BOUNDS for method in ("lbfgs", "levenberg_marquardt") if (kind, method) not in CASES
]


@pytest.mark.parametrize(("kind", "method"), [*CASES, *(pytest.param(*c, marks=pytest.mark.long) for c in OTHERS)])
def test_an_answer_on_a_bound_is_kept_and_can_be_searched_from(kind, method, tmp_path):
    bounds, speed, wanted, best = BOUNDS[kind]
    done = optimize(glide(tmp_path, speed, wanted, **bounds), method=method)
    (change,) = done.changes.values()
    assert change["after"][0] == pytest.approx(best, abs=1e-3)
    done.save(tmp_path / "out", film=False, page=False)
    result = tmp_path / "out" / "result.usda"
    assert loaded_loss(result) == done.loss
    again = optimize(result, method=method)
    assert again.before.loss == done.loss and again.loss <= done.loss * (1 + 1e-6)


def test_a_start_on_a_bound_moves_inward(tmp_path):
    done = optimize(glide(tmp_path, 0.7, 0.1, lower=[-1.0], upper=[0.7]))
    assert done.solved and np.isfinite(done.before.loss)


def test_a_start_beyond_a_bound_is_refused(tmp_path):
    with pytest.raises(TaskError, match=r"Speed: .*starts at .*not strictly within"):
        optimize(glide(tmp_path, 0.71, 0.1, lower=[-1.0], upper=[0.7]))
