"""`Ranks`: the processes of a job, what they exchange, and who they are.

Every rank runs the same program on the same numbers; only the rollouts are divided. What the ranks computed is gathered
and laid out by world, so that whatever follows (a sum, an optimizer's update) is the same operation on the same array
for any number of ranks.
"""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from os import PathLike
from typing import Any, TypeVar

import torch
import torch.distributed as dist

from warpsim.parallel.blocks import DEFAULT_BLOCKS, Blocks, blocks_of
from warpsim.parallel.errors import RankError
from warpsim.parallel.heartbeat import Heartbeat
from warpsim.parallel.identity import difference, identity
from warpsim.parallel.sent_error import SentError

T = TypeVar("T")

TIMEOUT = 1800.0
"""s that an exchange waits for a rank which gives signs of life."""
SILENCE = 30.0
"""s without a sign of life after which a rank is given up."""
JOINING = 120.0
"""s that ranks wait for each other at the beginning."""

_current: list[Ranks | None] = [None]


class Ranks:
    """The processes of a job, seen from one of them.

    Attributes:
        rank: This one's number, from 0.
        size: How many there are.
        blocks: Into how many blocks worlds are divided at most; the same bits need the same number.
        restarts: How often the job was begun again after a failure.
        worlds: Rollouts made here so far, one world each.
        busy: s spent in them.
        received: Bytes that came from other ranks.
    """

    def __init__(self, rank: int, size: int, heartbeat: Heartbeat, *, blocks: int, timeout: float) -> None:
        self.rank, self.size, self.blocks = rank, size, blocks
        self.restarts = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
        self.worlds, self.busy, self.received = 0, 0.0, 0
        self._heartbeat, self._timeout, self._exchanges = heartbeat, timeout, 0

    @property
    def first(self) -> bool:
        """Whether this is rank 0, which alone writes and prints."""
        return self.rank == 0

    def divided(self, count: int) -> Blocks:
        """So many worlds in blocks."""
        return blocks_of(count, self.blocks)

    def shares(self, count: int) -> str:
        """Who steps how many of so many worlds, in words."""
        counts = self.divided(count).counts(self.size)
        if count == 1:
            return f"{self.size} ranks, but one world: there is nothing to shard, rank 0 does it all"
        each = ", ".join(f"rank {rank}: {n}" for rank, n in enumerate(counts))
        return f"{count} worlds over {self.size} ranks: {each}"

    def gather(self, value: T, what: str) -> list[T]:
        """What each rank gives, by rank; anything that can be pickled.

        Args:
            value: Of this rank.
            what: Names the exchange in messages.
        """
        found: list[Any] = [None] * self.size
        self._exchange(what, lambda: dist.all_gather_object(found, value))
        self.received += (self.size - 1) * len(pickle.dumps(value))
        return found

    def gather_tensors(self, value: torch.Tensor, counts: list[int], what: str) -> torch.Tensor:
        """Rows of all ranks, in the order of ranks.

        Args:
            value: (counts[rank], …) of this rank.
            counts: Of each rank.
            what: Names the exchange in messages.
        """
        padded = value.new_zeros(max(counts), *value.shape[1:], device="cpu")
        padded[: len(value)] = value
        found = [torch.empty_like(padded) for _ in counts]
        self._exchange(what, lambda: dist.all_gather(found, padded))
        self.received += (self.size - 1) * padded.nbytes
        return torch.cat([part[:count] for part, count in zip(found, counts, strict=True)]).to(value.device)

    def from_first(self, make: Callable[[], T], what: str) -> T:
        """What rank 0 makes, on all ranks; an error of rank 0 is one of all.

        Args:
            make: Called on rank 0 alone.
            what: Names the exchange in messages.
        """
        made: list[Any] = [None, None]
        if self.first:
            try:
                made[0] = make()
            except Exception as error:
                made[1] = SentError.of(error)
        self._exchange(what, lambda: dist.broadcast_object_list(made, src=0))
        if made[1] is not None:
            raise made[1].error()
        return made[0]

    def summary(self) -> list[str]:
        """What each rank did, one line each; called on all."""
        done = self.gather((self.worlds, self.busy), "summary")
        total = sum(worlds for worlds, _ in done)
        lines = [f"rank {rank}: {n} worlds rolled out in {busy:.3g} s" for rank, (n, busy) in enumerate(done)]
        return [*lines, f"{self.size} ranks: {total} worlds rolled out"]

    def _exchange(self, what: str, call: Callable[[], Any]) -> None:
        self._exchanges += 1
        name = f"exchange {self._exchanges}: {what}"
        self._heartbeat.at(name)
        began = time.monotonic()
        try:
            call()
        except RuntimeError as error:
            waited = time.monotonic() - began
            who = "; ".join(self._heartbeat.missing(name)) or "no rank is missing now"
            raise RankError(f"{name} failed after {waited:.0f} s: {who}\n{str(error).splitlines()[0]}") from error


