"""Laws the motion must obey: energy and momentum, orders of the integrators, and two cases solved by hand."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from finite_differences import directional_estimate
from rigid_support import INTEGRATORS, Rollout, evaluation, initial_state
from warpsim.rigid import query
from warpsim.rigid.step.program import RigidProgram
from warpsim.scene import Body, Joint, Options, Scene
from warpsim.tape.checkpointed import CheckpointedTape
from warpsim.tape.memory import Memory

ORDERS = {"euler": 1, "implicitfast": 1, "rk4": 4}


def turned(rng: np.random.Generator) -> np.ndarray:
    q = rng.normal(size=4)
    return q / np.linalg.norm(q)


def body(name: str, parent: str | None, rng: np.random.Generator) -> Body:
    edges = rng.uniform(0.1, 0.5, 3) ** 2
    mass = rng.uniform(0.5, 2.0)
    return Body(
        name,
        parent,
        position=rng.uniform(-0.4, 0.4, 3),
        rotation=turned(rng),
        mass=mass,
        com=rng.uniform(-0.2, 0.2, 3),
        inertia=np.diag(mass / 12.0 * (edges.sum() - edges)),
    )


def tree(root: str, integrator: str, timestep: float, *, gravity: float, stiffness: float = 0.0) -> Scene:
    """Five bodies: a root joint of the given kind, then a hinge, a ball and a slide, and a second branch."""
    rng = np.random.default_rng(7)
    parents = {"a": None, "b": "a", "c": "b", "d": "c", "e": "a"}
    kinds = {"a": root, "b": "hinge", "c": "ball", "d": "slide", "e": "hinge"}
    axes = {name: axis / np.linalg.norm(axis) for name, axis in zip(parents, rng.normal(size=(5, 3)), strict=True)}
    return Scene(
        bodies=[body(name, parent, rng) for name, parent in parents.items()],
        joints=[
            Joint(
                name,
                kinds[name],
                name,
                anchor=rng.uniform(-0.2, 0.2, 3),
                axis=axes[name],
                stiffness=0.0 if name == "a" else stiffness,
                armature=0.0,
            )
            for name in parents
        ],
        options=Options(
            gravity=np.array([0.0, 0.0, -gravity]), timestep=timestep, integrator=integrator, constraints=False
        ),
    )


def start_of(model, seed: int) -> dict[str, np.ndarray]:
    """The reference configuration at a random velocity."""
    qd = np.random.default_rng(seed).normal(size=model.nv)
    return initial_state(model, model.initial_q, qd, np.zeros(0))


def run_to(scene: Scene, duration: float, seed: int = 3):
    """Model and all states of a passive rollout."""
    model = evaluation(scene, {}).model
    steps = round(duration / scene.options.timestep)
    tape = CheckpointedTape(RigidProgram(model, controls=[]), steps=steps, memory=Memory(segment=5))
    run = tape.forward(start_of(model, seed), keep_states=True, differentiate=False)
    return model, run.states["q"].numpy()[:, 0], run.states["qd"].numpy()[:, 0]


def energy(model, q: np.ndarray, qd: np.ndarray) -> float:
    state = query.make_state(model, {"q": q, "qd": qd})
    return float((query.kinetic_energy(model, state).numpy() + query.potential_energy(model, state).numpy())[0])


def momentum(model, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    """(6,) linear, then angular about the center of mass."""
    found = query.momentum(model, query.make_state(model, {"q": q, "qd": qd}))
    return np.concatenate([found.linear.numpy()[0], found.angular.numpy()[0]])


def orders(errors: list[float]) -> np.ndarray:
    """Observed order between step sizes that halve."""
    return np.log2(np.array(errors[:-1]) / np.array(errors[1:]))


def halved(integrator: str) -> list[float]:
    first = 0.004 if ORDERS[integrator] == 1 else 0.02
    return [first / 2**k for k in range(4)]


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("root", ["hinge", "ball", "free"])
def test_energy_drift_falls_with_the_integrators_order(root, integrator):
    drifts = []
    for timestep in halved(integrator):
        model, q, qd = run_to(tree(root, integrator, timestep, gravity=9.81, stiffness=2.0), 0.4)
        drifts.append(abs(energy(model, q[-1], qd[-1]) - energy(model, q[0], qd[0])))
    # The last pair is the closest to the limit.
    assert abs(orders(drifts)[-1] - ORDERS[integrator]) < 0.15, (drifts, orders(drifts))


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_momentum_drift_falls_with_the_integrators_order(integrator):
    drifts = []
    for timestep in halved(integrator):
        model, q, qd = run_to(tree("free", integrator, timestep, gravity=0.0, stiffness=2.0), 0.4)
        change = momentum(model, q[-1], qd[-1]) - momentum(model, q[0], qd[0])
        drifts.append([np.linalg.norm(change[:3]), np.linalg.norm(change[3:])])
    for kind in np.array(drifts).T:
        assert abs(orders(list(kind))[-1] - ORDERS[integrator]) < 0.15, (drifts, orders(list(kind)))


def test_momentum_does_not_change_at_any_instant():
    """d(momentum)/dt along the exact tangent (qd, qdd) of a floating tree in the void."""
    scene = tree("free", "rk4", 0.001, gravity=0.0, stiffness=2.0)  # whose accelerations hold no integrator terms
    oracle = mujoco.MjModel.from_xml_string(_CHART)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        e = evaluation(scene, {})
        q = e.model.initial_q.copy()
        for first in (3, 8):  # the free joint's and the ball's quaternion
            q[first : first + 4] = turned(rng)
        qd = rng.normal(size=e.model.nv)
        e = evaluation(scene, {"q": q, "qd": qd})
        qdd = e.forward().qdd.numpy()[0]

        def moved(t, q=q, qd=qd, qdd=qdd, model=e.model):
            there = q.copy()
            mujoco.mj_integratePos(oracle, there, qd, float(t))
            return momentum(model, there, qd + t * qdd)

        rate = directional_estimate(moved, 0.0, 1.0)
        mass = query.mass_matrix(e.model, e.state).numpy()[0]
        scale = np.abs(mass @ qdd).max()
        assert np.abs(rate.value).max() / scale < 1e-10, (rate, scale)


_CHART = """<mujoco><worldbody><body><freejoint/><geom size=".1"/>
  <body><joint/><geom size=".1"/><body><joint type="ball"/><geom size=".1"/>
    <body><joint type="slide"/><geom size=".1"/></body></body></body>
  <body><joint/><geom size=".1"/></body>
