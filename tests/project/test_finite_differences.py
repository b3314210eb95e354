"""The shared difference helper against derivatives known in closed form."""

import numpy as np
import pytest

from finite_differences import central_difference, directional_difference, directional_estimate, relative_error


@pytest.mark.parametrize(
    ("f", "derivative", "x"),
    [
        (np.sin, np.cos, 0.7),
        (np.exp, np.exp, 3.0),
        (lambda x: 1.0 / x, lambda x: -1.0 / x**2, 0.3),
        (lambda x: x**7, lambda x: 7.0 * x**6, 20.0),
        (lambda x: np.tanh(1e3 * x), lambda x: 1e3 / np.cosh(1e3 * x) ** 2, 4e-4),  # far steeper than the first steps
        (lambda x: 1e2 + np.sin(x), np.cos, 0.7),  # round-off rules out the last steps
        (lambda x: 3.0 * x + np.maximum(0.0, x - 0.5005) ** 2, lambda x: 3.0, 0.5),  # the first step crosses a kink
    ],
)
def test_scalar_functions(f, derivative, x):
    assert relative_error(central_difference(f, x), derivative(x)) < 1e-9


def test_gradient_has_the_shape_of_x(rng):
    a, x = rng.normal(size=(3, 2)), rng.normal(size=(3, 2))
    gradient = central_difference(lambda y: np.sum(a * y**3), x)
    assert gradient.shape == x.shape
    assert relative_error(gradient, 3.0 * a * x**2) < 1e-10


def test_jacobian_puts_outputs_first(rng):
    a, x = rng.normal(size=(4, 3)), rng.normal(size=3)
    jacobian = central_difference(lambda y: np.sin(a @ y), x)
    assert jacobian.shape == (4, 3)
    assert relative_error(jacobian, np.cos(a @ x)[:, None] * a) < 1e-10


def test_directional_is_linear_in_the_direction(rng):
    x, d = rng.normal(size=5), rng.normal(size=5)
    f = lambda y: np.sum(np.exp(y))  # noqa: E731
    assert relative_error(directional_difference(f, x, d), np.exp(x) @ d) < 1e-10
    assert relative_error(directional_difference(f, x, -3.0 * d), -3.0 * np.exp(x) @ d) < 1e-10


def test_scale_serves_small_entries():
    x = np.array([1e-6, 2e-6])
    assert relative_error(central_difference(lambda y: np.sum(np.log(y)), x, scale=x), 1.0 / x) < 1e-9
    with pytest.raises(ValueError, match="not finite"), np.errstate(invalid="ignore"):
        central_difference(lambda y: np.sum(np.log(y)), x)


def test_error_estimate_tells_a_smooth_function_from_a_noisy_one(rng):
    assert directional_estimate(np.sin, 0.7, 1.0).error < 1e-9
    assert directional_estimate(lambda x: np.sin(x) + 1e-4 * rng.normal(), 0.7, 1.0).error > 1e-3


def test_function_may_work_in_place_and_reuse_its_buffer():
    buffer = np.zeros(2)

    def f(y):
        y *= y
        buffer[:] = y
        return buffer

    assert relative_error(central_difference(f, np.array([1.0, -2.0])), np.diag([2.0, -4.0])) < 1e-9


def test_relative_error_is_normwise_and_fails_on_nan():
    assert relative_error([1.0, 1e-12], [1.0, 0.0]) == pytest.approx(1e-12)
    assert relative_error([0.0], [0.0]) == 0.0
    assert not relative_error([np.nan, 1.0], [0.0, 1.0]) < 1.0
    with pytest.raises(ValueError, match="shapes differ"):
        relative_error([1.0], [[1.0]])


@pytest.mark.parametrize("steps", [(1e-3,), (1e-4, 1e-3), (1e-3, 0.0)])
def test_bad_steps_are_refused(steps):
    with pytest.raises(ValueError, match="steps must be"):
        central_difference(np.sin, 0.0, steps)
