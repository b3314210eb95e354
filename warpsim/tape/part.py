"""One rollout as seen by one group of worlds: its inputs, checkpoints, kept frames and how far it has come."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from warpsim.tape import frames
from warpsim.tape.inputs import Feed
from warpsim.tape.schedule import Plan
from warpsim.tape.snapshots import Snapshots
from warpsim.tape.storage import Checkpoints


@dataclass
class Keep:
    """Kept frames of a trajectory: states at steps 0, e, 2e …, and outputs of the steps that lead to them.

    Attributes:
        every: e, steps between kept frames.
        states: Blocks of (steps // e + 1) frames, for the fields that are kept.
        outputs: Blocks of (steps // e) frames, for the fields that are kept.
    """

    every: int = 1
    states: frames.Blocks = field(default_factory=dict)
    outputs: frames.Blocks = field(default_factory=dict)

    def worlds(self, worlds: range) -> Keep:
        """The same for a range of worlds."""
        return Keep(self.every, frames.worlds_of(self.states, worlds), frames.worlds_of(self.outputs, worlds))

    def start(self, states: frames.Blocks) -> None:
        """Keeps the initial state, in frame 0 of `states`."""
        for name, block in self.states.items():
            block.copy_from(0, states[name], 0, 1)

    def take(self, step: int, slot: int, count: int, states: frames.Blocks, outputs: frames.Blocks) -> None:
        """Keeps what `count` steps from `step` on, made in slots from `slot` on, have produced."""
        if not self.states and not self.outputs:
            return
        skipped = (-(step + 1)) % self.every  # steps before the first one that leads to a kept state
        kept = (count - skipped + self.every - 1) // self.every
        if kept <= 0:
            return
        frame = (step + 1 + skipped) // self.every
        for name, block in self.states.items():
            block.copy_from(frame, states[name], slot + skipped + 1, kept, self.every)
        for name, block in self.outputs.items():
            block.copy_from(frame - 1, outputs[name], slot + skipped, kept, self.every)


@dataclass(eq=False)
class Part:
    """The share of one group of worlds in a run.

    Attributes:
        plan: How the run is cut.
        feed: Its inputs.
        checkpoints: Frames of states: frame 0 the initial state, the last frame the state reached, snapshots between.
        keep: Kept frames of the trajectory.
        differentiate: Whether a backward pass will follow.
        finite: Whether to stop at states and adjoints that are not finite.
        checksums: (segments,) CRC of the inputs that each segment read, filled by the forward pass.
        step: Steps taken so far.
        token: Stands for this part where a reference to it would keep its arrays alive.
        snapshots: Which of the frames hold the starts of which segments.
    """

    plan: Plan
    feed: Feed
    checkpoints: Checkpoints
    keep: Keep
    differentiate: bool
    finite: bool
    step: int = 0
    token: object = field(default_factory=object)

    def __post_init__(self) -> None:
        self.checksums = np.zeros(self.plan.segments, dtype=np.uint32)
        self.snapshots = Snapshots(self.plan)

    @property
    def reached_frame(self) -> int:
        """Frame of the state reached so far."""
        return self.plan.snapshots if self.step else 0

    def next_store(self) -> int:
        """The segment whose start the forward pass is to store next, or -1 for none."""
        return self.snapshots.next_store() if self.differentiate else -1

    def push(self, segment: int, states: frames.Packed, slot: int = 0) -> None:
        """Makes a snapshot of a slot, the start of `segment`."""
        self.checkpoints.save(self.snapshots.push(segment), states, slot)

    def take_up(self, other: Part) -> None:
        """Goes on where the same run, of other slots, has come to: with its states, its snapshots if cuts are alike."""
        theirs = other.checkpoints.states
        self.step = other.step
        self.checkpoints.save(0, theirs, 0)
        if self.step:
            self.checkpoints.save(self.reached_frame, theirs, other.reached_frame)
        if self.plan.cuts == other.plan.cuts:
            for segment, frame in zip(other.snapshots.stored[1:], other.snapshots.frames[1:], strict=True):
                self.push(segment, theirs, frame)
            self.snapshots.taken_up = other.snapshots.taken_up
        elif self.step:
            self.snapshots.taken_up = self.plan.segment_of(self.step - 1) + 1
