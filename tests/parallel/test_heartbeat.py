"""Who keeps an exchange from being made, in words; with a store that is a dictionary, and no processes."""

from __future__ import annotations

import os
import time

import pytest

from warpsim.parallel import heartbeat
from warpsim.parallel.errors import RankError
from warpsim.parallel.heartbeat import Heartbeat
from warpsim.parallel.identity import difference
from warpsim.parallel.ranks import Ranks
from warpsim.parallel.sent_error import SentError


class Store(dict):
    """What of torch's store is used."""

    def set(self, key: str, value: str) -> None:
        self[key] = value.encode()

    def check(self, keys: list[str]) -> bool:
        return all(key in self for key in keys)

    def get(self, key: str) -> bytes:
        return self[key]


class Quiet(Heartbeat):
    """One whose thread does nothing, so that tests say what beats there are."""

    def _run(self) -> None:
        return


@pytest.fixture
def quick(monkeypatch) -> list:
    """Nobody sleeps; called instead of sleeping."""
    calls = []
    monkeypatch.setattr(heartbeat.time, "sleep", lambda seconds: [call(seconds) for call in calls])
    return calls


def test_every_reason_for_which_a_rank_may_be_missing(quick):
    store = Store()
    ranks = [Quiet(store, rank, 6, 30.0) for rank in range(5)]  # the sixth never came
    for rank in (0, 2, 4):
        ranks[rank].at("exchange 3")
    ranks[1].at("exchange 2")
    ranks[3].at("exchange 3")
    ranks[3].end()
    slept = []

    def beat(seconds: float) -> None:
        slept.append(seconds)
        for rank in (1, 4):
            store.set(f"beat/{rank}", "5")

    quick.append(beat)
    found = ranks[0].missing("exchange 3")
    process = f"process {os.getpid()} on"
    assert [text.partition(" (")[0] for text in found] == ["rank 1", "rank 2", "rank 3", "rank 5"]
    assert (
        f"rank 1 ({process}" in found[0]
        and "has not come to 'exchange 3'; it was last seen at 'exchange 2'" in found[0]
    )
    assert found[1].endswith("died, or hangs") and found[2].endswith(" ended")
    assert found[3] == "rank 5 (not joined) died, or hangs"
    assert slept == [2.5]  # two beats of 1 s, and a little more
    quick[:] = [lambda seconds: [store.set(f"beat/{rank}", "6") for rank in (1, 2)]]
    ranks[4].end(ZeroDivisionError("no such place"))
    assert any(text.endswith("failed: ZeroDivisionError: no such place") for text in ranks[0].missing("exchange 3"))


def test_beats_come_five_times_within_the_silence_and_at_least_each_second():
    assert Quiet(Store(), 0, 2, 30.0)._interval == 1.0
    assert Quiet(Store(), 0, 2, 2.0)._interval == pytest.approx(0.4)


def test_the_next_rank_around_the_ring_is_given_up_after_its_silence(monkeypatch):
    given_up = []

    class Watching(Heartbeat):
        def _give_up(self, watched: int) -> None:
            given_up.append((self._rank, watched, time.monotonic()))
            self._over.set()

    store = Store()
    began = time.monotonic()
    last = Watching(store, 2, 3, 0.25)
    store.set("beat/0", "1")  # and never again
    last._thread.join(20.0)
    ((rank, watched, when),) = given_up
    assert (rank, watched) == (2, 0) and when - began > 0.25
    assert int(store["beat/2"]) >= 1


def test_a_rank_that_is_done_and_a_job_of_one_are_not_given_up():
    class Watching(Heartbeat):
        def _give_up(self, watched: int) -> None:
            raise AssertionError(watched)

    for size, rank in ((2, 0), (1, 0)):
        store = Store()
        store.set(f"beat/{(rank + 1) % size}", "done")
        beat = Watching(store, rank, size, 0.05)
        time.sleep(0.3)
        assert beat._thread.is_alive()
        beat.end()
        assert store[f"beat/{rank}"] == b"done"


def test_an_exchange_that_fails_says_who_is_missing(quick):
    store = Store()
    beat = Quiet(store, 1, 2, 30.0)
    ranks = Ranks(1, 2, beat, blocks=4, timeout=1.0)
    ranks._exchange("weights", lambda: None)

    def broken() -> None:
        raise RuntimeError("connection reset\nby peer")

    with pytest.raises(RankError, match="exchange 2: gradients failed after 0 s: rank 0") as caught:
        ranks._exchange("gradients", broken)
    assert str(caught.value).endswith("connection reset")
    assert store["at/1"] == b"exchange 2: gradients" and not ranks.first


def test_shares_are_told_in_words():
    ranks = Ranks(0, 3, Quiet(Store(), 0, 3, 30.0), blocks=6, timeout=1.0)
    assert ranks.first and ranks.shares(12) == "12 worlds over 3 ranks: rank 0: 4, rank 1: 4, rank 2: 4"
    assert ranks.shares(1).startswith("3 ranks, but one world")


def test_what_differs_between_ranks_is_named_or_nothing_is():
    mine = {"torch": "2.9", "warp": "1.8"}
    assert difference(mine, dict(mine)) is None
    assert difference(mine, {"torch": "2.9", "warp": "1.9"}) == "warp 1.9, rank 0 has 1.8"
    assert difference(mine, {"torch": "2.9"}) == "warp none, rank 0 has 1.8"
    assert difference({}, {"file a.usda": "0f"}) == "file a.usda 0f, rank 0 has none"


def test_an_error_that_was_sent_is_the_same_error():
    class Needy(Exception):
        def __init__(self, message: str, *, step: int) -> None:
            super().__init__(message, object)
            self.step, self.held = step, object()

    error = Needy("too far", step=4)
    error.add_note("in world 3")
    made = SentError.of(error).error()
    assert type(made) is Needy and made.args == ("too far", str(object)) and made.step == 4
    assert made.__notes__ == ["in world 3"] and not hasattr(made, "held")
