"""A whole rollout as one node of torch's graph: initial state, controls and parameters in; trajectories out.

The node owns its parameter values and its checkpoints, so several rollouts may be open before any is differentiated;
slots and graphs are shared between them. The checkpoints live as long as the node does, that is, as long as the graph
or the trajectory's tensors hold it; so `retain_graph` and repeated backward passes work.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
import warp as wp

from warpsim.autograd.entry import recorded
from warpsim.autograd.exchange import (
    block_over,
    on_torch_stream,
    tape_value,
    tensor_over,
    to_torch,
)
from warpsim.autograd.node import Adjoints, Done, Made, Node
from warpsim.autograd.parameters import Parameters, parameter_gradients, sum_worlds
from warpsim.core.driving import Steps
from warpsim.engine.engine import Engine, RolloutSpec
from warpsim.tape import frames
from warpsim.tape.checkpointed import CheckpointedTape
from warpsim.tape.diagnostics import NonFiniteError
from warpsim.tape.program import Field
from warpsim.tape.run import Gradients, Run


class SortedItems(NamedTuple):
    """Something about each of the node's tensors, by name."""

    state: dict[str, Any]
    controls: dict[str, Any]
    parameters: dict[str, Any]
    policy: dict[str, Any]


@dataclass(frozen=True)
class RolloutCall:
    """Everything about a rollout but the tensors it is differentiated by.

    Attributes:
        engine: What runs it; the caller has its turn.
        spec: Which tape.
        state: Differentiable state fields, in the order of their tensors.
        parameters: Parameters in force; their tensors come next.
        weights: Those of `spec.policy`, (n,) or (W, n), last of the tensors; None without a policy.
        fixed: State fields that carry no gradient, (W, …).
        keep_every: Frames of the trajectory are this many steps apart.
        progress: Show a bar.
        clip: Largest norm of a world's state adjoint that is handed from segment to segment; None: the exact gradient.
        show: Makes what the caller gets from the kept frames of states and outputs by name, (frames, W, …) each.
    """

    engine: Engine
    spec: RolloutSpec
    state: tuple[str, ...]
    parameters: Parameters
    fixed: Mapping[str, wp.array]
    weights: torch.Tensor | None = None
    keep_every: int = 1
    progress: bool = False
    clip: float | None = None
    show: Callable[[dict[str, torch.Tensor]], Any] = dict

    def run(self, state: Mapping[str, torch.Tensor], controls: Mapping[str, torch.Tensor]) -> Steps[Any]:
        """Takes all steps, in torch's graph where an input requires a gradient; what `show` makes of them.

        Args:
            state: Initial state by field, (W, …) each.
            controls: By name, (steps, W, …) each, contiguous.

        Raises:
            NonFiniteError: A state is not finite; its `trajectory` is what `show` makes of the frames before.
        """
        self.parameters.prepare(self.engine)
        tensors = (
            *(state[name] for name in self.state),
            *controls.values(),
            *self.parameters.tensors.values(),
            *(() if self.weights is None else (self.weights,)),
        )
        differentiate = recorded(tensors)
        if differentiate:
            self.engine.check_differentiable()
        with torch.no_grad():
            made = yield from self._stepped(self.sort(tensors), differentiate)
        results = Node.apply(Done(self, [made]), *tensors) if differentiate else made.results
        return self.show(dict(zip((*self.state, *self.spec.outputs), results, strict=True)))

    def sort(self, items: Sequence[Any]) -> SortedItems:
        """Items in the order of the node's tensors, by what they belong to and by name."""
        groups, first = [], 0
        policy = () if self.weights is None else ("weights",)
        for names in (self.state, self.spec.controls, self.parameters.tensors, policy):
            groups.append(dict(zip(names, items[first : first + len(names)], strict=True)))
            first += len(names)
        return SortedItems(*groups)

    def _stepped(self, given: SortedItems, differentiate: bool) -> Steps[Made]:
        """Takes all steps: trajectories of the differentiable state fields, then of the outputs.

        Where contacts lack places, it goes on from the last good state with more of them.

        Args:
            given: Initial state, controls, parameters and weights.
            differentiate: Whether a backward pass may follow.
        """
        with on_torch_stream(self.engine.model.device):
            _load(self, given.policy.get("weights"))
            opened = yield from _open(self, given, differentiate)
            while True:
                try:
                    yield partial(opened.tape.advance, opened.run, progress=self.progress)
                    break
                except NonFiniteError as error:
                    if not _goes_on(self, opened, error):
                        opened = yield from _open(self, given, differentiate)
        made, opened.outputs = opened.trajectories(), {}  # results must not be held by their own node
        reported = {f.name for f in opened.tape.program.outputs if not f.differentiable}
        return Made(
            tuple(made.values()),
            read_again=(*given.controls.values(), *given.policy.values()),
            reports=tuple(tensor for name, tensor in made.items() if name in reported),
            kept=opened,
        )

    def backward(
        self, made: Made, tensors: Sequence[torch.Tensor], shapes: Sequence[torch.Size], adjoints: Adjoints
    ) -> list[torch.Tensor | None]:
        """Pulls adjoints of the trajectories back to the tensors.

        Where softened contacts, which the backward pass alone sees, lack places, it begins again with more of them.
        """
        engine, opened = self.engine, made.kept
        named = zip((*self.state, *self.spec.outputs), adjoints, strict=True)
        given = {name: adjoint for name, adjoint in named if adjoint is not None}
        of_states, of_outputs = (_Adjoints(f, given) for f in (opened.tape.program.state, opened.tape.program.outputs))
        with engine.turn, on_torch_stream(engine.model.device):
            _load(self, None if self.weights is None else tensors[-1])
            while True:
                _zero_gradients(self)
                try:
                    gradients = opened.tape.backward(
                        opened.run,
                        state_seeds=of_states.seeds(self.keep_every, first=0),
                        output_seeds=of_outputs.seeds(self.keep_every, first=1),
                        retain=True,
                        accumulate=True,
                        clip=self.clip,
                    )
                    break
                except NonFiniteError as error:
                    engine.make_room(error)
                    opened.tape, opened.run = engine.take_up(self.spec, opened.run)
            observer = engine.observer(self.spec.outputs)
            at_start = of_outputs.frame(0, observer.names)
            through = observer.backward(opened.first, at_start) if at_start else {}
            return _collect(self, gradients, through, shapes)


