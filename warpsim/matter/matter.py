"""`Matter`: what a step of something other than rigid bodies is made of.

A step observes the bodies, has each matter exert its forces on them, steps the bodies under these, and has each matter
write its own next state:

    bodies at the state ▸ forces of each matter ▸ rigid step under their sum ▸ finish of each matter ▸ observables

A matter that `joins_bodies` has no forces of its own: its unknowns are solved for together with those of the bodies.

All of it is taped, captured and replayed like any step, so the rules of `warpsim.tape.program` hold: write every
element of what is to be written, depend on what is given alone, launch kernels and nothing else.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import warp as wp

from warpsim.core.errors import InputError
from warpsim.core.names import find
from warpsim.core.precision import numpy_real, real
from warpsim.scene.description import Scene
from warpsim.scene.matters import MatterDescription
from warpsim.tape.arena import Arena
from warpsim.tape.program import Arrays, Field, SlotValues


@dataclass(frozen=True)
class CompileContext:
    """Where a matter is compiled to.

    Attributes:
        worlds: W.
        device: Of all arrays.
        body_names: Bodies in the order of `Bodies`; [0] is the world, named "".
        scene: What surrounds it: shapes, other matters, options.
    """

    worlds: int
    device: wp.Device
    body_names: tuple[str, ...]
    scene: Scene

    def body(self, name: str) -> int:
        """Index of a body."""
        return find("body", name, self.body_names).index

    def shape(self, name: str) -> int:
        """Index of a shape."""
        return find("shape", name, [shape.name for shape in self.scene.shapes]).index

    def body_of_shape(self, shape: int) -> int:
        """Index of the body that a shape belongs to."""
        return self.body(self.scene.shapes[shape].body or "")


@dataclass(frozen=True)
class Bodies:
    """Rigid bodies at the start of a step, (W, bodies) each, world frame; body 0 is the world.

    Attributes:
        position: m: origins.
        rotation: (w, x, y, z), body → world.
        velocity: rad/s, m/s: angular, then linear at the origin.
        com: m: centers of mass.
        mass: kg.
        wrench: N, N·m: force, then torque at the center of mass, of one matter on each body. Zero to begin with; its
            `forces` writes those that it exerts.
        acceleration: rad/s², m/s²: Jq̈, angular, then linear at the origin, of the step that is done; in `finish` of
            matters that join bodies.
    """

    position: wp.array
    rotation: wp.array
    velocity: wp.array
    com: wp.array
    mass: wp.array
    wrench: wp.array
    acceleration: wp.array


@dataclass(frozen=True)
class Shapes:
    """Shapes of the scene, (W, shapes) each, in the order of `Scene.shapes`; they carry gradients where asked for.

    Attributes:
        position: m, in the frame of the shape's body.
        rotation: (w, x, y, z), shape → body.
        size: m, as `scene.Shape.size`.
    """

    position: wp.array
    rotation: wp.array
    size: wp.array


@dataclass(frozen=True)
class Environment:
    """What surrounds a matter during a step.

    Attributes:
        timestep: (W,) s.
        gravity: (W,) vec3, m/s².
        bodies: None unless the matter `meets_bodies`.
        shapes: Of bodies and of the world.
        tape: Where custom adjoints are to be recorded; None: nowhere. Kernels with Warp's own adjoints need it not.
        joined: Whether the matter is solved for together with the bodies.
    """

    timestep: wp.array
    gravity: wp.array
    bodies: Bodies | None
    shapes: Shapes
    tape: wp.Tape | None = None
    joined: bool = False


class Matter:
    """A compiled matter; derive from it, declare fields in `__init__` and launch kernels in `forces` and `finish`.

    Names of fields are the matter's own; outside they are "name.field".

    Attributes:
        description: What it was compiled from.
        name: Of the matter.
        worlds: W; axis 0 of every field and parameter. Launch over `self.worlds`: a simulation on several threads
            copies the matter for some of its worlds.
        device: Of all arrays.
        state: Fields of the state, with their manifolds.
        controls: What each step may be given; zero where it is not.
        outputs: What `finish` reports of a step.
        observables: What `observe` makes of a state alone, from its differentiable fields.
        meets_bodies: Whether its stages read bodies and exert wrenches on them.
        joins_bodies: Whether it is solved for together with the bodies, where any can move.
        authored: Parameters that users set, (W, …) each.
        physical: What the stages read; by default the authored ones. Others are made by `derive`.
    """

    state: tuple[Field, ...] = ()
    controls: tuple[Field, ...] = ()
    outputs: tuple[Field, ...] = ()
    observables: tuple[Field, ...] = ()
    meets_bodies: bool = False
    joins_bodies: bool = False

    def __init__(
        self, description: MatterDescription, context: CompileContext, dtypes: Mapping[str, Any] | None = None
    ) -> None:
        """Puts the authored parameters on the device.

        Args:
            description: The matter.
            context: Where it is compiled to.
            dtypes: Warp types of the parameters that do not hold plain numbers.
        """
        self.description, self.name = description, description.name
        self.worlds, self.device = context.worlds, context.device
        self.authored: dict[str, wp.array] = {}
        for name, value in description.parameters.items():
            values = np.broadcast_to(np.asarray(value, numpy_real), (self.worlds, *np.shape(value)))
            dtype = (dtypes or {}).get(name, real)
            self.authored[name] = wp.array(np.ascontiguousarray(values), dtype=dtype, device=self.device)
        self.physical: dict[str, wp.array] = dict(self.authored)

    def derive(self) -> None:
        """Makes physical from authored parameters, once per rollout, on a tape of its own."""

    def make_work(self, arena: Arena) -> Any:
        """Intermediates of one step: an array, or a dataclass or mapping of arrays."""
        return None

    def forces(self, state: Arrays, inputs: Arrays, work: Any, around: Environment) -> None:
        """Before the rigid step: evaluates forces, and writes those on bodies to `around.bodies.wrench`."""

    @classmethod
    def join(cls, matters: Sequence[Any], model: Any) -> Any:
        """What solves for all matters that join the bodies of a model, for `coupling`; see `deformable.joint`."""
        raise NotImplementedError

    def finish(
        self, state: Arrays, inputs: Arrays, work: Any, around: Environment, next_state: Arrays, outputs: Arrays
    ) -> None:
        """After the rigid step: writes the next state, and those of `self.outputs` that are in `outputs`."""
        raise NotImplementedError

    def observe(self, state: Arrays, outputs: Arrays) -> None:
        """Writes those of `self.observables` that are in `outputs`, for any state."""

    def bound_adjoints(self, bound: float) -> bool:
        """Bounds the adjoint of each element of the state in backward passes, per field; 0: not at all.

        Returns:
            Whether this matter can.
        """
        return False

    def explain(self, work: Any, world: int) -> str | None:
        """Why a state is not finite after a step that left these intermediates, if known."""
        return None

    def unsolved(self, work: Any, values: SlotValues) -> np.ndarray | None:
        """Where equations that a step solves were not solved, as `SolvingProgram.unsolved`; None: it solves none."""
        return None

    def part(self, first: int, last: int) -> Self:
        """The same matter in worlds first … last − 1 alone, with views of the parameters.

        A matter that holds other arrays with a world axis overrides this and takes views of them, too.
        """
        made = copy.copy(self)
        made.worlds = last - first
        for group in ("state", "controls", "outputs", "observables"):
            fields: Sequence[Field] = getattr(self, group)
            setattr(made, group, tuple(replace(f, shape=(made.worlds, *f.shape[1:])) for f in fields))
        views = {a.ptr: a[first:last] for a in (*self.authored.values(), *self.physical.values())}
        made.authored = {name: views[a.ptr] for name, a in self.authored.items()}
        made.physical = {name: views[a.ptr] for name, a in self.physical.items()}
        return made

    def check(self) -> None:
        """Raises where the fields and the description do not fit together."""
        for f in self.state:
            given = self.description.initial.get(f.name)
            if given is not None and np.shape(given) != f.value_shape:
                raise InputError(
                    f"matter {self.name!r}: initial {f.name!r} has shape {np.shape(given)}; needed: {f.value_shape}"
                )
