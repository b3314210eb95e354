"""Data that are read, looked through, masked and refused."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest

from identification_support import CUBE, toss_recordings
from warpsim.core.errors import InputError
from warpsim.identification.fit import prepare
from warpsim.identification.parameter import Parameter
from warpsim.identification.reading import read_recordings
from warpsim.identification.recordings import Recording, checked


@pytest.fixture(scope="module")
def cube(tmp_path_factory):
    path = tmp_path_factory.mktemp("cube") / "cube.xml"
    path.write_text(CUBE.format(friction=0.3, com=0))
    return path


@pytest.fixture
def tosses():
    return toss_recordings(4, 1, 12, friction=0.3, com=0.0)


def prepared(cube, recordings):
    options = dict(noise=None, units=None, samples=None, substeps=2, validation=0.0, seed=0, threads=1)
    return prepare(recordings, cube, [Parameter("body.mass:cube")], **options)


def altered(recording: Recording, change) -> Recording:
    states = np.array(recording.channels["states"])
    change(states)
    return replace(recording, channels={"states": states})


def test_missing_numbers_are_masked_by_row(cube, tosses):
    tosses[1] = altered(tosses[1], lambda s: s.__setitem__((5, 0), np.nan))
    ready = prepared(cube, tosses)
    mask = ready.predictor.grid.mask["q"]
    assert mask[1, 5] == 0 and mask.sum() == 4 * 12 - 1
    assert any("toss 1" in note and "(5)" in note for note in ready.predictor.grid.notes)


def test_a_gap_is_told_and_nothing_compared_there(cube, tosses):
    whole = tosses[2]
    kept = np.r_[0:6, 9:12]
    tosses[2] = replace(whole, times=whole.times[kept], channels={"states": whole.channels["states"][kept]})
    ready = prepared(cube, tosses)
    assert ready.predictor.grid.mask["q"][2].tolist() == [1.0] * 6 + [0.0] * 3 + [1.0] * 3
    assert any("toss 2" in note and "gap" in note and "sample 5" in note for note in ready.predictor.grid.notes)


def test_time_that_runs_backward_is_refused():
    times = np.array([0.0, 0.1, 0.05, 0.2])
    with pytest.raises(InputError, match="swing, sample 2: time goes from 0.1 s to 0.05 s"):
        checked([Recording("swing", times, {"q": np.zeros((4, 1))})])


def test_what_a_reader_left_out_is_told(cube, tosses):
    tosses[1] = replace(tosses[1], notes=("topic /log (std_msgs/msg/String) left out",))
    assert "toss 1: topic /log (std_msgs/msg/String) left out" in prepared(cube, tosses).predictor.grid.notes


def test_a_single_row_is_left_out_with_a_note(cube, tosses):
    ready = prepared(cube, [*tosses, tosses[0].first_samples(1)])
    assert len(ready.recordings) == 4
    assert any("1 sample(s)" in note for note in ready.predictor.grid.notes)


def test_another_order_of_quaternions_is_recognized(cube, tosses):
    other = [altered(t, lambda s: s.__setitem__((slice(None), slice(3, 7)), np.roll(s[:, 3:7], -1, 1))) for t in tosses]
    with pytest.raises(InputError, match=r"toss 0, samples 0 to 11: .* order \(x, y, z, w\)"):
        prepared(cube, other)
    with pytest.raises(InputError, match="toss 2, samples 0 to 11"):  # one among good ones
        prepared(cube, [*tosses[:2], other[2], tosses[3]])


@pytest.mark.parametrize(("columns", "factor", "unit"), [((7, 10), 1000.0, "mm"), ((10, 13), 180 / np.pi, "degrees")])
def test_other_units_are_recognized(cube, tosses, columns, factor, unit):
    other = [
        altered(t, lambda s: s.__setitem__((slice(None), slice(*columns)), factor * s[:, slice(*columns)]))
        for t in tosses
    ]
    with pytest.raises(InputError, match=f"velocities seem to be in {unit}"):
        prepared(cube, other)


@pytest.mark.parametrize(("factor", "unit"), [(1000.0, "mm"), (100.0, "cm")])
def test_a_fall_tells_units_that_agree_with_each_other(cube, tosses, factor, unit):
    """Positions and velocities in mm agree; no body falls a thousand times as fast as the scene's gravity says."""

    def enlarge(states):
        states[:, :3] *= factor
        states[:, 7:10] *= factor

    with pytest.raises(InputError, match=f"falls .* as gravity says: .* seem to be in {unit}"):
        prepared(cube, [altered(t, enlarge) for t in tosses])
    poses = [
        replace(t, channels={"body_position:cube": factor * np.array(t.channels["states"])[:, :3]}) for t in tosses
    ]
    with pytest.raises(InputError, match=f"seem to be in {unit}"):  # without velocities as well
        prepared(cube, poses)


