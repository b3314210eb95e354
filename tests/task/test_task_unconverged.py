"""Tasks whose motions meet steps that do not converge: solved all the same, or said, never by a slope of theirs."""

from __future__ import annotations

import json
from pathlib import Path

import mujoco
import pytest
import torch

from task_scenes import saved
from warpsim.check.records import read_record
from warpsim.cli.main import main
from warpsim.core.errors import UnconvergedError
from warpsim.io.mjcf import scene_from_mjmodel
from warpsim.io.usd import author
from warpsim.io.usd.export import export_scene
from warpsim.scene import convergence
from warpsim.task import optimize


@pytest.fixture(autouse=True)
def too_few(monkeypatch) -> None:
    """The file's cap of one iteration is not raised: enough without contacts, not enough where boxes meet."""
    monkeypatch.setattr(convergence, "MIN_ITERATIONS", 1)


CART = """<mujoco>
  <option timestep="0.02" gravity="0 0 0" iterations="1"/>
  <worldbody>
    <body name="cart"><joint name="x" type="slide" axis="1 0 0"/><geom type="box" size=".1 .1 .1" mass="1"/></body>
    <body name="crate" pos=".4 .03 .02"><freejoint/><geom type="box" size=".1 .1 .1" mass="1"/></body>
  </worldbody>
  <actuator><motor joint="x"/></actuator>
</mujoco>"""


def push(folder: Path, force: float, wanted: float) -> Path:
    """A cart that is pushed for 0.8 s toward a place; from 0.2 m on a crate is in its way."""
    stage = export_scene(scene_from_mjmodel(mujoco.MjModel.from_xml_string(CART)))[0]
    task = author.task(stage.GetDefaultPrim(), duration=0.8)
    author.task_part(task, "Reach", "There", subject="/World/cart", position=(wanted, 0, 0), tolerance=0.01)
    author.task_part(task, "Knots", "Push", count=2, values=[force, force], lower=[-1.0], upper=[1.0])
    return saved(stage, folder)


def has_gradient(done, x: torch.Tensor) -> bool:
    leaf = x.clone().requires_grad_()
    try:
        done.problem.loss(leaf).backward()
    except UnconvergedError:
        return False
    return True


def test_a_search_steps_around_and_says_what_it_could_not_use(tmp_path):
    done = optimize(push(tmp_path, 0.1, wanted=0.6), iterations=3)
    assert done.loss < done.before.loss and has_gradient(done, done.result.x)
    assert not has_gradient(done, torch.full_like(done.result.x, 0.9))  # where a search without eyes would have gone


def test_a_start_without_a_gradient_is_an_error_that_says_where(tmp_path, capsys):
    path = push(tmp_path, 0.9, wanted=0.1)
    with pytest.raises(UnconvergedError, match=r"step \d+, world 0"):
        optimize(path)
    assert main(["optimize", str(path), "-o", str(tmp_path / "out"), "--no-gif", "--quiet"]) == 1
    shown = capsys.readouterr()
    assert "did not converge at step" in shown.err and "Traceback" not in shown.err + shown.out


def test_several_starts_find_what_the_first_cannot(tmp_path):
    path = push(tmp_path, 0.9, wanted=0.1)
    done = optimize(path, starts=4, seed=1, iterations=6)
    assert done.solved and has_gradient(done, done.result.x)
    assert 0 in done.starts.skipped or done.starts.after[0] > done.loss
    done.save(tmp_path / "out", film=False, page=False)
    kept = read_record(tmp_path / "out" / "record.json").more["starts"]
    assert [k for k, start in enumerate(kept) if "skipped" in start] == sorted(done.starts.skipped)
    assert json.loads((tmp_path / "out" / "search.json").read_text())["state"]["skipped"].keys() == {
        str(k) for k in done.starts.skipped
    }
