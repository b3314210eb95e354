"""What is wanted of a rollout: terms that add up to a loss, and conditions of success apart from it."""

from warpsim.objective.clearance import Clearance
from warpsim.objective.contact import ContactForce
from warpsim.objective.containers import Container, Fill, Spill
from warpsim.objective.control_terms import Duration, Effort, Smoothness
from warpsim.objective.episode import END, Episode, When, at, episode_of, running
from warpsim.objective.function import Cost, Function, Kernel
from warpsim.objective.motion import Energy, Posture, Velocity
from warpsim.objective.places import Fixed, Keyframes, OnBody, OnMatter, Place, matter_places
from warpsim.objective.reach import CenterOfMass, Pose, Reach
from warpsim.objective.success import (
    Condition,
    ControlLimitsKept,
    JointLimitsKept,
    StaysAbove,
    Verdict,
    Within,
    succeeded,
)
from warpsim.objective.term import Term

__all__ = [
    "CenterOfMass",
    "Clearance",
    "Condition",
    "Container",
    "ContactForce",
    "ControlLimitsKept",
    "Cost",
    "Duration",
    "END",
    "Effort",
    "Energy",
    "Episode",
    "Fill",
    "Fixed",
    "Function",
    "JointLimitsKept",
    "Kernel",
    "Keyframes",
    "OnBody",
    "OnMatter",
    "Place",
    "Pose",
    "Posture",
    "Reach",
    "Smoothness",
    "Spill",
    "StaysAbove",
    "Term",
    "Velocity",
    "Verdict",
    "When",
    "Within",
    "at",
    "episode_of",
    "matter_places",
    "running",
    "succeeded",
]
