"""Comparisons of a Scene with a MuJoCo model, and of two MuJoCo models with each other."""

from __future__ import annotations

import mujoco
import numpy as np

from random_models import random_state
from warpsim.scene import Scene
from warpsim.scene.description import JOINT_DOF_SIZE, JOINT_Q_SIZE

BODY_FIELDS = {"mass": "body_mass", "com": "body_ipos", "gravity_compensation": "body_gravcomp"}
JOINT_FIELDS = {
    "anchor": "jnt_pos",
    "axis": "jnt_axis",
    "stiffness": "jnt_stiffness",
    "limit_margin": "jnt_margin",
    "limit_solref": "jnt_solref",
    "limit_solimp": "jnt_solimp",
}
DOF_FIELDS = {
    "damping": "dof_damping",
    "armature": "dof_armature",
    "friction_loss": "dof_frictionloss",
    "friction_solref": "dof_solref",
    "friction_solimp": "dof_solimp",
}
SHAPE_FIELDS = {
    "position": "geom_pos",
    "rotation": "geom_quat",
    "contact_type": "geom_contype",
    "contact_affinity": "geom_conaffinity",
    "friction": "geom_friction",
    "condim": "geom_condim",
    "solref": "geom_solref",
    "solimp": "geom_solimp",
    "solmix": "geom_solmix",
    "priority": "geom_priority",
    "margin": "geom_margin",
    "gap": "geom_gap",
}
TENDON_FIELDS = {
    "stiffness": "tendon_stiffness",
    "damping": "tendon_damping",
    "spring_range": "tendon_lengthspring",
    "limit_margin": "tendon_margin",
    "limit_solref": "tendon_solref_lim",
    "limit_solimp": "tendon_solimp_lim",
    "friction_loss": "tendon_frictionloss",
    "friction_solref": "tendon_solref_fri",
    "friction_solimp": "tendon_solimp_fri",
}
RANGES = {  # field of the Scene → (whether it is limited, its range)
    "joint limit": ("jnt_limited", "jnt_range"),
    "joint actuator_force_limit": ("jnt_actfrclimited", "jnt_actfrcrange"),
    "tendon limit": ("tendon_limited", "tendon_range"),
    "actuator control_range": ("actuator_ctrllimited", "actuator_ctrlrange"),
    "actuator force_range": ("actuator_forcelimited", "actuator_forcerange"),
    "actuator activation_range": ("actuator_actlimited", "actuator_actrange"),
}
NOT_PHYSICS = ("name", "cam_", "light_", "tex_", "mat_", "mesh_", "skin_", "key_", "numeric", "sensor_", "bvh_")
NOT_PHYSICS += ("geom_size", "geom_rgba", "geom_group", "geom_matid", "geom_sameframe", "body_sameframe", "site_group")


def assert_fields(items: list, model: mujoco.MjModel, fields: dict[str, str], first: int = 0) -> None:
    """Each item's fields are the rows of the model's arrays, in order."""
    for field, array in fields.items():
        for index, item in enumerate(items, start=first):
            np.testing.assert_allclose(
                getattr(item, field), getattr(model, array)[index], rtol=0, atol=1e-14, err_msg=field
            )


def assert_ranges(items: list, model: mujoco.MjModel, kind: str) -> None:
    for key, (limited, bounds) in RANGES.items():
        if key.split()[0] != kind:
            continue
        for index, item in enumerate(items):
            value = getattr(item, key.split()[1])
            if getattr(model, limited)[index]:
                np.testing.assert_array_equal(value, getattr(model, bounds)[index])
            else:
                assert value is None


def rotation_matrix(quat: np.ndarray) -> np.ndarray:
    matrix = np.empty(9)
    mujoco.mju_quat2Mat(matrix, quat)
    return matrix.reshape(3, 3)


def assert_scene_is_model(scene: Scene, model: mujoco.MjModel) -> None:
    """Every number of the scene against the arrays of the model (no mocap bodies, nothing left out)."""
    assert len(scene.bodies) == model.nbody - 1
    assert len(scene.joints) == model.njnt
    assert len(scene.shapes) == model.ngeom
    assert len(scene.sites) == model.nsite
    assert len(scene.tendons) == model.ntendon
    assert len(scene.actuators) == model.nactuator
    assert len(scene.equalities) == model.neq
    assert_bodies(scene, model)
    assert_joints(scene, model)
    assert_shapes(scene, model)
    assert_actuation(scene, model)
    assert_world(scene, model)


