"""The PhysicsScene: which friction cone a stage has that names none; contacts softened for optimization; how many."""

from __future__ import annotations

import mujoco
import pytest
from pxr import Sdf, Usd

from warpsim.core.errors import SceneError
from warpsim.io.usd import author
from warpsim.io.usd.export.scene import export_scene
from warpsim.io.usd.reader import read_usd
from warpsim.sim.simulator import Simulator

MUJOCOS_DEFAULT = mujoco.mjtCone(mujoco.MjOption().cone).name.removeprefix("mjCONE_").lower()


def stage_with(*, schema: str | None, cone: str | None) -> tuple[Usd.Stage, Usd.Prim]:
    """A stage with a PhysicsScene, written without our authoring of cones."""
    stage = author.new_stage()
    prim = author.physics_scene(stage, gravity=9.81)
    if schema is not None:
        prim.AddAppliedSchema(schema)
    if cone is not None:
        prim.CreateAttribute("mjc:option:cone", Sdf.ValueTypeNames.Token, False, Sdf.VariabilityUniform).Set(cone)
    return stage, prim


def notes(scene) -> list[str]:
    return [entry.reason for entry in scene.ledger if entry.attribute == "MjcSceneAPI" and entry.status == "used"]


@pytest.mark.parametrize(
    ("schema", "cone", "expected"),
    [
        (None, None, "elliptic"),
        ("NewtonSceneAPI", None, "elliptic"),
        ("MjcSceneAPI", None, MUJOCOS_DEFAULT),
        ("MjcSceneAPI", "elliptic", "elliptic"),
        ("MjcSceneAPI", "pyramidal", "pyramidal"),
        (None, "pyramidal", "pyramidal"),
    ],
)
def test_cone(schema, cone, expected):
    stage, _ = stage_with(schema=schema, cone=cone)
    scene = read_usd(stage, strict=True)
    assert scene.options.cone == expected
    by_default = schema == "MjcSceneAPI" and cone is None
    assert [MUJOCOS_DEFAULT in note for note in notes(scene)] == [True] * by_default


def test_a_stage_without_a_scene_has_elliptic_cones():
    assert read_usd(author.new_stage(), strict=True).options.cone == "elliptic"


def test_a_blocked_cone_is_none():
    """A stronger layer takes the cone away, so the schema's default is left."""
    stage, prim = stage_with(schema="MjcSceneAPI", cone="elliptic")
    with Usd.EditContext(stage, stage.GetSessionLayer()):
        prim.GetAttribute("mjc:option:cone").Block()
    scene = read_usd(stage)
    assert scene.options.cone == MUJOCOS_DEFAULT
    assert notes(scene)


def test_the_schema_of_a_referenced_scene_counts(tmp_path):
    """Converters keep the PhysicsScene in a layer of its own."""
    author.save(stage_with(schema="MjcSceneAPI", cone=None)[0], tmp_path / "physics.usda")
    stage = author.new_stage()
    author.reference(author.world(stage), "Robot", tmp_path / "physics.usda")
    assert read_usd(stage, strict=True).options.cone == MUJOCOS_DEFAULT


def test_an_authored_setting_leaves_the_cone_alone():
    """Our own authoring names the cone as soon as it applies the schema."""
    stage = author.new_stage()
    author.physics_scene(stage, attributes={"mjc:option:density": 1.2})
    scene = read_usd(stage, strict=True)
    assert scene.options.cone == "elliptic"
    assert notes(scene) == []


@pytest.mark.parametrize("units", [1.0, 0.01])
def test_softening(units):
    """A distance, in the stage's units; it comes back as it was from an exported scene."""
    stage = author.new_stage(meters_per_unit=units)
    given = {"warpsim:contactSoftening": 0.02 / units, "warpsim:softeningPass": "backward"}
    author.physics_scene(stage, gravity=9.81 / units, attributes=given)
    scene = read_usd(stage, strict=True)
    assert scene.options.contact_softening == pytest.approx(0.02, rel=1e-15)
    assert scene.options.softening_pass == "backward"
    again = read_usd(export_scene(scene)[0], strict=True)
    names = ("contact_softening", "softening_pass")
    assert [getattr(again.options, n) for n in names] == [getattr(scene.options, n) for n in names]
    plain = read_usd(author.new_stage(), strict=True)
    assert (plain.options.contact_softening, plain.options.softening_pass) == (0.0, "both")


def test_an_unknown_softening_pass_is_refused():
    stage = author.new_stage()
    author.physics_scene(stage, gravity=9.81, attributes={"warpsim:softeningPass": "forward"})
    with pytest.raises(SceneError, match="softeningPass.*both"):
        read_usd(stage, strict=True)


def test_the_most_contacts():
    """A limit in the file; it comes back as it was from an exported scene, and one given in Python goes before it."""
    stage = author.new_stage()
    author.physics_scene(stage, gravity=9.81, attributes={"warpsim:maxContacts": 70})
    author.ground(author.world(stage))
    for k in range(6):
        ball = author.body(author.world(stage), f"Ball{k}", position=(k, 0, 0.1))
        author.sphere(ball, "Shape", 0.1)
    scene = read_usd(stage, strict=True)
    assert scene.options.max_contacts == 70
    assert Simulator(scene).model.max_contacts == 70
    assert Simulator(scene, max_contacts=9).model.max_contacts == 9
    assert read_usd(export_scene(scene)[0], strict=True).options.max_contacts == 70
    plain = read_usd(author.new_stage(), strict=True)
    assert plain.options.max_contacts is None
    assert "maxContacts" not in export_scene(plain)[0].ExportToString()


@pytest.mark.parametrize("wrong", [0, -4])
def test_a_limit_of_contacts_that_makes_no_sense(wrong):
    stage = author.new_stage()
    author.physics_scene(stage, gravity=9.81, attributes={"warpsim:maxContacts": wrong})
    with pytest.raises(SceneError, match=f"warpsim:maxContacts is {wrong}; give a whole number"):
        read_usd(stage, strict=True)
