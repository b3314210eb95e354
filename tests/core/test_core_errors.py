"""Bad input is refused with the name of what is wrong; a rollout that blows up says where."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import warp as wp

from core_scenes import rich_scene, rich_state
from rigid_support import Rollout, initial_state
from warpsim.core.errors import InputError, SceneError, UnknownNameError, WarpsimError
from warpsim.rigid.compile.compile import compile_model
from warpsim.rigid.step.program import RigidProgram
from warpsim.scene import Body, Joint, Medium, Options, Scene
from warpsim.tape.diagnostics import NonFiniteError


def _set(kind: str, name: str, field: str, value) -> Callable[[Scene], None]:
    def change(scene: Scene) -> None:
        item = next(item for item in getattr(scene, kind) if item.name == name)
        setattr(item, field, value)

    return change


BAD_SCENES = {
    "no mass": (_set("bodies", "pole", "mass", 0.0), ("pole", "mass")),
    "negative mass": (_set("bodies", "tool", "mass", -1.0), ("tool", "mass")),
    "negative inertia": (_set("bodies", "tool", "inertia", np.diag([1.0, 1.0, -0.1])), ("tool", "inertia")),
    "impossible inertia": (_set("bodies", "tool", "inertia", np.diag([1.0, 0.1, 0.1])), ("tool", "inertia")),
    "NaN position": (_set("bodies", "arm", "position", np.array([0.0, np.nan, 0.0])), ("arm", "position", "NaN")),
    "NaN stiffness": (_set("joints", "ball", "stiffness", np.nan), ("ball", "stiffness", "NaN")),
    "NaN gear": (_set("actuators", "motor", "gear", np.full(6, np.nan)), ("motor", "gear", "NaN")),
    "missing parent": (_set("bodies", "arm", "parent", "bas"), ("arm", "parent", "base")),
    "cycle": (_set("bodies", "base", "parent", "tip"), ("base", "tip")),
    "unknown body": (_set("joints", "roll", "body", "tol"), ("roll", "tool")),
    "unknown joint of an actuator": (_set("actuators", "motor", "target", "sholder"), ("motor", "shoulder")),
    "unknown joint of a drive": (_set("drives", "track", "joint", "sholder"), ("track", "shoulder")),
    "axis of no length": (_set("joints", "roll", "axis", np.zeros(3)), ("roll", "axis")),
    "negative time constant": (_set("actuators", "lagged", "time_constant", 0.0), ("lagged", "time_constant")),
}


@pytest.mark.parametrize("case", BAD_SCENES)
def test_a_bad_scene_is_refused_by_name(case):
    change, fragments = BAD_SCENES[case]
    scene = rich_scene("euler")
    change(scene)
    with pytest.raises(SceneError) as caught:
        compile_model(scene)
    for fragment in fragments:
        assert fragment in str(caught.value), caught.value


@pytest.fixture(scope="module")
def rollout() -> Rollout:
    return Rollout(rich_scene("euler"), 6, ("actuator", "joint_force", "wrench"), worlds=2)


def inputs_of(rollout: Rollout) -> dict[str, np.ndarray]:
    state = rich_state("random")
    return initial_state(rollout.model, state["q"], state["qd"], state["activation"]) | rollout.random_controls()


def run(rollout: Rollout, inputs: dict[str, np.ndarray]) -> None:
    state = {name: inputs[name] for name in ("q", "qd", "activation")}
    controls = {name: value for name, value in inputs.items() if name not in state}
    with rollout.tape.forward(state, controls):
        pass


def test_wrong_shapes_types_and_names_are_refused(rollout):
    good = inputs_of(rollout)
    run(rollout, good)
    for name in ("actuator", "q"):
        with pytest.raises(InputError, match=name):
            run(rollout, good | {name: good[name][..., :-1]})
        for wrong in (good[name].astype(complex), good[name].astype(str), wp.array(good[name], dtype=wp.int32)):
            with pytest.raises(InputError, match=name):
                run(rollout, good | {name: wrong})
    with pytest.raises(InputError, match="torque"):
        run(rollout, good | {"torque": good["actuator"]})
    with pytest.raises(UnknownNameError, match="'actuators'.*actuator"):
        RigidProgram(rollout.model, controls=["actuators"])
    with pytest.raises(InputError, match="worlds=0"):
        compile_model(rich_scene("euler"), worlds=0)


def test_a_parameter_that_nothing_reads_is_refused():
    """A stage that the scene did not ask for is left out of the step, so its parameters would be ignored."""
    scene = rich_scene("euler")
    scene.medium = Medium()
    model = compile_model(scene)
    model.set_parameter("world.medium_density", np.zeros(1))
    with pytest.raises(InputError, match="world.medium_density.*acts on nothing"):
        model.set_parameter("world.medium_density", np.full(1, 1.2))
    model.set_parameter("tendon.stiffness", np.array([1.0, 2.0]))


def test_wrong_parameters_are_refused(rollout):
    model = rollout.model
    with pytest.raises(UnknownNameError, match="body.mas"):
        model.set_parameter("body.mas", np.ones(model.nbody))
    with pytest.raises(InputError, match="body.mass"):
        model.set_parameter("body.mass", np.ones(model.nbody + 1))
    with pytest.raises(InputError, match="body.mass.*nan; it must be a finite number"):
        model.set_parameter("body.mass", np.full(model.nbody, np.nan))
    with pytest.raises(UnknownNameError, match="joint.damp"):
        model.require_gradients(["joint.damp"])


@pytest.mark.parametrize(
    ("name", "stage"),
    [("joint_force", "dynamics.passive"), ("actuator", "dynamics.actuation"), ("wrench", "dynamics.passive")],
)
def test_a_rollout_that_turns_non_finite_names_step_world_and_stage(rollout, name, stage):
    inputs = inputs_of(rollout)
    bad = inputs[name].copy()
    bad[3, 1] = np.inf if name != "actuator" else np.nan
    with pytest.raises(WarpsimError) as caught:
        run(rollout, inputs | {name: bad})
    text = str(caught.value)
    assert "world 1" in text, text
    if isinstance(caught.value, NonFiniteError):
        assert "step 4" in text and stage in text, text
    else:  # refused at the door, which is earlier and as good
        assert name in text, text


def test_a_singular_solve_is_blamed_on_the_acceleration():
    """Kernels off the tape are watched too: an armature that cancels the mass leaves nothing to divide by."""
    scene = Scene(
        bodies=[Body("m", mass=1.0, com=np.zeros(3), inertia=np.eye(3))],
        joints=[Joint("fall", "slide", "m")],
        options=Options(constraints=False),
    )
    rollout = Rollout(scene, 3, ())
    rollout.model.authored["joint.armature"].fill_(-1.0)  # which `set_parameter` refuses
    with pytest.raises(NonFiniteError, match=r"step 1, world 0.*'dynamics\.acceleration'"):
        rollout.states({"q": np.zeros((1, 1)), "qd": np.zeros((1, 1))})
