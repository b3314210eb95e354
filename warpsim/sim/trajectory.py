"""What a simulator shows: states and outputs by name, at one time or over a rollout, as tensors; and saving them."""

from __future__ import annotations

import tempfile
import webbrowser
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
import warp as wp

from warpsim.core.errors import InputError, unknown_name, whole_number
from warpsim.core.files import MARK, refuse_sources, replacing
from warpsim.core.names import find
from warpsim.core.notebook import facts_html, folded_page_html
from warpsim.core.registry import provided
from warpsim.io.scene_files import is_usd, scene_files
from warpsim.io.usd.export.result import export_result
from warpsim.io.usd.motion import ContactFrame, Motion
from warpsim.io.usd.writer import OptimizedValue, write_result
from warpsim.rigid.model.joint_names import find_joint
from warpsim.rigid.model.model import Model
from warpsim.rigid.model.topology import Layout
from warpsim.rigid.sensors.layout import sensor_place
from warpsim.scene import Scene, Sensor
from warpsim.scene.matters import matter_kind
from warpsim.sim.curves import rollout_curves
from warpsim.sim.parameter_input import InForce
from warpsim.view.gltf import write_glb
from warpsim.view.page import Page, page_html, write_page
from warpsim.view.page.scene_content import motions_page

MAXIMUM_WORLDS = 16
"""That a page shows where none are chosen."""
PAGE_SUFFIXES = (".html", ".htm")
CONTACT_OUTPUTS = ("contact_points", "contact_point_forces")
"""What a motion's contacts are made of."""


@dataclass(frozen=True)
class Source:
    """Where a simulation came from: the scene, and the file it was read from, if any."""

    scene: Scene
    path: Path | None


@dataclass(frozen=True)
class _Contents:
    """What of a model is needed to look things up."""

    layout: Layout
    sensors: tuple[Sensor, ...]
    worlds: int


@dataclass(frozen=True)
class _Values:
    """Values of USD attributes, world by world: what a saved trajectory keeps of the parameters it was made with."""

    by_world: tuple[list[OptimizedValue], ...]

    def __call__(self, world: int) -> list[OptimizedValue]:
        return self.by_world[world]


def check_target(target: Path, source: Path | None) -> None:
    """Raises if a motion simulated from `source` cannot be saved as `target`; worth asking before a long run."""
    if target.suffix == ".npz" or target.suffix.lower() in (*PAGE_SUFFIXES, ".glb"):
        return
    if not is_usd(target):
        raise InputError(f"{target}: trajectories are saved as .html, .glb, .npz, .usda or .usdc")
    if source is not None:
        refuse_sources([target], scene_files(source), str(source))


