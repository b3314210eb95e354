"""Numbers and files that the newer commands cannot use: one sentence, exit code 1, and nothing written."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from warpsim.cli.commands.outputs import check_outputs
from warpsim.cli.main import main
from warpsim.core.errors import OutputError
from warpsim.learn.iteration import Iteration
from warpsim.learn.log import TrainingLog
from warpsim.learn.saved_policy import FORMAT as POLICY
from warpsim.learn.shac import FORMAT as CHECKPOINT

SCENES = Path(__file__).resolve().parents[2] / "scenes"
PENDULUM, ANT = str(SCENES / "pendulum.usda"), str(SCENES / "ant_run.usda")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("train", ANT, "--seconds", "-1"), "seconds is -1; give processor time above 0"),
        (("train", ANT, "--seconds", "nan"), "seconds is nan"),
        (("train", ANT, "--updates", "0"), "updates is 0; give 1 or more"),
        (("validity", PENDULUM, "--seconds", "-1"), "--seconds -1: give a finite number above 0"),
        (("validity", PENDULUM, "--seconds", "inf"), "--seconds inf"),
        (("render", PENDULUM, "-o", "a.png", "--time", "nan"), "--time nan: give a time code"),
        (("warmup", "--device", "tpu"), "device='tpu': there is no such device here; there are: cpu"),
        (("play", "notes.csv", PENDULUM), "notes.csv is no policy; `warpsim train` and `save_policy` write them"),
        (("play", PENDULUM, PENDULUM), "is no policy; `warpsim train`"),
    ],
)
def test_it_is_told_before_anything_is_done(command, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.csv").write_text("time,x\n0,1\n", encoding="utf-8")
    assert main(list(command)) == 1
    told = capsys.readouterr().err
    assert words in told and "fault of warpsim" not in told and "weights_only" not in told
    assert not list(tmp_path.rglob("*.png")) and not list(tmp_path.rglob("*.pt"))


def test_files_of_a_training_are_replaced_and_others_are_not(tmp_path):
    """So that a command that trains runs twice in a row, and goes on with --resume."""
    TrainingLog(tmp_path)(Iteration(0, 1.0, 2.0, 3.0, 4.0, 5))
    torch.save({"format": POLICY, "weights": {"a": torch.zeros(9000)}}, tmp_path / "policy.pt")
    torch.save({"format": CHECKPOINT, "policy": {"a": torch.zeros(9000)}}, tmp_path / "checkpoint.pt")
    ours = [tmp_path / name for name in ("log.jsonl", "log.csv", "policy.pt", "checkpoint.pt")]
    check_outputs(ours, [], force=False)
    torch.save({"weights": torch.zeros(3)}, tmp_path / "mine.pt")
    (tmp_path / "mine.csv").write_text("time,x\n", encoding="utf-8")
    (tmp_path / "mine.jsonl").write_text('{"step": 1}\n', encoding="utf-8")
    for name in ("mine.pt", "mine.csv", "mine.jsonl"):
        with pytest.raises(OutputError, match="was not written by warpsim"):
            check_outputs([tmp_path / name], [], force=False)
        check_outputs([tmp_path / name], [], force=True)
