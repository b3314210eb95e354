"""Signs of life between ranks, through torch's store: a rank that stops giving them ends the job.

torchrun sees processes that die; one that is stopped, swapped out or on a machine that is gone looks to it like one
that computes. So each rank counts up a number in the store, and watches that of the next rank: around the ring, the
first silent rank always has a living neighbor.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from typing import Any

from torch.distributed import Store

_DONE, _FAILED = "done", "failed"


class Heartbeat:
    """A thread that says "I live" and watches the next rank."""

    def __init__(self, store: Store, rank: int, size: int, silence: float) -> None:
        """Begins.

        Args:
            store: Of all ranks; a connection of its own.
            rank: This one's.
            size: How many there are.
            silence: s without a sign after which a rank is given up.
        """
        self._store, self._rank, self._size, self._silence = store, rank, size, silence
        self._interval = min(1.0, silence / 5)
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._set("who", f"process {os.getpid()} on {socket.gethostname()}")
        self._set("beat", "0")
        self._thread = threading.Thread(target=self._run, name="warpsim heartbeat", daemon=True)
        self._thread.start()

    def at(self, exchange: str) -> None:
        """Says which exchange this rank has reached."""
        self._set("at", exchange)

    def end(self, error: BaseException | None = None) -> None:
        """Says that this rank has ended, and how."""
        self._over.set()
        self._thread.join()
        try:
            self._set("beat", _DONE if error is None else f"{_FAILED}: {type(error).__name__}: {error}")
        except RuntimeError:  # the store has gone with the rank that held it
            return

    def missing(self, exchange: str) -> list[str]:
        """Who keeps an exchange from being made, each with the reason; looks for as long as two beats take."""
        before = [self._get("beat", rank) for rank in range(self._size)]
        time.sleep(2.5 * self._interval)
        found = []
        for rank in range(self._size):
            beat, where = self._get("beat", rank), self._get("at", rank)
            if beat.startswith(_FAILED):
                found.append(f"{self.name(rank)} {beat}")
            elif rank != self._rank and (beat == before[rank] or beat == ""):
                found.append(f"{self.name(rank)} {'ended' if beat == _DONE else 'died, or hangs'}")
            elif where != exchange:
                found.append(f"{self.name(rank)} has not come to {exchange!r}; it was last seen at {where!r}")
        return found

    def name(self, rank: int) -> str:
        """A rank with its process and machine."""
        return f"rank {rank} ({self._get('who', rank) or 'not joined'})"

    def _run(self) -> None:
        watched = (self._rank + 1) % self._size
        count, seen, since = 0, "", time.monotonic()
        while not self._over.wait(self._interval):
            count += 1
            try:
                self._set("beat", str(count))
                beat = self._get("beat", watched)
            except RuntimeError:  # the store is gone: torchrun has ended the job
                return
            if beat != seen or beat == _DONE or watched == self._rank:
                seen, since = beat, time.monotonic()
            elif time.monotonic() - since > self._silence:
                self._give_up(watched)

    def _give_up(self, watched: int) -> None:
        """Ends the process: its main thread waits in an exchange that will not be made."""
        print(
            f"warpsim: {self.name(watched)} has given no sign of life for {self._silence:g} s: it hangs, or its "
            "machine is gone; the job ends here. With torchrun --max-restarts it goes on from its last checkpoint.",
            file=sys.__stderr__,
            flush=True,
        )
        os._exit(1)

    def _set(self, what: str, value: str) -> None:
        with self._lock:
            self._store.set(f"{what}/{self._rank}", value)

    def _get(self, what: str, rank: int) -> str:
        """Empty where that rank has said nothing yet."""
        key, store = f"{what}/{rank}", self._store
        with self._lock:
            found: Any = store.get(key) if store.check([key]) else b""
        return found.decode()
