"""A net of springs as a matter of its own, hung from a robot's hand, which feels its pull; then swung onto a target.

Everything that warpsim has to know of the net is in this file: `NetKind` reads it from USD prims and says what to draw,
`Net` declares its fields and launches its three kernels. The rest (worlds, gradients, checkpoints, attributes, tasks,
pages, saved results, gradcheck) comes with the simulator. docs/matter.md explains each part.

    python examples/mass_spring_net.py -o net.html        (or net.usda, for any USD viewer)
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
import warp as wp
from pxr import Sdf, UsdGeom, Vt

import warpsim as ws
from warpsim.core.precision import quat, real, vec3, vec6
from warpsim.core.spatial import angular, linear, quat_rotate
from warpsim.io.usd import author
from warpsim.io.usd.context import Context
from warpsim.matter import CompileContext, Environment, Matter, MatterDescription, MatterKind, register_matter
from warpsim.tape import Arena, Arrays, Field
from warpsim.view.page import SurfaceDrawable

API = "MassSpringNetAPI"
PARAMETERS = {"stiffness": 300.0, "damping": 0.3, "mass": 0.02, "drag": 0.02, "grip": 2000.0}
"""N/m, N·s/m, kg per point, N·s/m per point, N/m: by attribute "net:…" of the prim, with what holds without."""

TARGET, TOLERANCE = (0.57, 0.15, 1.15), 0.01
"""m: where the net's end is swung to, and how near is there."""


@wp.kernel
def _pull_kernel(
    # topology
    first: wp.array(dtype=wp.int32),
    neighbor: wp.array(dtype=wp.int32),
    rest: wp.array(dtype=real),
    # parameters
    stiffness: wp.array(dtype=real),
    damping: wp.array(dtype=real),
    # state
    x: wp.array2d(dtype=vec3),
    v: wp.array2d(dtype=vec3),
    # work out
    force: wp.array2d(dtype=vec3),
):
    """Sum of the spring forces on one point (N)."""
    w, i = wp.tid()
    total = vec3(real(0.0), real(0.0), real(0.0))
    for k in range(first[i], first[i + 1]):
        j = neighbor[k]
        d = x[w, j] - x[w, i]
        length = wp.length(d)
        along = d / length
        pull = stiffness[w] * (length - rest[k]) + damping[w] * wp.dot(v[w, j] - v[w, i], along)
        total += pull * along
    force[w, i] = total


@wp.kernel
def _grip_kernel(
    # topology
    hand: int,
    held: wp.array(dtype=wp.int32),
    anchor: wp.array(dtype=vec3),
    # parameters
    grip: wp.array(dtype=real),
    damping: wp.array(dtype=real),
    # state
    x: wp.array2d(dtype=vec3),
    v: wp.array2d(dtype=vec3),
    # bodies
    position: wp.array2d(dtype=vec3),
    rotation: wp.array2d(dtype=quat),
    velocity: wp.array2d(dtype=vec6),
    com: wp.array2d(dtype=vec3),
    # work out
    force: wp.array2d(dtype=vec3),
    wrench: wp.array2d(dtype=vec6),
):
    """Springs from the held points to their places in the hand, and what they do to the hand (N, N·m)."""
    w = wp.tid()
    pull = vec3(real(0.0), real(0.0), real(0.0))
    torque = vec3(real(0.0), real(0.0), real(0.0))
    for k in range(held.shape[0]):
        i = held[k]
        arm = quat_rotate(rotation[w, hand], anchor[k])
        place = position[w, hand] + arm
        speed = linear(velocity[w, hand]) + wp.cross(angular(velocity[w, hand]), arm)
        f = grip[w] * (place - x[w, i]) + damping[w] * (speed - v[w, i])
        force[w, k] = f
        pull -= f
        torque -= wp.cross(place - com[w, hand], f)
    wrench[w, hand] = vec6(pull[0], pull[1], pull[2], torque[0], torque[1], torque[2])


