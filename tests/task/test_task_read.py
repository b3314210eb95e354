"""Tasks from hand-written USD: values in SI whatever the stage's units, and errors at the prim that is wrong."""

from __future__ import annotations

import math

import numpy as np
import pytest
from pxr import Sdf, Usd

from warpsim.core.errors import TaskError
from warpsim.io.usd.reader import read_usd
from warpsim.objective import (
    CenterOfMass,
    Clearance,
    ContactForce,
    Duration,
    Effort,
    Energy,
    Fixed,
    JointLimitsKept,
    Keyframes,
    OnBody,
    Pose,
    Posture,
    Reach,
    StaysAbove,
    Velocity,
    Within,
)
from warpsim.task.controls import Feedback, Knots, Periodic, Steps
from warpsim.task.read import read_task

SCENE = """#usda 1.0
(
    defaultPrim = "World"
    metersPerUnit = 0.01
    kilogramsPerUnit = 0.5
    upAxis = "Y"
    timeCodesPerSecond = 10
)
def Xform "World"
{
    def PhysicsScene "Physics"
    {
        int newton:timeStepsPerSecond = 100
    }
    def Cube "Wall" (prepend apiSchemas = ["PhysicsCollisionAPI"])
    {
        double3 xformOp:translate = (500, 0, 0)
        uniform token[] xformOpOrder = ["xformOp:translate"]
    }
    def Xform "Base" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"])
    {
        float physics:mass = 2
        double3 xformOp:translate = (0, 100, 0)
        uniform token[] xformOpOrder = ["xformOp:translate"]
        def Sphere "Ball" (prepend apiSchemas = ["PhysicsCollisionAPI"])
        {
            double radius = 10
        }
        def Xform "Tip"
        {
            double3 xformOp:translate = (30, 0, 5)
            uniform token[] xformOpOrder = ["xformOp:translate"]
        }
    }
    def PhysicsRevoluteJoint "Hinge"
    {
        rel physics:body1 = </World/Base>
        uniform token physics:axis = "Z"
        float physics:lowerLimit = -90
        float physics:upperLimit = 90
        point3f physics:localPos0 = (0, 100, 0)
    }
    def Xform "Goal"
    {
        double3 xformOp:translate = (100, 200, 300)
        uniform token[] xformOpOrder = ["xformOp:translate"]
    }
    def Xform "Ghost"
    {
        double3 xformOp:translate.timeSamples = { 20: (0, 0, 0), 30: (100, 50, 0) }
        uniform token[] xformOpOrder = ["xformOp:translate"]
    }
    def WarpsimTask "Task"
    {
        %s
    }
}
"""
VARIABLE = 'def WarpsimVariable "V" { rel attributes = </World/Base.physics:mass> }\n'
REACH = 'def WarpsimReach "Hit" { rel subject = </World/Base/Tip>\n rel target = </World/Goal> }\n'


def stage_of(body: str) -> Usd.Stage:
    layer = Sdf.Layer.CreateAnonymous(".usda")
    text = SCENE % body.replace("{ ", "{\n").replace(" }", "\n}")
    assert layer.ImportFromString(text)
    return Usd.Stage.Open(layer)


def task_of(body: str):
    stage = stage_of(body)
    return read_task(stage, read_usd(stage))


def term_of(prim: str, more: str = ""):
    return task_of("double duration = 1\n" + VARIABLE + more + prim).terms[0]


