"""The parts of the implicit step by themselves: factorization, polynomials along a line, what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from deformable_support import block, grid_sheet, mixed_matter
from warpsim.core.errors import SceneError, UnknownNameError
from warpsim.core.precision import real, vec3, vec6
from warpsim.deformable.contact import Contacts
from warpsim.deformable.description import Curve, Matter, Sheet, Volume
from warpsim.deformable.fold import Folds
from warpsim.deformable.inertia import Inertia
from warpsim.deformable.matrix import Factor, factor_matrix, make_factor, solve_matrix
from warpsim.deformable.model import build
from warpsim.deformable.newton import NewtonVectors, line_minimum
from warpsim.deformable.program import DeformableProgram
from warpsim.deformable.self_contact import SelfContacts
from warpsim.deformable.terms import Elements, elastic_energy, energy_line


@wp.kernel(enable_backward=False)
def _factor_kernel(f: Factor, shift: int, shifted: wp.array(dtype=wp.int32)):
    w = wp.tid()
    shifted[w] = factor_matrix(f, w, shift)
    solve_matrix(f, w)


@wp.kernel(enable_backward=False)
def _line_kernel(
    m: Elements,
    x: wp.array2d(dtype=vec3),
    moved: wp.array2d(dtype=vec3),
    step: wp.array2d(dtype=vec3),
    line: wp.array(dtype=vec6),
    energy: wp.array2d(dtype=real),
):
    w = wp.tid()
    line[w] = energy_line(m, w, real(0.01), x, x, step)
    energy[w, 0] = elastic_energy(m, w, x)
    energy[w, 1] = elastic_energy(m, w, moved)


@wp.kernel(enable_backward=False)
def _minimum_kernel(
    flat: Folds,
    none: Contacts,
    apart: SelfContacts,
    m: Inertia,
    s: NewtonVectors,
    f: Factor,
    c: wp.array(dtype=vec6),
    alpha: wp.array(dtype=real),
):
    i = wp.tid()
    alpha[i] = line_minimum(c[i], flat, none, apart, m, s, f, 0)


def dense(model, rng: np.random.Generator, shift: float) -> tuple[Factor, np.ndarray, np.ndarray]:
    """A random symmetric matrix (3n, 3n) on a model's pattern, in blocks and whole, and a right-hand side."""
    p = model.pattern
    factor = make_factor(p, model.points, 1, model.device)
    blocks = rng.standard_normal((p.size + len(p.couplings), 3, 3))
    blocks[: p.size] += blocks[: p.size].transpose(0, 2, 1) + shift * np.eye(3)
    matrix = np.zeros((p.size, 3, p.size, 3))
    for k in range(p.size):
        matrix[k, :, k] = blocks[k]
    for (row, column), part in zip(p.couplings, blocks[p.size :], strict=True):
        matrix[row, :, column], matrix[column, :, row] = part, part.T
    right = rng.standard_normal((1, p.size, 3))
    factor.blocks.assign(blocks[None])
    factor.vector.assign(right)
    return factor, matrix.reshape(3 * p.size, -1), right.ravel()


@pytest.mark.parametrize("shift", [60.0, 0.0])
def test_factor_solves_what_numpy_solves(rng, shift):
    factor, matrix, right = dense(build(mixed_matter(rng)), rng, shift)
    shifted = wp.zeros(1, dtype=wp.int32)
    wp.launch(_factor_kernel, dim=1, inputs=[factor, 0], outputs=[shifted])
    truth = np.linalg.solve(matrix, right)
    assert np.abs(factor.vector.numpy().ravel() - truth).max() <= 1e-8 * np.abs(truth).max()
    # Sylvester: as many pivots are negative as eigenvalues are
    assert shifted.numpy()[0] == np.count_nonzero(np.linalg.eigvalsh(matrix) < 0)


def test_raised_pivots_give_a_direction_that_goes_down(rng):
    factor, _, right = dense(build(mixed_matter(rng)), rng, 0.0)
    shifted = wp.zeros(1, dtype=wp.int32)
    wp.launch(_factor_kernel, dim=1, inputs=[factor, 1], outputs=[shifted])
    assert shifted.numpy()[0] > 0
    assert np.vdot(factor.vector.numpy(), right) > 0.0


