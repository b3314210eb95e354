"""`read_usd`: a USD stage → a `Scene`, in SI and Z-up, with a ledger of everything that was authored."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from os import PathLike, fspath
from typing import Any

from pxr import Tf, Usd

from warpsim.core.errors import SceneError
from warpsim.io.usd.actuators import add_actuators, add_sites, add_tendons, apply_keyframe
from warpsim.io.usd.attributes import AttributeReader
from warpsim.io.usd.bodies import add_link, read_kinematic
from warpsim.io.usd.context import Context
from warpsim.io.usd.drives import add_drives
from warpsim.io.usd.filters import add_filters
from warpsim.io.usd.initial import set_initial_state
from warpsim.io.usd.joints import read_joints
from warpsim.io.usd.ledger_scan import Ledger, scan
from warpsim.io.usd.loops import add_loops, add_mimics
from warpsim.io.usd.mass import assume_masses, set_body_mass
from warpsim.io.usd.matters import add_matters, find_matters
from warpsim.io.usd.options import read_options
from warpsim.io.usd.physics_objects import find_physics, list_lost_colliders
from warpsim.io.usd.prescan import check_layers
from warpsim.io.usd.sensors import add_sensors
from warpsim.io.usd.shapes import add_shape
from warpsim.io.usd.spatial_tendons import add_wrapped_shapes
from warpsim.io.usd.tree import build_tree
from warpsim.io.usd.units import stage_units
from warpsim.scene import Scene, validate


def open_stage(source: str | PathLike[str] | Usd.Stage) -> Usd.Stage:
    """Opens a file as a stage, payloads loaded; a stage is returned as it is.

    Raises:
        SceneError: The file is missing, is not USD, refers to files outside its folder (see `reading_limits`), or holds
            too much.
    """
    if isinstance(source, Usd.Stage):
        return source
    layers = check_layers(fspath(source))
    try:
        stage = Usd.Stage.Open(fspath(source))
        del layers
    except Tf.ErrorException as error:
        raise SceneError(
            f"{fspath(source)}: USD cannot open it ({_quoted(error)}); check the path and the file's syntax"
        ) from error
    if stage is None:
        raise SceneError(f"{fspath(source)}: USD cannot open it; check the path and the file's syntax")
    return stage


def _quoted(error: Tf.ErrorException) -> str:
    """What USD says, without where in USD it says so."""
    said = re.findall(r" : '(.*?)'\s*$", str(error), re.MULTILINE | re.DOTALL)  # some quotes end with a line break
    return "; ".join(text.strip() for text in said) or str(error).strip()


def read_usd(source: str | PathLike[str] | Usd.Stage, *, strict: bool = False, time: float | None = None) -> Scene:
    """Reads a USD file or stage.

    Args:
        source: Path of a .usd, .usda, .usdc or .usdz file, or an open stage.
        strict: Raise if anything authored would change the physics but is not modeled.
        time: Time code to read at. None: default values, and earliest samples where there are no defaults.

    Returns:
        The scene in SI units with z up. Names are prim paths. `scene.ledger` says what became of each authored physics
        attribute.

    Raises:
        SceneError: Something cannot be simulated; names the prim.
        UnsupportedError: With `strict`, lists everything unsupported.
    """
    stage = open_stage(source)
    ledger = Ledger()
    context = Context(stage, stage_units(stage), ledger, AttributeReader(ledger, time))
    scene = _build(context)
    scan(stage, ledger)
    scene.ledger = ledger.entries()
    if strict:
        ledger.refuse_unsupported()
    validate(scene)
    return scene


def read_with(stage: Usd.Stage, values: Mapping[str, Any]) -> Scene:
    """Reads a stage with other values for some attributes; neither complete in its ledger nor validated.

    Args:
        stage: Has authored values for these attributes.
        values: By "/prim.attribute", in double precision whatever the attribute's type: numbers, arrays, `Gf`
            quaternions and matrices.

    Raises:
        SceneError: As `read_usd`.
    """
    ledger = Ledger()
    return _build(Context(stage, stage_units(stage), ledger, AttributeReader(ledger, None, values)))


def _build(context: Context) -> Scene:
    """Makes the scene; later parts refer to names that earlier ones made."""
    scene = context.scene
    scene.name = context.stage.GetRootLayer().GetDisplayName()
    find_matters(context)
    objects = find_physics(context)
    read_options(context, objects)
    specs = read_joints(context, objects)
    kinematic = read_kinematic(context, objects)
    tree = build_tree(context, objects, specs, kinematic)
    for link in tree.links:
        add_link(context, objects, link, link.body in kinematic)
    for collider in objects.colliders.values():
        add_shape(context, objects, collider)
    shapes, joints = _by_body(scene.shapes), _by_body(scene.joints)
    for body in scene.bodies:
        set_body_mass(context, context.prim(body.name), body, shapes[body.name])
    assume_masses(context)
    for link in tree.links:
        set_initial_state(context, objects, link, joints[str(link.body)])
        add_drives(context, link)
    add_loops(context, tree.loops, kinematic)
    add_mimics(context, specs)
    add_sites(context, objects)
    add_wrapped_shapes(context, objects)
    add_tendons(context)
    add_actuators(context)
    add_sensors(context)
    apply_keyframe(context)
    add_filters(context, objects, specs)
    list_lost_colliders(context, objects)
    add_matters(context)
    return scene


def _by_body(items: list[Any]) -> dict[str, list[Any]]:
    """Body name → its shapes or joints, in order."""
    groups: dict[str, list[Any]] = defaultdict(list)
    for item in items:
        groups[item.body].append(item)
    return groups
