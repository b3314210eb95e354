"""Real jobs of several ranks: the same bits as one process, shares that add up, and failures that are named."""

from __future__ import annotations

import json
import shutil
from contextlib import contextmanager

import pytest
import torch

import rank_job
from identification_support import GUESS
from identification_support import PENDULUM as PENDULUM_XML
from rank_support import JOB, PROJECT, job, torchrun


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    path = tmp_path_factory.mktemp("scene") / "pendulum.xml"
    path.write_text(PENDULUM_XML.format(**GUESS))
    return path


@contextmanager
def one_torch_thread():
    """As torchrun starts its ranks: torch's own sums depend on how many threads share them."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def test_two_ranks_have_the_bits_of_one_process(scene, tmp_path):
    found = job(2, tmp_path / "two.json", "several", scene)
    assert found.pop("restarts") == 0
    shares, *done = found.pop("ranks")
    assert shares == "13 worlds over 2 ranks: rank 0: 6, rank 1: 7"
    made = [int(line.split(": ")[1].split()[0]) for line in done]
    assert made[0] + made[1] == made[2] and min(made) > 0
    notes = found["errors"].pop("notes")
    assert notes == ["on rank 1, computing worlds; its worlds are counted from 9"]
    with one_torch_thread():
        alone = json.loads(json.dumps(rank_job.several(str(scene))))
    alone["errors"].pop("notes")
    assert found["errors"].pop("said") == "world 0: nine" and alone["errors"].pop("said") == "world 9: nine"
    assert found == alone


JOBS = [("starts", ("16", "10")), ("identify", ("SCENE", "48", "60")), ("train", ("64", "3", "hopper"))]


@pytest.mark.long
@pytest.mark.parametrize(("mode", "arguments"), JOBS)
def test_one_two_three_and_four_ranks_agree_to_the_last_bit(mode, arguments, scene, tmp_path):
    given = [scene if text == "SCENE" else text for text in arguments]
    found = [job(ranks, tmp_path / f"{ranks}.json", mode, *given) for ranks in (1, 2, 3, 4)]
    for other in found:
        other.pop("ranks")
    assert found[1:] == found[:1] * 3


@pytest.mark.long
@pytest.mark.parametrize(("mode", "arguments"), JOBS)
def test_a_killed_rank_is_started_again_to_the_same_bits(mode, arguments, scene, tmp_path):
    given = [scene if text == "SCENE" else text for text in arguments]
    plain = job(2, tmp_path / "plain.json", mode, *given)
    killed = job(2, tmp_path / "killed.json", mode, *given, more=("--max-restarts", "1"), KILLED="1:3")
    assert (plain.pop("restarts"), killed.pop("restarts")) == (0, 1)
    plain.pop("ranks"), killed.pop("ranks")
    assert killed == plain


@pytest.mark.long
@pytest.mark.parametrize(
    ("how", "options", "said"),
    [
        ("die", {}, "exitcode  : -9"),
        ("stop", {"silence": 4.0}, "has given no sign of life for 4 s"),
        ("sleep", {"timeout": 6.0}, "has not come to 'exchange"),
    ],
)
def test_a_rank_that_dies_or_hangs_ends_the_job_and_is_named(how, options, said, tmp_path):
    done = torchrun(2, JOB, "stuck", tmp_path / "never", "1", how, JOIN=json.dumps(options))
    assert done.returncode != 0 and not (tmp_path / "never").exists()
    assert said in done.stderr
    assert ("rank      : 1" if how == "die" else "rank 1 (process") in done.stderr


@pytest.mark.long
def test_a_rank_with_another_file_is_refused(tmp_path):
    for rank in range(2):
        folder = tmp_path / str(rank)
        folder.mkdir()
        (folder / "scene.usda").write_text(f"#usda 1.0\n# {rank}\n")
    done = torchrun(2, JOB, "worlds", tmp_path / "never", FILES=str(tmp_path / "{rank}" / "scene.usda"))
    assert done.returncode != 0 and not (tmp_path / "never").exists()
    assert "rank 1 has file scene.usda" in done.stderr and "on the same files" in done.stderr


@pytest.mark.long
def test_a_rank_with_another_version_is_refused(tmp_path):
    other = tmp_path / "other"
    shutil.copytree(PROJECT / "warpsim", other / "warpsim", ignore=shutil.ignore_patterns("__pycache__"))
    (other / "warpsim" / "version.py").write_text('"""Version."""\n\n__version__ = "9.9"\n')
    script = tmp_path / "started.py"
    script.write_text(
        "import os, runpy, sys\n"
        f"if os.environ['RANK'] == '1': sys.path.insert(0, {str(other)!r})\n"
        f"runpy.run_path({str(JOB)!r}, run_name='__main__')\n"
    )
    done = torchrun(2, script, "worlds", tmp_path / "never")
    assert done.returncode != 0 and not (tmp_path / "never").exists()
    assert "rank 1 has warpsim 9.9" in done.stderr and "all ranks must run the same warpsim" in done.stderr


@pytest.mark.long
def test_a_full_disk_on_one_rank_ends_all_with_its_name(small_disk, tmp_path):
    disk = small_disk("64k")
    done = torchrun(2, JOB, "full_disk", tmp_path / "never", "1", disk)
    assert done.returncode != 0 and not (tmp_path / "never").exists()
    assert "on rank 1, computing worlds" in done.stderr
    assert "full" in done.stderr or "No space left" in done.stderr
    assert not list(disk.iterdir())  # nothing is left behind
