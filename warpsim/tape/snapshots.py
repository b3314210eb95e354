"""Which segment starts of a rollout are stored, and where: the memory of a schedule, whatever a state is made of.

A tape stores frames of packed arrays, a closed loop with a policy in torch stores tensors; which starts they hold, when
one is stored and when its frame is free again is the same.
"""

from __future__ import annotations

import bisect
from array import array

from warpsim.tape import revolve
from warpsim.tape.schedule import Plan


class Snapshots:
    """A stack of stored segment starts, ascending, over the frames that a plan allows; segment 0 is always stored.

    Attributes:
        stored: The segments whose starts are stored.
        frames: Where; frame 0 holds the initial state.
        free: Frames that hold no snapshot.
        taken_up: The first segment whose start a rollout that came from elsewhere can still store.
    """

    def __init__(self, plan: Plan) -> None:
        """Only the initial state is stored."""
        self._segments = plan.segments
        self.stored, self.frames = array("q", [0]), array("q", [0])
        self.free = array("q", range(plan.snapshots - 1, 0, -1))
        self.taken_up = 0

    @property
    def complete(self) -> bool:
        """Whether all starts are stored at once: then none is ever computed again."""
        return len(self.stored) == self._segments

    def next_store(self) -> int:
        """The segment whose start the forward pass is to store next, or -1 for none."""
        last, newest = self._segments - 1, self.stored[-1]
        if not self.free or newest == last or self.taken_up > last:
            return -1
        if newest < self.taken_up:  # what lies between is computed again on the way back
            return self.taken_up
        return newest + revolve.split(last - newest + 1, 1 + len(self.free))

    def push(self, segment: int) -> int:
        """A frame for the start of `segment`, which from now on is the newest."""
        frame = self.free.pop()
        self.stored.append(segment)
        self.frames.append(frame)
        return frame

    def pop(self) -> None:
        """Frees the newest."""
        self.stored.pop()
        self.free.append(self.frames.pop())

    def nearest(self, segment: int) -> tuple[int, int]:
        """The newest (segment, frame) at or before `segment`."""
        i = bisect.bisect_right(self.stored, segment) - 1
        return self.stored[i], self.frames[i]
