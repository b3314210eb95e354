"""`sim.viewer()`: a simulator in the browser while it runs: pause, step, pull at bodies, move sliders."""

from __future__ import annotations

import dataclasses
import threading
import time
import webbrowser
from collections.abc import Mapping, Sequence
from typing import Self

import numpy as np
import torch

from warpsim.core.errors import InputError
from warpsim.core.numpy_quaternions import quat_to_matrix
from warpsim.sim.live_sliders import Slider, attribute_sliders, control_sliders
from warpsim.sim.simulator import Simulator
from warpsim.sim.trajectory import CONTACT_OUTPUTS, MAXIMUM_WORLDS, Observed, Trajectory
from warpsim.view.live.server import LiveServer
from warpsim.view.live.states import pack_states
from warpsim.view.live.wishes import Drag, Pause, Release, Reset, Slide, Step, Wish, read_wish
from warpsim.view.page.content import LivePanel, Page, Target
from warpsim.view.page.html import live_html
from warpsim.view.page.scene_content import motion_take

FRAMES_PER_SECOND = 60.0
OUTPUTS = ("body_position", "body_rotation", "body_velocity")
STIFFNESS, DAMPING, CAUTION = 60.0, 1.4, 0.1
"""Of the spring that pulls: 1/s² times the whole mass, of its critical damping, and its limit k·dt²/m."""
_LOOK_AGAIN = 0.05
"""s between looks at what a viewer wants, while nothing is computed."""


def open_viewer(
    sim: Simulator, *, sliders: Mapping[str, tuple[float, float]] | None = None, port: int = 0, browser: bool = True
) -> LiveViewer:
    """Opens a live view of a simulator in the browser.

    `run()` of what is returned steps the simulator under the viewer's hands; `show()` sends the current state from a
    loop of one's own, and `play(trajectory)` shows a rollout while a search goes on. Bodies can be pulled where
    "wrench" is among the controls.

    Args:
        sim: What to show.
        sliders: USD attributes that get a slider, with its ends: {"/World/Ball.physics:mass": (0.1, 2.0)}; controls
            have theirs anyway.
        port: On 127.0.0.1; 0: one that is free.
        browser: Whether to open the page; its address is `url`, and only who has it can look.

    Returns:
        A viewer, to be closed: `with sim.viewer() as viewer: …`.
    """
    viewer = LiveViewer(sim, sliders or {}, port)
    if browser:
        webbrowser.open(viewer.url)
    return viewer


