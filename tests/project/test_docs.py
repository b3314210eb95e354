"""The documentation: every code block runs, every command line parses, quoted tasks exist, the site builds."""

from __future__ import annotations

import re
import runpy
import shlex
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

import warpsim
from warpsim.cli.main import COMMANDS, make_parser

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"(<!-- run: long -->\n+)?^( *)```(\w*)\n(.*?)^ *```", flags=re.S | re.M)
NAMES = {name for commands in COMMANDS.values() for name in commands}


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, text, and whether it takes long."""

    language: str
    text: str
    long: bool


def blocks(page: Path) -> list[Block]:
    found = []
    for mark, indent, language, text in FENCE.findall(page.read_text(encoding="utf-8")):
        lines = [line.removeprefix(indent) for line in text.splitlines()]
        found.append(Block(language, "\n".join(lines), bool(mark)))
    return found


def pages_with(language: str, *, long: bool) -> list[str]:
    """Pages that have such blocks; with `long`, those that have one which takes long."""
    chosen = []
    for page in PAGES[1:]:  # the README's own test says more about it
        marks = [block.long for block in blocks(page) if block.language == language]
        if any(marks) if long else marks:
            chosen.append(str(page.relative_to(ROOT)))
    return chosen


def run_page(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, *, long: bool) -> dict:
    """Runs a page's Python, in order and in one namespace, where `scenes/` is at hand and files may be written."""
    (folder / "scenes").symlink_to(ROOT / "scenes")
    monkeypatch.chdir(folder)
    monkeypatch.setattr("webbrowser.open", lambda address: None)
    code = folder / f"{Path(name).stem}_page.py"  # a file, since Warp reads the source of kernels
    wanted = [b.text for b in blocks(ROOT / name) if b.language == "python" and (long or not b.long)]
    code.write_text("\n\n".join(wanted), encoding="utf-8")
    return runpy.run_path(str(code))


@pytest.mark.parametrize("name", pages_with("python", long=False))
def test_the_code_of_a_page_runs(name, tmp_path, monkeypatch):
    run_page(name, tmp_path, monkeypatch, long=False)


@pytest.mark.long
@pytest.mark.parametrize("name", pages_with("python", long=True))
def test_all_code_of_a_page_runs(name, tmp_path, monkeypatch):
    run_page(name, tmp_path, monkeypatch, long=True)


def test_quoted_tasks_stand_in_a_scene():
    scenes = [" ".join(path.read_text(encoding="utf-8").split()) for path in (ROOT / "scenes").glob("*.usda")]
    quoted = [block.text for page in PAGES for block in blocks(page) if block.language == "usda"]
    assert quoted
    for text in quoted:
        assert any(" ".join(text.split()) in scene for scene in scenes), text


def command_lines() -> list[list[str]]:
    """All `warpsim COMMAND …` in indented blocks, without comments; several on one line are separated by ·."""
    found = []
    for page in PAGES:
        for line in re.findall(r"^ {4}(?:\.venv/bin/)?(warpsim .*)", page.read_text(encoding="utf-8"), flags=re.M):
            for part in line.split("#")[0].split("·"):
                words = shlex.split(part)[1:]
                if words and words[0] in NAMES:
                    found.append(words)
    return found


@pytest.mark.parametrize("words", command_lines(), ids=" ".join)
def test_a_command_line_is_understood(words):
    make_parser(words[0]).parse_args(words)


def test_every_page_stands_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    listed = set(re.findall(r"(\S+\.md)$", navigation, re.M))
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    made = {f"api/{package}.md" for package in warpsim.PUBLIC_PACKAGES}
    assert pages | made <= listed


@pytest.mark.long
@pytest.mark.skipif(find_spec("mkdocs") is None, reason="MkDocs is not installed; pip install -e '.[docs]'")
def test_the_site_builds_without_a_warning(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    site = tmp_path / "site"
    reached, open_pages = set(), [site / "index.html"]
    while open_pages:
        page = open_pages.pop()
        if page not in reached:
            reached.add(page)
            links = re.findall(r'href="([^"#:]+\.html)', page.read_text(encoding="utf-8"))
            open_pages += [(page.parent / link).resolve() for link in links]
    assert set(site.rglob("*.html")) - reached <= {site / "404.html"}
