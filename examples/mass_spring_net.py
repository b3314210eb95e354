"""A net of springs carried to a target by its four corners, written as animated USD points.

The step is three Warp kernels of the user's own; `Net` tells the checkpointed tape which arrays they read and write.
The corners follow velocities that are interpolated between a few knots, so the control of a long flight is a small
array; the rest hangs, swings and must arrive. The objective is a Warp kernel too: the mean squared distance of all
points from where they should be at the end, plus their speed.

    python examples/mass_spring_net.py -o net.usda        (open it in any USD viewer)
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import warp as wp
from pxr import Gf, Usd, UsdGeom, Vt

from warpsim.tape import Arena, Arrays, CheckpointedTape, Field, KnotInputs, final_cost

vec3 = wp.vec3d
TIME_STEP = 0.004
"""Seconds."""


@wp.kernel
def _pull(
    first: wp.array(dtype=wp.int32),
    neighbor: wp.array(dtype=wp.int32),
    rest: wp.array(dtype=wp.float64),
    stiffness: wp.array(dtype=wp.float64),
    damping: wp.array(dtype=wp.float64),
    x: wp.array2d(dtype=vec3),
    v: wp.array2d(dtype=vec3),
    force: wp.array2d(dtype=vec3),
):
    """Sum of the spring forces on one point (N)."""
    w, i = wp.tid()
    total = vec3(wp.float64(0.0), wp.float64(0.0), wp.float64(0.0))
    for k in range(first[i], first[i + 1]):
        j = neighbor[k]
        d = x[w, j] - x[w, i]
        length = wp.length(d)
        along = d / length
        pull = stiffness[w] * (length - rest[k]) + damping[w] * wp.dot(v[w, j] - v[w, i], along)
        total += pull * along
    force[w, i] = total


@wp.kernel
def _integrate(
    corner: wp.array(dtype=wp.int32),
    mass: wp.array(dtype=wp.float64),
    drag: wp.array(dtype=wp.float64),
    dt: wp.array(dtype=wp.float64),
    x: wp.array2d(dtype=vec3),
    v: wp.array2d(dtype=vec3),
    drive: wp.array2d(dtype=wp.float64),
    force: wp.array2d(dtype=vec3),
    x_next: wp.array2d(dtype=vec3),
    v_next: wp.array2d(dtype=vec3),
):
    """Symplectic Euler; corners move as they are told."""
    w, i = wp.tid()
    h = dt[0]
    c = corner[i]
    if c >= 0:
        told = vec3(drive[w, 3 * c], drive[w, 3 * c + 1], drive[w, 3 * c + 2])
        v_next[w, i] = told
        x_next[w, i] = x[w, i] + h * told
    else:
        gravity = vec3(wp.float64(0.0), wp.float64(0.0), wp.float64(-9.81))
        moved = v[w, i] + h * ((force[w, i] - drag[w] * v[w, i]) / mass[w] + gravity)
        v_next[w, i] = moved
        x_next[w, i] = x[w, i] + h * moved


@wp.kernel
def _arrival(
    target: wp.array2d(dtype=vec3),
    x: wp.array2d(dtype=vec3),
    v: wp.array2d(dtype=vec3),
    cost: wp.array(dtype=wp.float64),
):
    """Mean squared distance from the target (m²), and a little of the mean squared speed."""
    w = wp.tid()
    share = wp.float64(1.0) / wp.float64(x.shape[1])
    for i in range(x.shape[1]):
        d = x[w, i] - target[w, i]
        cost[w] += share * (wp.dot(d, d) + wp.float64(0.01) * wp.dot(v[w, i], v[w, i]))


class Net:
    """A square net of `side` × `side` points in each world, 1 m wide, held at its corners."""

    def __init__(self, side: int = 9, worlds: int = 1) -> None:
        """Makes the program; mass, stiffness, damping and air drag are parameters, one value per world."""
        points = side * side
        self.device, self.worlds, self.side = wp.get_device("cpu"), worlds, side
        self.state = (Field("x", (worlds, points), vec3), Field("v", (worlds, points), vec3))
        self.inputs = (Field("drive", (worlds, 12), wp.float64),)
        self.outputs = ()
        values = {"stiffness": 400.0, "damping": 0.4, "mass": 0.02, "drag": 0.04}
        self.parameters = {
            name: wp.full(worlds, value, dtype=wp.float64, requires_grad=True) for name, value in values.items()
        }
        self._dt = wp.array([TIME_STEP], dtype=wp.float64)
        springs = _springs(side)
        self._first = wp.array(np.searchsorted(springs[:, 0], np.arange(points + 1)), dtype=wp.int32)
        self._neighbor = wp.array(springs[:, 1], dtype=wp.int32)
        flat = self.rest_points()
        lengths = np.linalg.norm(flat[springs[:, 0]] - flat[springs[:, 1]], axis=1)
        self._rest = wp.array(lengths, dtype=wp.float64)
        corner = np.full(points, -1)
        corner[[0, side - 1, points - side, points - 1]] = range(4)
        self._corner = wp.array(corner, dtype=wp.int32)

    def rest_points(self) -> np.ndarray:
        """The flat net, (points, 3), in meters."""
        grid = np.linspace(-0.5, 0.5, self.side)
        x, y = np.meshgrid(grid, grid, indexing="ij")
        return np.stack([x.ravel(), y.ravel(), np.zeros(x.size)], axis=1)

    def make_work(self, arena: Arena) -> wp.array:
        """The spring forces."""
        return arena.array(self.state[0].shape, vec3)

    def step(
        self,
        state: Arrays,
        inputs: Arrays,
        work: wp.array,
        next_state: Arrays,
        outputs: Arrays,
        *,
        tape: wp.Tape | None,
    ) -> None:
        """One time step."""
        p, dim = self.parameters, state.x.shape
        net = [self._first, self._neighbor, self._rest]
        wp.launch(_pull, dim=dim, inputs=[*net, p["stiffness"], p["damping"], state.x, state.v], outputs=[work])
        told = [self._corner, p["mass"], p["drag"], self._dt, state.x, state.v, inputs.drive, work]
        wp.launch(_integrate, dim=dim, inputs=told, outputs=[next_state.x, next_state.v])


def _springs(side: int) -> np.ndarray:
    """All (point, neighbor) pairs, sorted: along the mesh and across its cells, each spring seen from both ends."""
    found = []
    for i in range(side):
        for j in range(side):
            for di in (-1, 0, 1):
                for dj in (-1, 0, 1):
                    a, b = i + di, j + dj
                    if (di or dj) and 0 <= a < side and 0 <= b < side:
                        found.append((i * side + j, a * side + b))
    return np.array(sorted(found))


def carry(steps: int = 500, knots: int = 9, iterations: int = 60, memory_budget: str = "8MB") -> dict[str, np.ndarray]:
    """Finds corner velocities that bring the net to rest 0.6 m to the side and 0.4 m up, turned by 30 degrees.

    Args:
        steps: Length of the flight.
        knots: Number of corner velocities along it.
        iterations: Gradient steps.
        memory_budget: For the tape.

    Returns:
        `cost` by iteration, `points` (steps + 1, points, 3) of the best flight, and the `target` (points, 3).
    """
    net = Net()
    every = -(-steps // (knots - 1))
    tape = CheckpointedTape(net, steps=steps, memory_budget=memory_budget)
    print(tape.plan)
    hanging = _settle(net)
    turn = np.radians(30.0)
    rotation = np.array([[np.cos(turn), -np.sin(turn), 0.0], [np.sin(turn), np.cos(turn), 0.0], [0.0, 0.0, 1.0]])
    target = hanging["x"][0] @ rotation.T + np.array([0.6, 0.0, 0.4])
    goal = {"target": wp.array(target[None], dtype=vec3)}

    def arrival(p: Arrays, state: Arrays, cost: wp.array) -> None:
        wp.launch(_arrival, dim=1, inputs=[p.target, state.x, state.v], outputs=[cost])

    drive = KnotInputs("drive", wp.zeros((knots, 1, 12), dtype=wp.float64), every)
    values, length, costs = drive.knots.numpy(), 0.3, []
    last_values, last_gradient = values.copy(), None
    for _ in range(iterations):
        run = tape.forward(hanging, drive)
        cost, seeds = final_cost(net, run.state(), arrival, parameters=goal)
        costs.append(float(cost[0]))
        drive.gradient.zero_()
        tape.backward(run, state_seeds={name: {-1: seed} for name, seed in seeds.items()})
        gradient = drive.gradient.numpy().copy()
        if last_gradient is not None:  # step length from the last step's curvature (Barzilai and Borwein, 1988)
            moved, turned = values - last_values, gradient - last_gradient
            length = float((moved * moved).sum() / max((moved * turned).sum(), 1e-12))
        last_values, last_gradient = values.copy(), gradient
        values -= min(length, 3.0) * gradient  # in place: the knots share this memory
    flight = tape.forward(hanging, drive, keep_states=["x"], differentiate=False)
    return {"cost": np.array(costs), "points": flight.states.x.numpy()[:, 0], "target": target}


def _settle(net: Net, steps: int = 1500) -> dict[str, np.ndarray]:
    """The net hanging at rest between its corners, as an initial state."""
    flat = {"x": net.rest_points()[None], "v": np.zeros((1, net.side**2, 3))}
    state = CheckpointedTape(net, steps=steps).forward(flat, differentiate=False).state()
    return {"x": state["x"], "v": np.zeros_like(state["v"])}


def write_points(path: Path, points: np.ndarray, target: np.ndarray, every: int = 5) -> None:
    """Writes a flight as animated USD points, and the target as still ones.

    Args:
        path: A .usda, .usdc or .usd file.
        points: (steps + 1, points, 3) positions in meters.
        target: (points, 3) positions in meters.
        every: Steps per frame.
    """
    stage = Usd.Stage.CreateNew(str(path))
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    rate = 1.0 / (TIME_STEP * every)
    stage.SetTimeCodesPerSecond(rate)
    stage.SetFramesPerSecond(rate)
    stage.SetStartTimeCode(0)
    stage.SetEndTimeCode((len(points) - 1) // every)
    stage.SetDefaultPrim(UsdGeom.Xform.Define(stage, "/World").GetPrim())
    moving, still = (UsdGeom.Points.Define(stage, f"/World/{name}") for name in ("Net", "Target"))
    for prim, color in ((moving, (0.9, 0.6, 0.1)), (still, (0.3, 0.5, 0.9))):
        prim.CreateWidthsAttr(Vt.FloatArray([0.03] * len(target)))
        prim.SetWidthsInterpolation(UsdGeom.Tokens.vertex)
        prim.CreateDisplayColorAttr([Gf.Vec3f(*color)])
    still.CreatePointsAttr(Vt.Vec3fArray.FromNumpy(target.astype(np.float32)))
    attribute, extent = moving.CreatePointsAttr(), moving.CreateExtentAttr()
    for frame, shape in enumerate(points[::every].astype(np.float32)):
        positions = Vt.Vec3fArray.FromNumpy(np.ascontiguousarray(shape))
        attribute.Set(positions, frame)
        extent.Set(UsdGeom.Points.ComputeExtent(positions, moving.GetWidthsAttr().Get()), frame)
    stage.GetRootLayer().Save()


def main() -> None:
    """Carries the net, checks that it arrived, and writes the flight."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, help="USD file to write")
    parser.add_argument("--iterations", type=int, default=60)
    arguments = parser.parse_args()
    result = carry(iterations=arguments.iterations)
    miss = np.linalg.norm(result["points"][-1] - result["target"], axis=1)
    print(f"cost {result['cost'][0]:.4f} -> {result['cost'][-1]:.2e}; mean miss {1000 * miss.mean():.1f} mm")
    if arguments.output is not None:
        arguments.output.unlink(missing_ok=True)
        write_points(arguments.output, result["points"], result["target"])
    assert miss.mean() < 0.02


if __name__ == "__main__":
    main()
