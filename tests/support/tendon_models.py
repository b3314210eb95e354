"""A small arm whose spatial tendons run straight, around a sphere and cylinders, through them, and over pulleys."""

from __future__ import annotations

import mujoco
import numpy as np

ARM = """
<mujoco>
  <option timestep="0.002" integrator="{integrator}"/>
  <worldbody>
    <site name="anchor" pos="0 0.02 1.3"/>
    <site name="anchor2" pos="-0.1 0.05 1.2"/>
    <geom name="post" type="cylinder" size="0.05 0.2" pos="0.3 0 1.05" euler="80 10 0" contype="0" conaffinity="0"/>
    <site name="post_side" pos="0.3 0 1.3"/>
    <body name="upper" pos="0 0 1">
      <joint name="shoulder" type="ball" damping="0.02"/>
      <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03" contype="0" conaffinity="0"/>
      <site name="u1" pos="0.12 0.05 0.03"/>
      <site name="u2" pos="0.15 -0.04 -0.05"/>
      <geom name="ball" type="sphere" size="0.06" pos="0.3 0.01 0" contype="0" conaffinity="0"/>
      <site name="ball_side" pos="0.32 0 -0.2"/>
      <site name="ball_in" pos="0.3 0.01 0.005"/>
      <body name="lower" pos="0.3 0 0">
        <joint name="elbow" axis="0 1 0.1" damping="0.03" stiffness="0.1"/>
        <geom type="capsule" fromto="0 0 0 0.25 0 0" size="0.025" contype="0" conaffinity="0"/>
        <geom name="roll" type="cylinder" size="0.04 0.1" pos="0.25 0 0" euler="90 0 5" contype="0" conaffinity="0"/>
        <site name="l1" pos="0.12 0.02 0.05"/>
        <site name="l2" pos="0.1 -0.03 -0.06"/>
        <site name="roll_side" pos="0.27 0 0.3"/>
        <site name="roll_in" pos="0.25 0 0.004"/>
        <body name="hand" pos="0.25 0 0">
          <joint name="wrist" axis="0 1 0" damping="0.01"/>
          <geom type="box" size="0.05 0.03 0.02" pos="0.06 0 0" contype="0" conaffinity="0"/>
          <site name="h1" pos="0.06 0.01 0.05"/>
          <site name="h2" pos="0.07 -0.02 -0.05"/>
        </body>
      </body>
    </body>
    <body name="weight" pos="0.6 0.2 1.5">
      <joint name="drop" type="slide" axis="0 0 1"/>
      <geom size="0.05" contype="0" conaffinity="0"/>
      <site name="w1" pos="0 0 0.02"/>
    </body>
  </worldbody>
  <tendon>
    <spatial name="plain" stiffness="30" damping="0.6" springlength="0.1 0.2">
      <site site="anchor"/><site site="u1"/><site site="l1"/>
    </spatial>
    <spatial name="sphere" stiffness="40" damping="0.5">
      <site site="u1"/><geom geom="ball"/><site site="l1"/>
    </spatial>
    <spatial name="sphere_side" limited="true" range="0 0.25" frictionloss="0.3">
      <site site="u2"/><geom geom="ball" sidesite="ball_side"/><site site="l2"/>
    </spatial>
    <spatial name="cylinder" damping="0.3">
      <site site="l1"/><geom geom="roll"/><site site="h1"/>
    </spatial>
    <spatial name="cylinder_side" stiffness="25">
      <site site="l1"/><geom geom="roll" sidesite="roll_side"/><site site="h2"/><site site="h1"/>
    </spatial>
    <spatial name="pulley" limited="true" range="0.2 0.9" stiffness="5">
      <site site="w1"/><geom geom="post" sidesite="post_side"/><site site="anchor2"/>
      <pulley divisor="2"/><site site="anchor"/><site site="u2"/>
      <pulley divisor="3"/><site site="anchor2"/><geom geom="post"/><site site="l2"/>
    </spatial>
    <spatial name="held"><site site="anchor"/><site site="h1"/></spatial>
    <spatial name="holding"><site site="anchor2"/><geom geom="post"/><site site="w1"/></spatial>
    {inside}
    <fixed name="fixed" stiffness="1"><joint joint="elbow" coef="0.5"/><joint joint="wrist" coef="-0.3"/></fixed>
  </tendon>
  <equality><tendon tendon1="held" tendon2="holding" polycoef="0.01 0.7 0.1 0 0"/></equality>
  <actuator>
    <position tendon="sphere" kp="30" kv="2"/>
    <motor tendon="cylinder_side" gear="3"/>
    <general tendon="pulley" gainprm="2 1 -0.5" gaintype="affine" biastype="affine" biasprm="0.1 -3 -1"/>
    <position tendon="fixed" kp="3"/>
  </actuator>
  <sensor>
    <tendonpos tendon="sphere"/><tendonvel tendon="pulley"/><tendonpos tendon="fixed"/><tendonvel tendon="cylinder"/>
    <tendonactuatorfrc tendon="pulley"/><tendonactuatorfrc tendon="fixed"/>
  </sensor>
</mujoco>
"""
INSIDE = """
    <spatial name="sphere_in" stiffness="15">
      <site site="u1"/><geom geom="ball" sidesite="ball_in"/><site site="l2"/>
    </spatial>
    <spatial name="cylinder_in" stiffness="25">
      <site site="l2"/><geom geom="roll" sidesite="roll_in"/><site site="h1"/>
    </spatial>
"""
"""MuJoCo finds their points of touch only to some 1e-7."""


def arm(integrator: str = "Euler", *, inside: bool = False) -> mujoco.MjModel:
    """The arm, integrator by its name in MJCF."""
    return mujoco.MjModel.from_xml_string(ARM.format(integrator=integrator, inside=INSIDE if inside else ""))


def moment_arms(model: mujoco.MjModel, data: mujoco.MjData) -> np.ndarray:
    """(ntendon, nv) MuJoCo's moment arms, dense."""
    owner = data if hasattr(data, "ten_J_rownnz") else model
    dense = np.zeros((model.ntendon, model.nv))
    if data.ten_J.size == dense.size and data.ten_J.ndim == 2:
        return data.ten_J.copy()
    columns = owner.ten_J_colind.ravel()
    mujoco.mju_sparse2dense(dense, data.ten_J.ravel(), owner.ten_J_rownnz, owner.ten_J_rowadr, columns)
    return dense