@wp.kernel
def _integrate_kernel(
    # topology
    held_as: wp.array(dtype=wp.int32),
    # parameters
    mass: wp.array(dtype=real),
    drag: wp.array(dtype=real),
    timestep: wp.array(dtype=real),
    gravity: wp.array(dtype=vec3),
    # state, controls
    x: wp.array2d(dtype=vec3),
    v: wp.array2d(dtype=vec3),
    wind: wp.array(dtype=vec3),
    # work in
    pull: wp.array2d(dtype=vec3),
    grip: wp.array2d(dtype=vec3),
    # out
    x_next: wp.array2d(dtype=vec3),
    v_next: wp.array2d(dtype=vec3),
):
    """Symplectic Euler; the air drags each point toward the wind."""
    w, i = wp.tid()
    force = pull[w, i] + drag[w] * (wind[w] - v[w, i])
    if held_as[i] >= 0:
        force = force + grip[w, held_as[i]]
    moved = v[w, i] + timestep[w] * (force / mass[w] + gravity[w])
    v_next[w, i] = moved
    x_next[w, i] = x[w, i] + timestep[w] * moved


@wp.kernel
def _center_kernel(x: wp.array2d(dtype=vec3), center: wp.array(dtype=vec3)):
    w = wp.tid()
    total = vec3(real(0.0), real(0.0), real(0.0))
    for i in range(x.shape[1]):
        total += x[w, i]
    center[w] = total / real(x.shape[1])


class Net(Matter):
    """The net in all worlds."""

    meets_bodies = True

    def __init__(self, description: MatterDescription, context: CompileContext) -> None:
        """Puts its topology on the device."""
        super().__init__(description, context)
        data, points = description.data, len(description.initial["x"])
        shape = (self.worlds, points)
        self.state = (Field("x", shape, vec3), Field("v", shape, vec3))  # m, m/s
        self.controls = (Field("wind", (self.worlds,), vec3),)  # m/s
        self.observables = (Field("center", (self.worlds,), vec3),)  # m: of all points
        springs = data["springs"]
        held_as = np.full(points, -1)
        held_as[data["held"]] = np.arange(len(data["held"]))

        def put(values: np.ndarray, dtype: Any = wp.int32) -> wp.array:
            return wp.array(values, dtype=dtype, device=self.device)

        self._first = put(np.searchsorted(springs[:, 0], np.arange(points + 1)))
        self._neighbor, self._rest = put(springs[:, 1]), put(data["rest"], real)
        self._hand, self._held, self._held_as = context.body(data["hand"]), put(data["held"]), put(held_as)
        self._anchor = put(data["anchor"], vec3)

    def make_work(self, arena: Arena) -> dict[str, wp.array]:
        """Forces on all points and on the held ones, N."""
        held = (self.worlds, len(self._held))
        return {"pull": arena.array(self.state[0].shape, vec3), "grip": arena.array(held, vec3)}

    def forces(self, state: Arrays, inputs: Arrays, work: dict[str, wp.array], around: Environment) -> None:
        """Springs among points, and between held points and the hand."""
        p, bodies = self.physical, around.bodies
        springs = [self._first, self._neighbor, self._rest, p["stiffness"], p["damping"]]
        given = [*springs, state.x, state.v]
        wp.launch(_pull_kernel, dim=state.x.shape, inputs=given, outputs=[work["pull"]], device=self.device)
        if bodies is None:
            work["grip"].zero_()
            return
        wp.launch(
            _grip_kernel,
            dim=self.worlds,
            inputs=[self._hand, self._held, self._anchor, p["grip"], p["damping"], state.x, state.v]
            + [bodies.position, bodies.rotation, bodies.velocity, bodies.com],
            outputs=[work["grip"], bodies.wrench],
            device=self.device,
        )

    def finish(
        self, state: Arrays, inputs: Arrays, work: Any, around: Environment, next_state: Arrays, outputs: Arrays
    ) -> None:
        """One time step."""
        p = self.physical
        wp.launch(
            _integrate_kernel,
            dim=state.x.shape,
            inputs=[self._held_as, p["mass"], p["drag"], around.timestep, around.gravity]
            + [state.x, state.v, inputs.wind, work["pull"], work["grip"]],
            outputs=[next_state.x, next_state.v],
            device=self.device,
        )

    def observe(self, state: Arrays, outputs: Arrays) -> None:
        """Where its center is."""
        wp.launch(_center_kernel, dim=self.worlds, inputs=[state.x], outputs=[outputs.center], device=self.device)


