"""Captured work: the same bits as the launches themselves, replayed by our own list or by Warp's graph."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import warp as wp
from warp._src import context

from warpsim.tape import graph


@wp.struct
class _Pair:
    a: wp.array(dtype=wp.float64)
    scale: wp.float64


@wp.kernel
def _square_kernel(x: wp.array(dtype=wp.float64), pair: _Pair, flag: wp.int8, y: wp.array(dtype=wp.float64)):
    i = wp.tid()
    y[i] = pair.scale * x[i] * x[i] + pair.a[i] + wp.float64(flag)


@pytest.fixture
def cpu() -> wp.Device:
    return wp.get_device("cpu")


@pytest.fixture
def work(cpu):
    """Arrays, the launches over them, and the tape that recorded the taped one."""

    class Work:
        def __init__(self) -> None:
            values = np.linspace(-1.0, 2.0, 7)
            self.x = wp.array(values, dtype=wp.float64, device=cpu, requires_grad=True)
            self.y = wp.zeros(7, dtype=wp.float64, device=cpu, requires_grad=True)
            self.z = wp.array(values, dtype=wp.float64, device=cpu)
            self.pair = _Pair()
            self.pair.a = wp.array(3.0 * values, dtype=wp.float64, device=cpu, requires_grad=True)
            self.pair.scale = 0.7
            self.tape = wp.Tape()

        def forward(self) -> None:
            self.tape = wp.Tape()
            with self.tape:
                wp.launch(_square_kernel, dim=7, inputs=[self.x, self.pair, 2], outputs=[self.y], device=cpu)
            wp.copy(self.z, self.y, count=5)

        def backward(self) -> None:
            self.x.grad.zero_()
            self.tape.backward()

        def results(self) -> list[np.ndarray]:
            return [a.numpy().copy() for a in (self.y, self.z, self.x.grad, self.pair.a.grad)]

    return Work()


def _poison(work) -> None:
    for array in (work.y, work.z, work.x.grad):
        array.fill_(np.nan)
    work.pair.a.grad.zero_()
    work.y.grad.fill_(1.5)


def test_replay_equals_the_launches(cpu, work):
    """Forward, adjoint, a copy and a clear, several times over, with other inputs in between."""
    replays = [graph.capture(cpu, work.forward), graph.capture(cpu, work.backward)]
    for shift in (0.0, 0.3, -2.0):
        work.x.assign(np.linspace(-1.0, 2.0, 7) + shift)
        _poison(work)
        work.forward()
        work.backward()
        expected = work.results()
        _poison(work)
        for replay in replays:
            replay()
        for value, truth in zip(work.results(), expected, strict=True):
            np.testing.assert_array_equal(value, truth)
    np.testing.assert_allclose(work.results()[2], 1.5 * 2 * 0.7 * work.x.numpy(), rtol=1e-14)


def test_capture_runs_nothing(cpu, work):
    """Recording leaves every array as it was."""
    _poison(work)
    before = work.results()
    graph.capture(cpu, work.forward)
    for value, truth in zip(work.results(), before, strict=True):
        np.testing.assert_array_equal(value, truth)


def test_our_list_is_what_replays(cpu, work, monkeypatch):
    """Plain launches, copies and clears do not need Warp's replay: it is Warp's internals that would have changed."""
    monkeypatch.setattr(wp, "capture_launch", lambda *_: pytest.fail("fell back to Warp's replay"))
    replays = [graph.capture(cpu, work.forward), graph.capture(cpu, work.backward)]
    for replay in replays:
        replay()


def test_other_operations_fall_back_to_warp(cpu):
    """A scan is none of the calls the list knows; it must not be lost."""
    source = wp.array([1, 2, 3, 4], dtype=wp.int32, device=cpu)
    sums = wp.full(4, -1, dtype=wp.int32, device=cpu)

    def work() -> None:
        sums.zero_()
        wp.utils.array_scan(source, sums, inclusive=True)

    replay = graph.capture(cpu, work)
    np.testing.assert_array_equal(sums.numpy(), -1)
    replay()
    np.testing.assert_array_equal(sums.numpy(), [1, 3, 6, 10])


def test_empty_work(cpu):
    """Nothing captured is nothing replayed."""
    graph.capture(cpu, lambda: None)()


def test_warp_is_left_as_it_was(cpu, work):
    """Also when the work fails half-way."""
    names = (cpu.memset, context.runtime.core.wp_memcpy_h2h)

    def broken() -> None:
        work.forward()
        raise ValueError("half-way")

    with pytest.raises(ValueError, match="half-way"):
        graph.capture(cpu, broken)
    graph.capture(cpu, work.forward)
    assert (cpu.memset, context.runtime.core.wp_memcpy_h2h) == names
    assert context.runtime._apic_capture is None


def test_memory_outlives_its_names(cpu):
    """A replay keeps the arrays its launches point to."""
    x = wp.full(1000, 2.0, dtype=wp.float64, device=cpu)
    y = wp.zeros(1000, dtype=wp.float64, device=cpu)
    pair = _Pair()
    pair.a, pair.scale = wp.full(1000, 1.0, dtype=wp.float64, device=cpu), 1.0

    def work(x=x, pair=pair) -> None:
        wp.launch(_square_kernel, dim=1000, inputs=[x[:], pair, 0], outputs=[y], device=cpu)

    replay = graph.capture(cpu, work)
    del x, pair, work
    gc.collect()
    trash = [wp.full(1000, np.nan, dtype=wp.float64, device=cpu) for _ in range(20)]
    replay()
    np.testing.assert_array_equal(y.numpy(), 5.0)
    assert len(trash) == 20


class _Slots:
    """Five slots, each of which sets y[k] = 0.7 x[k]² + a through intermediates in a place of its choice."""

    count = 5
    width = 7

    def __init__(self, device: wp.Device, place) -> None:
        self.device, self.place = device, place
        rng = np.random.default_rng(3)
        self.x = wp.array(rng.normal(size=(self.count, 7)), dtype=wp.float64, device=device)
        self.y = wp.zeros((self.count, 7), dtype=wp.float64, device=device)
        self.work = wp.zeros((self.count, 7), dtype=wp.float64, device=device)
        self.pair = _Pair()
        self.pair.a, self.pair.scale = wp.array(rng.normal(size=7), dtype=wp.float64, device=device), 0.7

    def step(self, slot: int) -> None:
        work = self.work[self.place(slot)]
        work.zero_()
        inputs = [self.x[slot], self.pair, 0]
        wp.launch(_square_kernel, dim=self.width, inputs=inputs, outputs=[work], device=self.device)
        wp.copy(self.y[slot], work)

    def expected(self, slots: range) -> np.ndarray:
        values = np.full((self.count, 7), np.nan)
        for slot in slots:
            values[slot] = 0.7 * self.x.numpy()[slot] ** 2 + self.pair.a.numpy()
        return values


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("alike", [True, False])
def test_any_run_of_slots(cpu, order, alike):
    """Slots that are alike are made from three of them; others, here two places in turn, are captured each."""
    slots = _Slots(cpu, (lambda slot: slot) if alike else (lambda slot: slot % 2))
    steps: list[int] = []

    def step(slot: int) -> None:
        steps.append(slot)
        slots.step(slot)

    (found,) = graph.capture_slots(cpu, {step: range(_Slots.count)[::order]}, lengths=[_Slots.count, 3])
    assert sorted(set(steps)) == [0, 1, 4]
    for first in range(_Slots.count):
        for count in range(1, _Slots.count - first + 1):
            slots.y.fill_(np.nan)
            slots.work.fill_(np.nan)
            found.prepare(first, count)
            found.run(first, count)
            np.testing.assert_allclose(slots.y.numpy(), slots.expected(range(first, first + count)), rtol=1e-14)
    assert (len(set(steps)) == 3) == alike


@pytest.mark.parametrize("difference", ["", "another kernel size", "other slots", "no table"])
def test_slots_like_those_of_another_group(cpu, difference):
    """One slot is enough where the distances are known; what is not alike after all is captured as if alone."""
    known = _Slots(cpu, (lambda slot: slot) if difference != "no table" else (lambda slot: slot % 2))
    other = _Slots(cpu, lambda slot: slot)
    other.x.assign(2.0 * other.x.numpy())
    if difference == "another kernel size":
        other.width = 6
    range_known = range(4 if difference == "other slots" else _Slots.count)
    like = graph.capture_slots(cpu, {known.step: range_known}, lengths=[])
    steps: list[int] = []

    def step(slot: int) -> None:
        steps.append(slot)
        other.step(slot)

    (found,) = graph.capture_slots(cpu, {step: range(_Slots.count)}, lengths=[], like=like)
    assert set(steps) == ({0} if not difference else {0, 1, 4})
    for slots in (other, known):
        slots.y.fill_(np.nan)
    found.prepare(0, _Slots.count)
    found.run(0, _Slots.count)
    expected = other.expected(range(_Slots.count))
    found_values = other.y.numpy()[:, : other.width]
    np.testing.assert_allclose(found_values, expected[:, : other.width], rtol=1e-14, atol=1e-15)
    assert np.isnan(known.y.numpy()).all()


def test_slots_keep_their_order(cpu):
    """A chain through the slots comes out right only if they run in the order asked for."""
    y = wp.zeros((6, 7), dtype=wp.float64, device=cpu)
    pair = _Pair()
    pair.a, pair.scale = wp.full(7, 0.25, dtype=wp.float64, device=cpu), 0.5

    def up(slot: int) -> None:
        wp.launch(_square_kernel, dim=7, inputs=[y[slot], pair, 1], outputs=[y[slot + 1]], device=cpu)

    def down(slot: int) -> None:
        wp.launch(_square_kernel, dim=7, inputs=[y[slot + 1], pair, 1], outputs=[y[slot]], device=cpu)

    graphs = graph.capture_slots(cpu, {up: range(5), down: range(5)[::-1]}, lengths=[5])
    eager = graph.eager_slots({up: range(5), down: range(5)[::-1]})
    for start, found, truth in zip((0, 5), graphs, eager, strict=True):
        results = []
        for replay in (found, truth):
            y.fill_(np.nan)
            y[start].fill_(0.1)
            replay.prepare(0, 5)
            replay.run(0, 5)
            results.append(y.numpy().copy())
        np.testing.assert_array_equal(results[0], results[1])
        assert np.isfinite(results[0]).all()
        chain = [0.1]
        for _ in range(5):
            chain.append(0.5 * chain[-1] ** 2 + 1.25)
        np.testing.assert_allclose(results[0][:, 0], chain if start == 0 else chain[::-1], rtol=1e-14)
