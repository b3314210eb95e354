"""`JobPlan`: what an update over ranks takes, from the cost of one block of worlds: memory, exchange and time.

An update is one call of `worlds_over_ranks` and its gradient: each rank computes the blocks that are its own, and every
rank receives what all computed, world by world.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from warpsim.parallel.blocks import Blocks
from warpsim.tape.budget import readable

REPORT_BYTES = 150
"""Of what a rank says before numbers are exchanged, about; twice an update."""
EXCHANGES = 6
"""Collective operations of an update: sizes, reports and numbers, forward and backward."""
_NUMBER = 8


@dataclass(frozen=True)
class Network:
    """What connects the ranks.

    Attributes:
        latency: s that a message takes at least.
        bandwidth: Bytes a second, of each rank's link.
    """

    latency: float = 50e-6
    bandwidth: float = 1.25e9


@dataclass(frozen=True)
class BlockCost:
    """What one block of worlds takes on one core.

    Attributes:
        gradient: s of a rollout and its gradient, where the tape still holds the rollout.
        again: s to come back to a rollout that another block has pushed out of the tape.
        process: Bytes of a process that has made the simulator.
        tape: Bytes of the tape's slots, graphs and checkpoints.
        kept: Bytes kept of each further open rollout: its trajectory, inputs and checkpoints.
    """

    gradient: float
    again: float
    process: int
    tape: int
    kept: int


@dataclass(frozen=True)
class Share:
    """An update over some ranks.

    Attributes:
        ranks: How many.
        blocks: Of the rank that has most.
        memory: Bytes of that rank.
        received: Bytes that each rank receives in an update.
        computing: s that the rank with most blocks computes.
        exchanging: s of the exchange.
        speedup: Over one rank.
    """

    ranks: int
    blocks: int
    memory: int
    received: int
    computing: float
    exchanging: float
    speedup: float

    @property
    def time(self) -> float:
        """s of an update."""
        return self.computing + self.exchanging

    @property
    def efficiency(self) -> float:
        """Share of its time that a rank computes something that one rank alone would have to compute."""
        return self.speedup / self.ranks


@dataclass(frozen=True)
class JobPlan:
    """An update over any number of ranks; print it.

    Attributes:
        title: What is computed, in words.
        blocks: Of worlds.
        numbers: Of each world, whose gradient is gathered.
        ranks: That were asked for.
        cost: Of a block.
        network: Between ranks.
    """

    title: str
    blocks: Blocks
    numbers: int
    ranks: int
    cost: BlockCost
    network: Network

    def share(self, ranks: int) -> Share:
        """An update over so many ranks."""
        alone = self._time(1)
        most = max(len(self.blocks.of_rank(rank, ranks)) for rank in range(ranks))
        computing, exchanging = self._time(ranks)
        speedup = sum(alone) / (computing + exchanging)
        return Share(ranks, most, self._memory(most), self.received(ranks), computing, exchanging, speedup)

    def received(self, ranks: int) -> int:
        """Bytes that each rank receives in an update: losses and gradients of the other ranks' worlds, and reports.

        Every rank sends as many rows as the one with most worlds.
        """
        rows = max(self.blocks.counts(ranks))
        return (ranks - 1) * (rows * (1 + self.numbers) * _NUMBER + 2 * REPORT_BYTES)

    def reduced(self, ranks: int) -> int:
        """Bytes that a rank would receive if sums of blocks went up and down a tree, for inputs that worlds share."""
        return 2 * max(ranks - 1, 0).bit_length() * (1 + self.numbers) * _NUMBER

    def table(self) -> list[Share]:
        """One rank, two, four … and those asked for; beyond the blocks no further."""
        counts = {self.ranks}
        ranks = 1
        while ranks <= max(self.ranks, self.blocks.number):
            counts.add(ranks)
            ranks *= 2
        return [self.share(count) for count in sorted(counts)]

    def best(self) -> Share:
        """Of all numbers of ranks, up to one for each block, the quickest."""
        return min((self.share(count) for count in range(1, self.blocks.number + 1)), key=lambda share: share.time)

    def last_worthwhile(self) -> Share:
        """The most ranks of which each is used for at least half its time."""
        return max(
            (share for count in range(1, self.blocks.number + 1) if (share := self.share(count)).efficiency >= 0.5),
            key=lambda share: share.ranks,
        )

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _time(self, ranks: int) -> tuple[float, float]:
        """s of computing and of exchanging."""
        most = max(len(self.blocks.of_rank(rank, ranks)) for rank in range(ranks))
        computing = most * self.cost.gradient + max(most - 1, 0) * self.cost.again
        if ranks == 1:
            return computing, 0.0
        hops = EXCHANGES * (ranks - 1) * self.network.latency  # all_gather goes around a ring
        return computing, hops + self.received(ranks) / self.network.bandwidth

    def _memory(self, blocks: int) -> int:
        gathered = 3 * self.blocks.count * (1 + self.numbers) * _NUMBER  # rows, their parts on the way, the result
        return self.cost.process + self.cost.tape + max(blocks - 1, 0) * self.cost.kept + gathered

    def _lines(self) -> Iterator[str]:
        yield f"{self.title}: {self.blocks.count} worlds in {self.blocks.number} blocks of {self.blocks.size}"
        yield (
            f"a block takes {self.cost.gradient:.4g} s for a rollout and its gradient, and {self.cost.again:.4g} s "
            f"more where a rank has several; {self.numbers} numbers a world are exchanged"
        )
        yield (
            f"network: {1e6 * self.network.latency:g} µs, {readable(int(self.network.bandwidth))}/s (--latency, "
            "--bandwidth)"
        )
        yield from _columns(self.table())
        best, last = self.best(), self.last_worthwhile()
        yield (
            f"it stops scaling at {best.ranks} ranks ({best.speedup:.3g} times as fast as one, {best.time:.3g} s); "
            f"up to {last.ranks} each is busy at least half its time"
        )
        if self.ranks > self.blocks.number:
            yield (
                f"{self.ranks} ranks, but {self.blocks.number} blocks: {self.ranks - self.blocks.number} ranks have "
                f"nothing to do; set WARPSIM_BLOCKS={self.ranks} (--blocks here)"
            )


def _columns(shares: Sequence[Share]) -> Iterator[str]:
    head = ("ranks", "blocks", "memory", "received", "computing", "exchanging", "speedup", "efficiency")
    rows = [head]
    for share in shares:
        rows.append(
            (
                f"{share.ranks}",
                f"{share.blocks}",
                readable(share.memory),
                readable(share.received),
                f"{share.computing:.4g} s",
                f"{share.exchanging:.3g} s",
                f"{share.speedup:.3g}",
                f"{100 * share.efficiency:.0f} %",
            )
        )
    widths = [max(len(row[k]) for row in rows) for k in range(len(head))]
    for row in rows:
        yield "  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True))
