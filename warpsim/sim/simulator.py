"""`Simulator`: a scene ready to run, the object users hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Unpack

import torch
import warp as wp

from warpsim.autograd.entry import in_turn, not_compiled, refuse_transforms
from warpsim.autograd.exchange import torch_device, torch_real
from warpsim.core.driving import drive
from warpsim.core.errors import whole_number
from warpsim.core.registry import provided
from warpsim.coupling.compiled import CompiledScene
from warpsim.engine.engine import Engine, RolloutSpec
from warpsim.io.load import SceneSource, ledger_told, source_path
from warpsim.rigid.model.model import Model
from warpsim.sim.attributes.attribute import Attribute
from warpsim.sim.closed_loops import ClosedLoops
from warpsim.sim.contents import Contents
from warpsim.sim.control_names import default_controls
from warpsim.sim.controls import ControlLayout, Controls, given_steps
from warpsim.sim.current_state import CurrentState
from warpsim.sim.delegation import delegated
from warpsim.sim.initial_state import InitialState
from warpsim.sim.jacobians import Jacobians
from warpsim.sim.network_policy import NetworkPolicy, make_network_policy
from warpsim.sim.notebook import simulator_html
from warpsim.sim.options import SimulatorOptions, read_scene
from warpsim.sim.parameters_in_force import ParametersInForce
from warpsim.sim.policy_rollout import Policy, Timing
from warpsim.sim.rollouts import Rollouts, check_clip
from warpsim.sim.saved_state import SavedState
from warpsim.sim.sensor_noise import SensorNoise
from warpsim.sim.start import StartLike, start_of
from warpsim.sim.trajectory import Observed, Source, Trajectory
from warpsim.tape.memory import MemoryLike, memory_of
from warpsim.tape.schedule import Plan

DEFAULT_OUTPUTS = ("body_position", "body_rotation")


class Simulator:
    """Steps and differentiates a scene in several independent worlds.

    Everything is SI and radians; quaternions are (w, x, y, z); see `warpsim.scene` for the meaning of q and qd.

    `reset` sets the state from which steps and rollouts start; until then it is the scene's own. `step` advances the
    current state; rollouts leave it alone, so that each starts from the same.

    Attributes:
        scene: The description that was compiled.
        source: The scene and the file it was read from, if any.
        path: That file; None: it was made from a `Scene`.
        device: Where tensors live.
        torch_dtype: Of all real tensors: `torch.float64`, or `torch.float32` under `WARPSIM_PRECISION=float32`.
        worlds: W, independent copies that are stepped together.
        unconverged: What gradients do about steps that did not converge, "raise" or "warn".
        nq: Length of q.
        nv: Length of qd: degrees of freedom.
        outputs: What states and trajectories show besides q and qd, unless a call asks for others.
        output_names: Outputs that can be asked for.
        state_names: Fields of the state that carry gradients: "q", "qd", "activation", "matter.field" of other matters.
        parameter_names: Parameters that can be set and differentiated, "group.field".
        control_names: The controls a step takes, in the order in which one tensor holds them.
        control_size: Numbers of control per world and step.
        body_names: Bodies in the order of outputs and of "body.…" parameters; [0] is the world, named "".
        joint_names: Joints in the order of q.
        dof_names: One name per dof, in the order of qd.
        actuator_names: Actuators in the order of the control "actuator".
        drive_names: Drives in the order of the control "drive_target".
        sensor_names: Sensors in the order of the output "sensors".
    """

    def __init__(
        self,
        source: SceneSource,
        *,
        worlds: int = 1,
        device: str | wp.Device = "cpu",
        controls: Sequence[str] | None = None,
        outputs: Sequence[str] = DEFAULT_OUTPUTS,
        **options: Unpack[SimulatorOptions],
    ) -> None:
        """Loads and compiles.

        Args:
            source: A USD, MJCF or URDF file, MJCF text, a `mujoco.MjModel` or `mujoco.MjSpec`, or a `Scene`.
            worlds: Independent copies that are stepped together.
            device: Warp device, "cpu" or "cuda:0".
            controls: What a control is made of, in this order: any of "actuator" (actuator inputs), "drive_target" (rad
                or m), "drive_velocity" (rad/s or m/s), "joint_force" (N·m or N per dof), "wrench" (per body: force,
                torque at the center of mass, world axes). By default actuator inputs if there are actuators, else drive
                targets if there are drives, else joint forces. What is not chosen stays at zero, drive targets as in
                the scene.
            outputs: From `output_names`.
            **options: `strict`, `keyframe`, `sensor_seed`, `impacts`, `contact_softening`, `softening_pass`,
                `max_contacts`, `iterations`, `unconverged`: see `SimulatorOptions`.
        """
        self.scene, self._options = read_scene(source, options), options
        self.source, self.path = Source(self.scene, source_path(source)), source_path(source)
        self.unconverged = options.get("unconverged", "raise")
        self._engine = engine = Engine(self.scene, worlds=worlds, device=device, unconverged=self.unconverged)
        compiled = engine.compiled
        self._controls = ControlLayout(compiled, default_controls(compiled) if controls is None else controls)
        self._contents = contents = Contents(engine, self._controls)
        noise, initial = SensorNoise(compiled.model, options.get("sensor_seed")), InitialState(compiled)
        self._parameters = ParametersInForce(engine, self.path, initial)
        self._current = CurrentState(engine, initial, self._parameters, noise)
        self._rollouts = Rollouts(engine, self._controls, self._current, self._parameters, noise, self.source)
        self._loops = ClosedLoops(engine, self._controls, self._current, self._parameters, self._rollouts, noise)
        self._jacobians = Jacobians(self.scene, engine, self._controls, self._rollouts)
        self.device, self.torch_dtype = torch_device(compiled.device), torch_real
        self.worlds, self.nq, self.nv = contents.worlds, contents.nq, contents.nv
        self.outputs, self.output_names = contents.check_outputs(outputs), contents.output_names
        self.state_names, self.parameter_names = contents.state_names, contents.parameter_names
        self.control_names, self.control_size = contents.control_names, contents.control_size
        self.body_names, self.joint_names = contents.body_names, contents.joint_names
        self.dof_names = contents.dof_names
        self.actuator_names, self.drive_names = contents.actuator_names, contents.drive_names
        self.sensor_names = contents.sensor_names

    def __repr__(self) -> str:
        controls = " + ".join(self.control_names)
        return (
            f"Simulator({self.scene.name!r}: {len(self.body_names) - 1} bodies, {self.nv} dofs, control {controls} "
            f"({self.control_size}), {self.worlds} world(s) on {self.device})"
        )

    def _repr_html_(self) -> str:
        return simulator_html(self, self._rollouts.still(self._current.values))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles and copies: what it was made from, parameters in force and state; out of torch's graph."""
        source = self.scene if self.path is None else self.path.absolute()
        with self._engine.turn:
            saved = SavedState.of(self._parameters, self._current, self._engine.defaults)
        return _make, (type(self), source, self._arguments), saved

    def __setstate__(self, saved: SavedState) -> None:
        saved.restore(self._parameters, self._current, self._engine.defaults, str(self.path or self.scene.name))

    @property
    def _arguments(self) -> dict[str, Any]:
        """How it was made; the device by its name, which means the same in another process."""
        made: dict[str, Any] = {"worlds": self.worlds, "device": self.model.device.alias, "outputs": self.outputs}
        return {**made, "controls": self.control_names, **self._options}

    @in_turn
    def observe(self, outputs: Sequence[str] | None = None) -> Observed:
        """The current state with outputs that belong to a state: poses, energies, momenta; not those of a step.

        Args:
            outputs: What to show; None: `self.outputs`.
        """
        now = self._current.values
        return self._current.show(now, self._current.observe(now, self._parameters.current, self._shown(outputs)))

    def viewer(self, **choices: Any) -> Any:
        """Opens a live view in the browser (extra: `pip install warpsim[live]`); see `warpsim.sim.live.open_viewer`."""
        return provided("viewer")(self, **choices)

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

    @property
    def model(self) -> Model:
        """The compiled bodies; when contacts need more places others, over the same parameters."""
        return self._engine.model

    @property
    def compiled(self) -> CompiledScene:
        """The compiled scene: bodies and other matters, as named fields."""
        return self._engine.compiled

    @property
    def timestep(self) -> float:
        """Seconds per step, of world 0."""
        return self._parameters.timestep

    @property
    def time(self) -> float:
        """Seconds stepped since the last full reset."""
        return self._current.steps * self.timestep

    @property
    def state(self) -> Observed:
        """A copy of the current state: q (W, nq), qd (W, nv) and what else the next step reads; `reset` sets it."""
        return self._current.show(self._current.values, {})

    @property
    def changed_parameters(self) -> frozenset[str]:
        """Names of the parameter arrays whose values in force are not the scene's own."""
        return self._parameters.changed

    body = delegated("_contents", Contents.body)
    joint = delegated("_contents", Contents.joint)
    dof = delegated("_contents", Contents.dof)
    actuator = delegated("_contents", Contents.actuator)
    drive = delegated("_contents", Contents.drive)
    control_slice = delegated("_contents", Contents.control_slice)
    attribute = delegated("_parameters", ParametersInForce.attribute)
    parameter = delegated("_parameters", ParametersInForce.parameter)
    set_parameters = delegated("_parameters", ParametersInForce.set_parameters)
    draw = delegated("_parameters", ParametersInForce.draw)
    all_controls = delegated("_rollouts", Rollouts.all_controls)
    jacobians = delegated("_jacobians", Jacobians.jacobians)

    @in_turn
    def use_parameters_of(self, other: Simulator) -> None:
        """Puts the values in force in world 0 of another simulator of the same scene in force in all worlds here."""
        self._parameters.take_from(other._parameters)

    @in_turn
    def initial_state(self, *, start: StartLike = None, q: Any = None, qd: Any = None) -> Observed:
        """The state a rollout with these arguments starts from."""
        return self._current.show(self._current.first(self._parameters.current, start_of(start, q, qd)), {})

    @in_turn
    def reset(self, *, worlds: Any = None, start: StartLike = None, q: Any = None, qd: Any = None) -> Observed:
        """Sets the current state.

        Args:
            worlds: Which worlds: a (W,) mask or a list of indices; None: all. The others keep their state.
            start: State, fields by name, e.g. {"net.x": …}, or a `Start` with noise; what is left open is the scene's.
            q: (nq,) or (W, nq), instead of that of `start`.
            qd: (nv,) or (W, nv), likewise.

        Returns:
            The current state and its outputs, in torch's graph where the fields given require gradients.
        """
        return self._current.reset(worlds, start_of(start, q, qd), self.outputs)

    @in_turn
    def step(self, controls: Controls | None = None, *, outputs: Sequence[str] | None = None) -> Observed:
        """Advances the current state by one time step.

        Args:
            controls: (W, control_size), (control_size,), or by name; None: zero, drive targets as in the scene.
            outputs: What to show of the state reached; None: `self.outputs`.

        Returns:
            The state reached and its outputs. Each step is one node of torch's graph that keeps its state and control;
            `rollout` gives the same gradients in less time and memory.
        """
        given = {} if controls is None else self._controls.split(controls, None)
        return self._current.step(given, self._shown(outputs))

    @in_turn
    def rollout(
        self,
        steps: int | None = None,
        controls: Controls | None = None,
        *,
        start: StartLike = None,
        q: Any = None,
        qd: Any = None,
        parameters: Mapping[str | Attribute, Any] | None = None,
        outputs: Sequence[str] | None = None,
        keep_every: int = 1,
        memory: MemoryLike = None,
        threads: int = 1,
        progress: bool = False,
        clip: float | None = None,
    ) -> Trajectory:
        """Simulates many steps as one node of torch's graph, differentiable within a memory budget.

        Tensors of the right type, device and layout are read in place; others are cast or copied, and gradients come
        back in the type they were given in. Inputs must not be changed in place before the backward pass.

        Args:
            steps: N; None: the length of `controls`.
            controls: (N, W, control_size), or (N, control_size) for all worlds alike, or by name (N, W, …); None: zero,
                drive targets as in the scene.
            start: State to start from, e.g. `sim.state` to go on from where steps have led; some of its fields by name,
                e.g. {"activation": …}; or a `Start`. None: that of the last reset.
            q: Initial coordinates, (nq,) or (W, nq), instead of those of `start`.
            qd: Initial velocities, (nv,) or (W, nv), likewise.
            parameters: Values for this rollout only, over those in force: arrays by name, USD attributes by handle or
                path, as in `set_parameters`. What attributes give the initial state yields to a state that is given.
            outputs: What to show besides the state; None: `self.outputs`.
            keep_every: Distance of the trajectory's frames, in steps.
            memory: Maximum for checkpoints and intermediates, e.g. "512MB" or "50%" of what is free; or a `Memory`.
            threads: CPU threads that share the worlds.
            progress: Show a bar.
            clip: Largest norm of a world's state adjoint that is handed from segment to segment of the backward pass
                (give `memory=Memory(segment=…)`, too); keeps a few wild worlds from drowning the others. None: exact.

        Returns:
            The trajectory, N // keep_every + 1 frames; frame 0 is the initial state.

        Raises:
            SimulationError: A state is not finite; the error's `trajectory` holds the frames before.
        """
        room = memory_of(memory)
        check_clip(clip, room)
        whole_number("keep_every", keep_every)
        count = given_steps(controls, steps)
        given = {} if controls is None else self._controls.split(controls, count)
        used = self._parameters.replaced(parameters)
        first = self._current.first(used, start_of(start, q, qd), parameters, tuple(given))
        spec = RolloutSpec(count, tuple(given), self._shown(outputs), room, threads)
        call = self._rollouts.call(spec, first, used, keep_every=keep_every, progress=progress, clip=clip)
        return drive(call.run(first, given))

    @in_turn
    def plan(self, steps: int, *, memory: MemoryLike = None, threads: int = 1) -> Plan:
        """How a differentiated rollout of this length would be cut, and the memory it would take; print it."""
        return self._engine.plan(RolloutSpec(steps, self.control_names, self.outputs, memory_of(memory), threads))

    @not_compiled
    def rollout_policy(
        self,
        policy: Policy,
        steps: int,
        *,
        start: StartLike = None,
        q: Any = None,
        qd: Any = None,
        parameters: Mapping[str | Attribute, Any] | None = None,
        outputs: Sequence[str] | None = None,
        hold: int = 1,
        delay: int = 0,
        memory: MemoryLike = None,
        threads: int = 1,
        in_kernels: bool | None = None,
        clip: float | None = None,
        precision: torch.dtype | None = None,
    ) -> Trajectory:
        """Simulates in closed loop with a policy, with gradients through policy and physics.

        Between segments only states are stored: the backward pass runs segments again, policy included. A
        `NetworkPolicy` (see `network_policy`) runs inside the kernels, at the speed of an open loop; any other policy
        runs in torch, once per `hold`.

        Args:
            policy: Maps the observed state (q, qd and outputs, (W, …) each) to controls (W, control_size), in any
                precision. Its answers are compared when a segment is run again: it may have no memory unless segments
                have N steps or more, and its weights may not change before the backward pass. Random numbers of torch
                are repeated.
            steps: N.
            start: As in `rollout`, like `q`, `qd`, `parameters` and `threads`, the last for policies in kernels.
            q: Initial coordinates.
            qd: Initial velocities.
            parameters: Values by name, handle or path.
            outputs: What the policy sees, and the trajectory keeps, besides the state.
            hold: Steps for which each control is held.
            delay: Steps after which a control acts; until then controls are zero.
            memory: In kernels: as in `rollout`. In torch: a `Memory` with `schedule` and `segment`, the steps that are
                differentiated at a time, rounded up to whole holds; None: the square root of N. With N or more the
                policy runs once and its activations are stored.
            threads: CPU threads that share the worlds.
            in_kernels: False runs a `NetworkPolicy` in torch too, with the same numbers to rounding.
            clip: In kernels: as in `rollout`.
            precision: In torch: the type of what the policy is shown; None: that of the weights of the policy, or of
                the torch modules it names where it is a function, else the simulator's.

        Raises:
            StaleInputError: From the backward pass: the policy answered otherwise than in the forward pass.
        """
        refuse_transforms()
        first, timing, shown = start_of(start, q, qd), Timing(hold, delay), self._shown(outputs)
        run = partial(self._loops.run, policy, steps, first, parameters, shown, timing, memory=memory_of(memory))
        return run(threads=threads, in_kernels=in_kernels, clip=clip, precision=precision)

    def network_policy(self, **choices: Any) -> NetworkPolicy:
        """A network from what the robot senses to controls, for `rollout_policy`; see `make_network_policy`."""
        return make_network_policy(self.model, self._controls, **choices)

    def gradcheck(self, steps: int | None = None, controls: Controls | None = None, **choices: Any) -> Any:
        """Checks gradients of world 0 against central differences; print the report, or ask it whether it is `ok`.

        Args:
            steps: Length of the rollout; None: that of `controls`, or two seconds.
            controls: As in `rollout`.
            **choices: `parameters`, `loss`, `outputs`, `window`, `seed`: see `warpsim.check.gradcheck.check_simulator`.
        """
        self._engine.check_differentiable()
        choices["outputs"] = self._shown(choices.get("outputs"))
        return provided("gradcheck")(self, steps, controls, **choices)

    def _shown(self, outputs: Sequence[str] | None) -> tuple[str, ...]:
        return self.outputs if outputs is None else self._contents.check_outputs(outputs)


def _make(kind: type[Simulator], source: Any, arguments: dict[str, Any]) -> Simulator:
    return kind(source, **arguments)
