"""The check of a simulator as it stands: its scene, parameters in force and initial state."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from warpsim.check.gradcheck.check import Subject, default_parameters, gradcheck
from warpsim.check.gradcheck.probe import Point
from warpsim.check.gradcheck.report import Report
from warpsim.sim.controls import Controls, given_steps
from warpsim.sim.simulator import Simulator
from warpsim.sim.trajectory import Trajectory


def check_simulator(
    sim: Simulator,
    steps: int | None,
    controls: Controls | None,
    *,
    parameters: Sequence[str] | None,
    loss: Callable[[Trajectory], torch.Tensor] | None,
    outputs: Sequence[str],
    window: int,
    seed: int,
) -> Report:
    """Checks gradients of world 0; arguments as in `Simulator.gradcheck`."""
    if steps is None and controls is None:
        steps = max(1, round(2.0 / sim.timestep))
    count = given_steps(controls, steps)
    names = default_parameters(sim.compiled) if parameters is None else tuple(parameters)
    first = sim.initial_state()
    point = Point(
        {name: first[name][0].detach() for name in sim.state_names},
        {name: tensor[:, 0].detach() for name, tensor in sim.all_controls(count, controls).items()},
        {name: sim.parameter(name)[0] for name in sorted({*names, *sim.changed_parameters})},
    )
    subject = Subject(sim.scene, sim.source, sim.model.device, point, names)
    return gradcheck(subject, window=window, loss=loss, outputs=outputs if loss is not None else (), seed=seed)
