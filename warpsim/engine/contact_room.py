"""Room for contacts: how many places a model that ran out of them is to have next, within what memory allows."""

from __future__ import annotations

from warpsim.rigid.model.model import Model
from warpsim.rigid.work.constraint_work import contact_bytes
from warpsim.tape.budget import readable
from warpsim.tape.diagnostics import NonFiniteError
from warpsim.tape.free_memory import free_bytes

_GROWTH = 1.5
"""Least factor by which places grow, so that a pile that builds up is not planned anew at every contact."""

_COPIES = 8
"""How often intermediates are there at the least: in slots, trial steps and the searches of a step."""


def grown(model: Model, error: NonFiniteError) -> Model:
    """The model with room for the contacts that a step lacked places for.

    Args:
        model: What was stepped, or what it has grown to since.
        error: How the step failed.

    Raises:
        NonFiniteError: The same error where it has another reason, or where the number of contacts was set; one that
            names the memory needed where there is too little.
    """
    shortage = error.shortage
    if shortage is None or model.options.max_contacts is not None:
        raise error
    if model.max_contacts >= shortage.needed:  # it has grown since
        return model
    roomy = min(max(shortage.needed * 5 // 4, int(_GROWTH * model.max_contacts)), model.pair_table.candidates)
    free = free_bytes(model.device)
    for places in (roomy, shortage.needed):
        made = model.with_room(places)
        if _bytes(made) - _bytes(model) <= free:
            return made
    raise _too_little(made, error, free) from error


def _bytes(model: Model) -> int:
    return _COPIES * contact_bytes(model)


def _too_little(model: Model, error: NonFiniteError, free: int) -> NonFiniteError:
    """What to tell when memory ends; keeps what the rollout had reached."""
    assert error.shortage is not None
    made = NonFiniteError(
        f"step {error.step}, world {error.shortage.world}: {error.shortage.needed} contacts; places for them in "
        f"{model.worlds} world(s) take about {readable(_bytes(model))}, and {readable(free)} of memory is free: "
        "simulate fewer worlds, let fewer shapes collide, or give the shapes simpler colliders",
        error.step,
        error.shortage,
    )
    made.run, made.trajectory = error.run, error.trajectory
    return made