class Observed(Mapping[str, torch.Tensor]):
    """States and outputs by name, `x["q"]` or `x.q`, (…, worlds, …) each; methods show one body or joint.

    States: `q` (nq), `qd` (nv), `activation` (na). Outputs, where they were asked for: `body_position` (nbody, 3) m,
    `body_rotation` (nbody, 4) w first, `body_velocity` (nbody, 6) angular then linear at the body's origin, `com` (3)
    m, `linear_momentum` (3), `angular_momentum` (3) about the com, `potential_energy`, `kinetic_energy` J; all in the
    world's frame, body 0 the world. `saturated` (actuators, drives and, where joints limit the force of their
    actuators, dofs): −1 or 1 where a range cut during the step. `constraint_error`: largest violation of an equality or
    a joint's limit at the step's start, m or rad. `contact_points`, `contact_point_forces` (places, 3): m and N, in the
    world, of each contact during the step, on the shape that moves; zero where none is. `sensors` (n): all measurements
    in the order of the scene's sensors; `sensor(name)` picks one.

    Copies, pickled or by `deepcopy`, are out of torch's graph.
    """

    def __init__(self, model: Model, tensors: Mapping[str, torch.Tensor]) -> None:
        self._contents = _Contents(model.layout, model.sensors, model.worlds)
        self._tensors = dict(tensors)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_tensors": {name: tensor.detach() for name, tensor in self._tensors.items()}}

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        made._tensors = {name: tensor.detach().clone() for name, tensor in self._tensors.items()}
        return made

    def __getitem__(self, name: str) -> torch.Tensor:
        if name not in self._tensors:
            error = unknown_name("state or output", name, self._tensors)
            raise type(error)(f"{error}; ask for outputs with `outputs=(…)`")
        return self._tensors[name]

    def __getattr__(self, name: str) -> torch.Tensor:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(str(error)) from None

    def __contains__(self, name: object) -> bool:  # without the error that names the nearest
        return name in self._tensors

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def numpy(self, name: str) -> np.ndarray:
        """A NumPy view of one tensor (a copy if it lives on a GPU)."""
        return self[name].detach().cpu().numpy()

    def body_position(self, body: str) -> torch.Tensor:
        """(…, worlds, 3) m: origin of a body in the world."""
        return self._of_body("body_position", body)

    def body_rotation(self, body: str) -> torch.Tensor:
        """(…, worlds, 4): orientation of a body, unit quaternion (w, x, y, z)."""
        return self._of_body("body_rotation", body)

    def body_velocity(self, body: str) -> torch.Tensor:
        """(…, worlds, 6): angular velocity, rad/s, and velocity of the body's origin, m/s, in world axes."""
        return self._of_body("body_velocity", body)

    def joint_position(self, joint: str) -> torch.Tensor:
        """(…, worlds, n): coordinates of a joint, rad or m, or position and quaternion."""
        return self["q"][..., find_joint(self._contents.layout, joint).q]

    def joint_velocity(self, joint: str) -> torch.Tensor:
        """(…, worlds, n): velocities of a joint, rad/s or m/s."""
        return self["qd"][..., find_joint(self._contents.layout, joint).dofs]

    def sensor(self, name: str) -> torch.Tensor:
        """(…, worlds, n): what a sensor measured at the start of the step that led to each frame; frame 0 is zero."""
        return self["sensors"][..., sensor_place(self._contents.sensors, name)]

    def _of_body(self, output: str, body: str) -> torch.Tensor:
        return self[output][..., find("body", body, self._contents.layout.body_names).index, :]


