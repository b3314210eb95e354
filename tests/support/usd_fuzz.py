"""Damages stages at random and reads them: `PYTHONPATH=. python tests/support/usd_fuzz.py FIRST LAST` prints bad seeds.

A damaged stage must give an error of warpsim's own or a scene that is valid and whose ledger names every authored
physics attribute. It runs as a program so that a crash of the interpreter is seen by whoever started it.
"""

from __future__ import annotations

import signal
import sys
import traceback
from collections import Counter

import numpy as np
from pxr import Gf, Sdf, Tf, Usd

from warpsim.core.errors import WarpsimError
from warpsim.io.usd import author
from warpsim.io.usd.reader import read_usd
from warpsim.scene import validate

LONGEST = 60
"""s that one stage may take, on a machine that does other things too."""
ODD_NUMBERS = (float("nan"), float("inf"), float("-inf"), 0.0, -0.0, -1.0, 1e-40, 1e38, -1e38, 3.4e38, 1e-12, 7.0)
PREFIXES = ("physics:", "newton:", "mjc:", "physx", "drive:", "limit:", "state:", "warpsim:")
TYPES = ("Xform", "Sphere", "Cube", "Mesh", "Plane", "Scope", "PhysicsRevoluteJoint", "PhysicsJoint", "PhysicsScene")
TYPES += ("PhysicsFixedJoint", "PhysicsDistanceJoint", "MjcActuator", "MjcTendon", "Material", "PointInstancer")
APIS = ("PhysicsRigidBodyAPI", "PhysicsCollisionAPI", "PhysicsMassAPI", "PhysicsMeshCollisionAPI", "MjcSiteAPI")
APIS += ("PhysicsArticulationRootAPI", "PhysicsDriveAPI:angular", "PhysicsLimitAPI:rotX", "PhysxVehicleAPI")
KINDS = ("Float", "Double", "String", "Token", "Int", "Bool", "Float3", "FloatArray", "Quatf", "Matrix4d", "Asset")


def rich_stage() -> Usd.Stage:
    """A little of everything that the reader knows."""
    stage = author.new_stage()
    world = author.world(stage)
    author.physics_scene(stage, gravity=9.81, steps_per_second=100, attributes={"mjc:option:density": 1.0})
    rubber = author.material(world, "Rubber", friction=0.5, restitution=0.1, density=900.0)
    author.ground(world, material=rubber)
    base = author.body(world, "Base", position=(0, 0, 1), mass=2, inertia=(1, 1, 1), articulation_root=True)
    author.box(base, "Box", (0.1, 0.2, 0.3), material=rubber, attributes={"mjc:condim": 4, "mjc:solref": (0.02, 1.0)})
    arm = author.body(base, "Arm", position=(0.5, 0, 0))
    author.capsule(arm, "Rod", 0.05, 0.3, density=500)
    hinge = author.revolute(arm, "Hinge", base, arm, "Y", limits=(-90, 90), drive={"stiffness": 1, "damping": 0.1})
    author.set_attributes(hinge, {"newton:armature": 0.1, "newton:damping": 0.01, "mjc:stiffness": 1.0})
    slide = author.prismatic(arm, "Slide", base, arm, "Z", limits=(-1, 1))
    hand = author.body(arm, "Hand", position=(0.3, 0, 0))
    points = np.array([[0, 0, 0], [0.1, 0, 0], [0, 0.1, 0], [0, 0, 0.1]])
    author.mesh(hand, "Mesh", points, np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]), mass=1)
    author.spherical(hand, "Wrist", arm, hand)
    ball = author.body(world, "Ball", position=(2, 1, 1), velocity=(1, 0, 0), angular_velocity=(0, 90, 0))
    author.sphere(ball, "Shape", 0.1, material=rubber)
    free = author.body(world, "Free", position=(2, 0, 1))
    author.cylinder(free, "Can", 0.1, 0.4, material=rubber)
    author.generic(free, "D6", arm, free, limits={"transX": None, "transY": None, "transZ": (-1, 1), "rotX": (-45, 45)})
    author.fixed(free, "Loop", hand, free, closes_loop=True)
    rail = {"limits": (-1, 1), "drive": {"stiffness": 3}, "attributes": {"mjc:solref": (0.02, 1.0)}}
    author.prismatic(ball, "Rail", None, ball, "X", closes_loop=True, **rail)
    loop = {"transX": (-1, 1), "transY": None, "rotX": None, "rotY": (-30, 60)}
    guide = author.generic(ball, "Guide", hand, ball, limits=loop, closes_loop=True)
    author.drive(guide, "rotZ", {"stiffness": 1, "damping": 0.1, "max_force": 5})
    for axis in "XY":
        author.revolute(free, f"Turn{axis}", base, free, axis, anchor=(1, 0, 1), limits=(-80, 80), closes_loop=True)
    mover = author.body(world, "Mover", position=(4, 0, 1), kinematic=True, mass=1, inertia=(1, 1, 1))
    author.cone(mover, "Cone", 0.1, 0.2)
    author.filter_pairs(base, hand)
    author.collision_group(world, "Group", [arm, hand], merge="m")
    motor = author.actuator(world, "Motor", hinge, gear=(2, 0, 0, 0, 0, 0), control_range=(-1, 1))
    author.actuator(world, "Jet", author.site(hand, "Tip"), gear=(0, 0, 1, 0, 0, 0))
    author.sensor(world, "Torque", "actuatorfrc", motor)
    author.mimic(slide, hinge, ratio=0.5)
    return stage