def assert_bodies(scene: Scene, model: mujoco.MjModel) -> None:
    assert_fields(scene.bodies, model, BODY_FIELDS, first=1)
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    names = [None, *(body.name for body in scene.bodies)]
    for index, body in enumerate(scene.bodies, start=1):
        parent = model.body_parentid[index]
        assert body.parent == names[parent]
        inward = rotation_matrix(
            data.xquat[parent]
        )  # poses at the reference configuration, through MuJoCo's kinematics
        np.testing.assert_allclose(body.position, inward.T @ (data.xpos[index] - data.xpos[parent]), rtol=0, atol=1e-12)
        outward = inward @ rotation_matrix(body.rotation)
        np.testing.assert_allclose(outward, rotation_matrix(data.xquat[index]), rtol=0, atol=1e-12)
        principal = rotation_matrix(model.body_iquat[index])
        inertia = np.einsum("ia,a,ja->ij", principal, model.body_inertia[index], principal)
        np.testing.assert_allclose(body.inertia, inertia, rtol=0, atol=1e-14)


def assert_joints(scene: Scene, model: mujoco.MjModel) -> None:
    assert_fields(scene.joints, model, JOINT_FIELDS)
    assert_ranges(scene.joints, model, "joint")
    q = dof = 0
    for index, joint in enumerate(scene.joints):
        assert joint.body == scene.bodies[model.jnt_bodyid[index] - 1].name
        assert (model.jnt_qposadr[index], model.jnt_dofadr[index]) == (q, dof)  # the layouts are the same
        if joint.kind in ("hinge", "slide"):
            assert joint.reference == model.qpos0[q]
        np.testing.assert_array_equal(joint.rest, model.qpos_spring[q : q + JOINT_Q_SIZE[joint.kind]])
        assert joint.initial_q is None
        assert joint.initial_qd is None
        for row in range(dof, dof + JOINT_DOF_SIZE[joint.kind]):
            assert_fields([joint], model, DOF_FIELDS, first=row)
        q, dof = q + JOINT_Q_SIZE[joint.kind], dof + JOINT_DOF_SIZE[joint.kind]
    assert (q, dof) == (model.nq, model.nv)


def assert_shapes(scene: Scene, model: mujoco.MjModel) -> None:
    assert_fields(scene.shapes, model, SHAPE_FIELDS)
    assert_fields(scene.sites, model, {"position": "site_pos", "rotation": "site_quat"})
    names = [None, *(body.name for body in scene.bodies)]
    assert [site.body for site in scene.sites] == [names[body] for body in model.site_bodyid]
    for index, shape in enumerate(scene.shapes):
        kind = mujoco.mjtGeom(model.geom_type[index]).name.removeprefix("mjGEOM_").lower()
        collides = bool(model.geom_contype[index] or model.geom_conaffinity[index])
        assert shape.body == names[model.geom_bodyid[index]]
        assert shape.collides == collides
        assert shape.mass == 0.0
        if kind == "mesh":
            assert shape.kind == ("hull" if collides else "mesh")
            np.testing.assert_array_equal(shape.size, np.ones(3))
            mesh, stored = scene.meshes[shape.mesh], model.mesh(model.geom_dataid[index])
            rows = slice(stored.vertadr[0], stored.vertadr[0] + stored.vertnum[0])
            np.testing.assert_array_equal(mesh.vertices, model.mesh_vert[rows])
            rows = slice(stored.faceadr[0], stored.faceadr[0] + stored.facenum[0])
            np.testing.assert_array_equal(mesh.faces, model.mesh_face[rows])
        else:
            assert shape.kind == kind
            used = {"plane": 0, "sphere": 1, "capsule": 2, "cylinder": 2}.get(kind, 3)
            np.testing.assert_array_equal(shape.size, [*model.geom_size[index, :used], *[0.0] * (3 - used)])


