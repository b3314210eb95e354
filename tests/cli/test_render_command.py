"""`warpsim render`, and the files and times behind it."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image
from pxr import Gf

from warpsim.cli.main import main
from warpsim.core.errors import InputError
from warpsim.io.usd import author
from warpsim.view.raycast import contact_sheet, frame_times, write_gif


def test_frame_times():
    stage = author.new_stage()
    assert frame_times(stage) == [0.0]
    stage.SetStartTimeCode(10.0)
    stage.SetEndTimeCode(20.0)
    stage.SetTimeCodesPerSecond(10.0)
    assert frame_times(stage, frames=3) == [10.0, 15.0, 20.0]
    assert frame_times(stage, frames=1) == [10.0]
    assert frame_times(stage, every=4) == [10.0, 14.0, 18.0]
    assert len(frame_times(stage)) == 26
    with pytest.raises(InputError, match="every=0"):
        frame_times(stage, every=0)


def test_contact_sheet_places_pictures_row_by_row():
    pictures = [np.full((20, 30, 3), 10 * k, dtype=np.uint8) for k in range(5)]
    sheet = contact_sheet(pictures, columns=3)
    assert sheet.shape == (2 * 20 + 4, 3 * 30 + 8, 3)
    assert sheet[5, 34 + 5].tolist() == [10] * 3
    assert sheet[24 + 5, 34 + 5].tolist() == [40] * 3


def test_gif_keeps_frames_and_pace(tmp_path):
    pictures = [np.full((20, 30, 3), 50 * k, dtype=np.uint8) for k in range(4)]
    path = write_gif(tmp_path / "film.gif", pictures, interval=0.04)
    with Image.open(path) as film:
        assert film.n_frames == 4
        assert film.info["duration"] == 40
        film.seek(2)
        assert film.convert("RGB").getpixel((3, 3)) == pytest.approx((100, 100, 100), abs=2)


@pytest.fixture
def animated(tmp_path):
    """A file with a ball that moves for one second."""
    stage = author.new_stage()
    ball = author.sphere(author.world(stage), "Ball", 0.2, color=(0.8, 0.05, 0.05), collides=False)
    for time, x in ((0.0, -1.0), (24.0, 1.0)):
        ball.GetAttribute("xformOp:translate").Set(Gf.Vec3d(x, 0, 0), time)
    stage.SetStartTimeCode(0.0)
    stage.SetEndTimeCode(24.0)
    author.save(stage, tmp_path / "ball.usda")
    return tmp_path / "ball.usda"


def render(*arguments: object) -> int:
    return main(["render", *map(str, arguments), "--size", "60x40", "--quiet"])


def test_command_writes_films_pictures_and_sheets(animated, tmp_path):
    assert render(animated, "-o", tmp_path / "film.gif", "--frames", 5) == 0
    with Image.open(tmp_path / "film.gif") as film:
        assert (film.n_frames, film.size, film.info["duration"]) == (5, (60, 40), 250)
    assert render(animated, "-o", tmp_path / "one.png", "--time", 12) == 0
    assert Image.open(tmp_path / "one.png").size == (60, 40)
    assert render(animated, "-o", tmp_path / "many.png", "--every", 12) == 0
    assert sorted(p.name for p in tmp_path.glob("many*")) == ["many_0.png", "many_1.png", "many_2.png"]
    assert render(animated, "-o", tmp_path / "sheet.png", "--sheet", "--frames", 4) == 0
    assert Image.open(tmp_path / "sheet.png").size == (124, 84)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.usda", "-o", "x.gif"], "no file"),
        (["robot.xml", "-o", "x.gif"], "no file 'robot.xml'"),
        (["ball.obj", "-o", "x.gif"], "no file 'ball.obj'; give a .usd"),
        (["ball.usda", "-o", "x.gif", "--keyframe", "home"], "keyframes are read from MJCF files"),
        (["ball.usda", "-o", "x.avi"], ".gif, .mp4 or .webm"),
        (["ball.usda", "-o", "x.gif", "--sheet"], "a sheet is one picture"),
        (["ball.usda", "-o", "nowhere/x.gif"], "no folder"),
        (["ball.usda", "-o", "x.gif", "--size", "big"], "480x320"),
        (["ball.usda", "-o", "x.gif", "--camera", "/World/Eye"], "no camera '/World/Eye'"),
    ],
)
def test_command_errors(animated, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(animated.parent)
    assert main(["render", *arguments]) == 1
    assert message in capsys.readouterr().err
