"""Damages what readers are given and reads it: `PYTHONPATH=. python tests/support/reader_fuzz.py KIND FIRST LAST`.

Kinds: task prims, run records, states of searches (`search.json`), MJCF, URDF. Damaged input must give an error of
warpsim's own or a right result. It runs as a program so that a crash of the interpreter is seen by whoever started it;
bad seeds are printed with their tracebacks.
"""

from __future__ import annotations

import contextlib
import copy
import json
import signal
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import mujoco
import numpy as np
import torch
from pxr import Sdf, Tf, Usd

from fuzz_models import MJCF, URDF
from task_scenes import reach, swing
from usd_fuzz import Damage
from warpsim.check.records import compare, read_record, record_run
from warpsim.check.records.labels import label
from warpsim.check.records.signed import signed_text
from warpsim.core.errors import WarpsimError
from warpsim.io.mjcf.reader import read_mjcf
from warpsim.io.usd import author
from warpsim.io.usd.reader import read_usd
from warpsim.optimizers.minimize import minimize
from warpsim.optimizers.problem import FunctionProblem
from warpsim.scene import Scene, validate
from warpsim.sim.simulator import Simulator
from warpsim.task.folder import ResultFolder
from warpsim.task.read import read_task

LONGEST = 60
"""s that one case may take, on a machine that does other things too."""
NUMBERS = ("nan", "inf", "-inf", "0", "-0.0", "-1", "1e-40", "1e38", "-1e308", "1e400", "7", "2147483648", "3.5")
TEXTS = ("", "nonsense", "%s%n%d", "1 2", "1 2 3", "a b c d", "-1 -1 -1", "true", "auto", "\u00e9\u4e2d", "x" * 5000)