class LiveViewer:
    """A page that follows a simulator.

    Attributes:
        sim: The simulator.
        paused: Whether the viewer wants it to stand still.
    """

    def __init__(self, sim: Simulator, sliders: Mapping[str, tuple[float, float]], port: int) -> None:
        self.sim = sim
        self.paused = False
        self._worlds = range(min(sim.worlds, MAXIMUM_WORLDS))
        self._sliders: list[Slider] = [*control_sliders(sim), *attribute_sliders(sim, sliders)]
        self._steps_wanted = 0
        self._drag: Drag | None = None
        self._player: _Player | None = None
        self._label = ""
        self._losses: list[tuple[int, float]] = []
        self._outputs = (*OUTPUTS, *(CONTACT_OUTPUTS if sim.model.max_contacts else ()))
        self._server = LiveServer(self._read, port=port)
        self._edition = 0
        self.mark(())
        self.show()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _repr_html_(self) -> str:
        return f'<a href="{self.url}" target="_blank">live view of {self.sim.scene.name}</a>'

    @property
    def url(self) -> str:
        """What to open in a browser on this machine."""
        return self._server.url

    @property
    def watchers(self) -> int:
        """Viewers that are connected."""
        return self._server.watchers

    @property
    def controls(self) -> dict[str, torch.Tensor]:
        """What the sliders and the mouse give, by control; for `sim.step` in a loop of one's own."""
        made = {name: value[0] for name, value in self.sim.all_controls(1).items()}
        made = {name: value.detach().clone() for name, value in made.items()}
        for slider in self._sliders:
            if slider.control is not None:
                made[slider.control].reshape(self.sim.worlds, -1)[:, slider.place] = slider.value
        if self._drag is not None and "wrench" in made:
            made["wrench"] += self._pull(self._drag)
        return made

    def mark(self, targets: Sequence[Target]) -> None:
        """Draws targets of a task; pages that are open load themselves again."""
        self._edition += 1
        self._page = self._make_page(targets)
        self._server.set_page(live_html(self._page, self._server.sources))
        self._tell()

    def show(self, state: Observed | None = None, *, label: str | None = None) -> None:
        """Sends a state to the viewers; while they want a pause, it waits.

        Args:
            state: With "body_position" and "body_rotation"; None: the simulator's own.
            label: A line to show with it, e.g. the loss.
        """
        self._stop_playing()
        self._listen()
        while self.paused and not self._steps_wanted and self.watchers:
            self._listen(wait=0.1)
        self._steps_wanted = max(0, self._steps_wanted - 1)
        if label is not None and label != self._label:
            self._label = label
            self._tell()
        self._send(self._observed() if state is None else state, self.sim.time)

    def play(
        self, trajectory: Trajectory, *, label: str = "", losses: Sequence[tuple[int, float]] | None = None
    ) -> None:
        """Plays a rollout again and again until something else is shown; returns at once, e.g. to a search.

        Args:
            trajectory: Of this simulator's scene, with "body_position" and "body_rotation".
            label: A line to show with it, e.g. the iteration and its loss.
            losses: Iterations of a search so far and their losses, drawn as a curve; None: those of the last call.
        """
        self._stop_playing()
        self._label = label
        self._losses = self._losses if losses is None else list(losses)
        self._tell()
        self._player = _Player(self, trajectory)

    def hold(self) -> None:
        """Waits while the viewer wants a pause; each step it asks for lets this return once.

        For a search between two calls of `play`: what was shown last goes on playing meanwhile.
        """
        while self.paused and not self._steps_wanted and self.watchers:
            time.sleep(_LOOK_AGAIN)
        self._steps_wanted = max(0, self._steps_wanted - 1)

    def wait(self, *, for_viewer: bool = False) -> None:
        """Waits until the last viewer has left, or for the first one to come.

        Args:
            for_viewer: The latter.
        """
        while bool(self.watchers) != for_viewer:
            time.sleep(_LOOK_AGAIN)

    def run(self, seconds: float | None = None, *, wait: bool = True) -> None:
        """Steps the simulator in real time, or as fast as it can, under the hands of the viewer.

        Args:
            seconds: Of simulated time; None: until Ctrl-C, or until the last viewer has left.
            wait: Whether to wait for a viewer first.
        """
        if wait:
            self.wait(for_viewer=True)
        each = max(1, round(1.0 / (FRAMES_PER_SECOND * self.sim.timestep)))
        end = np.inf if seconds is None else self.sim.time + seconds
        due = time.perf_counter()
        while self.sim.time < end and (seconds is not None or self.watchers):
            state = None
            for _ in range(each):
                state = self.sim.step(self.controls, outputs=self._outputs)
            self.show(state)
            due = max(due + each * self.sim.timestep, time.perf_counter() - 0.1)  # what was lost is not caught up
            time.sleep(max(0.0, due - time.perf_counter()))

    def close(self) -> None:
        """Ends the server."""
        self._stop_playing()
        self._server.close()

    def _make_page(self, targets: Sequence[Target]) -> Page:
        panel = LivePanel(
            sliders=[slider.facts() for slider in self._sliders],
            drag="wrench" in self.sim.control_names,
            contacts=len(self._worlds) * self.sim.model.max_contacts,
            edition=self._edition,
        )
        page = self._trajectory(self._observed()).page(worlds=list(self._worlds), title=self.sim.scene.name)
        return dataclasses.replace(page, targets=targets, live=panel)

    def _observed(self) -> Observed:
        return self.sim.observe(OUTPUTS)

    def _trajectory(self, state: Observed) -> Trajectory:
        """One frame."""
        return Trajectory(self.sim.model, self.sim.source, {name: state[name].detach()[None] for name in state}, 0.0)

    def _send(self, state: Observed, at: float) -> None:
        shown = self._trajectory(state)
        takes = [motion_take(shown.motion(world), "") for world in self._worlds]
        self._server.publish(pack_states(at, takes, self._page))

    def _tell(self) -> None:
        status = {
            "edition": self._edition,
            "paused": self.paused,
            "label": self._label,
            "sliders": [slider.value for slider in self._sliders],
            "losses": [(iteration, loss if np.isfinite(loss) else None) for iteration, loss in self._losses],
        }
        self._server.publish(status=status)

    def _read(self, text: str | bytes) -> Wish:
        sizes = {"worlds": len(self._worlds), "bodies": len(self._page.bodies), "sliders": len(self._sliders)}
        return read_wish(text, **sizes)

    def _listen(self, wait: float = 0.0) -> None:
        """Does what viewers have asked for."""
        wishes = self._server.wishes(wait)
        for wish in wishes:
            self._obey(wish)
        if any(not isinstance(wish, Drag | Release) for wish in wishes):
            self._tell()

    def _obey(self, wish: Wish) -> None:
        match wish:
            case Pause(on):
                self.paused, self._steps_wanted = on, 0
            case Step(frames):
                self.paused, self._steps_wanted = True, frames
            case Reset():
                self.sim.reset()
                self._drag = None
                self._send(self._observed(), self.sim.time)
            case Drag():
                self._drag = wish if "wrench" in self.sim.control_names else None
            case Release():
                self._drag = None
            case Slide(number, value):
                self._sliders[number].set(self.sim, value)

    def _pull(self, drag: Drag) -> torch.Tensor:
        """(W, nbody, 6) force and torque about the center of mass: a damped spring from a point to the mouse."""
        sim, model = self.sim, self.sim.model
        body = model.layout.body(sim.scene.bodies[drag.body].name)
        seen = sim.observe(OUTPUTS)
        position, rotation = (seen.numpy(name)[drag.world, body] for name in OUTPUTS[:2])
        velocity = seen.numpy("body_velocity")[drag.world, body]
        masses, com = model.body.mass.numpy()[drag.world], model.body.com.numpy()[drag.world, body]
        turn = quat_to_matrix(rotation)
        arm = turn @ drag.point
        stiffness = min(STIFFNESS * masses.sum(), CAUTION * masses[body] / sim.timestep**2)
        damping = DAMPING * np.sqrt(stiffness * masses[body])
        speed = velocity[3:] + np.cross(velocity[:3], arm)
        force = stiffness * (drag.target - position - arm) - damping * speed
        wrench = torch.zeros_like(self.sim.all_controls(1)["wrench"][0])
        torque = np.cross(arm - turn @ com, force)
        wrench[drag.world, body] = torch.as_tensor(np.concatenate([force, torque]), dtype=wrench.dtype)
        return wrench

    def _stop_playing(self) -> None:
        if self._player is not None:
            self._player.stop()
            self._player = None


