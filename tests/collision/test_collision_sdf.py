"""Signed distance functions of the primitives against dense sampling and against their own derivatives."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from collision_support import SIZES
from contact_choices import region
from warpsim.collision.kinds import KIND_CODE
from warpsim.collision.sdf import primitive_sdf
from warpsim.core.precision import real, vec3

KINDS = ("plane", "sphere", "capsule", "box", "cylinder", "cone", "ellipsoid")
FULL = pytest.param(4000, marks=pytest.mark.long)


@wp.kernel
def _evaluate_kernel(
    kind: int,
    size: wp.array(dtype=vec3),
    point: wp.array(dtype=vec3),
    distance: wp.array(dtype=real),
    gradient: wp.array(dtype=vec3),
):
    i = wp.tid()
    d, g = primitive_sdf(kind, size[i], point[i])
    distance[i] = d
    gradient[i] = g


class Field:
    """One evaluation at many points, with adjoints."""

    def __init__(self, kind: str, size: np.ndarray, points: np.ndarray):
        n = len(points)
        self.size = wp.array(np.broadcast_to(size, (n, 3)).copy(), dtype=vec3, device="cpu", requires_grad=True)
        self.point = wp.array(points, dtype=vec3, device="cpu", requires_grad=True)
        self.distance = wp.full(n, np.nan, dtype=real, device="cpu", requires_grad=True)
        self.gradient = wp.zeros(n, dtype=vec3, device="cpu", requires_grad=True)
        self.tape = wp.Tape()
        with self.tape:
            inputs = [KIND_CODE[kind], self.size, self.point]
            wp.launch(_evaluate_kernel, n, inputs=inputs, outputs=[self.distance, self.gradient], device="cpu")

    def adjoint(self, seed_distance: np.ndarray, seed_gradient: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.distance.grad.assign(seed_distance)
        self.gradient.grad.assign(seed_gradient)
        self.tape.backward()
        return self.point.grad.numpy(), self.size.grad.numpy()


def surface_points(kind: str, n: int = 200) -> np.ndarray:
    """A dense cloud on the surface."""
    u, v = np.meshgrid(np.linspace(0, 2 * np.pi, 2 * n, endpoint=False), np.linspace(0, np.pi, n), indexing="ij")
    ball = np.stack([np.sin(v) * np.cos(u), np.sin(v) * np.sin(u), np.cos(v)], -1).reshape(-1, 3)
    size = np.array(SIZES[kind])
    if kind == "sphere":
        return size[0] * ball
    return size * ball


def profile_points(kind: str, n: int = 400) -> np.ndarray:
    """The surface of a solid of revolution in the half plane (radius, z), dense."""
    radius, half = SIZES[kind][:2]
    corners = {
        "cylinder": [(0, -half), (radius, -half), (radius, half), (0, half)],
        "cone": [(0, -half), (radius, -half), (0, half)],
        "capsule": [(radius, -half), (radius, half)],
    }[kind]
    t = np.linspace(0, 1, n)[:, None]
    lines = [np.array(a) + t * (np.array(b) - np.array(a)) for a, b in zip(corners, corners[1:], strict=False)]
    if kind == "capsule":
        angle = np.linspace(0, np.pi / 2, n)
        cap = radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        lines += [cap + [0, half], cap * [1, -1] - [0, half]]
    return np.concatenate(lines)


@pytest.mark.parametrize("kind", ["capsule", "cylinder", "cone"])
def test_distance_of_turned_solids_is_that_of_a_dense_profile(kind, rng):
    points = rng.uniform(-0.9, 0.9, size=(300, 3))
    flat = np.stack([np.hypot(points[:, 0], points[:, 1]), points[:, 2]], axis=1)
    profile = profile_points(kind)
    truth = np.linalg.norm(flat[:, None] - profile[None], axis=2).min(axis=1)
    distance = Field(kind, SIZES[kind], points).distance.numpy()
    np.testing.assert_allclose(np.abs(distance), truth, atol=3e-4)


@pytest.mark.parametrize("kind", ["sphere", "ellipsoid"])
def test_distance_of_round_solids_is_that_of_a_dense_cloud(kind, rng):
    points = rng.uniform(-0.9, 0.9, size=(60, 3))
    cloud = surface_points(kind)
    truth = np.linalg.norm(points[:, None] - cloud[None], axis=2).min(axis=1)
    field = Field(kind, SIZES[kind], points)
    inside = ((points / np.where(np.array(SIZES[kind]) > 0, SIZES[kind], SIZES[kind][0])) ** 2).sum(1) < 1
    np.testing.assert_allclose(field.distance.numpy(), np.where(inside, -truth, truth), atol=2e-3)


def test_distance_to_a_box_and_a_plane(rng):
    points = rng.uniform(-0.9, 0.9, size=(300, 3))
    size = np.array(SIZES["box"])
    nearest = np.clip(points, -size, size)
    outside = np.linalg.norm(points - nearest, axis=1)
    inside = (np.abs(points) - size).max(axis=1)
    truth = np.where(outside > 0, outside, inside)
    np.testing.assert_allclose(Field("box", size, points).distance.numpy(), truth, atol=1e-12)
    np.testing.assert_allclose(Field("plane", np.zeros(3), points).distance.numpy(), points[:, 2])


@pytest.mark.parametrize("count", [400, FULL])
@pytest.mark.parametrize("kind", KINDS)
def test_gradient_is_the_adjoint_of_the_distance_and_both_have_true_adjoints(kind, count, rng):
    size = np.array(SIZES[kind])
    points = rng.uniform(-0.9, 0.9, size=(count, 3))
    field = Field(kind, size, points)
    gradient = field.gradient.numpy()
    np.testing.assert_allclose(np.linalg.norm(gradient, axis=1), 1.0, atol=1e-9)
    np.testing.assert_allclose(field.adjoint(np.ones(count), np.zeros((count, 3)))[0], gradient, atol=1e-9)

    weight, weights = rng.normal(size=count), rng.normal(size=(count, 3))
    by_point, by_size = Field(kind, size, points).adjoint(weight, weights)
    way, grow = rng.normal(size=(count, 3)), rng.normal(size=(count, 3)) * (size > 0)
    exact = (by_point * way).sum(1) + (by_size * grow).sum(1)

    def loss(step: float) -> np.ndarray:
        moved = Field(kind, size + step * grow, points + step * way)
        return moved.distance.numpy() * weight + (moved.gradient.numpy() * weights).sum(1)

    def regions(step: float) -> np.ndarray:
        return region(kind, size + step * grow, points + step * way)

    best, smooth = np.full(count, np.inf), np.ones(count, bool)
    for step in (1e-5, 1e-6, 1e-7):
        slope = (loss(step) - loss(-step)) / (2 * step)
        best = np.minimum(best, np.abs(slope - exact) / np.maximum(np.linalg.norm(by_point, axis=1), 1e-3))
        smooth &= (regions(step) == regions(0.0)) & (regions(-step) == regions(0.0))
    assert smooth.mean() > 0.98  # the others straddle a crease, where no derivative exists
    assert best[smooth].max() < 1e-6


@pytest.mark.parametrize("kind", KINDS)
def test_centers_axes_and_corners_are_finite(kind):
    size = np.array(SIZES[kind])
    places = np.array([(0, 0, 0), (0, 0, 0.2), (0.1, 0, 0), tuple(size), (size[0], 0, size[1]), (0, 0, size[1])], float)
    field = Field(kind, size, places)
    assert np.isfinite(field.distance.numpy()).all()
    for adjoint in field.adjoint(np.ones(len(places)), np.ones((len(places), 3))):
        assert np.isfinite(adjoint).all()
