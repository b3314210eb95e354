"""Where the slope of a reading is trusted: bends, curves and products that lie off the beaten direction are found."""

from __future__ import annotations

import numpy as np
import pytest
from pxr import Gf, Sdf, Usd, UsdGeom

import warpsim as ws
from warpsim.io.usd import author
from warpsim.sim.attributes.scene_map import Point
from warpsim.sim.attributes.slopes import survey

READINGS = {
    "linear": lambda x: np.array([2 * x[0] - x[1], x[2], 3.0]),
    "largest counts": lambda x: np.array([x.max()]),
    "clipped far off": lambda x: np.array([min(x[0], 50.0), x[1], x[2]]),
    "clipped below": lambda x: np.array([max(x[0], 0.5), x[1] + x[2]]),
    "only together": lambda x: np.array([max(min(x[0] - 2, x[1] - 2), 0.0), x[2]]),
    "product": lambda x: np.array([x[0] * x[1], x[2]]),
    "curved": lambda x: np.array([x[0] + 1e-3 * x[1] ** 3, x[2]]),
    "size": lambda x: np.abs(x),
}
BASE = np.array([1.0, 1.25, 2.0])


@pytest.mark.parametrize("name", READINGS)
def test_a_slope_holds_wherever_it_claims_to(name, rng):
    """2,000 points in the box where it is trusted; where no box is given the slope is the local one."""

    def read(value: np.ndarray) -> Point:
        return Point(READINGS[name](value), {})

    base = read(BASE)
    slope = survey(read, base, BASE)
    matrix = np.zeros((len(base.numbers), 3))
    matrix[slope.places] = slope.matrix
    steps = 1e-6 * np.eye(3)
    local = np.stack([(read(BASE + s).numbers - read(BASE - s).numbers) / 2e-6 for s in steps], axis=1)
    np.testing.assert_allclose(matrix, local, atol=1e-7)
    assert slope.holds(BASE) == slope.affine
    if not slope.affine:
        assert name in ("product", "curved", "only together")
        return
    values = rng.uniform(slope.low, slope.high, size=(2000, 3))
    for value in values:
        predicted = base.numbers + matrix @ (value - BASE)
        np.testing.assert_allclose(read(value).numbers, predicted, rtol=1e-9, atol=1e-9, err_msg=str(value))
    if name == "linear":
        assert (slope.high - BASE > 1000 * BASE).all() and (BASE - slope.low > 1000 * BASE).all()


@pytest.fixture(scope="module")
def uneven(tmp_path_factory):
    """A ball under an uneven scale, of which the largest part counts."""
    stage = author.new_stage()
    author.physics_scene(stage, gravity=10, steps_per_second=500)
    world = author.world(stage)
    author.ground(world, "Floor")
    body = author.body(world, "Ball", position=(0, 0, 1), mass=1, inertia=(0.1, 0.1, 0.1))
    ball = author.sphere(body, "Shape", 0.1)
    UsdGeom.Xformable(ball).AddScaleOp().Set(Gf.Vec3f(1, 1.5, 2))
    path = tmp_path_factory.mktemp("uneven") / "ball.usda"
    stage.GetRootLayer().Export(str(path))
    return path


@pytest.mark.filterwarnings("ignore::warpsim.core.errors.UnsupportedPhysicsWarning")
@pytest.mark.parametrize("scale", [(1, 1.5, 2.5), (3, 1.5, 2), (1.875, 1.5, 1.75)])
def test_values_beyond_a_bend_are_read_anew(uneven, tmp_path, scale):
    attribute = "/World/Ball/Shape.xformOp:scale"
    stage = Usd.Stage.Open(Sdf.Layer.OpenAsAnonymous(str(uneven)))  # the file's own layer is shared
    stage.GetAttributeAtPath(attribute).Set(Gf.Vec3f(*scale))
    stage.GetRootLayer().Export(str(tmp_path / "other.usda"))
    sim = ws.Simulator(uneven)
    made = sim.rollout(250, parameters={attribute: np.array(scale)})
    expected = ws.Simulator(tmp_path / "other.usda").rollout(250)
    height = float(made.body_position("/World/Ball")[-1, 0, 2])
    assert height == pytest.approx(float(expected.body_position("/World/Ball")[-1, 0, 2]), abs=1e-9)
    assert abs(height - 0.1 * max(scale)) < 0.1, "it does not lie on the floor"