def test_a_whole_task():
    task = task_of(
        """double duration = 2
        double2 durationRange = (1, 3)
        uniform token method = "adam"
        int iterations = 7
        double seconds = 30
        double learningRate = 0.2
        int starts = 4
        int seed = 5
        string memoryBudget = "8MB"
        def WarpsimVariable "V" { rel attributes = [</World/Base.physics:mass>]
            double[] lower = [0.5]
            double[] upper = [5]
            double scale = 2 }
        def WarpsimKnots "Motors" { uniform token channel = "jointForce"
            rel targets = </World/Hinge>
            int count = 4
            uniform token interpolation = "cubic"
            double[] values = [0, 1, 2, 3]
            double[] lower = [-4] }
        def WarpsimDuration "Quick" { double weight = 3 }
        """
        + REACH
    )
    assert (task.name, task.duration, task.duration_range, task.memory) == ("/World/Task", 2.0, (1, 3), "8MB")
    search = task.search
    assert (search.method, search.iterations, search.seconds, search.rate) == ("adam", 7, 30.0, 0.2)
    assert (search.starts, search.seed) == (4, 5)
    (variable,) = task.variables
    assert variable.attributes == ("/World/Base.physics:mass",)
    assert (variable.lower, variable.upper, variable.scale, variable.name) == ([0.5], [5.0], 2.0, "/World/Task/V")
    (control,) = task.controls
    assert isinstance(control, Knots) and control.name == "/World/Task/Motors"
    assert (control.channel, control.targets, control.count) == ("joint_force", ("/World/Hinge",), 4)
    assert (control.values, control.lower, control.upper) == ([0, 1, 2, 3], [-4], None)
    assert isinstance(task.terms[0], Duration) and task.terms[0].weight == 3.0


def test_places_and_targets_are_in_si():
    term = term_of(REACH)
    assert isinstance(term, Reach) and isinstance(term.subject, OnBody)
    assert term.subject.body == "/World/Base"
    assert np.allclose(term.subject.offset, (0.3, 0.0, 0.05))  # in the body's own axes
    assert isinstance(term.target, Fixed)
    assert np.allclose(term.target.at, (1.0, -3.0, 2.0))  # Y-up → Z-up
    term = term_of(
        'def WarpsimReach "R" { rel subject = </World/Base>\n'
        "point3d position = (100, 200, 300)\n"
        'uniform token[] axes = ["x", "y"] }'
    )
    assert np.allclose(term.target.at, (1.0, -3.0, 2.0)) and term.axes == "xz"


@pytest.mark.parametrize("kind", ["timecode", "double", "int"])
def test_time_samples_make_keyframes_from_the_start_time_on(kind):
    prim = (
        'def WarpsimReach "R" { rel subject = </World/Base>\n'
        "rel target = </World/Ghost>\n"
        'uniform token when = "running" }'
    )
    place = term_of(prim, f"{kind} startTime = 10\n").target
    assert isinstance(place, Keyframes)
    assert np.allclose(place.times, [1.0, 2.0]) and np.allclose(place.positions[1], (1.0, 0.0, 0.5))
    posture = term_of(
        'def WarpsimPosture "P" { rel joints = </World/Hinge>\n double[] position.timeSamples = { 0: [0], 5: [90] } }'
    )
    assert np.allclose(posture.times, [0, 0.5]) and np.allclose(posture.position, [[0], [math.pi / 2]])


def _same(actual, expected) -> bool:
    numbers = not isinstance(np.ravel(expected)[0], str)
    return np.allclose(actual, expected) if numbers else actual == expected


