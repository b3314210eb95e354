"""Do Warp's adjoints do what this package relies on? Asked once per process and device, of versions nobody has tried.

Each of the idioms that the kernels of this package are made of is differentiated in a small kernel whose derivative is
known in closed form: a sum in a loop used non-linearly, a pass through a tree, a custom adjoint, an array in a struct,
additions of several threads to one place, an adjoint recorded by hand. The tape is captured and replayed twice, since
adjoints that a replay leaves behind would show in the second one.
"""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import warp as wp

from warpsim.core.errors import CompileError, UntriedWarpWarning
from warpsim.core.warp_internals import TRIED, is_tried

_SIZE = 4
_TOLERANCE = 1e-12


@wp.struct
class _Weights:
    value: wp.array(dtype=wp.float64)


@wp.func
def _sum_of_products(x: wp.array(dtype=wp.float64), weight: wp.array(dtype=wp.float64), count: wp.int32):
    total = wp.float64(0.0)
    for i in range(count):
        total += x[i] * weight[i]
    return total


@wp.func
def _cube(x: wp.float64):
    return x * x * x


@wp.func_grad(_cube)
def _adjoint_cube(x: wp.float64, adj_ret: wp.float64):
    wp.adjoint[x] += wp.float64(5.0) * adj_ret  # not the derivative, which Warp would find by itself


@wp.kernel
def _idioms_kernel(
    # inputs
    x: wp.array(dtype=wp.float64),
    weights: _Weights,
    count: wp.int32,
    # outputs
    passed: wp.array(dtype=wp.float64),
    total: wp.array(dtype=wp.float64),
):
    if wp.tid() == 0:
        for i in range(count):
            if i == 0:
                passed[i] = x[i] * x[i]
            else:
                passed[i] = passed[i - 1] * x[i]
        products = _sum_of_products(x, weights.value, count)
        total[0] = products * products
    else:
        wp.atomic_add(total, 1, _cube(x[wp.tid()]))


@wp.kernel(enable_backward=False)
def _scale_kernel(source: wp.array(dtype=wp.float64), scale: wp.float64, target: wp.array(dtype=wp.float64)):
    target[wp.tid()] = target[wp.tid()] + scale * source[wp.tid()]


def check_warp(device: wp.Device) -> None:
    """Warns of a version of Warp that was not tried, and compares its adjoints with closed forms.

    Raises:
        CompileError: They differ.
    """
    if not is_tried():
        _check_untried(device.alias)


@cache
def _check_untried(alias: str) -> None:
    warnings.warn(
        f"warpsim was tried with Warp {' and '.join(TRIED)}; the internals of Warp {wp.config.version} may be others: "
        "captures are replayed by Warp itself, with the same results and slower",
        UntriedWarpWarning,
        stacklevel=2,
    )
    for name, (found, expected) in _derivatives(wp.get_device(alias)).items():
        if not np.allclose(found, expected, rtol=_TOLERANCE, atol=_TOLERANCE):
            raise CompileError(
                f"Warp {wp.config.version} differentiates {name} as {found}, which is {expected}; gradients would be "
                f'wrong: install a version that was tried, pip install "warp-lang=={TRIED[-1]}.*"'
            )


def _derivatives(device: wp.Device) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """What a captured tape makes of each idiom, replayed twice, and the closed form."""
    values, weight = np.array([0.7, -1.3, 1.9, 0.4]), np.array([0.3, 1.1, -0.6, 2.0])
    x, scaled = (wp.array(values, dtype=wp.float64, device=device, requires_grad=True) for _ in range(2))
    weights = _Weights()
    weights.value = wp.array(weight, dtype=wp.float64, device=device, requires_grad=True)
    passed, total = (wp.zeros(size, dtype=wp.float64, device=device, requires_grad=True) for size in (_SIZE, 2))
    tape = wp.Tape()

    def forward() -> None:
        total.zero_()
        scaled.zero_()
        with tape:
            wp.launch(_scale_kernel, _SIZE, [x, wp.float64(2.0)], [scaled], device=device, record_tape=False)
            tape.record_func(pull_scale, arrays=[x, scaled])
            wp.launch(_idioms_kernel, _SIZE, [scaled, weights, _SIZE], [passed, total], device=device)

    def pull_scale() -> None:
        wp.launch(_scale_kernel, _SIZE, [scaled.grad, wp.float64(2.0)], [x.grad], device=device, record_tape=False)

    def backward() -> None:
        for array in (x, scaled, weights.value):
            array.grad.zero_()
        tape.backward()

    graphs = []
    for work in (forward, backward):
        with wp.ScopedCapture(device=device) as captured:
            work()
        graphs.append(captured.graph)
    for _ in range(2):
        passed.grad.assign(np.eye(_SIZE)[-1])
        total.grad.assign(np.ones(2))
        for graph in graphs:
            wp.capture_launch(graph)
    return {
        "a state": (x.grad.numpy(), 2.0 * _by_state(2.0 * values, weight)),
        "a parameter in a struct": (weights.value.grad.numpy(), 2.0 * (2.0 * values @ weight) * 2.0 * values),
    }


def _by_state(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """d/dx of x₀²x₁x₂x₃ + (x·w)² + Σ custom(x₁…), whose custom derivative is 5."""
    product = x.prod() * x[0]
    by_products = product / x * np.array([2.0, 1.0, 1.0, 1.0])
    return by_products + 2.0 * (x @ weight) * weight + np.array([0.0, 5.0, 5.0, 5.0])
