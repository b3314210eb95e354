"""The benchmark's own promises: it alternates, the reference is MuJoCo's step, and a wrong result shows no time."""

import json

import mujoco
import numpy as np
import pytest

from tools.bench import mujoco_side
from tools.bench.cases import CASES, Case
from tools.bench.compare import compare, to_text
from tools.bench.differences import directional_error
from tools.bench.report import Measurement, Result, to_json, to_markdown
from tools.bench.timing import Timing, Workload, measure


def test_workloads_take_turns(monkeypatch):
    """Each round every workload has its turn, in which a short one runs more than once."""
    order = []
    monkeypatch.setattr("tools.bench.timing._runs_in_a_turn", lambda workload: {"a": 1, "b": 2}[workload.label])
    workloads = [Workload(label, lambda label=label: order.append(label), lambda: np.zeros(0)) for label in "ab"]
    timings = measure(workloads, warmups=1, repeats=3)
    assert order == ["a", "b"] + ["a", "b", "b"] * 3
    assert {label: len(t.samples) for label, t in timings.items()} == {"a": 3, "b": 3}


@pytest.mark.parametrize("name", ["humanoid-smooth", "humanoid-ground"])
def test_reference_is_a_loop_of_mj_step(assets_dir, name):
    template = CASES[name]
    case = Case(name, template.model, worlds=2, steps=5, contact=template.contact, settle_steps=template.settle_steps)
    model = mujoco_side.load(case)
    inputs = mujoco_side.make_inputs(case, model)
    workload = mujoco_side.forward(case, model, inputs)
    workload.run()
    final = workload.final_state()

    for world in range(case.worlds):
        data = mujoco.MjData(model)
        data.qpos[:], data.qvel[:] = inputs.q[world], inputs.qd[world]
        for control in inputs.controls[world]:
            data.ctrl[:] = control
            mujoco.mj_step(model, data)
        np.testing.assert_array_equal(final[world], np.concatenate([data.qpos, data.qvel]))
    assert not np.array_equal(final[0], final[1])
    assert (mujoco_side.count_contacts(model, inputs) > 0) == case.contact


@pytest.mark.parametrize("deviation", [1e-3, np.nan])
def test_a_wrong_result_has_no_time(deviation):
    case = Case("sample", "sample.xml", worlds=2, steps=10)
    timing = Timing((4e-4, 2e-4, 6e-4))
    result = Result(case, 0.0, [Measurement("right", timing, 0.0), Measurement("wrong", timing, deviation)])
    assert result.failures == ["wrong"]
    right, wrong = to_markdown([result]).splitlines()[-2:]
    assert "| right | 10.00 | 20.00 | 1.00 |" in right
    assert "wrong result" in wrong
    assert [row["valid"] for row in to_json([result])["cases"][0]["measurements"]] == [True, False]


def test_a_skipped_case_says_why():
    result = Result(Case("sample", "sample.xml", worlds=1, steps=1), skipped="no sample.xml")
    assert "skipped: no sample.xml" in to_markdown([result])


def test_one_thread_is_timed_by_the_processor(monkeypatch):
    """Waiting for others costs nothing on one thread, and counts on several."""
    monkeypatch.setattr("tools.bench.timing._runs_in_a_turn", lambda workload: 1)
    clocks = {"perf_counter": iter([0.0, 5.0] * 2), "process_time": iter([0.0, 2.0] * 2)}
    for name, times in clocks.items():
        monkeypatch.setattr(f"tools.bench.timing.time.{name}", lambda times=times: next(times))
    workloads = [Workload(f"{n}", lambda: None, lambda: np.zeros(0), threads=n) for n in (1, 2)]
    timings = measure(workloads, warmups=0, repeats=1)
    assert timings["1"] == Timing((2.0,), (5.0,), 1)
    assert timings["2"] == Timing((5.0,), (5.0,), 2)


