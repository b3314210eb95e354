"""Small scenes shared by tests of the simulator: no contacts, so that everything is smooth."""

from __future__ import annotations

import mujoco

from warpsim.io.mjcf import scene_from_mjmodel
from warpsim.scene import Scene

ARM = """<mujoco>
  <option timestep="0.01" integrator="{integrator}"><flag constraint="disable"/></option>
  <worldbody>
    <body name="upper"><joint name="shoulder" type="hinge" axis="0 1 0" damping=".1"/>
      <geom name="u" type="capsule" size=".04" fromto="0 0 0 .4 0 0"/>
      <body name="fore" pos=".4 0 0"><joint name="elbow" type="hinge" axis="0 1 .2" stiffness="2" springref=".3"/>
        <geom name="f" type="capsule" size=".03" fromto="0 0 0 .3 0 0"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor name="lift" joint="shoulder" ctrlrange="-2 2" ctrllimited="true"/>
    <general name="bend" joint="elbow" dyntype="filter" dynprm=".05"/>
  </actuator>
</mujoco>"""
"""Two hinges, one motor with a control range and one with activation dynamics."""

TUMBLER = """<mujoco>
  <option timestep="0.01"><flag constraint="disable"/></option>
  <worldbody>
    <body name="hub" pos="0 0 1"><freejoint name="float"/><geom type="box" size=".1 .2 .3"/>
      <body name="flail" pos=".3 0 0"><joint name="ball" type="ball" damping=".01" stiffness=".5"/>
        <geom type="capsule" size=".03" fromto="0 0 0 .2 .1 0"/></body>
    </body>
  </worldbody>
</mujoco>"""
"""A free body with a ball joint: coordinates that are not a vector space."""


def compiled(xml: str) -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(xml)


def arm(integrator: str = "Euler") -> Scene:
    """The arm, its masses left to its shapes, so that densities and sizes matter."""
    scene = scene_from_mjmodel(compiled(ARM.format(integrator=integrator)))
    for body in scene.bodies:
        body.mass = body.com = body.inertia = None
    for shape in scene.shapes:
        shape.mass = None
    return scene


def tumbler() -> Scene:
    return scene_from_mjmodel(compiled(TUMBLER))


PUCK = """<mujoco>
  <option timestep="0.005" cone="elliptic"/>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1"/>
    <body name="puck" pos="0 0 .0499"><freejoint/><geom name="puck" type="sphere" size=".05" mass=".2"/></body>
  </worldbody>
</mujoco>"""
"""A ball that lies on a plane."""


def puck() -> Scene:
    return scene_from_mjmodel(compiled(PUCK))


PENDULUM_USD = """#usda 1.0
(
    defaultPrim = "World"
    metersPerUnit = 1
    upAxis = "Z"
)
def Xform "World"
{
    def PhysicsScene "Scene" {}
    def Xform "Bob" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"])
    {
        float physics:mass = 2
        point3f physics:centerOfMass = (0, 0, -0.5)
        float3 physics:diagonalInertia = (0.1, 0.1, 0.01)
    }
    def PhysicsRevoluteJoint "Hinge"
    {
        rel physics:body1 = </World/Bob>
        uniform token physics:axis = "Y"
    }
}
"""
