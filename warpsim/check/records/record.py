"""`RunRecord`: everything about one run, as one JSON file."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from warpsim.check.records.plain import decode, encode
from warpsim.check.records.signed import read_json, signed_text, verified
from warpsim.core.errors import InputError, WarpsimError
from warpsim.core.files import refuse_sources, write_text
from warpsim.io.scene_files import scene_files

FORMAT = "warpsim run record 1"

UNITS = {
    "times": "s",
    "q": "m, rad; quaternions (w, x, y, z)",
    "qd": "m/s, rad/s",
    "activation": "1",
    "actuator": "as the actuator's input",
    "drive_target": "rad, m",
    "drive_velocity": "rad/s, m/s",
    "joint_force": "N·m, N",
    "wrench": "N, N·m",
    "potential_energy": "J",
    "kinetic_energy": "J",
    "penetration": "m",
    "latency": "s",
    "parameters": "SI",
}
FRAMES = {
    "q": "joint coordinates; free joints in the world",
    "qd": "joint rates; free joints: linear in the world, angular in the body",
    "wrench": "world axes, at the center of mass",
}

_KINDS: dict[str, Any] = {"dict": dict, "list": list, "str": str, "int": int, "float": (float, int)}
"""Annotation of a field → what JSON makes of it."""


@dataclass
class RunRecord:
    """One run.

    Attributes:
        created: Time stamp, ISO 8601, UTC.
        scene: Path, hash of the file, hash of the description, name.
        versions: Of the software, the machine, the precision.
        device: Where it ran.
        settings: Time step, integrator, solver and its tolerance, cone, contact regularization (softening, impedance).
        seed: Of whatever was random; None if nothing was.
        horizon: Steps and seconds.
        names: Bodies, joints, dofs, shapes, actuators, drives, in the order of the arrays.
        initial_state: q, qd, activation, (W, …) each; fields of matters where they were given, else the scene has them.
        parameters: All authored parameters in force, (n, …), or (W, n, …) where worlds differ; SI.
        actions: Controls by name, (N, W, …).
        bounds: Control and force ranges of actuators, force limits of drives.
        control_period: s between controls.
        latency: Measured s per control, where a policy computed it in the loop; None in open loop.
        trajectory: Times and states at the frames kept, and the hash of all frames; of matters, figures of each.
        observations: What was observed at the frames kept: energies, penetration, contacts, sensors …
        actuator_status: (N, W, actuators + drives) −1 or 1 where a range cut.
        solver_status: (N, W) codes of `warpsim.solve.newton.STATUS_TEXT`.
        outcome: The loss, the success metric and whether it was met, and other numbers.
        gradient: Norms by input, adjoint norms along the rollout, validity; empty if nothing was differentiated.
        task: The task whose search made its inputs: source and its hash, method, seed …; empty if there was none.
        more: What else its maker wants kept, e.g. the history of that search.
        labels: What is wrong with it, see `warpsim.check.records.labels`.
    """

    created: str
    scene: dict[str, Any]
    versions: dict[str, str]
    device: str
    settings: dict[str, Any]
    seed: int | None
    horizon: dict[str, Any]
    names: dict[str, list[str]]
    initial_state: dict[str, Any]
    parameters: dict[str, Any]
    actions: dict[str, Any]
    bounds: dict[str, Any]
    control_period: float
    latency: list[float] | None
    trajectory: dict[str, Any]
    observations: dict[str, Any]
    actuator_status: Any
    solver_status: Any
    outcome: dict[str, Any] = field(default_factory=dict)
    gradient: dict[str, Any] = field(default_factory=dict)
    task: dict[str, Any] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)
    labels: list[dict[str, Any]] = field(default_factory=list)

    def plain(self) -> dict[str, Any]:
        """As JSON can hold it, with the format's name, units and frames."""
        return {"format": FORMAT, "units": UNITS, "frames": FRAMES, **encode(self)}

    def save(self, path: str | PathLike[str]) -> Path:
        """Writes a JSON file."""
        target = Path(fspath(path))
        scene = self.scene.get("path")
        if scene is not None and target.exists():  # what is not there cannot have been read
            refuse_sources([target], scene_files(scene), "the run that it records")
        return write_text(target, signed_text(self.plain()))


def read_record(path: str | PathLike[str]) -> RunRecord:
    """Reads what `RunRecord.save` wrote."""
    source = Path(fspath(path))
    if not source.is_file():
        raise InputError(f"no file {str(source)!r}")
    data = read_json(source)
    if data.get("format") != FORMAT:
        raise InputError(
            f"{source}: not a run record ({FORMAT!r}); `warpsim simulate --record` and `warpsim optimize` write them"
        )
    content = verified(data, source)
    known = {f.name: str(f.type) for f in dataclasses.fields(RunRecord)}
    if missing := set(known) - set(content):
        raise InputError(f"{source}: the record lacks {', '.join(sorted(missing))}; record the run again")
    for name, kind in known.items():
        right = isinstance(content[name], _KINDS.get(kind.split("[")[0].split(" ")[0], object))
        if not (right or (content[name] is None and kind.endswith("| None"))):
            raise InputError(f"{source}: {name} of the record is a {type(content[name]).__name__}, not {kind}")
    with blamed(source):
        return RunRecord(**{name: decode(content[name]) for name in known})


@contextmanager
def blamed(source: str | PathLike[str]) -> Iterator[None]:
    """While open, an error that is not one of ours is taken to come from a record whose numbers are damaged."""
    try:
        yield
    except WarpsimError:
        raise
    except (
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
        IndexError,
        RuntimeError,
        OverflowError,
    ) as error:  # RecursionError is a RuntimeError
        raise InputError(f"{fspath(source)}: the record is damaged ({error}); record the run again") from error
