"""Fits scenes to measurements: recordings in, values with intervals out."""

from warpsim.identification.fit import identify
from warpsim.identification.outcome import IdentifiedScene
from warpsim.identification.parameter import Parameter
from warpsim.identification.reading import read_recordings
from warpsim.identification.recordings import Recording, Recordings
from warpsim.identification.twin import Estimate, Twin
from warpsim.identification.windows import Windows

__all__ = [
    "Estimate",
    "IdentifiedScene",
    "Parameter",
    "Recording",
    "Recordings",
    "Twin",
    "Windows",
    "identify",
    "read_recordings",
]
