"""The benchmark's own promises: it alternates, the reference is MuJoCo's step, and a wrong result shows no time."""

import mujoco
import numpy as np
import pytest

from tools.bench import mujoco_side
from tools.bench.cases import CASES, Case
from tools.bench.report import Measurement, Result, to_json, to_markdown
from tools.bench.timing import Timing, Workload, measure


def test_workloads_take_turns():
    order = []
    workloads = [Workload(label, lambda label=label: order.append(label), lambda: np.zeros(0)) for label in "ab"]
    timings = measure(workloads, warmups=1, repeats=3)
    assert order == ["a", "b"] * 4
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
