"""Contact of deformables with themselves: weights, friction, folds without intersections, and gradients."""

from __future__ import annotations

import numpy as np
import pytest

from deformable_support import final_state, grid_sheet
from warpsim.core.errors import SceneError
from warpsim.deformable.description import Curve, Matter, Obstacle, SelfContact, Sheet
from warpsim.deformable.model import DeformableModel, build
from warpsim.deformable.program import DeformableProgram
from warpsim.deformable.types import STATUS_TEXT
from warpsim.tape import AllStarts, CheckpointedTape, Memory

STICKING = 100.0


def intersections(x: np.ndarray, edge: np.ndarray, face: np.ndarray) -> int:
    """How many edges pass through faces with which they share no vertex: where each meets the plane, by linear algebra.

    Independent of the test in the kernels.
    """
    p, q = x[edge[:, 0]], x[edge[:, 1]]
    a, b, c = (x[face[:, k]] for k in range(3))
    normal = np.cross(b - a, c - a)
    before, after = (np.einsum("fk,efk->ef", normal, end[:, None] - a[None]) for end in (p, q))
    apart = ~(edge[:, None, :, None] == face[None, :, None, :]).any(axis=(2, 3))
    e, f = np.nonzero((before * after < 0.0) & apart)
    t = before[e, f] / (before[e, f] - after[e, f])
    at = p[e] + t[:, None] * (q[e] - p[e])
    inside = np.linalg.solve(np.stack([b[f] - a[f], c[f] - a[f], normal[f]], axis=2), (at - a[f])[..., None])[..., 0]
    return int(((inside[:, 0] > 0.0) & (inside[:, 1] > 0.0) & (inside[:, :2].sum(axis=1) < 1.0)).sum())


def two_sheets(
    friction: float, gravity: tuple[float, float, float], time_step: float = 0.005, cells: int = 6, **options
) -> DeformableModel:
    """A small square sheet that lies on a larger one, which is fixed."""
    low, under = grid_sheet(cells, cells, 0.3, 0.3)
    high, over = grid_sheet(3, 3, 0.1, 0.1)
    high = high + [0.083, 0.094, 0.0021] if cells > 2 else 0.6 * high + [0.15, 0.02, 0.0021]
    matter = Matter(
        np.concatenate([low, high]),
        [Sheet(under), Sheet(over + len(low), young=2e5, thickness=2e-3, density=500.0, damping=0.01, bending=10.0)],
        fixed=range(len(low)),
        self_contact=SelfContact(2e-3, 200.0, 200.0 * time_step, friction),
    )
    return build(matter, time_step=time_step, gravity=gravity, **options)


def upper_velocity(model: DeformableModel, v: np.ndarray) -> np.ndarray:
    mass = model.physical["mass"].numpy()[0, -9:, None]
    return (mass * v[0, -9:]).sum(axis=0) / mass.sum()


def test_contact_force_is_the_weight():
    """Stiffness times the depth of all pairs, from the final state alone."""
    model = two_sheets(0.0, (0.0, 0.0, -9.81), cells=2, mass_damping=30.0)
    program = DeformableProgram(model, outputs=["solver_status"])
    x, v = final_state(program, 600, program.initial_state())
    x, v = final_state(program, 1, {"x": x, "v": v})  # leaves the pairs of this step
    assert np.abs(v[..., 2]).max() < 1e-9
    c = model.self_contacts
    count = int(c.pairs.numpy()[0])
    corner, share = c.corner.numpy()[0, :count], c.share.numpy()[0, :count]
    depth = 2e-3 - np.linalg.norm((share[..., None] * x[0][corner]).sum(axis=1), axis=1)
    weight = 9.81 * model.physical["mass"].numpy()[0, -9:].sum()
    assert 200.0 * depth[depth > 0.0].sum() == pytest.approx(weight, rel=1e-8)