@pytest.mark.parametrize("alpha", [-0.7, 0.3, 1.0, 2.5])
def test_polynomial_is_the_energy_along_a_line(rng, alpha):
    matter = mixed_matter(rng)
    model = build(matter)
    for kind in ("membrane", "tetrahedra", "segments"):
        model.set(f"{kind}.damping", 0.0)
    model.set("folds.factor", 0.0)  # those are no polynomial
    model.derive()
    x = model.points + 0.02 * rng.standard_normal(model.points.shape)
    step = 0.1 * rng.standard_normal(x.shape)
    line, energy = wp.zeros(1, dtype=vec6), wp.zeros((1, 2), dtype=real)
    places = [wp.array(values[None], dtype=vec3) for values in (x, x + alpha * step, step)]
    wp.launch(_line_kernel, dim=1, inputs=[model.elements, *places], outputs=[line, energy])
    change = sum(c * alpha ** (k + 1) for k, c in enumerate(line.numpy()[0]))
    before, after = energy.numpy()[0]
    assert change == pytest.approx(after - before, rel=1e-11)


def test_line_minimum_is_stationary_and_lower(rng):
    c = rng.standard_normal((200, 6)) * 10.0 ** rng.uniform(-0.5, 0.5, (200, 6))
    c[:, 0], c[:, 5] = -np.abs(c[:, 0]), np.abs(c[:, 5])
    alpha = wp.full(200, np.nan, dtype=real)
    nothing = [Folds(), Contacts(), SelfContacts(), Inertia(), NewtonVectors(), Factor()]
    wp.launch(_minimum_kernel, dim=200, inputs=[*nothing, wp.array(c, dtype=vec6)], outputs=[alpha])
    for k, a in zip(c, alpha.numpy(), strict=True):
        powers = np.arange(1, 7)
        assert a > 0.0 and (k * a**powers).sum() <= 0.0
        assert abs((powers * k * a ** (powers - 1)).sum()) <= 1e-3 * abs(k[0])


SQUARE, TRIANGLES = grid_sheet(2, 2)
CUBE, TETRAHEDRA = block((1, 1, 1), (1.0, 1.0, 1.0))


@pytest.mark.parametrize(
    ("matter", "message"),
    [
        (Matter(SQUARE, [Sheet([[0, 1, 9]])]), r"sheet: element 0 has vertices \[0, 1, 9\], of 4"),
        (Matter(SQUARE, [Sheet([[0, 1, 1], [0, 1, 2]])]), "element 0 .* has no extent"),
        (Matter(CUBE, [Volume(TETRAHEDRA[:, [1, 0, 2, 3]], name="jelly")]), "jelly: element 0 .* is inside out"),
        (Matter(SQUARE, [Sheet(TRIANGLES, thickness=0.0)]), "thickness of element 0 is 0"),
        (Matter(SQUARE, [Sheet(TRIANGLES, young=[1e5, np.nan])]), "young of element 1 is nan"),
        (Matter(SQUARE, [Sheet(TRIANGLES, poisson=0.5)]), "poisson of element 0 is 0.5"),
        (Matter(SQUARE, [Sheet(TRIANGLES, young=[1.0, 2.0, 3.0])]), "give one value or 2"),
        (Matter(SQUARE * np.nan, [Sheet(TRIANGLES)]), "finite"),
        (Matter(SQUARE, [Sheet([[0, 1, 2]])]), "point 3 belongs to no element"),
        (Matter(SQUARE, [Sheet(TRIANGLES)], fixed=[0], pinned=[0]), "vertex 0 is fixed and pinned"),
        (Matter(SQUARE, [Curve([0, 1, 2, 3], radius=-1.0)]), "curve: radius of element 0 is -1"),
        (
            Matter(np.vstack([SQUARE, [[0, 0, 1]]]), [Sheet([*TRIANGLES.tolist(), [0, 4, 3], [0, 3, 1]])]),
            r"triangles \[.*\] share the edge",
        ),
    ],
)
def test_bad_matter_is_named(matter, message):
    with pytest.raises(SceneError, match=message):
        build(matter)


def test_unknown_names_are_refused():
    model = build(Matter(SQUARE, [Sheet(TRIANGLES)]))
    with pytest.raises(UnknownNameError, match="membrane.young"):
        model.set("membrane.yong", 1.0)
    with pytest.raises(UnknownNameError, match="force"):
        DeformableProgram(model, controls=["forces"])