@pytest.mark.parametrize(
    ("prim", "kind", "fields", "tolerance"),
    [
        (
            'WarpsimPose "A" { rel subject = </World/Base>\n'
            "rel target = </World/Goal>\n"
            "double leverArm = 50\n"
            "double tolerance = 2\n"
            "double angleTolerance = 90 }",
            Pose,
            {"lever_arm": 0.5},
            0.02,
        ),
        (
            'WarpsimVelocity "A" { rel subject = </World/Base>\n'
            "vector3d velocity = (100, 50, 0)\n"
            "double tolerance = 3 }",
            Velocity,
            {"velocity": (1.0, 0.0, 0.5)},
            0.03,
        ),
        (
            'WarpsimVelocity "A" { rel subject = </World/Base>\n'
            'uniform token quantity = "angular"\n'
            "vector3d velocity = (0, 180, 0)\n"
            "double tolerance = 180 }",
            Velocity,
            {"velocity": (0.0, 0.0, math.pi), "angular": True},
            math.pi,
        ),
        (
            'WarpsimPosture "A" { double[] position = [45]\n double tolerance = 18 }',
            Posture,
            {"joints": ("/World/Hinge",), "position": [math.pi / 4]},
            math.pi / 10,
        ),
        (
            'WarpsimCenterOfMass "A" { point3d position = (0, 100, 0)\n double tolerance = 1 }',
            CenterOfMass,
            {"axes": "xyz"},
            0.01,
        ),
        (
            'WarpsimEnergy "A" { uniform token quantity = "kinetic"\ndouble energy = 20000\ndouble tolerance = 20000 }',
            Energy,
            {"kind": "kinetic", "energy": 1.0},
            1.0,
        ),
        (
            'WarpsimContactForce "A" { rel subject = </World/Base>\n double atMost = 200\n double tolerance = 200 }',
            ContactForce,
            {"at_most": 1.0, "subject": "/World/Base"},
            1.0,
        ),
        (
            'WarpsimClearance "A" { rel subject = </World/Base/Ball>\n'
            "rel obstacles = </World/Wall>\n"
            "double distance = 10\n"
            "double tolerance = 0 }",
            Clearance,
            {"distance": 0.1, "obstacles": ("/World/Wall",)},
            0.0,
        ),
        ('WarpsimEffort "A" { double weight = 0.1\n uniform token when = "running" }', Effort, {"weight": 0.1}, None),
    ],
)
def test_terms(prim, kind, fields, tolerance):
    task = task_of("double duration = 1\n" + VARIABLE + "def " + prim)
    (term,) = task.terms
    assert isinstance(term, kind) and term.name == "/World/Task/A"
    for name, value in fields.items():
        assert _same(getattr(term, name), value)
    if tolerance is None:
        assert task.conditions == ()
    else:
        (condition,) = task.conditions
        assert isinstance(condition, Within) and condition.tolerance == pytest.approx(tolerance)
        if kind is Pose:
            assert condition.angle_tolerance == pytest.approx(math.pi / 2)


def test_controls_and_conditions():
    body = "double duration = 1\n" + REACH
    steps, periodic = task_of(
        body + 'def WarpsimSteps "S" { }\ndef WarpsimPeriodic "P" { double period = 0.5\n int harmonics = 3 }'
    ).controls
    assert isinstance(steps, Steps) and isinstance(periodic, Periodic)
    assert (periodic.period, periodic.harmonics, steps.channel) == (0.5, 3, None)
    (feedback,) = task_of(
        body + 'def WarpsimFeedback "F" { rel joints = </World/Hinge>\n double[] reference = [0.3] }'
    ).controls
    assert isinstance(feedback, Feedback) and feedback.joints == ("/World/Hinge",) and feedback.reference == [0.3]
    task = task_of(
        body
        + VARIABLE
        + 'def WarpsimKeepJointLimits "J" { double angleTolerance = 180 }\n'
        + 'def WarpsimKeepControlLimits "C" { }\n'
        + 'def WarpsimStayAbove "H" { rel subject = </World/Base>\n double height = 50 }'
    )
    joints, _, above = task.conditions
    assert isinstance(joints, JointLimitsKept) and joints.angle_tolerance == pytest.approx(math.pi)
    assert isinstance(above, StaysAbove) and above.height == 0.5


