"""Parts of commands: which frames and files, curves of a record, lines of summaries, from made-up numbers."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from warpsim.cli.commands import optimize, plot, render, simulate
from warpsim.cli.commands.live_view import _slider
from warpsim.cli.failures import explain
from warpsim.cli.main import _named
from warpsim.core.errors import InputError
from warpsim.solve.newton import AT_ROUNDING, CONVERGED


def test_the_command_is_the_first_word_that_is_no_option():
    assert _named(["simulate", "a.usda"]) == _named(["--verbose", "simulate"]) == "simulate"
    assert _named(["--import", "simulate", "inspect", "x"]) == "inspect"
    assert _named(["--import"]) is None and _named([]) is None and _named(["simulat"]) is None
    assert _named(["a.usda", "simulate"]) is None


def test_pictures_are_one_or_a_numbered_series():
    assert render._targets(Path("a.gif"), 12, False) == [Path("a.gif")] and render._targets(
        Path("a.png"), 1, False
    ) == [Path("a.png")]
    assert render._targets(Path("a.png"), 9, True) == [Path("a.png")]
    assert [p.name for p in render._targets(Path("d/a.png"), 3, False)] == ["a_0.png", "a_1.png", "a_2.png"]
    ten = [p.name for p in render._targets(Path("a.png"), 10, False)]
    assert ten[0] == "a_0.png" and ten[-1] == "a_9.png"
    eleven = [p.name for p in render._targets(Path("a.png"), 11, False)]
    assert eleven[0] == "a_00.png" and eleven[-1] == "a_10.png"
    assert render._size("480x320") == (480, 320) and render._size("7×9") == (7, 9)
    with pytest.raises(InputError, match="480x320"):
        render._size("480,320")


def test_which_times_are_drawn(monkeypatch):
    asked = []
    monkeypatch.setattr(render, "frame_times", lambda stage, **how: asked.append(how) or [0.0])

    def times(film: bool = False, **given) -> dict:
        options = Namespace(**{"time": None, "frames": None, "every": None, "sheet": False, **given})
        found = render._times(None, options, film=film)
        return asked.pop() if asked else found

    assert times(time=3.5) == [3.5]
    assert times() == {"frames": 1, "every": None} and times(sheet=True) == {"frames": 9, "every": None}
    assert times(film=True) == {"frames": None, "every": None} and times(every=2) == {"frames": None, "every": 2}
    assert times(frames=4, sheet=True) == {"frames": 4, "every": None}


def test_films_have_the_pace_of_their_frames(monkeypatch, tmp_path):
    wrote = []
    monkeypatch.setattr(render, "write_gif", lambda target, pictures, interval: wrote.append(interval))
    monkeypatch.setattr(render, "write_png", lambda target, picture: wrote.append((target.name, picture)))
    monkeypatch.setattr(render, "contact_sheet", lambda pictures, labels: labels)
    render._write([tmp_path / "a.gif"], [1, 2, 3], np.array([2.0, 2.25, 2.5]), False)
    render._write([tmp_path / "a.gif"], [1], np.array([2.0]), False)
    render._write([tmp_path / "a.png"], [1, 2], np.array([2.0, 2.25]), True)
    render._write([tmp_path / "a.png", tmp_path / "b.png"], ["x", "y"], np.array([2.0, 2.25]), False)
    assert wrote == [0.25, 1.0, ("a.png", ["0.00 s", "0.25 s"]), ("a.png", "x"), ("b.png", "y")]


# -------------------------------------------------------------------------------------------------------------- plots


def record(**changes) -> SimpleNamespace:
    q = np.arange(2 * 1 * 13.0).reshape(2, 1, 13)
    names = {
        "joint": ["/A/root", "/A/knee", "/A/wrist", "/A/rail"],
        "dof": [f"/A/root:{a}" for a in ("x", "y", "z", "rx", "ry", "rz")]
        + ["/A/knee"]
        + [f"/A/wrist:{a}" for a in ("rx", "ry", "rz")]
        + ["/A/rail"],
    }
    given = dict(
        scene={"name": "arm"},
        names=names,
        trajectory={"times": [0.0, 0.1], "q": q},
        observations={
            "kinetic_energy": np.array([[1.0], [2.0]]),
            "contact_count": np.array([[0, 2], [1, 0]]),
            "solver_iterations": np.array([[3, 1], [2, 2]]),
        },
        more={},
        gradient={"norms": {"q": np.float64(2.0)}, "adjoint_norms": [[3.0], [1.0]]},
    )
    return SimpleNamespace(**{**given, **changes})


def test_curves_of_a_record_skip_joints_of_several_coordinates():
    curves = plot.record_curves(record())
    assert [(c.name, c.values[0, 0]) for c in curves.joints] == [("knee", 7.0), ("rail", 12.0)]
    assert curves.title == "arm" and list(curves.energies) == ["kinetic"] and curves.times.tolist() == [0.0, 0.1]
    assert curves.contact_times["world 1"].tolist() == [2.0, 0.0] and curves.iterations.tolist() == [
        [3.0, 1.0],
        [2.0, 2.0],
    ]
    assert curves.gradients == {"q": 2.0} and curves.adjoints.tolist() == [3.0, 1.0]
    bare = plot.record_curves(
        record(trajectory={}, observations={"contact_count": np.zeros((2, 1))}, gradient={}, scene={})
    )
    assert bare.title == "run" and not bare.joints and not bare.contact_times and bare.iterations is None
    assert bare.adjoints is None and bare.history is None and len(bare.times) == 0


def test_curves_of_a_search_have_gaps_where_nothing_is_known():
    rows = [{"iteration": 0, "loss": 2.0, "gradient_norm": None}, {"iteration": 1, "loss": 0.0, "gradient_norm": 0.5}]
    history = plot.record_curves(record(more={"result": {"history": rows}})).history
    assert history is not None and history.iterations.tolist() == [0.0, 1.0] and history.losses.tolist() == [2.0, 0.0]
    assert np.isnan(history.gradient_norms[0]) and history.gradient_norms[1] == 0.5
    assert plot.record_curves(record(more={"result": [1]})).history is None


# ---------------------------------------------------------------------------------------------------------- summaries


class Motion(dict):
    """Outputs of a rollout."""

    def numpy(self, name: str) -> np.ndarray:
        return self[name]

    def joint_position(self, name: str) -> torch.Tensor:
        return torch.full((3, 2, 1), 0.5)

    joint_velocity = joint_position


def test_the_summary_of_a_run():
    frames = np.array([[1.0, 5.0], [2.0, 5.0], [4.0, 2.0]])
    motion = Motion(
        potential_energy=frames,
        kinetic_energy=np.ones((3, 2)),
        linear_momentum=np.array([[[3.0, 4.0, 0.0]] * 2, [[0.0] * 3] * 2, [[0.0, 0.0, 1.0]] * 2]),
        angular_momentum=np.zeros((3, 2, 3)),
        saturated=np.array([[[1, 1, 1]] * 2, [[0, 1, 1]] * 2, [[0, 0, 1]] * 2]),
    )
    model = SimpleNamespace(nu=1, nd=1)
    sim = SimpleNamespace(timestep=0.5, worlds=2, model=model, joint_names=tuple(f"j{k}" for k in range(26)))
    lines = list(simulate.summary(sim, motion, 4, 0.25))
    assert lines[0] == "4 steps of 0.5 s in 2 world(s): 0.25 s with set-up, 32 steps/s, 16 times real time"
    assert lines[1] == "energy 2 J → 5 J, largest change over worlds 3 J"
    assert "linear 5 → 1 N·s, angular about the center of mass 0 → 0 N·m·s" in lines[2]
    assert lines[3] == "actuators and drives at their limits: 25 % of the time"  # the third range is none of theirs
    assert lines[4] == "final state, world 0:" and lines[5] == "  j0  q 0.5  qd 0.5"
    assert len(lines) == 5 + 24 + 1 and lines[-1] == "  … 26 joints in all; save them with -o"


def test_the_solver_s_part_of_a_summary_leaves_out_the_start():
    status = np.full((4, 2), int(CONVERGED))
    motion = Motion(
        solver_status=status,
        penetration=np.array([[9.0, 9.0], [0.001, 0.0], [0.002, 0.0], [0.0, 0.0]]),
        contact_count=np.array([[99, 0], [3, 1], [0, 4], [0, 0]]),
        solver_iterations=np.array([[99, 0], [2, 1], [0, 7], [0, 0]]),
        constraint_error=np.array([[99.0, 0.0], [0.25, 0.0], [0.0, 0.5], [0.0, 0.0]]),
    )
    status[1, 0] = int(AT_ROUNDING)
    text = simulate._solver_summary(motion)
    assert text.startswith(
        "at most 4 contacts, deepest 2 mm; joint limits and equalities off by at most 0.5 m or rad; "
    )
    assert text.endswith("solver converged within 7 iterations")
    bad = next(code for code in range(9) if code not in (int(CONVERGED), int(AT_ROUNDING)))
    status[0, 0] = status[2, 1] = status[3, 0] = bad
    assert "solver failed in 2 frames, first in frame 2, world 1: " in simulate._solver_summary(motion)


def test_steps_of_a_run():
    def steps(**given) -> int:
        return simulate._steps(Namespace(**{"steps": None, "seconds": None, **given}), 0.002)

    assert (
        steps() == 2500 and steps(seconds=0.01) == 5 and steps(steps=7, seconds=9.0) == 7 and steps(seconds=1e-9) == 1
    )


def test_values_fit_a_line():
    assert optimize._shown(1 / 3) == "0.333333" and optimize._shown([1.0, [2.0, 3.0]]) == "(1, (2, 3))"
    assert optimize._shown([1.0] * 6) == "(1, 1, 1, 1, 1, 1)" and optimize._shown([1.0] * 7) == "(1, 1, 1, 1, 1, 1, …)"


def test_sliders_of_the_command_line():
    assert _slider("/A=B.mass=0.1:2") == ("/A=B.mass", (0.1, 2.0))
    for text in ("/A.mass", "/A.mass=1", "/A.mass=a:b"):
        with pytest.raises(InputError, match="LOW:HIGH"):
            _slider(text)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (InputError("give strict=False or memory=2GB"), "give --lenient or --budget=2GB"),
        (MemoryError(), "out of memory; ask for less"),
        (RuntimeError("std::bad_alloc\nmore"), "out of memory: std::bad_alloc; ask"),
        (RecursionError("deep"), "nested too deeply"),
        (OSError(28, "No space left", "/a"), "No space left '/a'; free some space"),
        (OSError(99, "Odd"), "Odd; check the file and the disk"),
        (UnicodeDecodeError("ascii", b"\xff", 0, 1, "no"), "PYTHONUTF8=1"),
        (OverflowError("int too large"), "a number is too large (int too large)"),
        (KeyError("x"), "KeyError: 'x'; this is a fault of warpsim, not yours"),
        (ValueError(), "ValueError; this is a fault"),
    ],
)
def test_errors_in_words(error, words):
    assert words in explain(error)
