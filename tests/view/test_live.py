"""The live viewer: who may look, what is sent, and what a viewer can do."""

from __future__ import annotations

import json
import socket
import threading
import time

import numpy as np
import pytest

from browser_support import PATIENCE, Browser, require_browser
from live_support import connected, parts, status, until
from page_support import ball_page
from warpsim.core.errors import InputError, WarpsimError
from warpsim.core.numpy_quaternions import quat_to_matrix
from warpsim.io.usd import author
from warpsim.io.usd.reader import read_usd
from warpsim.sim.simulator import Simulator
from warpsim.view.live.states import pack_states
from warpsim.view.live.wishes import Drag, Pause, Slide, read_wish

pytest.importorskip("websockets", reason="websockets is the live viewer's server")
SIZES = {"worlds": 2, "bodies": 3, "sliders": 1}


def ball_scene() -> Simulator:
    """A ball that floats."""
    stage = author.new_stage()
    world = author.world(stage)
    author.sphere(author.body(world, "Ball", position=(0.0, 0.0, 1.0)), "Shape", 0.2, color=(0.8, 0.02, 0.02))
    scene = read_usd(stage)
    scene.options.gravity = np.zeros(3)
    return Simulator(scene, controls=("wrench",))


@pytest.fixture
def viewer():
    with ball_scene().viewer(browser=False) as opened:
        yield opened


def test_who_has_the_address_gets_the_page_and_nothing_else(viewer):
    port, query = parts(viewer.url)
    assert status(viewer.url, f"/?{query}") == 200
    assert status(viewer.url, f"/?{query}", Host=f"localhost:{port}") == 200
    for path in ("/", "/?token=", f"/?{query}x", f"/?{query}&token=x"):
        assert status(viewer.url, path) == 403, path
    for host in ("example.org", f"example.org:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}"):
        assert status(viewer.url, f"/?{query}", Host=host) == 403, host
    for path in ("/etc/passwd", "/../pyproject.toml", "/index.html", "//"):
        assert status(viewer.url, f"{path}?{query}") == 404, path


def test_the_socket_refuses_wrong_tokens_and_origins(viewer):
    port, query = parts(viewer.url)
    with connected(viewer.url) as opened:
        assert isinstance(opened.recv(timeout=PATIENCE), str)
    refused = [{"query": "token=wrong"}, {"query": ""}, {"origin": "http://example.org"}]
    refused += [{"origin": f"http://127.0.0.1:{port + 1}"}, {"origin": "null"}, {"origin": None}]
    for change in refused:
        with pytest.raises(Exception, match="403"), connected(viewer.url, **change):
            pass


def test_it_listens_on_the_loopback_alone(viewer):
    port, _ = parts(viewer.url)
    assert viewer._server._server.socket.getsockname()[0] == "127.0.0.1"
    other = next((a[4][0] for a in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)), "127.0.0.1")
    if not other.startswith("127."):
        with pytest.raises(OSError):
            socket.create_connection((other, port), timeout=5.0).close()


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "3", '{"kind":"no"}', '{"kind":"step","frames":1e9}', '{"kind":"step","frames":-1}'),
        '{"kind":"drag","world":2,"body":0,"point":[0,0,0],"target":[0,0,0]}',
        '{"kind":"drag","world":0,"body":true,"point":[0,0,0],"target":[0,0,0]}',
        '{"kind":"drag","world":0,"body":0,"point":[0,0],"target":[0,0,0]}',
        '{"kind":"drag","world":0,"body":0,"point":[0,0,NaN],"target":[0,0,0]}',
        '{"kind":"slide","slider":1,"value":0}',
        '{"kind":"slide","slider":0,"value":"1"}',
        "[" * 100000,
    ],
)
def test_messages_that_are_none_are_refused(text):
    with pytest.raises(InputError, match="message"):
        read_wish(text, **SIZES)


