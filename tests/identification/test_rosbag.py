"""Bags of both ROS versions, written with the library and read back; what cannot be read is explained by message."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from warpsim.core.errors import InputError
from warpsim.identification import read_recordings

MILLISECOND = 10**6


def ros():
    """The library, or the test is skipped."""
    pytest.importorskip("rosbags.highlevel")
    return pytest.importorskip("rosbags.typesys")


def header(types, milliseconds):
    time = types["builtin_interfaces/msg/Time"](sec=0, nanosec=milliseconds * MILLISECOND)
    kind = types["std_msgs/msg/Header"]
    extra = {"seq": 0} if "seq" in kind.__dataclass_fields__ else {}
    return kind(stamp=time, frame_id="", **extra)


def joint_state(types, milliseconds, names, position, velocity=()):
    return types["sensor_msgs/msg/JointState"](
        header=header(types, milliseconds),
        name=list(names),
        position=np.array(position, dtype=float),
        velocity=np.array(velocity, dtype=float),
        effort=np.zeros(0),
    )


def pose(types, milliseconds):
    return types["geometry_msgs/msg/PoseStamped"](
        header=header(types, milliseconds),
        pose=types["geometry_msgs/msg/Pose"](
            position=types["geometry_msgs/msg/Point"](x=1.0, y=2.0, z=3.0 + milliseconds),
            orientation=types["geometry_msgs/msg/Quaternion"](x=0.0, y=0.6, z=0.0, w=0.8),
        ),
    )


def number(types, value):
    return types["std_msgs/msg/Float64"](data=float(value))


def write_bag(path, messages):
    """`messages(types)` → (topic, type, ms, message) each; a `.bag` file or a folder, by the path's name."""
    typesys = ros()
    first = path.suffix == ".bag"
    store = typesys.get_typestore(typesys.Stores.ROS1_NOETIC if first else typesys.Stores.ROS2_HUMBLE)
    rosbag = pytest.importorskip("rosbags.rosbag1" if first else "rosbags.rosbag2")
    writer = rosbag.Writer(path) if first else rosbag.Writer(path, version=9)
    with writer:
        connections = {}
        for topic, kind, milliseconds, message in messages(store.types):
            if topic not in connections:
                connections[topic] = writer.add_connection(topic, kind, typestore=store)
            raw = (store.serialize_ros1 if first else store.serialize_cdr)(message, kind)
            writer.write(connections[topic], 10**9 + milliseconds * MILLISECOND, raw)  # recorded a second late


def swing(types):
    joints, states = ("elbow", "wrist"), "sensor_msgs/msg/JointState"
    for k, ms in enumerate((100, 200, 300)):
        yield "/arm/joint_states", states, ms, joint_state(types, ms, joints, (k, 10 + k), (0.5, 0.25))
        yield "/mocap/hand", "geometry_msgs/msg/PoseStamped", ms + 3, pose(types, ms + 3)
    for ms, value in ((0, 5.0), (250, 6.0)):  # without a header: as recorded, a second later than the others
        yield "/controls", "std_msgs/msg/Float64", ms - 1000, number(types, value)
    yield "/log", "std_msgs/msg/String", 0, types["std_msgs/msg/String"](data="begun")


@pytest.mark.parametrize("name", ["swing.bag", "swing"])
def test_bags_of_both_versions_are_read(tmp_path, name):
    write_bag(tmp_path / name, swing)
    (read,) = read_recordings(tmp_path / name, units={"joint:elbow": "deg"})
    assert read.name == "swing"
    np.testing.assert_allclose(read.times, [0.0, 0.1, 0.2], atol=1e-12)
    np.testing.assert_allclose(np.degrees(read.channels["joint:elbow"]), [[0], [1], [2]])
    np.testing.assert_array_equal(read.channels["joint:wrist"], [[10], [11], [12]])
    np.testing.assert_array_equal(read.channels["joint_velocity:wrist"], [[0.25]] * 3)
    np.testing.assert_array_equal(read.channels["body_position:hand"], [[1, 2, 3.0 + ms] for ms in (103, 203, 303)])
    np.testing.assert_array_equal(read.channels["body_rotation:hand"], [[0.8, 0, 0.6, 0]] * 3)  # w first
    np.testing.assert_array_equal(read.controls, [[5.0], [5.0], [6.0]])
    assert read.notes == ("topic /log (std_msgs/msg/String) left out: no message that is read",)


def test_a_folder_of_bags_is_a_data_set(tmp_path):
    for name in ("b.bag", "a"):
        write_bag(tmp_path / name, swing)
    assert [recording.name for recording in read_recordings(tmp_path)] == ["a", "b"]


def uneven(types):
    for ms, values in ((0, (1.0, 2.0)), (10, (1.0,))):
        yield "/joint_states", "sensor_msgs/msg/JointState", ms, joint_state(types, ms, ("a", "b"), values)


def talk(types):
    yield "/log", "std_msgs/msg/String", 0, types["std_msgs/msg/String"](data="begun")


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        (uneven, r"recording 'a', topic '/joint_states', message 1: 1 numbers for 2 joints \(joint\)"),
        (talk, r"no messages that are read .* it holds /log \(std_msgs/msg/String\)"),
    ],
)
def test_a_bag_that_cannot_be_read_is_explained(tmp_path, messages, said):
    write_bag(tmp_path / "a", messages)
    with pytest.raises(InputError, match=said):
        read_recordings(tmp_path / "a")


def test_what_is_no_bag_is_explained(tmp_path):
    ros()
    (tmp_path / "a.bag").write_bytes(b"no such thing at all")
    with pytest.raises(InputError, match=r"a\.bag: not a readable bag"):
        read_recordings(tmp_path / "a.bag")


def test_a_folder_without_bags_is_explained(tmp_path):
    with pytest.raises(InputError, match=r"neither metadata\.yaml .* nor bags"):
        read_recordings(tmp_path)


def test_the_missing_library_is_named(tmp_path, monkeypatch):
    for name in ("rosbags", "rosbags.highlevel"):
        monkeypatch.setitem(sys.modules, name, None)
    (tmp_path / "a.bag").write_bytes(b"")
    with pytest.raises(InputError, match=r'rosbags: pip install "warpsim\[ros\]"'):
        read_recordings(tmp_path / "a.bag")
