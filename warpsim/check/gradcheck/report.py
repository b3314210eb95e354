"""The report of a gradient check: what was differentiated, a verdict per input, and the settings that decide it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from warpsim.check.gradcheck.coverage import Coverage
from warpsim.check.gradcheck.verdicts import EXACT, SMOOTHED, SWITCH, VERDICTS, WRONG, ZERO, Finding
from warpsim.check.gradcheck.windows import Window
from warpsim.core.notebook import rows_html
from warpsim.core.precision import PRECISION
from warpsim.scene import Options, Scene
from warpsim.scene.convergence import solver_limits

_MOST_LINES = 6


@dataclass(frozen=True)
class Blame:
    """A stage whose adjoint is wrong.

    Attributes:
        stage: Its name, e.g. "dynamics.kinematics".
        inputs: What it reads by which its derivative is wrong, worst first.
        deviation: The worst relative deviation.
        step: Step of the rollout at which it was found.
    """

    stage: str
    inputs: tuple[str, ...]
    deviation: float
    step: int


@dataclass(frozen=True)
class Section:
    """Findings of one window.

    Attributes:
        window: Which steps.
        loss_text: What was differentiated.
        loss: Its value.
        findings: By input.
        norms: Gradient norm by input, over all its entries.
        judged: By input, which of its entries the findings are about; an input may have none.
        guilty: Stages found wrong, if any derivative is.
    """

    window: Window
    loss_text: str
    loss: float
    findings: Mapping[str, list[Finding]]
    norms: Mapping[str, float]
    judged: Mapping[str, Coverage]
    guilty: tuple[Blame, ...]

    def verdict(self, name: str) -> str:
        """The worst verdict on an input."""
        return min((f.verdict for f in self.findings[name]), key=VERDICTS.index)


@dataclass(frozen=True)
class Report:
    """What `gradcheck` found; print it.

    Attributes:
        scene: The scene.
        steps: Steps of the rollout the windows were cut from.
        timestep: s.
        sections: One per window.
    """

    scene: Scene
    steps: int
    timestep: float
    sections: tuple[Section, ...]

    @property
    def ok(self) -> bool:
        """Whether no derivative is wrong."""
        return not any(f.verdict == WRONG for s in self.sections for found in s.findings.values() for f in found)

    @property
    def guilty(self) -> tuple[Blame, ...]:
        """Stages found wrong, over all windows, each once."""
        return tuple({b.stage: b for s in self.sections for b in s.guilty}.values())

    def verdicts(self) -> dict[tuple[str, str], str]:
        """(window, input) → worst verdict."""
        return {(s.window.name, name): s.verdict(name) for s in self.sections for name in s.findings}

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _repr_html_(self) -> str:
        verdicts = [(window, name, verdict) for (window, name), verdict in self.verdicts().items()]
        title = f"Gradients of {self.scene.name}: {'no derivative is wrong' if self.ok else 'WRONG'}"
        return rows_html(title, ("window", "input", "verdict"), verdicts)

    def _lines(self) -> Iterator[str]:
        yield f"gradcheck of {self.scene.name!r}: {self.steps} steps of {self.timestep:g} s, {PRECISION}"
        yield (
            "differentiated: the simulated step itself (its contact forces implicitly, at the solver's optimum), with "
            "respect to controls, initial state and parameters; compared with central differences of the same step"
        )
        for section in self.sections:
            yield ""
            yield from _section_lines(section)
        if not self.sections:
            yield "no window: the rollout has neither free motion nor contact"
        yield ""
        yield from self._settings(self.scene.options)

    def _settings(self, o: Options) -> Iterator[str]:
        softening = f"{o.contact_softening:g} m, {o.softening_pass} pass" if o.contact_softening else "none"
        yield f"smoothing: {softening}; regularization: soft contact, solref and solimp as authored, {o.cone} cone"
        limits = solver_limits(o)
        yield f"solver: tolerance {limits.tolerance:g}, at most {limits.iterations} iterations, {o.integrator}"
        horizon = self.steps * self.timestep
        yield f"horizon: {self.steps} steps, {horizon:g} s"
        for s in self.sections:
            norm = math.hypot(*s.norms.values())
            yield f"{s.window.name}: loss {s.loss:.6g}, gradient norm {norm:.6g}"
        yield "verdict: no wrong gradient" if self.ok else "verdict: WRONG GRADIENT"


def _section_lines(section: Section) -> Iterator[str]:
    w = section.window
    switches = f", modes switch at steps {', '.join(map(str, w.switches))}" if w.switches else ", no mode switch"
    yield f"{w.name}: steps {w.start} … {w.start + w.steps}{switches}; loss: {section.loss_text}"
    width = max((len(name) for name in section.findings), default=0)
    for name, findings in section.findings.items():
        counts = Counter(f.verdict for f in findings)
        text = ", ".join(f"{verdict} {counts[verdict]}" for verdict in VERDICTS if counts[verdict])
        judged = [f.deviation for f in findings if f.verdict in (EXACT, SMOOTHED)]
        worst = f"worst {max(judged):.0e}" if judged else ""
        covered, norm = section.judged[name], f"norm {section.judged[name].norm:.3g}"
        yield f"  {name:<{width}}  {text:<28} {worst:<12} {norm}{_beyond(covered, section.norms[name])}"
        yield f"      {covered}"
        yield from _remarks(findings)
    for name, covered in section.judged.items():
        if name not in section.findings and covered.total:
            yield f"  {name:<{width}}  not judged; norm of all entries {section.norms[name]:.3g}"
            yield f"      {covered}"
    for guilty in section.guilty:
        yield (
            f"  guilty stage: {guilty.stage} (step {guilty.step}, off by {guilty.deviation:.1e}, by its "
            f"{', '.join(guilty.inputs[:4])})"
        )


def _beyond(covered: Coverage, norm: float) -> str:
    """The norm over all entries, where some of them are not judged."""
    return f", of all entries {norm:.3g}" if covered.judged < covered.total else ""


def _remarks(findings: list[Finding]) -> Iterator[str]:
    """What needs saying of single derivatives: wrong ones with numbers, others by reason."""
    wrong = [f for f in findings if f.verdict == WRONG]
    for f in wrong[:_MOST_LINES]:
        d = f.derivative
        yield (
            f"      {d.direction.label or d.direction.input}: WRONG, {f.reason}: gradient {d.gradient:.8g}, "
            f"differences {d.differences.value:.8g} ± {d.differences.error:.1g}"
        )
    reasons: dict[str, list[str]] = {}
    for f in findings:
        if f.verdict not in (WRONG, EXACT) and f.reason:
            reasons.setdefault(f"{f.verdict} ({f.reason})", []).append(f.derivative.direction.label)
    for reason, labels in reasons.items():
        if len(labels) == len(findings):
            yield f"      {reason}"
            continue
        shown = ", ".join(labels[:_MOST_LINES]) + (" …" if len(labels) > _MOST_LINES else "")
        yield f"      {reason}: {shown}"
    near = [f for f in findings if f.verdict in (EXACT, ZERO) and f.derivative.differences.nearest_switch]
    if near:
        closest = min(near, key=lambda f: f.derivative.differences.nearest_switch or math.inf).derivative
        yield (
            f"      exact within its mode; a move of {closest.differences.nearest_switch:g} along "
            f"{closest.direction.label or closest.direction.input} changes the mode ({SWITCH})"
        )
