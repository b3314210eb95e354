"""Under every schedule, storage, segment length and thread count the gradient is that of one long tape, bit for bit.

The reference is Warp's own tape over all steps, eager, with separate arrays for each step; that in turn is checked
against central differences.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import warp as wp

from tape_toys import Chain
from warpsim.core.errors import InputError
from warpsim.tape import (
    AllStarts,
    Arena,
    Arrays,
    CheckpointedTape,
    EveryStep,
    FullTape,
    KnotInputs,
    Memory,
    Resumable,
    Revolve,
    RunningCost,
    Windows,
    arena,
    final_cost,
)
from warpsim.tape import threads as tape_threads
from warpsim.tape.arena import ArenaSize

WORLDS, LINKS = 3, 3


def case(steps: int, worlds: int = WORLDS, seed: int = 0) -> dict[str, Any]:
    """Random initial state, inputs and seeds at every step."""
    rng = np.random.default_rng(seed)
    full = (worlds, LINKS)
    return {
        "initial": {
            "x": 0.5 * rng.normal(size=full),
            "v": 0.5 * rng.normal(size=full),
            "guess": np.zeros(full),
            "turns": np.zeros(worlds, dtype=np.int32),
        },
        "inputs": {"u": rng.normal(size=(steps, *full))},
        "state_seeds": {"x": rng.normal(size=(steps + 1, *full)), "v": rng.normal(size=(steps + 1, *full))},
        "output_seeds": {"energy": rng.normal(size=(steps, worlds))},
    }


def reference(program: Chain, data: dict[str, Any]) -> dict[str, np.ndarray]:
    """One `wp.Tape` over all steps."""
    steps = len(data["inputs"]["u"])

    def arrays(fields: Any, values: Any = None) -> Arrays:
        found = {}
        for f in fields:
            value = np.full(f.shape, np.nan) if values is None and f.dtype is wp.float64 else None
            value = values[f.name] if values is not None else np.zeros(f.shape) if value is None else value
            found[f.name] = wp.array(value, dtype=f.dtype, requires_grad=f.differentiable)
        return Arrays("test", found)

    states = [arrays(program.state, data["initial"])] + [arrays(program.state) for _ in range(steps)]
    inputs = [arrays(program.inputs, {"u": data["inputs"]["u"][i]}) for i in range(steps)]
    outputs = [arrays(program.outputs) for _ in range(steps)]
    work = [program.make_work(Arena(program.device, ArenaSize(), None, None)) for _ in range(steps)]
    for parameter in program.parameters.values():
        parameter.grad.zero_()
    tape = wp.Tape()
    with tape:
        for i in range(steps):
            program.step(states[i], inputs[i], work[i], states[i + 1], outputs[i], tape=tape)
    for name, seed in data["state_seeds"].items():
        for i in range(steps + 1):
            states[i][name].grad.assign(seed[i])
    for i in range(steps):
        outputs[i].energy.grad.assign(data["output_seeds"]["energy"][i])
    tape.backward()
    return {
        "x": np.array([s.x.numpy() for s in states]),
        "turns": np.array([s.turns.numpy() for s in states]),
        "energy": np.array([o.energy.numpy() for o in outputs]),
        "d initial x": states[0].x.grad.numpy(),
        "d initial v": states[0].v.grad.numpy(),
        "d u": np.array([u.u.grad.numpy() for u in inputs]),
        **{f"d {name}": p.grad.numpy().copy() for name, p in program.parameters.items()},
    }


def gradient(program: Any, data: dict[str, Any], tape: CheckpointedTape, **options: Any) -> dict[str, np.ndarray]:
    """The same through the checkpointed tape."""
    run = tape.forward(data["initial"], data["inputs"], keep_states=["x", "turns"], keep_outputs=["energy"])
    seeds = {"state_seeds": data["state_seeds"], "output_seeds": data["output_seeds"]}
    back = tape.backward(run, **seeds, **options)
    return {
        "x": run.states.x.numpy(),
        "turns": run.states.turns.numpy(),
        "energy": run.outputs.energy.numpy(),
        "d initial x": back.initial_state.x.numpy(),
        "d initial v": back.initial_state.v.numpy(),
        "d u": back.inputs.u.numpy(),
        **{f"d {name}": p.grad.numpy().copy() for name, p in program.parameters.items()},
    }


def assert_same_bits(expected: dict[str, np.ndarray], found: dict[str, np.ndarray]) -> None:
    for name, value in expected.items():
        assert np.isfinite(value).all()
        assert np.array_equal(value, found[name]), f"{name}: largest difference {np.abs(value - found[name]).max()}"


STEPS = 37
OPTIONS = [
    {"memory": Memory(schedule=FullTape())},
    {"memory": Memory(schedule=FullTape()), "capture": False},
    {"memory": Memory(segment=1)},
    {"memory": Memory(segment=1, schedule=Revolve(1))},
    {"memory": Memory(segment=1, schedule=Revolve(4))},
    {"memory": Memory(segment=5)},
    {"memory": Memory(segment=5, schedule=Revolve(3)), "capture": False},
    {"memory": Memory(segment=8, schedule=Revolve(2))},
    {"memory": Memory(segment=37)},
    {"memory": Memory(segment=1000)},
    {"memory": Memory(segment=6, storage="host")},
    {"memory": Memory(segment=6, schedule=Revolve(3), storage="disk")},
    {"memory": Memory(segment=7), "threads": 2},
    {"memory": Memory(segment=7, schedule=Revolve(2)), "threads": 2, "groups": 3},
    {"memory": Memory(segment=7, storage="disk"), "threads": 3},
    {},
]


@pytest.fixture(scope="module")
def expected() -> tuple[Chain, dict[str, Any], dict[str, np.ndarray]]:
    program, data = Chain(WORLDS, LINKS), case(STEPS)
    return program, data, reference(program, data)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_equals_one_long_tape(options: dict[str, Any], expected: Any) -> None:
    program, data, truth = expected
    tape = CheckpointedTape(program, steps=STEPS, **options)
    assert_same_bits(truth, gradient(program, data, tape))
    assert_same_bits(truth, gradient(program, data, tape))  # slots, graphs and checkpoints used again


@pytest.mark.parametrize("threads", [1, 2])
def test_groups_that_fit_the_cache(threads: int, expected: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """By default worlds are swept in groups as soon as their intermediates exceed what a group may have."""
    program, data, truth = expected
    monkeypatch.setattr(tape_threads, "GROUP_BYTES", arena.measure(program).values // 3)
    tape = CheckpointedTape(program, steps=STEPS, threads=threads)
    assert len(tape._sweeps) == WORLDS
    assert_same_bits(truth, gradient(program, data, tape))


def test_worlds_stay_together_where_they_must(expected: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that cannot be divided is one group, unless groups or threads were asked for."""
    program, _, _ = expected

    def refuse(groups: int) -> list[Any]:
        raise InputError("these worlds belong together")

    monkeypatch.setattr(tape_threads, "GROUP_BYTES", 1)
    monkeypatch.setattr(program, "split", refuse)
    assert len(CheckpointedTape(program, steps=STEPS)._sweeps) == 1
    for options in ({"threads": 2}, {"groups": 2}):
        with pytest.raises(InputError, match="belong together"):
            CheckpointedTape(program, steps=STEPS, **options)


