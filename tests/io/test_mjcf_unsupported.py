"""What a MuJoCo model may ask for and a Scene cannot say is refused, or noted; flags act through the Scene's values."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from small_models import BALL, TENDON, WET, jointed, model_of
from warpsim.core.errors import SceneError, UnsupportedError, UnsupportedPhysicsWarning
from warpsim.io.mjcf import read_mjcf, scene_from_mjmodel
from warpsim.scene import Scene, validate
from warpsim.scene.ledger import unsupported
from warpsim.sim.simulator import Simulator

RAG = """<flexcomp name="rag" type="grid" dim="2" count="3 3 1" spacing=".1 .1 .1" mass="1" radius=".01">
  <edge equality="true"/></flexcomp>"""

UNSUPPORTED = {
    "joint stiffness polynomial": (
        model_of(world=jointed('stiffness="1 2 3"')),
        "joint 'k': stiffnesspoly",
    ),
    "joint damping polynomial": (
        model_of(world=jointed('damping="1 2 3"')),
        "joint 'k': dampingpoly",
    ),
    "plastic joint": (
        model_of(world=jointed('stiffness="1" springyield="1"')),
        "joint 'k': springyield",
    ),
    "tendon stiffness polynomial": (
        model_of(tendon=TENDON.replace("name", 'stiffness="1 2" name')),
        "'t1': stiffnesspoly",
    ),
    "tendon damping polynomial": (model_of(tendon=TENDON.replace("name", 'damping="1 2" name')), "'t1': dampingpoly"),
    "plastic tendon": (
        model_of(tendon=TENDON.replace("name", 'stiffness="1" springyield=".1" name')),
        "'t1': springyield",
    ),
    "tendon force limit": (
        model_of(tendon=TENDON.replace("name", 'actuatorfrcrange="-1 1" name')),
        "'t1': actfrclimited",
    ),
    "muscle at a site": (
        model_of(
            actuator='<general name="m" site="s" gaintype="muscle" lengthrange="0 1" '
            'gainprm="0.7 1 9 1 0.5 1.5 1 1 1.2"/>'
        ),
        "'m': muscle",
    ),
    "user dynamics": (model_of(actuator='<general name="m" joint="h" dyntype="user" actdim="1"/>'), "dyntype user"),
    "user gain": (model_of(actuator='<general name="m" joint="h" gaintype="user"/>'), "gaintype user"),
    "user bias": (model_of(actuator='<general name="m" joint="h" biastype="user"/>'), "biastype user"),
    "dc motor that warms": (
        model_of(actuator='<dcmotor name="m" joint="h" motorconst="1" resistance="1" thermal="1 2 3 .004 25 20"/>'),
        "'m': thermal",
    ),
    "dc motor with bristles": (
        model_of(actuator='<dcmotor name="m" joint="h" motorconst="1" resistance="1" lugre="1 2 3 4 5"/>'),
        "'m': lugre",
    ),
    "dc motor with a limit on its current's rate": (
        model_of(
            actuator='<dcmotor name="m" joint="h" motorconst="1" resistance="1" inductance="1" saturation="0 0 1"/>'
        ),
        "'m': saturation",
    ),
    "dc motor at a site": (
        model_of(actuator='<dcmotor name="m" site="s" gear="1 0 0 0 0 0" motorconst="1" resistance="1"/>'),
        "'m': dcmotor",
    ),
    "adhesion of the world": (model_of(actuator='<adhesion name="m" body="world" ctrlrange="0 1"/>'), "'m': body"),
    "adhesion by velocity": (
        model_of(actuator='<general name="m" body="arm" biastype="affine" biasprm="0 0 -1"/>'),
        "'m': gainprm, biasprm",
    ),
    "reference site": (
        model_of(actuator='<general name="m" site="s" refsite="t" gear="1 0 0 0 0 0"/>'),
        "'m': refsite",
    ),
    "ball in parent": (
        model_of(world=BALL.format(kind="ball"), actuator='<motor name="m" jointinparent="j"/>'),
        "'m': jointinparent",
    ),
    "actuator damping": (
        model_of(world=BALL.format(kind="ball"), actuator='<motor name="m" joint="j" damping="1"/>'),
        "actuator 'm': damping",
    ),
    "actuator armature": (
        model_of(world=BALL.format(kind="ball"), actuator='<motor name="m" joint="j" armature="1"/>'),
        "actuator 'm': armature",
    ),
    "actuator delay": (
        model_of(actuator='<motor name="m" joint="h" nsample="4" delay=".004"/>'),
        "actuator 'm': delay",
    ),
    "actuator history": (model_of(actuator='<motor name="m" joint="h" nsample="4"/>'), "actuator 'm': history"),
    "disabled actuator group": (
        model_of(option='<option actuatorgroupdisable="2"/>', actuator='<motor name="m" joint="h" group="2"/>'),
        "actuator 'm': group",
    ),
    "disabled actuation": (
        model_of(option='<option><flag actuation="disable"/></option>', actuator='<motor name="m" joint="h"/>'),
        "flag actuation",
    ),
    "surface velocity": (model_of('<geom name="belt" size=".1" surfacevel="1 0 0 0 0 0"/>'), "geom 'belt': surfacevel"),
    "adhesive geom": (model_of('<geom name="gum" size=".1" adhesion="1"/>'), "geom 'gum': adhesion"),
    "adhesive pair": (model_of(contact='<pair name="p" geom1="g" geom2="f" adhesion="1"/>'), "pair 'p': adhesion"),
    "ellipsoid fluid": (
        model_of('<geom name="fin" size=".1" fluidshape="ellipsoid"/>', option=WET),
        "geom 'fin': fluidshape",
    ),
    "flex": (model_of(world=RAG), "model: flex"),
    "equality of a flex": (model_of(world=RAG), "type flex"),
    "plugin": (
        model_of(
            extension='<plugin plugin="mujoco.pid"/>',
            actuator='<plugin name="m" plugin="mujoco.pid" joint="h" actdim="0"><config key="kp" value="1"/></plugin>',
        ),
        "actuator 'm': plugin",
    ),
    "signed distance plugin": (
        model_of(
            '<geom name="ring" type="sdf" mesh="torus"><plugin instance="torus"/></geom>',
            extension='<plugin plugin="mujoco.sdf.torus"><instance name="torus"/></plugin>',
            asset='<mesh name="torus"><plugin instance="torus"/></mesh>',
        ),
        "geom 'ring': type sdf",
    ),
    "integrator implicit": (model_of(option='<option integrator="implicit"/>'), "integrator implicit"),
    "integrator discrete": (model_of(option='<option integrator="discrete"/>'), "integrator discrete"),
    "override": (model_of(option='<option><flag override="enable"/></option>'), "flag override"),
    "sleep": (model_of(option='<option><flag sleep="enable"/></option>'), "flag sleep"),
    "exact diagonal": (model_of(option='<option><flag diagexact="enable"/></option>'), "flag diagexact"),
    "speculative contacts": (model_of(option='<option><flag speculative="enable"/></option>'), "flag speculative"),
}


@pytest.mark.parametrize(("xml", "fragment"), UNSUPPORTED.values(), ids=UNSUPPORTED)
def test_unsupported_features_are_refused_or_noted(xml, fragment):
    with pytest.raises(UnsupportedError) as caught:
        read_mjcf(xml)
    assert fragment in str(caught.value)
    assert "strict=False" in str(caught.value)
    scene = read_mjcf(xml, strict=False)
    validate(scene)
    assert any(fragment in f"{entry.path}: {entry.attribute}" for entry in unsupported(scene.ledger))


def test_one_message_lists_all_that_is_unsupported():
    xml = model_of(
        '<geom name="gum" size=".1" adhesion="1"/>',
        option='<option integrator="implicit"/>',
        actuator='<general name="m" joint="h" dyntype="user" actdim="1" gaintype="user"/>'
        '<motor name="fine" joint="h"/>',
    )
    with pytest.raises(UnsupportedError) as caught:
        read_mjcf(xml)
    for fragment in (
        "integrator implicit",
        "geom 'gum': adhesion",
        "actuator 'm': dyntype user",
        "gaintype user",
    ):
        assert fragment in str(caught.value)
    scene = read_mjcf(xml, strict=False)
    assert [actuator.name for actuator in scene.actuators] == ["fine"]


def test_the_no_slip_solver_is_noted_and_warned_of_once(tmp_path):
    path = tmp_path / "creeping.xml"
    path.write_text(model_of(option='<option noslip_iterations="2"/>'))
    with pytest.warns(UnsupportedPhysicsWarning, match="noslip_iterations.*contacts creep") as caught:
        Simulator(path)
    assert len(caught) == 1
    (entry,) = unsupported(read_mjcf(path).ledger)
    assert (entry.path, entry.attribute) == ("option", "noslip_iterations")
    path.write_text(model_of(option='<option noslip_iterations="2" integrator="implicit"/>'))
    with pytest.raises(UnsupportedError, match="1 feature"):
        read_mjcf(path)


def test_values_that_differ_between_the_dofs_of_a_joint():
    for field in ("damping", "armature", "frictionloss"):
        model = mujoco.MjModel.from_xml_string(model_of(world=BALL.format(kind="free")))
        getattr(model, f"dof_{field}")[-1] = 1.0
        with pytest.raises(UnsupportedError, match=f"joint 'j': {field}"):
            scene_from_mjmodel(model)
    model = mujoco.MjModel.from_xml_string(model_of(world=BALL.format(kind="ball")))
    model.qpos0[-4:] = [0.0, 1.0, 0.0, 0.0]
    with pytest.raises(UnsupportedError, match="joint 'j': qpos0"):
        scene_from_mjmodel(model)


def test_harmless_features_are_only_noted():
    xml = model_of(
        '<geom name="fin" size=".1" fluidshape="ellipsoid"/>',
        option='<option solver="CG"><flag warmstart="disable" energy="enable" multiccd="disable"/></option>',
        world='<camera name="c"/><light name="l"/>',
    )
    scene = read_mjcf(xml)
    noted = {(entry.path, entry.attribute, entry.status) for entry in scene.ledger}
    for path, attribute in (
        ("geom 'fin'", "fluidshape"),
        ("option", "solver CG"),
        ("option", "flag warmstart"),
        ("option", "flag energy"),
        ("option", "flag multiccd"),
        ("model", "cameras"),
        ("model", "lights"),
    ):
        assert (path, attribute, "ignored") in noted


def flagged(*flags: str) -> Scene:
    """A scene with springs, dampers, friction, limits, an actuator, an equality and a medium, and `flags` disabled."""
    text = " ".join(f'{flag}="disable"' for flag in flags)
    passive = 'stiffness="1" damping="2" frictionloss="3" range="0 1"'
    return read_mjcf(
        model_of(
            option=f'<option density="2" wind="1 0 0" viscosity="1"><flag {text}/></option>',
            world=jointed(passive, body='gravcomp="1"'),
            tendon=f'<fixed name="t" {passive}><joint joint="k" coef="1"/></fixed>',
            equality='<joint joint1="h"/>',
            actuator='<motor joint="k" ctrlrange="0 1"/>',
        )
    )


def test_disable_flags_act_through_the_values_of_the_scene():
    def values(scene: Scene) -> dict[str, object]:
        joint, tendon = scene.joints[-1], scene.tendons[0]
        return {
            "spring": (joint.stiffness, tendon.stiffness),
            "damper": (joint.damping, tendon.damping),
            "frictionloss": (joint.friction_loss, tendon.friction_loss),
            "limit": (joint.limit is not None, tendon.limit is not None),
            "equality": scene.equalities[0].active,
            "clampctrl": scene.actuators[0].control_range is not None,
            "gravity": bool(np.any(scene.options.gravity)),
            "constraint": scene.options.constraints,
            "contact": scene.options.contacts,
            "refsafe": scene.options.limit_timeconst,
            "eulerdamp": scene.options.implicit_damping,
            "filterparent": scene.filter_parent,
            "medium": (scene.medium.density, scene.medium.viscosity),
            "gravcomp": scene.bodies[-1].gravity_compensation,
        }

    standard = values(flagged())
    off = {"spring": (0.0, 0.0), "damper": (0.0, 0.0), "frictionloss": (0.0, 0.0), "limit": (False, False)}
    for flag in standard:
        if flag in ("medium", "gravcomp"):
            continue
        changed = values(flagged(flag))
        assert changed == standard | {flag: off.get(flag, False)}, flag
    passive = values(flagged("spring", "damper"))
    assert passive == standard | {"spring": (0, 0), "damper": (0, 0), "medium": (0, 0), "gravcomp": 0}


def test_sensors_with_a_counterpart_are_read_and_the_others_noted():
    scene = read_mjcf(
        model_of(
            tendon=TENDON,
            actuator='<motor name="m" joint="h"/>',
            sensor='<gyro name="imu" site="s" noise=".1" cutoff="5"/><jointpos name="angle" joint="h"/>'
            '<tendonvel name="reel" tendon="t1"/><actuatorfrc name="push" actuator="m"/><clock name="now"/>'
            '<framepos name="where" objtype="body" objname="hand" reftype="xbody" refname="arm"/>'
            '<framequat name="turn" objtype="geom" objname="g"/><subtreecom name="mean" body="world"/>'
            '<touch name="feel" site="s"/><rangefinder name="far" site="s"/>'
            '<jointvel name="late" joint="h" nsample="4" delay=".004"/>',
        )
    )
    read = {sensor.name: sensor for sensor in scene.sensors}
    assert (read["imu"].kind, read["imu"].target_kind, read["imu"].target) == ("gyro", "site", "s")
    assert (read["imu"].noise, read["imu"].cutoff, read["imu"].reference) == (0.1, 5.0, None)
    assert (read["angle"].kind, read["angle"].target_kind, read["angle"].target) == ("jointpos", "joint", "h")
    assert (read["reel"].kind, read["reel"].target_kind, read["reel"].target) == ("tendonvel", "tendon", "t1")
    assert (read["push"].kind, read["push"].target_kind, read["push"].target) == ("actuatorfrc", "actuator", "m")
    assert (read["now"].kind, read["now"].target_kind, read["now"].target) == ("clock", "", "")
    assert (read["where"].target_kind, read["where"].target) == ("inertia", "hand")
    assert (read["where"].reference_kind, read["where"].reference) == ("body", "arm")
    assert (read["turn"].target_kind, read["turn"].target) == ("shape", "g")
    assert (read["mean"].target_kind, read["mean"].target) == ("inertia", "")
    assert (read["feel"].kind, read["feel"].target_kind, read["feel"].target) == ("touch", "site", "s")
    assert (read["far"].kind, read["far"].target_kind, read["far"].target) == ("rangefinder", "site", "s")
    assert {entry.path for entry in unsupported(scene.ledger)} == {"sensor 'late'"}


@pytest.mark.parametrize("name", ["%n%s", "a%", "&#37;d", "&#x25;n"])
@pytest.mark.parametrize("attribute", ["class", "childclass"])
def test_a_class_that_would_end_the_process_is_refused(tmp_path, attribute, name):
    """MuJoCo formats its message with the name; in an included file too."""
    tag = "geom" if attribute == "class" else "body"
    inner = f'<worldbody><{tag} {attribute}="{name}"/></worldbody>'
    with pytest.raises(SceneError, match="names of classes"):
        read_mjcf(f"<mujoco>{inner}</mujoco>")
    (tmp_path / "part.xml").write_text(f"<mujocoinclude>{inner}</mujocoinclude>")
    (tmp_path / "main.xml").write_text('<mujoco><include file="part.xml"/></mujoco>')
    with pytest.raises(SceneError, match="names of classes"):
        read_mjcf(tmp_path / "main.xml")
