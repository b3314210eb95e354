"""`validate` refuses each thing that cannot be simulated, names it, and says how to mend it."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator

import mujoco
import numpy as np
import pytest

from warpsim.core.errors import InputError, SceneError
from warpsim.rigid.compile.compile import compile_model
from warpsim.scene import (
    Actuator,
    Body,
    ContactOverride,
    Decomposition,
    Drive,
    Equality,
    Joint,
    Mesh,
    Scene,
    Sensor,
    Shape,
    Site,
    Tendon,
    validate,
)
from warpsim.scene.checks import items, place
from warpsim.scene.ledger import LedgerEntry, unsupported
from warpsim.scene.ranges import INFINITE_ALLOWED

TETRAHEDRON = Mesh(
    "tetrahedron", np.vstack([np.zeros(3), np.eye(3)]), np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
)


def bounds(axis: int, low: float, high: float) -> np.ndarray:
    """Limits of one of six coordinates."""
    limits = np.tile([-np.inf, np.inf], (6, 1))
    limits[axis] = low, high
    return limits


def full_scene() -> Scene:
    """A valid scene with at least one of every kind of item and no optional array left out."""
    inertia = np.diag([0.1, 0.2, 0.25])
    body = dict(mass=1.0, com=np.zeros(3), inertia=inertia)
    unit = np.array([1.0, 0.0, 0.0, 0.0])
    limit = (-1.0, 2.0)
    return Scene(
        bodies=[
            Body("base", **body),
            Body("arm", "base", **body),
            Body("hand", "arm", mass=0.5, com=np.zeros(3), inertia=inertia),
            Body("ball", None, **body),
            Body("cart", None, kinematic=True, **body),
        ],
        joints=[
            Joint(
                "root",
                "free",
                "base",
                initial_q=np.r_[0, 0, 1, unit],
                initial_qd=np.zeros(6),
                rest=np.r_[0, 0, 1, unit],
            ),
            Joint("elbow", "hinge", "arm", limit=limit, actuator_force_limit=(-5.0, 5.0), initial_q=np.zeros(1)),
            Joint("stretch", "slide", "arm", axis=np.array([1.0, 0.0, 0.0]), rest=np.zeros(1), initial_qd=np.zeros(1)),
            Joint("wrist", "ball", "hand", limit=(0.0, 1.0), initial_q=unit.copy(), rest=unit.copy()),
            Joint("roll", "ball", "ball"),
            Joint("drag", "free", "cart"),
        ],
        shapes=[
            Shape("floor", "plane"),
            Shape("palm", "box", "hand", size=np.array([0.1, 0.1, 0.1]), mass=0.2),
            Shape("rock", "hull", "ball", size=np.ones(3), mesh="tetrahedron"),
        ],
        sites=[Site("tip", "hand"), Site("mark")],
        tendons=[Tendon("cable", ["elbow", "stretch"], np.array([1.0, -0.5]), spring_range=(0.0, 0.1), limit=limit)],
        actuators=[
            Actuator("motor", "joint", "elbow", control_range=(-1.0, 1.0), force_range=(-2.0, 2.0)),
            Actuator("winch", "tendon", "cable", dynamics="filter", activation_range=(0.0, 1.0)),
            Actuator("jet", "site", "tip"),
        ],
        drives=[
            Drive("servo", "stretch", stiffness=10.0, damping=1.0, max_force=30.0),
            Drive("pusher", "rail", axis=0, stiffness=10.0),
        ],
        equalities=[
            Equality("pin", "connect", "hand", "ball", anchor_b=np.zeros(3)),
            Equality("glue", "weld", "base", None, relative_pose=np.r_[0, 0, 0, unit]),
            Equality("gear", "joint", "elbow", "stretch"),
            Equality("hold", "tendon", "cable"),
            Equality("rail", "axes", "arm", "ball", locked=(False, True, True, False, False, False)),
            Equality("rope", "distance", "arm", "ball", anchor_b=np.zeros(3), distance_range=(0.0, 1.0)),
        ],
        sensors=[Sensor("imu", "gyro", "tip"), Sensor("angle", "jointpos", "elbow", target_kind="joint")],
        meshes={"tetrahedron": copy.deepcopy(TETRAHEDRON)},
        excluded_pairs={frozenset(("palm", "rock"))},
        excluded_bodies={frozenset(("", "hand"))},
        contact_overrides=[ContactOverride("floor", "palm")],
    )


def find(scene: Scene, name: str):
    """The item called `name`."""
    return next(item for item in items(scene) if getattr(item, "name", None) == name)


def setting(name: str, /, **values: object) -> Callable[[Scene], None]:
    """A change of one item's fields."""

    def change(scene: Scene) -> None:
        for field, value in values.items():
            setattr(find(scene, name), field, value)

    return change


