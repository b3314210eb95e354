"""The notebooks: they are those of the tool, they run, and what they show is a viewer that starts."""

from __future__ import annotations

import importlib.util
import time
from pathlib import Path

import pytest

from browser_support import PATIENCE, Browser, require_browser

nbformat = pytest.importorskip("nbformat", reason="nbformat reads notebooks")
nbclient = pytest.importorskip("nbclient", reason="nbclient runs notebooks")

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples" / "notebooks"
NAMES = ("first_gradient", "identify_a_robot", "optimize_a_task")


def tool():
    spec = importlib.util.spec_from_file_location("make_notebooks", ROOT / "tools" / "make_notebooks.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def shown(notebook) -> list[str]:
    """HTML outputs."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return [output.data["text/html"] for output in outputs if "text/html" in output.get("data", {})]


def executed(name: str):
    notebook = tool().notebook(name)
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(ROOT)}}).execute()
    return notebook


def test_they_are_executed_and_as_the_tool_makes_them():
    assert sorted(path.stem for path in FOLDER.glob("*.ipynb")) == list(NAMES)
    for name in NAMES:
        stored, made = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4), tool().notebook(name)
        nbformat.validate(stored)
        assert [(cell.cell_type, cell.source) for cell in stored.cells] == [(c.cell_type, c.source) for c in made.cells]
        assert all(cell.execution_count for cell in stored.cells if cell.cell_type == "code")
        assert any("data-page=" in text for text in shown(stored))


@pytest.mark.long
@pytest.mark.parametrize("name", ["identify_a_robot", "optimize_a_task"])
def test_they_run(name):
    assert shown(executed(name))


def test_the_viewer_of_a_notebook_starts_in_its_frame(tmp_path):
    outputs = shown(executed("first_gradient"))
    page = tmp_path / "notebook.html"
    page.write_text("<!doctype html><meta charset=utf-8>" + outputs[-1], encoding="utf-8")
    browser = Browser(require_browser(), tmp_path / "profile", 480, 360)
    try:
        browser.call("Page.navigate", url=page.as_uri())
        until = time.monotonic() + PATIENCE
        while not browser.evaluate("!!document.querySelector('summary')"):
            assert time.monotonic() < until
        browser.evaluate("document.querySelector('summary').click()")
        started = "!!document.querySelector('iframe').contentWindow?.warpsim"
        while not browser.evaluate(started):
            assert time.monotonic() < until
        frames = "document.querySelector('iframe').contentWindow.warpsim.then((page) => page.content.takes[0].frames)"
        assert browser.evaluate(frames) == 401
        assert browser.errors == []
    finally:
        browser.close()