@pytest.mark.parametrize("cells", [2, 6], ids=["one face", "faces"])
@pytest.mark.parametrize("toward", [0.0, 0.7], ids=["along", "across"])
@pytest.mark.parametrize("ratio", [0.99, 1.01])
def test_sheet_on_an_inclined_sheet_sticks_or_slips(ratio, toward, cells):
    """It slips where tan θ > μ, and then with g(sin θ − μ cos θ): above one face, and over the edges between many."""
    friction, steps, h = 0.4, 120, 0.005
    angle, along = np.arctan(friction * ratio), np.array([np.cos(toward), np.sin(toward), 0.0])
    pull = 9.81 * (np.sin(angle) * along - [0.0, 0.0, np.cos(angle)])
    model = two_sheets(friction, tuple(pull), h, cells=cells)
    program = DeformableProgram(model, outputs=["solver_status"])
    x, v = final_state(program, 120, program.initial_state())
    before = upper_velocity(model, v) @ along
    x, v = final_state(program, steps, {"x": x, "v": v})
    gained = (upper_velocity(model, v) @ along - before) / (steps * h)
    if ratio < 1.0:
        assert abs(gained) < 1e-4
        assert abs(before) < 1e-3
    else:
        assert gained == pytest.approx(np.hypot(*pull[:2]) + friction * pull[2], rel=0.01)


def support(model: DeformableModel, tape: CheckpointedTape, x: np.ndarray) -> np.ndarray:
    """(3,) Σ k·depth·n of all pairs at some places, n upward, N."""
    tape.forward({"x": x, "v": np.zeros_like(x)}, differentiate=False)
    c = model.self_contacts
    count = int(c.pairs.numpy()[0])
    corner, share = c.corner.numpy()[0, :count], c.share.numpy()[0, :count]
    normal, weight = c.normal.numpy()[0, :count], c.weight.numpy()[0, :count]
    normal = normal * np.sign(normal[:, 2:])
    depth = 2e-3 - np.linalg.norm((share[..., None] * x[0][corner]).sum(axis=1), axis=1)
    return 200.0 * ((weight * np.maximum(depth, 0.0))[:, None] * normal).sum(axis=0)


@pytest.mark.parametrize("toward", [(1.0, 0.0), (0.8, 0.6)])
def test_force_does_not_jump_where_features_slide_over_each_other(toward):
    """A sheet moved across another at a fixed depth: vertices and edges pass over edges, the force changes slowly."""
    model = two_sheets(0.0, (0.0, 0.0, 0.0), 1e-6)
    program = DeformableProgram(model)
    tape = CheckpointedTape(program, steps=1)
    x = program.initial_state()["x"]
    x[:, -9:, 2] = 1.9e-3
    forces = []
    for moved in np.arange(0.0, 0.06, 1e-4):
        at = x.copy()
        at[:, -9:, :2] += moved * np.array(toward)
        forces.append(support(model, tape, at))
    total = np.array(forces)
    upward = total[:, 2].mean()
    assert np.abs(np.diff(total[:, 2])).max() < 0.02 * upward
    assert np.ptp(total[:, 2]) > 0.1 * upward
    # points beside the sheet's border touch that, aslant
    assert np.abs(total[:, :2]).max() < 0.01 * upward


def folded(
    n: int, time_step: float = 0.005, ground: bool = True, radius: float = 0.03, friction: float = 0.4
) -> tuple[DeformableModel, dict[str, np.ndarray]]:
    """A cloth bent by half a turn about its middle, 6 cm above the ground."""
    points, triangles = grid_sheet(n, n, 0.4, 0.4)
    matter = Matter(
        points,
        [Sheet(triangles, young=5e4, thickness=1e-3, density=300.0, damping=0.01, bending=5.0)],
        obstacles=[Obstacle("plane", friction=0.4)] if ground else (),
        contact_stiffness=200.0,
        contact_damping=0.5,
        radius=2e-3,
        self_contact=SelfContact(4e-3, 500.0, 0.5, friction),
    )
    model = build(matter, time_step=time_step)
    along = points[:, 0] - 0.2
    bent, flat = np.abs(along) < 0.5 * np.pi * radius, np.abs(along) - 0.5 * np.pi * radius
    x = np.where(bent, radius * np.cos(along / radius), -flat)
    z = np.where(bent, radius * np.sin(along / radius), np.sign(along) * radius)
    start = np.stack([x, points[:, 1] + 0.1 * x, z + 0.06], axis=1)
    return model, {"x": start[None], "v": np.zeros((1, *start.shape))}


def check_fold(n: int, every: int) -> None:
    model, start = folded(n)
    program = DeformableProgram(model, outputs=["solver_status"])
    run = CheckpointedTape(program, steps=400).forward(start, keep_states=True, keep_outputs=True, differentiate=False)
    assert not run.outputs["solver_status"].numpy().any()
    features = model.features
    assert features is not None
    places = run.states["x"].numpy()[:, 0]
    assert sum(intersections(x, features.edge, features.face) for x in places[::every]) == 0
    moved = np.linalg.norm(places[-1] - places[-41], axis=1).max()
    assert moved < 2e-3
    upper = places[-1][model.points[:, 0] > 0.3, 2]
    assert 2e-3 + 3.5e-3 < upper.min() < 0.01