def test_times_in_milliseconds_are_recognized(cube, tosses):
    with pytest.raises(InputError, match="in mm, or times in ms"):
        prepared(cube, [replace(t, times=1000 * t.times) for t in tosses])


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        (dict(lengths=[2.5], rate=10.0), "`lengths` is"),
        (dict(lengths=[-3], rate=10.0), "`lengths` is"),
        (dict(lengths=["three"], rate=10.0), "`lengths` is"),
        (dict(lengths=[3], rate=0.0), "`rate` is"),
        (dict(lengths=[3], rate=[10.0, 20.0]), "`rate` is"),
    ],
)
def test_lengths_and_rates_that_cannot_be_are_explained(tmp_path, arrays, said):
    np.savez(tmp_path / "a.npz", q=np.zeros((3, 1)), **arrays)
    with pytest.raises(InputError, match=said):
        read_recordings(tmp_path / "a.npz")


def test_positions_without_a_quaternion_are_refused(cube, tosses):
    bad = [altered(t, lambda s: s.__setitem__((slice(None), slice(3, 7)), 2.0)) for t in tosses]
    with pytest.raises(InputError, match="toss 0, sample 0: .* no unit quaternion"):
        prepared(cube, bad)


def test_a_start_inside_the_table_is_left_out(cube, tosses):
    tosses[3] = altered(tosses[3], lambda s: s.__setitem__((slice(None), 2), s[:, 2] - 0.12))
    ready = prepared(cube, tosses)
    assert [r.name for r in ready.recordings] == ["toss 0", "toss 1", "toss 2"]
    assert any("toss 3, sample 0: it starts" in note for note in ready.predictor.grid.notes)


def test_files_of_both_kinds_hold_the_same(tmp_path):
    lengths = [3, 2]
    angles = np.array([0.1, 0.2, 0.3, 1.0, np.nan])
    np.savez(tmp_path / "a.npz", lengths=lengths, rate=10.0, **{"joint:hinge": np.degrees(angles)[:, None]})
    lines = ["recording,time,joint:hinge[0]"]
    lines += [
        f"recording {r},{t},{'' if np.isnan(a) else np.degrees(a)}"
        for r, t, a in zip([0, 0, 0, 1, 1], [0, 0.1, 0.2, 0, 0.1], angles, strict=True)
    ]
    (tmp_path / "a.csv").write_text("\n".join(lines))
    for suffix in ("npz", "csv"):
        read = read_recordings(tmp_path / f"a.{suffix}", units={"joint:hinge": "deg"})
        assert [r.name for r in read] == ["recording 0", "recording 1"]
        np.testing.assert_allclose(np.concatenate([r.channels["joint:hinge"][:, 0] for r in read]), angles, strict=True)
        np.testing.assert_allclose(read[0].times, [0, 0.1, 0.2])


def test_unknown_units_and_channels_are_named(tmp_path):
    np.savez(tmp_path / "a.npz", lengths=[3], rate=10.0, q=np.zeros((3, 1)))
    with pytest.raises(InputError, match="unknown unit 'furlong'"):
        read_recordings(tmp_path / "a.npz", units={"q": "furlong"})
    with pytest.raises(InputError, match="no channel 'qq'"):
        read_recordings(tmp_path / "a.npz", units={"qq": "deg"})


def test_hdf5_and_parquet_hold_the_same(tmp_path):
    h5py, pyarrow = pytest.importorskip("h5py"), pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    angles = [0.1, 0.2, 0.3, 1.0, None]
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["lengths"], file["rate"], file["names"] = [3, 2], 10.0, ["one", "two"]
        file["joint:hinge"] = np.array(angles, dtype=float)[:, None]
    table = {"recording": ["one"] * 3 + ["two"] * 2, "time": [0, 0.1, 0.2, 0, 0.1], "joint:hinge[0]": angles}
    parquet.write_table(pyarrow.table(table), tmp_path / "a.parquet")
    for suffix in ("h5", "parquet"):
        read = read_recordings(tmp_path / f"a.{suffix}")
        assert [(r.name, r.samples) for r in read] == [("one", 3), ("two", 2)]
        made = np.concatenate([r.channels["joint:hinge"][:, 0] for r in read])
        np.testing.assert_array_equal(made, np.array(angles, dtype=float))
        np.testing.assert_allclose(read[0].times, [0, 0.1, 0.2])


def write_mcap(path, topics, encoding="json"):
    """Topics → (time in ms, JSON) each."""
    writer_module = pytest.importorskip("mcap.writer")
    with path.open("wb") as stream:
        writer = writer_module.Writer(stream)
        writer.start()
        for topic, messages in topics.items():
            channel = writer.register_channel(topic, encoding, 0)
            for milliseconds, text in messages:
                writer.add_message(channel, milliseconds * 10**6, text.encode(), milliseconds * 10**6)
        writer.finish()