class Damage:
    """Random edits of one layer."""

    def __init__(self, layer: Sdf.Layer, rng: np.random.Generator) -> None:
        self.layer, self.rng = layer, rng
        self.prims: list[Sdf.PrimSpec] = []
        layer.Traverse("/", lambda path: self.prims.append(layer.GetPrimAtPath(path)) if path.IsPrimPath() else None)

    def pick(self, items):
        items = list(items)
        return items[self.rng.integers(len(items))] if items else None

    def number(self) -> float:
        return float(self.pick(ODD_NUMBERS)) if self.rng.random() < 0.8 else float(self.rng.normal() * 10)

    def attribute(self) -> Sdf.AttributeSpec | None:
        return self.pick(item for prim in self.prims if prim for item in prim.attributes)

    def value(self) -> None:
        spec = self.attribute()
        if spec is None or spec.default is None:
            return
        old = spec.default
        if isinstance(old, bool):
            spec.default = not old
        elif isinstance(old, int):
            spec.default = int(self.pick((0, -1, 7, 2**30, -(2**30))))
        elif isinstance(old, float):
            spec.default = self.number()
        elif isinstance(old, str):
            spec.default = str(self.pick(("", "X", "nonsense", "sdf", "true", "0", old + "x")))
        elif isinstance(old, Gf.Quatf | Gf.Quatd):
            spec.default = type(old)(*(self.number() for _ in range(4)))
        elif hasattr(old, "__len__") and len(old) and isinstance(old[0], float | int) and not isinstance(old[0], bool):
            numbers = list(old)
            odd = self.number() if isinstance(old[0], float) else int(self.pick((-1, 0, 3, 2**30)))
            numbers[self.rng.integers(len(numbers))] = odd
            spec.default = type(old)(numbers) if spec.typeName.isArray else type(old)(*numbers)
        elif spec.typeName.isArray:
            spec.default = type(old)(list(old)[: self.rng.integers(len(old) + 1)])

    def type(self) -> None:
        spec = self.attribute()
        if spec is None:
            return
        owner, name = spec.owner, spec.name
        kind = getattr(Sdf.ValueTypeNames, self.pick(KINDS))
        del owner.properties[name]
        Sdf.AttributeSpec(owner, name, kind).default = kind.defaultValue

    def relationship(self) -> None:
        spec = self.pick(item for prim in self.prims if prim for item in prim.relationships)
        if spec is None:
            return
        choices = [prim.path for prim in self.prims if prim] + [Sdf.Path("/Nowhere"), spec.owner.path]
        count = int(self.rng.integers(3))
        spec.targetPathList.ClearEditsAndMakeExplicit()
        for _ in range(count):
            spec.targetPathList.explicitItems.append(self.pick(choices))

    def remove(self) -> None:
        prim = self.pick(prim for prim in self.prims if prim and prim.path != Sdf.Path("/World"))
        if prim is not None:
            del prim.nameParent.nameChildren[prim.name]

    def move(self) -> None:
        live = [prim for prim in self.prims if prim]
        source, target = self.pick(live), self.pick(live)
        if source and target and not target.path.HasPrefix(source.path):
            path = target.path.AppendChild(source.name)
            if not self.layer.GetPrimAtPath(path):
                Sdf.CopySpec(self.layer, source.path, self.layer, path)

    def retype(self) -> None:
        prim = self.pick(prim for prim in self.prims if prim)
        if prim is not None:
            prim.typeName = self.pick(TYPES)

    def schemas(self) -> None:
        prim = self.pick(prim for prim in self.prims if prim)
        if prim is None:
            return
        listed = prim.GetInfo("apiSchemas")
        names = list(listed.prependedItems) if listed else []
        if names and self.rng.random() < 0.5:
            names.remove(self.pick(names))
        else:
            names.append(self.pick(APIS))
        prim.SetInfo("apiSchemas", Sdf.TokenListOp.Create(prependedItems=list(dict.fromkeys(names))))

    def units(self) -> None:
        name = self.pick(("metersPerUnit", "kilogramsPerUnit", "upAxis", "timeCodesPerSecond"))
        value = self.pick(("X", "Y", "Z", "", "down")) if name == "upAxis" else self.number()
        self.layer.pseudoRoot.SetInfo(name, value)

    def invent(self) -> None:
        prim = self.pick(prim for prim in self.prims if prim)
        name = self.pick(
            ("physics:invented", "newton:invented", "mjc:invented", "physxThing:a", "state:x:physics:position")
        )
        if prim is not None and name not in prim.properties:
            Sdf.AttributeSpec(prim, name, Sdf.ValueTypeNames.Double).default = 1.0

    def switch(self) -> None:
        prim = self.pick(prim for prim in self.prims if prim)
        if prim is not None:
            prim.active = bool(self.rng.integers(2))
            prim.instanceable = bool(self.rng.integers(2))

    def sample(self) -> None:
        spec = self.attribute()
        if spec is not None and spec.default is not None:
            self.layer.SetTimeSample(spec.path, 1.0, spec.default)
            if self.rng.random() < 0.5:
                spec.ClearDefaultValue()


