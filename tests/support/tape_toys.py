"""Small programs for the tests of the tape, written with Warp kernels only.

`Chain` is a chain of oscillators that has everything a program may have: parameters per world, `+=` intermediates and
outputs, a solve whose adjoint is a `record_func`, a warm start and an integer counter that are carried along without a
derivative, and a launch that only serves the adjoint.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from warpsim.tape import Arena, Arrays, Field

DT = wp.constant(wp.float64(0.01))
SOLVE_TURNS = wp.constant(15)


@wp.kernel
def _stretch(x: wp.array2d(dtype=wp.float64), d: wp.array2d(dtype=wp.float64)):
    w, i = wp.tid()
    left = wp.float64(0.0)
    if i > 0:
        left = x[w, i - 1]
    d[w, i] = x[w, i] - left


@wp.kernel
def _spring(stiffness: wp.array2d(dtype=wp.float64), d: wp.array2d(dtype=wp.float64), f: wp.array2d(dtype=wp.float64)):
    w = wp.tid()
    for i in range(d.shape[1]):
        pull = stiffness[w, i] * (d[w, i] + d[w, i] * d[w, i] * d[w, i])
        f[w, i] += -pull
        if i > 0:
            f[w, i - 1] += pull


@wp.kernel
def _load(
    damping: wp.array(dtype=wp.float64),
    v: wp.array2d(dtype=wp.float64),
    u: wp.array2d(dtype=wp.float64),
    f: wp.array2d(dtype=wp.float64),
    load: wp.array2d(dtype=wp.float64),
):
    w, i = wp.tid()
    load[w, i] = f[w, i] - damping[w] * v[w, i] + wp.sin(u[w, i])


@wp.kernel(enable_backward=False)
def _solve(load: wp.array2d(dtype=wp.float64), guess: wp.array2d(dtype=wp.float64), a: wp.array2d(dtype=wp.float64)):
    """Solves a + a³/10 = load by Newton from the warm start."""
    w, i = wp.tid()
    z = guess[w, i]
    for _ in range(SOLVE_TURNS):
        z -= (z + wp.float64(0.1) * z * z * z - load[w, i]) / (wp.float64(1.0) + wp.float64(0.3) * z * z)
    a[w, i] = z


@wp.kernel(enable_backward=False)
def _solve_slope(a: wp.array2d(dtype=wp.float64), slope: wp.array2d(dtype=wp.float64)):
    w, i = wp.tid()
    slope[w, i] = wp.float64(1.0) / (wp.float64(1.0) + wp.float64(0.3) * a[w, i] * a[w, i])


@wp.kernel(enable_backward=False)
def _solve_adjoint(
    slope: wp.array2d(dtype=wp.float64), adj_a: wp.array2d(dtype=wp.float64), adj_load: wp.array2d(dtype=wp.float64)
):
    w, i = wp.tid()
    adj_load[w, i] = adj_load[w, i] + slope[w, i] * adj_a[w, i]


@wp.kernel
def _integrate(
    x: wp.array2d(dtype=wp.float64),
    v: wp.array2d(dtype=wp.float64),
    a: wp.array2d(dtype=wp.float64),
    x_next: wp.array2d(dtype=wp.float64),
    v_next: wp.array2d(dtype=wp.float64),
):
    w, i = wp.tid()
    speed = v[w, i] + DT * a[w, i]
    v_next[w, i] = speed
    x_next[w, i] = x[w, i] + DT * speed


@wp.kernel(enable_backward=False)
def _carry(
    a: wp.array2d(dtype=wp.float64),
    turns: wp.array(dtype=wp.int32),
    guess_next: wp.array2d(dtype=wp.float64),
    turns_next: wp.array(dtype=wp.int32),
):
    w = wp.tid()
    for i in range(a.shape[1]):
        guess_next[w, i] = a[w, i]
    turns_next[w] = turns[w] + 1


@wp.kernel
def _energy(v: wp.array2d(dtype=wp.float64), d: wp.array2d(dtype=wp.float64), energy: wp.array(dtype=wp.float64)):
    w = wp.tid()
    for i in range(v.shape[1]):
        energy[w] += wp.float64(0.5) * (v[w, i] * v[w, i] + d[w, i] * d[w, i])


@dataclass
class ChainWork:
    """Intermediates of one step of the chain, all (worlds, links)."""

    d: wp.array
    f: wp.array
    load: wp.array
    a: wp.array
    slope: wp.array


class Chain:
    """A chain of nonlinear oscillators."""

    def __init__(self, worlds: int = 2, links: int = 3, parameters: dict[str, wp.array] | None = None) -> None:
        rng = np.random.default_rng(worlds * 100 + links)
        self.device = wp.get_device("cpu")
        self.worlds, self.links = worlds, links
        full = (worlds, links)
        self.state = (
            Field("x", full, wp.float64),
            Field("v", full, wp.float64),
            Field("guess", full, wp.float64, differentiable=False),
            Field("turns", (worlds,), wp.int32, differentiable=False),
        )
        self.inputs = (Field("u", full, wp.float64),)
        self.outputs = (Field("energy", (worlds,), wp.float64), Field("a", full, wp.float64, differentiable=False))
        self.parameters = parameters or {
            "stiffness": wp.array(rng.uniform(5.0, 30.0, full), dtype=wp.float64, requires_grad=True),
            "damping": wp.array(rng.uniform(0.1, 0.5, worlds), dtype=wp.float64, requires_grad=True),
        }

    def make_work(self, arena: Arena) -> ChainWork:
        full = (self.worlds, self.links)
        return ChainWork(
            d=arena.array(full, wp.float64),
            f=arena.array(full, wp.float64, accumulator=True),
            load=arena.array(full, wp.float64),
            a=arena.array(full, wp.float64),
            slope=arena.array(full, wp.float64, differentiable=False),
        )

    def step(
        self, state: Arrays, inputs: Arrays, work: ChainWork, next_state: Arrays, outputs: Arrays, *, tape: Any
    ) -> None:
        p, full = self.parameters, (self.worlds, self.links)
        wp.launch(_stretch, dim=full, inputs=[state.x], outputs=[work.d])
        wp.launch(_spring, dim=self.worlds, inputs=[p["stiffness"], work.d], outputs=[work.f])
        wp.launch(_load, dim=full, inputs=[p["damping"], state.v, inputs.u, work.f], outputs=[work.load])
        wp.launch(_solve, dim=full, inputs=[work.load, state.guess], outputs=[work.a], record_tape=False)
        if tape is not None:
            wp.launch(_solve_slope, dim=full, inputs=[work.a], outputs=[work.slope], record_tape=False)
            tape.record_func(lambda: self._solve_adjoint(work), arrays=[work.a, work.load])
        wp.launch(_integrate, dim=full, inputs=[state.x, state.v, work.a], outputs=[next_state.x, next_state.v])
        carried = [next_state.guess, next_state.turns]
        wp.launch(_carry, dim=self.worlds, inputs=[work.a, state.turns], outputs=carried, record_tape=False)
        outputs.energy.zero_()
        wp.launch(_energy, dim=self.worlds, inputs=[state.v, work.d], outputs=[outputs.energy])
        wp.copy(outputs.a, work.a) if tape is None else wp.launch(
            _copy, dim=full, inputs=[work.a], outputs=[outputs.a], record_tape=False
        )

    def _solve_adjoint(self, work: ChainWork) -> None:
        wp.launch(
            _solve_adjoint,
            dim=(self.worlds, self.links),
            inputs=[work.slope, work.a.grad],
            outputs=[work.load.grad],
            record_tape=False,
        )

    def split(self, groups: int) -> list[Chain]:
        bounds = np.linspace(0, self.worlds, groups + 1).astype(int)
        return [
            Chain(int(b - a), self.links, {name: p[int(a) : int(b)] for name, p in self.parameters.items()})
            for a, b in zip(bounds, bounds[1:], strict=False)
        ]


@wp.kernel(enable_backward=False)
def _copy(source: wp.array2d(dtype=wp.float64), target: wp.array2d(dtype=wp.float64)):
    w, i = wp.tid()
    target[w, i] = source[w, i]
