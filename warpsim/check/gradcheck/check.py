"""`gradcheck`: the gradient of a rollout against central differences, window by window, input by input."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
import warp as wp

from warpsim.check.gradcheck.coverage import Coverage, coverage
from warpsim.check.gradcheck.differences import SWEEP, estimate
from warpsim.check.gradcheck.directions import (
    DEFAULT_PARAMETERS,
    Direction,
    control_directions,
    parameter_directions,
    state_directions,
)
from warpsim.check.gradcheck.losses import Loss, RandomForm, UserLoss
from warpsim.check.gradcheck.modes import StepModes
from warpsim.check.gradcheck.probe import Move, Point, Probe
from warpsim.check.gradcheck.report import Blame, Report, Section
from warpsim.check.gradcheck.stage_blame import blame
from warpsim.check.gradcheck.verdicts import (
    EXACT,
    SMOOTHED,
    TOLERANCE,
    WRONG,
    Circumstances,
    Derivative,
    Finding,
    judge,
)
from warpsim.check.gradcheck.windows import Window, find_windows, whole_window
from warpsim.core.errors import InputError
from warpsim.core.kernel_lock import KERNELS
from warpsim.coupling.compiled import CompiledScene
from warpsim.scene import Scene
from warpsim.scene.convergence import solver_limits
from warpsim.sim.trajectory import Source, Trajectory

_TIGHT = 1e-14
"""The solver's tolerance where single stages are blamed, whose differences see nothing but its error otherwise."""
_WORLDS = 64
_OF_CONTACT = tuple(f"shape.{name}" for name in ("friction", "solref", "solimp", "solmix", "margin", "restitution"))
"""Parameters that act through contact alone."""


@dataclass(frozen=True)
class Subject:
    """What is checked.

    Attributes:
        scene: The scene.
        source: Where it came from.
        device: Where it runs.
        point: Initial state, controls of the whole rollout, and the parameters to check (or changed ones).
        parameters: Names of the parameters to check.
    """

    scene: Scene
    source: Source
    device: wp.Device
    point: Point
    parameters: tuple[str, ...]


def default_parameters(compiled: CompiledScene) -> tuple[str, ...]:
    """Those of `DEFAULT_PARAMETERS` of which the scene has any, and all of other matters."""
    authored = compiled.authored
    own = [name for name in authored if name not in compiled.model.authored]
    return tuple(name for name in (*DEFAULT_PARAMETERS, *own) if name in authored and authored[name].size)


@KERNELS.holding
def gradcheck(
    subject: Subject,
    *,
    window: int = 10,
    loss: Callable[[Trajectory], torch.Tensor] | None = None,
    outputs: Sequence[str] = (),
    seed: int = 0,
) -> Report:
    """Checks the gradients of a rollout.

    Args:
        subject: What is rolled out, and the parameters to check.
        window: Most steps of the free and of the contact window.
        loss: A function of a one-world trajectory; then the whole rollout is checked as well, with it.
        outputs: What the loss reads besides the state.
        seed: Of directions and of the random form that windows are checked with.
    """
    if window < 1:
        raise InputError(f"window={window}; at least 1 step is needed")
    checker = _Checker(subject, tuple(outputs), seed)
    modes = checker.modes(subject.point)
    sections = [checker.check(w, RandomForm(seed, tuple(subject.point.state))) for w in find_windows(modes, window)]
    if loss is not None:
        sections.append(checker.check(whole_window(modes), checker.user_loss(loss)))
    return Report(subject.scene, subject.point.steps, checker.timestep, tuple(sections))


def _carried(point: Point, gradients: Mapping[str, torch.Tensor]) -> float:
    """What the loss would change by, were all numbers of the state to: their rounding moves it by so many ε.

    Where small motions grow, that is far more than the loss itself, and differences see nothing below it.
    """
    total = 0.0
    for name, value in point.state.items():
        x, slope = value.abs(), gradients[name].abs()
        total += float((slope * x).sum() if slope.shape == x.shape else slope.sum() * x.max()) if x.numel() else 0.0
    return total


