"""The tool that plants faults: edits are what they say, draws are even, the nearest tests come first."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tools.mutate.choose import ImportGraph, Reach
from tools.mutate.draw import draw
from tools.mutate.faults import faults_of
from tools.mutate.trial import Scratch

ROOT = Path(__file__).resolve().parents[2]
SOURCE = '''"""Not a + b."""
def f(a: int = 1 - 2, *, b: "x < y") -> list[3]:
    if a < b and not a:
        raise ValueError(f"{a + b}" if a > 0 else "é")
    return max(-a, b[0], (a +
        b) * 2.0, b[a, 2])
'''


def test_every_kind_of_fault_is_found_and_applied():
    found = {(fault.kind, fault.before.strip(), fault.after.strip()) for fault in faults_of("f.py", SOURCE)}
    assert found == {
        ("sign", "-", "+"),
        ("comparison", "<", ">="),
        ("logic", "and", "or"),
        ("logic", "not a", "a"),
        ("extreme", "max", "min"),
        ("sign", "-a", "a"),
        ("index", "0", "1"),
        ("sign", "+", "-"),
        ("factor", "(a +\n        b) * 2.0", "(a +\n        b)"),
        ("factor", "(a +\n        b) * 2.0", "2.0"),
        ("index", "2", "1"),
    }
    for fault in faults_of("f.py", SOURCE):
        changed = fault.apply(SOURCE)
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(SOURCE))
        assert SOURCE.splitlines()[: fault.line - 1] == changed.splitlines()[: fault.line - 1]


def small_project(root: Path) -> None:
    """Three packages of different sizes, one of them tested."""
    for package, lines in (("one", 1), ("two", 40), ("three", 5)):
        folder = root / "code" / package
        folder.mkdir(parents=True)
        (folder / "__init__.py").touch()
        text = "\n".join(f"def f{i}(a, b):\n    return a - b if a < {i} else a * b\n" for i in range(lines))
        (folder / "sums.py").write_text(text)
    (root / "code" / "__init__.py").touch()
    (root / "tests").mkdir()
    (root / "tests" / "helper.py").write_text("from code.three.sums import f0\n")
    (root / "tests" / "test_one.py").write_text(
        "from code.one.sums import f0\n\ndef test_f():\n    assert f0(3, 2) == 6 and f0(-3, 2) == -5\n"
    )
    (root / "tests" / "test_by_helper.py").write_text("from helper import f0\n\ndef test_f():\n    assert f0\n")
    (root / "tests" / "test_broken.py").write_text(
        "from code.two.sums import f0\n\ndef test_f():\n    assert f0 is 0\n"
    )
    (root / "pyproject.toml").write_text('[tool.pytest.ini_options]\npythonpath = [".", "tests"]\n')


def test_draws_are_even_and_repeat(tmp_path):
    small_project(tmp_path)
    drawn = draw(tmp_path, "code", 9, seed=3)
    assert drawn == draw(tmp_path, "code", 9, seed=3) != draw(tmp_path, "code", 9, seed=4)
    shares = Counter(fault.path.split("/")[1] for fault in drawn)
    assert shares["one"] == 1 and abs(shares["two"] - shares["three"]) <= 1  # one line is all that `one` has
    assert len({(fault.path, fault.line) for fault in drawn}) == 9
    assert {fault.path for fault in draw(tmp_path, "code", 5, seed=3, within="code/two")} == {"code/two/sums.py"}


def test_the_nearest_tests_come_first(tmp_path):
    small_project(tmp_path)
    graph = ImportGraph(tmp_path, "code")
    assert graph.tests_for("code/one/sums.py") == ["tests/test_one.py"]
    assert graph.tests_for("code/three/sums.py") == ["tests/test_by_helper.py"]
    own = ImportGraph(ROOT, "warpsim")
    modules = [path.relative_to(ROOT).as_posix() for path in (ROOT / "warpsim").rglob("[a-z]*.py")]
    assert [module for module in modules if not own.tests_for(module)] == []
    assert "tests/view/test_render.py" in own.tests_for("warpsim.view.items.camera.py")[:4]


def test_a_measured_map_gives_the_tests_that_run_a_fault(tmp_path):
    """The nearest first, in sessions of 10 s, 40 s …, within the time that is given."""
    small_project(tmp_path)
    costs = {"tests/test_one.py::test_f": 4.0, "tests/test_far.py::test_a": 6.0, "tests/test_far.py::test_b": 7.0}
    runs = {name: {"seconds": cost, "functions": ["code/one/sums.py:1"]} for name, cost in costs.items()}
    runs["tests/test_broken.py::test_f"] = {"seconds": 1.0, "functions": ["code/two/sums.py:4"]}
    (tmp_path / "reach.json").write_text(json.dumps(runs))
    reach = Reach(tmp_path / "reach.json", tmp_path, ImportGraph(tmp_path, "code"))
    fault = draw(tmp_path, "code", 1, seed=0, within="code/one")[0]
    near, *far = costs
    assert reach.sessions(fault, 100.0) == [[near, far[0]], [far[1]]]
    assert reach.sessions(fault, 10.0) == [[near, far[0]]]
    other = next(f for f in faults_of("code/two/sums.py", (tmp_path / "code/two/sums.py").read_text()) if f.line == 5)
    assert reach.sessions(other, 10.0) == [["tests/test_broken.py::test_f"]]


def test_a_fault_is_caught_survives_or_is_unclear(tmp_path, monkeypatch):
    """And the project itself is as it was."""
    root, folder = tmp_path / "project", tmp_path / "scratch"
    root.mkdir()
    folder.mkdir()
    small_project(root)
    monkeypatch.setenv("WARP_CACHE_PATH", str(tmp_path / "none"))
    before = {path: path.read_bytes() for path in root.rglob("*.py")}
    scratch = Scratch(root, folder, limit=300)
    graph = ImportGraph(root, "code")
    results = {}
    for package in ("one", "two", "three"):
        fault = draw(root, "code", 1, seed=0, within=f"code/{package}")[0]
        verdict = scratch.trial(fault, [graph.tests_for(fault.path)])
        results[package] = (verdict.result, verdict.by)
    assert results == {
        "one": ("caught", "tests/test_one.py::test_f"),
        "two": ("unclear", "tests/test_broken.py::test_f"),
        "three": ("survived", ""),
    }
    assert {path: path.read_bytes() for path in root.rglob("*.py")} == before


def test_sessions_in_forks_come_to_the_same(tmp_path):
    """In a process of its own, since this one has the project loaded."""
    root = tmp_path / "project"
    root.mkdir()
    small_project(root)
    code = (
        "import sys; from pathlib import Path; from tools.mutate.draw import draw\n"
        "from tools.mutate.trial import Scratch\n"
        f"root, folder = Path({str(root)!r}), Path({str(tmp_path / 'scratch')!r})\n"
        "folder.mkdir(); scratch = Scratch(root, folder, limit=300, forks=True)\n"
        "for package, test in (('one', 'one'), ('two', 'broken'), ('three', 'by_helper')):\n"
        "    fault = draw(root, 'code', 1, seed=0, within=f'code/{package}')[0]\n"
        "    made = scratch.trial(fault, [[f'tests/test_{test}.py']])\n"
        "    print(made.result, made.by, flush=True)\n"
    )
    environment = {**os.environ, "WARP_CACHE_PATH": str(tmp_path / "none"), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "caught tests/test_one.py::test_f",
        "unclear tests/test_broken.py::test_f",
        "survived ",
    ]


def test_a_fault_of_another_version_of_a_file_is_refused():
    (first, *_) = faults_of("f.py", SOURCE)
    with pytest.raises(AssertionError, match="not the one"):
        first.apply("\n" * 100)
