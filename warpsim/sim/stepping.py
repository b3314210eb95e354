"""`Stepping`: the state of a compiled scene, its parameters in force, steps and rollouts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import warp as wp

from warpsim.autograd.entry import in_turn
from warpsim.autograd.exchange import to_torch, to_warp, torch_device, torch_real, zeros
from warpsim.autograd.observe import observe_state
from warpsim.autograd.parameters import Parameters
from warpsim.autograd.rollout import RolloutCall
from warpsim.autograd.step import Stepper
from warpsim.autograd.watched import Watched, check_unchanged, watch
from warpsim.core.errors import InputError, unknown_name, whole_number
from warpsim.engine.engine import Engine, ParameterValues, RolloutSpec
from warpsim.io.load import SceneSource, load_scene, source_path, warn_of_ledger
from warpsim.rigid.step.program import held_controls
from warpsim.scene import Scene
from warpsim.scene.convergence import with_stop
from warpsim.sim.attributes.attribute import Attribute
from warpsim.sim.contents import Contents
from warpsim.sim.control_names import default_controls
from warpsim.sim.controls import ControlLayout, Controls, given_steps
from warpsim.sim.initial_state import InitialState, StateTensors
from warpsim.sim.jacobians import Linearizer
from warpsim.sim.parameter_input import CONTROLLED, InForce, ParameterInput
from warpsim.sim.sensor_noise import SensorNoise
from warpsim.sim.start import Start, StartLike, start_of
from warpsim.sim.trajectory import Observed, Source, Trajectory
from warpsim.tape.memory import Memory, MemoryLike, memory_of
from warpsim.tape.schedule import Plan

DEFAULT_OUTPUTS = ("body_position", "body_rotation")


class Stepping(Contents):
    """Steps and differentiates a scene in several independent worlds; `Simulator` adds closed loops and analysis.

    Sizes: nq coordinates, nv dofs, `control_size` numbers of control, W worlds. Everything is SI and radians;
    quaternions are (w, x, y, z); see `warpsim.scene` for the meaning of q and qd.

    `reset` sets the state from which steps and rollouts start; until then it is the scene's own. `step` advances the
    current state; rollouts leave it alone, so that each starts from the same.

    Attributes:
        scene: The description that was compiled.
        outputs: What states and trajectories show besides q and qd, unless a call asks for others.
    """

    _controls: ControlLayout

    def __init__(
        self,
        source: SceneSource,
        *,
        worlds: int = 1,
        device: str | wp.Device = "cpu",
        controls: Sequence[str] | None = None,
        outputs: Sequence[str] = DEFAULT_OUTPUTS,
        strict: bool | None = None,
        keyframe: str | None = None,
        sensor_seed: int | None = None,
        impacts: bool | None = None,
        contact_softening: float | None = None,
        softening_pass: str | None = None,
        max_contacts: int | None = None,
        iterations: str | None = None,
        unconverged: str = "raise",
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
            strict: Whether physics that is not modeled raises; None: see `load_scene`.
            keyframe: MJCF only: the keyframe that gives the initial state.
            sensor_seed: Seed of the sensors' noise, whose standard deviations the scene gives; None: exact sensors. A
                number depends on the seed, its world, its step (of the rollout, or since the last full reset) and its
                sensor alone.
            impacts: Whether bounces and landings are impacts at their own moment within a step, with the authored
                restitution and gradients that are the motion's (see docs/differentiation.md); None: as in the scene.
            contact_softening: How far outside their margins contacts begin to act, m; 0: contacts as they are. An aid
                to optimization with a bias (see docs/contact.md); None: as in the scene.
            softening_pass: Where softening acts: "both" passes, or "backward", which changes gradients only; None: as
                in the scene.
            max_contacts: Contacts per world for which there is room from the start, and no more: a step with more
                raises. None: as in the scene, where by default room is made as contacts need it.
            iterations: "converged": the constraint solver goes to the optimum, whatever cap the scene sets on it;
                "authored": it stops at the scene's cap, and there are no gradients; None: as in the scene, whose own
                choice is "converged" unless it was made otherwise in Python.
            unconverged: What a gradient does about a step whose solver did not converge all the same: "raise"
                `UnconvergedError`, which names step, world and residual, or "warn" and return what was computed.
        """
        path = source_path(source)
        self.scene = with_stop(load_scene(source, strict=strict, keyframe=keyframe), iterations)
        if strict is not False and not isinstance(source, Scene):
            warn_of_ledger(self.scene, str(path or self.scene.name))
        if max_contacts is not None:
            whole_number("max_contacts", max_contacts)
        chosen = given_fields(
            impacts=impacts,
            contact_softening=contact_softening,
            softening_pass=softening_pass,
            max_contacts=max_contacts,
        )
        if chosen:
            self.scene = replace(self.scene, options=replace(self.scene.options, **chosen))
        self._choices: dict[str, Any] = {
            "strict": strict,
            "keyframe": keyframe,
            "sensor_seed": sensor_seed,
            "impacts": impacts,
            "contact_softening": contact_softening,
            "softening_pass": softening_pass,
            "max_contacts": max_contacts,
            "iterations": iterations,
            "unconverged": unconverged,
        }
        self._source = Source(self.scene, path)
        self._engine = Engine(self.scene, worlds=worlds, device=device, unconverged=unconverged)
        compiled = self._engine.compiled
        chosen_controls = default_controls(compiled) if controls is None else controls
        super().__init__(self._engine, ControlLayout(compiled, chosen_controls))
        self._stepper = Stepper(self._engine)
        self._noise = SensorNoise(compiled.model, sensor_seed)
        self._initial = InitialState(compiled)
        self.outputs = self._check_outputs(outputs)
        self._input = ParameterInput(self._engine, self._source.path)
        self._in_force: InForce = self._input.own()
        self._taken: InForce | None = None
        self._reset_to: StateTensors = {}
        self._reset_with: Watched = {}
        self._state: StateTensors = self._initial.state()
        self._steps_taken = 0
        self._linearizer: Linearizer | None = None

    def __repr__(self) -> str:
        controls = " + ".join(self.control_names)
        return (
            f"Simulator({self.scene.name!r}: {len(self.body_names) - 1} bodies, {self.nv} dofs, control {controls} "
            f"({self.control_size}), {self.worlds} world(s) on {self.device})"
        )

    @property
    def path(self) -> Path | None:
        """The file it was made from; None: it was made from a `Scene`."""
        return self._source.path

    @property
    def device(self) -> torch.device:
        """Where tensors live."""
        return torch_device(self.model.device)

    @property
    def torch_dtype(self) -> torch.dtype:
        """Type of all real tensors: `torch.float64`, or `torch.float32` under `WARPSIM_PRECISION=float32`."""
        return torch_real

    @property
    def timestep(self) -> float:
        """Seconds per step, of world 0."""
        return timestep_of(self._in_force.parameters)

    @property
    def time(self) -> float:
        """Seconds stepped since the last full reset."""
        return self._steps_taken * self.timestep

    @property
    def state(self) -> Observed:
        """A copy of the current state: q (W, nq), qd (W, nv) and what else the next step reads; `reset` sets it."""
        return self._show(self._state, {})

    @property
    def source(self) -> Source:
        """The scene and the file it was read from, if any."""
        return self._source

    @in_turn
    def initial_state(self, *, start: StartLike = None, q: Any = None, qd: Any = None) -> Observed:
        """The state a rollout with these arguments starts from."""
        return self._show(self._first(self._in_force, start_of(start, q, qd)), {})

    @in_turn
    def all_controls(self, steps: int, controls: Controls | None = None) -> dict[str, torch.Tensor]:
        """Every control of a rollout by name, (steps, W, …) each; those that are not given as they are by default."""
        given = {} if controls is None else self._controls.split(controls, steps)
        return {**self._default_controls(steps), **given}

    @in_turn
    def attribute(self, path: str) -> Attribute:
        """A handle on a USD attribute that reaches physics, e.g. "/World/Ball.physics:velocity".

        Its value is in the stage's own units. It is a key of `parameters=`, where gradients come back in these units.

        Raises:
            InputError: There is no such attribute, or it cannot matter; says why.
        """
        return self._input.attributes.handle(path)

    @in_turn
    def parameter(self, name: str, given: Mapping[str | Attribute, Any] | None = None) -> torch.Tensor:
        """A copy of a parameter array's values, (W, n, …), SI; `parameter(name)[0]` starts a shared one.

        Args:
            name: Of the array.
            given: As the `parameters=` of a rollout: the values that rollout has, in torch's graph where they depend on
                a tensor that requires a gradient. None: the values in force.
        """
        self._engine.check_parameter(name)
        used = self._input.replaced(self._in_force, given).parameters
        copied = to_torch(wp.clone(used.values[name]))
        return used.tensors[name].expand_as(copied) if name in used.tensors else copied

    @property
    def changed_parameters(self) -> frozenset[str]:
        """Names of the parameter arrays whose values in force are not the scene's own."""
        defaults = self._engine.defaults
        return frozenset(n for n, value in self._in_force.parameters.values.items() if value is not defaults[n])

    @in_turn
    def set_parameters(self, parameters: Mapping[str | Attribute, Any] | None) -> None:
        """Puts values in force for all steps and rollouts that follow; None: the scene's own.

        What attributes give the initial state counts from the next reset or rollout on.

        Args:
            parameters: Arrays by name, (n, …) for all worlds alike or (W, n, …), SI; and USD attributes by handle or
                "/prim.attribute", of the attribute's shape or (W, …), in USD units. Tensors that require a gradient
                get one from every later step and rollout.
        """
        self._in_force = self._input.replaced(self._input.own(), parameters)

    @in_turn
    def use_parameters_of(self, other: Stepping) -> None:
        """Puts the values in force in world 0 of another simulator of the same scene in force in all worlds here."""
        if other._in_force is self._taken:
            return
        values = other._in_force.parameters.values
        changed = {n: v for n, v in values.items() if v is not other._engine.defaults[n]}
        self.set_parameters({name: to_torch(value)[0] for name, value in changed.items()})
        self._taken = other._in_force

    @in_turn
    def reset(
        self,
        *,
        worlds: Any = None,
        start: StartLike = None,
        q: Any = None,
        qd: Any = None,
    ) -> Observed:
        """Sets the current state.

        Args:
            worlds: Which worlds: a (W,) mask or a list of indices; None: all. The others keep their state.
            start: State, fields by name, e.g. {"net.x": …}, or a `Start` with noise; what is left open is the scene's.
            q: (nq,) or (W, nq), instead of that of `start`.
            qd: (nv,) or (W, nv), likewise.

        Returns:
            The current state and its outputs, in torch's graph where q, qd or activation require gradients.
        """
        wanted = start_of(start, q, qd)
        self._in_force.check()
        fresh = self._initial.begin(wanted, self._in_force.start)
        watched = watch(wanted.fields)
        if worlds is None:
            given = fresh if wanted.state is not None or wanted.noisy else wanted.fields
            self._reset_to = {name: fresh[name] for name in self._initial.differentiable if name in given}
            self._state, self._steps_taken = fresh, 0
            self._reset_with = watched
        else:
            merged = self._initial.merge(worlds, fresh, self._first(self._in_force, Start()))
            self._reset_to = {name: merged[name] for name in self._initial.differentiable}
            self._state = self._initial.merge(worlds, fresh, self._state)
            self._reset_with = {**self._reset_with, **watched}
        return self._show(self._state, self._observe(self._state, self._in_force.parameters, self.outputs))

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
        shown = self.outputs if outputs is None else self._check_outputs(outputs)
        self._in_force.check()
        parameters = self._in_force.parameters
        made = self._stepper.advance(self._state, given, parameters, shown, self._steps_taken)
        self._state = _copies(made.state)  # what was made is the caller's
        self._steps_taken += 1
        return Observed(self.model, {**made.state, **self._noise.add_one(made.outputs, self._steps_taken - 1)})

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
            keep_every: Distance of the trajectory's rows, in steps.
            memory: Maximum for checkpoints and intermediates, e.g. "512MB" or "50%" of what is free; or a `Memory`.
            threads: CPU threads that share the worlds.
            progress: Show a bar.
            clip: Largest norm of a world's state adjoint that is handed from segment to segment of the backward pass
                (give `memory=Memory(segment=…)`, too); keeps a few wild worlds from drowning the others. None: the
                exact gradient.

        Returns:
            The trajectory, N // keep_every + 1 rows; row 0 is the initial state.

        Raises:
            SimulationError: A state is not finite; the error's `trajectory` holds the rows before.
        """
        room = memory_of(memory)
        check_clip(clip, room)
        whole_number("keep_every", keep_every)
        count = given_steps(controls, steps)
        given = {} if controls is None else self._controls.split(controls, count)
        shown = self.outputs if outputs is None else self._check_outputs(outputs)
        used = self._input.replaced(self._in_force, parameters)
        first = self._first(used, start_of(start, q, qd), parameters, tuple(given))
        varied = self._initial.differentiable
        call = RolloutCall(
            engine=self._engine,
            spec=RolloutSpec(count, tuple(given), shown, room, threads),
            state=varied,
            parameters=used.parameters,
            fixed={n: to_warp(t, self._initial.dtypes[n]) for n, t in first.items() if n not in varied},
            keep_every=keep_every,
            progress=progress,
            clip=clip,
        )
        return self._roll_out(call, first, given, used)

    @in_turn
    def plan(self, steps: int, *, memory: MemoryLike = None, threads: int = 1) -> Plan:
        """How a differentiated rollout of this length would be cut, and the memory it would take; print it."""
        spec = RolloutSpec(steps, self.control_names, self.outputs, memory_of(memory), threads)
        return self._engine.plan(spec)

    def _roll_out(
        self, call: RolloutCall, first: StateTensors, controls: Mapping[str, torch.Tensor], used: InForce
    ) -> Trajectory:
        """Runs a call; where it fails on the way, the error carries the trajectory so far."""

        def trajectory(made: dict[str, torch.Tensor]) -> Trajectory:
            steps = range(-1, call.spec.steps, call.keep_every)[: len(next(iter(made.values())))]
            interval = call.keep_every * timestep_of(call.parameters)
            return Trajectory(self.model, self._source, self._noise.add(made, steps), interval, used)

        return replace(call, show=trajectory).run(first, controls)

    def _first(
        self,
        used: InForce,
        start: Start,
        parameters: Mapping[str | Attribute, Any] | None = None,
        controls: Sequence[str] = (),
    ) -> StateTensors:
        """The state a rollout starts from.

        That is what `start` gives, else the last reset's, else what attributes give, else the scene's.

        Raises:
            InputError: A parameter of this call cannot matter, since all it feeds is given otherwise.
        """
        if start.state is not None:
            self._input.check_heard(parameters, controls, self._initial.differentiable)
            return self._initial.begin(start)
        self._input.check_heard(parameters, controls, {*self._reset_to, *start.fields})
        check_unchanged(self._reset_with, "`reset`", self._reset_to.keys() - start.fields.keys())
        return self._initial.begin(start, {**used.start, **self._reset_to})

    def _observe(
        self, state: StateTensors, parameters: Parameters, outputs: tuple[str, ...]
    ) -> dict[str, torch.Tensor]:
        parameters.prepare(self._engine)
        return observe_state(self._engine, parameters, state, outputs)

    def _default_controls(self, steps: int, values: ParameterValues | None = None) -> dict[str, torch.Tensor]:
        """What controls are when none are given, for all steps, with given parameters; None: those in force."""
        values = self._in_force.parameters.values if values is None else values
        held = {name: to_torch(array) for name, array in held_controls(self.model).items()}
        held |= {name: to_torch(values[parameter]) for name, parameter in CONTROLLED.items()}
        held |= {name: zeros(f, self.device) for name, f in self.compiled.controls.items() if name not in held}
        return {name: held[name].expand(steps, *held[name].shape).clone() for name in self.control_names}

    def _show(self, state: Mapping[str, torch.Tensor], outputs: Mapping[str, torch.Tensor]) -> Observed:
        """What callers see. The state is a copy: whatever they do to it, the next step starts from our own."""
        return Observed(self.model, {**_copies(state), **outputs})

    def _check_outputs(self, outputs: Sequence[str]) -> tuple[str, ...]:
        if isinstance(outputs, str):
            raise InputError(f"outputs={outputs!r}; give a list of names, e.g. ({outputs!r},)")
        known = self.compiled.outputs
        outputs = [name for name in outputs if name not in self._initial.fields]  # states are always shown
        for name in outputs:
            if name not in known:
                raise unknown_name("output", name, known)
            if not known[name].nbytes:
                raise InputError(f"output {name!r} is empty: this scene has nothing it could report on; leave it out")
        return tuple(dict.fromkeys(outputs))


def _copies(tensors: Mapping[str, torch.Tensor]) -> StateTensors:
    return {name: tensor.clone() for name, tensor in tensors.items()}


def check_clip(clip: float | None, memory: Memory) -> None:
    """Raises if a clip has no places to act at."""
    if clip is None:
        return
    if not isinstance(clip, (int, float)) or not 0.0 < clip < math.inf:
        raise InputError(f"clip={clip!r}; give a finite number above 0")
    if memory.segment is None:
        raise InputError(f"clip={clip:g} acts between segments; say with memory=Memory(segment=…) after how many steps")


def given_fields(**fields: Any) -> dict[str, Any]:
    """Those that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


def timestep_of(parameters: Parameters) -> float:
    """Seconds per step, of world 0."""
    return float(parameters.values["world.timestep"].numpy()[0])