class _Checker:
    def __init__(self, subject: Subject, outputs: tuple[str, ...], seed: int) -> None:
        self._subject = subject
        controls = tuple(subject.point.controls)
        self._settings = {"device": subject.device, "controls": controls, "outputs": outputs}
        self._one = Probe(subject.scene, worlds=1, **self._settings)
        self._many = Probe(subject.scene, worlds=_WORLDS, **self._settings)
        self._outputs, self._seed = outputs, seed
        self._whole = self._one.run(subject.point)

    @property
    def timestep(self) -> float:
        """Seconds per step."""
        return float(self._one.model.world.timestep.numpy()[0])

    def modes(self, point: Point) -> list[StepModes]:
        """Decisions along the whole rollout."""
        return self._one.modes(point, self._whole)

    def user_loss(self, loss: Callable[[Trajectory], torch.Tensor]) -> Loss:
        """A user's loss on every world."""
        return UserLoss(loss, self._one.model, self._subject.source, self.timestep)

    def check(self, window: Window, loss: Loss) -> Section:
        """All inputs of one window."""
        point = self._point(window)
        value, gradients = self._one.gradients(point, loss, self._subject.parameters)
        size = max(loss.size(self._one.run(point)), _carried(point, gradients))
        modes = self._one.modes(point, self._one.run(point))
        directions = self._directions(point)
        derivatives = {
            name: self._derivatives(point, loss, found, gradients, size) for name, found in directions.items() if found
        }
        largest = max((d.terms for found in derivatives.values() for d in found), default=0.0)
        groups = {
            name: [judge(d, self._circumstances(d.direction, modes, largest)) for d in found]
            for name, found in derivatives.items()
        }
        groups = self._second_opinions(point, loss, groups)
        groups = self._at_the_optimum(point, loss, groups, modes, largest)
        wrong = [f.derivative.direction for found in groups.values() for f in found if f.verdict == WRONG]
        guilty = self._blame(point, wrong) if wrong else ()
        norms = {name: float(gradient.norm()) for name, gradient in gradients.items()}
        judged = {name: self._coverage(point, name, found, gradients[name]) for name, found in directions.items()}
        return Section(window, loss.text, value, groups, norms, judged, guilty)

    def _blame(self, point: Point, wrong: Sequence[Direction]) -> tuple[Blame, ...]:
        """Stages whose adjoints are wrong."""
        scene = self._subject.scene
        options = replace(scene.options, solver_tolerance=min(_TIGHT, scene.options.solver_tolerance))
        made, room = self._one.run(point), self._one.model.max_contacts
        return tuple(blame(replace(scene, options=options), self._subject.device, point, wrong, made, room))

    def _coverage(self, point: Point, name: str, found: Sequence[Direction], gradient: torch.Tensor) -> Coverage:
        """What of an input is judged."""
        values = {**point.state, **point.controls, **point.parameters}[name]
        if values.shape != gradient.shape:  # a state on a manifold of fewer dimensions
            values = gradient
        return coverage(name, values.numpy(force=True), found, gradient.numpy(force=True))

    def _point(self, window: Window) -> Point:
        """Inputs of a window, cut out of the rollout."""
        whole = self._subject.point
        stop = window.start + window.steps
        state = {name: self._whole[name][window.start, 0] for name in whole.state}
        return Point(state, {n: t[window.start : stop] for n, t in whole.controls.items()}, whole.parameters)

    def _directions(self, point: Point) -> dict[str, list[Direction]]:
        model, rng = self._one.model, np.random.default_rng(self._seed)
        found = {name: control_directions(name, t.numpy(force=True), model, rng) for name, t in point.controls.items()}
        for name, tensor in point.state.items():
            found[name] = state_directions(name, self._one.tangent_shape(name, tensor), model)
        for name in self._subject.parameters:
            found[name] = parameter_directions(name, point.parameters[name].numpy(force=True), model, rng)
        return found

    def _derivatives(
        self,
        point: Point,
        loss: Loss,
        directions: Sequence[Direction],
        gradients: Mapping[str, torch.Tensor],
        size: float,
    ) -> list[Derivative]:
        moves = [(d, sign * h) for d in directions for h in SWEEP for sign in (1.0, -1.0)]
        losses, same = self._losses(point, loss, moves)
        shape = (len(directions), len(SWEEP), 2)
        both = np.all(same.reshape(shape), axis=2)
        found = []
        for d, values, kept in zip(directions, losses.reshape(shape), both, strict=True):
            products = gradients[d.input].numpy(force=True) * d.tangent
            by_differences = estimate(values[:, 0], values[:, 1], kept, SWEEP, max(size, np.abs(values).max()))
            found.append(Derivative(d, float(products.sum()), float(np.abs(products).sum()), by_differences))
        return found

    def _losses(self, point: Point, loss: Loss, moves: Sequence[Move]) -> tuple[np.ndarray, np.ndarray]:
        """Loss of each move, and whether its run decided as the run from the point itself, which is world 0's."""
        losses, same = [], []
        share = _WORLDS - 1
        for first in range(0, len(moves), share):
            part = moves[first : first + share]
            batch = [(part[0][0], 0.0), *part]
            made = self._many.run(point, batch)
            losses += loss(made)[1 : len(batch)].tolist()
            modes = self._many.modes(point, made, batch)
            signatures = [b"".join(step.signature(w) for step in modes) for w in range(len(batch))]
            same += [signature == signatures[0] for signature in signatures[1:]]
        return np.array(losses), np.array(same)

    def _circumstances(self, d: Direction, modes: Sequence[StepModes], largest: float) -> Circumstances:
        model = self._one.model
        touching = any(step.pushing[0] for step in modes)
        column = None
        if d.item is not None and d.input.split(".")[0] in ("actuator", "drive", "drive_target", "drive_velocity"):
            column = d.item if d.input.startswith("actuator") else model.nu + d.item
        saturated = column is not None and all(step.saturated[0, column] != 0 for step in modes)
        lacking = ": no contact in this window" if d.input in _OF_CONTACT and not touching else ""
        softened = self._subject.scene.options.contact_softening > 0.0 and touching
        return Circumstances(largest, saturated, softened, lacking)

    def _at_the_optimum(
        self,
        point: Point,
        loss: Loss,
        groups: dict[str, list[Finding]],
        modes: Sequence[StepModes],
        largest: float,
    ) -> dict[str, list[Finding]]:
        """Judges what seems wrong anew, by steps that are solved to rounding.

        A step that stops at the solver's tolerance is off its optimum by an error of its own slope, which differences
        count and the gradient, which is the optimum's, does not. The gradient itself is known to that tolerance of the
        largest one.
        """
        options = self._subject.scene.options
        tolerance = solver_limits(options).tolerance
        doubted = [f.derivative.direction for found in groups.values() for f in found if f.verdict == WRONG]
        if not doubted or tolerance <= _TIGHT or not self._one.model.has_constraints:
            return groups
        scene = replace(self._subject.scene, options=replace(options, solver_tolerance=_TIGHT))
        twin = _Checker(replace(self._subject, scene=scene), self._outputs, self._seed)
        _, gradients = twin._one.gradients(point, loss, self._subject.parameters)
        size = max(loss.size(twin._one.run(point)), _carried(point, gradients))
        found = iter(twin._derivatives(point, loss, doubted, gradients, size))
        for findings in groups.values():
            for i, finding in enumerate(findings):
                if finding.verdict != WRONG:
                    continue
                d, stated = next(found), finding.derivative.gradient
                again = judge(d, self._circumstances(d.direction, modes, largest))
                if abs(d.gradient - stated) <= max(TOLERANCE * abs(stated), tolerance * largest):
                    reason = again.reason or f"at a solver tolerance of {_TIGHT:g}"
                    findings[i] = replace(again, reason=reason)
        return groups

    def _second_opinions(self, point: Point, loss: Loss, groups: dict[str, list[Finding]]) -> dict[str, list[Finding]]:
        """Gradients that softening in the backward pass changes by design are not wrong: asks a twin without it."""
        scene = self._subject.scene
        softened = scene.options.contact_softening > 0.0 and scene.options.softening_pass == "backward"
        doubted = any(f.verdict == WRONG for found in groups.values() for f in found)
        if not doubted or not softened:
            return groups
        twin = Probe(replace(scene, options=replace(scene.options, contact_softening=0.0)), worlds=1, **self._settings)
        _, gradients = twin.gradients(point, loss, self._subject.parameters)
        for name, findings in groups.items():
            for i, finding in enumerate(findings):
                if finding.verdict == WRONG:
                    d = finding.derivative
                    products = gradients[name].numpy(force=True) * d.direction.tangent
                    other = replace(d, gradient=float(products.sum()), terms=float(np.abs(products).sum()))
                    if judge(other, Circumstances(0.0)).verdict == EXACT:
                        findings[i] = Finding(d, SMOOTHED, f"by softening in the backward pass: {finding.reason}")
        return groups
