"""Files that are replaced whole, on disks that are full and by processes that are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from pxr import Sdf, Vt

from warpsim.core.errors import CacheWarning, OutputError
from warpsim.core.files import replacing, same_file, write_text
from warpsim.geometry.disk_cache import load_arrays, store_arrays
from warpsim.io.usd.layer_files import export_layer, is_our_layer, mark_layer
from warpsim.tape.storage import map_file
from warpsim.view.raycast.images import write_gif, write_png

PROJECT = Path(__file__).parents[2]
LARGE = 300_000


def _layer(numbers: int) -> Sdf.Layer:
    layer = Sdf.Layer.CreateAnonymous(".usda")
    prim = Sdf.CreatePrimInLayer(layer, "/A")
    values = np.random.default_rng(0).random(numbers)
    Sdf.AttributeSpec(prim, "x", Sdf.ValueTypeNames.DoubleArray).default = Vt.DoubleArray.FromNumpy(values)
    return layer


def _arrays(path: Path) -> None:
    with replacing(path) as temporary:
        np.savez(temporary, x=np.random.default_rng(0).random(LARGE // 8))


def _pictures() -> list[np.ndarray]:
    return list(np.random.default_rng(0).integers(0, 255, (2, 300, 300, 3), dtype=np.uint8))


WRITERS = {
    "a.json": lambda path: write_text(path, "x" * LARGE),
    "a.npz": _arrays,
    "a.usda": lambda path: export_layer(_layer(LARGE // 8), path),
    "a.usdc": lambda path: export_layer(_layer(LARGE // 8), path),
    "a.png": lambda path: write_png(path, _pictures()[0]),
    "a.gif": lambda path: write_gif(path, _pictures(), interval=0.1),
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_full_disk_leaves_the_old_file(small_disk, name):
    target = small_disk("128k") / name
    target.write_bytes(b"what was there before")
    with pytest.raises(OutputError, match=f"cannot write .*{name}.*No space left"):
        WRITERS[name](target)
    assert target.read_bytes() == b"what was there before"
    assert os.listdir(target.parent) == [name]


@pytest.mark.parametrize("name", WRITERS)
def test_what_is_written_can_be_read(tmp_path, name):
    target = tmp_path / name
    WRITERS[name](target)
    WRITERS[name](target)
    assert os.listdir(tmp_path) == [name]
    assert target.stat().st_size > 10_000
    if name.endswith(("png", "gif")):
        Image.open(target).load()
    if ".usd" in name:
        assert len(Sdf.Layer.FindOrOpen(str(target)).GetAttributeAtPath("/A.x").default) == LARGE // 8


def test_a_limit_on_file_sizes_is_told(tmp_path):
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000));"
        "from warpsim.core.files import write_text; write_text(sys.argv[1], 'x' * 100000)"
    )
    target = tmp_path / "a.json"
    target.write_text("before")
    done = subprocess.run(
        [sys.executable, "-c", code, str(target)], capture_output=True, text=True, check=False, cwd=PROJECT
    )
    assert "OutputError" in done.stderr and "ulimit -f" in done.stderr
    assert target.read_text() == "before" and os.listdir(tmp_path) == ["a.json"]


def test_a_killed_process_leaves_the_old_file_or_the_new_one(tmp_path):
    """Killed at any moment of writing again and again, the file is always whole."""
    target = tmp_path / "a.json"
    code = (
        "import sys; from warpsim.core.files import write_text\n"
        "for k in range(10**9): write_text(sys.argv[1], str(k % 10) * 2_000_000)"
    )
    for delay in (0.0, 0.003, 0.011, 0.02):
        target.unlink(missing_ok=True)
        process = subprocess.Popen([sys.executable, "-c", code, str(target)], cwd=PROJECT)
        while not target.exists():
            time.sleep(0.001)
        time.sleep(0.02 + delay)
        process.send_signal(signal.SIGKILL)
        process.wait()
        text = target.read_text()
        assert len(text) == 2_000_000 and len(set(text)) == 1


def test_links_are_followed_and_modes_are_kept(tmp_path):
    target, link = tmp_path / "real.json", tmp_path / "link.json"
    target.write_text("before")
    target.chmod(0o640)
    link.symlink_to(target)
    write_text(link, "after")
    assert link.is_symlink() and target.read_text() == "after" and target.stat().st_mode & 0o777 == 0o640
    os.link(target, tmp_path / "hard.json")
    assert same_file(link, tmp_path / "hard.json") and not same_file(link, tmp_path / "none.json")


def test_devices_are_written_to_and_stay_devices():
    write_text("/dev/null", "gone")
    assert Path("/dev/null").is_char_device()


def test_a_text_layer_of_ours_is_known_until_somebody_changes_it(tmp_path):
    for suffix in ("usda", "usdc"):
        layer = _layer(3)
        export_layer(layer, tmp_path / f"plain.{suffix}")
        mark_layer(layer, {"seed": 3})
        export_layer(layer, tmp_path / f"ours.{suffix}")
        assert is_our_layer(tmp_path / f"ours.{suffix}") and not is_our_layer(tmp_path / f"plain.{suffix}")
    text = (tmp_path / "ours.usda").read_text()
    (tmp_path / "ours.usda").write_text(text.replace('def "A"', 'def "B"').replace('over "A"', 'over "B"'))
    assert not is_our_layer(tmp_path / "ours.usda")


def test_checkpoints_find_no_room(small_disk):
    """Without a place on the disk for each page, writing to the mapped file would kill the process."""
    disk = small_disk("200k")
    with pytest.raises(OutputError, match="checkpoints need 1 MB in .* which has 0.2.* MB free"):
        map_file(disk / "states.bin", 1_000_000)
    assert os.listdir(disk) == []
    with map_file(disk / "states.bin", 100_000) as mapped:
        mapped[:] = b"x" * 100_000
    with pytest.raises(OutputError):
        map_file(disk / "states.bin", 1_000_000)
    with map_file(disk / "states.bin", 100_000) as mapped:
        assert mapped[:] == b"x" * 100_000


_ON_DISK = """
import sys
sys.path.insert(0, "tests/support")
import numpy as np
from tape_toys import Chain
from warpsim.core.errors import OutputError
from warpsim.tape import CheckpointedTape, Memory
full = (300, 10)
state = {"x": np.zeros(full), "v": np.zeros(full), "guess": np.zeros(full), "turns": np.zeros(300)}
try:
    tape = CheckpointedTape(Chain(*full), steps=50, memory=Memory(segment=5, storage="disk"))
    tape.forward(state, {"u": np.zeros((50, *full))})
except OutputError as error:
    print(error)
"""


def test_disk_checkpoints_on_a_full_disk_raise_and_leave_nothing(small_disk):
    disk = small_disk("200k")
    done = subprocess.run(
        [sys.executable, "-c", _ON_DISK],
        env={**os.environ, "TMPDIR": str(disk)},
        capture_output=True,
        text=True,
        check=False,
        cwd=PROJECT,
    )
    assert done.returncode == 0, done.stderr
    assert "checkpoints need" in done.stdout and "TMPDIR" in done.stdout
    assert os.listdir(disk) == []


def test_a_full_mesh_cache_is_told_and_passed_over(small_disk, monkeypatch):
    disk = small_disk("100k")
    monkeypatch.setenv("WARPSIM_CACHE", str(disk))
    with pytest.warns(CacheWarning, match="WARPSIM_CACHE"):
        store_arrays("sdf", "key", x=np.zeros(100_000))
    assert load_arrays("sdf", "key", ("x",)) is None
    assert [path for path in disk.rglob("*") if path.is_file()] == []
    monkeypatch.setenv("WARPSIM_CACHE", "/dev/null/nowhere")
    with pytest.warns(CacheWarning, match="Not a directory"):
        store_arrays("sdf", "key", x=np.zeros(10))
