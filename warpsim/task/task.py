"""`Task`: what may vary in a scene, what is wanted, for how long, and how to search, as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from warpsim.core.errors import MAXIMUM_COUNT, TaskError
from warpsim.objective import Condition, Term
from warpsim.task.controls import Control


@dataclass(frozen=True)
class VariableSpec:
    """USD attributes that the optimizer may change.

    Attributes:
        attributes: Paths "/World/Ball.physics:velocity"; several share one value.
        lower: Bounds in the attribute's own unit, one number or one for each component; None: none.
        upper: Likewise.
        positive: Keep the value above zero.
        scale: Typical change, in the attribute's unit; with bounds a pure number; None: the size of the value.
        components: Which components vary; None: all.
        name: Path of the prim that says so.
    """

    attributes: tuple[str, ...]
    lower: Sequence[float] | None = None
    upper: Sequence[float] | None = None
    positive: bool = False
    scale: float | None = None
    components: tuple[int, ...] | None = None
    name: str = ""


@dataclass(frozen=True)
class SearchSpec:
    """How to search.

    Attributes:
        method: "auto", or a name that `warpsim.optimizers.minimize` knows.
        iterations: Most of them.
        seconds: Most wall time; None: no bound.
        rate: Step size of adam, factor on that of polyak; None: its own.
        starts: Number of starting points.
        seed: Of everything random.
        stop_at_success: End at the first iterate that meets all conditions; else give the one nearest to them.
    """

    method: str = "auto"
    iterations: int = 100
    seconds: float | None = None
    rate: float | None = None
    starts: int = 1
    seed: int = 0
    stop_at_success: bool = False


@dataclass(frozen=True)
class Task:
    """A whole task.

    Attributes:
        duration: s that are simulated.
        terms: Their losses add up.
        variables: Attributes that vary.
        controls: Controls that vary; several of one channel add up.
        conditions: Of success, all of them.
        duration_range: (least, most) s, if the duration varies too.
        steps: Number of time steps where the duration varies; None: by the scene's own time step.
        search: How to search.
        memory: Of differentiated rollouts, as in `Simulator.rollout`.
        adjoint_bound: Of each particle's adjoint, which makes the gradient biased; 0: exact.
        start_code: Time code of the stage at which it starts.
        name: Path of its prim.
    """

    duration: float
    terms: tuple[Term, ...]
    variables: tuple[VariableSpec, ...] = ()
    controls: tuple[Control, ...] = ()
    conditions: tuple[Condition, ...] = ()
    duration_range: tuple[float, float] | None = None
    steps: int | None = None
    search: SearchSpec = field(default_factory=SearchSpec)
    memory: str | None = None
    adjoint_bound: float = 0.0
    start_code: float = 0.0
    name: str = "task"


def step_count(task: Task, timestep: float) -> int:
    """Steps of a task's duration."""
    count = max(1.0, task.duration / timestep)
    if count > MAXIMUM_COUNT:
        raise TaskError(
            f"{task.name}: duration is {task.duration:g} s, {count:.4g} steps of {timestep:g} s, more than can be "
            "counted; simulate for less, or with longer steps"
        )
    return round(count)
