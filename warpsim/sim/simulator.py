"""`Simulator`: a scene ready to run, the object users hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import warp as wp

from warpsim.autograd.entry import in_turn, not_compiled, ordinary_tensors, refuse_transforms
from warpsim.autograd.exchange import to_warp
from warpsim.autograd.rollout import RolloutCall
from warpsim.core.errors import InputError
from warpsim.core.notebook import facts_html, folded_page_html
from warpsim.core.registry import provided
from warpsim.engine.engine import ParameterValues, RolloutSpec
from warpsim.io.load import ledger_told
from warpsim.policy.network import Network
from warpsim.policy.program import closed_loop_fields
from warpsim.scene import Scene
from warpsim.sim.attributes.attribute import Attribute
from warpsim.sim.controls import Controls, given_steps
from warpsim.sim.draws import Draws
from warpsim.sim.initial_state import StateTensors
from warpsim.sim.jacobians import Linearization, Linearizer
from warpsim.sim.network_policy import NetworkPolicy, make_network_policy
from warpsim.sim.parameter_input import InForce
from warpsim.sim.policy_precision import precision_of
from warpsim.sim.policy_rollout import ClosedLoop, Policy, Timing
from warpsim.sim.randomization import Randomization
from warpsim.sim.saved_state import SavedState
from warpsim.sim.stepping import Start, Stepping, check_clip, given_fields, timestep_of
from warpsim.sim.trajectory import Trajectory
from warpsim.view.page import page_html


class Simulator(Stepping):
    """Steps and differentiates a scene in several independent worlds.

    Sizes: nq coordinates, nv dofs, `control_size` numbers of control, W worlds. Everything is SI and radians;
    quaternions are (w, x, y, z); see `warpsim.scene` for the meaning of q and qd.

    `reset` sets the state from which steps and rollouts start; until then it is the scene's own. `step` advances the
    current state; rollouts leave it alone, so that each starts from the same.

    Attributes:
        scene: The description that was compiled.
        outputs: What states and trajectories show besides q and qd, unless a call asks for others.
    """

    def _repr_html_(self) -> str:
        facts = {
            "bodies": len(self.body_names) - 1,
            "dofs": self.nv,
            "controls": f"{' + '.join(self.control_names)} ({self.control_size})",
            "worlds": f"{self.worlds} on {self.device}",
            "time step": f"{self.timestep:g} s",
        }
        poses = self._observe(self._state, self._in_force.parameters, ("body_position", "body_rotation"))
        shown = {name: tensor[None] for name, tensor in {**self._state, **poses}.items()}
        page = Trajectory(self.model, self._source, shown, 0.0).page()
        return facts_html(f"Simulator of {self.scene.name}", facts) + folded_page_html(
            page_html(page), "View the state"
        )

    def with_worlds(self, worlds: int, *, controls: Sequence[str] | None = None) -> Simulator:
        """Another simulator of the same source, with its own parameters and state, for another number of worlds.

        Args:
            worlds: How many.
            controls: As in the constructor; None: as here.
        """
        chosen = self.control_names if controls is None else controls
        source = self.scene if self.path is None else self.path
        with ledger_told():
            return Simulator(source, **{**self._arguments, "worlds": worlds, "controls": chosen})

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles and copies: what it was made from, parameters in force and state; out of torch's graph."""
        source = self.scene if self.path is None else self.path.absolute()
        return _make, (type(self), source, self._arguments), SavedState.of(self)

    def __setstate__(self, saved: SavedState) -> None:
        saved.restore(self)

    @property
    def _arguments(self) -> dict[str, Any]:
        """How it was made; the device by its name, which means the same in another process."""
        return {
            "worlds": self.worlds,
            "device": self.model.device.alias,
            "controls": self.control_names,
            "outputs": self.outputs,
            **self._choices,
        }

    @in_turn
    def draw(self, distributions: Mapping[str | Attribute, Randomization], *, seed: int) -> dict[str | Attribute, Any]:
        """Values that differ from world to world, for `parameters=`, `reset` and rollouts.

        World k's numbers depend on the seed, the name and k alone. Values carry gradients to their base values.

        Args:
            distributions: By parameter array, USD attribute (handle or "/prim.attribute"), or part of the initial
                state: "q" (moved along its dofs), "qd", "activation", "matter.field". A base that is not given is the
                scene's own value, whatever is in force.
            seed: Another one gives other numbers.

        Returns:
            Under the same keys, values of all worlds, (W, …) each.
        """
        draws = Draws(self.compiled, self._initial, self._engine.defaults)
        return {
            key: draws.attribute(self._input.attributes.handle(key) if isinstance(key, str) else key, given, seed)
            if isinstance(key, Attribute) or key.startswith("/")
            else draws.named(key, given, seed)
            for key, given in distributions.items()
        }

    @not_compiled
    def rollout_policy(
        self,
        policy: Policy,
        steps: int,
        *,
        start: Start | None = None,
        q: Any = None,
        qd: Any = None,
        activation: Any = None,
        parameters: Mapping[str | Attribute, Any] | None = None,
        outputs: Sequence[str] | None = None,
        hold: int = 1,
        delay: int = 0,
        segment: int | None = None,
        memory_budget: int | float | str | None = None,
        threads: int = 1,
        in_kernels: bool | None = None,
        clip: float | None = None,
        precision: torch.dtype | None = None,
    ) -> Trajectory:
        """Simulates in closed loop with a policy, with gradients through policy and physics.

        Between segments only states are kept: the backward pass runs each segment again, policy included.

        A `NetworkPolicy` (see `network_policy`) runs inside the kernels of the captured segment, at the speed of an
        open loop; any other policy runs in torch, once per `hold`.

        Args:
            policy: Maps the observed state (q, qd and outputs, (W, …) each) to controls (W, control_size), in any
                precision. Its answers are compared when a segment is run again: it may have no memory unless `segment`
                is N or more, and its weights may not change before the backward pass. Random numbers of torch are
                repeated.
            steps: N.
            start: As in `rollout`, like `q`, `qd`, `activation` and `parameters`.
            q: Initial coordinates.
            qd: Initial velocities.
            activation: Initial activations.
            parameters: Values by name, handle or path.
            outputs: What the policy sees, and the trajectory keeps, besides the state.
            hold: Steps for which each control is held.
            delay: Steps after which a control acts; until then controls are zero.
            segment: Steps that are differentiated at a time, rounded up to whole holds; None: the square root of N.
                In torch, with N or more the policy runs once and its activations are kept.
            memory_budget: In kernels: as in `rollout`.
            threads: In kernels: CPU threads that share the worlds.
            in_kernels: False runs a `NetworkPolicy` in torch too, with the same numbers to rounding.
            clip: In kernels: as in `rollout`.
            precision: In torch: the type of what the policy is shown; None: that of the weights of the policy, or of
                the torch modules it names where it is a function, else the simulator's.

        Returns:
            The trajectory, N + 1 rows.

        Raises:
            StaleInputError: From the backward pass: the policy answered otherwise than in the forward pass.
        """
        refuse_transforms()
        timing = Timing(hold, delay, segment)
        if in_kernels is None:
            in_kernels = isinstance(policy, NetworkPolicy)
        if in_kernels and not isinstance(policy, NetworkPolicy):
            raise InputError("only a NetworkPolicy can run in kernels; make one with `sim.network_policy(…)`")
        if not in_kernels and (memory_budget is not None or threads != 1 or clip is not None):
            raise InputError("memory_budget, threads and clip are for policies in kernels; in torch, choose segment=")
        check_clip(clip, segment)
        shown = self.outputs if outputs is None else self._check_outputs(outputs)
        count = given_steps(None, steps)
        with self._engine.turn, ordinary_tensors():
            in_force = self._input.replaced(self._in_force, parameters)
            given = given_fields(q=q, qd=qd, activation=activation)
            first = self._first(in_force, start, given, parameters, self.control_names)
            if in_kernels and isinstance(policy, NetworkPolicy):
                network = self._engine.network(policy.spec(hold, delay))
                spec = RolloutSpec(count, (), shown, memory_budget, segment, None, threads, network.spec)
                return self._closed_loop(policy, network, spec, first, in_force, clip)
            used = in_force.parameters
            observed = self._observe(first, used, shown)
        # without a turn: a policy may do anything, also wait for a thread that uses this simulator
        kept = self._initial.differentiable
        seen = precision_of(policy) if precision is None else precision
        loop = ClosedLoop(self._stepper, self._controls, self._show, used, kept, shown, self._noise, seen)
        with ordinary_tensors():
            made = loop.run(policy, timing, count, first, observed)
        return Trajectory(self.model, self._source, made, timestep_of(used), in_force)

    def network_policy(
        self,
        *,
        hidden: Sequence[int] = (32, 32),
        activation: str = "tanh",
        senses: Sequence[str] | None = None,
        position: Sequence[str] | None = None,
        angle: Sequence[str] | None = None,
        velocity: Sequence[str] | None = None,
        velocity_scale: float = 1.0,
        seed: int = 0,
    ) -> NetworkPolicy:
        """A small network from what the robot senses to this simulator's controls, for `rollout_policy`.

        Args:
            hidden: Widths of the hidden layers.
            activation: "tanh", "relu" or "elu".
            senses: What it sees, by name: "height", "up", "rotation", "base_velocity", "local_velocity" and
                "angular_velocity" of free bodies, "joint_position" and "joint_velocity" of all other joints; None:
                coordinates and velocities as the next three say.
            position: Joints whose coordinates it sees as they are; None: those not in `angle`.
            angle: Hinges of which it sees sine and cosine; None: those without limits.
            velocity: Joints whose velocities it sees; None: all.
            velocity_scale: Factor of the velocities.
            seed: Of the initial weights.
        """
        return make_network_policy(
            self.model,
            self._controls,
            hidden=hidden,
            activation=activation,
            senses=senses,
            position=position,
            angle=angle,
            velocity=velocity,
            velocity_scale=velocity_scale,
            seed=seed,
        )

    def _closed_loop(
        self,
        policy: NetworkPolicy,
        network: Network,
        spec: RolloutSpec,
        first: StateTensors,
        used: InForce,
        clip: float | None,
    ) -> Trajectory:
        """A rollout with the policy in its kernels."""
        varied = self._initial.differentiable
        fixed = {n: to_warp(t, self._initial.dtypes[n]) for n, t in first.items() if n not in varied}
        for f in closed_loop_fields(network):
            fixed[f.name] = wp.zeros(f.shape, dtype=f.dtype, device=self.model.device)
        call = RolloutCall(
            self._engine, spec, varied, used.parameters, fixed, weights=policy.weights_in_kernels(), clip=clip
        )
        return self._roll_out(call, first, {}, used)

    @in_turn
    def jacobians(self, trajectory: Trajectory, controls: Controls | None = None) -> Linearization:
        """A and B of every step of a trajectory, in MuJoCo's tangent space of 2·nv + na numbers; for iLQR and analysis.

        Args:
            trajectory: From a rollout of this simulator with `keep_every=1`, N + 1 rows. The parameters are those it
                was made with, whatever is in force now.
            controls: What it was made with, (N, W, control_size), (N, control_size) or by name; None: the defaults.

        Returns:
            A (N, W, n, n) and B (N, W, n, control_size), not in torch's graph.
        """
        self._engine.check_differentiable()
        values = self._made_with(trajectory)
        steps = len(trajectory.times) - 1
        given = self._default_controls(steps, values) if controls is None else self._controls.split(controls, steps)
        if set(given) != set(self.control_names):
            raise InputError(f"give all of the controls {', '.join(self.control_names)}; got {', '.join(given)}")
        if self._linearizer is None:
            self._linearizer = Linearizer(self.scene, self._engine, self.control_names)
        state = {name: trajectory[name][:-1] for name in self._initial.differentiable}
        return self._linearizer.run(state, given, values)

    def _made_with(self, trajectory: Trajectory) -> ParameterValues:
        """The parameters of a trajectory of this simulator, each of whose steps was kept."""
        made = trajectory.made_with
        # its model may have had room for fewer contacts
        if made is None or trajectory.model is None or trajectory.model.layout is not self.model.layout:
            raise InputError(
                "this trajectory was made by another simulator, or saved and loaded, so that its parameters are not "
                "known here; roll out again with this one"
            )
        apart, timestep = trajectory.times[1:2], timestep_of(made.parameters)
        if not len(apart) or abs(apart[0] - timestep) > 1e-6 * timestep:
            raise InputError(f"the rows of the trajectory are not its steps, of {timestep:g} s; use keep_every=1")
        return made.parameters.values

    def gradcheck(
        self,
        steps: int | None = None,
        controls: Controls | None = None,
        *,
        parameters: Sequence[str] | None = None,
        loss: Callable[[Trajectory], torch.Tensor] | None = None,
        outputs: Sequence[str] | None = None,
        window: int = 10,
        seed: int = 0,
    ) -> Any:
        """Checks gradients of world 0 against central differences; print the report, or ask it whether it is `ok`.

        A free-motion and a contact window are looked for in the rollout; each is checked with a random linear form of
        its final state, by controls, initial state and parameters. Where gradient and differences disagree although
        contacts, cones, limits and saturations stay the same, the guilty stage is looked for.

        Args:
            steps: Length of the rollout; None: that of `controls`, or two seconds.
            controls: As in `rollout`.
            parameters: Names of the parameters to check; None: masses, sizes, friction, damping, gains, gravity.
            loss: A function of a trajectory of one world; with it the whole rollout is checked, too.
            outputs: What the loss reads besides the state; None: `self.outputs`.
            window: Most steps of a window.
            seed: Of the random directions.

        Returns:
            A `warpsim.check.gradcheck.Report`.
        """
        self._engine.check_differentiable()
        shown = self.outputs if outputs is None else self._check_outputs(outputs)
        return provided("gradcheck")(
            self, steps, controls, parameters=parameters, loss=loss, outputs=shown, window=window, seed=seed
        )


def _make(kind: type[Simulator], source: Scene | Path, arguments: dict[str, Any]) -> Simulator:
    return kind(source, **arguments)
