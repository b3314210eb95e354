"""Collision alone, against MuJoCo's in the same run: 50 boxes and 50 meshes piled up in one world.

Run it with `python -m tools.bench.pile`. MuJoCo lets the pile fall and settle; both sides then find the contacts of
that one pose again and again, in turn. MuJoCo collides meshes as convex hulls, and so do we here.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass

import mujoco
import numpy as np
import warp as wp

from tools.bench.timing import Timing, Workload, measure
from warpsim.collision.contacts import Contacts, PairTable, SearchWork, ShapePoses, find_contacts, rebuild_contacts
from warpsim.core.precision import quat, real, vec3
from warpsim.io.mjcf import scene_from_mjmodel

_COUNT = 100
_SETTLE = 600
_SHALLOW = 1e-6
"""m: pairs that touch by less may be missing on one side."""


def pile_xml(seed: int = 0) -> str:
    """A walled floor with boxes and 40-vertex meshes above it."""
    rng = np.random.default_rng(seed)
    vertices = rng.normal(size=(40, 3))
    vertices *= 0.07 / np.linalg.norm(vertices, axis=1, keepdims=True)
    numbers = " ".join(map(repr, vertices.reshape(-1).tolist()))
    geoms = ('type="box" size=".05 .06 .07"', 'type="mesh" mesh="stone"')
    bodies = ""
    for i in range(_COUNT):
        x, y = rng.uniform(-0.4, 0.4, size=2)
        bodies += f'<body pos="{x} {y} {0.1 + 0.02 * i}"><freejoint/><geom {geoms[i % 2]} density="500"/></body>'
    walls = ((0.02, 0.6, 0.55, 0), (0.02, 0.6, -0.55, 0), (0.6, 0.02, 0, 0.55), (0.6, 0.02, 0, -0.55))
    fence = "".join(f'<geom type="box" size="{a} {b} 1" pos="{x} {y} 1"/>' for a, b, x, y in walls)
    return (
        '<mujoco><option timestep=".004"><flag multiccd="disable"/></option><size memory="200M"/>'
        f'<asset><mesh name="stone" vertex="{numbers}"/></asset>'
        f'<worldbody><geom type="plane" size="5 5 .1"/>{fence}{bodies}</worldbody></mujoco>'
    )


@dataclass(frozen=True)
class Pile:
    """The same pose on both sides."""

    model: mujoco.MjModel
    data: mujoco.MjData
    table: PairTable
    contacts: Contacts
    workloads: list[Workload]

    def touching(self) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
        """Pairs of shapes that touch: those MuJoCo finds clearly, and all that we find."""
        theirs = {
            (min(pair), max(pair))
            for pair, depth in zip(self.data.contact.geom.tolist(), self.data.contact.dist, strict=True)
            if depth < -_SHALLOW
        }
        count = int(self.contacts.count.numpy()[0])
        pairs = self.table.pair_shapes.numpy()[self.contacts.pair.numpy()[0, :count]]
        return theirs, {(min(pair), max(pair)) for pair in pairs.tolist()}


def _captured(launches) -> wp.Graph:
    with wp.ScopedCapture("cpu") as capture:
        launches()
    return capture.graph


def settled_pile() -> Pile:
    """Builds the pile, lets it settle, and prepares both sides."""
    model = mujoco.MjModel.from_xml_string(pile_xml())
    data = mujoco.MjData(model)
    for _ in range(_SETTLE):
        mujoco.mj_step(model, data)
    mujoco.mj_kinematics(model, data)
    mujoco.mj_collision(model, data)
    scene = scene_from_mjmodel(model)
    table = PairTable.from_scene(scene, "cpu")
    rotation = np.zeros((1, model.ngeom, 4))
    for i in range(model.ngeom):
        mujoco.mju_mat2Quat(rotation[0, i], data.geom_xmat[i])
    shapes = ShapePoses(
        wp.array(data.geom_xpos[None], dtype=vec3, device="cpu"),
        wp.array(rotation, dtype=quat, device="cpu"),
        wp.array(np.array([[s.size for s in scene.shapes]]), dtype=vec3, device="cpu"),
    )
    margin = wp.zeros((1, table.pair_count), dtype=real, device="cpu")
    search, contacts = SearchWork.allocate(table, 1), Contacts.allocate(1, 2000, "cpu")

    def find() -> None:
        find_contacts(table, shapes, margin, search, contacts)

    def find_and_rebuild() -> None:
        find()
        rebuild_contacts(table, shapes, contacts)

    find_and_rebuild()  # compiles
    contacts.check_overflow()
    graphs = _captured(find), _captured(find_and_rebuild)

    def nothing() -> np.ndarray:
        return np.zeros((1, 0))

    workloads = [
        Workload("mujoco", lambda: mujoco.mj_collision(model, data), nothing),
        Workload("find", lambda: wp.capture_launch(graphs[0]), nothing),
        Workload("find and rebuild", lambda: wp.capture_launch(graphs[1]), nothing),
    ]
    return Pile(model, data, table, contacts, workloads)


def _row(label: str, timing: Timing, reference: Timing) -> str:
    ratios = sorted(timing.ratios(reference))
    middle = ratios[len(ratios) // 2]
    return f"| {label} | {1e6 * timing.median:.0f} | {middle:.2f} | {ratios[0]:.2f}…{ratios[-1]:.2f} |"


def main() -> int:
    """Prints a table; fails where the two sides do not touch alike."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.pile", description=__doc__)
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()
    pile = settled_pile()
    theirs, ours = pile.touching()
    if theirs - ours:
        print(f"pairs that touch in MuJoCo and not here: {sorted(theirs - ours)}", file=sys.stderr)
        return 1
    timings = measure(pile.workloads, repeats=options.repeats)
    print(f"{pile.table.pair_count} pairs, {len(theirs)} touch; contacts: MuJoCo {pile.data.ncon}, ", end="")
    print(f"warpsim {int(pile.contacts.count.numpy()[0])}\n")
    print("| collision | µs | of MuJoCo's, median | range |\n|---|---|---|---|")
    for label, timing in timings.items():
        print(_row(label, timing, timings["mujoco"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
