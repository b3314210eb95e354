"""How many places for contacts a model grows to, and which tapes an engine keeps; on models that are only numbers."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from warpsim.engine import contact_room, engine
from warpsim.engine.contact_room import grown
from warpsim.engine.engine import Engine, RolloutSpec
from warpsim.tape.diagnostics import NonFiniteError
from warpsim.tape.memory import Memory
from warpsim.tape.program import Shortage


class Rooms:
    """A model of so many places, 100 bytes each in one step."""

    def __init__(self, places: int, candidates: int = 10_000, limit: int | None = None) -> None:
        self.max_contacts, self.device, self.worlds = places, "cpu", 3
        self.pair_table = SimpleNamespace(candidates=candidates)
        self.options = SimpleNamespace(max_contacts=limit)

    def with_room(self, places: int) -> Rooms:
        return Rooms(places, self.pair_table.candidates, self.options.max_contacts)


@pytest.fixture
def memory(monkeypatch):
    """Sets how many bytes are free."""
    free = [10**9]
    monkeypatch.setattr(contact_room, "contact_bytes", lambda model: 100 * model.max_contacts)
    monkeypatch.setattr(contact_room, "free_bytes", lambda device: free[0])
    return free


def lacking(needed: int) -> NonFiniteError:
    return NonFiniteError("too few places", 7, Shortage(world=2, needed=needed, places=32))


@pytest.mark.parametrize(
    ("places", "needed", "candidates", "expected"),
    [
        (32, 36, 10_000, 48),  # half as many again
        (32, 80, 10_000, 100),  # a quarter more than are needed
        (32, 80, 90, 90),  # never more than there can be
    ],
)
def test_places_grow_by_half_or_to_a_quarter_more_than_needed(places, needed, candidates, expected, memory):
    assert grown(Rooms(places, candidates), lacking(needed)).max_contacts == expected


def test_a_model_that_has_grown_since_is_taken_as_it_is(memory):
    for places in (36, 37):
        model = Rooms(places)
        assert grown(model, lacking(36)) is model


def test_with_less_memory_there_is_room_for_what_is_needed_alone(memory):
    """Of each place there are at least eight copies; what the model has already is not asked for again."""
    model = Rooms(40)
    memory[0] = 8 * 100 * (60 - 40)
    assert grown(model, lacking(44)).max_contacts == 60
    memory[0] -= 1
    assert grown(model, lacking(44)).max_contacts == 44
    memory[0] = 8 * 100 * (44 - 40)
    assert grown(model, lacking(44)).max_contacts == 44
    memory[0] -= 1
    with pytest.raises(
        NonFiniteError, match=r"step 7, world 2: 44 contacts; places for them in 3 world\(s\)"
    ) as caught:
        grown(model, lacking(44))
    assert caught.value.step == 7 and caught.value.shortage.needed == 44


def test_a_number_that_was_set_and_another_reason_stay_errors(memory):
    error = lacking(36)
    with pytest.raises(NonFiniteError) as caught:
        grown(Rooms(32, limit=32), error)
    assert caught.value is error
    other = NonFiniteError("not finite", 3, None)
    with pytest.raises(NonFiniteError) as caught:
        grown(Rooms(32), other)
    assert caught.value is other


# --------------------------------------------------------------------------------------------------------- tapes kept


@pytest.fixture
def tapes(monkeypatch) -> Engine:
    """An engine without a scene, whose tapes take a byte per step."""
    made = Engine.__new__(Engine)
    made._tapes = {}
    made.compiled = SimpleNamespace(model=SimpleNamespace(device="cpu"))
    monkeypatch.setattr(
        Engine, "_make_tape", lambda self, spec, groups=None: SimpleNamespace(plan=SimpleNamespace(bytes=spec.steps))
    )
    monkeypatch.setattr(engine, "KEPT_BYTES", 100)
    monkeypatch.setattr(engine, "parse", lambda budget, device: budget)
    return made


def kept(tapes: Engine) -> list[int]:
    return [spec.steps for spec in tapes._tapes]


def test_tapes_are_kept_up_to_a_number_of_bytes_the_last_used_last(tapes):
    specs = {n: RolloutSpec(n) for n in (10, 30, 40, 20)}
    first = tapes.tape(specs[10])
    tapes.tape(specs[30])
    assert tapes.tape(specs[10]) is first and kept(tapes) == [30, 10]
    tapes.tape(specs[40])
    tapes.tape(specs[20])
    assert kept(tapes) == [30, 10, 40, 20]  # 100 bytes, which is what may be kept
    tapes.tape(RolloutSpec(1))
    assert kept(tapes) == [10, 40, 20, 1]  # the one not used for longest has gone


def test_a_tape_larger_than_all_that_is_kept_stands_alone(tapes):
    tapes.tape(RolloutSpec(10))
    tapes.tape(RolloutSpec(500))
    assert kept(tapes) == [500]


def test_a_rollout_s_own_budget_counts_in_place_of_the_usual_one(tapes):
    tapes.tape(RolloutSpec(60))
    tapes.tape(replace(RolloutSpec(70), memory=Memory(budget=130)))
    assert kept(tapes) == [60, 70]
    tapes.tape(replace(RolloutSpec(50), memory=Memory(budget=130)))
    assert kept(tapes) == [70, 50]


def test_eight_tapes_are_kept_however_small(tapes):
    for steps in range(1, 11):
        tapes.tape(RolloutSpec(steps))
    assert kept(tapes) == list(range(3, 11))


def test_a_plan_is_that_of_the_tape_that_is_there(tapes):
    tape = tapes.tape(RolloutSpec(5))
    assert tapes.plan(RolloutSpec(5)) is tape.plan
    assert tapes.plan(RolloutSpec(6)).bytes == 6 and kept(tapes) == [5]