class NetKind(MatterKind):
    """Nets on a stage: meshes with `MassSpringNetAPI`, whose edges and diagonals are springs."""

    name = "mass_spring_net"

    def claims(self, prim: Any) -> bool:
        """Whether the schema is applied."""
        listed = prim.GetMetadata("apiSchemas")
        return listed is not None and API in listed.GetAppliedItems()

    def read(self, prim: Any, context: Context) -> MatterDescription:
        """SI numbers of a net, its points in the world."""
        read, frame, name = context.read, context.frame(prim), prim.GetName().lower()
        local = read.array(prim, "points", ndim=2) * context.units.length
        points = local @ frame.linear.T + frame.pose.position
        faces = np.array(read.value(prim, "faceVertexIndices")).reshape(-1, 4)
        hand = context.prim(read.targets(prim, "net:hand")[0])
        held = read.array(prim, "net:held").astype(int)
        pose = context.frame(hand).pose
        springs = _springs(faces)
        given = {key: read.number(prim, f"net:{key}") for key in PARAMETERS}
        return MatterDescription(
            kind=self.name,
            name=name,
            path=str(prim.GetPath()),
            parameters={k: np.array(PARAMETERS[k] if value is None else value) for k, value in given.items()},
            initial={"x": points, "v": np.zeros_like(points)},
            data={
                "springs": springs,
                "rest": np.linalg.norm(points[springs[:, 0]] - points[springs[:, 1]], axis=1),
                "faces": faces,
                "hand": str(hand.GetPath()),
                "held": held,
                "anchor": (points[held] - pose.position) @ pose.matrix,
                "places": {c.GetName(): int(read.number(c, "net:point")) for c in prim.GetChildren()},
            },
            positive=("mass",),
        )

    def compile(self, description: MatterDescription, context: CompileContext) -> Net:
        """Kernels and arrays."""
        return Net(description, context)

    def drawables(self, description: MatterDescription) -> list[Any]:
        """Its mesh."""
        faces = description.data["faces"]
        triangles = np.concatenate([faces[:, [0, 1, 2]], faces[:, [0, 2, 3]]])
        return [SurfaceDrawable(description.path, triangles, np.array([0.9, 0.5, 0.1]))]

    def points(self, description: MatterDescription, states: Any) -> dict[str, np.ndarray]:
        """Its points, frame by frame."""
        return {description.path: states["x"]}

    def places(self, description: MatterDescription) -> dict[str, tuple[str, int]]:
        """The child prims of the net's stand for its points."""
        return {name: ("x", point) for name, point in description.data["places"].items()}


register_matter(NetKind())


def _springs(faces: np.ndarray) -> np.ndarray:
    """All (point, neighbor) pairs, sorted: along the mesh and across its cells, each spring seen from both ends."""
    pairs = np.concatenate([faces[:, [a, b]] for a in range(4) for b in range(4) if a != b])
    return np.unique(pairs, axis=0)


