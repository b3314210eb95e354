"""Films as MP4 and WebM, decoded again."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from warpsim.cli.main import main
from warpsim.core.errors import InputError
from warpsim.core.registry import provided
from warpsim.io.usd import author
from warpsim.view.raycast.compare import render_pair

ffmpeg = pytest.importorskip("imageio_ffmpeg", reason="imageio-ffmpeg reads and writes films")


def decoded(path) -> tuple[dict, list[np.ndarray]]:
    reader = ffmpeg.read_frames(str(path))
    facts = next(reader)
    width, height = facts["size"]
    return facts, [np.frombuffer(frame, dtype=np.uint8).reshape(height, width, 3) for frame in reader]


@pytest.mark.parametrize("suffix", [".mp4", ".webm"])
def test_frames_come_back(tmp_path, suffix):
    pictures = [np.full((49, 65, 3), 40 * k, dtype=np.uint8) for k in range(6)]
    pictures[3][:24, :32] = (200, 30, 30)
    path = provided("write_video")(tmp_path / f"film{suffix}", pictures, interval=0.04)
    facts, frames = decoded(path)
    assert facts["size"] == (64, 48) and facts["fps"] == pytest.approx(25.0) and len(frames) == 6
    for k in (0, 1, 2, 4, 5):
        assert frames[k].mean() == pytest.approx(40 * k, abs=4)
    assert frames[3][8, 8].astype(int) == pytest.approx([200, 30, 30], abs=25)
    again = provided("write_video")(tmp_path / f"again{suffix}", pictures, interval=0.04)
    assert again.read_bytes() == path.read_bytes()


def test_wrong_files(tmp_path):
    write = provided("write_video")
    with pytest.raises(InputError, match="no pictures"):
        write(tmp_path / "film.mp4", [], interval=0.1)
    with pytest.raises(InputError, match=r"\.mp4 or \.webm"):
        write(tmp_path / "film.avi", [np.zeros((8, 8, 3), dtype=np.uint8)], interval=0.1)


def test_without_the_extra_it_says_what_to_install(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    monkeypatch.delitem(sys.modules, "warpsim.view.raycast.video", raising=False)
    stage = author.new_stage()
    author.sphere(author.world(stage), "Ball", 0.2, collides=False)
    author.save(stage, tmp_path / "ball.usda")
    assert main(["render", str(tmp_path / "ball.usda"), "-o", str(tmp_path / "ball.mp4")]) == 1
    assert "pip install warpsim[video]" in capsys.readouterr().err


def test_panels_side_by_side_have_one_scale():
    """Both floors have the same grid although one ball goes much farther than the other."""
    stages = []
    for reach in (0.4, 6.0):
        stage = author.new_stage()
        world = author.world(stage)
        author.ground(world, color=(0.6, 0.6, 0.6))
        ball = author.sphere(author.body(world, "Body"), "Ball", 0.1, position=(0, 0, 0.1))
        move = ball.GetParent().GetAttribute("xformOp:translate")
        for code, x in ((0.0, 0.0), (24.0, reach)):
            move.Set((x, 0.0, 0.0), code)
        stage.SetStartTimeCode(0.0)
        stage.SetEndTimeCode(24.0)
        stages.append(stage)
    pictures, _ = render_pair(stages, ["a", "b"], width=160, height=120)
    left, right = pictures[0][:, :160].astype(int), pictures[0][:, -160:].astype(int)
    assert np.abs(left[20:] - right[20:]).max() <= 2  # at first both look alike
    assert np.abs(pictures[-1][:, :160].astype(int) - pictures[-1][:, -160:]).max() > 60
