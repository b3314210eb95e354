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
    steps: int | None = None,
    controls: Controls | None = None,
    *,
    parameters: Sequence[str] | None = None,
    loss: Callable[[Trajectory], torch.Tensor] | None = None,
    outputs: Sequence[str] | None = None,
    window: int = 10,
    seed: int = 0,
) -> Report:
    """Checks gradients of world 0 against central differences; `sim.gradcheck(…)` calls this.

    A free-motion and a contact window are looked for in the rollout; each is checked with a random linear form of its
    final state, by controls, initial state and parameters. Where gradient and differences disagree although contacts,
    cones, limits and saturations stay the same, the guilty stage is looked for.

    Args:
        sim: What is checked, with its parameters in force and its initial state.
        steps: Length of the rollout; None: that of `controls`, or two seconds.
        controls: As in `Simulator.rollout`.
        parameters: Names of the parameters to check; None: masses, sizes, friction, damping, gains, gravity.
        loss: A function of a trajectory of one world; with it the whole rollout is checked, too.
        outputs: What the loss reads besides the state; None: `sim.outputs`.
        window: Maximum steps of a window.
        seed: Of the random directions.
    """
    shown = sim.outputs if outputs is None else outputs
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
    return gradcheck(subject, window=window, loss=loss, outputs=shown if loss is not None else (), seed=seed)
