"""The errors of float32 that the table shows."""

from __future__ import annotations

import numpy as np

from tools.bench.precision import Error, compared, to_markdown


def test_errors_are_relative():
    double = {"state": np.array([[1.0, -4.0]]), "gradient": np.array([3.0, 4.0]), "steps": 7, "worlds": 2}
    single = {**double, "state": np.array([[1.0, -4.02]]), "gradient": np.array([3.0, 4.05])}
    found = compared("some", single, double)
    assert (found.case, found.steps, found.worlds) == ("some", 7, 2)
    np.testing.assert_allclose([found.state, found.gradient], [0.005, 0.01], rtol=1e-12)
    still = compared("still", {**single, "gradient": np.zeros(0)}, {**double, "gradient": np.zeros(0)})
    text = to_markdown([found, still, Error("gone", 1, 1, problem="no file")])
    assert "| some | 2 | 7 | 5.0e-03 | 1.0e-02 |" in text and "| still | 2 | 7 | 5.0e-03 | – |" in text
    assert "| gone | 1 | 1 | no file | |" in text