class _Player:
    """Shows a rollout over and over, in a thread of its own."""

    def __init__(self, viewer: LiveViewer, trajectory: Trajectory) -> None:
        if not set(OUTPUTS[:2]) <= set(trajectory):
            raise InputError("a rollout is shown by its outputs body_position and body_rotation; ask for them")
        self._viewer = viewer
        every = max(1, round(len(trajectory.times) / max(trajectory.times[-1] * FRAMES_PER_SECOND, 1.0)))
        short = trajectory.every(every)
        takes = [motion_take(short.motion(world), "") for world in viewer._worlds]
        self._frames = [pack_states(float(at), takes, viewer._page, frame) for frame, at in enumerate(short.times)]
        self._interval = float(short.times[1]) if len(short.times) > 1 else 0.1
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="warpsim live player", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        frame = 0
        while not self._ended.is_set():
            self._viewer._server.publish(self._frames[frame])
            last = frame == len(self._frames) - 1
            self._ended.wait(0.5 if last else self._interval)
            frame = 0 if last or self._obey() else frame + 1

    def _obey(self) -> bool:
        """Takes the viewer's wishes, which are for the search behind the rollout; whether to play it from its start."""
        again = False
        wishes = self._viewer._server.wishes()
        for wish in wishes:
            if isinstance(wish, Pause | Step):
                self._viewer._obey(wish)
            again = again or isinstance(wish, Reset)
        if wishes:
            self._viewer._tell()
        return again

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()
