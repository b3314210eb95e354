"""Evidence of a run: one record that says what went in, what came out, how, and what is wrong with it."""

from warpsim.check.records.compare import Comparison, compare
from warpsim.check.records.labels import LABELS, Label, label
from warpsim.check.records.record import RunRecord, blamed, read_record
from warpsim.check.records.replay import Replay, replay
from warpsim.check.records.run import record_run

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
