"""Authoring: a few functions that make correct scenes and return ordinary `Usd.Prim`s.

Values are in the stage's units and, as everywhere in USD, angles in degrees; rotations are quaternions (w, x, y, z).
"""

from warpsim.io.usd.author.attributes import set_attribute, set_attributes
from warpsim.io.usd.author.bodies import (
    bind,
    body,
    box,
    capsule,
    collision_group,
    cone,
    cylinder,
    filter_pairs,
    ground,
    material,
    mesh,
    sphere,
)
from warpsim.io.usd.author.deformables import attach, cable, cloth, deformable_material, point_place, soft
from warpsim.io.usd.author.joints import (
    actuator,
    distance,
    drive,
    fixed,
    generic,
    mimic,
    prismatic,
    revolute,
    sensor,
    site,
    spherical,
)
from warpsim.io.usd.author.liquids import liquid
from warpsim.io.usd.author.stages import frame, move, new_stage, physics_scene, reference, save, world
from warpsim.io.usd.author.tasks import task, task_part

__all__ = [
    "actuator",
    "attach",
    "bind",
    "body",
    "box",
    "cable",
    "capsule",
    "cloth",
    "collision_group",
    "cone",
    "cylinder",
    "deformable_material",
    "distance",
    "drive",
    "filter_pairs",
    "fixed",
    "frame",
    "generic",
    "ground",
    "liquid",
    "material",
    "mesh",
    "mimic",
    "move",
    "new_stage",
    "physics_scene",
    "point_place",
    "prismatic",
    "reference",
    "revolute",
    "save",
    "sensor",
    "set_attribute",
    "set_attributes",
    "site",
    "soft",
    "sphere",
    "spherical",
    "task",
    "task_part",
    "world",
]
