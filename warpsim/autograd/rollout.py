"""A whole rollout as one node of torch's graph: initial state, controls and parameters in; trajectories out.

The node owns its parameter values and its checkpoints, so several rollouts may be open before any is differentiated;
slots and graphs are shared between them. The checkpoints live as long as the node does, that is, as long as the graph
or the trajectory's tensors hold it; so `retain_graph` and repeated backward passes work.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
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
from warpsim.autograd.node import Adjoints, Made, apply
from warpsim.autograd.parameters import Parameters, parameter_gradients, sum_worlds
from warpsim.engine.engine import Engine, RolloutSpec
from warpsim.policy.network import Network
from warpsim.tape import rows
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
        engine: What runs it.
        spec: Which tape.
        state: Differentiable state fields, in the order of their tensors.
        parameters: Parameters in force; their tensors come next.
        weights: Those of `spec.policy`, (n,) or (W, n), last of the tensors; None without a policy.
        fixed: State fields that carry no gradient, (W, …).
        keep_every: Rows of the trajectory are this many steps apart.
        progress: Show a bar.
        clip: Largest norm of a world's state adjoint that is handed from segment to segment; None: the exact gradient.
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

    def sort(self, items: Sequence[Any]) -> SortedItems:
        """Items in the order of the node's tensors, by what they belong to and by name."""
        groups, first = [], 0
        policy = () if self.weights is None else ("weights",)
        for names in (self.state, self.spec.controls, self.parameters.tensors, policy):
            groups.append(dict(zip(names, items[first : first + len(names)], strict=True)))
            first += len(names)
        return SortedItems(*groups)

    def forward(self, tensors: Sequence[torch.Tensor]) -> Made:
        """Takes all steps: trajectories of the differentiable state fields, then of the outputs.

        The tensors are the initial state, the controls and the parameters, in the order the call names them.
        """
        finished, made = run_forward(self, tensors, differentiate=True)
        given = self.sort(tensors)
        carried = {f.name for f in finished.tape.program.outputs if not f.differentiable}
        return Made(
            tuple(made.values()),
            read_again=(*given.controls.values(), *given.policy.values()),
            reports=tuple(tensor for name, tensor in made.items() if name in carried),
            kept=finished,
        )

    def backward(
        self, made: Made, tensors: Sequence[torch.Tensor], shapes: Sequence[torch.Size], adjoints: Adjoints
    ) -> list[torch.Tensor | None]:
        """Pulls adjoints of the trajectories back to the tensors."""
        named = dict(zip((*self.state, *self.spec.outputs), adjoints, strict=True))
        with self.engine.turn, on_torch_stream(self.engine.model.device):
            _load(self, None if self.weights is None else tensors[-1])
            return _pull_back(self, made.kept, {n: a for n, a in named.items() if a is not None}, shapes)


class FinishedRun:
    """A forward pass that can be differentiated; gives its checkpoints back to the tape when nobody can ask any more.

    Attributes:
        tape: What ran it.
        run: The run, with its checkpoints.
        first: The initial state by differentiable field, (1, W, …) each, a copy.
    """

    def __init__(self, tape: CheckpointedTape, run: Run, first: rows.Blocks) -> None:
        self.tape = tape
        self.run = run
        self.first = first

    def __del__(self) -> None:
        self.run.release()