class Trajectory(Observed):
    """A rollout: each tensor is (frames, worlds, …) and is the rollout's own memory; frame 0 is the initial state.

    Attributes:
        times: (frames,) s, from the start of the rollout.
        model: What was simulated; None after a trajectory was pickled.
        made_with: The parameters, which nobody changes any more; None if they are not known, as after pickling.
    """

    def __init__(
        self,
        model: Model,
        source: Source,
        tensors: Mapping[str, torch.Tensor],
        interval: float,
        made_with: InForce | None = None,
    ) -> None:
        """Takes what a rollout has made.

        Args:
            model: What was simulated.
            source: Where it came from.
            tensors: By name.
            interval: Seconds between frames.
            made_with: Parameters that were in force; None: not known.
        """
        super().__init__(model, tensors)
        self._source = source
        self.model: Model | None = model
        self.made_with = made_with
        self._values: Callable[[int], list[OptimizedValue]] | None = None if made_with is None else made_with.values
        self.times = interval * np.arange(len(next(iter(self._tensors.values()))))

    def __getstate__(self) -> dict[str, Any]:
        values = None if self._values is None else _Values(tuple(map(self._values, range(self._contents.worlds))))
        return {**super().__getstate__(), "model": None, "made_with": None, "_values": values}

    def every(self, frames: int) -> Trajectory:
        """Frames 0, n, 2n … alone, over the same memory."""
        whole_number("frames", frames)
        return self._with({name: tensor[::frames] for name, tensor in self._tensors.items()}, self.times[::frames])

    def padded(self, frames: int) -> Trajectory:
        """As if of so many frames: those after its own, which were not simulated, are NaN."""
        more = frames - len(self.times)
        if more < 0:
            raise InputError(f"the trajectory has {len(self.times)} frames, more than {frames}")
        tensors = {n: torch.cat([t, t.new_full((more, *t.shape[1:]), torch.nan)]) for n, t in self._tensors.items()}
        interval = float(self.times[1]) if len(self.times) > 1 else 0.0
        return self._with(tensors, interval * np.arange(frames))

    def _with(self, tensors: dict[str, torch.Tensor], times: np.ndarray) -> Trajectory:
        """The same rollout with other frames."""
        made = object.__new__(Trajectory)
        made.__dict__.update(self.__dict__)
        made._tensors, made.times = tensors, times
        return made

    def warp(self, name: str) -> wp.array:
        """The Warp array over the same memory, of scalars."""
        return wp.from_torch(self[name].detach(), requires_grad=False)

    def save(self, path: str | PathLike[str], *, world: int = 0) -> list[Path]:
        """Writes the rollout to a file.

        Args:
            path: ".npz": all tensors of all worlds, `times` and the names. A USD file: one world as an animation over
                the scene it came from, with the attributes that the rollout was given, which opens in any USD viewer
                and loads again. A scene that came from no USD file (MJCF, URDF, Python) is written as USD beside it.
                ".html": a page that shows the motion in any browser; see `page`. ".glb": one world as an animation in
                binary glTF, for slides and other viewers.
            world: For USD and glTF: which world.

        Returns:
            The files written.
        """
        target = Path(fspath(path))
        check_target(target, self._source.path)
        if target.suffix == ".npz":
            return [self._save_arrays(target)]
        if target.suffix.lower() in PAGE_SUFFIXES:
            return [write_page(target, self.page(title=target.stem))]
        if target.suffix.lower() == ".glb":
            return [write_glb(target, self.page(worlds=[world], title=target.stem))]
        motion = self.motion(world)
        if self._source.path is None or not is_usd(self._source.path):
            return export_result(target, self._source.scene, motion)
        values = None if self._values is None else self._values(world)
        return write_result(target, self._source.path, self._source.scene, motion, values=values)

    def page(self, *, worlds: Sequence[int] | None = None, title: str | None = None) -> Page:
        """What a page shows of the rollout, for `warpsim.view.page.page_html`.

        Contacts are shown where "contact_points" and "contact_point_forces" are among the outputs.

        Args:
            worlds: Which; None: the first 16.
            title: None: the scene's name.
        """
        shown = range(min(self._contents.worlds, MAXIMUM_WORLDS)) if worlds is None else worlds
        names = ["motion"] if len(shown) == 1 else [f"world {world}" for world in shown]
        scene, path = self._source.scene, self._source.path
        places = {body.name: self._contents.layout.body(body.name) for body in scene.bodies}
        masses, centers = self._masses()
        return motions_page(
            scene,
            path if path is not None and is_usd(path) else None,
            [(name, self.motion(world)) for name, world in zip(names, shown, strict=True)],
            title=title or scene.name,
            masses={name: float(masses[place]) for name, place in places.items() if place < len(masses)},
            centers={name: np.array(centers[place]) for name, place in places.items() if place < len(centers)},
        )

    def _masses(self) -> tuple[np.ndarray, np.ndarray]:
        """(nbody,) kg and (nbody, 3) m of world 0's bodies; empty once pickling has cost it its model."""
        if self.model is None:
            return np.zeros(0), np.zeros((0, 3))
        return self.model.body.mass.numpy()[0], self.model.body.com.numpy()[0]

    def view(self, *, worlds: Sequence[int] | None = None) -> Path:
        """Opens the motion in the browser.

        Args:
            worlds: Which; None: the first 16.

        Returns:
            The page, a file in the system's temporary folder.
        """
        folder = Path(tempfile.mkdtemp(prefix="warpsim-"))
        written = write_page(folder / "motion.html", self.page(worlds=worlds))
        webbrowser.open(written.as_uri())
        return written

    def plot(self, *kinds: str, worlds: Sequence[int] | None = None) -> Any:
        """Curves over time as a matplotlib figure (extra: `pip install warpsim[plot]`).

        Args:
            kinds: Of "joints", "energy", "contacts", "solver"; none: all that was observed.
            worlds: Which; None: the first 16.

        Returns:
            The figure; notebooks show it, `save("curves.svg")` writes it.
        """
        shown = range(min(self._contents.worlds, MAXIMUM_WORLDS)) if worlds is None else worlds
        for world in shown:
            self._check_world(world)
        name = self._source.scene.name
        curves = rollout_curves(name, self.times, set(self), self.numpy, self._contents.layout, shown)
        return provided("plot")(curves, kinds or None)

    def __repr__(self) -> str:
        tensors = ", ".join(f"{name} {tuple(tensor.shape)}" for name, tensor in self.items())
        return f"Trajectory({self._source.scene.name!r}: {self.times[-1]:.4g} s, {len(self.times)} frames; {tensors})"

    def _repr_html_(self) -> str:
        facts = {
            "time": f"{self.times[-1]:.4g} s, {len(self.times)} frames",
            "worlds": self._contents.worlds,
            "tensors": ", ".join(f"{name} {tuple(tensor.shape)}" for name, tensor in self.items()),
        }
        text = facts_html(f"Trajectory of {self._source.scene.name}", facts)
        if not {"body_position", "body_rotation"} <= set(self):
            return text
        return text + folded_page_html(page_html(self.page()), "View the motion")

    def _save_arrays(self, target: Path) -> Path:
        layout = self._contents.layout
        names = {f"{kind}_names": getattr(layout, f"{kind}_names") for kind in ("body", "joint", "actuator", "drive")}
        arrays: dict[str, Any] = {name: self.numpy(name) for name in self}
        arrays |= {kind: np.array(values, dtype=str) for kind, values in names.items()}
        with replacing(target) as temporary:
            np.savez(temporary, format=np.array(MARK), times=self.times, **arrays)
        return target

    def motion(self, world: int = 0) -> Motion:
        """One world as the USD writer takes it, in the order of the scene's own joints and bodies."""
        self._check_world(world)
        scene, layout = self._source.scene, self._contents.layout
        joints = [find_joint(layout, joint.name) for joint in scene.joints]
        bodies = [layout.body(body.name) for body in scene.bodies]
        if scene.bodies and not ("body_position" in self and "body_rotation" in self):
            raise InputError(
                "a motion is saved and drawn by its bodies' poses: add body_position and body_rotation to outputs=(…)"
            )
        none = np.zeros((len(self.times), 0))
        q, qd = (self.numpy(name)[:, world] if name in self else none for name in ("q", "qd"))
        motion = Motion(
            times=self.times,
            q=q[:, [i for joint in joints for i in range(joint.q.start, joint.q.stop)]],
            qd=qd[:, [i for joint in joints for i in range(joint.dofs.start, joint.dofs.stop)]],
            positions=self.numpy("body_position")[:, world, bodies] if bodies else np.zeros((len(self.times), 0, 3)),
            rotations=self.numpy("body_rotation")[:, world, bodies] if bodies else np.zeros((len(self.times), 0, 4)),
        )
        if "body_velocity" in self:
            velocity = self.numpy("body_velocity")[:, world, bodies]
            motion.angular_velocities, motion.velocities = velocity[..., :3], velocity[..., 3:]
        if all(name in self for name in CONTACT_OUTPUTS):
            motion.contacts = self._contacts(world)
        self._add_matters(motion, world)
        return motion

    def _check_world(self, world: int) -> None:
        if not 0 <= world < self._contents.worlds:
            raise InputError(f"world={world} of {self._contents.worlds}")

    def _add_matters(self, motion: Motion, world: int) -> None:
        """States of matters other than bodies, and what of them is drawn."""
        points: dict[str, np.ndarray] = {}
        states: dict[str, dict[str, np.ndarray]] = {}
        for matter in self._source.scene.matters:
            prefix = f"{matter.name}."
            own = {n.removeprefix(prefix): self.numpy(n)[:, world] for n in self if n.startswith(prefix)}
            points |= matter_kind(matter.kind).points(matter, own)
            if matter.path:
                states[matter.path] = {name: own[name] for name in matter.initial if name in own}
        motion.points, motion.matter_states = points, states

    def _contacts(self, world: int) -> list[ContactFrame]:
        """Contacts that push, frame by frame."""
        points, forces = (self.numpy(name)[:, world] for name in CONTACT_OUTPUTS)
        acts = (forces != 0.0).any(axis=-1)
        return [ContactFrame(p[on], f[on]) for p, f, on in zip(points, forces, acts, strict=True)]
