"""`read_mjcf` and `scene_from_mjmodel`: MJCF, URDF or a compiled MuJoCo model → Scene."""

from __future__ import annotations

from pathlib import Path

from warpsim.core.errors import InputError, SceneError, UnsupportedError
from warpsim.io.mjcf.actuation import add_rotors, read_actuators, read_tendons
from warpsim.io.mjcf.bodies import read_bodies, read_joints
from warpsim.io.mjcf.engine import mujoco
from warpsim.io.mjcf.equalities import read_equalities
from warpsim.io.mjcf.keyframe import apply_keyframe
from warpsim.io.mjcf.options import NOSLIP, note_unread, read_medium, read_options
from warpsim.io.mjcf.prescan import check_file, check_text
from warpsim.io.mjcf.sensors import read_sensors
from warpsim.io.mjcf.shapes import read_contact_overrides, read_excluded_bodies, read_shapes, read_sites
from warpsim.io.mjcf.source import MjSource
from warpsim.scene.description import Scene
from warpsim.scene.ledger import LedgerEntry, unsupported
from warpsim.scene.validate import validate


def read_mjcf(path_or_xml: str | Path, *, keyframe: str | None = None, strict: bool = True) -> Scene:
    """Reads an MJCF or URDF file, or MJCF text, through MuJoCo's own compiler.

    Args:
        path_or_xml: Path of an .xml or .urdf file, or the XML text itself (anything that starts with "<").
        keyframe: Name of the keyframe that gives the start state; None: the reference configuration, at rest.
        strict: Whether features that are not modeled raise; otherwise they are left out and noted in `Scene.ledger`.

    Returns:
        The validated scene, with MuJoCo's order of bodies, joints, dofs and actuators.

    Raises:
        InputError: There is no such file.
        SceneError: MuJoCo cannot compile it, it refers to files outside its folder (see `reading_limits`) or asks for
            too much, or the scene is not valid.
        UnsupportedError: `strict`, and it uses features that are not modeled; the message lists them all.
    """
    return scene_from_mjmodel(_compile(path_or_xml), keyframe=keyframe, strict=strict)


def _compile(path_or_xml: str | Path) -> mujoco.MjModel:
    is_text = isinstance(path_or_xml, str) and path_or_xml.lstrip().startswith("<")
    if not is_text and not Path(path_or_xml).is_file():
        raise InputError(f"no file {str(path_or_xml)!r}; give the path of an .xml or .urdf file, or XML text")
    if is_text:
        check_text(str(path_or_xml))
    else:
        check_file(Path(path_or_xml))
    try:
        if is_text:
            return mujoco.MjModel.from_xml_string(path_or_xml)
        return mujoco.MjModel.from_xml_path(str(path_or_xml))
    except ValueError as error:
        where = "the XML text" if is_text else f"{str(path_or_xml)!r}"
        raise SceneError(f"MuJoCo cannot compile {where}: {str(error).strip()}; correct the file there") from error


def scene_of_model(
    source: mujoco.MjModel | mujoco.MjSpec, *, keyframe: str | None = None, strict: bool = True
) -> Scene:
    """The scene of a compiled model, or of a specification, compiled here as it now is; see `scene_from_mjmodel`.

    Raises:
        SceneError: MuJoCo cannot compile the specification.
    """
    if isinstance(source, mujoco.MjModel):
        return scene_from_mjmodel(source, keyframe=keyframe, strict=strict)
    try:
        model = source.compile()
    except ValueError as error:
        raise SceneError(f"MuJoCo cannot compile the MjSpec: {str(error).strip()}; correct it") from error
    return scene_from_mjmodel(model, keyframe=keyframe, strict=strict)


def scene_from_mjmodel(model: mujoco.MjModel, *, keyframe: str | None = None, strict: bool = True) -> Scene:
    """Converts a compiled MuJoCo model, whatever has been edited in it since.

    `q`, `qd`, controls and activations are laid out as MuJoCo's `qpos`, `qvel`, `ctrl` and `act`, except that a mocap
    body is a kinematic body with a free joint of its own, and that `strict=False` may leave actuators out.

    Args:
        model: The model; it is not changed and nothing of it is kept.
        keyframe: Name of the keyframe that gives the start state; None: the reference configuration, at rest.
        strict: Whether features that are not modeled raise; otherwise they are left out and noted in `Scene.ledger`.
            Sensors without a counterpart and `noslip_iterations` are only ever noted.

    Raises:
        SceneError: The scene is not valid.
        UnsupportedError: `strict`, and the model uses features that are not modeled; the message lists them all.
        UnknownNameError: There is no such keyframe.
    """
    source = MjSource(model)
    scene = Scene(name=model.names.split(b"\0", 1)[0].decode(), filter_parent=not source.disabled("filterparent"))
    scene.options, scene.medium = read_options(source), read_medium(source)
    scene.bodies, scene.joints = read_bodies(source), read_joints(source)
    scene.shapes, scene.meshes = read_shapes(source)
    scene.sites = read_sites(source)
    scene.contact_overrides = read_contact_overrides(source, scene.shapes)
    scene.excluded_bodies = read_excluded_bodies(source)
    scene.tendons = read_tendons(source)
    scene.actuators = read_actuators(source)
    add_rotors(source, scene)
    scene.equalities = read_equalities(source)
    note_unread(source)
    if strict:
        _refuse([entry for entry in unsupported(source.notes) if entry.attribute != NOSLIP])
    scene.sensors = read_sensors(source, scene)
    if keyframe is not None:
        apply_keyframe(source, scene, keyframe)
    scene.ledger = source.notes
    validate(scene)
    return scene


def _refuse(entries: list[LedgerEntry]) -> None:
    if entries:
        listed = "\n".join(f"  {entry.path}: {entry.attribute}, {entry.reason}" for entry in entries)
        raise UnsupportedError(
            f"the model uses {len(entries)} feature(s) that are not modeled:\n{listed}\n"
            "Remove them, or pass strict=False to leave them out."
        )
