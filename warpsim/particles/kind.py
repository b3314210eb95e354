"""`LiquidKind`: liquids on a stage and in a scene. docs/particles.md lists the attributes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from pxr import Usd, UsdGeom, UsdShade

from warpsim.core.errors import SceneError, UnsupportedError
from warpsim.io.usd.author.liquids import write_liquid
from warpsim.io.usd.context import Context
from warpsim.io.usd.ledger_scan import applied_apis
from warpsim.matter.matter import CompileContext
from warpsim.particles.liquid import Liquid
from warpsim.particles.matter import LiquidMatter
from warpsim.particles.step import WALL_REACH
from warpsim.particles.walls import KINDS
from warpsim.scene.matters import BUILT_IN, MatterDescription, MatterKind
from warpsim.view.page import CloudDrawable

PREFIX = "warpsim:particles:"
COLOR = np.array([0.05, 0.25, 0.75])
MARGIN = 50
"""Cells around the particles that the domain reaches unless it is authored."""
_SPEED = 3.0
"""m/s that the number of substeps allows for unless it is authored."""
_PLASTIC = ("internalFriction", "yieldStress", "hardening", "dilatancy")


class LiquidKind(MatterKind):
    """Liquids: `Points` with Newton's or PhysX' particle schemas."""

    name = "liquid"

    def claims(self, prim: Any) -> bool:
        """Points with one of the schemas."""
        return prim.IsA(UsdGeom.Points) and not BUILT_IN[self.name].isdisjoint(applied_apis(prim))

    def read(self, prim: Any, context: Context) -> MatterDescription:
        """SI numbers of a liquid, its particles in the world."""
        reading = _Reading(prim, context)
        pitch, spacing = reading.lengths()
        x, v = reading.particles()
        parameters = reading.material()
        walls, stick = reading.walls()
        parameters["stick"] = stick
        substeps = reading.integer("substeps")
        if substeps is None:
            liquid = Liquid(*(float(parameters[name]) for name in ("density", "bulk_modulus", "viscosity")))
            substeps = int(np.ceil(context.scene.options.timestep / liquid.largest_step(spacing, _SPEED)))
        return MatterDescription(
            kind=self.name,
            name=prim.GetName().lower(),
            path=str(prim.GetPath()),
            parameters=parameters,
            initial=initial_state(x, v, len(context.scene.bodies) + 1),
            data={
                "spacing": spacing,
                "volume": pitch**3,
                "substeps": substeps,
                "domain": reading.domain(x, spacing),
                "walls": walls,
                "relaxation_time": reading.number("relaxationTime") or 0.05,
                "wall_reach": reading.number("wallReach") or WALL_REACH,
                "max_nodes": reading.integer("maxNodes"),
                "color": reading.color(),
            },
            positive=("density", "bulk_modulus"),
        )

    def write(self, description: MatterDescription, stage: Any, made: Mapping[tuple[str, str], Any]) -> bool:
        """Points under the default prim, with what `read` needs."""
        data, parameters = description.data, description.parameters
        root = stage.GetDefaultPrim() or stage.GetPseudoRoot()
        prim = write_liquid(
            root,
            description.name,
            np.asarray(description.initial["x"]),
            pitch=data["volume"] ** (1 / 3),
            spacing=data["spacing"],
            velocities=np.asarray(description.initial["v"]),
            substeps=data["substeps"],
            domain=np.concatenate(data["domain"]),
            density=float(parameters["density"]),
            bulk_modulus=float(parameters["bulk_modulus"]),
            viscosity=float(parameters["viscosity"]),
        )
        return bool(prim)

    def compile(self, description: MatterDescription, context: CompileContext) -> LiquidMatter:
        """Kernels and arrays."""
        return LiquidMatter(description, context)

    def drawables(self, description: MatterDescription) -> list[Any]:
        """A cloud of points."""
        path = description.path or description.name
        radius = 0.5 * float(description.data["volume"]) ** (1 / 3)
        return [CloudDrawable(path, np.asarray(description.data.get("color", COLOR)), radius)]

    def points(self, description: MatterDescription, states: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Where the particles are."""
        return {description.path or description.name: states["x"]}

    def places(self, description: MatterDescription) -> dict[str, tuple[str, int]]:
        """The center of mass."""
        return {"Center": ("center", 0)}


def initial_state(x: np.ndarray, v: np.ndarray, bodies: int) -> dict[str, np.ndarray]:
    """The state of a liquid without pressure, (n, …) by field; `bodies` counts the world."""
    n = len(x)
    return {
        "x": x,
        "v": v,
        "rate": np.zeros((n, 3, 3)),
        "volume_ratio": np.ones(n),
        "slope": np.zeros((n, 3)),
        "wrench": np.zeros((bodies, 6)),
    }


