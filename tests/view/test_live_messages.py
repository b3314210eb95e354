"""Messages between a live page and a simulation at their borders, and states with contacts and soft things in them."""

from __future__ import annotations

import numpy as np
import pytest

from warpsim.core.errors import InputError
from warpsim.io.usd.motion import ContactFrame
from warpsim.view.live.states import pack_states
from warpsim.view.live.wishes import Drag, Pause, Release, Reset, Slide, Step, read_wish
from warpsim.view.page import CloudDrawable, Page, Take
from warpsim.view.page.content import BodyInfo

pytest.importorskip("websockets", reason="websockets is the live viewer's server")

from warpsim.view.live.server import LiveServer

SIZES = {"worlds": 2, "bodies": 3, "sliders": 1}


def drag(**changes: object) -> str:
    told = {"kind": '"drag"', "world": 1, "body": 2, "point": "[0,0,1e6]", "target": "[-1e6,0,0]", **changes}
    return "{" + ",".join(f'"{name}":{value}' for name, value in told.items()) + "}"


def test_every_kind_of_message():
    assert read_wish('{"kind":"reset"}', **SIZES) == Reset() and read_wish('{"kind":"release"}', **SIZES) == Release()
    assert read_wish('{"kind":"pause","on":false}', **SIZES) == Pause(False)
    assert read_wish('{"kind":"pause","on":1}', **SIZES) == Pause(False)  # nothing but true is on
    for frames in (0, 1, 1000):
        assert read_wish(f'{{"kind":"step","frames":{frames}}}', **SIZES) == Step(frames)
    assert read_wish('{"kind":"slide","slider":0,"value":-1e6}', **SIZES) == Slide(0, -1e6)
    found = read_wish(drag(), **SIZES)
    assert isinstance(found, Drag) and (found.world, found.body) == (1, 2)
    assert found.point.tolist() == [0.0, 0.0, 1e6] and found.target.tolist() == [-1e6, 0.0, 0.0]
    first = read_wish(drag(world=0, body=0), **SIZES)
    assert isinstance(first, Drag) and (first.world, first.body) == (0, 0)


@pytest.mark.parametrize(
    "text",
    [
        '{"kind":"step","frames":1001}',
        '{"kind":"step","frames":true}',
        '{"kind":"slide","slider":0,"value":1000001}',
        '{"kind":"slide","slider":0,"value":true}',
        '{"kind":"slide","slider":-1,"value":0}',
        '{"kind":"slide","slider":0.0,"value":0}',
        drag(world=2),
        drag(body=3),
        drag(body=-1),
        drag(point="[0,0,0,0]"),
        drag(point="[0,0,true]"),
        drag(target="[0,0,1000001]"),
        drag(target="{}"),
    ],
)
def test_numbers_just_beyond_are_refused(text):
    with pytest.raises(InputError, match="message"):
        read_wish(text, **SIZES)


def test_states_hold_poses_then_points_then_contacts_of_each_world():
    frames = 3
    takes = []
    for world in range(2):
        positions = world + np.arange(frames * 2 * 3, dtype=float).reshape(frames, 2, 3)
        turns = np.tile([1.0, 0.0, 0.0, 0.0], (frames, 2, 1))
        contacts = [
            ContactFrame(np.full((k + world, 3), 10.0 * world + k), np.full((k + world, 3), 0.5)) for k in range(frames)
        ]
        points = {"/w": np.full((frames, 4, 3), 100.0 + world)}
        takes.append(Take("t", np.arange(3.0), positions, turns, points=points, contacts=contacts))
    page = Page("p", [BodyInfo("/a"), BodyInfo("/b")], [CloudDrawable("/w", np.zeros(3), 0.1)], takes)
    data = pack_states(0.25, takes, page, 1)
    assert np.frombuffer(data, "<f8", 1)[0] == 0.25 and np.frombuffer(data, "<u4", 2, 8).tolist() == [3, 0]
    numbers = np.frombuffer(data, "<f4", -1, 16)
    poses, points, touching = np.split(numbers, [2 * 2 * 7, 2 * 2 * 7 + 2 * 4 * 3])
    poses = poses.reshape(2, 2, 7)
    assert poses[1, 1].tolist() == [10.0, 11.0, 12.0, 1.0, 0.0, 0.0, 0.0]
    assert points.reshape(2, 4, 3)[:, 3, 2].tolist() == [100.0, 101.0]
    rows = touching.reshape(3, 7)
    assert rows[:, 0].tolist() == [0.0, 1.0, 1.0] and rows[:, 1].tolist() == [1.0, 11.0, 11.0]
    assert rows[0].tolist() == [0.0, 1.0, 1.0, 1.0, 0.5, 0.5, 0.5]


def test_wishes_come_in_their_order_and_none_is_told_twice():
    server = LiveServer(lambda text: Reset())
    try:
        assert server.wishes() == [] and server.wishes(0.01) == []
        wishes = [Step(k) for k in range(3)]
        for wish in wishes:
            server._wishes.put_nowait(wish)
        assert server.wishes(0.01) == wishes and server.wishes() == []
        before = server._state_number, server._status_number
        server.publish(state=b"a")
        assert (server._state_number, server._status_number) == (before[0] + 1, before[1])
        server.publish(status={"label": "x"})
        assert (server._state_number, server._status_number) == (before[0] + 1, before[1] + 1)
        assert server._state == b"a" and server._status == '{"label": "x"}'
        assert server.sources.split() == [f"ws://127.0.0.1:{server.port}", f"ws://localhost:{server.port}"]
    finally:
        server.close()


def test_a_port_that_is_taken_is_named():
    server = LiveServer(lambda text: Reset())
    try:
        with pytest.raises(InputError, match=f"port {server.port} of 127.0.0.1 cannot be opened"):
            LiveServer(lambda text: Reset(), port=server.port)
    finally:
        server.close()