def test_messages_are_read():
    assert read_wish('{"kind":"pause","on":true}', **SIZES) == Pause(True)
    assert read_wish(b'{"kind":"slide","slider":0,"value":2}', **SIZES) == Slide(0, 2.0)
    drag = read_wish('{"kind":"drag","world":1,"body":2,"point":[1,2,3],"target":[4,5,6.5]}', **SIZES)
    assert isinstance(drag, Drag) and drag.target.tolist() == [4.0, 5.0, 6.5]


def test_states_are_packed_as_told():
    page = ball_page()
    data = pack_states(1.5, page.takes, page, 2)
    assert np.frombuffer(data, "<f8", 1)[0] == 1.5 and np.frombuffer(data, "<u4", 2, 8).tolist() == [0, 0]
    poses = np.frombuffer(data, "<f4", -1, 16).reshape(2, 1, 7)
    assert poses[1, 0] == pytest.approx([1.0, 0.0, 0.5, 1.0, 0.0, 0.0, 0.0])


def test_a_pulled_body_follows_the_spring(viewer):
    """Momentum: what the spring gave is what the ball has."""
    sim, point, target = viewer.sim, np.array([0.0, 0.2, 0.0]), np.array([0.5, 0.2, 1.0])
    mass = float(sim.model.body.mass.numpy()[0, 1])
    viewer._obey(Drag(0, 0, point, target))
    given = np.zeros(3)
    for _ in range(20):
        controls = viewer.controls
        given += controls["wrench"][0, 1, :3].numpy() * sim.timestep
        sim.step(controls)
    assert mass * sim.state.numpy("qd")[0, :3] == pytest.approx(given, rel=1e-6)
    assert given[0] > 0.0
    for _ in range(1000):
        sim.step(viewer.controls)
    seen = sim.observe()
    turn = quat_to_matrix(seen.body_rotation("/World/Ball")[0].numpy())
    reached = seen.body_position("/World/Ball")[0].numpy() + turn @ point
    assert np.linalg.norm(reached - target) < 0.05  # it swings about the point that is held


def test_sliders_are_controls_and_attributes(request):
    sim = Simulator(request.config.rootpath / "scenes" / "pendulum.usda")
    mass = sim.scene.bodies[0].name + "/Bob.physics:mass"
    bob = next(shape for shape in sim.scene.shapes if shape.name.endswith("/Bob"))
    seen = sim.observe(("body_position", "body_rotation", "potential_energy"))
    turn = quat_to_matrix(seen.numpy("body_rotation")[0, 1])
    height = (seen.numpy("body_position")[0, 1] + turn @ bob.position)[2]
    with sim.viewer(browser=False, sliders={mass: (0.05, 3.0)}) as opened:
        assert [s.control for s in opened._sliders] == [sim.control_names[0]] * sim.control_size + [None]
        high = opened._sliders[0].facts().high
        opened._obey(Slide(0, 1e5))
        assert float(opened.controls[sim.control_names[0]][0].reshape(-1)[0]) == pytest.approx(high)
        opened._obey(Slide(sim.control_size, 2.5))
        more = sim.observe(("potential_energy",)).potential_energy - seen.potential_energy
        assert float(more.reshape(-1)[0]) == pytest.approx(1.5 * 9.81 * height, rel=1e-5)
    for wrong in ({mass: (2.0, 1.0)}, {mass.replace("physics:mass", "xformOp:translate"): (0.0, 1.0)}):
        with pytest.raises(WarpsimError, match="slider|attribute"):
            sim.viewer(browser=False, sliders=wrong)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    opened = Browser(require_browser(), tmp_path_factory.mktemp("browser"), 400, 300)
    yield opened
    opened.close()