class _Reading:
    """What is said of one liquid, on its prim, its material and the physics scene."""

    def __init__(self, prim: Usd.Prim, context: Context) -> None:
        self.prim, self.context, self.read = prim, context, context.read
        self.length = context.units.length
        material, _ = UsdShade.MaterialBindingAPI(prim).ComputeBoundMaterial("physics")
        self.bound = material.GetPrim() if material else None
        systems = [context.prim(path) for path in self.read.targets(prim, "physxParticle:particleSystem")]
        self.system = systems[0] if systems and systems[0] else None
        if self.system:
            context.ledger.claimed(self.system, f"of {prim.GetPath()}, which does not read it")
        if self.read.flag(prim, "physxParticle:fluid", True) is False:
            raise UnsupportedError(f"{prim.GetPath()}: particles that are no fluid are not modeled; set its fluid flag")

    def number(self, name: str, factor: float = 1.0) -> float | None:
        """One of our own attributes of the prim."""
        value = self.read.number(self.prim, PREFIX + name)
        return None if value is None else factor * value

    def integer(self, name: str) -> int | None:
        """Likewise, a whole number."""
        value = self.number(name)
        return None if value is None else int(value)

    def lengths(self) -> tuple[float, float]:
        """Distance of neighboring particles and edge of a cell, m."""
        widths = self.read.array(self.prim, "widths")
        pitch = None
        if widths is not None and widths.size:
            if np.ptp(widths) > 1e-5 * widths.max():
                raise SceneError(f"{self.prim.GetPath()}.widths: particles of one liquid need one width")
            pitch = float(widths[0]) * self.length
        elif self.system:
            offset = self.read.number(self.system, "fluidRestOffset")
            pitch = None if offset is None else 2.0 * offset * self.length
        spacing = self.number("spacing", self.length)
        if spacing is None:
            scenes = (p for p in self.context.stage.Traverse() if p.GetTypeName() == "PhysicsScene")
            sizes = (self.read.number(scene, "newton:mpm:voxelSize") for scene in scenes)
            voxel = next((size for size in sizes if size is not None), None)
            spacing = None if voxel is None else voxel * self.length
        if pitch is None and spacing is None:
            raise SceneError(f"{self.prim.GetPath()}: author widths, the distance of neighboring particles")
        pitch = 0.5 * spacing if pitch is None else pitch  # type: ignore[operator]
        return pitch, 2.0 * pitch if spacing is None else spacing

    def particles(self) -> tuple[np.ndarray, np.ndarray]:
        """Positions m and velocities m/s in the world."""
        points = self.read.array(self.prim, "points", ndim=2)
        if points is None or not len(points):
            raise SceneError(f"{self.prim.GetPath()}: it has no points; `author.liquid` fills a volume")
        frame = self.context.frame(self.prim)
        velocities = self.read.array(self.prim, "velocities", ndim=2)
        if velocities is None or not velocities.size:
            velocities = np.zeros_like(points)
        if velocities.shape != points.shape:
            raise SceneError(f"{self.prim.GetPath()}.velocities: as many as points are needed")
        return (
            self.length * points @ frame.linear.T + frame.pose.position,
            self.length * velocities @ frame.linear.T,
        )

    def material(self) -> dict[str, np.ndarray]:
        """Density, bulk modulus, viscosity, SI."""
        units, bound = self.context.units, self.bound
        per_volume, pressure = units.mass / self.length**3, units.mass / self.length
        density = viscosity = None
        if bound is not None:
            for name in ("physics:density", "physxPBDMaterial:density"):
                given = self.read.number(bound, name)
                density = given * per_volume if given else density
            viscosity = self.read.number(bound, "newton:mpm:viscosity")
            for name in _PLASTIC:
                value = self.read.number(bound, f"newton:mpm:{name}", mark=False)
                if value:
                    self.context.ledger.unsupported(bound, f"newton:mpm:{name}", "only liquids are modeled")
            self.context.ledger.claimed(bound, f"of {self.prim.GetPath()}, which does not read it")
        own = self.number("density", per_volume)
        stiffness = self.number("bulkModulus", pressure)
        thickness = self.number("viscosity", pressure)
        return {
            "density": np.array(1000.0 if own is None and density is None else (own or density)),
            "bulk_modulus": np.array(1.0e5 if stiffness is None else stiffness),
            "viscosity": np.array((viscosity or 0.0) * pressure if thickness is None else thickness),
        }

    def walls(self) -> tuple[list[str], np.ndarray]:
        """Names of the shapes that bound it, and how much it sticks to each."""
        scene = self.context.scene
        chosen = [str(path) for path in self.read.targets(self.prim, PREFIX + "walls")]
        shapes = [s for s in scene.shapes if s.collides and s.piece_of is None and _below(s.name, chosen)]
        for shape in shapes:
            if shape.kind not in KINDS:
                raise UnsupportedError(
                    f"{shape.name}: a {shape.kind} cannot be a wall of the liquid {self.prim.GetPath()} yet; use "
                    f"{', '.join(KINDS)}, or name the walls by {PREFIX}walls"
                )
        prims = [self.context.prim(shape.name) for shape in shapes]
        stick = [(self.read.number(prim, PREFIX + "stick") if prim else None) or 0.0 for prim in prims]
        return [shape.name for shape in shapes], np.array(stick)

    def domain(self, x: np.ndarray, spacing: float) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper corner, m."""
        corners = self.read.vector(self.prim, PREFIX + "domain", 6)
        if corners is None:
            return x.min(0) - MARGIN * spacing, x.max(0) + MARGIN * spacing
        turned = self.length * corners.reshape(2, 3) @ self.context.units.to_world.T
        return turned.min(0), turned.max(0)

    def color(self) -> np.ndarray:
        """Linear RGB."""
        value = self.prim.GetAttribute("primvars:displayColor").Get()
        return np.array(value[0], dtype=float) if value else COLOR


def _below(name: str, roots: list[str]) -> bool:
    return not roots or any(name == root or name.startswith(root + "/") for root in roots)
