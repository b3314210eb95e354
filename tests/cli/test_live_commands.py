"""`warpsim view --live` and `warpsim optimize --live` as processes, with a real browser at the other end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from browser_support import PATIENCE, Browser, require_browser
from live_support import connected, parts, status, until

pytestmark = pytest.mark.long
PROJECT = Path(__file__).resolve().parents[2]
TOP_BOX = "/World/Box3"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    opened = Browser(require_browser(), tmp_path_factory.mktemp("browser"), 480, 360)
    yield opened
    opened.close()


@contextmanager
def started(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command, once it has printed its address; and the address."""
    command = [sys.executable, "-m", "warpsim", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=PROJECT
    )
    try:
        assert process.stdout is not None
        line = next(line for line in process.stdout if "http://" in line)
        yield process, line[line.index("http://") :].strip()
    finally:
        process.kill()
        process.wait()


def interrupted(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Ctrl-C; exit code and what was printed since."""
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out, err


def refuses_strangers(url: str) -> None:
    port, query = parts(url)
    assert status(url, f"/?{query}") == 200
    assert status(url, "/?token=wrong") == 403
    assert status(url, f"/?{query}", Host="example.org") == 403
    for change in ({"query": "token=wrong"}, {"origin": "http://example.org"}):
        with pytest.raises(Exception, match="403"), connected(url, **change):
            pass
    assert status(url, f"/scenes/stack.usda?{query}") == 404 and port > 0


def test_view_live(browser):
    slider = "/World/Wood.physics:density=100:900"
    with started("view", "scenes/stack.usda", "--live", "--slider", slider) as (process, url):
        refuses_strangers(url)
        browser.errors.clear()
        browser.visit(url)
        until(lambda: browser.run("page.live().frames") > 3)
        top = browser.run("page.content.bodies.findIndex((body) => body.path === '/World/Box3')")

        def place() -> np.ndarray:
            return np.array(browser.run(f"page.pose(0, {top}, 0)")[:3])

        start = place()
        moment = browser.run("page.live().time")
        until(lambda: browser.run("page.live().time") > moment + 0.2)
        assert np.linalg.norm(place() - start) < 2e-3  # it stands
        x, y = browser.run(f"page.project({start.tolist()})")
        assert browser.run(f"page.pick({x}, {y})") == TOP_BOX
        mouse = {"button": "left", "buttons": 1, "clickCount": 1}
        browser.call("Input.dispatchMouseEvent", type="mousePressed", x=x, y=y, **mouse)
        browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=x + 60, y=y - 30, **mouse)
        until(lambda: np.linalg.norm(place() - start) > 0.05)
        browser.call("Input.dispatchMouseEvent", type="mouseReleased", x=x + 60, y=y - 30, **mouse)
        assert browser.run("document.querySelectorAll('.sliders input').length") == 1  # no forces on free bodies
        assert "density" in browser.run("document.querySelector('.sliders').textContent")
        browser.run(
            "Object.assign(document.querySelector('.sliders input'), { value: 500 }).dispatchEvent(new Event('input'))"
        )
        browser.key("Home")
        until(lambda: np.linalg.norm(place() - start) < 2e-3)
        browser.key(" ")
        until(lambda: browser.run("page.live().paused"))
        until(lambda: "500" in browser.run("document.querySelector('.sliders output').textContent"))
        assert browser.errors == []
        code, out, err = interrupted(process)
        assert (code, out.strip()) == (0, "ended") and "Traceback" not in err
    until(lambda: browser.run("page.live().state") == "ended")


def test_optimize_live(browser, tmp_path):
    scene, folder = "scenes/bounce_shot.usda", tmp_path / "out"
    with started("optimize", scene, "-o", str(folder), "--live", "--no-gif", "--quiet") as (process, url):
        refuses_strangers(url)
        time.sleep(0.5)
        assert not (folder / "search.json").exists()  # nobody looks yet
        with connected(url) as other:
            other.send('{"kind":"pause","on":true}')
            browser.errors.clear()
            browser.visit(url)
            until(lambda: browser.run("page.live().paused") and (browser.run("page.live().iterations") or 0) > 0)
        held = browser.run("page.live().iterations")
        frames = browser.run("page.live().frames")
        until(lambda: browser.run("page.live().frames") > frames + 2)  # its motion plays on
        assert browser.run("page.live().iterations") == held
        assert browser.run("document.querySelector('.label').textContent") == "Hit"
        assert browser.run("document.querySelectorAll('.loss .curve').length") == 1
        browser.key("ArrowRight")
        until(lambda: browser.run("page.live().iterations") > held)
        browser.key(" ")
        until(lambda: "converged" in browser.run("document.querySelector('.live').textContent"))
        assert browser.errors == []
        assert process.stdout is not None
        lines = list(iter(process.stdout.readline, "the page shows the result until it is closed (Ctrl-C ends it)\n"))
        assert any("SOLVED" in line for line in lines) and (folder / "result.html").is_file()
        code, _, err = interrupted(process)
        assert code == 0 and "Traceback" not in err