GOOD = "double duration = 1\n" + VARIABLE


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("double duration = 1\n" + REACH, "/World/Task: nothing may vary"),
        (GOOD, "/World/Task: nothing is wanted"),
        (VARIABLE + REACH, "/World/Task: needs a value of 'duration'"),
        ("double duration = 0\n" + VARIABLE + REACH, "/World/Task: duration is 0 s"),
        (GOOD + "int iterations = 0\n" + REACH, "/World/Task: iterations=0"),
        (GOOD + "double2 durationRange = (2, 3)\n" + REACH, "/World/Task: durationRange"),
        (GOOD + 'uniform token method = "magic"\n' + REACH, "/World/Task: method is 'magic'; use one of auto"),
        (GOOD + "double druation = 3\n" + REACH, "/World/Task: no property of WarpsimTask 'druation'; did you mean"),
        (GOOD + 'def WarpsimReech "R" { }', "/World/Task/R: no type of task prim 'WarpsimReech'; did you mean"),
        (GOOD + 'def Xform "X" { }', "/World/Task/X: no type of task prim 'Xform'"),
        (GOOD + 'def WarpsimTask "T" { }', "several tasks"),
        (GOOD + 'def WarpsimReach "R" { rel subject = </World/Base> }', "/World/Task/R: needs a target prim"),
        (
            GOOD + 'def WarpsimReach "R" { rel subject = </World/Bose>\n rel target = </World/Goal> }',
            "/World/Task/R: subject targets </World/Bose>, and there is no such prim",
        ),
        (
            GOOD + 'def WarpsimReach "R" { rel subject = </World/Base>\n rel target = </World/Gaol> }',
            "/World/Task/R: target targets </World/Gaol>, and there is no such prim",
        ),
        (
            GOOD + 'def WarpsimReach "R" { rel subject = </World/Goal>\n rel target = </World/Goal> }',
            "/World/Task/R: subject targets /World/Goal, which is neither a body nor part of one",
        ),
        (
            GOOD + 'def WarpsimReach "R" { rel subject = </World/Base>\n'
            "rel target = </World/Goal>\n"
            "double tolerence = 1 }",
            "/World/Task/R: no property of WarpsimReach 'tolerence'; did you mean 'tolerance'",
        ),
        (
            GOOD + 'def WarpsimReach "R" { rel subject = </World/Base>\n'
            "rel target = </World/Goal>\n"
            'uniform token when = "time" }',
            "/World/Task/R: when='time' needs a time",
        ),
        (
            GOOD
            + 'def WarpsimReach "R" { rel subject = </World/Base>\n rel target = </World/Goal>\n double weight = -1 }',
            "/World/Task/R: weight -1",
        ),
        (
            GOOD + 'def WarpsimReach "R" { rel subject = </World/Base>\n rel target = </World/Base/Tip> }',
            "/World/Task/R: target is part of /World/Base",
        ),
        (GOOD + 'def WarpsimPosture "R" { double[] position = [1, 2] }', "/World/Task/R: position needs 1 numbers"),
        (
            GOOD + 'def WarpsimClearance "R" { rel subject = </World/Goal>\n rel obstacles = </World/Wall> }',
            "/World/Task/R: subject: no body or collider",
        ),
        ("double duration = 1\n" + REACH + 'def WarpsimVariable "V" { }', "/World/Task/V: attributes targets nothing"),
        (
            "double duration = 1\n" + REACH + 'def WarpsimVariable "V" { rel attributes = </World/Base> }',
            "/World/Task/V: attributes targets the prim",
        ),
        ("double duration = 1\n" + REACH + 'def WarpsimKnots "K" { int count = 1 }', "/World/Task/K: 1 knots"),
        (
            "double duration = 1\n" + REACH + 'def WarpsimFeedback "F" { }\ndef WarpsimSteps "S" { }',
            "/World/Task/F: a feedback must be the only control",
        ),
    ],
)
def test_wrong_tasks_are_named(body, message):
    with pytest.raises(TaskError) as caught:
        task_of(body)
    assert message in str(caught.value)


def test_which_task():
    stage = stage_of(GOOD + REACH)
    scene = read_usd(stage)
    assert read_task(stage, scene, "/World/Task").name == "/World/Task"
    with pytest.raises(TaskError, match="no task '/World/Tusk'; did you mean '/World/Task'"):
        read_task(stage, scene, "/World/Tusk")
    stage.RemovePrim("/World/Task")
    with pytest.raises(TaskError, match="no WarpsimTask prim"):
        read_task(stage, scene)
