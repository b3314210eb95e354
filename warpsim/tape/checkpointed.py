"""The checkpointed tape: rollouts of any length, differentiated within a memory budget.

tape = CheckpointedTape(program, steps=100_000, memory="64MB")
print(tape.plan)
run = tape.forward(initial_state, {"torque": torque}, keep_outputs=["cost"])
gradients = tape.backward(run, output_seeds={"cost": EveryStep(np.ones(worlds))})
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np

from warpsim.core.driving import drive
from warpsim.core.errors import InputError, unknown_name, whole_number
from warpsim.core.kernel_lock import KERNELS
from warpsim.tape import budget, checks, convergence, footprint, frames, seeds
from warpsim.tape import home as homes
from warpsim.tape import inputs as feeds
from warpsim.tape import threads as teams
from warpsim.tape.crew import crew_of
from warpsim.tape.diagnostics import NonFiniteError, SegmentReport
from warpsim.tape.inputs import ArrayFeed, Feed, InputProvider, ProviderFeed
from warpsim.tape.memory import MemoryLike, memory_of
from warpsim.tape.parameters import ParameterSet, StaleInputError
from warpsim.tape.part import Keep, Part
from warpsim.tape.program import Field, Program
from warpsim.tape.progress import bar
from warpsim.tape.run import Gradients, Run
from warpsim.tape.schedule import Plan, make_plan
from warpsim.tape.selection import Selection, names, select
from warpsim.tape.sweep import Pullback, Sweep

_LOG = logging.getLogger(__name__)


class CheckpointedTape:
    """Runs a program forward and backward over a fixed number of steps; several runs may be open at once.

    Attributes:
        program: What a step does.
        plan: Segments, checkpoints, bytes and recomputation; print it.
    """

    @KERNELS.holding
    def __init__(
        self,
        program: Program,
        *,
        steps: int,
        memory: MemoryLike = None,
        threads: int = 1,
        groups: int | None = None,
        capture: bool = True,
        check: bool = True,
        unconverged: str = "raise",
    ) -> None:
        """Plans; nothing runs yet.

        Args:
            program: The step.
            steps: N, length of each rollout.
            memory: A budget such as "64MB", or a `Memory` with segments, schedule and storage; None: what suits the
                machine.
            threads: CPU threads that share the worlds; or, where a program's launches are divided and there are fewer
                worlds than threads, each launch.
            groups: Groups of worlds, which are swept one after another; by default as many as keep the memory of each
                within the cache, at least one per thread.
            capture: Replay captured graphs; False launches eagerly, with the same bits.
            check: Try the step once, at the first rollout, against the rules of a program; and stop at states and
                adjoints that are not finite.
            unconverged: What `backward` does about steps whose solver did not converge, if the program can tell:
                "raise" `UnconvergedError`, or "warn" and return what it computed.
        """
        if threads > 1 and not capture:
            raise InputError("threads replay captured graphs; use threads=1 with capture=False")
        self.program = program
        self._check = check
        self._unconverged = convergence.check_choice(unconverged)
        self._tried = False
        memory = memory_of(memory)
        self._home = homes.make(memory.storage, program.device)
        self._parameters = ParameterSet(program.parameters)
        inside = threads > program.worlds and getattr(program, "divisible", False)
        self._team, crew = teams.Team(1 if inside else threads), crew_of(threads) if inside else None
        split = teams.split(program, groups, self._team.threads)
        self.plan: Plan = make_plan(
            footprint.measure(part for part, _ in split),
            steps,
            schedule=memory.schedule,
            segment=memory.segment,
            budget=None if memory.budget is None else budget.parse(memory.budget, program.device),
            storage=self._home.kind,
        )
        _LOG.info("plan: %s", self.plan)
        self._programs = [part for part, _ in split]
        self._sweeps: list[Sweep] = []
        first: dict[int, Sweep] = {}  # by number of worlds
        for part, worlds in split:
            sweep = Sweep(part, self.plan, worlds, capture=capture, like=first.get(len(worlds)), crew=crew)
            first.setdefault(len(worlds), sweep)
            self._sweeps.append(sweep)

    @KERNELS.holding
    def start(
        self,
        initial_state: Mapping[str, Any],
        inputs: Mapping[str, Any] | InputProvider | None = None,
        *,
        keep_states: Selection = False,
        keep_outputs: Selection = False,
        keep_every: int = 1,
        differentiate: bool = True,
    ) -> Run:
        """Opens a rollout without taking a step; `Run.advance` takes them.

        Args:
            initial_state: All state fields, (worlds, …) each; copied.
            inputs: Input fields as (steps, worlds, …) arrays (those left out are zero), or an `InputProvider`. Arrays
                of the right type are used in place and must not change before the backward pass.
            keep_states: State fields to keep as trajectories.
            keep_outputs: Output fields to keep as trajectories.
            keep_every: Keep the states of steps 0, e, 2e …, and the outputs of the steps that lead to them.
            differentiate: False for a rollout that needs no gradient: nothing is recorded or checkpointed.
        """
        program, plan = self.program, self.plan
        whole_number("keep_every", keep_every)
        given = frames.adopt_frame("state", initial_state, program.state, program.device)
        known = self._parameters.checksums() if differentiate else {}
        # before anything is written where an interrupted run may have left its files
        states = [frames.worlds_of(given, sweep.worlds) for sweep in self._sweeps]
        kept = (differentiate, keep_every, sorted(names(keep_states)), sorted(names(keep_outputs)))
        journals = self._home.journals(self._programs, plan, states, known, kept)
        keep = Keep(
            keep_every,
            self._kept("state", keep_states, program.state, plan.steps // keep_every + 1),
            self._kept("output", keep_outputs, program.outputs, plan.steps // keep_every),
        )
        keep.start(given)
        make_feed = self._feeds(inputs)
        parts = []
        stores = self._home.checkpoints(self._programs, plan.snapshots + 1)
        for sweep, checkpoints, state in zip(self._sweeps, stores, states, strict=True):
            for name, block in state.items():
                checkpoints.states.fields[name].copy_from(0, block, 0, 1)
            feed = make_feed(sweep.worlds)
            parts.append(Part(plan, feed, checkpoints, keep.worlds(sweep.worlds), differentiate, self._check))
        self._try_step(parts[0])
        if not differentiate:
            journals = []
        elif self._home.restore(journals, parts):
            self._check_inputs_of_saved_run(parts)
        return Run(plan, parts, keep, known, journals, self.advance, self._home)

    def forward(
        self,
        initial_state: Mapping[str, Any],
        inputs: Mapping[str, Any] | InputProvider | None = None,
        *,
        keep_states: Selection = False,
        keep_outputs: Selection = False,
        keep_every: int = 1,
        differentiate: bool = True,
        progress: bool = False,
    ) -> Run:
        """Takes all steps; arguments as in `start`, and `progress` for a bar.

        Raises:
            NonFiniteError: A state is not finite; what came before is in its `run`.
        """
        run = self.start(
            initial_state,
            inputs,
            keep_states=keep_states,
            keep_outputs=keep_outputs,
            keep_every=keep_every,
            differentiate=differentiate,
        )
        self.advance(run, progress=progress)
        return run

    def advance(self, run: Run, steps: int | None = None, *, progress: bool = False) -> None:
        """Takes `steps` more steps of a run, by default all that are left; raises as `forward` does."""
        with KERNELS:
            run.checkpoints  # noqa: B018  raises if they were released
            left = self.plan.steps - run.step
            if steps is not None and not 0 <= steps <= left:
                raise InputError(f"{steps} more steps after {run.step} of {self.plan.steps}")
            end = run.step + (left if steps is None else steps)
            self._prepare(differentiate=run.differentiable)
            failures = []
            with bar(self._team, self.plan.segments * len(self._sweeps), "forward", progress) as tick:
                groups = zip(self._sweeps, run.parts, strict=True)
                sweeps = [sweep.forward(part, end, tick) for sweep, part in groups]
                if self._team.threads > 1 and len(sweeps) > 1:
                    failures = self._team.run([partial(drive, sweeping) for sweeping in sweeps])
                else:
                    for sweeping in sweeps:
                        failures.append(drive(sweeping))
            self._raise_first(failures, run)
            for part, journal in zip(run.parts, run.journals, strict=False):
                if part.step == self.plan.steps and not journal.exists():
                    journal.begin(part)

    @KERNELS.holding
    def take_up(self, run: Run) -> Run:
        """Goes on with another tape's run where it has come to, e.g. after too few places; `advance` takes the rest.

        Args:
            run: Of a program with the same state, inputs, outputs and parameters, in as many groups of worlds, not
                resumable. What it kept goes on to be filled; it is to be released.
        """
        stores = self._home.checkpoints(self._programs, self.plan.snapshots + 1)
        parts = []
        for sweep, checkpoints, old in zip(self._sweeps, stores, run.parts, strict=True):
            parts.append(Part(self.plan, old.feed, checkpoints, old.keep, old.differentiate, self._check))
            parts[-1].take_up(old)
            if old.differentiate:
                sweep.sum_inputs(parts[-1])
        return Run(self.plan, parts, run.keep, run.parameter_checksums, [], self.advance, self._home)

    def backward(
        self,
        run: Run,
        *,
        state_seeds: Mapping[str, Any] | None = None,
        output_seeds: Mapping[str, Any] | None = None,
        input_gradients: Mapping[str, Any] | None = None,
        retain: bool = False,
        accumulate: bool = False,
        clip: float | None = None,
        on_segment: Callable[[SegmentReport], None] | None = None,
        progress: bool = False,
    ) -> Gradients:
        """Differentiates a finished rollout.

        Args:
            run: What `forward` returned.
            state_seeds: Derivative of the objective by the states, by field: a (steps + 1, worlds, …) array, a
                mapping from step to a (worlds, …) array (negative steps count from the end), or `EveryStep`.
            output_seeds: The same by the outputs, of which there are `steps`.
            input_gradients: Arrays (steps, worlds, …) that receive the gradients of inputs; made if not given.
            retain: Keep the checkpoints, so that the run can be differentiated again.
            accumulate: Add to the gradients of parameters instead of starting from zero.
            clip: Largest norm of the state adjoint of a world that is handed from segment to segment.
            on_segment: Called after each segment.
            progress: Show a bar.

        Raises:
            UnconvergedError: A step did not converge, and the tape was not told to warn.
        """
        with KERNELS:
            self._check_backward(run)
            program, steps = self.program, self.plan.steps
            by_state = seeds.adopt("state", state_seeds, program.state, steps + 1, program.device)
            by_output = seeds.adopt("output", output_seeds, program.outputs, steps, program.device)
            gradients = self._input_gradients(run, input_gradients or {})
            initial = frames.allocate(frames.differentiable(program.state), 1, program.device)
            if not accumulate:
                self._parameters.zero_gradients()
            pulls = [
                Pullback(
                    state_seeds={name: seed.worlds(sweep.worlds) for name, seed in by_state.items()},
                    output_seeds={name: seed.worlds(sweep.worlds) for name, seed in by_output.items()},
                    input_gradients=frames.worlds_of(gradients, sweep.worlds),
                    initial=frames.worlds_of(initial, sweep.worlds),
                    norms=np.zeros(self.plan.segments),
                    retain=retain,
                    clip=clip,
                    on_segment=None if on_segment is None else self._team.guarded(on_segment),
                    unconverged=self._unconverged,
                )
                for sweep in self._sweeps
            ]
            self._prepare(differentiate=True)
            if run.journals:
                self._resume(run, pulls, seeds.checksum(by_state, by_output))
            with bar(self._team, self.plan.segments * len(self._sweeps), "backward", progress) as tick:
                groups = zip(self._sweeps, run.parts, pulls, strict=True)
                sweeps = [sweep.backward(part, pull, tick) for sweep, part, pull in groups]
                if self._team.threads > 1 and len(sweeps) > 1:
                    self._team.run([partial(drive, sweeping) for sweeping in sweeps])
                else:
                    for sweeping in sweeps:
                        drive(sweeping)
            unsolved = convergence.Unsolved()
            for pull in pulls:
                unsolved.add(pull.unsolved)
            unsolved.settle(self._unconverged)
            if self._check:
                self._parameters.check_gradients()
            if not retain:
                run.release()
            return Gradients(
                frames.BlockArrays("initial state", initial, frame=0),
                frames.BlockArrays("input", gradients),
                np.hypot.reduce([pull.norms for pull in pulls], axis=0),
            )

    def _raise_first(self, failures: list[NonFiniteError | None], run: Run) -> None:
        """Raises the failure of the earliest step, if there is one, with the run as far as it came."""
        found = [error for error in failures if error is not None]
        if found:
            error = min(found, key=lambda error: error.step)
            error.run = run
            raise error

    def _check_inputs_of_saved_run(self, parts: list[Part]) -> None:
        """The forward pass of a saved run is not repeated, so nothing else would look at all of its inputs."""
        try:
            for sweep, part in zip(self._sweeps, parts, strict=True):
                sweep.check_inputs(part)
        except StaleInputError as error:
            raise StaleInputError(
                f"a run with other inputs was saved here ({error.args[0].partition(';')[0]}); use those inputs, choose "
                "another directory, or delete it to begin again"
            ) from None

    def _prepare(self, *, differentiate: bool) -> None:
        """Captures before threads start: capture belongs to one thread."""
        if self._team.threads > 1:
            for sweep in self._sweeps:
                sweep.prepare(differentiate=differentiate)

    def _kept(self, kind: str, selection: Selection, fields: Iterable[Field], count: int) -> frames.Blocks:
        """Blocks of `count` frames for the fields to be kept, over the caller's own arrays where they were given."""
        wanted = select(kind, selection, fields)
        if not isinstance(selection, Mapping):
            return self._home.blocks("kept", wanted, count)
        self._home.check_own_array(f"{kind}s")
        return {
            f.name: frames.adopt_target(f"kept {kind} {f.name!r}", selection[f.name], f, count, self.program.device)
            for f in wanted
        }

    def _resume(self, run: Run, pulls: list[Pullback], seeds_checksum: int) -> None:
        """Lets each group of a resumable run go on where it was saved, and save itself after each segment."""
        for sweep, part, pull, journal in zip(self._sweeps, run.parts, pulls, run.journals, strict=False):
            parameters = sweep.segment.program.parameters
            sums = {name: array.grad for name, array in parameters.items() if array.grad is not None}
            sums |= part.feed.sums()
            adjoint = sweep.segment.adjoints.states
            journal.restore_backward(adjoint, pull, sums, seeds_checksum)
            pull.finished = partial(
                journal.commit, adjoint=adjoint, part=part, pull=pull, sums=sums, seeds=seeds_checksum
            )

    def _feeds(self, inputs: Any) -> Callable[[range], Feed]:
        """How each group of worlds gets its inputs."""
        if inputs is not None and not isinstance(inputs, Mapping):
            if not hasattr(inputs, "accumulate"):
                kind = type(inputs).__name__
                raise InputError(f"inputs are a mapping of arrays or have `fill` and `accumulate`; this is a {kind}")
            return lambda worlds: ProviderFeed(inputs, worlds, self._team.guarded)
        values = feeds.adopt_arrays(self.program, inputs or {}, self.plan.steps)
        return lambda worlds: ArrayFeed(frames.worlds_of(values, worlds))

    def _input_gradients(self, run: Run, given: Mapping[str, Any]) -> frames.Blocks:
        """Blocks for the gradients of those inputs that were arrays and are differentiable."""
        wanted = [
            field for field in frames.differentiable(self.program.inputs) if field.name in run.parts[0].feed.names
        ]
        if given:
            self._home.check_own_array("gradients")
        for name in given:
            if name not in [field.name for field in wanted]:
                raise unknown_name("differentiable input array", name, [field.name for field in wanted])
        made = self._home.blocks("gradient", [f for f in wanted if f.name not in given], self.plan.steps)
        for field in wanted:
            if field.name in given:
                what = f"gradient of input {field.name!r}"
                made[field.name] = frames.adopt_target(
                    what, given[field.name], field, self.plan.steps, self.program.device
                )
        return made

    def _try_step(self, part: Part) -> None:
        """Tries the first step of the first rollout against the rules of a program."""
        if self._tried or not self._check:
            return
        sweep = self._sweeps[0]
        part.feed.fill(0, 1, 0, sweep.segment.inputs.fields)
        checks.check_step(sweep.segment.program, part.checkpoints.states, sweep.segment.inputs)
        self._tried = True

    def _check_backward(self, run: Run) -> None:
        run.checkpoints  # noqa: B018  raises if they were released
        if run.plan is not self.plan:
            raise InputError("this run belongs to another tape")
        if not run.differentiable:
            raise InputError("this run was made with differentiate=False; run forward again without it")
        if run.step < self.plan.steps:
            raise InputError(f"this run has taken {run.step} of {self.plan.steps} steps; advance it to the end first")
        self._parameters.compare(run.parameter_checksums)
