"""What notebooks show: tables, and viewers that start when they are unfolded."""

from __future__ import annotations

import html
import re
import time

import pytest

from browser_support import PATIENCE, Browser, require_browser
from page_support import unpacked
from warpsim.core.notebook import rows_html
from warpsim.io.load import load_scene
from warpsim.sim.simulator import Simulator
from warpsim.task.solve import optimize


def held(text: str):
    """The page inside a notebook's output."""
    found = re.search(r'data-page="([^"]*)"', text)
    assert found is not None
    return unpacked(html.unescape(found[1]))


@pytest.fixture(scope="module")
def simulator(request):
    return Simulator(request.config.rootpath / "scenes" / "pendulum.usda", worlds=2)


def test_a_trajectory_names_its_tensors(simulator):
    made = simulator.rollout(steps=10, outputs=())
    shapes = ", ".join(f"{name} {tuple(made[name].shape)}" for name in made)
    assert repr(made) == f"Trajectory('pendulum.usda': {made.times[-1]:.4g} s, 11 frames; {shapes})"


def test_trajectories_and_simulators(simulator):
    shown = simulator.rollout(steps=10)._repr_html_()
    assert "11 frames" in shown and "<details " in shown
    assert [take["frames"] for take in held(shown).header["takes"]] == [11, 11]
    still = simulator._repr_html_()
    assert [take["frames"] for take in held(still).header["takes"]] == [1, 1]
    assert "<iframe" not in simulator.rollout(steps=2, outputs=())._repr_html_()


def test_scenes(request):
    text = load_scene(request.config.rootpath / "scenes" / "arm.usda")._repr_html_()
    assert re.search(r"<b>bodies</b></td><td[^>]*>\d+<", text)


def test_tables_are_escaped():
    assert rows_html("<t>", ("a&b",), [("<c>",)]).count("&lt;") == 2


def test_solved_tasks(request):
    done = optimize(request.config.rootpath / "scenes" / "projectile.usda", iterations=2)
    shown = held(done._repr_html_()).header
    assert [take["name"] for take in shown["takes"]][:3] == ["before", "after", "iteration 0"]
    assert shown["loss"]["iterations"] == [row.iteration for row in done.result.history]
    assert len(shown["targets"]) >= 1
    title = f"/World/Task: loss {done.before.loss:.4g} → {done.after.loss:.4g}, "
    assert repr(done).startswith(f"OptimizedTask({title}")
    first, *others = str(done).splitlines()
    assert first.startswith(title)
    assert len(others) == len(done.changes) + len(done.after.verdicts) > 0


def test_a_viewer_starts_when_it_is_unfolded(simulator, tmp_path):
    program = require_browser()
    notebook = tmp_path / "notebook.html"
    notebook.write_text(f"<!doctype html><meta charset=utf-8>{simulator.rollout(steps=5)._repr_html_()}")
    browser = Browser(program, tmp_path / "profile", 600, 400)
    started = "!!document.querySelector('iframe').contentWindow?.warpsim"
    try:
        browser.call("Page.navigate", url=notebook.as_uri())
        until = time.monotonic() + PATIENCE
        while not browser.evaluate("document.readyState === 'complete' && !!document.querySelector('summary')"):
            assert time.monotonic() < until
        assert not browser.evaluate(started)
        browser.evaluate("document.querySelector('summary').click()")
        while not browser.evaluate(started):
            assert time.monotonic() < until
        frames = "document.querySelector('iframe').contentWindow.warpsim.then((page) => page.content.takes[0].frames)"
        assert browser.evaluate(frames) == 6
        assert browser.errors == []
    finally:
        browser.close()
