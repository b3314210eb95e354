"""The sweep of one group of worlds over its segments: forward with checkpoints, backward with recomputation.

Three rules make the gradient equal, bit for bit, to that of one long tape: parameter gradients accumulate in place over
all segments; the seed of a state between two segments sits in slot 0 of the later one before its backward pass; and all
adjoints of intermediates are zero when the backward pass of a step begins.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from warpsim.core.driving import Steps
from warpsim.tape import diagnostics, frames, revolve
from warpsim.tape.convergence import Unsolved
from warpsim.tape.crew import Crew
from warpsim.tape.diagnostics import NonFiniteError, SegmentReport
from warpsim.tape.frames import Packed
from warpsim.tape.parameters import StaleInputError
from warpsim.tape.part import Part
from warpsim.tape.program import Program
from warpsim.tape.schedule import Plan, Span
from warpsim.tape.seeds import Seed
from warpsim.tape.segment import Segment


@dataclass
class Pullback:
    """What a backward pass starts from and what it reports, for one group of worlds.

    Attributes:
        state_seeds: By state field; those without seeds may be missing.
        output_seeds: The same by output field.
        input_gradients: Blocks of (steps, …) that receive the gradients of inputs given as arrays.
        initial: Blocks of one frame that receive the gradient of the initial state.
        norms: (segments,) norm of the adjoint at each segment's start, over this group's worlds.
        retain: Keep checkpoints for another backward pass.
        clip: Largest adjoint norm per world handed from segment to segment, or None.
        on_segment: Called after each segment, or None.
        finished: Called after each segment, when everything about it has been written.
        resume_from: Segment to begin with, when those after it are done and their adjoint is in frame 0 of the slots.
        unconverged: One of `convergence.CHOICES`.
        unsolved: Solves on the way that did not converge.
    """

    state_seeds: dict[str, Seed]
    output_seeds: dict[str, Seed]
    input_gradients: frames.Blocks
    initial: frames.Blocks
    norms: np.ndarray
    retain: bool = False
    clip: float | None = None
    on_segment: Callable[[SegmentReport], None] | None = None
    finished: Callable[[int], None] | None = None
    resume_from: int | None = None
    unconverged: str = "raise"
    unsolved: Unsolved = field(default_factory=Unsolved)

    def remaining(self, plan: Plan) -> int:
        """Number of segments still to be differentiated."""
        return plan.segments if self.resume_from is None else self.resume_from + 1


class Sweep:
    """Drives the segment of one group of worlds; several runs may share it, one after the other."""

    def __init__(
        self,
        program: Program,
        plan: Plan,
        worlds: range,
        *,
        capture: bool,
        like: Sweep | None = None,
        crew: Crew | None = None,
    ) -> None:
        """Makes the slots.

        Args:
            program: The step of these worlds.
            plan: How runs are cut.
            worlds: Which worlds of the whole batch these are.
            capture: Whether to capture graphs.
            like: The sweep of another group of as many worlds.
            crew: Threads that share the divided launches of a step.
        """
        self.plan = plan
        self.worlds = worlds
        self.segment: Segment = Segment(
            program,
            plan.slots,
            lengths=plan.lengths,
            capture=capture,
            like=None if like is None else like.segment,
            crew=crew,
        )
        self._last = plan.segments - 1
        self._end_adjoint = Packed.allocate(frames.differentiable(program.state), 1, program.device)
        self._at: tuple[object, int, int] | None = None  # the slots hold that part's state of that step in that frame
        self._recorded: tuple[object, int] | None = None  # the slots hold that part's segment, recorded

    def check_inputs(self, part: Part) -> None:
        """Makes sure that all inputs of a finished run are what they were.

        Raises:
            StaleInputError: They are not.
        """
        for segment in range(self.plan.segments):
            self._verify(part, self.plan.span(segment))

    def sum_inputs(self, part: Part) -> None:
        """Fills the checksums of the inputs of all steps that a run has taken."""
        for segment in range(self.plan.segments):
            span = self.plan.span(segment)
            count = min(span.count, part.step - span.start)
            if count <= 0:
                return
            part.feed.fill(span.start, count, 0, self.segment.inputs.fields)
            part.checksums[segment] = self.segment.inputs.checksum(0, count)

    def prepare(self, *, differentiate: bool) -> None:
        """Captures all graphs a run will need, so that it can then be driven from another thread."""
        for length in self.plan.lengths:
            self.segment.prepare(0, length, recorded=False)
            if differentiate:
                self.segment.prepare(0, length, recorded=True)

    def forward(self, part: Part, end: int, progress: Callable[[], None]) -> Steps[NonFiniteError | None]:
        """Steps a run until step `end`, storing checkpoints where the plan wants them; asks for its replays.

        Returns:
            What ended it before, where a state is not finite: other groups go on, so that all reach the steps before.
        """
        next_store = part.next_store()
        states, outputs = self.segment.states, self.segment.outputs
        frame = None  # where the state of `part.step` is
        try:
            with _quiet():
                while part.step < end:
                    span = self.plan.span(self.plan.segment_of(part.step))
                    slot = part.step - span.start
                    count = min(end - part.step, span.count - slot)
                    self._enter(part, slot)
                    frame = slot
                    if slot == 0 and span.segment == next_store:
                        part.push(span.segment, states)
                        next_store = part.next_store()
                    self._fill(part, span, slot, count)
                    recorded = part.differentiate and span.segment == self._last
                    yield self.segment.steps(slot, count, recorded=recorded)
                    self._stepped(part, span, slot, count, recorded=recorded)
                    bad = None
                    if part.finite and not diagnostics.finite(states, slot + count):
                        bad = diagnostics.first_bad_state(self.segment, slot + count)
                        count = max(bad - 1 - slot, 0)
                    part.keep.take(part.step, slot, count, states.fields, outputs.fields)
                    part.step, frame = part.step + count, slot + count
                    if bad is not None:
                        diagnostics.raise_for_state(self.segment, span.start, bad, self.worlds.start)
                    if frame == span.count:
                        progress()
            return None
        except NonFiniteError as error:
            self._at = self._recorded = None
            return error
        except BaseException:
            self._at = self._recorded = None  # the slots may hold anything
            raise
        finally:
            if (
                frame is not None and part.step
            ):  # also of a run that failed or was interrupted, which may go on from there
                part.checkpoints.save(part.reached_frame, states, frame)

    def backward(self, part: Part, pull: Pullback, progress: Callable[[], None]) -> Steps[None]:
        """Differentiates all segments, last first; the adjoint of the initial state ends up in `pull.initial`.

        It ends at a solve that did not converge, where that is how it was chosen; `pull.unsolved` then tells of it.
        """
        adjoints = self.segment.adjoints
        # Steps behind the last seed have no adjoint; a hook may give them one, and a saved pass has begun before.
        idle = self.plan.segments > 1 and pull.resume_from is None and pull.on_segment is None
        with _quiet():
            for segment in reversed(range(pull.remaining(self.plan))):
                span = self.plan.span(segment)
                idle = idle and self._without_seeds(pull, span)
                if idle:
                    self._verify(part, span)
                else:
                    recorded = self._recorded == (part.token, segment)
                    if not recorded:
                        yield from self._reach(part, segment)
                    self._verify(part, span)
                    if not recorded:
                        yield self.segment.steps(0, span.count, recorded=True)
                        self._stepped(part, span, 0, span.count, recorded=True)
                    if not self._solved(pull, span):
                        return
                    self._end_adjoint.copy_frame(0, adjoints.states, 0)  # as the segment after this one has left it
                    self._seed(pull, span)
                    yield self.segment.adjoint_steps(0, span.count)
                self._report(part, pull, span)
                part.feed.collect(span.start, span.count, adjoints.inputs.fields, pull.input_gradients)
                self._forget(part, pull, segment)
                if pull.finished is not None:
                    pull.finished(segment)
                progress()
        for name, block in pull.initial.items():
            block.copy_from(0, adjoints.states.fields[name], 0, 1)

    def _enter(self, part: Part, slot: int) -> None:
        """Brings the state of step `part.step` into frame `slot`."""
        if self._at is not None and self._at[:2] == (part.token, part.step):
            if self._at[2] != slot:
                self.segment.states.copy_frame(slot, self.segment.states, self._at[2])
        else:
            self._recorded = None
            part.checkpoints.load(part.reached_frame, self.segment.states, slot)
        self._at = (part.token, part.step, slot)

    def _fill(self, part: Part, span: Span, slot: int, count: int) -> None:
        """Loads inputs for the first time and remembers their checksum."""
        part.feed.fill(span.start + slot, count, slot, self.segment.inputs.fields)
        if part.differentiate:
            known = int(part.checksums[span.segment]) if slot else 0
            part.checksums[span.segment] = self.segment.inputs.checksum(slot, count, known)

    def _verify(self, part: Part, span: Span) -> None:
        """Loads the inputs of a whole segment again and makes sure that they are what they were."""
        part.feed.fill(span.start, span.count, 0, self.segment.inputs.fields)
        if self.segment.inputs.checksum(0, span.count) != part.checksums[span.segment]:
            raise StaleInputError(
                f"the inputs ({', '.join(self.segment.inputs.fields)}) of steps {span.start} … "
                f"{span.start + span.count - 1} changed between the forward and the backward pass; hand the tape a "
                "copy, or run forward again"
            )

    def _stepped(self, part: Part, span: Span, slot: int, count: int, *, recorded: bool) -> None:
        """Notes what the slots hold after steps from `slot` on."""
        whole = recorded and (slot == 0 or self._recorded == (part.token, span.segment))
        self._at = (part.token, span.start + slot + count, slot + count)
        self._recorded = (part.token, span.segment) if whole else None

    def _reach(self, part: Part, target: int) -> Steps[None]:
        """Brings the start of segment `target` into frame 0, from the newest snapshot before it."""
        stored, frame = part.snapshots.nearest(target)
        self._recorded = None
        part.checkpoints.load(frame, self.segment.states, 0)
        self._at = None
        for first, stop, store in revolve.approach(stored, target, 1 + len(part.snapshots.free)):
            for segment in range(first, stop):
                span = self.plan.span(segment)
                self._verify(part, span)
                yield self.segment.steps(0, span.count, recorded=False)
                self.segment.states.copy_frame(0, self.segment.states, span.count)
            if store:
                part.push(stop, self.segment.states)

    def _solved(self, pull: Pullback, span: Span) -> bool:
        """Notes the solves of a recorded segment that did not converge; False where such a solve ends the pass."""
        residuals = self.segment.unsolved(span.count)
        if residuals is None or not residuals.any():
            return True
        pull.unsolved.note(residuals, span.start, self.worlds.start)
        return pull.unconverged != "raise"

    def _without_seeds(self, pull: Pullback, span: Span) -> bool:
        """Whether no step of a segment has a seed, where none after it has; leaves all adjoints zero."""
        adjoints = self.segment.adjoints
        adjoints.states.data.zero(0, 1)
        self._end_adjoint.copy_frame(0, adjoints.states, 0)
        self._seed(pull, span)
        if adjoints.vanish():
            return True
        adjoints.zero()
        return False

    def _seed(self, pull: Pullback, span: Span) -> None:
        """Writes a segment's seeds; the adjoint of its end state is its seed, or what the segment after it left."""
        adjoints = self.segment.adjoints
        adjoints.zero()
        for name, seed in pull.state_seeds.items():
            seed.write(adjoints.states.fields[name], 0, span.start, span.count)
        for name, seed in pull.output_seeds.items():
            seed.write(adjoints.outputs.fields[name], 0, span.start, span.count)
        end = span.start + span.count
        if end < self.plan.steps and not self.plan.cut_at(end):
            adjoints.states.copy_frame(span.count, self._end_adjoint, 0)
        else:
            for name, seed in pull.state_seeds.items():
                seed.write(adjoints.states.fields[name], span.count, end, 1)
        if self.plan.cut_at(span.start):  # the seed of this state flows into the window before
            adjoints.states.data.zero(0, 1)

    def _report(self, part: Part, pull: Pullback, span: Span) -> None:
        """Norm, non-finite numbers, clipping and the caller's hook, for the adjoint of the segment's start."""
        adjoints = self.segment.adjoints
        by_state, by_input = adjoints.states, adjoints.inputs
        norm = pull.norms[span.segment] = diagnostics.norm(by_state, 0)
        if part.finite and not (math.isfinite(norm) and diagnostics.finite(by_input, slice(span.count))):
            self._seed(pull, span)
            diagnostics.raise_for_adjoint(self.segment, span.start, span.count, self.worlds.start)
        if pull.clip is not None and span.segment > 0:
            diagnostics.clip(by_state.fields, 0, pull.clip)
        if pull.on_segment is not None:
            views = adjoints.states.views("state adjoint", 0)
            pull.on_segment(SegmentReport(span.segment, span.start, span.count, self.worlds, norm, views))

    def _forget(self, part: Part, pull: Pullback, segment: int) -> None:
        """Frees the snapshot of a finished segment, unless all starts are kept for another backward pass."""
        reuse = not (pull.retain and part.snapshots.complete)
        if segment > 0 and reuse and part.snapshots.stored[-1] == segment:
            part.snapshots.pop()


def _quiet() -> np.errstate:
    """No warnings of NumPy's: numbers that overflow are looked for, and reported, by `diagnostics`."""
    return np.errstate(over="ignore", invalid="ignore")