def write_scene(path: Path, side: int = 5) -> None:
    """A two-joint arm with a net of `side` × `side` points in its hand, and a task: bring the net's end to a target."""
    stage = author.new_stage(documentation="A net of springs in the hand of a two-joint arm.")
    author.physics_scene(stage, steps_per_second=250)
    world = author.world(stage)
    upper = author.body(
        world, "Upper", position=(0, 0, 1.4), mass=1.0, inertia=(0.02, 0.02, 0.002), articulation_root=True
    )
    hand = author.body(world, "Hand", position=(0.4, 0, 1.4), mass=0.6, inertia=(0.01, 0.01, 0.002))
    bar = {"axis": "X", "collides": False}
    author.capsule(upper, "Bar", 0.02, 0.3, position=(0.2, 0, 0), **bar)
    author.capsule(hand, "Bar", 0.02, 0.2, position=(0.15, 0, 0), **bar)
    gains = {"stiffness": 1.0, "damping": 0.05}
    author.revolute(world, "Shoulder", None, upper, "Y", drive=gains)
    author.revolute(world, "Elbow", upper, hand, "Y", drive=gains)
    grid = np.linspace(0.0, 0.3, side)
    u, z = np.meshgrid(grid, grid, indexing="ij")
    points = np.stack([0.55 + 0 * u.ravel(), u.ravel() - 0.15, 1.4 - z.ravel()], axis=1)
    i, j = (k.ravel() for k in np.meshgrid(np.arange(side - 1), np.arange(side - 1), indexing="ij"))
    quads = np.stack([i * side + j, i * side + j + 1, (i + 1) * side + j + 1, (i + 1) * side + j], axis=1)
    net = UsdGeom.Mesh.Define(stage, "/World/Net")
    net.CreatePointsAttr(Vt.Vec3fArray.FromNumpy(points.astype(np.float32)))
    net.CreateFaceVertexCountsAttr([4] * len(quads))
    net.CreateFaceVertexIndicesAttr(quads.ravel().tolist())
    net.CreateSubdivisionSchemeAttr("none")
    prim = net.GetPrim()
    prim.SetMetadata("apiSchemas", Sdf.TokenListOp.CreateExplicit([API]))
    for name, value in PARAMETERS.items():
        prim.CreateAttribute(f"net:{name}", Sdf.ValueTypeNames.Double).Set(value)
    prim.CreateAttribute("net:held", Sdf.ValueTypeNames.IntArray).Set([0, (side - 1) * side])
    prim.CreateRelationship("net:hand").SetTargets([hand.GetPath()])
    end = stage.DefinePrim("/World/Net/End", "Scope")
    end.CreateAttribute("net:point", Sdf.ValueTypeNames.Int).Set(side * side - 1)
    target = author.frame(world, "Target", position=TARGET)
    task = author.task(world, duration=0.6, iterations=40)
    author.task_part(task, "Knots", "Swing", channel="driveTarget", count=6)
    author.task_part(task, "Reach", "Arrive", subject=end.GetPath(), target=target, tolerance=TOLERANCE)
    author.save(stage, path)


def swing(sim: ws.Simulator, steps: int = 150, iterations: int = 80) -> tuple[ws.Trajectory, list[float]]:
    """Finds drive targets that bring the net's end to the target, by Adam through the whole rollout."""
    goal = torch.tensor(TARGET, dtype=sim.torch_dtype)
    end = sim.scene.matters[0].data["places"]["End"]
    knots = torch.zeros(6, sim.control_slice("drive_target").stop, dtype=sim.torch_dtype, requires_grad=True)
    optimizer, costs = torch.optim.Adam([knots], lr=0.02), []
    for _ in range(iterations):
        targets = torch.nn.functional.interpolate(knots.T[None], steps, mode="linear", align_corners=True)[0].T
        made = sim.rollout(steps, {"drive_target": targets}, memory="8MB")
        cost = (made["net.x"][-1, 0, end] - goal).square().sum() + 1e-4 * made["net.v"][-1, 0].square().mean()
        optimizer.zero_grad()
        cost.backward()
        optimizer.step()
        costs.append(cost.item())
    return made, costs


def main() -> None:
    """Swings the net, checks that it arrives, and writes the motion."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, help="page, USD or .npz file to write")
    parser.add_argument("--iterations", type=int, default=80)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        scene = (
            Path(folder) / "net_scene.usda" if arguments.output is None else arguments.output.parent / "net_scene.usda"
        )
        write_scene(scene)
        sim = ws.Simulator(scene)
        motion, costs = swing(sim, iterations=arguments.iterations)
        end = motion["net.x"][-1, 0, sim.scene.matters[0].data["places"]["End"]].detach().numpy()
        distance = float(np.linalg.norm(end - TARGET))
        print(f"cost {costs[0]:.4f} -> {costs[-1]:.2e}, {1000 * distance:.1f} mm from the target")
        if arguments.output is not None:
            motion.save(arguments.output)
    assert distance < TOLERANCE


if __name__ == "__main__":
    main()