class Reader:
    """Something that is read; `case` damages it by a seed and `read` reads it, or raises an error of our own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def case(self, rng: np.random.Generator) -> Any:
        """A damaged input; None if it never reaches our reader."""
        raise NotImplementedError

    def read(self, case: Any) -> None:
        """Reads it and checks what was read."""
        raise NotImplementedError


def scratched(text: str, rng: np.random.Generator) -> str:
    """The text with a few characters replaced, or cut short."""
    if rng.random() < 0.3:
        return text[: rng.integers(len(text))]
    characters = list(text)
    for _ in range(int(rng.integers(1, 6))):
        characters[int(rng.integers(len(characters)))] = str(rng.choice(list('{}()[]<>/"=,.:x0- \n%&')))
    return "".join(characters)


class Tasks(Reader):
    """Prims of a task with one part of every kind."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        stage, task = swing(drives=True)
        reach(task)
        body, joint = "/World/Lower", "/World/Joint0"
        goal = {"subject": body, "target": "/World/Goal"}
        author.frame(stage.GetPrimAtPath("/World"), "Goal", position=(0.3, 0, 0.6))
        author.set_attributes(task, {"durationRange": (0.1, 0.5), "startTime": 2, "method": "adam", "seconds": 9.0})
        for kind, settings in {
            "Variable": {"attributes": "/World/Physics.physics:gravityMagnitude", "lower": [1.0], "components": [0]},
            "Steps": {"targets": "/World/Motor0", "channel": "actuator", "values": [0.5]},
            "Knots": {
                "targets": "/World/Motor1",
                "count": 4,
                "interpolation": "cubic",
                "lower": [-1.0],
                "upper": [2.0],
            },
            "Periodic": {"channel": "driveTarget", "period": 0.1, "harmonics": 3},
            "Pose": {**goal, "leverArm": 0.5, "angleTolerance": 5.0},
            "Velocity": {"subject": body, "quantity": "angular", "velocity": (0, 90, 0), "axes": ["y"]},
            "Posture": {"joints": joint, "position": [10.0], "when": "time", "time": 0.1, "tolerance": 3.0},
            "CenterOfMass": {"position": (0, 0, 1), "when": "running", "window": (0.05, 0.15)},
            "Energy": {"quantity": "kinetic", "energy": 1.0},
            "ContactForce": {"subject": body, "atMost": 3.0},
            "Clearance": {"subject": body, "obstacles": "/World/Upper", "distance": 0.01},
            "Effort": {"controls": "/World/Task/Part1", "weight": 0.01, "when": "running"},
            "Smoothness": {"weight": 0.01, "when": "running"},
            "Duration": {"weight": 0.1},
            "KeepJointLimits": {"tolerance": 0.1},
            "KeepControlLimits": {},
            "StayAbove": {"subject": body, "height": 0.1},
        }.items():
            author.task_part(task, kind, f"Part{len(task.GetChildren()) - 1}", **settings)
        self.text = stage.GetRootLayer().ExportToString()
        self.kinds = [child.GetTypeName() for child in task.GetChildren()]
        self.scene = read_usd(stage)
        assert len(read_task(stage, self.scene).terms) == 11

    def case(self, rng: np.random.Generator) -> Usd.Stage | None:
        """A stage whose task has one to four edits."""
        layer = Sdf.Layer.CreateAnonymous(".usda")
        text = scratched(self.text, rng) if rng.random() < 0.1 else self.text
        try:
            if not layer.ImportFromString(text):
                return None
        except Tf.ErrorException:
            return None
        damage = Damage(layer, rng)
        inside = [prim for prim in damage.prims if prim and prim.path.HasPrefix("/World/Task")]
        damage.prims = inside
        edits = ("value",) * 5 + ("type", "type", "relationship", "relationship", "remove", "move", "retype", "sample")
        for _ in range(int(rng.integers(1, 5))):
            edit = edits[rng.integers(len(edits))]
            live = [prim for prim in inside if prim]
            if edit == "retype" and live:
                damage.pick(live).typeName = str(damage.pick((*self.kinds, "WarpsimNothing", "Xform")))
            elif edit != "remove" or len(live) > 1:
                getattr(damage, edit)()
        return Usd.Stage.Open(layer)

    def read(self, case: Usd.Stage) -> None:
        """Reads the first task; one that is read is complete."""
        task = read_task(case, self.scene)
        assert 0 < task.duration < np.inf
        assert task.terms and all(np.isfinite(term.weight) for term in task.terms)
        assert task.variables or task.controls or task.duration_range
        authored = case.GetPrimAtPath(task.name).GetAttribute("duration")
        assert task.duration in (authored.Get(), authored.Get(Usd.TimeCode.EarliestTime()))


def damaged_json(data: Any, rng: np.random.Generator) -> None:
    """One edit somewhere in nested data."""
    places: list[tuple[Any, Any]] = []

    def visit(item: Any) -> None:
        keys = list(item) if isinstance(item, dict) else range(min(len(item), 40)) if isinstance(item, list) else ()
        for key in keys:
            places.append((item, key))
            visit(item[key])

    visit(data)
    if not places:
        return
    owner, key = places[rng.integers(len(places))]
    odd = [None, True, -1, 0, 2**70, 1e308, float("nan"), "", "nonsense", "nan", [], {}, [[]], [1, "a"], {"a": 1}]
    odd += [{"array": "float64", "shape": [2], "data": [1.0]}, {"array": "object", "shape": [1], "data": [{}]}]
    odd += [{"array": "U999999999", "shape": [1], "data": ["a"]}, {"array": "float64", "shape": [-1, 0], "data": []}]
    if rng.random() < 0.3:
        del owner[key]
    else:
        owner[key] = copy.deepcopy(odd[rng.integers(len(odd))])


