"""`warpsim --import`: modules of the user's own, loaded before a command."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from warpsim.cli.main import main
from warpsim.cli.user_modules import import_user_module
from warpsim.core.errors import InputError

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "mass_spring_net.py"


def test_a_kind_of_matter_from_a_file(tmp_path):
    """The same command reads the net as matter with the file that registers it, and as a mere mesh without."""
    scene = tmp_path / "net.usda"
    code = (
        "import runpy, sys; from pathlib import Path; from warpsim.cli.main import main\n"
        f"runpy.run_path({str(EXAMPLE)!r})['write_scene'](Path({str(scene)!r}), 3)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    command = [sys.executable, "-m", "warpsim"]
    told = []
    for more in ([], ["--import", str(EXAMPLE)]):
        done = subprocess.run(
            [*command, *more, "inspect", str(scene)], capture_output=True, text=True, check=False, cwd=tmp_path
        )
        assert done.returncode == 0, done.stderr
        told.append(done.stdout)
    assert "net.x" not in told[0] and "net.x" in told[1]


def test_a_module_by_name(tmp_path, monkeypatch, capsys):
    (tmp_path / "own_kinds.py").write_text("LOADED = True\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert main(["--import", "own_kinds", "doctor"]) == 0
    assert sys.modules.pop("own_kinds").LOADED
    assert "warpsim" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["no_such_kinds", "no_such.py"])
def test_one_that_is_not_there(name, capsys):
    assert main(["--import", name, "doctor"]) == 1
    error = capsys.readouterr().err
    assert f"--import {name}: no such" in error


def test_a_module_that_misses_another_says_which(tmp_path, monkeypatch):
    (tmp_path / "needs_more.py").write_text("import not_installed_anywhere\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModuleNotFoundError, match="not_installed_anywhere"):
        import_user_module("needs_more")
    with pytest.raises(InputError, match="--import not_there: no such module"):
        import_user_module("not_there")
