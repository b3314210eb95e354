"""The smallest programs: no inputs, no outputs, no intermediates; and the containers a step is handed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import warp as wp

from warpsim.core.errors import InputError, UnknownNameError
from warpsim.tape import Arena, Arrays, CheckpointedTape, Field, Memory, Program, Resumable, Revolve, SplittableProgram
from warpsim.tape import arena as arenas


@wp.kernel
def _decay(rate: wp.array(dtype=wp.float64), x: wp.array(dtype=wp.vec3d), y: wp.array(dtype=wp.vec3d)):
    w = wp.tid()
    y[w] = rate[w] * x[w]


class Decay:
    """x' = rate · x, with a vector type and nothing else."""

    def __init__(self, rate: np.ndarray) -> None:
        self.device, self.worlds = wp.get_device("cpu"), len(rate)
        self.state = (Field("x", (len(rate),), wp.vec3d),)
        self.inputs = self.outputs = ()
        self.parameters = {"rate": wp.array(rate, dtype=wp.float64, requires_grad=True)}

    def make_work(self, arena: Arena) -> None:
        return None

    def step(
        self, state: Arrays, inputs: Arrays, work: None, next_state: Arrays, outputs: Arrays, *, tape: Any
    ) -> None:
        wp.launch(_decay, dim=self.worlds, inputs=[self.parameters["rate"], state.x], outputs=[next_state.x])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"memory": Memory(segment=3)},
        {"memory": Memory(segment=1, schedule=Revolve(2))},
        {"memory": Memory(segment=4, storage="disk")},
    ],
    ids=str,
)
def test_closed_form(options: dict[str, Any]) -> None:
    rate, steps = np.array([0.9, 1.1]), 20
    program = Decay(rate)
    assert isinstance(program, Program)
    assert not isinstance(program, SplittableProgram)
    tape = CheckpointedTape(program, steps=steps, **options)
    x = np.arange(6.0).reshape(2, 3)
    run = tape.forward({"x": x}, keep_states=True)
    np.testing.assert_allclose(run.states.x.numpy()[-1], rate[:, None] ** steps * x, rtol=1e-13)
    back = tape.backward(run, state_seeds={"x": {-1: np.ones((2, 3))}})
    np.testing.assert_allclose(back.initial_state.x.numpy(), np.repeat(rate[:, None] ** steps, 3, axis=1), rtol=1e-13)
    slope = steps * rate ** (steps - 1) * x.sum(axis=1)
    np.testing.assert_allclose(program.parameters["rate"].grad.numpy(), slope, rtol=1e-13)


def test_resumable_without_inputs(tmp_path: Any) -> None:
    tape = CheckpointedTape(Decay(np.array([0.5])), steps=9, memory=Memory(segment=2, storage=Resumable(tmp_path)))
    back = tape.backward(tape.forward({"x": np.ones((1, 3))}), state_seeds={"x": {-1: np.ones((1, 3))}})
    assert np.array_equal(back.initial_state.x.numpy(), np.full((1, 3), 0.5**9))


def test_a_single_step() -> None:
    tape = CheckpointedTape(Decay(np.array([0.5])), steps=1)
    back = tape.backward(
        tape.forward({"x": np.ones((1, 3))}), state_seeds={"x": {0: np.ones((1, 3)), 1: np.ones((1, 3))}}
    )
    assert np.array_equal(back.initial_state.x.numpy(), np.full((1, 3), 1.5))


def test_threads_need_split() -> None:
    with pytest.raises(InputError, match="no `split`"):
        CheckpointedTape(Decay(np.ones(2)), steps=4, threads=2)


def test_accumulated_parameter_gradients() -> None:
    program = Decay(np.array([0.5]))
    tape = CheckpointedTape(program, steps=3, memory=Memory(segment=2))
    seeds = {"state_seeds": {"x": {-1: np.ones((1, 3))}}}
    tape.backward(tape.forward({"x": np.ones((1, 3))}), **seeds)
    once = program.parameters["rate"].grad.numpy().copy()
    tape.backward(tape.forward({"x": np.ones((1, 3))}), **seeds, accumulate=True)
    assert np.array_equal(program.parameters["rate"].grad.numpy(), 2.0 * once)
    tape.backward(tape.forward({"x": np.ones((1, 3))}), **seeds)
    assert np.array_equal(program.parameters["rate"].grad.numpy(), once)


def test_kept_into_the_callers_own_array() -> None:
    tape = CheckpointedTape(Decay(np.array([0.5])), steps=6, memory=Memory(segment=4))
    own = wp.full((4, 1), wp.vec3d(np.nan), dtype=wp.vec3d)
    tape.forward({"x": np.ones((1, 3))}, keep_states={"x": own}, keep_every=2)
    assert np.array_equal(own.numpy()[:, 0, 0], 0.25 ** np.arange(4))
    with pytest.raises(InputError, match="shape"):
        tape.forward({"x": np.ones((1, 3))}, keep_states={"x": own})


def test_arrays_name_what_they_lack() -> None:
    arrays = Arrays("state", {"q": wp.zeros(1), "qd": wp.zeros(1)})
    assert arrays.q is arrays["q"]
    assert list(arrays) == ["q", "qd"]
    with pytest.raises(UnknownNameError, match="no state 'qdd'; did you mean 'qd'"):
        arrays["qdd"]
    with pytest.raises(AttributeError):
        arrays.speed  # noqa: B018


def test_arena_lays_arrays_apart() -> None:
    class Shapes:
        device = wp.get_device("cpu")

        def make_work(self, arena: Arena) -> list[wp.array]:
            return [
                arena.array(5, wp.float64),
                arena.array((2, 3), wp.vec3d, accumulator=True),
                arena.array(7, wp.int32, differentiable=False),
            ]

    program = Shapes()
    size = arenas.measure(program)
    made = list(arenas.Arenas(program.device, size, 3, gradients=True))
    works = [program.make_work(arena) for arena in made]
    spans = sorted((a.ptr, a.ptr + a.capacity) for work in works for a in work)
    assert all(end <= start for (_, end), (start, _) in zip(spans, spans[1:], strict=False))
    assert all(a.ptr % 16 == 0 for work in works for a in work)
    assert (works[1][0].ptr - works[0][0].ptr) % 64 == 0  # slots begin on cache lines
    assert works[0][0].grad.ptr == works[2][0].grad.ptr  # adjoints are shared by all slots
    assert works[0][2].grad is None
    works[1][1].fill_(3.0)
    works[1][0].fill_(4.0)
    made[1].zero_accumulators()
    assert not works[1][1].numpy().any()
    assert (works[1][0].numpy() == 4.0).all()
    works[0][1].grad.fill_(2.0)
    made[2].zero_adjoints()
    assert not works[0][1].grad.numpy().any()
    with pytest.raises(InputError, match="same arrays"):
        made[0].array(5, wp.float64)
