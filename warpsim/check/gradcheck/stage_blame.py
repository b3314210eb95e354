"""Which stage's adjoint is wrong: one step, run stage by stage, each stage's adjoint against differences of that stage.

Every stage is a function from the arrays it reads to the arrays it writes. It is run on a tape of its own, pulled back
from random numbers on what it wrote, and compared with differences of the stage alone, array by array. The solve (mass
matrix, contact solver, their implicit adjoint) is one function, from forces to accelerations; it is to blame only where
the taped stages inside it are right. The derivation of physical from authored parameters is a stage, too. What no
stage explains lies between them: in the tape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import warp as wp

from warpsim.check.gradcheck.deviation import deviation, random_direction
from warpsim.check.gradcheck.directions import Direction
from warpsim.check.gradcheck.losses import Tensors
from warpsim.check.gradcheck.plant import NoTape, Plant
from warpsim.check.gradcheck.probe import Point
from warpsim.check.gradcheck.report import Blame
from warpsim.core.precision import vec6
from warpsim.core.stages import observe
from warpsim.coupling.compiled import SceneDerivation, compile_scene
from warpsim.rigid import query
from warpsim.rigid.model.model import Model
from warpsim.rigid.step import step
from warpsim.rigid.step.program import held_controls
from warpsim.rigid.work.state import (
    RungeKuttaWork,
    Work,
)
from warpsim.scene import Scene
from warpsim.tape.active import recording
from warpsim.tape.arena import Arenas, measure
from warpsim.tape.dtypes import is_real
from warpsim.tape.program import Arrays

SOLVE = "step.record_adjoint"
"""Name of the implicit adjoint of the solve, after the function that records it."""
JOINT = "step.joint_acceleration"
"""Name of the solve for bodies together with matters, and of its adjoint on both sides."""
DERIVE = "model.derive"
_SOLVED = ("x", "v")
_AROUND = ("position", "rotation", "velocity", "size", "place", "place_velocity", "target", "hold")
"""Intermediates of a matter that joins the bodies: its solution, and what of its surroundings the solve reads."""
_WITHIN = "bodies.observation."
"""Intermediates of the stage that shows bodies to matters: about reference points that carry no gradient on purpose."""
BETWEEN = "tape (every stage is right by itself)"

_FORCES = (
    "dynamics.kinematics",
    "dynamics.passive",
    "dynamics.actuation",
    "dynamics.loop_drives",
    "dynamics.implicit.implicit_slopes",
)
"""Stages before the solve."""
_AT_FIXED_ACCELERATION = (
    "dynamics.inverse_dynamics.residual_at_solution",
    "dynamics.inverse_dynamics.residual_at_optimum",
    "dynamics.implicit.implicit_residual",
    "constraint.stage.constraint_forces",
)
"""Stages that hold the acceleration fixed on purpose."""


def blame(
    scene: Scene, device: wp.Device, point: Point, wrong: Sequence[Direction], made: Tensors, max_contacts: int
) -> tuple[Blame, ...]:
    """The stages whose adjoints are wrong, found at the first step of a window that shows any.

    Args:
        scene: With a tight solver tolerance.
        device: Where it runs.
        point: Inputs of the window.
        wrong: Directions in which the whole was wrong.
        made: States of the window, (N + 1, 1, …).
        max_contacts: Places for contacts that these steps need.
    """
    bench = StageBench(scene, device, point, max_contacts)
    for k in sorted({0, point.steps // 2, point.steps - 1}):
        found = bench.check_step({n: t[k, 0].numpy(force=True) for n, t in made.items()}, k)
        if found:
            return found
    if any(d.kind == "parameter" for d in wrong):
        found = bench.check_derivation()
        if found:
            return found
    return (Blame(BETWEEN, tuple({d.input: None for d in wrong}), np.nan, 0),)


class StageBench:
    """One world whose step is taken stage by stage."""

    def __init__(self, scene: Scene, device: wp.Device, point: Point, max_contacts: int) -> None:
        compiled = compile_scene(scene, worlds=1, device=device)
        compiled = replace(compiled, model=compiled.model.with_room(max_contacts))
        self._compiled, self._model = compiled, (model := compiled.model)
        authored = compiled.authored
        # without dry friction its derivative is one-sided, and takes others with it (docs/differentiation.md)
        smooth = [n for n in authored if not n.endswith(".friction_loss") or n in point.parameters]
        compiled.require_gradients(smooth)
        for name, value in point.parameters.items():
            authored[name].assign(value.numpy(force=True)[None])
        self._derivation = SceneDerivation(compiled)
        self._derivation.run()
        self._point = point
        self._plant = Plant(compiled)
        self._arena = Arenas(model.device, measure(self._plant), 1, gradients=True)[0]
        made = self._plant.make_work(self._arena)
        self._work: Work | RungeKuttaWork = made.bodies
        self._coupled = made.coupled
        self._scratch = self._plant.scratch
        self._state, self._next = (_space("state", compiled.state, model) for _ in range(2))
        self._control = _space("control", tuple(compiled.controls.values()), model)
        self._arrays = dict(self._named())
        self._rng = np.random.default_rng(0)
        self._evaluation = 0

    def check_step(self, state: dict[str, np.ndarray], k: int) -> tuple[Blame, ...]:
        """Wrong stages of the k-th step of the window, from the given state."""
        self._load(state, k)
        self._evaluation = 0
        found: dict[str, dict[str, float]] = {}

        def watch(name: str, run: Callable[[], None]) -> None:
            deviations = self._check_stage(name, run)
            found.setdefault(name, {}).update(deviations)

        with observe(watch):
            self._step(NoTape())
        blames = _blames(found, k)
        if not blames:
            self._load(state, k)
            blames = _blames({SOLVE if self._plant.partner is None else JOINT: self._check_solve()}, k)
        return blames

    def check_derivation(self) -> tuple[Blame, ...]:
        """Whether the derivation of physical parameters is wrong."""
        authored, physical = self._compiled.authored, self._compiled.physical
        inputs = {n: a for n, a in authored.items() if a.size and a.grad is not None}
        own = {id(a) for a in authored.values()}
        outputs = {n: a for n, a in physical.items() if a.size and a.grad is not None and id(a) not in own}

        def pull_back() -> None:
            self._derivation.run(record=True)
            for array in inputs.values():
                array.grad.zero_()
            self._seed(weights)
            self._derivation.backward()

        weights = {n: self._rng.normal(size=a.numpy().shape) for n, a in outputs.items()}
        self._arrays.update({f"physical {n}": a for n, a in outputs.items()})
        weights = {f"physical {n}": w for n, w in weights.items()}
        self._arrays.update({f"authored {n}": a for n, a in inputs.items()})
        names = [f"authored {n}" for n in inputs]
        return _blames({DERIVE: self._compare(names, weights, {}, self._derivation.run, pull_back)}, 0)

    def _step(self, tape: Any) -> None:
        self._arena.zero_accumulators()
        self._plant.step(self._state, self._control, self._work, self._coupled, self._next, tape)

    def _check_stage(self, name: str, run: Callable[[], None]) -> dict[str, float]:
        """Runs a stage; deviations of its adjoint by the arrays it reads, where there are any."""
        before = self._values()
        tape = wp.Tape()
        with recording(tape):
            run()
        after = self._values()
        if not tape.launches:
            return {}
        written = [n for n in after if not np.array_equal(before[n], after[n], equal_nan=True)]
        written = [n for n in written if _WITHIN not in n]
        outputs = {n: self._rng.normal(size=after[n].shape) for n in written}
        if name == "dynamics.kinematics":
            return self._check_kinematics(run, before, after)
        fixed = ("qdd",) if name in _AT_FIXED_ACCELERATION else ()
        names = [n for n in self._arrays if n.split(".")[-1] not in fixed]
        restore = {n: before[n] for n in written}
        found = self._compare(names, outputs, restore, run, self._puller(tape, outputs))
        self._assign(after)
        return found

    def _check_kinematics(
        self, run: Callable[[], None], before: dict[str, np.ndarray], after: dict[str, np.ndarray]
    ) -> dict[str, float]:
        """By quantities that do not depend on the trees' reference points, which carry no gradient on purpose."""
        m = self._model
        work, state, prefix = self._evaluations()[self._evaluation]
        self._evaluation += 1
        scalar, vector = m.world.timestep.dtype, m.world.gravity.dtype
        types = {"kinetic": scalar, "potential": scalar, "linear": vector, "angular": vector}
        shown = {n: wp.zeros(1, dtype=t, device=m.device, requires_grad=True) for n, t in types.items()}
        shown["twists"] = wp.zeros((1, m.nv), dtype=vec6, device=m.device, requires_grad=True)

        def show() -> None:
            run()
            momentum = query.momentum(m, state, about="origin", motion=work)
            wp.copy(shown["twists"], query.dof_twists(m, state, (0.1, 0.2, 0.3), motion=work))
            wp.copy(shown["linear"], momentum.linear)
            wp.copy(shown["angular"], momentum.angular)
            wp.copy(shown["kinetic"], query.kinetic_energy(m, state, motion=work))
            wp.copy(shown["potential"], query.potential_energy(m, state, motion=work))

        read = list(self._arrays)
        self._arrays.update({f"shown.{n}": a for n, a in shown.items()})
        direct = [f"{prefix}.{n}" for n in ("link_position", "link_rotation", "inertia")]
        names = [*direct, *(f"shown.{n}" for n in shown)]
        outputs = {n: self._rng.normal(size=self._arrays[n].numpy().shape) for n in names}
        tape = wp.Tape()
        with recording(tape):
            show()
        restore = {n: before[n] for n in direct}
        found = self._compare(read, outputs, restore, show, self._puller(tape, outputs))
        for n in shown:
            del self._arrays[f"shown.{n}"]
        self._assign(after)
        return found

    @property
    def _solved(self) -> list[str]:
        """Solutions of matters, by name."""
        return [n for n in self._arrays if n.startswith("matter.") and n.split(".")[-1] in _SOLVED]

    def _evaluations(self) -> list[tuple[Work, Arrays, str]]:
        """Intermediates, state and name of each evaluation of the dynamics in a step."""
        if isinstance(self._work, Work):
            return [(self._work, self._state, "work")]
        states = [self._state, *self._work.states]
        return [(e, states[k], f"work.evaluations.{k}") for k, e in enumerate(self._work.evaluations)]

    def _puller(self, tape: wp.Tape, outputs: dict[str, np.ndarray]) -> Callable[[], None]:
        """Pulls weights on outputs back through a tape."""

        def pull_back() -> None:
            self._zero_gradients()
            self._seed(outputs)
            tape.backward()

        return pull_back

    def _check_solve(self) -> dict[str, float]:
        """Everything after the forces as one function; the forces' stages are run once and then left out.

        Where bodies are solved for together with matters, those are part of it: what surrounds them in, their solution
        out.
        """
        m, scratch, partner = self._model, self._scratch, self._plant.partner
        work, state, prefix = self._evaluations()[0]

        def solve(tape: wp.Tape | None) -> None:
            with observe(lambda name, run: None if name in _FORCES else run()), recording(tape):
                step.forward(m, state, self._control, work, scratch, tape, partner)

        self._arena.zero_accumulators()
        step.forward(m, state, self._control, work, scratch, None, partner)
        before = self._values()
        tape = wp.Tape()
        solve(tape)
        solved = [f"{prefix}.qdd", *(n for n in self._solved if partner is not None)]
        outputs = {n: self._rng.normal(size=before[n].shape) for n in solved}
        own = {"qdd", "residual", "acceleration", "body_force", "qdd_twist", "twist", "bias"}
        own |= {"shape_position", "shape_rotation"}
        if m.has_constraints and not m.two_stage:
            own.add("dof_integrator")  # the contact solver has no such terms
        read: tuple[str, ...] = ("state.", "control.", "physical.", f"{prefix}.")
        if partner is not None:
            read = (*read, "matter.")
            own |= {n.split(".")[-1] for n in before if n.startswith("matter.") and n.split(".")[-1] not in _AROUND}
        names = [n for n in self._arrays if n.startswith(read)]
        names = [n for n in names if n.split(".")[-1] not in own and ".constraint." not in n]
        return self._compare(names, outputs, before, lambda: solve(None), self._puller(tape, outputs))

    def _compare(
        self,
        names: Sequence[str],
        outputs: dict[str, np.ndarray],
        restore: dict[str, np.ndarray],
        run: Callable[[], None],
        pull_back: Callable[[], None],
    ) -> dict[str, float]:
        """Deviations, above the tolerance, of a function's adjoint by each array it may read."""
        unmoved = {**self._values(), **restore}
        pull_back()
        gradients = {n: self._arrays[n].grad.numpy().copy() for n in names}
        self._assign(unmoved)  # an adjoint must not write values, but the one that is at fault might

        def loss(name: str, value: np.ndarray) -> tuple[float, float]:
            self._assign({**restore, name: value})
            run()
            terms = [w * self._arrays[n].numpy() for n, w in outputs.items()]
            return sum(float(t.sum()) for t in terms), sum(float(np.abs(t).sum()) for t in terms)

        base = loss(names[0], unmoved[names[0]])
        deviations = {}
        for name in names:
            start = unmoved[name]
            direction = random_direction(name, start, self._rng)
            found = deviation(gradients[name], direction, start, base, partial(loss, name))
            self._arrays[name].assign(start)
            if found > 0.0:
                deviations[name] = found
        self._assign(restore)
        run()
        return deviations

    def _load(self, state: dict[str, np.ndarray], k: int) -> None:
        held = {n: np.zeros(a.numpy().shape[1:]) for n, a in self._control.items() if a.size}
        held |= {n: a.numpy()[0] for n, a in held_controls(self._model).items()}
        given = {n: t[k].numpy(force=True) for n, t in self._point.controls.items()}
        for name, array in self._state.items():
            array.assign(state.get(name, np.zeros(array.numpy().shape[1:]))[None])
        for name, array in self._control.items():
            if array.size:
                array.assign(np.ascontiguousarray({**held, **given}[name])[None])

    def _named(self) -> Iterator[tuple[str, wp.array]]:
        """Every array with a gradient that a step may read or write, by name, each once."""
        seen: set[int] = set()
        roots: dict[str, Any] = {"state": self._state, "control": self._control, "next": self._next, "work": self._work}
        if self._coupled is not None:
            roots |= {"bodies": self._coupled.bodies, "matter": self._coupled.matters}
        for name, array in _walk({**roots, "physical": self._compiled.physical}, ""):
            if array.grad is not None and array.size and is_real(array.dtype) and array.ptr not in seen:
                seen.add(array.ptr)
                yield name, array

    def _values(self) -> dict[str, np.ndarray]:
        return {name: array.numpy().copy() for name, array in self._arrays.items()}

    def _assign(self, values: dict[str, np.ndarray]) -> None:
        for name, value in values.items():
            self._arrays[name].assign(value)

    def _zero_gradients(self) -> None:
        for array in self._arrays.values():
            array.grad.zero_()

    def _seed(self, weights: dict[str, np.ndarray]) -> None:
        for name, weight in weights.items():
            self._arrays[name].grad.assign(weight)


def _walk(value: Any, path: str) -> Iterator[tuple[str, wp.array]]:
    if isinstance(value, wp.array):
        yield path, value
        return
    items: list[tuple[str, Any]] = []
    if is_dataclass(value):
        items = [(f.name, getattr(value, f.name)) for f in fields(value)]
    elif hasattr(value, "items"):
        items = list(value.items())
    elif isinstance(value, list):
        items = [(str(i), v) for i, v in enumerate(value)]
    for name, child in items:
        yield from _walk(child, f"{path}.{name}" if path else name)


def _space(kind: str, wanted: Sequence[Any], model: Model) -> Arrays:
    made = {}
    for f in wanted:
        made[f.name] = wp.zeros(f.shape, dtype=f.dtype, device=model.device, requires_grad=f.differentiable)
    return Arrays(kind, made)


def _blames(found: dict[str, dict[str, float]], step_index: int) -> tuple[Blame, ...]:
    blames = []
    for name, deviations in found.items():
        if deviations:
            order = sorted(deviations, key=lambda n: -deviations[n])
            blames.append(Blame(name, tuple(order), deviations[order[0]], step_index))
    return tuple(blames)
