"""USD's real-valued types: their numbers as float64 arrays, and back."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from pxr import Gf, Usd

_PRECISION = {"double": np.float64, "float": np.float32, "half": np.float16}
_SCALAR = re.compile(r"(double|float|half|(?:pxr_half::)?half|GfHalf)$")
_GF = re.compile(r"Gf(Vec|Quat|Matrix)([234]?)([dfh])$")
_LETTER = {"d": np.float64, "f": np.float32, "h": np.float16}


@dataclass(frozen=True)
class ValueType:
    """How an attribute stores its numbers.

    Attributes:
        name: USD's name of the type, e.g. "vector3f".
        scalar: NumPy type of one stored number.
        family: "number", "vector", "quaternion" (real part first), "matrix", "array" (of numbers), or "uniform" (a
            vector of three equal numbers, handled as one).
    """

    name: str
    scalar: Any
    family: str

    def numbers(self, value: Any) -> np.ndarray:
        """A USD value as float64: (), (n,) or (4, 4)."""
        if self.family == "quaternion":
            return np.array([value.GetReal(), *value.GetImaginary()], dtype=np.float64)
        if self.family == "uniform":
            return np.array(value[0], dtype=np.float64)
        return np.array(value, dtype=np.float64)

    def rounded(self, numbers: np.ndarray) -> np.ndarray:
        """What the type keeps of the numbers, as float64."""
        return np.asarray(numbers, dtype=np.float64).astype(self.scalar).astype(np.float64)

    def stored(self, numbers: np.ndarray) -> np.ndarray:
        """The numbers in the shape of the USD value."""
        return np.full(3, numbers) if self.family == "uniform" else np.asarray(numbers)

    def exact(self, numbers: np.ndarray) -> Any:
        """The numbers as a reader takes them, in double precision."""
        if self.family == "number":
            return float(numbers)
        if self.family == "quaternion":
            return Gf.Quatd(*map(float, numbers))
        if self.family == "matrix":
            return Gf.Matrix4d(*map(float, np.ravel(numbers)))
        return [float(number) for number in self.stored(numbers)]


def value_type(attribute: Usd.Attribute) -> ValueType | None:
    """The type of an attribute's value; None if it does not hold real numbers that could vary one by one."""
    type_name = attribute.GetTypeName()
    name, cpp = str(type_name), type_name.cppTypeName
    if type_name.isArray:
        item = _scalar(type_name.scalarType.cppTypeName)
        return None if item is None else ValueType(name, item, "array")
    scalar = _scalar(cpp)
    if scalar is not None:
        return ValueType(name, scalar, "number")
    found = _GF.match(cpp)
    if found is None or (found[1] == "Matrix" and found[2] != "4"):
        return None
    return ValueType(name, _LETTER[found[3]], {"Vec": "vector", "Quat": "quaternion", "Matrix": "matrix"}[found[1]])


def _scalar(cpp: str) -> Any:
    return _PRECISION.get({"GfHalf": "half", "pxr_half::half": "half"}.get(cpp, cpp)) if _SCALAR.match(cpp) else None