def test_resumable_storage(expected: Any, tmp_path: Any) -> None:
    program, data, truth = expected
    tape = CheckpointedTape(program, steps=STEPS, memory=Memory(segment=6, storage=Resumable(tmp_path)), threads=2)
    assert_same_bits(truth, gradient(program, data, tape))
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("seed", range(6))
def test_random_lengths_and_budgets(seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    steps = int(rng.integers(1, 60))
    program, data = Chain(WORLDS, LINKS), case(steps, seed=seed)
    truth = reference(program, data)
    roomy = CheckpointedTape(program, steps=steps).plan.bytes
    least = CheckpointedTape(program, steps=steps, memory=Memory(segment=1, schedule=Revolve(1))).plan.bytes
    for _ in range(3):
        budget = int(rng.integers(least, max(roomy, least) + 1))
        tape = CheckpointedTape(program, steps=steps, memory=budget)
        assert tape.plan.bytes <= budget
        assert_same_bits(truth, gradient(program, data, tape))
        slots, kept = int(rng.integers(1, steps + 5)), int(rng.integers(1, steps + 1))
        tape = CheckpointedTape(program, steps=steps, memory=Memory(segment=slots, schedule=Revolve(kept)))
        assert_same_bits(truth, gradient(program, data, tape))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(60))
def test_random_lengths_and_budgets_long(seed: int) -> None:
    test_random_lengths_and_budgets(1000 + seed)


