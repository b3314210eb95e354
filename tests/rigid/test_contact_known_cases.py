"""Contacts whose motion and gradient are known in closed form.

Impacts are resolved by a compliant contact over many steps. Its motion converges to the ideal impact's as contacts grow
shorter. So does its gradient, at first order in the step, if the force starts from zero at touch: an undamped contact,
or one whose impedance does (`solimp` from 0). Where the force jumps at touch, the gradient is exact for the steps
taken, but lacks what a change of the moment of touch within a step would do, and does not converge to the motion's.
"""

from __future__ import annotations

import numpy as np
import pytest

from contact_support import object_scene, solid
from finite_differences import directional_estimate
from flight_support import Flight, on_rails
from warpsim.scene import Options, Scene, Shape

GRAVITY = 9.81
RIGID = np.array([0.95, 0.95, 0.001, 0.5, 2.0])
"""An impedance that does not vary, so that a contact is a linear spring and damper."""


def sliding_block(h: float) -> Flight:
    """A block whose contact begins softly.

    Friction is viscous below the speed μ g tc/2, so the time constant is short; and the convex contact lifts what
    slides fast, which a contact that began at once would answer by hopping.
    """
    material = dict(
        friction=np.array([0.5, 0.0, 0.0]),
        solref=np.array([2.2 * h, 1.0]),
        solimp=np.array([0.0, 0.5, 0.001, 0.5, 2.0]),
    )
    block = Shape("block", "box", size=np.array([0.2, 0.2, 0.1]), position=np.array([0.0, 0.0, 0.1]), **material)
    scene = on_rails(block, "xz", Options(timestep=h, solver_tolerance=1e-13), Shape("floor", "plane", **material))
    return Flight(scene, round(1 / h), ("shape.friction",))


def test_sliding_block():
    """x = v₀²/2μg = 0.407747 m, ∂x/∂v₀ = 0.407747 s, ∂x/∂μ = −0.815494 m: within 0.5 %, errors of first order in h."""
    exact = np.array([0.407747, 0.407747, -0.815494])
    errors = []
    for h in (2e-3, 1e-3):
        result = sliding_block(h).gradient("q", 0, q=np.array([0.0, -1e-5]), qd=np.array([2.0, 0.0]))
        # the pair's friction is the larger of two equal ones, which share the derivative
        found = np.array([result.value, result.qd[0], result.parameters["shape.friction"][:, 0].sum()])
        errors.append(np.abs(found / exact - 1.0))
    assert (errors[1] < 0.005).all(), errors
    assert (errors[1] < 0.55 * errors[0]).all(), errors


def bouncer(ratio: float, duration: float, steps_per_contact: int) -> tuple[np.ndarray, float]:
    """solref of a spring and damper with damping ratio ζ, and the time step that resolves its contact."""
    omega = np.pi / duration
    return np.array([-omega * omega, -2.0 * ratio * omega]), duration / steps_per_contact


def ratio_of(restitution: float) -> float:
    """ζ with e = exp(−2β cot β), ζ = cos β (a contact that cannot pull), by bisection."""
    low, high = 1e-6, np.pi / 2
    for _ in range(100):
        beta = 0.5 * (low + high)
        low, high = (beta, high) if np.exp(-2.0 * beta / np.tan(beta)) < restitution else (low, beta)
    return float(np.cos(low))


def ball_on_floor(solref: np.ndarray, solimp: np.ndarray, options: Options) -> Scene:
    """A ball of radius 0.1 on a vertical rail; q is the height of its lowest point."""
    material = dict(condim=1, solref=solref, solimp=solimp)
    ball = Shape("ball", "sphere", size=np.array([0.1, 0.0, 0.0]), position=np.array([0.0, 0.0, 0.1]), **material)
    return on_rails(ball, "z", options, Shape("floor", "plane", **material))