def test_a_browser_follows_pauses_steps_and_pulls(browser, viewer):
    ended = threading.Event()

    def drive() -> None:
        while not ended.is_set():
            viewer.sim.step(viewer.controls)
            viewer.show(label="running")
            time.sleep(0.005)

    thread = threading.Thread(target=drive, daemon=True)
    browser.errors.clear()
    browser.requests.clear()
    browser.visit(viewer.url)
    thread.start()
    try:
        until(lambda: browser.run("page.live().frames") > 3)
        assert browser.run("page.live().state") == "live"
        assert "running" in browser.run("document.querySelector('.live').textContent")
        middle = browser.run("page.project([0, 0, 1])")
        x, y = (round(v) for v in middle)
        red, green, _ = (int(c) for c in browser.picture()[y, x])
        assert red > 90 and red > 2 * green
        # Pull it to the right of the picture by 120 pixels, and hold; it turns, too, since its surface is held.
        before = browser.run("page.pose(0, 0, 0)")
        mouse = {"button": "left", "buttons": 1, "clickCount": 1}
        browser.call("Input.dispatchMouseEvent", type="mousePressed", x=x, y=y, **mouse)
        browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=x + 120, y=y, **mouse)
        until(lambda: np.linalg.norm(np.subtract(browser.run("page.pose(0, 0, 0)"), before)[:3]) > 0.03)
        moved = browser.run("page.project(page.pose(0, 0, 0).slice(0, 3))")
        assert moved[0] > x + 5 and abs(moved[1] - y) < 60
        browser.call("Input.dispatchMouseEvent", type="mouseReleased", x=x + 120, y=y, **mouse)
        until(lambda: viewer._drag is None)
        browser.key(" ")
        until(lambda: browser.run("page.live().paused"))
        held = viewer.sim.time
        time.sleep(0.2)
        assert viewer.sim.time <= held + viewer.sim.timestep
        browser.key("ArrowRight")
        until(lambda: viewer.sim.time > held)
        assert browser.errors == []
        allowed = (viewer.url.split("?")[0], "ws://127.0.0.1", "data:", "blob:")
        assert [url for url in browser.requests if not url.startswith(allowed)] == []
    finally:
        ended.set()
        browser.evaluate("location.replace('about:blank')")
        thread.join(PATIENCE)


def test_a_rollout_plays_while_something_else_goes_on(viewer):
    trajectory = viewer.sim.rollout(40, qd=[1.0, 0, 0, 0, 0, 0])
    with connected(viewer.url) as opened:
        viewer.play(trajectory, label="iteration 3")
        seen, labels = set(), set()
        end = time.monotonic() + PATIENCE
        while (len(seen) < 3 or "iteration 3" not in labels) and time.monotonic() < end:
            opened.send("ready")
            message = opened.recv(timeout=PATIENCE)
            if isinstance(message, str):
                labels.add(json.loads(message)["label"])
            else:
                seen.add((np.frombuffer(message, "<f8", 1)[0], float(np.frombuffer(message, "<f4", 1, 16)[0])))
    viewer._stop_playing()
    assert len(seen) >= 3 and all(x == pytest.approx(t, abs=1e-5) for t, x in seen)  # 1 m/s


def test_a_search_waits_while_the_viewer_wants_a_pause(viewer):
    """The rollout plays on; each step lets the search go on once, and its losses are drawn."""
    trajectory = viewer.sim.rollout(10, qd=[1.0, 0, 0, 0, 0, 0])
    passed = []

    def search() -> None:
        for iteration in range(4):
            viewer.play(
                trajectory, label=f"iteration {iteration}", losses=[(k, 1.0 / (1 + k)) for k in range(iteration + 1)]
            )
            viewer.hold()
            passed.append(iteration)

    with connected(viewer.url) as opened:
        until(lambda: viewer.watchers == 1)
        viewer.paused = True
        thread = threading.Thread(target=search, daemon=True)
        thread.start()
        time.sleep(0.3)
        assert passed == []
        opened.send(json.dumps({"kind": "step", "frames": 1}))
        until(lambda: passed == [0])
        time.sleep(0.3)
        assert passed == [0]
        told = {}
        while told.get("label") != "iteration 1":
            message = opened.recv(timeout=PATIENCE)
            told = json.loads(message) if isinstance(message, str) else told
        assert told["losses"] == [[0, 1.0], [1, 0.5]] and told["paused"]
        opened.send(json.dumps({"kind": "pause", "on": False}))
        thread.join(PATIENCE)
        assert passed == [0, 1, 2, 3]
    viewer._stop_playing()
