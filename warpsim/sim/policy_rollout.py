"""Closed loops: a torch policy between steps, differentiated in bounded memory.

The loop is cut into segments by the tape's schedules. Only the state (and pending controls) at segment starts is
stored, at some or all of them; the backward pass runs each segment but the last again, policy included, and
differentiates it, last segment first. So the policy's activations are held for one segment at a time, whatever the
horizon. What the policy answered is kept, too: if it answers otherwise the second time, the gradient would belong to
neither motion, and the backward pass raises.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch.utils.checkpoint import checkpoint

from warpsim.autograd.exchange import torch_real
from warpsim.autograd.parameters import Parameters
from warpsim.autograd.step import Stepper
from warpsim.core.errors import InputError
from warpsim.sim.controls import ControlLayout
from warpsim.sim.initial_state import StateTensors
from warpsim.sim.loop_starts import Carried, LoopStarts
from warpsim.sim.sensor_noise import SensorNoise
from warpsim.sim.trajectory import Observed
from warpsim.tape.memory import Memory
from warpsim.tape.parameters import StaleInputError
from warpsim.tape.schedule import AllStarts, Plan, cut

Policy = Callable[[Observed], torch.Tensor]

_ROUNDING = {torch.float64: 1e-10}
"""By precision of a policy: relative difference of its answers that another order of summation can explain."""
_COARSE_ROUNDING = 1e-5


@dataclass(frozen=True)
class Timing:
    """When a policy is asked and when its answer acts.

    Attributes:
        hold: Steps for which each control is held; the policy is asked every so many steps.
        delay: Steps after which a control acts; until the first one does, controls are zero.
    """

    hold: int = 1
    delay: int = 0

    def __post_init__(self) -> None:
        if self.hold < 1 or self.delay < 0:
            raise InputError(f"hold={self.hold} must be 1 or more, delay={self.delay} 0 or more")

    @property
    def pending(self) -> int:
        """Controls that must be remembered: the newest and those not yet replaced by it."""
        return -(-self.delay // self.hold) + 1

    def plan(self, steps: int, memory: Memory) -> Plan:
        """How a loop is cut: segments of whole holds, by default as many as each has steps, all starts stored."""
        wanted = memory.segment or math.isqrt(steps - 1) + 1
        schedule = memory.schedule or AllStarts()
        return cut(steps, schedule.slots(steps, -(-wanted // self.hold) * self.hold), schedule)

    def runs(self, steps: range) -> Iterator[range]:
        """Cuts a segment where the policy is asked and where its answer begins to act."""
        cuts = {0, self.delay % self.hold}
        first = steps.start
        for step in range(steps.start + 1, steps.stop):
            if step % self.hold in cuts:
                yield range(first, step)
                first = step
        yield range(first, steps.stop)

    def age(self, step: int) -> int:
        """How many controls back the one is that acts at this step."""
        return step // self.hold - (step - self.delay) // self.hold


class _Answers:
    """What a policy answered in a segment, by step."""

    def __init__(self) -> None:
        self._known: dict[int, torch.Tensor] = {}

    def compare(self, step: int, control: torch.Tensor, precision: torch.dtype) -> None:
        """Keeps an answer, or compares it with the one that is known.

        Raises:
            StaleInputError: They are not the same.
        """
        known = self._known.get(step)
        if known is None:
            self._known[step] = control.detach()
            return
        if torch.equal(known, control):
            return
        off = (control.detach() - known).abs().nan_to_num(nan=math.inf)
        if float(off.max()) <= _ROUNDING.get(precision, _COARSE_ROUNDING) * float(known.abs().max()):
            return
        raise StaleInputError(
            f"the policy answered otherwise in the backward pass than in the forward pass: by up to "
            f"{float(off.max()):.3g} at step {step}, world {int(off.amax(-1).argmax())}. Either its weights changed in "
            "between (call backward before the optimizer's step), or it has a state of its own, such as a counter or a "
            "memory; with memory=Memory(segment=…) as long as the rollout it is asked only once, and may have one"
        )


class ClosedLoop:
    """Runs a policy with a stepper."""

    def __init__(
        self,
        stepper: Stepper,
        layout: ControlLayout,
        show: Callable[[StateTensors, dict[str, torch.Tensor]], Observed],
        parameters: Parameters,
        kept: tuple[str, ...],
        outputs: tuple[str, ...],
        noise: SensorNoise,
        precision: torch.dtype,
    ) -> None:
        """Puts the parts together.

        Args:
            stepper: Takes the steps.
            layout: How a policy's answer becomes controls.
            show: Makes what the policy sees from a state and its outputs.
            parameters: In force.
            kept: State fields of which each step is kept.
            outputs: To be shown to the policy and kept.
            noise: Of measurements among them.
            precision: In which the policy is shown real numbers.
        """
        self._stepper = stepper
        self._layout = layout
        self._show = show
        self._parameters = parameters
        self._kept = kept
        self._outputs = outputs
        self._noise = noise
        self._precision = precision

    def run(
        self, policy: Policy, timing: Timing, plan: Plan, state: StateTensors, observed: dict[str, torch.Tensor]
    ) -> dict[str, torch.Tensor]:
        """Trajectories of kept states and outputs, (steps + 1, W, …) each.

        Args:
            policy: Maps what is observed to controls.
            timing: When it is asked.
            plan: How many steps, and how they are cut.
            state: Initial state.
            observed: Its outputs.
        """
        like = next(iter(state.values()))
        rest = torch.zeros(self._layout.worlds, self._layout.size, dtype=torch_real, device=like.device)
        shown = (*self._kept, *self._outputs)
        answers = [_Answers() for _ in range(plan.segments)] if plan.segments > 1 and torch.is_grad_enabled() else []

        def take(number: int, carried: Carried) -> Carried:
            span = plan.span(number)
            steps, told = range(span.start, span.start + span.count), answers[number] if answers else None
            return self._segment(policy, timing, steps, tuple(state), carried, told)

        starts = LoopStarts(plan, lambda number, carried: take(number, carried)[len(shown) :], like.device)
        carried: Carried = (*state.values(), *observed.values(), *[rest] * timing.pending)
        frames = {name: [{**state, **observed}[name].unsqueeze(0)] for name in shown}
        for number in range(plan.segments):
            if plan.cut_at(plan.span(number).start):
                carried = tuple(tensor.detach() for tensor in carried)
            if answers:
                starts.passed(number, carried)
            if not answers or number == plan.segments - 1:  # the last segment is differentiated as it was run
                made = take(number, carried)
            else:
                live = [carried]

                def again(_: torch.Tensor, number: int = number, live: list[Carried] = live) -> Carried:
                    return take(number, live.pop() if live else starts.reach(number))

                made = checkpoint(again, rest, use_reentrant=False)  # from `rest` torch learns the device
            carried = made[len(shown) :]
            for name, block in zip(shown, made, strict=False):
                frames[name].append(block)
        return {name: torch.cat(blocks) for name, blocks in frames.items()}

    def _seen(self, state: StateTensors, observed: dict[str, torch.Tensor]) -> Observed:
        """What the policy is shown, in its precision; gradients come back in the simulator's."""
        shown = {**state, **observed}
        if self._precision != torch_real:
            shown = {n: t.to(self._precision) if t.is_floating_point() else t for n, t in shown.items()}
        return self._show(shown, {})

    def _segment(
        self,
        policy: Policy,
        timing: Timing,
        steps: range,
        fields: tuple[str, ...],
        tensors: tuple[torch.Tensor, ...],
        answers: _Answers | None,
    ) -> tuple[torch.Tensor, ...]:
        """Kept states and outputs after each step, then what the next segment begins with."""
        a, b = len(fields), len(fields) + len(self._outputs)
        state = dict(zip(fields, tensors[:a], strict=True))
        observed = dict(zip(self._outputs, tensors[a:b], strict=True))
        controls = list(tensors[b:])
        frames: dict[str, list[torch.Tensor]] = {name: [] for name in (*self._kept, *self._outputs)}
        for run in timing.runs(steps):
            if run.start % timing.hold == 0:
                asked = policy(self._seen(state, observed))
                control = self._layout.whole(asked).clone()  # a policy may write its next answer to the same tensor
                if answers is not None:
                    answers.compare(run.start, control, self._precision)
                controls = [*controls[1:], control]
            made = self._stepper.advance(
                state,
                self._layout.split(controls[-1 - timing.age(run.start)], None),
                self._parameters,
                self._outputs,
                run.start,
                count=len(run),
                slots=timing.hold,
                kept=self._kept,
            )
            state, observed = made.state, self._noise.add_one(made.outputs, run[-1])
            for name, block in self._noise.add(made.frames, run).items():
                frames[name].append(block)
        return (*(torch.cat(blocks) for blocks in frames.values()), *state.values(), *observed.values(), *controls)
