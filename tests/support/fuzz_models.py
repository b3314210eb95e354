"""Robots with a little of everything that MJCF and URDF have, to be damaged."""

MJCF = """<mujoco model="all">
  <compiler angle="radian" autolimits="true"/>
  <option timestep="0.004" integrator="implicitfast" cone="elliptic" density="1.2" wind="1 0 0"/>
  <default><geom friction="0.8 0.01 0.001" solref="0.02 1"/><default class="arm"><joint damping="0.1"/></default>
    </default>
  <asset>
    <mesh name="tetra" vertex="0 0 0 0.1 0 0 0 0.1 0 0 0 0.1"/>
    <hfield name="hills" nrow="2" ncol="3" size="1 1 0.2 0.1" elevation="0 1 0 1 0 1"/>
  </asset>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 0.1"/><geom name="land" type="hfield" hfield="hills" pos="3 0 0"/>
    <body name="base" pos="0 0 1"><freejoint name="root"/>
      <geom name="hull" type="box" size="0.2 0.1 0.05" mass="2"/>
      <site name="eye" pos="0.1 0 0" quat="1 0 0 0"/>
      <body name="upper" pos="0.3 0 0" childclass="arm">
        <joint name="hip" axis="0 1 0" range="-1 1" frictionloss="0.1"/>
        <geom name="rod" type="capsule" fromto="0 0 0 0.2 0 0" size="0.02"/>
        <body name="lower" pos="0.2 0 0" euler="0 0.1 0">
          <joint name="knee" type="slide" axis="0 0 1" stiffness="3"/>
          <inertial pos="0.1 0 0" mass="0.5" diaginertia="0.01 0.02 0.015"/><site name="tip"/>
          <geom name="foot" type="mesh" mesh="tetra" condim="4"/></body></body>
      <body name="head" pos="0 0 0.2"><joint name="neck" type="ball" range="0 0.7"/>
        <geom type="sphere" size="0.08"/></body>
    </body>
    <body name="cart" pos="0 2 0.5"><joint name="rail" type="slide" axis="1 0 0" armature="0.1"/>
      <geom name="can" type="cylinder" size="0.1 0.2" density="500"/></body>
    <body name="target" mocap="true" pos="1 1 1"/>
  </worldbody>
  <tendon><fixed name="cable" range="-1 1" limited="true"><joint joint="hip" coef="1"/>
    <joint joint="rail" coef="-0.5"/></fixed></tendon>
  <equality><joint joint1="knee" joint2="rail" polycoef="0 0.5 0 0 0"/>
    <weld body1="cart" body2="head" active="false"/>
    <connect body1="head" body2="cart" anchor="0 0 0.1" active="false"/></equality>
  <contact><exclude body1="base" body2="lower"/>
    <pair geom1="floor" geom2="can" condim="3" friction="1 1 0.01 0.001 0.001"/></contact>
  <actuator><motor name="m" joint="hip" gear="3" ctrlrange="-1 1"/><position name="p" joint="rail" kp="20" kv="2"/>
    <general name="g" tendon="cable" dyntype="filter" dynprm="0.05" gainprm="2" biastype="affine"
      biasprm="0 -2 -0.1"/></actuator>
  <sensor><gyro site="eye"/><jointpos joint="hip" noise="0.01"/><framepos objtype="site" objname="tip"/></sensor>
  <keyframe><key name="home" qpos="0 0 1 1 0 0 0 0.1 0 1 0 0 0 0"/></keyframe>
</mujoco>"""
URDF = """<robot name="arm">
  <mujoco><compiler fusestatic="false" discardvisual="false"/></mujoco>
  <material name="red"><color rgba="1 0 0 1"/></material>
  <link name="base"><inertial><mass value="2"/><inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/>
    </inertial>
    <collision><geometry><box size="0.2 0.2 0.1"/></geometry></collision></link>
  <link name="upper"><inertial><origin xyz="0 0 0.1" rpy="0 0.1 0"/><mass value="1"/>
    <inertia ixx="0.02" iyy="0.02" izz="0.01" ixy="0.001" ixz="0" iyz="0"/></inertial>
    <visual><geometry><cylinder radius="0.05" length="0.2"/></geometry><material name="red"/></visual>
    <collision><origin xyz="0 0 0.1"/><geometry><cylinder radius="0.05" length="0.2"/></geometry></collision></link>
  <link name="hand"><inertial><mass value="0.5"/>
    <inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><geometry><sphere radius="0.06"/></geometry></collision></link>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/>
    <origin xyz="0 0 0.1" rpy="0 0 0.3"/>
    <axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="10" velocity="2"/>
      <dynamics damping="0.1" friction="0.05"/></joint>
  <joint name="reach" type="prismatic"><parent link="upper"/><child link="hand"/><origin xyz="0 0 0.2"/>
    <axis xyz="0 0 1"/>
    <limit lower="0" upper="0.1" effort="5" velocity="1"/></joint>
</robot>"""