def options(**values: object) -> Callable[[Scene], None]:
    def change(scene: Scene) -> None:
        for field, value in values.items():
            setattr(scene.options, field, value)

    return change


def adding(kind: str, *new: object) -> Callable[[Scene], None]:
    def change(scene: Scene) -> None:
        getattr(scene, kind).extend(copy.deepcopy(new))

    return change


def not_symmetric() -> np.ndarray:
    inertia = np.diag([0.1, 0.2, 0.25])
    inertia[0, 1] = 0.01
    return inertia


CASES: list[tuple[str, Callable[[Scene], None], tuple[str, ...]]] = [
    # names and references
    ("two bodies of one name", adding("bodies", Body("arm")), ("body", "'arm'", "unique")),
    ("two joints of one name", adding("joints", Joint("elbow", "hinge", "arm")), ("joint", "'elbow'", "unique")),
    ("two shapes of one name", adding("shapes", Shape("palm", "plane")), ("shape", "'palm'", "unique")),
    ("empty name", setting("tip", name=""), ("site", "non-empty")),
    ("mesh under another name", lambda s: s.meshes.update(rocky=s.meshes.pop("tetrahedron")), ("'rocky'", "key")),
    ("missing parent", setting("hand", parent="amr"), ("body 'hand'", "'amr'", "did you mean 'arm'")),
    ("cyclic parents", setting("base", parent="hand"), ("base → hand → arm → base", "None")),
    ("own parent", setting("ball", parent="ball"), ("ball → ball",)),
    ("joint of no body", setting("elbow", body="arms"), ("joint 'elbow'", "did you mean 'arm'")),
    ("shape of no body", setting("palm", body="hands"), ("shape 'palm'", "did you mean 'hand'")),
    ("shape of no mesh", setting("rock", mesh="tetra"), ("shape 'rock'", "'tetra'", "mesh names")),
    ("shape without mesh", setting("rock", mesh=None), ("shape 'rock'", "no mesh")),
    ("site of no body", setting("tip", body="hnad"), ("site 'tip'", "did you mean 'hand'")),
    ("tendon over no joint", setting("cable", joints=["elbow", "knee"]), ("tendon 'cable'", "'knee'")),
    ("tendon of nothing", setting("cable", joints=[], coefficients=np.zeros(0)), ("tendon 'cable'", "at least one")),
    ("actuator on nothing", setting("motor", target="elbwo"), ("actuator 'motor'", "did you mean 'elbow'")),
    ("drive on nothing", setting("servo", joint="strech"), ("drive 'servo'", "did you mean 'stretch'")),
    ("equality of no body", setting("pin", b="bal"), ("equality 'pin'", "did you mean 'ball'")),
    ("equality of no joint", setting("gear", a="elbo"), ("equality 'gear'", "did you mean 'elbow'")),
    ("equality without a joint", setting("gear", a=None), ("equality 'gear'", "names no joint")),
    ("equality of no tendon", setting("hold", a="cabel"), ("equality 'hold'", "did you mean 'cable'")),
    ("equality of no second tendon", setting("hold", b="cabel"), ("equality 'hold'", "did you mean 'cable'")),
    ("equality with itself", setting("pin", a="ball"), ("equality 'pin'", "itself")),
    ("excluded shape unknown", lambda s: s.excluded_pairs.add(frozenset(("palm", "flor"))), ("did you mean 'floor'",)),
    ("excluded body unknown", lambda s: s.excluded_bodies.add(frozenset(("arm", "hnd"))), ("did you mean 'hand'",)),
    ("excluded three", lambda s: s.excluded_pairs.add(frozenset(("palm", "floor", "rock"))), ("two names",)),
    ("override of no shape", adding("contact_overrides", ContactOverride("floor", "plam")), ("did you mean 'palm'",)),
    ("sensor of nothing", setting("imu", target="tipp"), ("sensor 'imu'", "did you mean 'tip'")),
    ("sensor of wrong kind", setting("imu", target_kind="sight"), ("sensor 'imu'", "target_kind", "'site'")),
    ("sensor from nothing", setting("imu", reference="marc"), ("sensor 'imu'", "did you mean 'mark'")),
    # kinds
    ("joint kind", setting("elbow", kind="revolute"), ("joint 'elbow'", "'revolute'", "'hinge'")),
    ("shape kind", setting("palm", kind="cube"), ("shape 'palm'", "'cube'", "'box'")),
    ("equality kind", setting("pin", kind="rod"), ("equality 'pin'", "'rod'", "'connect'")),
    ("transmission", setting("motor", transmission="body"), ("actuator 'motor'", "'body'", "'joint'")),
    ("dynamics", setting("winch", dynamics="lag"), ("actuator 'winch'", "'lag'", "'filter'")),
    ("friction combine", setting("palm", friction_combine="sum"), ("shape 'palm'", "'sum'", "'average'")),
    ("integrator", options(integrator="implicit"), ("integrator", "'implicit'", "'implicitfast'")),
    ("cone", options(cone="round"), ("cone", "'round'", "'elliptic'")),
    # mass
    ("negative mass", setting("arm", mass=-1.0), ("body 'arm'", "mass", "above zero")),
    ("zero mass", setting("arm", mass=0.0), ("body 'arm'", "no mass", "Body.mass")),
    ("no mass and no shape", setting("arm", mass=None), ("body 'arm'", "no mass")),
    ("no inertia and no shape", setting("arm", inertia=None), ("body 'arm'", "inertia", "Body.inertia")),
    ("zero inertia", setting("arm", inertia=np.zeros((3, 3))), ("body 'arm'", "inertia")),
    ("inertia not symmetric", setting("arm", inertia=not_symmetric()), ("body 'arm'", "symmetric")),
    ("inertia not positive", setting("arm", inertia=np.diag([0.1, -0.1, 0.1])), ("body 'arm'", "negative principal")),
    ("inertia of no body", setting("arm", inertia=np.diag([0.1, 0.1, 0.3])), ("body 'arm'", "I₁ + I₂ ≥ I₃")),
    # orientation
    ("zero quaternion", setting("arm", rotation=np.zeros(4)), ("body 'arm'", "rotation", "zero")),
    ("long quaternion", setting("tip", rotation=np.array([1.0, 0.1, 0, 0])), ("site 'tip'", "length", "divide")),
    ("shape quaternion", setting("palm", rotation=np.array([0.9, 0, 0, 0])), ("shape 'palm'", "length")),
    ("zero axis", setting("elbow", axis=np.zeros(3)), ("joint 'elbow'", "axis", "zero")),
    ("long axis", setting("elbow", axis=np.array([0.0, 0.0, 2.0])), ("joint 'elbow'", "axis", "length 2")),
    ("start quaternion", setting("root", initial_q=np.ones(7)), ("joint 'root'", "initial_q", "length 2")),
    ("rest quaternion", setting("wrist", rest=np.ones(4)), ("joint 'wrist'", "rest", "length 2")),
    ("weld quaternion", setting("glue", relative_pose=np.ones(7)), ("equality 'glue'", "relative_pose")),
    # joints
    (
        "free below another",
        setting("elbow", kind="free", limit=None, actuator_force_limit=None, initial_q=None),
        ("'elbow'", "world"),
    ),
    ("free not alone", adding("joints", Joint("extra", "hinge", "base")), ("body 'base'", "only one")),
    ("two balls", adding("joints", Joint("extra", "ball", "ball")), ("body 'ball'", "every rotation")),
    ("hinge after ball", adding("joints", Joint("extra", "hinge", "ball")), ("body 'ball'", "every rotation")),
    ("seven freedoms", adding("joints", *(Joint(f"x{i}", "slide", "arm") for i in range(5))), ("body 'arm'", "six")),
    ("kinematic hinge", setting("drag", kind="hinge"), ("body 'cart'", "kinematic", "free")),
    ("kinematic without joint", lambda s: s.joints.pop(), ("body 'cart'", "kinematic", "free")),
    ("limit reversed", setting("elbow", limit=(1.0, -1.0)), ("joint 'elbow'", "limit", "swap")),
    ("limit of a free joint", setting("root", limit=(0.0, 1.0)), ("joint 'root'", "limit", "None")),
    ("limit of a ball", setting("wrist", limit=(-1.0, 1.0)), ("joint 'wrist'", "largest angle")),
    ("force limit reversed", setting("elbow", actuator_force_limit=(1.0, -1.0)), ("'elbow'", "actuator_force_limit")),
    ("force limit of a ball", setting("wrist", actuator_force_limit=(-1.0, 1.0)), ("'wrist'", "hinge and slide")),
    ("negative stiffness", setting("elbow", stiffness=-1.0), ("joint 'elbow'", "stiffness", "negative")),
    ("negative damping", setting("elbow", damping=-1.0), ("joint 'elbow'", "damping", "negative")),
    ("negative armature", setting("elbow", armature=-1.0), ("joint 'elbow'", "armature", "negative")),
    ("negative friction loss", setting("elbow", friction_loss=-1.0), ("joint 'elbow'", "friction_loss")),
    # shapes
    ("zero size", setting("palm", size=np.array([0.1, 0.0, 0.1])), ("shape 'palm'", "size", "above zero")),
    ("negative size", setting("palm", size=np.array([0.1, -0.1, 0.1])), ("shape 'palm'", "size", "above zero")),
    ("zero radius", setting("palm", kind="sphere", size=np.zeros(3)), ("shape 'palm'", "of a sphere; the first 1")),
    (
        "decomposition of a hull",
        setting("rock", decomposition=Decomposition()),
        ("shape 'rock'", "a mesh that does not collide itself"),
    ),
    (
        "tolerance of a decomposition",
        setting("rock", kind="mesh", collides=False, decomposition=Decomposition(tolerance=2.0)),
        ("shape 'rock'", "tolerance lies between 0 and 1"),
    ),
    ("piece of nothing", setting("rock", piece_of="stone"), ("shape 'rock'", "piece_of", "stone")),
    ("piece of a box", setting("rock", piece_of="palm"), ("shape 'rock'", "a piece of 'palm'", "a decomposition")),
    ("zero mesh scale", setting("rock", size=np.zeros(3)), ("shape 'rock'", "size")),
    ("negative density", setting("palm", density=-1.0), ("shape 'palm'", "density", "negative")),
    ("negative shape mass", setting("palm", mass=-1.0), ("shape 'palm'", "mass", "negative")),
    ("negative friction", setting("palm", friction=np.array([1.0, -0.1, 0.0])), ("shape 'palm'", "friction")),
    ("restitution above one", setting("palm", restitution=1.5), ("shape 'palm'", "restitution", "between 0 and 1")),
    ("condim", setting("palm", condim=2), ("shape 'palm'", "condim", "1, 3, 4, 6")),
    ("coarse grid", setting("rock", sdf_resolution=1), ("shape 'rock'", "sdf_resolution", "2")),
    ("override condim", adding("contact_overrides", ContactOverride("floor", "rock", condim=5)), ("'rock'", "condim")),
    (
        "override friction",
        adding("contact_overrides", ContactOverride("floor", "rock", friction=-np.ones(5))),
        ("friction",),
    ),
    (
        "mesh index too large",
        setting("tetrahedron", faces=np.array([[0, 1, 4]])),
        ("mesh 'tetrahedron'", "face 0", "4"),
    ),
    ("mesh index negative", setting("tetrahedron", faces=np.array([[0, 1, 2], [0, -1, 2]])), ("face 1",)),
    ("mesh index real", setting("tetrahedron", faces=np.array([[0.0, 1.0, 2.0]])), ("tetrahedron", "integers")),
    ("mesh without faces", setting("tetrahedron", faces=np.zeros((0, 3), int)), ("tetrahedron", "0 faces")),
    # actuation
    ("tendon over a ball", setting("cable", joints=["elbow", "wrist"]), ("tendon 'cable'", "'wrist' is ball")),
    ("tendon stiffness", setting("cable", stiffness=-1.0), ("tendon 'cable'", "stiffness")),
    ("tendon limit reversed", setting("cable", limit=(1.0, 0.0)), ("tendon 'cable'", "limit")),
    ("spring range reversed", setting("cable", spring_range=(1.0, 0.0)), ("tendon 'cable'", "spring_range")),
    ("drive on a ball", setting("servo", joint="wrist"), ("drive 'servo'", "'wrist' is ball")),
    ("drive stiffness", setting("servo", stiffness=-1.0), ("drive 'servo'", "stiffness")),
    ("drive force", setting("servo", max_force=-1.0), ("drive 'servo'", "max_force")),
    ("target of another kind", setting("motor", target="cable"), ("actuator 'motor'", "is a tendon", "transmission")),
    ("control range reversed", setting("motor", control_range=(1.0, -1.0)), ("actuator 'motor'", "control_range")),
    ("force range reversed", setting("motor", force_range=(1.0, -1.0)), ("actuator 'motor'", "force_range")),
    ("activation range reversed", setting("winch", activation_range=(1.0, 0.0)), ("'winch'", "activation_range")),
    ("time constant", setting("winch", time_constant=0.0), ("actuator 'winch'", "time_constant")),
    ("equality over a ball", setting("gear", b="wrist"), ("equality 'gear'", "'wrist' is ball")),
    ("distance reversed", setting("rope", distance_range=(1.0, 0.5)), ("equality 'rope'", "distance_range")),
    ("distance negative", setting("rope", distance_range=(-1.0, 0.5)), ("equality 'rope'", "distance_range")),
    ("locked drive", setting("pusher", axis=1), ("drive 'pusher'", "axis is 1", "[0, 3, 4, 5]")),
    ("drive of no loop", setting("pusher", joint="pin"), ("drive 'pusher'", "'pin'")),
    ("drive per inertia on a loop", setting("pusher", acceleration=True), ("drive 'pusher'", "per unit of inertia")),
    ("limits reversed", setting("rail", limits=bounds(0, 1.0, 0.5)), ("equality 'rail'", "limits[0]")),
    ("limits of a locked axis", setting("rail", limits=bounds(1, 0.0, 0.5)), ("equality 'rail'", "limits[1]")),
    ("limits of no joint", setting("rope", limits=bounds(0, 0.0, 0.5)), ("equality 'rope'", "limits[0]")),
    ("limits beyond a turn", setting("rail", limits=bounds(5, -4.0, 0.5)), ("equality 'rail'", "limits[5]", "±3.1")),
    ("limits of the middle turn", setting("rail", limits=bounds(4, -2.0, 0.5)), ("limits[4]", "±1.57")),
    ("turn limit", setting("rail", turn_limit=4.0), ("equality 'rail'", "turn_limit")),
    ("sensor noise", setting("imu", noise=-1.0), ("sensor 'imu'", "noise")),
    # world
    ("no time step", options(timestep=0.0), ("timestep", "above zero")),
    ("impratio", options(impratio=0.0), ("impratio", "above zero")),
    ("iterations", options(solver_iterations=-1), ("solver_iterations", "negative")),
    ("max contacts", options(max_contacts=-1), ("max_contacts",)),
    ("no contacts", options(max_contacts=0), ("max_contacts", "contacts = False")),
    ("medium", lambda s: setattr(s.medium, "viscosity", -1.0), ("medium", "viscosity", "negative")),
]


