"""Observing a state as a node of torch's graph: the outputs of a state that no step has led to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from warpsim.autograd.entry import recorded
from warpsim.autograd.exchange import (
    block_over,
    on_torch_stream,
    tensor_over,
    torch_device,
    zeros,
)
from warpsim.autograd.node import Adjoints, Made, Node
from warpsim.autograd.parameters import Parameters, parameter_gradients
from warpsim.coupling.state_observer import StateObserver
from warpsim.engine.engine import Engine
from warpsim.tape.frames import Blocks


@dataclass(frozen=True)
class _Call:
    engine: Engine
    observer: StateObserver
    parameters: Parameters

    def forward(self, tensors: Sequence[torch.Tensor]) -> Made:
        """The observer's outputs, (W, …) each; tensors are the fields it reads, then the parameters."""
        seen = tuple(tensors[: len(self.observer.state_dtypes)])
        return Made(_outputs(self, seen), read_again=seen)

    def backward(
        self, made: Made, tensors: Sequence[torch.Tensor], shapes: Sequence[torch.Size], adjoints: Adjoints
    ) -> list[torch.Tensor | None]:
        """Adjoints of the fields and parameters."""
        engine, observer = self.engine, self.observer
        given = {name: a for name, a in zip(observer.names, adjoints, strict=True) if a is not None}
        with engine.turn, on_torch_stream(engine.model.device):
            engine.load(self.parameters.values)
            engine.zero_parameter_gradients()
            seeds = {n: block_over(a.contiguous()[None], observer.output_dtypes[n]) for n, a in given.items()}
            pulled = observer.backward(_state(tensors, observer), seeds)
            states = [tensor_over(pulled[name])[0].clone() for name in observer.state_dtypes]
            wanted = dict(zip(self.parameters.tensors, shapes[len(states) :], strict=True))
            by_parameter = parameter_gradients(engine, wanted)
        return [*states, *(by_parameter.get(name) for name in wanted)]


def _state(tensors: Sequence[torch.Tensor], observer: StateObserver) -> Blocks:
    fields = zip(observer.state_dtypes.items(), tensors, strict=True)
    return {name: block_over(tensor[None], dtype) for (name, dtype), tensor in fields}


def _outputs(call: _Call, state: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    with on_torch_stream(call.engine.model.device):
        call.engine.load(call.parameters.values)
        made = call.observer.forward(_state(state, call.observer))
        return tuple(tensor_over(made[name])[0].clone() for name in call.observer.names)


def observe_state(
    engine: Engine, parameters: Parameters, state: Mapping[str, torch.Tensor], outputs: Sequence[str]
) -> dict[str, torch.Tensor]:
    """Outputs of a state by name; reports of a step, which there was none, are zero.

    Args:
        engine: Whose model is observed.
        parameters: In force.
        state: By field, (W, …) each, contiguous.
        outputs: Names, from `CompiledScene.outputs`.
    """
    with engine.turn:
        call = _Call(engine, engine.observer(tuple(outputs)), parameters)
        seen = tuple(state[name] for name in call.observer.state_dtypes)
        tensors = (*seen, *parameters.tensors.values())
        made = Node.apply(call, *tensors) if recorded(tensors) else _outputs(call, seen)
    found = dict(zip(call.observer.names, made, strict=True))
    fields, device = engine.compiled.outputs, torch_device(engine.model.device)
    return {name: found[name] if name in found else zeros(fields[name], device) for name in outputs}