def test_folded_cloth_falls_on_itself_without_an_intersection():
    check_fold(8, 4)


@pytest.mark.long
def test_finer_folded_cloth_falls_on_itself_without_an_intersection():
    check_fold(14, 1)


def test_tangle_is_reported_and_named():
    """A cloth that starts with an edge through a face says so in every step."""
    points, triangles = grid_sheet(3, 3, 0.2, 0.2)
    piece = np.array([[0.05, 0.06, 0.05], [0.06, 0.05, -0.05], [0.3, 0.3, 0.0]])
    matter = Matter(
        np.concatenate([points, piece]), [Sheet(triangles), Sheet([[9, 10, 11]])], self_contact=SelfContact(1e-3)
    )
    model = build(matter, time_step=1e-3, gravity=(0.0, 0.0, 0.0))
    program = DeformableProgram(model, outputs=["solver_status"])
    run = CheckpointedTape(program, steps=2).forward(program.initial_state(), keep_outputs=True, differentiate=False)
    assert run.outputs["solver_status"].numpy().ravel().tolist() == [3, 3]
    assert "passes through" in STATUS_TEXT[3]
    assert intersections(model.points, model.features.edge, model.features.face) > 0


def test_crossing_cables_hold_each_other():
    """One is laid over another, which is held at both ends: only their edges meet."""
    line = np.linspace(-0.2, 0.2, 5)
    low = np.stack([line + 0.013, np.zeros(5), np.zeros(5)], axis=1)
    high = np.stack([np.zeros(6), np.linspace(-0.25, 0.25, 6), np.full(6, 0.0101)], axis=1)
    matter = Matter(
        np.concatenate([low, high]),
        [Curve(range(5), young=1e6, damping=0.02), Curve(range(5, 11), young=1e6, damping=0.02, bending=0.1)],
        fixed=[0, 4],
        self_contact=SelfContact(0.01, 1e3, 5.0, 0.6),
    )
    program = DeformableProgram(build(matter, time_step=0.005), outputs=["solver_status"])
    run = CheckpointedTape(program, steps=400).forward(program.initial_state(), keep_states=True, differentiate=False)
    x = run.states["x"].numpy()[:, 0]
    for at in x[100:]:
        below = np.interp(0.0, at[:5, 0], at[:5, 2])
        assert 0.009 < 0.5 * (at[7, 2] + at[8, 2]) - below < 0.0105


def test_impossible_law_is_refused():
    points, triangles = grid_sheet(2, 2)
    with pytest.raises(SceneError, match="self-contact: distance is 0"):
        build(Matter(points, [Sheet(triangles)], self_contact=SelfContact(0.0)))


