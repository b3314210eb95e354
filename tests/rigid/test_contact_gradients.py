"""Gradients through contact against central differences: state, controls, every parameter and losses on contact forces.

Differences at a mode switch (a contact about to open, a cone about to slip) say nothing. They are left out where
estimates at several steps disagree with each other, whatever the adjoint says, and counted.
"""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from contact_support import Comparison, ContactRollout, converging, object_scene, solid, touching_states
from finite_differences import relative_error
from rigid_support import INTEGRATORS, ROBOTS, scene_of
from warpsim.rigid.compile.compile import compile_model
from warpsim.rigid.step.program import RigidProgram
from warpsim.scene import Options, Scene
from warpsim.tape.arena import measure

ONE_STEP, MANY_STEPS = 1e-6, 1e-4
LONG = 50
SMALL_STEPS = (1e-4, 1e-5, 1e-6, 1e-7)
"""For many steps, over which larger ones are sure to change some contact."""
CONES = ("elliptic", "pyramidal")
WALKERS = [path for path in ROBOTS if path.stem in ("ant", "hopper")]
MATERIAL = dict(
    condim=6,
    friction=np.array([0.5, 0.02, 0.01]),
    solref=np.array([0.015, 0.9]),
    solimp=np.array([0.8, 0.96, 0.003, 0.4, 2.5]),
)
FLOOR = dict(friction=np.array([0.4, 0.015, 0.008]), solref=np.array([0.02, 1.0]), solmix=2.0)


def options(cone: str, integrator: str) -> Options:
    return Options(
        cone=cone, integrator=integrator, impratio=2.0, solver_tolerance=1e-14, solver_iterations=200, max_contacts=40
    )


def on_the_floor(cone: str, integrator: str) -> Scene:
    """One of each shape, tilted, a few millimeters deep."""
    return object_scene(
        solid("sphere", (0.1,), (0.0, 0.0, 0.098)),
        solid("capsule", (0.06, 0.1), (0.6, 0.0, 0.066), (0.3, 1.5, 0.2)),
        solid("box", (0.1, 0.2, 0.15), (0.0, 0.7, 0.148), (0.01, 0.008, 0.3)),
        solid("ellipsoid", (0.1, 0.15, 0.12), (-0.6, 0.0, 0.116), (0.1, 0.2, 0.3)),
        solid("cylinder", (0.1, 0.12), (0.0, -0.7, 0.12), (0.02, 0.01, 0.1)),
        options=options(cone, integrator),
        floor=FLOOR,
        **MATERIAL,
    )


def on_each_other(cone: str, integrator: str) -> Scene:
    """Five pairs, the upper one pressed a few millimeters into the lower."""
    return object_scene(
        solid("box", (0.2, 0.2, 0.1), (0.0, 0.0, 0.099), (0.01, 0.004, 0.1)),
        solid("sphere", (0.1,), (0.03, 0.02, 0.298)),
        solid("capsule", (0.1, 0.2), (1.0, 0.0, 0.099), (0.0, 1.6, 0.0)),
        solid("capsule", (0.08, 0.2), (1.0, 0.02, 0.277), (1.5, 0.3, 0.1)),
        solid("cylinder", (0.15, 0.1), (0.0, 1.0, 0.099), (0.01, 0.02, 0.0)),
        solid("ellipsoid", (0.1, 0.12, 0.08), (0.01, 1.02, 0.276), (0.2, 0.1, 0.0)),
        solid("box", (0.2, 0.2, 0.1), (0.0, -1.0, 0.099), (0.004, 0.01, 0.2)),
        solid("box", (0.1, 0.1, 0.1), (0.05, -1.02, 0.298), (0.01, 0.005, 0.5)),
        options=options(cone, integrator),
        floor=FLOOR,
        **MATERIAL,
    )


SCENES = {"floor": on_the_floor, "each other": on_each_other}


