"""Small scenes with tasks, written to files."""

from __future__ import annotations

from pathlib import Path

from pxr import Usd

from warpsim.core.driving import drive
from warpsim.io.usd import author
from warpsim.sim.simulator import Simulator
from warpsim.task import TaskProblem, read_task
from warpsim.task.outcome import outcome

STEPS = 20


def swing(*, drives: bool = False, actuators: bool = True) -> tuple[Usd.Stage, Usd.Prim]:
    """A stage with a two-link arm, 100 steps a second, and an empty task of 20 steps."""
    stage = author.new_stage()
    world = author.world(stage)
    author.physics_scene(stage, gravity=9.81, steps_per_second=100)
    parent = None
    for place, name in enumerate(("Upper", "Lower")):
        link = author.body(world, name, position=(0.4 * place, 0, 1), attributes={"physics:mass": None})
        author.capsule(link, "Shape", 0.03, 0.3, axis="X", position=(0.2, 0, 0), density=800)
        servo = {"stiffness": 0.2, "damping": 0.02, "target": 30.0 * place} if drives else None
        joint = author.revolute(world, f"Joint{place}", parent, link, "Y", limits=(-150, 150), drive=servo)
        if actuators:
            author.actuator(world, f"Motor{place}", joint, control_range=(-2, 4))
        parent = link
    author.frame(parent, "Tip", position=(0.4, 0, 0))
    return stage, author.task(world, duration=STEPS / 100)


def reach(task: Usd.Prim, **more: object) -> Usd.Prim:
    """The arm's tip should reach a point."""
    settings = {"subject": "/World/Lower/Tip", "position": (0.3, 0, 0.6), "tolerance": 0.01, **more}
    return author.task_part(task, "Reach", "Hit", **settings)


def saved(stage: Usd.Stage, folder: Path, name: str = "scene") -> Path:
    """The stage's file."""
    path = folder / f"{name}.usda"
    author.save(stage, path)
    return path


def loaded_loss(path: Path) -> float:
    """The loss of a file's task as it stands, by someone who has never seen the run."""
    sim = Simulator(path)
    return drive(outcome(TaskProblem(sim, read_task(path, sim.scene)))).loss
