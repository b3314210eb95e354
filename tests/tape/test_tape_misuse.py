"""Wrong use raises an error that says what to do; what goes wrong on the way is found and named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import warp as wp

from tape_toys import Chain
from warpsim.core.errors import InputError, UnknownNameError
from warpsim.tape import (
    Arena,
    Arrays,
    CheckpointedTape,
    Field,
    FullTape,
    Memory,
    NonFiniteError,
    ReleasedError,
    Revolve,
    SegmentReport,
    StaleInputError,
)

SEED = {"state_seeds": {"x": {-1: np.ones((2, 3))}}}


def start(worlds: int = 2, links: int = 3) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    full = (worlds, links)
    zero = np.zeros(full)
    return {"x": rng.normal(size=full), "v": zero, "guess": zero, "turns": np.zeros(worlds, dtype=np.int32)}


@pytest.mark.parametrize(
    "options",
    [
        {"memory": Memory(segment=4)},
        {"memory": Memory(schedule=FullTape())},
        {"memory": Memory(segment=4, schedule=Revolve(1))},
    ],
)
def test_changing_an_input_between_the_passes(options: dict[str, Any]) -> None:
    tape = CheckpointedTape(Chain(2, 3), steps=10, **options)
    u = np.zeros((10, 2, 3))
    run = tape.forward(start(), {"u": u})
    u[5, 1, 2] = 1.0
    with pytest.raises(StaleInputError, match=r"inputs \(u\) of steps .* changed"):
        tape.backward(run, **SEED)
    u[5, 1, 2] = 0.0
    tape.backward(run, **SEED)


def test_changing_a_parameter_between_the_passes() -> None:
    program = Chain(2, 3)
    tape = CheckpointedTape(program, steps=10, memory=Memory(segment=4))
    run = tape.forward(start())
    program.parameters["damping"].fill_(0.7)
    with pytest.raises(StaleInputError, match="'damping'"):
        tape.backward(run, **SEED)


def test_the_initial_state_may_change() -> None:
    tape = CheckpointedTape(Chain(2, 3), steps=10, memory=Memory(segment=4))
    state = start()
    expected = tape.backward(tape.forward(state), **SEED).initial_state.x.numpy()
    run = tape.forward(state)
    state["x"] += 1.0
    assert np.array_equal(tape.backward(run, **SEED).initial_state.x.numpy(), expected)


def test_freed_checkpoints() -> None:
    tape = CheckpointedTape(Chain(2, 3), steps=10, memory=Memory(segment=4))
    run = tape.forward(start())
    tape.backward(run, **SEED)
    with pytest.raises(ReleasedError, match="retain"):
        tape.backward(run, **SEED)
    with tape.forward(start()) as run:
        pass
    with pytest.raises(ReleasedError):
        tape.backward(run, **SEED)
    with pytest.raises(ReleasedError):
        run.state()


def test_runs_that_cannot_be_differentiated() -> None:
    tape, other = (CheckpointedTape(Chain(2, 3), steps=10, memory=Memory(segment=4)) for _ in range(2))
    with pytest.raises(InputError, match="differentiate=False"):
        tape.backward(tape.forward(start(), differentiate=False), **SEED)
    run = tape.start(start())
    run.advance(3)
    with pytest.raises(InputError, match="3 of 10 steps"):
        tape.backward(run, **SEED)
    with pytest.raises(InputError, match="8 more steps"):
        run.advance(8)
    run.advance()
    with pytest.raises(InputError, match="another tape"):
        other.backward(run, **SEED)


def test_wrong_arrays() -> None:
    tape = CheckpointedTape(Chain(2, 3), steps=10, memory=Memory(segment=4))
    with pytest.raises(InputError, match="'guess' is missing"):
        tape.forward({name: value for name, value in start().items() if name != "guess"})
    with pytest.raises(UnknownNameError, match="did you mean 'turns'"):
        tape.forward({**start(), "turn": 0})
    with pytest.raises(InputError, match=r"input 'u' has shape \(9, 2, 3\)"):
        tape.forward(start(), {"u": np.zeros((9, 2, 3))})
    with pytest.raises(UnknownNameError):
        tape.forward(start(), {"torque": np.zeros((10, 2, 3))})
    with pytest.raises(UnknownNameError):
        tape.forward(start(), keep_outputs=["power"])
    run = tape.forward(start(), {"u": np.zeros((10, 2, 3))})
    with pytest.raises(InputError, match="step 11"):
        tape.backward(run, state_seeds={"x": {11: np.zeros((2, 3))}})
    with pytest.raises(InputError, match="not differentiable"):
        tape.backward(run, state_seeds={"turns": {-1: np.zeros(2)}})
    with pytest.raises(UnknownNameError):
        tape.backward(run, output_seeds={"power": {-1: np.zeros(2)}})
    with pytest.raises(InputError, match="written in place"):
        tape.backward(run, input_gradients={"u": np.zeros((10, 3, 2)).transpose(0, 2, 1)})
    own = np.full((10, 2, 3), np.nan)
    tape.backward(run, **SEED, input_gradients={"u": own})
    assert np.isfinite(own).all()


def test_wrong_options() -> None:
    program = Chain(2, 3)
    with pytest.raises(InputError, match="storage='cloud'"):
        CheckpointedTape(program, steps=5, memory=Memory(storage="cloud"))
    with pytest.raises(InputError, match="threads=3 for 2 worlds"):
        CheckpointedTape(program, steps=5, threads=3)
    for groups in (0, 3):
        with pytest.raises(InputError, match=f"groups={groups} for 2 worlds"):
            CheckpointedTape(program, steps=5, groups=groups)
    with pytest.raises(InputError, match="state 'turns' holds numbers that are not int32 integers"):
        CheckpointedTape(program, steps=5).forward({**start(), "turns": np.array([0.5, 1.0])})
    with pytest.raises(InputError, match="capture"):
        CheckpointedTape(program, steps=5, threads=2, capture=False)
    with pytest.raises(InputError, match="least that would do"):
        CheckpointedTape(program, steps=5, memory="1kB")
    with pytest.raises(InputError, match="keep_every"):
        CheckpointedTape(program, steps=5).forward(start(), keep_every=0)


@wp.kernel
def _grow(scale: wp.array(dtype=wp.float64), x: wp.array2d(dtype=wp.float64), y: wp.array2d(dtype=wp.float64)):
    w, i = wp.tid()
    y[w, i] = scale[w] * x[w, i]


@wp.kernel
def _add_into(x: wp.array2d(dtype=wp.float64), y: wp.array2d(dtype=wp.float64)):
    w, i = wp.tid()
    y[w, i] += x[w, i]


@wp.kernel
def _root(x: wp.array2d(dtype=wp.float64), y: wp.array2d(dtype=wp.float64)):
    w, i = wp.tid()
    y[w, i] = wp.sqrt(x[w, i])


class Custom:
    """A program around any step function."""

    def __init__(self, step: Callable[..., None], scale: float = 1.0) -> None:
        self.device, self.worlds = wp.get_device("cpu"), 2
        self.state = (Field("x", (2, 3), wp.float64),)
        self.inputs, self.outputs = (Field("u", (2, 3), wp.float64),), ()
        self.parameters = {"scale": wp.full(2, scale, dtype=wp.float64, requires_grad=True)}
        self._step = step

    def make_work(self, arena: Arena) -> wp.array:
        return arena.array((2, 3), wp.float64)

    def step(
        self, state: Arrays, inputs: Arrays, work: wp.array, next_state: Arrays, outputs: Arrays, *, tape: Any
    ) -> None:
        self._step(self.parameters["scale"], state, inputs, work, next_state, tape)


def _launch(kernel: Any, inputs: list, outputs: list) -> None:
    wp.launch(kernel, dim=(2, 3), inputs=inputs, outputs=outputs)


def writes_state(scale: wp.array, state: Arrays, inputs: Arrays, work: wp.array, after: Arrays, tape: Any) -> None:
    _launch(_grow, [scale, state.x], [after.x])
    _launch(_add_into, [after.x], [state.x])


def writes_input(scale: wp.array, state: Arrays, inputs: Arrays, work: wp.array, after: Arrays, tape: Any) -> None:
    _launch(_grow, [scale, state.x], [after.x])
    _launch(_add_into, [state.x], [inputs.u])


def reads_old_work(scale: wp.array, state: Arrays, inputs: Arrays, work: wp.array, after: Arrays, tape: Any) -> None:
    _launch(_add_into, [state.x], [work])
    _launch(_grow, [scale, work], [after.x])


def leaves_result_unwritten(
    scale: wp.array, state: Arrays, inputs: Arrays, work: wp.array, after: Arrays, tape: Any
) -> None:
    wp.launch(_grow, dim=(1, 3), inputs=[scale, state.x], outputs=[after.x])


def differs_with_tape(scale: wp.array, state: Arrays, inputs: Arrays, work: wp.array, after: Arrays, tape: Any) -> None:
    _launch(_grow, [scale, state.x], [after.x])
    if tape is not None:
        _launch(_add_into, [state.x], [after.x])


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (writes_state, "writes its state 'x'"),
        (writes_input, "writes its input 'u'"),
        (reads_old_work, "depends on what was in its arrays before"),
        (leaves_result_unwritten, "depends on what was in its arrays before"),
        (differs_with_tape, "with a tape than without"),
    ],
)
def test_steps_that_break_the_rules(step: Callable[..., None], message: str) -> None:
    tape = CheckpointedTape(Custom(step), steps=5)
    with pytest.raises(InputError, match=message):
        tape.forward({"x": np.ones((2, 3))})


def scaling(scale: wp.array, state: Arrays, inputs: Arrays, work: wp.array, after: Arrays, tape: Any) -> None:
    _launch(_grow, [scale, state.x], [work])
    _launch(_grow, [scale, work], [after.x])


def rooting(scale: wp.array, state: Arrays, inputs: Arrays, work: wp.array, after: Arrays, tape: Any) -> None:
    _launch(_grow, [scale, state.x], [work])
    _launch(_root, [work], [after.x])


def filling(scale: wp.array, state: Arrays, inputs: Arrays, work: wp.array, after: Arrays, tape: Any) -> None:
    work.fill_(1.0)  # neither a launch, nor a copy, nor a clear: each slot must be captured by Warp itself
    _launch(_grow, [scale, state.x], [after.x])


def test_what_only_warp_can_replay_is_not_captured_step_by_step_for_a_whole_rollout() -> None:
    plain, odd = (CheckpointedTape(Custom(step), steps=1_000) for step in (scaling, filling))
    assert plain.plan.segments == 1
    assert odd.plan.slots <= 128
    back = odd.backward(odd.forward({"x": np.ones((2, 3))}), state_seeds={"x": {-1: np.ones((2, 3))}})
    np.testing.assert_array_equal(back.initial_state.x.numpy(), 1.0)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_state_that_overflows_is_located(threads: int) -> None:
    class Splitting(Custom):
        def split(self, groups: int) -> list[Custom]:
            return [One(self, w) for w in range(groups)]

    class One(Custom):
        def __init__(self, whole: Custom, world: int) -> None:
            super().__init__(lambda *a: None)
            self.worlds = 1
            self.state, self.inputs = (Field("x", (1, 3), wp.float64),), (Field("u", (1, 3), wp.float64),)
            self.parameters = {"scale": whole.parameters["scale"][world : world + 1]}

        def make_work(self, arena: Arena) -> wp.array:
            return arena.array((1, 3), wp.float64)

        def step(self, state: Any, inputs: Any, work: Any, next_state: Any, outputs: Any, *, tape: Any) -> None:
            scale = self.parameters["scale"]
            wp.launch(_grow, dim=(1, 3), inputs=[scale, state.x], outputs=[work])
            wp.launch(_grow, dim=(1, 3), inputs=[scale, work], outputs=[next_state.x])

    program = Splitting(scaling, scale=1e10) if threads > 1 else Custom(scaling, scale=1e10)
    tape = CheckpointedTape(program, steps=50, memory=Memory(segment=4), threads=threads)
    x = np.zeros((2, 3))
    x[1, 2] = 1.0
    # x grows by 1e20 a step: 1e308 is passed on the way to state 16, within its second launch (1e300 · 1e10 = inf)
    with pytest.raises(NonFiniteError, match=r"state 'x' is not finite at step 16, world 1 .*_grow") as caught:
        tape.forward({"x": x}, keep_states=True)
    assert caught.value.step == 16
    assert caught.value.run.step == 15
    expected = np.where(x > 0, 10.0 ** (20 * np.arange(16))[:, None, None], 0.0)
    np.testing.assert_allclose(caught.value.run.states.x.numpy()[:16], expected, rtol=1e-12)
    np.testing.assert_allclose(caught.value.run.state()["x"][1], expected[15][1], rtol=1e-12)


@pytest.mark.parametrize("segment", [4, 5, 20])
def test_a_run_that_failed_stands_where_it_came_to(segment: int) -> None:
    """Also when the failing step is the first of a segment; and it goes on from there."""
    program = Custom(scaling, scale=1.0)
    tape = CheckpointedTape(program, steps=20, memory=Memory(segment=segment))
    run = tape.start({"x": np.ones((2, 3))}, keep_states=["x"])
    run.advance(6)
    scale = program.parameters["scale"]
    scale.fill_(2.0)
    run.advance(2)
    scale.fill_(np.inf)
    with pytest.raises(NonFiniteError, match="step 9"):
        run.advance()
    assert run.step == 8
    np.testing.assert_array_equal(run.state()["x"], 16.0)
    scale.fill_(1.0)
    run.advance()
    np.testing.assert_array_equal(run.state()["x"], 16.0)
    np.testing.assert_array_equal(run.states.x.numpy()[:, 0, 0], [1.0] * 7 + [4.0] + [16.0] * 13)


@pytest.mark.parametrize("threads", [1, 2])
def test_of_several_failures_the_first_is_told_and_all_worlds_have_what_came_before(threads: int) -> None:
    class Splitting(Custom):
        def split(self, groups: int) -> list[Custom]:
            return [RunningOne(self, world) for world in range(groups)]

    class RunningOne(Custom):
        def __init__(self, whole: Custom, world: int) -> None:
            super().__init__(lambda *a: None)
            self.worlds = 1
            self.state, self.inputs = (Field("x", (1, 3), wp.float64),), (Field("u", (1, 3), wp.float64),)
            self.parameters = {"scale": whole.parameters["scale"][world : world + 1]}

        def make_work(self, arena: Arena) -> None:
            return None

        def step(self, state: Any, inputs: Any, work: Any, next_state: Any, outputs: Any, *, tape: Any) -> None:
            wp.launch(_grow, dim=(1, 3), inputs=[self.parameters["scale"], state.x], outputs=[next_state.x])

    tape = CheckpointedTape(Splitting(scaling, scale=1e20), steps=40, threads=threads, groups=2)
    x = np.array([[1.0, 1.0, 1.0], [1e100, 1.0, 1.0]])  # world 1 fails five steps before world 0 does
    with pytest.raises(NonFiniteError, match="step 11, world 1") as caught:
        tape.forward({"x": x}, keep_states=["x"])
    assert caught.value.run.step == 10
    kept = caught.value.run.states.x.numpy()[:11]
    np.testing.assert_allclose(kept, x * 10.0 ** (20 * np.arange(11))[:, None, None], rtol=1e-12)


def test_an_adjoint_that_overflows_is_located() -> None:
    tape = CheckpointedTape(Custom(rooting), steps=10, memory=Memory(segment=4))
    x = np.ones((2, 3))
    x[1, 0] = 0.0  # d sqrt(x) / dx is infinite at 0: already on the first step back
    run = tape.forward({"x": x}, {"u": np.zeros((10, 2, 3))})
    with pytest.raises(NonFiniteError, match=r"adjoint of state 'x' is not finite at step 9, world 1 .*_root"):
        tape.backward(run, state_seeds={"x": {-1: np.ones((2, 3))}})
    # adjoints grow by 1e80 a step: those of states 9, 8 and 7 are finite (their squares are not), that of 6 is not
    tape = CheckpointedTape(Custom(scaling, scale=1e40), steps=10, memory=Memory(segment=2))
    run = tape.forward({"x": np.zeros((2, 3))})
    with pytest.raises(NonFiniteError, match=r"adjoint of state 'x' is not finite at step 6, world 0"):
        tape.backward(run, state_seeds={"x": {-1: np.ones((2, 3))}})
    tape = CheckpointedTape(Custom(scaling, scale=1e40), steps=3, memory=Memory(segment=1))
    back = tape.backward(tape.forward({"x": np.zeros((2, 3))}), state_seeds={"x": {-1: np.ones((2, 3))}})
    np.testing.assert_allclose(back.adjoint_norms, np.sqrt(6.0) * np.array([1e240, 1e160, 1e80]), rtol=1e-14)


def test_a_loss_whose_own_derivative_is_not_finite_is_told_so() -> None:
    tape = CheckpointedTape(Custom(scaling, scale=1.0), steps=10, memory=Memory(segment=4))
    run = tape.forward({"x": np.ones((2, 3))})
    bad = np.ones((2, 3))
    bad[1, 2] = np.inf
    with pytest.raises(NonFiniteError, match=r"loss by state 'x' at step 6, world 1, is not finite .*look at the loss"):
        tape.backward(run, state_seeds={"x": {6: bad, -1: np.ones((2, 3))}})


def test_a_parameter_gradient_that_is_not_finite() -> None:
    tape = CheckpointedTape(Custom(rooting), steps=4, memory=Memory(segment=2))
    run = tape.forward({"x": np.ones((2, 3))})
    tape.program.parameters["scale"].grad.fill_(np.inf)
    with pytest.raises(NonFiniteError, match="parameter 'scale'"):
        tape.backward(run, state_seeds={"x": {-1: np.ones((2, 3))}}, accumulate=True)


def test_norms_hooks_and_clipping() -> None:
    tape = CheckpointedTape(Custom(scaling, scale=2.0), steps=10, memory=Memory(segment=4))
    seen: list[SegmentReport] = []
    run = tape.forward({"x": np.ones((2, 3))})
    back = tape.backward(run, state_seeds={"x": {-1: np.ones((2, 3))}}, on_segment=seen.append)
    # each step multiplies by 4: the adjoint of state k is 4^(10 - k), its norm √6 times that
    starts = np.array([0, 4, 8])
    np.testing.assert_allclose(back.adjoint_norms, np.sqrt(6.0) * 4.0 ** (10 - starts), rtol=1e-14)
    assert [(r.segment, r.start, r.count) for r in seen] == [(2, 8, 2), (1, 4, 4), (0, 0, 4)]
    assert seen[0].worlds == range(2)
    run = tape.forward({"x": np.ones((2, 3))})
    clipped = tape.backward(run, state_seeds={"x": {-1: np.ones((2, 3))}}, clip=1.0)
    # handed down with norm 1 per world, then grown over the 4 steps of the first segment
    np.testing.assert_allclose(np.linalg.norm(clipped.initial_state.x.numpy(), axis=1), 4.0**4, rtol=1e-14)
    run = tape.forward({"x": np.ones((2, 3))})

    def stop(report: SegmentReport) -> None:
        if report.segment == 1:
            report.adjoint.x.zero_()

    stopped = tape.backward(run, state_seeds={"x": {-1: np.ones((2, 3))}}, on_segment=stop)
    assert not stopped.initial_state.x.numpy().any()


def test_progress_bar(capsys: pytest.CaptureFixture) -> None:
    tape = CheckpointedTape(Custom(scaling), steps=10, memory=Memory(segment=4))
    run = tape.forward({"x": np.ones((2, 3))}, progress=True)
    tape.backward(run, state_seeds={"x": {-1: np.ones((2, 3))}}, progress=True)
    text = capsys.readouterr().err
    assert "forward" in text
    assert "backward" in text
    assert "3/3" in text