def moving(scene: Scene, steps: int, outputs: tuple[str, ...] = (), seed: int = 0) -> ContactRollout:
    rollout = ContactRollout(scene, steps, ("joint_force",), outputs, seed)
    rng = np.random.default_rng([seed, 3])
    rollout.base["qd"] = 0.3 * rng.normal(size=rollout.base["qd"].shape)
    return rollout


def assert_agree(found: list[Comparison], tolerance: float) -> None:
    kept = [c for c in found if not c.switching(tolerance)]
    assert len(found) - len(kept) <= 0.1 * len(found), [c for c in found if c.switching(tolerance)]
    wrong = [c for c in kept if not c.deviation < tolerance]
    assert not wrong, wrong


@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize(("cone", "integrator"), [("elliptic", "euler"), ("pyramidal", "implicitfast")])
def test_one_step(scene, cone, integrator):
    assert_agree(moving(SCENES[scene](cone, integrator), 1).compare(), ONE_STEP)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_one_step_of_all_kinds(scene, cone, integrator, seed):
    assert_agree(moving(SCENES[scene](cone, integrator), 1, seed=seed).compare(), ONE_STEP)


def test_many_steps():
    assert_agree(moving(on_the_floor("elliptic", "euler"), LONG).compare(SMALL_STEPS), MANY_STEPS)


@pytest.mark.long
@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_many_steps_of_all_kinds(scene, cone, integrator):
    assert_agree(moving(SCENES[scene](cone, integrator), LONG).compare(SMALL_STEPS), MANY_STEPS)


def walker(path, cone: str, integrator: str, steps: int) -> ContactRollout:
    """A robot on the ground. Time constants move off twice the step, where `limit_timeconst` has its kink."""
    model = converging(mujoco.MjModel.from_xml_path(str(path)), cone)
    q, qd, _, _ = touching_states(model, 1, 0)[0]
    scene = scene_of(model)
    scene.options.integrator, scene.options.solver_tolerance, scene.options.max_contacts = integrator, 1e-14, 40
    for shape in scene.shapes:
        shape.solref = np.array([0.03, 0.9])
        shape.friction = shape.friction * (1.0 if shape.body is None else 1.1)
    for joint in scene.joints:
        joint.limit_solref = np.array([0.03, 0.9])
    rollout = ContactRollout(scene, steps, ("actuator",))
    rollout.base.update(q=q, qd=qd)
    return rollout


@pytest.mark.parametrize("path", WALKERS, ids=lambda path: path.stem)
def test_walkers_one_step(path):
    assert_agree(walker(path, "elliptic", "euler", 1).compare(), ONE_STEP)


@pytest.mark.long
@pytest.mark.parametrize("steps", [1, LONG])
@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("path", WALKERS, ids=lambda path: path.stem)
def test_walkers(path, cone, integrator, steps):
    rollout = walker(path, cone, integrator, steps)
    if steps == 1:
        assert_agree(rollout.compare(), ONE_STEP)
    else:
        assert_agree(rollout.compare(SMALL_STEPS), MANY_STEPS)


@pytest.mark.parametrize("cone", CONES)
def test_a_loss_on_contact_forces(cone):
    assert_agree(moving(on_the_floor(cone, "euler"), 3, ("contact_force",)).compare(), ONE_STEP)


def test_memory_of_the_backward_pass_does_not_depend_on_the_iterations_allowed():
    sizes = []
    for iterations in (20, 200):
        scene = on_the_floor("elliptic", "euler")
        scene.options.solver_iterations, scene.options.solver_stop = iterations, "authored"
        sizes.append(measure(RigidProgram(compile_model(scene), controls=())))
    assert sizes[0] == sizes[1]


def test_gradients_do_not_depend_on_the_iterations_allowed():
    found = []
    for iterations in (20, 50, 200):
        scene = on_the_floor("elliptic", "euler")
        scene.options.solver_iterations, scene.options.solver_stop = iterations, "authored"
        found.append(moving(scene, 5).gradient())
    for other in found[1:]:
        for name, value in found[0].items():
            assert relative_error(other[name], value) < 1e-8, name
