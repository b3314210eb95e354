"""Closed loops of a simulator: a policy inside the kernels, or in torch between steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import warp as wp

from warpsim.autograd.entry import ordinary_tensors
from warpsim.core.driving import drive
from warpsim.core.errors import InputError
from warpsim.engine.engine import Engine, RolloutSpec
from warpsim.policy.program import closed_loop_fields
from warpsim.sim.attributes.attribute import Attribute
from warpsim.sim.controls import ControlLayout, given_steps
from warpsim.sim.current_state import CurrentState
from warpsim.sim.network_policy import NetworkPolicy
from warpsim.sim.parameters_in_force import ParametersInForce
from warpsim.sim.policy_precision import precision_of
from warpsim.sim.policy_rollout import ClosedLoop, Policy, Timing
from warpsim.sim.rollouts import Rollouts, check_clip
from warpsim.sim.sensor_noise import SensorNoise
from warpsim.sim.start import Start
from warpsim.sim.trajectory import Trajectory
from warpsim.tape.memory import Memory


class ClosedLoops:
    """Runs policies with a simulator's engine."""

    def __init__(
        self,
        engine: Engine,
        layout: ControlLayout,
        state: CurrentState,
        parameters: ParametersInForce,
        rollouts: Rollouts,
        noise: SensorNoise,
    ) -> None:
        """Puts the parts together.

        Args:
            engine: What runs.
            layout: How a policy's answer becomes controls.
            state: Where loops start; observes states and shows them to policies.
            parameters: In force.
            rollouts: Makes calls and trajectories.
            noise: Of measurements.
        """
        self._engine = engine
        self._layout = layout
        self._state = state
        self._parameters = parameters
        self._rollouts = rollouts
        self._noise = noise

    def run(
        self,
        policy: Policy,
        steps: int,
        start: Start,
        parameters: Mapping[str | Attribute, Any] | None,
        outputs: tuple[str, ...],
        timing: Timing,
        *,
        memory: Memory,
        threads: int,
        in_kernels: bool | None,
        clip: float | None,
        precision: torch.dtype | None,
    ) -> Trajectory:
        """Runs a policy where it can run; arguments as in `Simulator.rollout_policy`."""
        inside = isinstance(policy, NetworkPolicy) if in_kernels is None else in_kernels
        if inside and not isinstance(policy, NetworkPolicy):
            raise InputError("only a NetworkPolicy can run in kernels; make one with `sim.network_policy(…)`")
        limited = memory.budget is not None or memory.storage != "device"
        if not inside and (limited or threads != 1 or clip is not None):
            raise InputError(
                "a budget, storage, threads and clip are for policies in kernels, since what a policy in torch takes "
                "is not known beforehand; choose memory=Memory(segment=…, schedule=…)"
            )
        check_clip(clip, memory)
        count = given_steps(None, steps)
        with ordinary_tensors():
            with self._engine.turn:
                used = self._parameters.replaced(parameters)
                first = self._state.first(used, start, parameters, self._layout.names)
                if inside and isinstance(policy, NetworkPolicy):
                    network = self._engine.network(policy.spec(timing.hold, timing.delay))
                    spec = RolloutSpec(count, (), outputs, memory, threads, network.spec)
                    device = self._engine.model.device
                    own = {f.name: wp.zeros(f.shape, dtype=f.dtype, device=device) for f in closed_loop_fields(network)}
                    call = self._rollouts.call(
                        spec, first, used, fixed=own, weights=policy.weights_in_kernels(), clip=clip
                    )
                    return drive(call.run(first, {}))
                observed = self._state.observe(first, used, outputs)
            # without a turn: a policy may do anything, also wait for a thread that uses this simulator
            loop = ClosedLoop(
                self._state.stepper,
                self._layout,
                self._state.show,
                used.parameters,
                self._state.initial.differentiable,
                outputs,
                self._noise,
                precision_of(policy) if precision is None else precision,
            )
            made = loop.run(policy, timing, timing.plan(count, memory), first, observed)
            return self._rollouts.trajectory(made, used)