def test_matches_central_differences() -> None:
    steps = 25
    program, data = Chain(WORLDS, LINKS), case(steps)
    truth = gradient(program, data, CheckpointedTape(program, steps=steps, memory=Memory(segment=4)))
    tape = CheckpointedTape(program, steps=steps, memory=Memory(segment=9))

    def objective() -> float:
        run = tape.forward(
            data["initial"], data["inputs"], keep_states=True, keep_outputs=["energy"], differentiate=False
        )
        run.release()
        total = sum((run.states[n].numpy() * seed).sum() for n, seed in data["state_seeds"].items())
        return total + (run.outputs.energy.numpy() * data["output_seeds"]["energy"]).sum()

    stiffness, damping = (program.parameters[name].numpy() for name in ("stiffness", "damping"))
    places = [
        (data["initial"]["x"], (1, 2), "d initial x"),
        (data["initial"]["v"], (2, 0), "d initial v"),
        (data["inputs"]["u"], (7, 1, 1), "d u"),
        (stiffness, (0, 1), "d stiffness"),
        (damping, (2,), "d damping"),
    ]
    for array, index, name in places:
        value, errors = array[index], []
        for h in (1e-3, 3e-4, 1e-4, 3e-5):
            array[index] = value + h
            above = objective()
            array[index] = value - h
            below = objective()
            array[index] = value
            errors.append(abs((above - below) / (2 * h) - truth[name][index]) / abs(truth[name][index]))
        assert min(errors) < 1e-7, (name, errors)


def test_a_hundred_thousand_steps_match_central_differences() -> None:
    steps, every = 100_000, 2_000
    program = Chain(1, 2)
    values = 0.5 * np.random.default_rng(8).normal(size=(KnotInputs.count(steps, every), 1, 2))
    knots = KnotInputs("u", wp.array(values, dtype=wp.float64), every)
    tape = CheckpointedTape(program, steps=steps, memory="8MB")
    zero = np.zeros((1, 2))
    initial = {"x": zero + 0.1, "v": zero, "guess": zero, "turns": np.zeros(1, dtype=np.int32)}
    run = tape.forward(initial, knots)
    tape.backward(run, output_seeds={"energy": EveryStep(np.ones(1))})
    stiffness, damping = program.parameters["stiffness"], program.parameters["damping"]
    places = [
        (stiffness.numpy(), (0, 1), stiffness.grad.numpy()[0, 1]),
        (damping.numpy(), (0,), damping.grad.numpy()[0]),
        (knots.knots.numpy(), (20, 0, 1), knots.gradient.numpy()[20, 0, 1]),
    ]
    for array, index, slope in places:
        value, errors = array[index], []
        for h in (1e-3, 1e-4):
            ends = []
            for sign in (1.0, -1.0):
                array[index] = value + sign * h
                with tape.forward(initial, knots, keep_outputs=["energy"], differentiate=False) as run:
                    ends.append(run.outputs.energy.numpy().sum())
            array[index] = value
            errors.append(abs((ends[0] - ends[1]) / (2 * h) - slope) / abs(slope))
        assert min(errors) < 1e-6, errors


def test_sparse_and_constant_seeds_equal_dense() -> None:
    steps = 23
    program, data = Chain(WORLDS, LINKS), case(steps)
    tape = CheckpointedTape(program, steps=steps, memory=Memory(segment=4))
    x_seed, ones = np.zeros((steps + 1, WORLDS, LINKS)), np.ones((steps, WORLDS))
    x_seed[0], x_seed[8], x_seed[11], x_seed[steps] = 1.0, 2.0, 3.0, 4.0
    data["state_seeds"], data["output_seeds"] = {"x": x_seed}, {"energy": ones}
    dense = gradient(program, data, tape)
    data["state_seeds"] = {"x": {i: x_seed[i] for i in (11, 0, 8)} | {-1: x_seed[steps]}}
    data["output_seeds"] = {"energy": EveryStep(np.ones(WORLDS))}
    assert_same_bits(dense, gradient(program, data, tape))


