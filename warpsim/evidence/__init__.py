"""Evidence of a run: one record that says what went in, what came out, how, and what is wrong with it."""

from warpsim.evidence.compare import Comparison, compare
from warpsim.evidence.labels import LABELS, Label, label
from warpsim.evidence.record import RunRecord, blamed, read_record
from warpsim.evidence.replay import Replay, replay
from warpsim.evidence.run import record_run

__all__ = [
    "LABELS",
    "Comparison",
    "Label",
    "Replay",
    "RunRecord",
    "blamed",
    "compare",
    "label",
    "read_record",
    "record_run",
    "replay",
]