def run_forward(
    call: RolloutCall, tensors: Sequence[torch.Tensor], *, differentiate: bool
) -> tuple[FinishedRun, dict[str, torch.Tensor]]:
    """Takes all steps; returns the run and its trajectories by field, states first, (rows, W, …) each.

    The caller has the engine's turn.

    Raises:
        NonFiniteError: A state is not finite; its `trajectory` holds the rows before, by field.
    """
    engine, spec = call.engine, call.spec
    given = call.sort(tensors)
    with on_torch_stream(engine.model.device):
        _load(call, given.policy.get("weights"))
        tape = engine.tape(spec)
        program = tape.program
        types = {f.name: f.dtype for f in (*program.state, *program.inputs)}
        start = {name: tensor.detach().clone() for name, tensor in given.state.items()}
        first = {name: block_over(tensor[None], types[name]) for name, tensor in start.items()}
        outputs = rows.allocate(program.outputs, spec.steps // call.keep_every + 1, program.device)
        for name, observed in engine.observer(spec.outputs).forward(first).items():
            outputs[name].copy_from(0, observed, 0, 1)
        shown = {name: tensor_over(block) for name, block in outputs.items()}

        def kept(run: Run) -> dict[str, torch.Tensor]:
            return {**{name: tensor_over(run.states.block(name)) for name in call.state}, **shown}

        run = tape.start(
            {**{name: tape_value(tensor, types[name]) for name, tensor in start.items()}, **call.fixed},
            {name: tape_value(tensor, types[name]) for name, tensor in given.controls.items()},
            keep_states=call.state,
            keep_outputs={f.name: tape_value(shown[f.name][1:], f.dtype) for f in program.outputs},
            keep_every=call.keep_every,
            differentiate=differentiate,
        )
        try:
            tape, run = _finish(call, tape, run)
        except _OutputsGrewError:
            return run_forward(call, tensors, differentiate=differentiate)
        except NonFiniteError as error:
            reached = error.run.step // call.keep_every + 1
            error.trajectory = {name: tensor[:reached] for name, tensor in kept(error.run).items()}
            error.run.release()
            raise
    return FinishedRun(tape, run, first), kept(run)


def _finish(call: RolloutCall, tape: CheckpointedTape, run: Run) -> tuple[CheckpointedTape, Run]:
    """Takes all steps; where contacts lack places, goes on from the last good state with more of them.

    Raises:
        _OutputsGrewError: With more places an output has another shape, so that what was kept of it cannot go on.
    """
    while True:
        try:
            tape.finish(run, progress=call.progress)
            return tape, run
        except NonFiniteError as error:
            shapes = [f.shape for f in tape.program.outputs]
            call.engine.make_room(error)
            if [f.shape for f in call.engine.outputs(call.spec)] != shapes:
                run.release()
                raise _OutputsGrewError from None
            tape, run = call.engine.take_up(call.spec, run)


class _OutputsGrewError(Exception):
    """The rollout has to begin anew."""


def _load(call: RolloutCall, weights: torch.Tensor | None) -> None:
    """Puts the call's parameters and its policy's weights in force."""
    call.engine.load(call.parameters.values)
    if call.spec.policy is not None and weights is not None:
        to_torch(call.engine.network(call.spec.policy).weights).copy_(weights.detach())


def _pull_back(
    call: RolloutCall, finished: FinishedRun, adjoints: dict[str, torch.Tensor], shapes: Sequence[torch.Size]
) -> list[torch.Tensor | None]:
    """Gradients in the order of the node's tensors."""
    engine, program = call.engine, finished.tape.program
    of_states = _Adjoints(program.state, adjoints)
    of_outputs = _Adjoints(program.outputs, adjoints)
    network = None if call.spec.policy is None else engine.network(call.spec.policy)
    gradients = _differentiate(call, finished, of_states, of_outputs, network)
    states = {name: tensor_over(gradients.initial_state.block(name))[0] for name in call.state}
    observer = engine.observer(call.spec.outputs)
    at_start = of_outputs.row(0, observer.names)
    if at_start:
        for name, block in observer.backward(finished.first, at_start).items():
            states[name] = states[name] + tensor_over(block)[0]
    controls = {name: tensor_over(gradients.inputs.block(name)) for name in gradients.inputs}
    parameters = parameter_gradients(engine, call.sort(shapes).parameters)
    return [
        *(states[name] for name in call.state),
        *(controls[name] for name in call.spec.controls),
        *(parameters.get(name) for name in call.parameters.tensors),
        *(() if network is None else (_weight_gradient(network, shapes[-1]),)),
    ]


def _weight_gradient(network: Network, shape: torch.Size) -> torch.Tensor:
    """Of weights that all worlds share, (n,), or of each world's own, (W, n)."""
    gradient = to_torch(network.weights.grad)
    return gradient.clone() if len(shape) == 2 else sum_worlds(gradient)


def _differentiate(
    call: RolloutCall, finished: FinishedRun, of_states: _Adjoints, of_outputs: _Adjoints, network: Network | None
) -> Gradients:
    """The tape's backward pass; where softened contacts, which it alone sees, lack places, with more of them."""
    while True:
        call.engine.zero_parameter_gradients()
        if network is not None:
            network.weights.grad.zero_()
        try:
            return finished.tape.backward(
                finished.run,
                state_seeds=of_states.seeds(call.keep_every, first=0),
                output_seeds=of_outputs.seeds(call.keep_every, first=1),
                retain=True,
                accumulate=True,
                clip=call.clip,
            )
        except NonFiniteError as error:
            call.engine.make_room(error)
            finished.tape, finished.run = call.engine.take_up(call.spec, finished.run)


class _Adjoints:
    """Adjoints of kept rows as the tape reads them; it copies them into buffers of its own and never writes them."""

    def __init__(self, fields: Sequence[Field], adjoints: Mapping[str, torch.Tensor]) -> None:
        self._dtypes = {f.name: f.dtype for f in fields if f.name in adjoints}
        self._tensors = {name: adjoints[name].contiguous() for name in self._dtypes}

    def seeds(self, every: int, *, first: int) -> dict[str, Any]:
        """As the tape wants them: rows from `first` on, dense, or by step where rows are `every` steps apart."""
        if every == 1:
            return {name: tape_value(tensor[first:], self._dtypes[name]) for name, tensor in self._tensors.items()}
        return {
            name: {
                row * every - first: tape_value(tensor[row], self._dtypes[name]) for row in range(first, len(tensor))
            }
            for name, tensor in self._tensors.items()
        }

    def row(self, row: int, names: Collection[str]) -> rows.Blocks:
        """One row of those fields that are among `names`."""
        found = {name: tensor[row : row + 1] for name, tensor in self._tensors.items() if name in names}
        return {name: block_over(tensor, self._dtypes[name]) for name, tensor in found.items()}


def roll_out(
    call: RolloutCall, state: Mapping[str, torch.Tensor], controls: Mapping[str, torch.Tensor]
) -> dict[str, torch.Tensor]:
    """Trajectories of differentiable states and of outputs, in the graph where an input requires a gradient.

    Args:
        call: What to run.
        state: Initial state by field, (W, …) each.
        controls: By name, (steps, W, …) each, contiguous.
    """
    with call.engine.turn:
        call.parameters.prepare(call.engine)
        tensors = (
            *(state[name] for name in call.state),
            *controls.values(),
            *call.parameters.tensors.values(),
            *(() if call.weights is None else (call.weights,)),
        )
        if recorded(tensors):
            call.engine.check_differentiable()
            return dict(zip((*call.state, *call.spec.outputs), apply(call, tensors), strict=True))
        return run_forward(call, tensors, differentiate=False)[1]