class Json(Reader):
    """Something in a JSON file; in a part of the cases it is damaged but signed as if it were whole."""

    text = ""
    forged = False

    def case(self, rng: np.random.Generator) -> Path:
        """A file with one to three edits, or with damaged text."""
        path = self.folder / "case.json"
        if rng.random() < 0.2:
            self.forged = False
            path.write_text(scratched(self.text, rng), encoding="utf-8")
            if rng.random() < 0.1:
                path.write_bytes(b"\xff\xfe" + self.text.encode()[:100])
            elif rng.random() < 0.1:
                path.write_text("[" * 100_000, encoding="utf-8")
            return path
        data = json.loads(self.text)
        kind = rng.random()
        for _ in range(0 if kind < 0.2 else int(rng.integers(1, 4))):  # another layout is no damage
            damaged_json(data, rng)
        if kind > 0.6:
            data = json.loads(signed_text({name: value for name, value in data.items() if name != "sha256"}))
        self.forged = kind > 0.6
        path.write_text(json.dumps(data, indent=int(rng.integers(4))), encoding="utf-8")
        return path


class Records(Json):
    """The record of a short run, which is then compared and labeled."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        scene = Path(__file__).resolve().parents[2] / "scenes" / "cartpole.usda"
        sim = Simulator(scene)
        made = record_run(sim, controls=torch.zeros(3, 1, 1, dtype=sim.torch_dtype), loss=lambda t: t.q[-1].sum())
        path = folder / "record.json"
        made.save(path)
        self.text, self.whole = path.read_text(encoding="utf-8"), made
        assert compare(read_record(path), made).inputs == {}

    def read(self, case: Path) -> None:
        """What is read can be compared, labeled and written again."""
        record = read_record(case)
        if self.forged:
            return
        assert str(compare(record, self.whole)) and str(compare(self.whole, record))
        label(record)
        assert read_record(record.save(self.folder / "again.json")).plain() == record.plain()


class Searches(Json):
    """The state of a search for the least of a valley, from which it goes on."""

    key = {"task": "valley", "method": "lbfgs"}

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.problem = FunctionProblem([-1.0, 1.0], loss=lambda x: (1 - x[0]) ** 2 + 5 * (x[1] - x[0] ** 2) ** 2)
        self.files = ResultFolder(folder / "run", None, folder)  # type: ignore[arg-type]  # no task: only its state
        self.files.save_state(self.key, minimize(self.problem, "lbfgs", iterations=4).state)
        self.text = self.files.state.read_text(encoding="utf-8")
        self.end = minimize(self.problem, "lbfgs", iterations=9, resume=self.files.load_state(self.key))

    def read(self, case: Path) -> None:
        """A search that goes on ends where the undamaged one does."""
        case.replace(self.files.state)
        state = self.files.load_state(self.key)
        if self.forged:
            return
        found = minimize(self.problem, "lbfgs", iterations=9, resume=state)
        assert torch.equal(found.x, self.end.x) and found.loss == self.end.loss


class Xml(Reader):
    """A robot as XML, which MuJoCo compiles and we convert."""

    text, suffix = MJCF, ".xml"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.root = ElementTree.fromstring(self.text)
        self.path = folder / f"case{self.suffix}"
        self.path.write_text(self.text, encoding="utf-8")
        self.read(self.path)

    def case(self, rng: np.random.Generator) -> Path:
        """A file with one or two edits, or with damaged text."""
        if rng.random() < 0.1:
            self.path.write_text(scratched(self.text, rng), encoding="utf-8")
            return self.path
        root = copy.deepcopy(self.root)
        for _ in range(int(rng.integers(1, 3))):
            self.edit(root, rng)
        self.path.write_text(ElementTree.tostring(root, encoding="unicode"), encoding="utf-8")
        return self.path

    def edit(self, root: ElementTree.Element, rng: np.random.Generator) -> None:
        """One edit of a tree: a value, an attribute, an element."""
        items = list(root.iter())
        pick = lambda choices: choices[rng.integers(len(choices))]  # noqa: E731
        item, other = pick(items), pick(items)
        kind = rng.random()
        if kind < 0.6:
            holders = [i for i in items if i.attrib]
            item = pick(holders)
            name = pick(sorted(item.attrib))
            parts = item.attrib[name].split()
            if parts and rng.random() < 0.7:
                parts[rng.integers(len(parts))] = str(pick(NUMBERS))
                item.set(name, " ".join(parts))
            else:
                item.set(name, str(pick(TEXTS)))
        elif kind < 0.7 and item.attrib:
            del item.attrib[pick(sorted(item.attrib))]
        elif kind < 0.75:
            names = sorted({name for i in items for name in i.attrib})
            item.set(pick(names), str(pick((*NUMBERS, *TEXTS))))
        elif kind < 0.78:
            item.set("class", str(pick(TEXTS)))
        elif kind < 0.85:
            for parent in items:
                if item in list(parent):
                    parent.remove(item)
        elif kind < 0.95:
            if item is not root and not any(part is other for part in item.iter()):
                other.append(copy.deepcopy(item))
        else:
            item.tag = pick(sorted({i.tag for i in items}))

    def read(self, case: Path) -> None:
        """What is read is the tree that MuJoCo compiled."""
        scene = read_mjcf(case, strict=False)
        validate(scene)
        same_as_mujoco(scene, mujoco.MjModel.from_xml_path(str(case)))


def same_as_mujoco(scene: Scene, model: mujoco.MjModel) -> None:
    """Bodies, joints and masses are those of the compiled model."""
    assert len(scene.bodies) == model.nbody - 1
    moved = model.body_mocapid[1:] < 0
    joints = [joint for joint in scene.joints if not scene.bodies[_place(scene, joint.body)].kinematic]
    assert len(joints) == model.njnt
    np.testing.assert_allclose(
        np.array([body.position for body in scene.bodies]).reshape(-1, 3)[moved], model.body_pos[1:][moved], rtol=1e-12
    )
    for index, body in enumerate(scene.bodies, start=1):
        if body.mass is not None and not body.kinematic:
            assert np.isclose(body.mass, model.body_mass[index], rtol=1e-12)


def _place(scene: Scene, name: str) -> int:
    return [body.name for body in scene.bodies].index(name)


class Urdf(Xml):
    """A robot as URDF."""

    text, suffix = URDF, ".urdf"


KINDS: dict[str, Callable[[Path], Reader]] = {
    "task": Tasks,
    "record": Records,
    "search": Searches,
    "mjcf": Xml,
    "urdf": Urdf,
}


def _give_up(*_) -> None:
    raise TimeoutError(f"a case took more than {LONGEST} s")


def run(kind: str, first: int, last: int) -> Counter[str]:
    """Outcomes of the cases of seeds first to last − 1."""
    counts: Counter[str] = Counter(read=0, error=0, unparsable=0, bad=0)
    with tempfile.TemporaryDirectory() as folder:
        reader = KINDS[kind](Path(folder))
        for seed in range(first, last):
            signal.alarm(LONGEST)  # a hang is as bad as a crash
            try:
                case = reader.case(np.random.default_rng([seed, len(kind)]))
                if case is None:
                    counts["unparsable"] += 1
                    continue
                try:
                    reader.read(case)
                    counts["read"] += 1
                except WarpsimError as error:
                    assert len(str(error)) > 10
                    counts["error"] += 1
            except Exception:  # the point is to find any
                counts["bad"] += 1
                print(f"{kind}, seed {seed}\n{traceback.format_exc()}")
    signal.alarm(0)
    return counts


def main(kinds: str, first: int, last: int) -> int:
    """Reads damaged input of some kinds, "+" between them; returns how many misbehaved."""
    signal.signal(signal.SIGALRM, _give_up)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):  # MuJoCo leaves a log where it runs
        found = {kind: run(kind, first, last) for kind in kinds.split("+")}
    print({kind: dict(counts) for kind, counts in found.items()})
    return sum(counts["bad"] for counts in found.values())


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])), 1))