def slopes(scene: Scene, steps: int, step: float, solrefs: tuple[np.ndarray, ...] = ()) -> np.ndarray:
    """z(T) from z₀ = 1 m, v₀ = 0.3 m/s, its differences by z₀ and v₀ over ± step, and between two solrefs if given."""
    flight = Flight(scene, steps, worlds=5 + len(solrefs))
    for w, solref in enumerate(solrefs, start=5):
        values = flight.model.authored["shape.solref"].numpy()
        values[w] = solref
        flight.model.set_parameter("shape.solref", values)
    flight.derivation.run()
    q, qd = np.ones((flight.model.worlds, 1)), np.full((flight.model.worlds, 1), 0.3)
    q[1:3, 0] += (step, -step)
    qd[3:5, 0] += (step, -step)
    z = flight.final(q, qd)[0][:, 0]
    return np.append(z[0], z[1::2] - z[2::2]) / np.append(1.0, np.full(len(z) // 2, 2.0 * step))


def test_bounce_converges_to_the_ideal_one():
    """e = 0.8, z₀ = 1 m, v₀ = 0.3 m/s, T = 0.7 s: z(T) and its slopes by z₀, v₀ and e."""
    exact = np.array([0.53954, 0.06254042, -0.143273, 0.96277447])
    step, errors = 0.02, []
    for duration in (16e-3, 8e-3):
        solref, h = bouncer(ratio_of(0.8), duration, 200)
        solrefs = tuple(bouncer(ratio_of(0.8 + change), duration, 200)[0] for change in (step, -step))
        scene = ball_on_floor(solref, RIGID, Options(timestep=h, solver_tolerance=1e-13))
        errors.append(slopes(scene, round(0.7 / h), step, solrefs) - exact)
    assert (np.abs(errors[1]) < 0.7 * np.abs(errors[0]) + 2e-3).all(), errors
    assert np.abs(errors[1]).max() < 0.02, errors


def test_gradient_of_a_bounce_with_loss_converges():
    """A contact whose impedance rises from zero: the adjoint tends to the motion's slope over many steps' travel."""
    errors = []
    for h in (1e-3, 2.5e-4):
        omega = np.pi / 0.1
        solref, solimp = np.array([-omega * omega, -0.2 * omega]), np.array([0.0, 0.95, 0.05, 0.5, 2.0])
        scene = ball_on_floor(solref, solimp, Options(timestep=h, solver_tolerance=1e-13))
        result = Flight(scene, round(0.7 / h)).gradient("q", 0, q=np.array([1.0]), qd=np.array([0.3]))
        errors.append(np.array([result.q[0], result.qd[0]]) / slopes(scene, round(0.7 / h), 0.01)[1:] - 1.0)
    assert np.abs(errors[0]).max() < 0.06, errors
    assert np.abs(errors[1]).max() < 0.02, errors


def test_elastic_wall():
    """x₀ = 1, v₀ = −1, T = 2: the end moves against the start, slope −1, where a step that merely flips gives +1."""
    duration, errors = 0.1, []
    for steps_per_contact in (500, 1000):
        solref, h = bouncer(0.0, duration, steps_per_contact)
        options = Options(timestep=h, gravity=np.zeros(3), solver_tolerance=1e-13)
        flight = Flight(ball_on_floor(solref, RIGID, options), round(2 / h))
        result = flight.gradient("q", 0, q=np.array([1.0]), qd=np.array([-1.0]))
        # the time in the contact passes without moving the ball on
        errors.append(np.array([result.value - 1.0, result.qd[0] + 2.0]) + (duration, -duration))
        errors[-1] = np.append(errors[-1], result.q[0] + 1.0)
    assert np.abs(errors[0]).max() < 0.2, errors
    assert np.abs(errors[1]).max() < 0.1, errors


def balls(y: float, duration: float, steps_per_contact: int) -> Scene:
    """Two balls of radius 0.1, the first 0.205 before the second, free and without friction or gravity."""
    solref, h = bouncer(0.0, duration, steps_per_contact)
    scene = object_scene(
        solid("sphere", (0.1,), (0.0, 0.0, 5.0)),
        solid("sphere", (0.1,), (0.205, 0.0, 5.0)),
        options=Options(timestep=h, gravity=np.zeros(3), solver_tolerance=1e-13),
        condim=1,
        solref=solref,
        solimp=RIGID,
    )
    scene.bodies[1].position[1] = y
    return scene


def test_equal_balls_swap_velocities():
    scene = balls(0.0, 4e-3, 40)
    flight = Flight(scene, 200)
    qd = np.zeros(12)
    qd[0] = 1.0
    jacobian = np.array([flight.gradient("qd", i, qd=qd).qd[[0, 6]] for i in (0, 6)])
    assert np.abs(jacobian - [[0.0, 1.0], [1.0, 0.0]]).max() < 5e-3, jacobian
    _, final = flight.final(qd=qd)
    assert np.abs(final[0, [0, 6]] - [0.0, 1.0]).max() < 5e-3


def test_glancing_balls_turn_with_their_normal():
    """A ball (r = 0.1) hit off-axis by y leaves along the line of centers, dθ/dy = 1/2r; a frozen normal gives 0."""
    flight = Flight(balls(0.0, 4e-4, 40), 900)
    qd = np.zeros(12)
    qd[0] = 1.0
    result = flight.gradient("qd", 7, qd=qd)
    assert result.q[8] - result.q[1] == pytest.approx(10.0, rel=0.01)  # both balls' places move the line of centers
    assert result.q[8] == pytest.approx(5.0, rel=0.01)


def test_block_below_the_friction_angle_stays():
    """20° against atan 0.5 = 26.6°: creeps less than 1 µm in 10 s.

    A soft contact creeps at g sin θ (1 − d)/(d b impratio); these settings leave 17 nm/s. The plane is level and
    gravity tilts, which is the same.
    """
    angle = np.radians(20.0)
    material = dict(friction=np.array([0.5, 0.0, 0.0]), solref=np.array([0.01, 1.0]), solimp=np.full(5, 0.999))
    material["solimp"][2:] = (0.001, 0.5, 2.0)
    options = Options(
        gravity=GRAVITY * np.array([np.sin(angle), 0.0, -np.cos(angle)]), impratio=1000.0, solver_tolerance=1e-13
    )
    scene = object_scene(solid("box", (0.2, 0.15, 0.1), (0.0, 0.0, 0.1)), options=options, **material)
    settled = Flight(scene, 500).final()
    moved = Flight(scene, 5000).final(settled[0][0], settled[1][0])[0]
    assert np.abs(moved[0, :3] - settled[0][0, :3]).max() < 1e-6, moved[0, :3] - settled[0][0, :3]


def test_tumbling_cube():
    """How far a thrown and spinning cube gets, against central differences whose own error is known."""
    scene = object_scene(
        solid("box", (0.1, 0.1, 0.1), (0.0, 0.0, 0.3), (0.2, 0.3, 0.1)),
        options=Options(timestep=1e-3, solver_tolerance=1e-13, cone="elliptic"),
        friction=np.array([0.6, 0.0, 0.0]),
        solref=np.array([0.02, 0.5]),
    )
    qd = np.array([2.0, 0.3, 1.0, 3.0, 6.0, -2.0])
    steps, cases = 600, (1e-6, 1e-7, 1e-8)
    result = Flight(scene, steps).gradient("q", 0, qd=qd)
    rng = np.random.default_rng(2)
    way = rng.normal(size=6)
    probes = [sign * h for h in cases for sign in (1.0, -1.0)]
    final, _ = Flight(scene, steps, worlds=len(probes)).final(qd=np.array([qd + p * way for p in probes]))
    table = dict(zip(probes, final[:, 0], strict=True))
    estimate = directional_estimate(lambda t: table[float(t)], 0.0, 1.0, cases)
    assert estimate.error < 1e-3 * abs(estimate.value)
    assert result.qd @ way == pytest.approx(float(estimate.value), rel=1e-3)
