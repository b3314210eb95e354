"""A Warp that nobody has tried: its private names are not touched, results keep their bits, adjoints are checked."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch
import warp as wp

import warpsim as ws
from warpsim.core import warp_internals
from warpsim.core.errors import CompileError, UntriedWarpWarning
from warpsim.core.warp_internals import is_tried
from warpsim.tape import self_check
from warpsim.tape.calls import CallTable


@pytest.fixture
def untried(monkeypatch):
    """Hides Warp's private names when called."""

    def hide() -> None:
        monkeypatch.setattr(warp_internals, "_context", None)
        monkeypatch.setattr(CallTable, "run", lambda *_: pytest.fail("our own loop replays"))

    self_check._check_untried.cache_clear()
    yield hide
    self_check._check_untried.cache_clear()


def _results(memory: ws.Memory | None) -> list[np.ndarray]:
    sim = ws.Simulator(ws.example_scene("pendulum"))
    controls = torch.full((12, 1, sim.control_size), 0.1, dtype=sim.torch_dtype, requires_grad=True)
    motion = sim.rollout(controls=controls, memory=memory)
    (gradient,) = torch.autograd.grad(motion.q.square().sum() + motion["body_position"].sum(), controls)
    return [motion.q.detach().numpy(), motion["body_position"].detach().numpy(), gradient.numpy()]


@pytest.mark.parametrize("memory", [None, ws.Memory(segment=5)], ids=["whole", "segments"])
def test_the_plain_path_has_the_same_bits_and_warns_once(untried, memory):
    expected = _results(memory)
    untried()
    with pytest.warns(UntriedWarpWarning, match="Warp 1.19") as told:
        found = _results(memory)
    assert sum(w.category is UntriedWarpWarning for w in told) == 1
    for value, truth in zip(found, expected, strict=True):
        np.testing.assert_array_equal(value, truth)
    assert np.abs(found[2]).max() > 0.0


def test_another_version_is_untried(monkeypatch):
    assert is_tried()
    monkeypatch.setattr(wp.config, "version", "1.119.0")
    assert not is_tried()
    monkeypatch.undo()
    monkeypatch.setattr(warp_internals, "_NAMES", (*warp_internals._NAMES, (wp.Tape, "gone")))
    assert not is_tried()


def test_adjoints_are_compared_with_closed_forms():
    """Each derivative is right and none of them is zero, so that a Warp that loses one is found out."""
    for found, expected in self_check._derivatives(wp.get_device("cpu")).values():
        np.testing.assert_allclose(found, expected, rtol=1e-13)
        assert np.abs(expected).min() > 0.1


def test_wrong_adjoints_are_refused(untried, monkeypatch):
    """A tape that drops a launch on its way back, as a version with another order of launches might."""
    backward = wp.Tape.backward

    def forgetful(tape: wp.Tape, *rest, **more) -> None:
        tape.launches = tape.launches[1:]
        backward(tape, *rest, **more)

    untried()
    monkeypatch.setattr(wp.Tape, "backward", forgetful)
    with pytest.warns(UntriedWarpWarning), pytest.raises(CompileError, match=r"differentiates a state .* pip install"):
        self_check.check_warp(wp.get_device("cpu"))


_WITHOUT_INTERNALS = """
import builtins, warnings
import warp as wp
real = builtins.__import__
def guarded(name, globals=None, *rest, **more):
    if name.startswith("warp._src") and (globals or {}).get("__name__", "").startswith("warpsim"):
        raise ImportError(name)
    return real(name, globals, *rest, **more)
builtins.__import__ = guarded
from warpsim.core import kernels
from warpsim.tape import graph
kernels.initialize()
x = wp.zeros(3, dtype=wp.float64, device="cpu")
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    replay = graph.capture(wp.get_device("cpu"), lambda: x.fill_(2.5))
before = x.numpy().tolist()
replay()
print(before, x.numpy().tolist(), [w.category.__name__ for w in told if "Untried" in w.category.__name__])
print(kernels.pending_modules())
"""


def test_nothing_imports_what_is_not_there():
    done = subprocess.run([sys.executable, "-c", _WITHOUT_INTERNALS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    expected = ["[0.0, 0.0, 0.0] [2.5, 2.5, 2.5] ['UntriedWarpWarning']", "0"]
    assert done.stdout.splitlines()[-2:] == expected