def current() -> Ranks | None:
    """The ranks that this process has joined; None: it works alone."""
    return _current[-1]


def by_first(make: Callable[[], T], what: str) -> T:
    """What this process makes, or, among several ranks, what the first of them does: a clock's time, a file's content.

    Args:
        make: Called once; on rank 0 alone where there are several.
        what: Names the exchange in messages.
    """
    ranks = current()
    return make() if ranks is None else ranks.from_first(make, what)


@contextmanager
def alone() -> Iterator[None]:
    """While open, this process computes for itself, whatever the other ranks do."""
    _current.append(None)
    try:
        yield
    finally:
        _current.pop()


@contextmanager
def join(
    files: Iterable[str | PathLike[str]] = (),
    *,
    blocks: int = DEFAULT_BLOCKS,
    timeout: float = TIMEOUT,
    silence: float = SILENCE,
    joining: float = JOINING,
    same: Mapping[str, str] | None = None,
) -> Iterator[Ranks]:
    """Joins the other processes that `torchrun` started; while open, worlds are divided among them.

    Args:
        files: Scenes and data, which must be the same on all ranks.
        blocks: Into how many blocks worlds are divided at most. Results depend on it in the last bits; not on ranks.
        timeout: s that an exchange waits for a rank that gives signs of life.
        silence: s without a sign of life after which a rank is given up and the job ends.
        joining: s that ranks wait for each other at the beginning.
        same: What else must be the same on all ranks, by name.

    Raises:
        RankError: Not all ranks came, or one has another warpsim, library or file; says which.
    """
    missing = [name for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT") if name not in os.environ]
    if missing:
        raise RankError(f"{', '.join(missing)} is not set; start with torchrun --standalone --nproc-per-node N …")
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    store = _connected(rank, size, joining, timeout)
    heartbeat = Heartbeat(dist.PrefixStore("warpsim", store), rank, size, silence)
    ranks = Ranks(rank, size, heartbeat, blocks=blocks, timeout=timeout)
    failure: BaseException | None = None
    try:
        _admit(ranks, identity(files, {**(same or {}), "blocks": str(blocks)}))
        _current.append(ranks)
        try:
            yield ranks
        finally:
            _current.pop()
    except BaseException as error:
        failure = error
        raise
    finally:
        heartbeat.end(failure)
        if failure is None:
            dist.barrier()  # the rank that holds the store leaves last
        dist.destroy_process_group()


def _connected(rank: int, size: int, joining: float, timeout: float) -> dist.Store:
    """Torch's process group, gloo for processors (and nccl for CUDA), and the store it was made with."""
    wait = timedelta(seconds=joining)
    try:
        shared, _, _ = next(dist.rendezvous("env://", timeout=wait))
        # torchrun's agent keeps the store over restarts, with the addresses of ranks that are gone
        store = dist.PrefixStore(f"attempt/{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", shared)
        store.set_timeout(wait)
        here = dist.PrefixStore("joining", store)
        here.set(f"rank/{rank}", "here")
        absent = _absent(here, size, joining)
        if absent:
            raise RankError(
                f"rank {rank}: {', '.join(f'rank {other}' for other in absent)} of {size} did not join within "
                f"{joining:g} s; look at what these printed, and at the firewall between the machines"
            )
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
        dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=timedelta(seconds=timeout))
    except RuntimeError as error:
        raise RankError(
            f"rank {rank} of {size} cannot reach {os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']} within "
            f"{joining:g} s: {str(error).splitlines()[0]}; with several machines give --rdzv-endpoint=HOST:PORT of one "
            "that all can reach"
        ) from error
    return store


def _absent(store: dist.Store, size: int, joining: float) -> list[int]:
    """Ranks that have not come after so many seconds."""
    until = time.monotonic() + joining
    waiting = list(range(size))
    while waiting and time.monotonic() < until:
        waiting = [other for other in waiting if not store.check([f"rank/{other}"])]
        if waiting:
            time.sleep(0.02)
    return waiting


def _admit(ranks: Ranks, mine: Mapping[str, str]) -> None:
    """Raises on all ranks if one of them differs from rank 0."""
    everyone = ranks.gather(mine, "joining")
    refused = {rank: difference(everyone[0], other) for rank, other in enumerate(everyone)}
    reasons = [f"rank {rank} has {why}" for rank, why in refused.items() if why is not None]
    if reasons:
        raise RankError(
            f"{'; '.join(reasons)}: all ranks must run the same warpsim on the same files; install and copy them alike"
        )
