"""What a simulator shows: states and outputs by name, at one time or over a rollout, as tensors; and saving them."""

from __future__ import annotations

import tempfile
import webbrowser
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
import torch
import warp as wp

from warpsim.errors import InputError, unknown_name, whole_number
from warpsim.load import is_usd
from warpsim.model.model import Model
from warpsim.names import find, find_joint
from warpsim.scene import Scene
from warpsim.sensors.layout import sensor_place
from warpsim.usd.motion import ContactFrame, Motion
from warpsim.usd.writer import OptimisedValue, write_result
from warpsim.view.notebook import facts_html, folded_page_html
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


def check_target(target: Path, source: Path | None) -> None:
    """Raises if a motion simulated from `source` cannot be saved as `target`; worth asking before a long run."""
    if target.suffix == ".npz" or target.suffix.lower() in PAGE_SUFFIXES:
        return
    if not is_usd(target):
        raise InputError(f"{target}: trajectories are saved as .html, .npz, .usda or .usdc")
    if source is None or not is_usd(source):
        raise InputError(
            f"{target}: an animation is written over the USD file that was simulated, and this scene did not come "
            "from one; convert it with `warpsim convert`, or save a .npz file"
        )
    if target.resolve() == source.resolve():
        raise InputError(f"{target} is the scene itself, which is never written; choose another name")


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
    """

    def __init__(self, model: Model, tensors: Mapping[str, torch.Tensor]) -> None:
        self._model = model
        self._tensors = dict(tensors)

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
        return self["q"][..., find_joint(self._model.layout, joint).q]

    def joint_velocity(self, joint: str) -> torch.Tensor:
        """(…, worlds, n): velocities of a joint, rad/s or m/s."""
        return self["qd"][..., find_joint(self._model.layout, joint).dofs]

    def sensor(self, name: str) -> torch.Tensor:
        """(…, worlds, n): what a sensor measured at the start of the step that led to each row; row 0 is zero."""
        return self["sensors"][..., sensor_place(self._model.sensors, name)]

    def _of_body(self, output: str, body: str) -> torch.Tensor:
        return self[output][..., find("body", body, self._model.layout.body_names).index, :]


class Trajectory(Observed):
    """A rollout: each tensor is (rows, worlds, …) and is the rollout's own memory; row 0 is the initial state.

    Attributes:
        times: (rows,) s, from the start of the rollout.
    """

    def __init__(
        self,
        model: Model,
        source: Source,
        tensors: Mapping[str, torch.Tensor],
        interval: float,
        values: Callable[[int], list[OptimisedValue]] | None = None,
    ) -> None:
        """Takes what a rollout has made.

        Args:
            model: What was simulated.
            source: Where it came from.
            tensors: By name.
            interval: Seconds between rows.
            values: USD attributes of a world that differed from the source's; None: none did.
        """
        super().__init__(model, tensors)
        self._source = source
        self._values = values
        self.times = interval * np.arange(len(self["q"]))

    def every(self, rows: int) -> Trajectory:
        """Rows 0, n, 2n … alone, over the same memory."""
        whole_number("rows", rows)
        tensors = {name: tensor[::rows] for name, tensor in self._tensors.items()}
        interval = rows * float(self.times[1]) if len(self.times) > 1 else 0.0
        return Trajectory(self._model, self._source, tensors, interval, self._values)

    def warp(self, name: str) -> wp.array:
        """The Warp array over the same memory, of scalars."""
        return wp.from_torch(self[name].detach(), requires_grad=False)

    def save(self, path: str | PathLike[str], *, world: int = 0) -> list[Path]:
        """Writes the rollout to a file.

        Args:
            path: ".npz": all tensors of all worlds, `times` and the names. A USD file: one world as an animation over
                the scene it came from, with the attributes that the rollout was given, which opens in any USD viewer
                and loads again. ".html": a page that shows the motion in any browser; see `page`.
            world: For USD: which world.

        Returns:
            The files written.
        """
        target = Path(fspath(path))
        check_target(target, self._source.path)
        if target.suffix == ".npz":
            return [self._save_arrays(target)]
        if target.suffix.lower() in PAGE_SUFFIXES:
            return [write_page(target, self.page(title=target.stem))]
        assert self._source.path is not None
        motion = self.motion(world)
        values = None if self._values is None else self._values(world)
        return write_result(target, self._source.path, self._source.scene, motion, values=values)

    def page(self, *, worlds: Sequence[int] | None = None, title: str | None = None) -> Page:
        """What a page shows of the rollout, for `warpsim.view.page.page_html`.

        Contacts are shown where "contact_points" and "contact_point_forces" are among the outputs.

        Args:
            worlds: Which; None: the first 16.
            title: None: the scene's name.
        """
        shown = range(min(self._model.worlds, MAXIMUM_WORLDS)) if worlds is None else worlds
        names = ["motion"] if len(shown) == 1 else [f"world {world}" for world in shown]
        layout, scene, path = self._model.layout, self._source.scene, self._source.path
        parameters = self._model.body
        masses, centers = parameters.mass.numpy()[0], parameters.com.numpy()[0]
        places = {body.name: layout.body(body.name) for body in scene.bodies}
        return motions_page(
            scene,
            path if path is not None and is_usd(path) else None,
            [(name, self.motion(world)) for name, world in zip(names, shown, strict=True)],
            title=title or scene.name,
            masses={name: float(masses[place]) for name, place in places.items()},
            centers={name: np.array(centers[place]) for name, place in places.items()},
        )

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

    def _repr_html_(self) -> str:
        facts = {
            "time": f"{self.times[-1]:.4g} s, {len(self.times)} rows",
            "worlds": self._model.worlds,
            "tensors": ", ".join(f"{name} {tuple(tensor.shape)}" for name, tensor in self.items()),
        }
        text = facts_html(f"Trajectory of {self._source.scene.name}", facts)
        if not {"body_position", "body_rotation"} <= set(self):
            return text
        return text + folded_page_html(page_html(self.page()), "View the motion")

    def _save_arrays(self, target: Path) -> Path:
        layout = self._model.layout
        names = {f"{kind}_names": getattr(layout, f"{kind}_names") for kind in ("body", "joint", "actuator", "drive")}
        arrays: dict[str, Any] = {name: self.numpy(name) for name in self}
        arrays |= {kind: np.array(values, dtype=str) for kind, values in names.items()}
        np.savez(target, times=self.times, **arrays)
        return target

    def motion(self, world: int = 0) -> Motion:
        """One world as the USD writer takes it, in the order of the scene's own joints and bodies."""
        if not 0 <= world < self._model.worlds:
            raise InputError(f"world={world} of {self._model.worlds}")
        scene, layout = self._source.scene, self._model.layout
        joints = [find_joint(layout, joint.name) for joint in scene.joints]
        bodies = [layout.body(body.name) for body in scene.bodies]
        q, qd = self.numpy("q")[:, world], self.numpy("qd")[:, world]
        motion = Motion(
            times=self.times,
            q=q[:, [i for joint in joints for i in range(joint.q.start, joint.q.stop)]],
            qd=qd[:, [i for joint in joints for i in range(joint.dofs.start, joint.dofs.stop)]],
            positions=self.numpy("body_position")[:, world, bodies],
            rotations=self.numpy("body_rotation")[:, world, bodies],
        )
        if "body_velocity" in self:
            velocity = self.numpy("body_velocity")[:, world, bodies]
            motion.angular_velocities, motion.velocities = velocity[..., :3], velocity[..., 3:]
        if all(name in self for name in CONTACT_OUTPUTS):
            motion.contacts = self._contacts(world)
        return motion

    def _contacts(self, world: int) -> list[ContactFrame]:
        """Contacts that push, row by row."""
        points, forces = (self.numpy(name)[:, world] for name in CONTACT_OUTPUTS)
        acts = (forces != 0.0).any(axis=-1)
        return [ContactFrame(p[on], f[on]) for p, f, on in zip(points, forces, acts, strict=True)]
