"""Typed access to authored values: each read is checked, evaluated at the right time and entered in the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from pxr import Gf, Sdf, Tf, Usd

from warpsim.core.errors import SceneError
from warpsim.io.usd.ledger_scan import Ledger


class AttributeReader:
    """Reads values at one time code, default values first where no time is asked for.

    All methods return None where nothing is authored: fallbacks are the caller's, in SI, not the schema's.
    `mark=False` leaves the ledger alone, for callers that decide later what becomes of the value.
    """

    def __init__(self, ledger: Ledger, time: float | None, values: Mapping[str, Any] | None = None) -> None:
        """Chooses when and what to read.

        Args:
            ledger: Where reads are entered.
            time: Time code; None: the default time.
            values: By "/prim.attribute", what to use in place of the stage's values: numbers, arrays, `Gf` values.
        """
        self.ledger = ledger
        self.time = Usd.TimeCode.Default() if time is None else Usd.TimeCode(time)
        self._values = dict(values or {})

    def given(self, prim: Usd.Prim, name: str) -> Any:
        """The value that stands in for the stage's; None if there is none."""
        return self._values.get(place(prim, name)) if self._values else None

    def value(self, prim: Usd.Prim, name: str, *, mark: bool = True) -> Any:
        """The authored value; one that has only time samples gives its earliest when no time is asked for.

        Raises:
            SceneError: USD cannot read the value as the attribute's type.
        """
        attribute = prim.GetAttribute(name)
        if not attribute or not attribute.HasAuthoredValue():
            return None
        try:
            value = self.given(prim, name)
            if value is None:
                value = attribute.Get(self._time_of(attribute))
        except Tf.ErrorException as error:
            raise SceneError(f"{place(prim, name)}: USD cannot read it ({error}); author it anew") from error
        if value is None:
            raise SceneError(
                f"{place(prim, name)}: the value does not fit the type {attribute.GetTypeName()}; author it anew"
            )
        if mark:
            self.ledger.used(prim, name)
        return value

    def _time_of(self, attribute: Usd.Attribute) -> Usd.TimeCode:
        if not self.time.IsDefault():
            return self.time
        # With samples only, `Get` at the default time would return the schema's fallback.
        has_default = attribute.GetResolveInfo(self.time).GetSource() == Usd.ResolveInfoSourceDefault
        return self.time if has_default else Usd.TimeCode.EarliestTime()

    def number(self, prim: Usd.Prim, name: str, *, mark: bool = True, finite: bool = True) -> float | None:
        """A scalar.

        Raises:
            SceneError: It is no number, or (unless `finite` is False) NaN or infinite.
        """
        value = self.value(prim, name, mark=mark)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise SceneError(f"{place(prim, name)}: a number is needed there, not {value!r}")
        if np.isnan(value) or (finite and not np.isfinite(value)):
            raise SceneError(f"{place(prim, name)}: {value} is not a usable number")
        return float(value)

    def flag(self, prim: Usd.Prim, name: str, default: bool, *, mark: bool = True) -> bool:
        """A bool; `default` where nothing is authored."""
        value = self.value(prim, name, mark=mark)
        if value is None:
            return default
        if not isinstance(value, bool | int):
            raise SceneError(f"{place(prim, name)}: true or false is needed there, not {value!r}")
        return bool(value)

    def token(self, prim: Usd.Prim, name: str, *, choices: tuple[str, ...] | None = None) -> str | None:
        """A token or string, one of `choices` if given."""
        value = self.value(prim, name)
        if value is None:
            return None
        if not isinstance(value, str) or (choices is not None and value not in choices):
            allowed = f"one of {choices}" if choices is not None else "a token"
            raise SceneError(f"{place(prim, name)}: {allowed} is needed there, not {value!r}")
        return value

    def vector(
        self, prim: Usd.Prim, name: str, size: int, *, mark: bool = True, finite: bool = True
    ) -> np.ndarray | None:
        """`size` numbers, from a vector or an array."""
        values = self.array(prim, name, mark=mark, finite=finite)
        if values is not None and values.shape != (size,):
            raise SceneError(f"{place(prim, name)}: {size} numbers are needed there, not {values.shape}")
        return values

    def array(
        self, prim: Usd.Prim, name: str, *, mark: bool = True, finite: bool = True, ndim: int = 1
    ) -> np.ndarray | None:
        """An array of numbers, (n,), or (n, 3) for `ndim` 2."""
        value = self.value(prim, name, mark=mark)
        if value is None:
            return None
        try:
            values = np.array(value, dtype=float)
        except (TypeError, ValueError) as error:
            raise SceneError(f"{place(prim, name)}: numbers are needed there, not {value!r}") from error
        if values.ndim != ndim and values.size:
            raise SceneError(f"{place(prim, name)}: a {ndim}-dimensional array is needed there, not {values.shape}")
        if np.isnan(values).any() or (finite and not np.isfinite(values).all()):
            raise SceneError(f"{place(prim, name)}: {value} holds NaN or infinite numbers")
        return values

    def quaternion(self, prim: Usd.Prim, name: str, *, zero_is_unset: bool = False) -> np.ndarray | None:
        """A unit quaternion (w, x, y, z); float32 values are normalized.

        Args:
            prim: Where to read.
            name: Of the attribute.
            zero_is_unset: (0, 0, 0, 0) means that nothing is authored, instead of being an error.

        Raises:
            SceneError: It is zero or not a quaternion.
        """
        value = self.value(prim, name)
        if value is None:
            return None
        if not isinstance(value, Gf.Quatf | Gf.Quatd | Gf.Quath):
            raise SceneError(f"{place(prim, name)}: a quaternion is needed there, not {value!r}")
        q = np.array([value.GetReal(), *value.GetImaginary()], dtype=float)
        length = np.linalg.norm(q)
        if zero_is_unset and length == 0:
            return None
        if not np.isfinite(length) or length < 1e-6:
            raise SceneError(f"{place(prim, name)}: {value} is no rotation; give a unit quaternion")
        return q / length

    def targets(self, prim: Usd.Prim, name: str) -> list[Sdf.Path]:
        """Prim paths a relationship points at, forwarded; empty where it is not authored."""
        relationship = prim.GetRelationship(name)
        if not relationship or not relationship.HasAuthoredTargets():
            return []
        self.ledger.used(prim, name)
        return list(relationship.GetForwardedTargets())


def place(prim: Usd.Prim, name: str) -> str:
    """How messages call an attribute, e.g. "/World/Ball.physics:mass"."""
    return f"{prim.GetPath()}.{name}"
