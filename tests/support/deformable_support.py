"""Small matters and rollouts of them for the tests of deformables."""

from __future__ import annotations

from typing import Any

import numpy as np

from warpsim.deformable.description import Curve, Matter, Sheet, Volume
from warpsim.deformable.model import DeformableModel
from warpsim.deformable.program import DeformableProgram
from warpsim.tape import CheckpointedTape

CUBE = ((0, 1, 3, 7), (0, 3, 2, 7), (0, 2, 6, 7), (0, 6, 4, 7), (0, 4, 5, 7), (0, 5, 1, 7))
"""Six tetrahedra of a cube, whose corner i has the coordinates (i & 1, i >> 1 & 1, i >> 2)."""


def grid_sheet(nx: int, ny: int, width: float = 1.0, length: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Points (nx·ny, 3) in the plane z = 0 and triangles, their diagonals alternating; vertex i·ny + j is at (x, y)."""
    x, y = np.meshgrid(np.linspace(0, width, nx), np.linspace(0, length, ny), indexing="ij")
    triangles = []
    for i in range(nx - 1):
        for j in range(ny - 1):
            a, b, c, d = i * ny + j, i * ny + j + 1, (i + 1) * ny + j, (i + 1) * ny + j + 1
            triangles += [[a, c, d], [a, d, b]] if (i + j) % 2 == 0 else [[a, c, b], [b, c, d]]
    return np.stack([x.ravel(), y.ravel(), np.zeros(x.size)], axis=1), np.array(triangles)


def block(cells: tuple[int, int, int], size: tuple[float, float, float]) -> tuple[np.ndarray, np.ndarray]:
    """Points and tetrahedra of a block of cubes, each cut in six."""
    counts = [n + 1 for n in cells]
    axes = [np.linspace(0.0, s, n) for s, n in zip(size, counts, strict=True)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    tetrahedra = []
    for cell in np.ndindex(*cells):
        corner = [np.ravel_multi_index([c + (k >> a & 1) for a, c in enumerate(cell)], counts) for k in range(8)]
        tetrahedra += [[corner[k] for k in tet] for tet in CUBE]
    tetrahedra = np.array(tetrahedra)
    edges = points[tetrahedra[:, 1:]] - points[tetrahedra[:, :1]]
    inverted = np.linalg.det(edges) < 0
    tetrahedra[inverted] = tetrahedra[inverted][:, [0, 2, 1, 3]]
    return points, tetrahedra


def mixed_matter(rng: np.random.Generator) -> Matter:
    """Sheets (one bent at rest), a block and a cable that share vertices; every element has a material of its own.

    One vertex is fixed, two are pinned.
    """
    sheet, triangles = grid_sheet(3, 3, 0.3, 0.3)
    body, tetrahedra = block((1, 1, 1), (0.1, 0.1, 0.1))
    chain = np.stack([np.linspace(0.3, 0.6, 5)[1:], np.full(4, 0.3), np.zeros(4)], axis=1)
    points = np.concatenate([sheet, body + [0.6, 0.3, 0.0], chain[:-1]])
    points += 0.004 * rng.standard_normal(points.shape) * [1.0, 1.0, 0.0]
    cable = [8, *range(17, 20), 9]

    def field(base: float, n: int) -> np.ndarray:
        return base * rng.uniform(0.7, 1.3, n)

    return Matter(
        points,
        [
            *(
                Sheet(
                    triangles[half],
                    young=field(1e4, 4),
                    poisson=field(0.3, 4),
                    thickness=field(2e-3, 4),
                    density=field(300.0, 4),
                    damping=field(0.01, 4),
                    bending=field(40.0, 3),
                    **rest,
                )
                for half, rest in (
                    (slice(4), {}),
                    (slice(4, 8), {"angle": rng.uniform(-0.5, 0.5, 3), "shaped": [True, False, True]}),
                )
            ),
            Volume(
                tetrahedra + 9,
                young=field(2e4, 6),
                poisson=field(0.3, 6),
                density=field(400.0, 6),
                damping=field(0.1, 6),
            ),
            Curve(
                cable,
                young=field(1e5, 4),
                radius=field(3e-3, 4),
                density=field(900.0, 4),
                damping=field(0.02, 4),
                bending=field(3.0, 3),
            ),
        ],
        fixed=(0,),
        pinned=(2, 6),
    )


def final_state(program: DeformableProgram, steps: int, state: dict[str, Any], inputs: dict[str, Any] | None = None):
    """Places and velocities after some steps, (W, n, 3) each; every step must have converged."""
    tape = CheckpointedTape(program, steps=steps)
    run = tape.forward(state, inputs, keep_states=True, keep_outputs=True, differentiate=False)
    if "solver_status" in {f.name for f in program.outputs}:
        assert not run.outputs["solver_status"].numpy().any()
    return tuple(run.states[name].numpy()[-1].copy() for name in ("x", "v"))


def settle(model: DeformableModel, steps: int) -> np.ndarray:
    """Places (n, 3) of world 0 after steps from the rest shape."""
    program = DeformableProgram(model, outputs=["solver_status"])
    return final_state(program, steps, program.initial_state())[0][0]