class Slide:
    """A cloth folded loosely whose upper half falls on its lower one, differentiated over a few steps."""

    law = ("self.stiffness", "self.damping", "self.distance", "self.friction", "time_step", "gravity")
    material = (*(f"membrane.{n}" for n in ("young", "poisson", "thickness", "density", "damping")), "hinges.factor")

    def __init__(self, friction: float) -> None:
        self.model, start = folded(6, ground=False, radius=0.01, friction=friction)
        self.program = DeformableProgram(self.model, outputs=["solver_status"])
        upper = self.model.points[:, 0] > 0.25
        start["v"] = start["v"] + upper[:, None] * [0.1, 0.2, -1.0]
        x, v = final_state(self.program, 3, start)
        self.steps = 4
        self.values = {"x": x, "v": v, "rest": self.model.authored["rest"].numpy().copy()}
        self.values |= {name: self.model.physical[name].numpy().copy() for name in self.law}
        self.values |= {name: self.model.authored[name].numpy().copy() for name in self.material}
        self.tape = CheckpointedTape(self.program, steps=self.steps)
        self.one = CheckpointedTape(self.program, steps=1)
        self.seed = np.random.default_rng(3).standard_normal(x.shape)

    def set(self, values: dict[str, np.ndarray]) -> None:
        for name in ("rest", *self.law, *self.material):
            self.model.set(name, values[name])
        self.model.derive()

    def loss(self, values: dict[str, np.ndarray]) -> tuple[float, list[tuple[bytes, np.ndarray]]]:
        """And the zone of each pair of each step: which pairs, and above, within or below the cone."""
        self.set(values)
        state, zones = {name: values[name] for name in ("x", "v")}, []
        for _ in range(self.steps):
            run = self.one.forward(state, keep_states=True, differentiate=False)
            after = {name: run.states[name].numpy()[-1].copy() for name in ("x", "v")}
            zones.append(self.zones((after["v"] - state["v"]) / values["time_step"]))
            state = after
        return float(np.vdot(self.seed, state["x"])), zones

    def zones(self, a: np.ndarray) -> tuple[bytes, np.ndarray]:
        c = self.model.self_contacts
        count = int(c.pairs.numpy()[0])
        corner, share = c.corner.numpy()[0, :count], c.share.numpy()[0, :count]
        normal, bias = c.normal.numpy()[0, :count], c.bias.numpy()[0, :count]
        y = bias + (share[..., None] * a[0][corner]).sum(axis=1)
        yn = (normal * y).sum(axis=1)
        t = np.linalg.norm(y - yn[:, None] * normal, axis=1)
        mu = float(c.friction.numpy()[0])
        zone = np.where(yn >= mu * t, 0, np.where(-mu * yn >= STICKING * t, 2, 1))
        return corner.tobytes() + (share != 0.0).tobytes() + zone.tobytes(), zone

    def gradients(self, tape: CheckpointedTape) -> dict[str, np.ndarray]:
        self.set(self.values)
        run = tape.forward({name: self.values[name] for name in ("x", "v")})
        found = tape.backward(run, state_seeds={"x": {-1: self.seed}})
        out = {name: found.initial_state[name].numpy().copy() for name in ("x", "v")}
        out |= {name: self.model.physical[name].grad.numpy().copy() for name in self.law}
        authored = self.model.authored_gradients()
        return out | {name: authored[name] for name in ("rest", *self.material)}


@pytest.fixture(scope="module", params=["slides", "sticks"])
def slide(request) -> Slide:
    return Slide({"slides": 0.3, "sticks": 2.0}[request.param])


@pytest.fixture(scope="module")
def gradients(slide) -> dict[str, np.ndarray]:
    return slide.gradients(slide.tape)


def test_pairs_stick_or_slip(slide):
    """What the gradients below go through."""
    _, zones = slide.loss(slide.values)
    found = np.concatenate([zone for _, zone in zones])
    between, below = np.bincount(found, minlength=3)[1:]
    assert (below if float(slide.values["self.friction"][0]) > 1.0 else between) > 5


@pytest.mark.parametrize("name", ["x", "v", "rest", *Slide.law, *Slide.material])
def test_gradient_matches_differences_within_the_same_zones(slide, gradients, name):
    """ε is halved until every pair of every step is in the same zone at ±ε."""
    rng = np.random.default_rng(len(name))
    value = slide.values[name]
    share = 0.3 if name in ("self.damping", "self.stiffness", *Slide.material) else 1e-2
    scale = {"x": 1e-4, "rest": 1e-4}.get(name, share * np.abs(value).max())
    direction = scale * rng.standard_normal(value.shape)
    base = [listed for listed, _ in slide.loss(slide.values)[1]]
    for halvings in range(12):
        eps = 0.1 * 0.5**halvings
        ends = [slide.loss({**slide.values, name: value + k * eps * direction}) for k in (1.0, -1.0, 0.5, -0.5)]
        if all([listed for listed, _ in zones] == base for _, zones in ends):
            break
    else:
        pytest.fail(f"{name}: no ε keeps the zones")
    wide, narrow = (ends[0][0] - ends[1][0]) / (2 * eps), (ends[2][0] - ends[3][0]) / eps
    truth = narrow + (narrow - wide) / 3.0
    slide.set(slide.values)
    found = np.vdot(gradients[name], direction)
    size = max(abs(truth), 0.03 * np.linalg.norm(gradients[name]) * np.linalg.norm(direction))
    assert size > 0.0
    assert abs(found - truth) <= 1e-6 * size, (found, truth, wide, eps)


def test_schedules_give_the_same_bits(slide, gradients):
    for tape in (
        CheckpointedTape(slide.program, steps=slide.steps, memory=Memory(segment=3, schedule=AllStarts())),
        CheckpointedTape(slide.program, steps=slide.steps, capture=False),
    ):
        found = slide.gradients(tape)
        assert all(found[name].tobytes() == value.tobytes() for name, value in gradients.items())