</body></worldbody></mujoco>"""
"""The coordinates of `tree`, for MuJoCo's motion on the manifold."""


def point_mass(gravity: float, timestep: float) -> Scene:
    """A mass that slides along x and z."""
    axes = {"x": np.array([1.0, 0.0, 0.0]), "z": np.array([0.0, 0.0, 1.0])}
    return Scene(
        bodies=[Body("m", mass=1.0, com=np.zeros(3), inertia=0.1 * np.eye(3))],
        joints=[Joint(name, "slide", "m", axis=axis) for name, axis in axes.items()],
        options=Options(gravity=np.array([0.0, 0.0, -gravity]), timestep=timestep, constraints=False),
    )


def test_gradient_of_a_projectile():
    """∂(½(x_T − 6)²)/∂v₀ = (x_T − 6)·T·dt = 4.5 and 0, whatever falls."""
    rollout = Rollout(point_mass(9.81, 0.01), 300, ())
    inputs = {"q": np.zeros((1, 2)), "qd": np.array([[2.5, 1.0]])}
    final = rollout.final(inputs)["q"][0, 0]
    rollout.weights = {"q": np.zeros((301, 1, 2)), "qd": np.zeros((301, 1, 2))}
    rollout.weights["q"][-1, 0, 0] = final - 6.0
    np.testing.assert_allclose(rollout.gradient(inputs)["qd"], [[4.5, 0.0]], rtol=1e-12, atol=1e-12)


def test_gradient_of_a_fall():
    """(z − 50)² after 100 semi-implicit steps from v₀ = 10: z = 10 − 9.81·0.01²·100·101/2."""
    rollout = Rollout(point_mass(9.81, 0.01), 100, ())
    inputs = {"q": np.zeros((1, 2)), "qd": np.array([[0.0, 10.0]])}
    final = rollout.final(inputs)["q"][0, 1]
    assert final == pytest.approx(10.0 - 9.81 * 0.505, rel=1e-13)
    rollout.weights = {"q": np.zeros((101, 1, 2)), "qd": np.zeros((101, 1, 2))}
    rollout.weights["q"][-1, 0, 1] = 2.0 * (final - 50.0)
    assert rollout.gradient(inputs)["qd"][0, 1] == pytest.approx(-89.9081, abs=1e-10)
