"""Rigid frames against SciPy's rotations and plain 4×4 matrices."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from warpsim.core.numpy_quaternions import (
    matrix_to_quat,
    quat_about,
    quat_conjugate,
    quat_log,
    quat_multiply,
    quat_to_matrix,
)
from warpsim.io.usd.frames import IDENTITY, Pose, split_affine


def homogeneous(pose: Pose) -> np.ndarray:
    matrix = np.eye(4)
    matrix[:3, :3] = Rotation.from_quat(pose.rotation, scalar_first=True).as_matrix()
    matrix[:3, 3] = pose.position
    return matrix


def random_pose(rng) -> Pose:
    return Pose(rng.normal(size=3), Rotation.random(random_state=rng).as_quat(scalar_first=True))


def test_quaternions_and_matrices(rng):
    turns = Rotation.random(200, random_state=rng)
    q, m = turns.as_quat(scalar_first=True), turns.as_matrix()
    np.testing.assert_allclose(quat_to_matrix(q), m, atol=1e-14)
    np.testing.assert_allclose(quat_to_matrix(matrix_to_quat(m)), m, atol=1e-14)
    assert (matrix_to_quat(m)[:, 0] >= 0).all()
    a, b = turns[:100], turns[100:]
    for x, y, expected in zip(q[:100], q[100:], (a * b).as_matrix(), strict=True):
        np.testing.assert_allclose(quat_to_matrix(quat_multiply(x, y)), expected, atol=1e-14)
    np.testing.assert_allclose(quat_to_matrix(quat_conjugate(q[0])), m[0].T, atol=1e-14)


@pytest.mark.parametrize("axis", np.vstack([np.eye(3), -np.eye(3)]).tolist())
def test_half_turns(axis):
    """Where w is zero the trace alone would divide by it."""
    m = Rotation.from_rotvec(np.pi * np.array(axis)).as_matrix()
    np.testing.assert_allclose(quat_to_matrix(matrix_to_quat(m)), m, atol=1e-14)


def test_logarithm(rng):
    for angle in (0.0, 1e-14, 1e-9, 0.3, 3.1):
        axis = rng.normal(size=3)
        axis /= np.linalg.norm(axis)
        q = quat_about(axis, angle)
        np.testing.assert_allclose(quat_log(q), angle * axis, atol=1e-14)
        np.testing.assert_allclose(quat_log(-q), angle * axis, atol=1e-14)


def test_poses_compose_like_matrices(rng):
    a, b = random_pose(rng), random_pose(rng)
    np.testing.assert_allclose(homogeneous(a @ b), homogeneous(a) @ homogeneous(b), atol=1e-14)
    np.testing.assert_allclose(homogeneous(a.inverse()), np.linalg.inv(homogeneous(a)), atol=1e-14)
    points = rng.normal(size=(5, 3))
    np.testing.assert_allclose(a.apply(points), (homogeneous(a) @ np.c_[points, np.ones(5)].T).T[:, :3], atol=1e-14)
    shift, turn = a.distance(a @ Pose(np.array([0.1, 0, 0]), quat_about(np.array([0, 0, 1.0]), 0.2)))
    assert (shift, turn) == pytest.approx((0.1, 0.2))


@pytest.mark.parametrize("scale", [(1, 1, 1), (2, 3, 0.5), (-2, 3, 0.5), (-1, -1, -1)])
def test_affine_matrices_split(rng, scale):
    pose = random_pose(rng)
    frame = split_affine(pose.matrix @ np.diag(scale), pose.position)
    np.testing.assert_allclose(frame.scale, np.abs(scale))
    assert frame.mirrored == (np.prod(scale) < 0)
    assert not frame.sheared
    flip = np.diag([-1.0, 1, 1]) if frame.mirrored else np.eye(3)
    np.testing.assert_allclose(frame.pose.matrix @ flip @ np.diag(frame.scale), frame.linear, atol=1e-12)


def test_shear_is_seen():
    linear = np.array([[1.0, 0.5, 0], [0, 1, 0], [0, 0, 1]])
    frame = split_affine(linear, np.zeros(3))
    assert frame.sheared
    np.testing.assert_allclose(frame.pose.matrix @ frame.pose.matrix.T, np.eye(3), atol=1e-12)
    assert IDENTITY.distance(frame.pose)[1] < 0.5