@dataclass
class _OpenRun:
    """A forward pass on its way or done; gives its checkpoints back to the tape when nobody can ask any more.

    Attributes:
        tape: What runs it.
        run: The run, with its checkpoints.
        first: The initial state by differentiable field, (1, W, …) each, a copy.
        outputs: Kept outputs by name, (frames, W, …) each.
    """

    tape: CheckpointedTape
    run: Run
    first: frames.Blocks
    outputs: dict[str, torch.Tensor]

    def trajectories(self) -> dict[str, torch.Tensor]:
        """Kept frames of states and outputs, (frames, W, …) each."""
        return {**{name: tensor_over(self.run.states.block(name)) for name in self.first}, **self.outputs}

    def __del__(self) -> None:
        self.run.release()


def _open(call: RolloutCall, given: SortedItems, differentiate: bool) -> Steps[_OpenRun]:
    """A rollout before its first step, with the outputs of its initial state in frame 0."""
    engine, spec = call.engine, call.spec
    tape = engine.tape(spec)
    program = tape.program
    types = {f.name: f.dtype for f in (*program.state, *program.inputs)}
    start = {name: tensor.detach().clone() for name, tensor in given.state.items()}
    first = {name: block_over(tensor[None], types[name]) for name, tensor in start.items()}
    outputs = frames.allocate(program.outputs, spec.steps // call.keep_every + 1, program.device)
    observed_first = yield partial(engine.observer(spec.outputs).forward, first)
    for name, observed in observed_first.items():
        outputs[name].copy_from(0, observed, 0, 1)
    shown = {name: tensor_over(block) for name, block in outputs.items()}
    run = tape.start(
        {**{name: tape_value(tensor, types[name]) for name, tensor in start.items()}, **call.fixed},
        {name: tape_value(tensor, types[name]) for name, tensor in given.controls.items()},
        keep_states=call.state,
        keep_outputs={f.name: tape_value(shown[f.name][1:], f.dtype) for f in program.outputs},
        keep_every=call.keep_every,
        differentiate=differentiate,
    )
    return _OpenRun(tape, run, first, shown)


def _goes_on(call: RolloutCall, opened: _OpenRun, error: NonFiniteError) -> bool:
    """Gives a rollout the places for contacts that it lacked.

    Returns:
        False: with more places an output has another shape, so that what was kept of it cannot go on.

    Raises:
        NonFiniteError: It failed for another reason; the error's `trajectory` is what was reached.
    """
    try:
        call.engine.make_room(error)
    except NonFiniteError as final:
        reached = final.run.step // call.keep_every + 1
        final.trajectory = call.show({name: tensor[:reached] for name, tensor in opened.trajectories().items()})
        opened.run.release()
        raise
    shapes = [f.shape for f in opened.tape.program.outputs]
    if [f.shape for f in call.engine.outputs(call.spec)] != shapes:
        return False
    opened.tape, opened.run = call.engine.take_up(call.spec, opened.run)
    return True


def _load(call: RolloutCall, weights: torch.Tensor | None) -> None:
    """Puts the call's parameters and its policy's weights in force."""
    call.engine.load(call.parameters.values)
    if call.spec.policy is not None and weights is not None:
        to_torch(call.engine.network(call.spec.policy).weights).copy_(weights.detach())


def _zero_gradients(call: RolloutCall) -> None:
    call.engine.zero_parameter_gradients()
    if call.spec.policy is not None:
        call.engine.network(call.spec.policy).weights.grad.zero_()


def _collect(
    call: RolloutCall, gradients: Gradients, through: frames.Blocks, shapes: Sequence[torch.Size]
) -> list[torch.Tensor | None]:
    """Gradients in the order of the node's tensors; `through`: of the initial state through its outputs."""
    engine = call.engine
    states = {name: tensor_over(gradients.initial_state.block(name))[0] for name in call.state}
    for name, block in through.items():
        states[name] = states[name] + tensor_over(block)[0]
    parameters = parameter_gradients(engine, call.sort(shapes).parameters)
    found = [
        *(states[name] for name in call.state),
        *(tensor_over(gradients.inputs.block(name)) for name in call.spec.controls),
        *(parameters.get(name) for name in call.parameters.tensors),
    ]
    if call.spec.policy is not None:
        gradient = to_torch(engine.network(call.spec.policy).weights.grad)
        found.append(gradient.clone() if len(shapes[-1]) == 2 else sum_worlds(gradient))  # each world's own, or shared
    return found


class _Adjoints:
    """Adjoints of kept frames as the tape reads them; it copies them into buffers of its own and never writes them."""

    def __init__(self, fields: Sequence[Field], adjoints: Mapping[str, torch.Tensor]) -> None:
        self._dtypes = {f.name: f.dtype for f in fields if f.name in adjoints}
        self._tensors = {name: adjoints[name].contiguous() for name in self._dtypes}

    def seeds(self, every: int, *, first: int) -> dict[str, Any]:
        """As the tape wants them: frames from `first` on, dense, or by step where frames are `every` steps apart."""
        if every == 1:
            return {name: tape_value(tensor[first:], self._dtypes[name]) for name, tensor in self._tensors.items()}
        return {
            name: {
                frame * every - first: tape_value(tensor[frame], self._dtypes[name])
                for frame in range(first, len(tensor))
            }
            for name, tensor in self._tensors.items()
        }

    def frame(self, frame: int, names: Collection[str]) -> frames.Blocks:
        """One frame of those fields that are among `names`."""
        found = {name: tensor[frame : frame + 1] for name, tensor in self._tensors.items() if name in names}
        return {name: block_over(tensor, self._dtypes[name]) for name, tensor in found.items()}
