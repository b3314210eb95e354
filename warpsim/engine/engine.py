"""One compiled model and what is made from it once: the parameter values in force, programs, tapes, observers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import warp as wp

from warpsim.core.errors import InputError, unknown_name, whole_number
from warpsim.core.kernel_lock import KERNELS, Turn
from warpsim.core.kernels import initialize
from warpsim.coupling.compiled import SceneDerivation, compile_scene
from warpsim.coupling.program import CoupledProgram
from warpsim.coupling.state_observer import StateObserver
from warpsim.engine.contact_room import grown
from warpsim.policy.network import Network
from warpsim.policy.program import ClosedLoopProgram
from warpsim.policy.spec import PolicySpec
from warpsim.rigid.model.model import Model
from warpsim.rigid.step.program import RigidProgram
from warpsim.scene import Scene
from warpsim.tape.budget import parse
from warpsim.tape.checkpointed import CheckpointedTape
from warpsim.tape.convergence import check_choice
from warpsim.tape.diagnostics import NonFiniteError
from warpsim.tape.journal import Resumable
from warpsim.tape.memory import Memory
from warpsim.tape.program import Field, Program
from warpsim.tape.run import Run
from warpsim.tape.schedule import KEPT_BYTES, Plan
from warpsim.tape.segment import Segment

ParameterValues = Mapping[str, wp.array]
"""Values of all authored parameters, (W, n, …) each. The arrays are never written again: a rollout can own them."""

_MOST_TAPES = 8
"""Tapes kept for reuse; the one that was not used for longest goes first."""


@dataclass(frozen=True)
class RolloutSpec:
    """What a tape is made for; equal ones share it.

    Attributes: as in `CheckpointedTape`, and `controls` and `outputs` as in `RigidProgram`; `policy` gives controls in
    closed loop instead.
    """

    steps: int
    controls: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    memory: Memory = Memory()
    threads: int = 1
    policy: PolicySpec | None = None

    def __post_init__(self) -> None:
        whole_number("steps", self.steps)
        whole_number("threads", self.threads)
        if isinstance(self.memory.storage, Resumable):
            raise InputError(
                "Resumable keeps the results of a run in files of its own, and a trajectory is torch's; use "
                '`CheckpointedTape` itself, or storage="disk"'
            )


class Engine:
    """Owns a compiled scene; every rollout and step of a simulator goes through it, one at a time.

    Attributes:
        turn: Held by whoever uses the engine, from the first of its values that are loaded to the last that is read.
        compiled: The scene; another one, over the same parameters, once there were too few places for contacts.
        defaults: The scene's own parameter values.
        unconverged: What gradients do about steps that did not converge.
    """

    @KERNELS.holding
    def __init__(self, scene: Scene, *, worlds: int, device: str | wp.Device, unconverged: str = "raise") -> None:
        """Compiles.

        Args:
            scene: What is simulated.
            worlds: How many copies.
            device: Where.
            unconverged: What gradients do about steps that did not converge, see `CheckpointedTape`.
        """
        initialize()
        self.turn = Turn()
        self.unconverged = check_choice(unconverged)
        self.compiled = compile_scene(scene, worlds=whole_number("worlds", worlds), device=find_device(device))
        self._authored = self.compiled.authored
        self.defaults: ParameterValues = {name: wp.clone(a) for name, a in self._authored.items()}
        self._loaded: dict[str, wp.array] = dict(self.defaults)
        self._current: ParameterValues = self.defaults
        self._derivation = SceneDerivation(self.compiled)
        self._derivation.run()
        self._differentiable: set[str] = set()
        self._tapes: dict[RolloutSpec, CheckpointedTape] = {}
        self._steps: dict[tuple[tuple[str, ...], tuple[str, ...], int], Segment] = {}
        self._observers: dict[tuple[str, ...], StateObserver] = {}
        self._networks: dict[PolicySpec, Network] = {}

    @property
    def model(self) -> Model:
        """The rigid bodies of the scene."""
        return self.compiled.model

    def check_parameter(self, name: str) -> wp.array:
        """The array of an authored parameter, or an error that offers the nearest names."""
        if name not in self._authored:
            raise unknown_name("parameter", name, self._authored)
        return self._authored[name]

    def check_differentiable(self) -> None:
        """Raises if steps keep an authored cap of the solver and so have no gradients."""
        if self.model.options.solver_stop == "authored":
            raise InputError(
                'with iterations="authored" steps may stop before the solver converges, and gradients are those of '
                "converged steps: this simulation is forward only. Leave iterations= out to get gradients, or work "
                "under torch.no_grad()"
            )

    def load(self, values: ParameterValues) -> None:
        """Puts parameter values in force; what is already there is not copied again."""
        if values is self._current:
            return
        changed = [name for name, value in values.items() if self._loaded[name] is not value]
        for name in changed:
            wp.copy(self._authored[name], values[name])
            self._loaded[name] = values[name]
        self._current = values
        if changed:
            self._derivation.run(record=bool(self._differentiable))

    def require_gradients(self, names: Iterable[str]) -> None:
        """Lets parameters carry gradients. Tapes recorded before do not know of them, so they are made anew."""
        new = set(names) - self._differentiable
        if not new:
            return
        self.compiled.require_gradients(sorted(new))
        self._differentiable |= new
        self._tapes.clear()
        self._steps.clear()
        self._observers.clear()
        self._derivation.run(record=True)

    def tape(self, spec: RolloutSpec) -> CheckpointedTape:
        """The tape of a kind of rollout, made when first asked for.

        Others are kept for reuse as long as all of them together fit the budget of this one (without one,
        `KEPT_BYTES`): rollouts of ever other lengths take no more memory than the longest.
        """
        found = self._tapes.pop(spec, None)
        if found is None:
            found = self._make_tape(spec)
            budget = spec.memory.budget
            most = KEPT_BYTES if budget is None else parse(budget, self.model.device)
            while self._tapes and (
                len(self._tapes) >= _MOST_TAPES
                or found.plan.bytes + sum(tape.plan.bytes for tape in self._tapes.values()) > most
            ):
                del self._tapes[next(iter(self._tapes))]
        self._tapes[spec] = found  # the last one used stands last
        return found

    def make_room(self, error: NonFiniteError) -> None:
        """Gives the model places for the contacts that a step lacked; whatever is made from now on has them.

        Tapes and segments that were made before keep working, with the places they have.

        Raises:
            NonFiniteError: The step failed for another reason, or there can be no more places.
        """
        model = grown(self.model, error)
        if model is not self.model:
            self.compiled = replace(self.compiled, model=model)
            self._tapes.clear()
            self._steps.clear()

    def take_up(self, spec: RolloutSpec, run: Run) -> tuple[CheckpointedTape, Run]:
        """Goes on with the run of a tape that had too few places, on one that has more; gives its room back."""
        tape = self._tapes[spec] = self._make_tape(spec, groups=len(run.parts))
        taken = tape.take_up(run)
        run.release()
        return tape, taken

    def outputs(self, spec: RolloutSpec) -> tuple[Field, ...]:
        """What a kind of rollout reports, with the places for contacts that there are now."""
        known = self.compiled.outputs
        return tuple(known[name] for name in spec.outputs)

    def plan(self, spec: RolloutSpec) -> Plan:
        """How a kind of rollout would be cut, without making room for it."""
        return (self._tapes.get(spec) or self._make_tape(spec)).plan

    def _make_tape(self, spec: RolloutSpec, groups: int | None = None) -> CheckpointedTape:
        return CheckpointedTape(
            self._tape_program(spec),
            steps=spec.steps,
            memory=spec.memory,
            threads=spec.threads,
            groups=groups,
            unconverged=self.unconverged,
        )

    def network(self, policy: PolicySpec) -> Network:
        """The weights of a policy that runs in kernels."""
        if policy not in self._networks:
            self._networks[policy] = Network(policy, self.model.worlds, self.model.device)
        return self._networks[policy]

    def step_segment(self, controls: tuple[str, ...], outputs: tuple[str, ...], slots: int = 1) -> Segment:
        """Slots that take single steps, or a few at a time."""
        key = (controls, outputs, slots)
        if key not in self._steps:
            self._steps[key] = Segment(self._program(controls, outputs), slots)
        return self._steps[key]

    def observer(self, outputs: tuple[str, ...]) -> StateObserver:
        """What observes a state outside a step; reports of steps among the outputs are left out."""
        known = self.compiled.observables
        names = tuple(name for name in outputs if name in known)
        if names not in self._observers:
            self._observers[names] = StateObserver(self.compiled, names)
        return self._observers[names]

    def zero_parameter_gradients(self) -> None:
        """Clears the gradients of all parameters, authored and physical."""
        if not self._differentiable:
            return
        for array in (*self._authored.values(), *self.compiled.physical.values()):
            if array.grad is not None:
                array.grad.zero_()

    def parameter_gradients(self, names: Iterable[str]) -> dict[str, wp.array]:
        """Turns the gradients of physical parameters into copies of those of authored ones, (W, n, …).

        Names that do not carry gradients are left out.
        """
        names = [name for name in names if name in self._differentiable]
        if names:
            self._derivation.backward()
        return {name: wp.clone(self._authored[name].grad, requires_grad=False) for name in names}

    def _tape_program(self, spec: RolloutSpec) -> Program:
        if spec.policy is None:
            return self._program(spec.controls, spec.outputs)
        return ClosedLoopProgram(self._program(spec.policy.controls, spec.outputs), self.network(spec.policy))

    def _program(self, controls: tuple[str, ...], outputs: tuple[str, ...]) -> RigidProgram | CoupledProgram:
        return self.compiled.program(controls, outputs)


def find_device(name: str | wp.Device) -> wp.Device:
    """The device of a name.

    Raises:
        InputError: There is none; names those that there are.
    """
    try:
        return wp.get_device(name)
    except (ValueError, RuntimeError, TypeError):
        known = ", ".join(device.alias for device in wp.get_devices())
        raise InputError(f"device={name!r}: there is no such device here; there are: {known}") from None