def test_knots_equal_the_array_they_stand_for() -> None:
    steps, every = 31, 6
    program, data = Chain(WORLDS, LINKS), case(steps)
    count = KnotInputs.count(steps, every)
    values = np.random.default_rng(5).normal(size=(count, WORLDS, LINKS))
    weights = np.zeros((steps, count))
    for i in range(steps):
        weights[i, i // every] += 1.0 - (i % every) / every
        weights[i, i // every + 1] += (i % every) / every
    data["inputs"] = {"u": np.einsum("ik,kwl->iwl", weights, values)}
    truth = np.einsum("ik,iwl->kwl", weights, reference(program, data)["d u"])
    found = []
    for options in (
        {"memory": Memory(segment=5)},
        {"memory": Memory(segment=1)},
        {"memory": Memory(segment=13, schedule=Revolve(2))},
        {"threads": 2},
    ):
        tape = CheckpointedTape(program, steps=steps, **options)
        knots = KnotInputs("u", wp.array(values, dtype=wp.float64), every)
        run = tape.forward(data["initial"], knots)
        tape.backward(run, state_seeds=data["state_seeds"], output_seeds=data["output_seeds"])
        found.append(knots.gradient.numpy())
    np.testing.assert_allclose(found[0], truth, rtol=1e-11, atol=1e-11)
    for other in found[1:]:
        assert np.array_equal(found[0], other)


def test_held_knots_and_left_out_inputs() -> None:
    steps, every = 20, 7
    program, data = Chain(WORLDS, LINKS), case(steps)
    values = np.random.default_rng(6).normal(size=(KnotInputs.count(steps, every, hold=True), WORLDS, LINKS))
    tape = CheckpointedTape(program, steps=steps, memory=Memory(segment=6))
    knots = KnotInputs("u", wp.array(values, dtype=wp.float64), every, hold=True)
    tape.backward(tape.forward(data["initial"], knots), **{k: data[k] for k in ("state_seeds", "output_seeds")})
    data["inputs"] = {"u": np.repeat(values, every, axis=0)[:steps]}
    truth = reference(program, data)
    summed = np.add.reduceat(truth["d u"], np.arange(0, steps, every), axis=0)
    np.testing.assert_allclose(knots.gradient.numpy(), summed, rtol=1e-12)
    without = tape.forward(data["initial"], keep_states=["x"])  # the slots still hold the knots' values
    data["inputs"] = {"u": np.zeros((steps, WORLDS, LINKS))}
    assert np.array_equal(without.states.x.numpy(), reference(program, data)["x"])


def test_step_by_step_with_inputs_written_late() -> None:
    steps = 17
    program, data = Chain(WORLDS, LINKS), case(steps)
    truth = reference(program, data)
    late = {"u": np.full((steps, WORLDS, LINKS), np.nan)}
    tape = CheckpointedTape(program, steps=steps, memory=Memory(segment=5))
    other = tape.start(data["initial"], {"u": data["inputs"]["u"]})
    run = tape.start(data["initial"], late)
    for i in range(steps):
        late["u"][i] = data["inputs"]["u"][i]
        run.advance(1)
        if i % 4 == 0:
            other.advance(2 if i else 1)  # two runs share the slots
        np.testing.assert_array_equal(run.state()["x"], truth["x"][i + 1])
    back = tape.backward(run, state_seeds=data["state_seeds"], output_seeds=data["output_seeds"])
    assert np.array_equal(back.inputs.u.numpy(), truth["d u"])


def test_several_runs_share_the_slots() -> None:
    steps = 21
    program = Chain(WORLDS, LINKS)
    cases = [case(steps, seed=s) for s in range(3)]
    truths = [reference(program, data) for data in cases]
    for schedule in (AllStarts(), Revolve(2), FullTape()):
        tape = CheckpointedTape(program, steps=steps, memory=Memory(segment=6, schedule=schedule))
        runs = [tape.forward(data["initial"], data["inputs"]) for data in cases]
        for i in (1, 2, 0):
            seeds = {k: cases[i][k] for k in ("state_seeds", "output_seeds")}
            back = tape.backward(runs[i], retain=True, **seeds)
            assert np.array_equal(back.inputs.u.numpy(), truths[i]["d u"])
            again = tape.backward(runs[i], **seeds)
            assert np.array_equal(again.initial_state.x.numpy(), truths[i]["d initial x"])
            assert np.array_equal(program.parameters["damping"].grad.numpy(), truths[i]["d damping"])


def test_kept_rows() -> None:
    steps = 29
    program, data = Chain(WORLDS, LINKS), case(steps)
    truth = reference(program, data)
    for every, slots in ((1, 4), (3, 4), (5, 3), (7, 29), (40, 8)):
        tape = CheckpointedTape(program, steps=steps, memory=Memory(segment=slots))
        run = tape.forward(data["initial"], data["inputs"], keep_states=True, keep_outputs=["energy"], keep_every=every)
        assert np.array_equal(run.states.x.numpy(), truth["x"][::every])
        assert np.array_equal(run.outputs.energy.numpy(), truth["energy"][every - 1 :: every])


def test_windows_cut_the_adjoint() -> None:
    """Each window is differentiated as a rollout of its own, whose last state has the boundary's seed."""
    steps, window = 23, 9
    program, data = Chain(WORLDS, LINKS), case(steps)
    truth = reference(program, data)
    expected: dict[str, Any] = {"d u": np.zeros_like(truth["d u"]), "d damping": 0.0}
    for first in range(0, steps, window):
        last = min(first + window, steps)
        part = {
            "initial": {"x": truth["x"][first], "turns": truth["turns"][first]},
            "inputs": {"u": data["inputs"]["u"][first:last]},
            "state_seeds": {name: seed[first : last + 1] for name, seed in data["state_seeds"].items()},
            "output_seeds": {"energy": data["output_seeds"]["energy"][first:last]},
        }
        lead = CheckpointedTape(program, steps=max(first, 1), memory=Memory(segment=50))
        part["initial"] = data["initial"]
        if first:
            part["initial"] = lead.forward(data["initial"], {"u": data["inputs"]["u"][:first]}).state()
        alone = reference(program, part)
        expected["d u"][first:last] = alone["d u"]
        expected["d damping"] = expected["d damping"] + alone["d damping"]
        if first == 0:
            expected["d initial x"] = alone["d initial x"]
    for slots in (4, 9, 50):
        found = gradient(
            program,
            data,
            CheckpointedTape(program, steps=steps, memory=Memory(segment=slots, schedule=Windows(window))),
        )
        assert np.array_equal(found["d u"], expected["d u"])
        assert np.array_equal(found["d initial x"], expected["d initial x"])
        np.testing.assert_allclose(found["d damping"], expected["d damping"], rtol=1e-12)


@wp.kernel
def _distance(target: wp.array2d(dtype=wp.float64), x: wp.array2d(dtype=wp.float64), cost: wp.array(dtype=wp.float64)):
    w = wp.tid()
    for i in range(x.shape[1]):
        cost[w] += (x[w, i] - target[w, i]) * (x[w, i] - target[w, i])


def test_running_and_final_cost_with_their_own_parameters() -> None:
    steps = 19
    inner, data = Chain(WORLDS, LINKS), case(steps)
    target = wp.array(np.full((WORLDS, LINKS), 0.2), dtype=wp.float64, requires_grad=True)
    goal = wp.array(np.full((WORLDS, LINKS), -0.1), dtype=wp.float64, requires_grad=True)

    def running(p: Arrays, state: Arrays, inputs: Arrays, next_state: Arrays, outputs: Arrays, cost: wp.array) -> None:
        wp.launch(_distance, dim=cost.shape[0], inputs=[p.target, next_state.x], outputs=[cost])

    def final(p: Arrays, state: Arrays, cost: wp.array) -> None:
        wp.launch(_distance, dim=cost.shape[0], inputs=[p.goal, state.x], outputs=[cost])

    program = RunningCost(inner, running, parameters={"target": target})
    results = []
    for options in (
        {"memory": Memory(segment=4)},
        {"memory": Memory(segment=4), "threads": 2},
        {"memory": Memory(schedule=FullTape())},
    ):
        tape = CheckpointedTape(program, steps=steps, **options)
        run = tape.forward(data["initial"], data["inputs"], keep_outputs=["cost"], keep_states=["x"])
        goal.grad.zero_()
        last, seeds = final_cost(program, run.state(), final, parameters={"goal": goal})
        x = run.states.x.numpy()
        np.testing.assert_allclose(run.outputs.cost.numpy(), ((x[1:] - 0.2) ** 2).sum(axis=2), rtol=1e-14)
        np.testing.assert_allclose(last, ((x[-1] + 0.1) ** 2).sum(axis=1), rtol=1e-14)
        np.testing.assert_allclose(goal.grad.numpy(), -2 * (x[-1] + 0.1), rtol=1e-14)
        back = tape.backward(
            run,
            state_seeds={name: {-1: seed} for name, seed in seeds.items()},
            output_seeds={"cost": EveryStep(np.ones(WORLDS))},
        )
        np.testing.assert_allclose(target.grad.numpy(), -2 * (x[1:] - 0.2).sum(axis=0), rtol=1e-11)
        results.append(back.inputs.u.numpy())
    plain = {"x": np.concatenate([np.zeros_like(x[:1]), 2 * (x[1:] - 0.2)])}
    plain["x"][-1] += 2 * (x[-1] + 0.1)
    data["state_seeds"] = {"x": plain["x"], "v": np.zeros_like(plain["x"])}
    data["output_seeds"] = {"energy": np.zeros((steps, WORLDS))}
    np.testing.assert_allclose(results[0], reference(inner, data)["d u"], rtol=1e-10, atol=1e-14)
    assert all(np.array_equal(results[0], other) for other in results[1:])
