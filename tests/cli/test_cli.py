"""The command line: what it prints, what it writes, how it fails."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import warpsim
from simulator_support import ARM, PENDULUM_USD, PUCK
from warpsim.cli.commands.warmup import kernel_modules
from warpsim.cli.main import main
from warpsim.core.errors import InputError
from warpsim.io.load import load_scene
from warpsim.io.usd import author
from warpsim.sim.simulator import Simulator

SCENES = Path(__file__).parents[2] / "scenes"


@pytest.fixture
def arm_file(tmp_path):
    path = tmp_path / "arm.xml"
    path.write_text(ARM.format(integrator="Euler"))
    return path


@pytest.fixture
def pendulum_file(tmp_path):
    path = tmp_path / "pendulum.usda"
    path.write_text(PENDULUM_USD)
    return path


def test_inspect_shows_the_tree_and_the_contract(arm_file, capsys):
    assert main(["inspect", str(arm_file)]) == 0
    shown = capsys.readouterr().out
    mass = Simulator(arm_file).model.body.mass.numpy()[0]
    for text in (
        "2 bodies, 2 joints",
        f"upper   {mass[1]:.4g} kg",
        "⤷ hinge elbow about (0, 0.981, 0.196)",
        "q[1] rad   qd[1] rad/s   elbow",
        "activation[0] of bend",
        "actuator[0]   -2 … 2 N·m before the gear, gear ",
        "   lift → joint shoulder",
        "body_position[3, 3]        m, world",
        "also: joint_force[2], N or N·m",
        "time step 0.01 s, integrator euler",
        "constraints off",
        "0 unsupported",
    ):
        assert text in shown, text


def test_inspect_shows_what_ties_the_tree_together(tmp_path, capsys):
    """Loops with their limits, and drives on them."""
    stage = author.new_stage()
    world = author.world(stage)
    a, b = (author.body(world, name, mass=1, position=(x, 0, 0)) for name, x in (("A", 0), ("B", 1)))
    limits = {"transX": (-1, 0.5), "transY": None, "transZ": None, "rotY": None, "rotZ": None}
    joint = author.generic(world, "Guide", a, b, limits=limits, closes_loop=True)
    author.drive(joint, "transX", {"stiffness": 2.0})
    author.distance(world, "Rope", a, b, maximum=2)
    author.save(stage, tmp_path / "loop.usda")
    assert main(["inspect", str(tmp_path / "loop.usda")]) == 0
    shown = capsys.readouterr().out
    for text in (
        "axes /World/Guide: /World/A and /World/B, free: along x -1 … 0.5 m; about x any rad",
        "distance /World/Rope: /World/A and /World/B, 0 … 2 m apart",
        "drive_target[0]   -1 … 0.5 m, now 0   stiffness 2, damping 0, any force   /World/Guide:transX",
    ):
        assert text in shown, text


def test_inspect_lists_the_ledger_of_a_usd_file(pendulum_file, capsys):
    assert main(["inspect", str(pendulum_file), "--ledger"]) == 0
    shown = capsys.readouterr().out
    assert "/World/Bob: physics:mass used" in shown
    assert shown.index("bodies") < shown.index("state") < shown.index("controls") < shown.index("ledger")


def test_simulate_writes_arrays(arm_file, tmp_path, capsys):
    arguments = ["simulate", str(arm_file), "--seconds", "0.2", "--worlds", "2", "--noise", ".1", "--quiet"]
    assert main([*arguments, "-o", str(tmp_path / "run.npz")]) == 0
    shown = capsys.readouterr().out
    assert "20 steps of 0.01 s in 2 world(s)" in shown
    rate, speed = re.search(r"(\S+) steps/s, (\S+) times real time", shown).groups()
    assert float(speed) == pytest.approx(0.01 * float(rate), rel=2e-3)
    assert "energy" in shown and "at their limits: 0 %" in shown and f"wrote {tmp_path / 'run.npz'}" in shown
    saved = np.load(tmp_path / "run.npz")
    assert saved["q"].shape == (11, 2, 2)  # frames at 60 per second are two steps apart
    np.testing.assert_allclose(saved["times"][-1], 0.2)
    assert f"q {saved['q'][-1, 0, 0]:.5g}" in shown


def test_simulate_writes_usd(pendulum_file, tmp_path, capsys):
    assert main(["simulate", str(pendulum_file), "--steps", "8", "--quiet", "-o", str(tmp_path / "out.usda")]) == 0
    assert (tmp_path / "out.usda").is_file()
    assert "8 steps" in capsys.readouterr().out


def test_a_run_that_fails_saves_what_it_had_reached(tmp_path, capsys):
    """A spring far too stiff for the time step: the angle grows by orders of magnitude at each step, then overflows."""
    (tmp_path / "stiff.xml").write_text(ARM.format(integrator="Euler").replace('stiffness="2"', 'stiffness="1e7"'))
    arguments = ["simulate", str(tmp_path / "stiff.xml"), "--steps", "400", "--fps", "100", "--quiet"]
    assert main([*arguments, "-o", str(tmp_path / "run.npz")]) == 1
    shown = capsys.readouterr()
    saved = np.load(tmp_path / "run.npz")
    last = len(saved["times"]) - 1
    assert 5 < last < 400
    assert f"is not finite at step {last + 1}, world 0" in shown.err
    assert f"had reached, {0.01 * last:.4g} s" in shown.out
    assert np.isfinite(saved["q"]).all() and np.abs(saved["q"][-1]).max() > 1e50
    np.testing.assert_array_equal(saved["q"], Simulator(tmp_path / "stiff.xml").rollout(steps=last).q)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--fps", "0"], "--fps 0: give a finite number above 0"),
        (["--seconds", "nan"], "--seconds nan: give a finite number above 0"),
        (["--noise", "-1"], "--noise -1: a standard deviation"),
        (["--device", "cuda:7"], "device='cuda:7': there is no such device here; there are: cpu"),
        (["-o", "run.mp4"], "run.mp4: trajectories are saved as"),
        (["--threads", "9"], "threads=9 for 1 worlds"),
    ],
)
def test_what_cannot_end_well_is_refused_before_the_run(arm_file, capsys, more, message):
    assert main(["simulate", str(arm_file), "--quiet", *more]) == 1
    assert message in capsys.readouterr().err


def test_the_summary_is_of_all_steps(capsys, tmp_path):
    """What happens between two frames counts: a landing is the same with few frames as with many."""
    told = []
    for fps, rows in (("2", 3), ("1000", 1001)):
        arguments = ["simulate", str(SCENES / "throw.usda"), "--seconds", "1", "--quiet", "--fps", fps]
        assert main([*arguments, "-o", str(tmp_path / "run.npz")]) == 0
        told.append([line for line in capsys.readouterr().out.splitlines() if line.startswith("at most")])
        assert len(np.load(tmp_path / "run.npz")["times"]) == rows
    assert told[0] == told[1] and "at most 1 contacts, deepest 0.5" in told[0][0]


def test_the_version_is_told(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["--version"])
    assert stopped.value.code == 0
    assert capsys.readouterr().out.split() == ["warpsim", warpsim.__version__]


def test_convert_gives_the_same_robot(tmp_path, capsys):
    source, target = tmp_path / "puck.xml", tmp_path / "puck.usda"
    source.write_text(PUCK)
    assert main(["convert", str(source), str(target)]) == 0
    assert f"wrote {target}" in capsys.readouterr().out
    a, b = load_scene(source), load_scene(target)
    assert [body.mass for body in b.bodies] == pytest.approx([body.mass for body in a.bodies], rel=1e-6)
    assert sorted(shape.kind for shape in b.shapes) == sorted(shape.kind for shape in a.shapes)


def test_errors_have_no_traceback_unless_asked(tmp_path, capsys):
    missing = str(tmp_path / "none.usda")
    assert main(["inspect", missing]) == 1
    shown = capsys.readouterr()
    assert shown.out == "" and shown.err.startswith("warpsim: no file") and "Traceback" not in shown.err
    with pytest.raises(InputError):
        main(["--traceback", "inspect", missing])
    assert main(["convert", missing, str(tmp_path / "x.json")]) == 1
    assert "give a .usda, .usdc or .xml (MJCF) file" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [[], ["fly"], ["simulate"], ["simulate", "a.xml", "--steps", "1", "--seconds", "1"]]
)
def test_a_wrong_command_line_exits_with_two(arguments):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2


@pytest.mark.parametrize("command", ["inspect", "simulate", "convert", "warmup"])
def test_every_command_has_help(command, capsys):
    with pytest.raises(SystemExit) as caught:
        main([command, "--help"])
    assert caught.value.code == 0
    assert "--help" in capsys.readouterr().out


def test_warmup_knows_the_modules_with_kernels():
    names = kernel_modules()
    assert "warpsim.rigid.dynamics.kinematics" in names and "warpsim.autograd.parameters" in names
    assert "warpsim.deformable.joint_newton_forest" in names  # of the Python module joint_newton
    assert "warpsim.particles.transfer" in names
    assert "warpsim.sim.simulator" not in names


def test_the_package_runs_as_a_module():
    result = subprocess.run([sys.executable, "-m", "warpsim", "--help"], capture_output=True, text=True, check=False)
    assert result.returncode == 0 and "simulate" in result.stdout


@pytest.fixture
def stack_file(tmp_path):
    """Five boxes, each turned a little on the one below: 36 contacts, more than there is room for at first."""
    stage = author.new_stage()
    author.physics_scene(stage, gravity=9.81, steps_per_second=250)
    author.ground(author.world(stage))
    for k in range(5):
        turn = (np.cos(0.025 * k), 0, 0, np.sin(0.025 * k))
        box = author.body(author.world(stage), f"Box{k}", position=(0, 0, 0.0999 + 0.1998 * k), rotation=turn)
        author.box(box, "Shape", (0.1, 0.1, 0.1))
    author.save(stage, tmp_path / "stack.usda")
    return tmp_path / "stack.usda"


def test_more_contacts_than_there_is_room_for_at_first(stack_file, tmp_path, capsys):
    """They run, a limit that is set is kept, and neither changes a bit of what is recorded."""
    record = str(tmp_path / "run.json")
    arguments = ["simulate", str(stack_file), "--steps", "20", "--quiet", "--record", record]
    assert main(["inspect", str(stack_file)]) == 0
    assert "with room, at first, for 32 contacts at a time" in capsys.readouterr().out
    assert main([*arguments, "--max-contacts", "40"]) == 0
    assert "at most 36 contacts" in capsys.readouterr().out
    assert main(["replay", record]) == 0  # without the limit
    assert "identical bits" in capsys.readouterr().out
    assert main([*arguments, "--max-contacts", "0"]) == 1
    assert "max_contacts=0; give a whole number, at least 1" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["simulate", "--steps", "3", "--quiet"], ["gradcheck", "--steps", "3"], ["validity"]]
)
def test_a_limit_of_contacts_is_kept(stack_file, arguments, capsys):
    command, *more = arguments
    assert main([command, str(stack_file), *more, "--max-contacts", "35"]) == 1
    assert "36 contacts but only 35 places: max_contacts is set to that" in capsys.readouterr().err


def test_a_limit_of_contacts_on_tasks(tmp_path, capsys):
    for command, more in (("optimize", ["--no-gif", "-o", str(tmp_path / "out")]), ("stress", [])):
        task = [str(SCENES / "push.usda"), "--task", "/World/Push", "--max-contacts", "1"]
        assert main([command, *task, *more]) == 1
        assert "contacts but only 1 places: max_contacts is set to that" in capsys.readouterr().err