def test_the_full_scene_is_valid_and_stays_as_it_was():
    scene, untouched = full_scene(), full_scene()
    validate(scene)
    assert repr(scene) == repr(untouched)


@pytest.mark.parametrize(("change", "fragments"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_refuses(change, fragments):
    scene = full_scene()
    change(scene)
    with pytest.raises(SceneError) as caught:
        validate(scene)
    for fragment in fragments:
        assert fragment in str(caught.value)


def number_fields(scene: Scene) -> Iterator[tuple[object, str]]:
    """(item, field) of everything in the scene that holds real numbers."""
    for item in items(scene):
        for field in dataclasses.fields(item):
            value = getattr(item, field.name)
            is_array = isinstance(value, (np.ndarray, tuple)) and np.asarray(value).dtype.kind == "f"
            if is_array or isinstance(value, float):
                yield item, field.name


def poison(item: object, field: str, number: float) -> None:
    value = getattr(item, field)
    if isinstance(value, float):
        setattr(item, field, number)
        return
    poisoned = np.array(value)
    poisoned.flat[-1] = number
    setattr(item, field, tuple(poisoned) if isinstance(value, tuple) else poisoned)


def test_refuses_nan_and_infinity_in_every_number():
    scene = full_scene()
    poisoned = 0
    for item, field in number_fields(scene):
        original = getattr(item, field)
        for number, word in ((np.nan, "NaN"), (np.inf, "infinite"), (-np.inf, "infinite")):
            if np.isinf(number) and field in INFINITE_ALLOWED:
                continue
            poison(item, field, number)
            with pytest.raises(SceneError, match=word) as caught:
                validate(scene)
            assert place(item) in str(caught.value)
            assert field in str(caught.value)
            setattr(item, field, original)
            poisoned += 1
    validate(scene)
    assert poisoned > 500


def test_refuses_every_array_of_the_wrong_shape():
    scene = full_scene()
    reshaped = 0
    for item, field in number_fields(scene):
        original = getattr(item, field)
        if isinstance(original, float):
            continue
        wrong = np.append(np.asarray(original).ravel(), 1.0)
        setattr(item, field, tuple(wrong) if isinstance(original, tuple) else wrong)
        with pytest.raises(SceneError, match="shape"):
            validate(scene)
        setattr(item, field, original)
        reshaped += 1
    validate(scene)
    assert reshaped > 100


def test_limits_and_ranges_may_be_open():
    scene = full_scene()
    open_range = (-np.inf, np.inf)
    setting("elbow", limit=open_range, actuator_force_limit=open_range)(scene)
    setting("cable", limit=open_range, spring_range=(0.0, np.inf))(scene)
    setting("motor", control_range=open_range, force_range=open_range)(scene)
    setting("winch", activation_range=open_range)(scene)
    setting("servo", max_force=np.inf)(scene)
    setting("rope", distance_range=(0.0, np.inf))(scene)
    validate(scene)


def test_rounding_of_exported_files_is_accepted():
    scene = full_scene()
    setting("arm", rotation=np.array([1.0 + 5e-7, 0, 0, 0]), inertia=np.diag([0.1, 0.1, 0.2 * (1 + 1e-7)]))(scene)
    validate(scene)


def test_mass_from_shapes_counts():
    for shape, accepted in (
        (Shape("s", "sphere", "b", size=np.array([0.1, 0, 0])), True),
        (Shape("s", "sphere", "b", size=np.array([0.1, 0, 0]), density=0.0, mass=2.0), True),
        (Shape("s", "sphere", "b", size=np.array([0.1, 0, 0]), density=0.0), False),
        (Shape("s", "sphere", "b", size=np.array([0.1, 0, 0]), mass=0.0), False),
        (Shape("s", "plane", "b"), False),
    ):
        scene = Scene(bodies=[Body("b")], joints=[Joint("j", "free", "b")], shapes=[shape])
        if accepted:
            validate(scene)
        else:
            with pytest.raises(SceneError, match="no mass"):
                validate(scene)


def accepted_by_mujoco(scene: Scene) -> bool:
    """Whether MuJoCo compiles the bodies and joints of a scene."""
    spec = mujoco.MjSpec()
    spec.compiler.inertiafromgeom = mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_FALSE
    bodies: dict[str | None, mujoco.MjsBody] = {None: spec.worldbody}
    for body in scene.bodies:
        bodies[body.name] = bodies[body.parent].add_body(name=body.name)
        if body.mass is not None:
            full = np.asarray(body.inertia)[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
            bodies[body.name].mass, bodies[body.name].fullinertia = body.mass, full
            bodies[body.name].explicitinertial = True
    for joint in scene.joints:
        kind = getattr(mujoco.mjtJoint, f"mjJNT_{joint.kind.upper()}")
        bodies[joint.body].add_joint(name=joint.name, type=kind, armature=0.1)
    try:
        spec.compile()
    except ValueError:
        return False
    return True


MASS = dict(mass=1.0, inertia=np.eye(3))


@pytest.mark.parametrize(
    ("bodies", "jointed"),
    [
        ([Body("a", **MASS)], "a"),
        ([Body("a")], "a"),
        ([Body("a"), Body("b", "a", **MASS)], "a"),
        ([Body("a"), Body("b", "a"), Body("c", "b", **MASS)], "a"),
        ([Body("a"), Body("b", "a", **MASS)], "ab"),
        ([Body("a"), Body("b", "a"), Body("c", "b", **MASS)], "ac"),
        ([Body("a", **MASS), Body("b", "a")], "a"),
        ([Body("a", **MASS), Body("b", "a")], "ab"),
        ([Body("a"), Body("b", "a")], ""),
        ([Body("a", mass=1.0, inertia=np.diag([1.0, 1.0, 2.5]))], "a"),
        ([Body("a", mass=1.0, inertia=np.diag([1.0, 1.0, 2.01]))], "a"),
        ([Body("a", mass=1.0, inertia=np.diag([1.0, 1.0, 1.9]))], "a"),
        ([Body("a", mass=1.0, inertia=np.diag([1.0, -1.0, 1.0]))], "a"),
    ],
)
def test_mass_rule_is_mujocos(bodies, jointed):
    scene = Scene(bodies=bodies, joints=[Joint(f"j{name}", "hinge", name) for name in jointed])
    try:
        validate(scene)
        accepted = True
    except SceneError:
        accepted = False
    assert accepted == accepted_by_mujoco(scene)


@pytest.mark.parametrize(
    "kinds",
    [
        ("slide", "ball"),
        ("ball", "slide"),
        ("ball", "hinge"),
        ("hinge", "ball"),
        ("ball", "ball"),
        ("free",),
        ("free", "hinge"),
        ("hinge", "free"),
        ("hinge",) * 6,
        ("hinge",) * 7,
        ("slide", "slide", "slide", "ball", "slide"),
    ],
    ids="-".join,
)
def test_compound_rule_is_mujocos(kinds):
    scene = Scene(bodies=[Body("a", **MASS)], joints=[Joint(f"j{i}", kind, "a") for i, kind in enumerate(kinds)])
    try:
        validate(scene)
        accepted = True
    except SceneError:
        accepted = False
    assert accepted == accepted_by_mujoco(scene)


def test_a_ledger_entry_says_what_became_of_a_thing():
    lost = LedgerEntry("joint 'knee'", "stiffnesspoly", "unsupported", "only linear springs are modeled")
    assert str(lost) == "joint 'knee': stiffnesspoly unsupported (only linear springs are modeled)"
    assert unsupported([LedgerEntry("a", "b", "used"), lost]) == [lost]
    with pytest.raises(InputError, match="'used', 'assumed', 'ignored', 'unsupported'"):
        LedgerEntry("a", "b", "lost")


def test_free_coordinates_of_a_loop_are_open_unless_they_are_limited():
    """Of one with a drive the range is compiled, and must not push."""
    bodies = [Body(name, mass=1.0, com=np.zeros(3), inertia=np.eye(3)) for name in "ab"]
    hold = Equality("hold", "axes", "a", "b", locked=(True, True, True, True, True, False))
    assert np.array_equal(hold.limits, [[-np.inf, np.inf]] * 6) and hold.turn_limit == np.inf
    scene = Scene(
        bodies=bodies,
        joints=[Joint(body.name, "free", body.name) for body in bodies],
        equalities=[hold],
        drives=[Drive("turn", "hold", axis=5, stiffness=1.0)],
    )
    assert np.array_equal(compile_model(scene).loop.range.numpy(), [[[-np.inf, np.inf]]])