def test_ratios_are_to_the_reference_on_as_many_threads():
    timings = [Timing((2.0, 4.0)), Timing((1.0, 1.0), threads=2), Timing((3.0, 6.0)), Timing((2.0, 2.0), threads=2)]
    labels = ["mujoco forward", "mujoco forward, 2 threads", "warpsim forward", "warpsim forward, 2 threads"]
    measurements = [Measurement(label, timing, 0.0) for label, timing in zip(labels, timings, strict=True)]
    result = Result(Case("sample", "sample.xml", worlds=2, steps=10), 0.0, measurements)
    assert [result.ratio(m) for m in measurements] == [1.0, 1.0, 1.5, 2.0]


def _results(**seconds: tuple[float, ...]) -> dict:
    """A result file of one case: MuJoCo takes a second a round, the machine's speed drifting by half."""
    drift = (1.0, 1.5, 0.8, 1.2, 1.0)
    measurements = [Measurement("mujoco forward", Timing(drift), 0.0)]
    for label, ratios in seconds.items():
        timing = Timing(tuple(r * d for r, d in zip(ratios, drift, strict=True)))
        measurements.append(Measurement(f"warpsim {label}", timing, 0.0))
    return to_json([Result(Case("sample", "sample.xml", worlds=1, steps=10), 0.0, measurements)])


def test_a_comparison_names_what_is_slower_beyond_noise(tmp_path):
    quiet, noisy = (1.0, 1.01, 0.99, 1.0, 1.02), (0.7, 1.4, 1.0, 0.8, 1.3)
    before = _results(steady=quiet, worse=quiet, better=quiet, noisy=noisy, gone=quiet)
    after = _results(
        steady=quiet,
        worse=tuple(1.1 * r for r in quiet),
        better=tuple(0.9 * r for r in quiet),
        noisy=tuple(1.1 * r for r in noisy),
    )
    sides = tmp_path / "before.json", tmp_path / "after.json"
    for side, results in zip(sides, (before, after), strict=True):
        side.write_text(json.dumps(results), encoding="utf-8")
    changes = compare(*sides)
    assert {c.label.split()[1]: c.verdict for c in changes} == {
        "steady": "same",
        "worse": "slower",
        "better": "faster",
        "noisy": "same",
    }
    assert to_text(changes).endswith("slower beyond noise: sample: warpsim worse")


def test_runs_of_one_side_differ_by_more_than_their_rounds(tmp_path):
    """Folders of runs: what moves from process to process is noise, what moves in all of them is not."""
    quiet = (1.0, 1.01, 0.99, 1.0, 1.02)
    levels = {"before": ((1.0, 1.0), (1.2, 1.0), (1.0, 1.0)), "after": ((1.2, 1.1), (1.0, 1.1), (1.2, 1.1))}
    for side, runs in levels.items():
        (tmp_path / side).mkdir()
        for index, (drifting, worse) in enumerate(runs):
            results = _results(drifting=tuple(drifting * r for r in quiet), worse=tuple(worse * r for r in quiet))
            (tmp_path / side / f"{index}.json").write_text(json.dumps(results), encoding="utf-8")
    changes = compare(tmp_path / "before", tmp_path / "after")
    assert {c.label.split()[1]: c.verdict for c in changes} == {"drifting": "same", "worse": "slower"}
    one_run = compare(tmp_path / "before" / "0.json", tmp_path / "after" / "0.json")
    assert [c.verdict for c in one_run] == ["slower", "slower"]


def test_a_gradient_is_compared_with_central_differences():
    x = np.array([0.3, -0.7, 1.1])
    steps = (1e-3, 1e-5)
    right = directional_error(np.cos(x), x, lambda at: float(np.sin(at).sum()), steps=steps, seed=0)
    wrong = directional_error(1.01 * np.cos(x), x, lambda at: float(np.sin(at).sum()), steps=steps, seed=0)
    assert right < 1e-9
    np.testing.assert_allclose(wrong, 0.01 / 1.01, rtol=1e-6)