def assert_actuation(scene: Scene, model: mujoco.MjModel) -> None:
    assert_fields(scene.tendons, model, TENDON_FIELDS)
    assert_ranges(scene.tendons, model, "tendon")
    assert_ranges(scene.actuators, model, "actuator")
    assert_fields(scene.actuators, model, {"gear": "actuator_gear", "activation_early": "actuator_actearly"})
    for index, tendon in enumerate(scene.tendons):
        rows = slice(model.tendon_adr[index], model.tendon_adr[index] + model.tendon_num[index])
        assert tendon.joints == [scene.joints[joint].name for joint in model.wrap_objid[rows]]
        np.testing.assert_array_equal(tendon.coefficients, model.wrap_prm[rows])
    targets = {"joint": scene.joints, "tendon": scene.tendons, "site": scene.sites}
    for index, actuator in enumerate(scene.actuators):
        assert actuator.target == targets[actuator.transmission][model.actuator_trnid[index, 0]].name
        gain, bias = model.actuator_gainprm[index, :3], model.actuator_biasprm[index, :3]
        affine = model.actuator_gaintype[index] == mujoco.mjtGain.mjGAIN_AFFINE
        np.testing.assert_array_equal(actuator.gain, gain if affine else [gain[0], 0, 0])
        biased = model.actuator_biastype[index] == mujoco.mjtBias.mjBIAS_AFFINE
        np.testing.assert_array_equal(actuator.bias, bias if biased else np.zeros(3))
        assert actuator.dynamics == mujoco.mjtDyn(model.actuator_dyntype[index]).name.removeprefix("mjDYN_").lower()
        assert (actuator.dynamics != "none") == (model.actuator_actadr[index] >= 0)
        assert actuator.time_constant == model.actuator_dynprm[index, 0]


def assert_world(scene: Scene, model: mujoco.MjModel) -> None:
    option = model.opt
    np.testing.assert_array_equal(scene.options.gravity, option.gravity)
    assert scene.options.timestep == option.timestep
    assert scene.options.impratio == option.impratio
    assert scene.options.solver_iterations == option.iterations
    assert scene.options.solver_tolerance == option.tolerance
    assert scene.options.integrator == mujoco.mjtIntegrator(option.integrator).name.removeprefix("mjINT_").lower()
    assert scene.options.cone == mujoco.mjtCone(option.cone).name.removeprefix("mjCONE_").lower()
    assert (scene.medium.density, scene.medium.viscosity) == (option.density, option.viscosity)
    np.testing.assert_array_equal(scene.medium.wind, option.wind)


def assert_same_physics(first: mujoco.MjModel, second: mujoco.MjModel) -> None:
    """All arrays that physics reads, those that MuJoCo derives (invweight0, tendon_length0 …) included."""
    equal = (
        "iquat",
        "inertia",
        "gaintype",
        "gainprm",
        "biastype",
        "biasprm",
        "ctrlspec",
        "trntype",
        "objtype",
        "eq_data",
    )
    for field in first._all_fields:
        a, b = getattr(first, field), getattr(second, field)
        if field.startswith(NOT_PHYSICS) or field.endswith(equal) or not isinstance(a, np.ndarray):
            continue
        scale = max(1.0, float(np.abs(a).max(initial=0.0)))
        np.testing.assert_allclose(b, a, rtol=0, atol=1e-12 * scale, err_msg=field)


def assert_same_motion(first: mujoco.MjModel, second: mujoco.MjModel, seed: int, steps: int = 3) -> None:
    """The same random state moves alike; covers what equal arrays cannot show (welds, gains, principal axes).

    Contacts are left out: MuJoCo finds those of convex pairs to 1e-6 only, so they hang on the last bits of the inputs.
    """
    runs = []
    for model in (first, second):
        model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
        model.opt.tolerance, model.opt.iterations, model.opt.ls_tolerance = 0.0, 100, 1e-12
        data = mujoco.MjData(model)
        random_state(first, seed).apply(data)
        for _ in range(steps):
            mujoco.mj_step(model, data)
        runs.append(np.concatenate([data.qpos, data.qvel, data.act, data.qacc]))
    np.testing.assert_allclose(runs[1], runs[0], rtol=1e-8, atol=1e-8 * float(np.abs(runs[0]).max(initial=1.0)))
