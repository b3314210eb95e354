"""The cases. Each builds its scene, rolls it out through the public `Simulator` and differentiates with torch."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from warpsim.check.panel import closed_forms, naive
from warpsim.check.panel.table import Case
from warpsim.scene import Body, Joint, Options, Scene, Shape
from warpsim.sim.simulator import Simulator
from warpsim.tape.revolve import advances

_AXES = {"x": (1.0, 0.0, 0.0), "z": (0.0, 0.0, 1.0)}
_NONE = np.zeros(3)
_TUMBLE = (0.5, 0.2, 0.5, 2.0, 0.6)
_TUMBLE_TIME, _HALF = 0.38, 0.1
_BOUNCE, _BOUNCE_TIME = (1.0, 0.3, 0.8), 0.7


def _scene(options: Options, *shapes: Shape) -> Scene:
    options.solver_tolerance = 1e-13
    return Scene(shapes=list(shapes), options=options)


def _add(scene: Scene, shape: Shape, axes: str) -> None:
    """A body with one shape, free to move along some axes ("y" at the end: and to turn about y)."""
    name = shape.name
    scene.bodies.append(Body(name))
    for axis in axes.replace("y", ""):
        scene.joints.append(Joint(f"{name} {axis}", "slide", name, axis=np.array(_AXES[axis])))
    if "y" in axes:
        scene.joints.append(Joint(f"{name} turn", "hinge", name, axis=np.array([0.0, 1.0, 0.0])))
    shape.body = name
    scene.shapes.append(shape)


def _ball(name: str = "ball", height: float = 0.0, **material: Any) -> Shape:
    return Shape(name, "sphere", size=np.array([0.1, 0.0, 0.0]), position=np.array([0.0, 0.0, height]), **material)


def _pull(sim: Simulator, value: torch.Tensor, leaves: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    return [g.reshape(-1) for g in torch.autograd.grad(value, list(leaves))]


def _leaf(sim: Simulator, *values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=sim.torch_dtype, requires_grad=True)


def projectile() -> list[float]:
    """½ (x_T − 6)² after 300 steps of 0.01 s, by the initial velocity."""
    scene = _scene(Options(timestep=0.01, gravity=np.array([0.0, 0.0, -9.81])))
    _add(scene, _ball(collides=False), "xz")
    sim = Simulator(scene)
    v = _leaf(sim, 2.5, 1.0)
    loss = 0.5 * (sim.rollout(300, qd=v).q[-1, 0, 0] - 6.0).square()
    return _pull(sim, loss, [v])[0].tolist()


def fall() -> list[float]:
    """(x − 50)² after 100 steps of a body thrown up at 10 m/s."""
    scene = _scene(Options(timestep=0.01))
    _add(scene, _ball(collides=False), "z")
    sim = Simulator(scene)
    v = _leaf(sim, 10.0)
    return _pull(sim, (sim.rollout(100, qd=v).q[-1, 0, 0] - 50.0).square(), [v])[0].tolist()


def elastic_wall() -> list[float]:
    """Final place of a ball that an elastic wall throws back, by where it starts and how fast."""
    material: dict[str, Any] = dict(condim=1, restitution=1.0)
    scene = _scene(Options(timestep=2e-3, gravity=_NONE, impacts=True), Shape("wall", "plane", **material))
    _add(scene, _ball(height=0.1, **material), "z")
    sim = Simulator(scene)
    q, v = _leaf(sim, 1.0), _leaf(sim, -1.0)
    return torch.cat(_pull(sim, sim.rollout(1000, q=q, qd=v).q[-1, 0, 0], [q, v])).tolist()


def bounce() -> list[float]:
    """Height after one bounce, by initial height, initial speed and restitution."""
    material: dict[str, Any] = dict(condim=1, restitution=_BOUNCE[2])
    scene = _scene(Options(timestep=2e-4, impacts=True), Shape("floor", "plane", **material))
    _add(scene, _ball(height=0.1, **material), "z")
    sim = Simulator(scene)
    q, v = _leaf(sim, _BOUNCE[0]), _leaf(sim, _BOUNCE[1])
    e = sim.parameter("shape.restitution")[0].requires_grad_()
    made = sim.rollout(round(_BOUNCE_TIME / 2e-4), q=q, qd=v, parameters={"shape.restitution": e})
    found = _pull(sim, made.q[-1, 0, 0], [q, v, e])
    return [float(g.sum()) for g in found]  # both shapes have the restitution: its derivative is the sum


def billiard() -> list[float]:
    """Place of the first of two equal elastic balls, by both places and both velocities."""
    scene = _scene(Options(timestep=1e-3, gravity=_NONE, impacts=True))
    for name in ("a", "b"):
        _add(scene, _ball(name, condim=1, restitution=1.0), "x")
    sim = Simulator(scene)
    q, v = _leaf(sim, 0.0, 0.205), _leaf(sim, 1.0, 0.0)
    return torch.cat(_pull(sim, sim.rollout(20, q=q, qd=v).q[-1, 0, 0], [q, v])).tolist()


def velocity_swap() -> list[float]:
    """Velocities of two equal elastic balls after they met, by those before: 0, 1; 1, 0."""
    scene = _scene(Options(timestep=1e-3, gravity=_NONE, impacts=True))
    for name in ("a", "b"):
        _add(scene, _ball(name, condim=1, restitution=1.0), "x")
    sim = Simulator(scene)
    v = _leaf(sim, 1.0, 0.0)
    end = sim.rollout(20, q=torch.tensor([0.0, 0.205], dtype=sim.torch_dtype), qd=v).qd[-1, 0]
    rows = [torch.autograd.grad(end[i], v, retain_graph=True)[0] for i in range(2)]
    return torch.cat(rows).tolist()


def glancing() -> list[float]:
    """Direction of the struck ball by the offset of the blow: 1/2r = 5 rad/m for balls of radius 0.1."""
    scene = _scene(Options(timestep=1e-3, gravity=_NONE, impacts=True))
    for name in ("a", "b"):
        _add(scene, _ball(name, condim=1, restitution=1.0), "xz")
    sim = Simulator(scene)
    q = _leaf(sim, 0.0, 0.0, 0.205, 0.0)
    end = sim.rollout(20, q=q, qd=torch.tensor([1.0, 0.0, 0.0, 0.0], dtype=sim.torch_dtype)).qd[-1, 0]
    return [float(_pull(sim, torch.atan2(end[3], end[2]), [q])[0][3])]


def sliding_block() -> list[float]:
    """Way of a block that friction brings to rest, by its speed and by μ; μ is shared by block and floor."""
    h = 5e-4
    material: dict[str, Any] = dict(
        friction=np.array([0.5, 0.0, 0.0]), solref=np.array([2.2 * h, 1.0]), solimp=np.array([0.0, 0.5, 1e-3, 0.5, 2.0])
    )
    scene = _scene(Options(timestep=h), Shape("floor", "plane", **material))
    half = np.array([0.2, 0.2, 0.1])
    _add(scene, Shape("block", "box", size=half, position=np.array([0.0, 0.0, 0.1]), **material), "xz")
    sim = Simulator(scene)
    v, mu = _leaf(sim, 2.0, 0.0), sim.parameter("shape.friction")[0].requires_grad_()
    start = torch.tensor([0.0, -1e-5], dtype=sim.torch_dtype)
    made = sim.rollout(round(1 / h), q=start, qd=v, parameters={"shape.friction": mu})
    by_speed, by_friction = torch.autograd.grad(made.q[-1, 0, 0], [v, mu])
    return [float(by_speed[0]), float(by_friction[:, 0].sum())]


def tumbling_cube() -> list[float]:
    """Height of a turning frictionless cube after one edge struck the floor, by height, speed, angle, spin and e."""
    h, (z, v, angle, spin, e) = 2e-4, _TUMBLE
    material: dict[str, Any] = dict(condim=1, restitution=e)
    scene = _scene(Options(timestep=h, impacts=True), Shape("floor", "plane", **material))
    _add(scene, Shape("cube", "box", size=np.full(3, _HALF), **material), "zy")
    sim = Simulator(scene)
    q, qd = _leaf(sim, z, angle), _leaf(sim, v, spin)
    bounce = sim.parameter("shape.restitution")[0].requires_grad_()
    made = sim.rollout(round(_TUMBLE_TIME / h), q=q, qd=qd, parameters={"shape.restitution": bounce})
    by_q, by_qd, by_e = torch.autograd.grad(made.q[-1, 0, 0], [q, qd, bounce])
    return [float(by_q[0]), float(by_qd[0]), float(by_q[1]), float(by_qd[1]), float(by_e.sum())]


def checkpoints() -> list[float]:
    """Evaluations per step of binomial checkpointing: 100,000 steps with 100 snapshots, 10,000 with 10."""
    return [(advances(n, c) + n) / n for n, c in ((100_000, 100), (10_000, 10))]


_tumble = partial(closed_forms.cube_height, time=_TUMBLE_TIME, half=_HALF)
_fall_back = partial(closed_forms.bounce_height, time=_BOUNCE_TIME)

CASES = (
    Case("projectile", ("∂L/∂vx", "∂L/∂vz"), (4.5, 0.0), projectile, None, 1e-12),
    Case("fall", ("∂L/∂v",), (-89.9081,), fall, None, 1e-6),
    Case(
        "elastic wall",
        ("∂x/∂x₀", "∂x/∂v₀"),
        (-1.0, -2.0),
        elastic_wall,
        lambda: naive.gradient(partial(naive.bounce, h=2e-3, time=2.0, gravity=0.0), [1.0, -1.0, 1.0])[:2],
        1e-5,
    ),
    Case(
        "billiard, places",
        ("∂x₁/∂x₁⁰", "∂x₁/∂x₂⁰", "∂x₁/∂v₁", "∂x₁/∂v₂"),
        (0.0, 1.0, 0.0, 0.02),
        billiard,
        lambda: naive.gradient(partial(naive.billiard, h=1e-3, time=0.02, radius=0.1), [0.0, 0.205, 1.0, 0.0]),
        1e-4,
    ),
    Case(
        "billiard, velocities",
        ("∂v₁/∂v₁⁰", "∂v₁/∂v₂⁰", "∂v₂/∂v₁⁰", "∂v₂/∂v₂⁰"),
        (0.0, 1.0, 1.0, 0.0),
        velocity_swap,
        None,
        1e-4,
    ),
    Case("glancing balls", ("∂θ/∂y",), (5.0,), glancing, lambda: [0.0], 2e-3),
    Case(
        "bounce",
        ("∂z/∂z₀", "∂z/∂v₀", "∂z/∂e"),
        tuple(closed_forms.slopes(_fall_back, list(_BOUNCE))),
        bounce,
        lambda: naive.gradient(partial(naive.bounce, h=1e-3, time=_BOUNCE_TIME, gravity=9.81), list(_BOUNCE)),
        5e-3,
    ),
    Case(
        "sliding block",
        ("∂x/∂v₀", "∂x/∂μ"),
        (0.407747, -0.815494),
        sliding_block,
        lambda: naive.gradient(partial(naive.sliding_block, h=1e-3, time=1.0), [2.0, 0.5]),
        5e-3,
    ),
    Case(
        "tumbling cube",
        ("∂z/∂z₀", "∂z/∂v₀", "∂z/∂θ₀", "∂z/∂ω₀", "∂z/∂e"),
        tuple(closed_forms.slopes(_tumble, list(_TUMBLE))),
        tumbling_cube,
        lambda: naive.gradient(partial(naive.cube, h=1e-3, time=_TUMBLE_TIME, half=_HALF), list(_TUMBLE)),
        5e-3,
    ),
    Case("checkpointing", ("N=100,000, S=100", "N=10,000, S=10"), (3.947, 6.76), checkpoints, None, 1e-3),
)
"""In the order in which they are shown. Naive autodiff of the glancing balls keeps its normal: 0."""