EDITS = ("value",) * 6 + ("type", "relationship", "relationship", "remove", "move", "retype", "schemas", "units")
EDITS += ("invent", "switch", "sample")


def damaged(text: str, seed: int) -> Sdf.Layer | None:
    """A layer with one to four edits, or (one in ten) with damaged text; None if USD cannot parse it."""
    rng = np.random.default_rng(seed)
    if rng.random() < 0.1:
        characters = list(text)
        for _ in range(int(rng.integers(1, 6))):
            place = int(rng.integers(len(characters)))
            characters[place] = str(rng.choice(list('{}()[]"=,.:x0- \n')))
        text = "".join(characters)
    layer = Sdf.Layer.CreateAnonymous(".usda")
    try:
        if not layer.ImportFromString(text):
            return None
    except Tf.ErrorException:
        return None
    damage = Damage(layer, rng)
    for _ in range(int(rng.integers(1, 5))):
        getattr(damage, EDITS[rng.integers(len(EDITS))])()
    return layer


def check(layer: Sdf.Layer) -> str:
    """Returns "error" or "read"; raises whatever else happens."""
    stage = Usd.Stage.Open(layer)
    try:
        scene = read_usd(stage)
    except WarpsimError as error:
        assert len(str(error)) > 10
        return "error"
    validate(scene)
    listed = {(entry.path, entry.attribute) for entry in scene.ledger}
    for prim in Usd.PrimRange.Stage(stage, Usd.TraverseInstanceProxies()):
        for item in prim.GetAuthoredProperties():
            if item.GetName().startswith(PREFIXES):
                assert (str(prim.GetPath()), item.GetName()) in listed, f"silence about {item.GetPath()}"
    return "read"


def _give_up(*_) -> None:
    raise TimeoutError(f"a stage took more than {LONGEST} s")


def main(first: int, last: int) -> int:
    """Reads the damaged stages of seeds first to last − 1; returns how many misbehaved."""
    signal.signal(signal.SIGALRM, _give_up)
    stage = rich_stage()
    text = stage.GetRootLayer().ExportToString()
    counts: Counter[str] = Counter()
    for seed in range(first, last):
        signal.alarm(LONGEST)  # a hang is as bad as a crash
        try:
            layer = damaged(text, seed)
            counts["unparsable" if layer is None else check(layer)] += 1
        except Exception:  # the point is to find any
            counts["bad"] += 1
            print(f"seed {seed}\n{traceback.format_exc()}")
    signal.alarm(0)
    print(dict(counts))
    return counts["bad"]


if __name__ == "__main__":
    sys.exit(min(main(int(sys.argv[1]), int(sys.argv[2])), 1))