def test_mcap_topics_are_channels(tmp_path):
    topics = {
        "/one/joint:hinge": [(0, "0.1"), (100, '{"data": [0.2]}'), (200, "[0.3]")],
        "/one/qd": [(3, "[1.0]"), (198, "[null]")],
        "/one/controls": [(0, "[5]"), (150, "[6]")],
        "/two/joint:hinge": [(0, "1.0"), (100, "2.0")],
        "/two/qd": [(0, "[0.0]")],
    }
    write_mcap(tmp_path / "a.mcap", topics)
    one, two = read_recordings(tmp_path / "a.mcap", units={"joint:hinge": "deg"})
    assert (one.name, two.name) == ("one", "two")
    np.testing.assert_allclose(np.degrees(one.channels["joint:hinge"][:, 0]), [0.1, 0.2, 0.3])
    np.testing.assert_array_equal(one.channels["qd"][:, 0], [1.0, np.nan, np.nan])
    np.testing.assert_array_equal(one.controls, [[5.0], [5.0], [6.0]])
    np.testing.assert_allclose(one.times, [0, 0.1, 0.2])
    write_mcap(tmp_path / "swing.mcap", {"q": [(0, "1"), (10, "2")]})
    assert [r.name for r in read_recordings(tmp_path / "swing.mcap")] == ["swing"]


@pytest.mark.parametrize(
    ("topics", "encoding", "said"),
    [
        ({"q": [(0, "1"), (10, '"fast"')]}, "json", "topic 'q', message 1: .*fast.* is no number"),
        ({"q": [(0, "[1]"), (10, "[1, 2]")]}, "json", "topic 'q', message 1: 2 numbers, the first one has 1"),
        ({"/js": [(0, "x")]}, "cdr", "topic '/js', message 0: encoded as 'cdr'"),
        ({"controls": [(0, "1")]}, "json", "nothing that was measured"),
        ({}, "json", "it holds no messages"),
    ],
)
def test_mcap_that_cannot_be_read_is_explained(tmp_path, topics, encoding, said):
    write_mcap(tmp_path / "a.mcap", topics, encoding)
    with pytest.raises(InputError, match=said):
        read_recordings(tmp_path / "a.mcap")


def test_a_file_that_is_no_mcap_is_explained(tmp_path):
    pytest.importorskip("mcap")
    (tmp_path / "a.mcap").write_bytes(b"no such thing at all")
    with pytest.raises(InputError, match=r"not a readable \.mcap file"):
        read_recordings(tmp_path / "a.mcap")


@pytest.mark.parametrize(("suffix", "library"), [("h5", "h5py"), ("parquet", "pyarrow"), ("mcap", "mcap")])
def test_a_missing_library_is_named(tmp_path, monkeypatch, suffix, library):
    for name in (library, f"{library}.parquet", f"{library}.reader"):
        monkeypatch.setitem(sys.modules, name, None)  # as Python marks a module that cannot be imported
    (tmp_path / f"a.{suffix}").write_bytes(b"")
    with pytest.raises(InputError, match=rf'{library}: pip install "warpsim\[data\]"'):
        read_recordings(tmp_path / f"a.{suffix}")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.npz", b"no archive", "a.npz: not a readable .npz file"),
        ("a.csv", b"recording,time,q[0]\nr,0,1\nr,0.1\n", "line 3: 2 cells, the header has 3"),
        ("a.csv", b"recording,time,q[0]\nr,0,1\nr,0.1,fast\n", "recording 'r', sample 1: .*'fast'"),
        ("a.csv", b"time,q[0]\n", "`recording` and `time` among them"),
        ("a.mat", b"", "recordings are read from .npz"),
    ],
)
def test_files_that_are_no_recordings_are_explained(tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=said):
        read_recordings(tmp_path / name)


def test_a_quaternion_of_another_length_is_masked_by_row(cube, tosses):
    tosses[2] = altered(tosses[2], lambda s: s.__setitem__((4, slice(3, 7)), 0.3))
    ready = prepared(cube, tosses)
    assert ready.predictor.grid.mask["q"][2, 4] == 0
    assert any("toss 2: q masked in sample(s) 4" in note for note in ready.predictor.grid.notes)


def test_a_start_that_is_no_number_is_refused_by_row(cube, tosses):
    tosses[1] = altered(tosses[1], lambda s: s.__setitem__((0, 0), np.nan))
    with pytest.raises(InputError, match="toss 1, sample 0: 'q' is"):
        prepared(cube, tosses)
