"""Variables of an optimization: USD attributes behind one flat vector of unconstrained numbers.

A `Variable` is one value for one attribute or for several at once (a group), with bounds. Bounds are kept by a smooth
change of variable (or handed to a method that projects); `Variables` packs several into the vector x an optimizer sees.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from warpsim.core.errors import InputError
from warpsim.io.usd.writer import OptimizedValue
from warpsim.optimizers.plain_problem import PlainVariables
from warpsim.sim.attributes.attribute import Attribute

_AT_BOUND = 1e-6
"""How near plain variables come to a bound that a change of variable keeps and never gets to, in units of the start's
distance from it."""


class Variable:
    """One value, shared by all its attributes, as a smooth function of unconstrained numbers x of about unit size.

    With a = `scale`, v₀ = `start`, bounds l and u, each component of the value is

    - scale · x without bounds (and with `projected` ones)
    - l + (v₀ − l)·exp(a·x) above a bound (0 if `positive`), u − (u − v₀)·exp(a·x) below one
    - l + (u − l)·sigmoid(a·x) between two.

    Attributes:
        attributes: What takes the value.
        shape: Of the value: the attributes', with `worlds` in front if each world has its own.
        components: (n,) places of the flat value that vary; the others stay at `start`.
        worlds: How many worlds have a value of their own; None: all share one.
        lower: (n,) bounds of x, −inf where the change of variable keeps them; without bounds of its own a variable has
            those of its attributes, such as 0 for friction.
        upper: (n,) likewise.
    """

    def __init__(
        self,
        attributes: Attribute | Sequence[Attribute],
        *,
        lower: Any = None,
        upper: Any = None,
        positive: bool = False,
        scale: Any = 1.0,
        start: Any = None,
        components: Sequence[int] | None = None,
        worlds: int | None = None,
        projected: bool = False,
    ) -> None:
        """Describes a variable.

        Args:
            attributes: One handle, or several of one shape and unit that share the value.
            lower: Least value, in USD units, a number or one per component; None or −inf: none.
            upper: Largest value, likewise.
            positive: The value stays above 0 (or above `lower`, if that is larger).
            scale: By how much the value (in USD units) changes when x changes by one; with bounds a pure number.
            start: Value at the start; None: the attributes' own, or the mean of several.
            components: Places that vary, in the flattened value; None: all.
            worlds: Each of so many worlds gets its own value; None: all share one.
            projected: Bounds are left to the optimizer, as `Variables.lower` and `upper`.
        """
        self.attributes = (attributes,) if isinstance(attributes, Attribute) else tuple(attributes)
        self._check_group()
        own = self.attributes[0].shape
        self.shape = own if worlds is None else (worlds, *own)
        self.worlds = worlds
        low = _numbers(self, "lower", -np.inf if lower is None else lower, own)
        high = _numbers(self, "upper", np.inf if upper is None else upper, own)
        low = np.maximum(low, 0.0) if positive else low
        given = np.mean([a.numbers for a in self.attributes], axis=0) if start is None else start
        first = _numbers(self, "start", given, own)
        steps = _numbers(self, "scale", scale, own)
        self.components = np.arange(first.size) if components is None else np.asarray(components, dtype=np.intp)
        self._start = first
        self._check_numbers(first, low, high, steps, projected)
        chosen = self.components
        self._low, self._high = (torch.tensor(side.ravel()[chosen]) for side in (low, high))
        self._first = torch.tensor(first.ravel()[chosen])
        self._scale = torch.tensor(steps.ravel()[chosen])
        self._projected = projected
        self._below = torch.isfinite(self._low) & (not projected)
        self._above = torch.isfinite(self._high) & (not projected)
        # The start's distance from the nearer bound, one where there is none.
        rooms = torch.stack([self._first - self._low, self._high - self._first])
        self._unit = torch.where(self._below | self._above, rooms.min(0).values, 1.0)
        self.lower, self.upper = self._projected_bounds()

    def _check_group(self) -> None:
        if not self.attributes:
            raise InputError("a variable needs at least one attribute")
        first = self.attributes[0]
        for other in self.attributes[1:]:
            if (other.shape, other.unit) != (first.shape, first.unit):
                raise InputError(
                    f"{other.path} {other.shape} {other.unit!r} cannot share a value with {first.path} {first.shape} "
                    f"{first.unit!r}: shapes and units must be equal"
                )

    def _check_numbers(
        self, first: np.ndarray, low: np.ndarray, high: np.ndarray, steps: np.ndarray, projected: bool
    ) -> None:
        if self.components.size == 0 or not (0 <= self.components.min() <= self.components.max() < first.size):
            raise InputError(f"{self.label}: components={self.components.tolist()} of a value of {first.size}")
        if not (low < high).all():
            raise InputError(f"{self.label}: lower={low.tolist()} must be below upper={high.tolist()}")
        if not (steps > 0).all():
            raise InputError(f"{self.label}: scale={steps.tolist()} must be above 0")
        for attribute in self.attributes:
            if (high < attribute.lower).any() or (low > attribute.upper).any():
                raise InputError(f"{attribute.path}: no value within the bounds is possible for it")
        chosen = np.zeros(first.size, bool)
        chosen[self.components] = True
        inside = (low <= first) & (first <= high) if projected else (low < first) & (first < high)
        if not inside.ravel()[chosen].all():
            raise InputError(
                f"{self.label} starts at {first.tolist()}, which is not {'' if projected else 'strictly '}within "
                f"lower={low.tolist()} and upper={high.tolist()}; give start=, or wider bounds"
            )

    def _projected_bounds(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Bounds of x that methods keep: those of projected components, and the attribute's own of unbounded ones."""
        open_ended = torch.full_like(self._low, torch.inf)
        low, high = (self._low, self._high) if self._projected else (-open_ended, open_ended)
        plain = ~(self._below | self._above)
        for attribute in self.attributes:
            own_low, own_high = (
                torch.tensor(side.ravel()[self.components]) for side in (attribute.lower, attribute.upper)
            )
            # A least value that is above zero stands for "positive", and is itself none to simulate with.
            low = torch.where(plain & (own_low <= 0.0), torch.maximum(low, own_low), low)
            high = torch.where(plain, torch.minimum(high, own_high), high)
        return low / self._scale, high / self._scale

    @property
    def label(self) -> str:
        """The attribute's path, and how many others share its value."""
        others = f" (+{len(self.attributes) - 1})" if len(self.attributes) > 1 else ""
        return self.attributes[0].path + others

    @property
    def size(self) -> int:
        """Numbers of x."""
        return len(self.components) * (self.worlds or 1)

    @property
    def names(self) -> list[str]:
        """One name per number of x."""
        places = [np.unravel_index(i, self._start.shape) for i in self.components.tolist()]
        single = ["".join(f"[{int(k)}]" for k in place) for place in places]
        if self.worlds is None:
            return [self.label + s for s in single]
        return [f"{self.label}{s} of world {w}" for w in range(self.worlds) for s in single]

    def start(self) -> torch.Tensor:
        """(size,) x of the start."""
        return self.encode(torch.tensor(self._start).expand(self.shape))

    def value(self, x: torch.Tensor) -> torch.Tensor:
        """The value at x (…, size), differentiable: (…, *shape)."""
        lead = x.shape[:-1] if self.worlds is None else (*x.shape[:-1], self.worlds)
        x = x.reshape(*lead, len(self.components))
        below, above, first, scale = (t.to(x.device) for t in (self._below, self._above, self._first, self._scale))
        low = torch.where(below, self._low.to(x.device), first)  # finite, so that unused branches stay harmless
        high = torch.where(above, self._high.to(x.device), first)
        grown = torch.exp(scale * torch.where(below ^ above, x, torch.zeros_like(x)))  # no overflow in unused branches
        varied = torch.where(below, low + (first - low) * grown, scale * x)
        varied = torch.where(above, high - (high - first) * grown, varied)
        varied = torch.where(below & above, low + (high - low) * torch.sigmoid(scale * x), varied)
        whole = torch.tensor(self._start, dtype=x.dtype, device=x.device).ravel().expand(*lead, self._start.size)
        whole = whole.index_copy(-1, torch.as_tensor(self.components, device=x.device), varied)
        if self.attributes[0].kind.family == "quaternion":
            whole = whole / torch.linalg.vector_norm(whole, dim=-1, keepdim=True)
        return whole.reshape((*lead, *self._start.shape))

    @property
    def plain(self) -> PlainVariables:
        """Numbers in which the value is linear: x itself without bounds, else the distance from the bound."""
        both, edge = self._below & self._above, torch.full_like(self._low, _AT_BOUND)
        open_ended = torch.full_like(edge, torch.inf)
        room = torch.where(both, (self._high - self._low) / self._unit, open_ended)  # in units of the start's distance
        low = torch.where(self._below, edge, torch.where(self._above, -open_ended, self.lower))
        high = torch.where(
            both, room - edge, torch.where(self._above, -edge, torch.where(self._below, open_ended, self.upper))
        )
        scale, below, above = self._scale, self._below, self._above

        def of(x: torch.Tensor) -> torch.Tensor:
            x = x.reshape(*x.shape[:-1], -1, len(scale))
            grown = torch.exp(scale * torch.where(below ^ above, x, 0.0))
            made = torch.where(below, grown, torch.where(above, -grown, x))
            return torch.where(both, torch.where(both, room, 1.0) * torch.sigmoid(scale * x), made).flatten(-2)

        def back(plain: torch.Tensor) -> torch.Tensor:
            plain = plain.reshape(*plain.shape[:-1], -1, len(scale))
            positive = torch.where(below, plain, torch.where(above, -plain, 1.0))
            made = torch.where(below ^ above, torch.log(positive) / scale, plain)
            share = torch.where(both, plain / torch.where(both, room, 1.0), 0.5)
            return torch.where(both, torch.logit(share) / scale, made).flatten(-2)

        return PlainVariables(low.repeat(self.worlds or 1), high.repeat(self.worlds or 1), of, back)

    def encode(self, value: Any) -> torch.Tensor:
        """(size,) the x that gives a value, which must lie within the bounds."""
        given = torch.as_tensor(value, dtype=torch.float64).detach().cpu().reshape(self.worlds or 1, -1)
        v = given[:, torch.as_tensor(self.components)]
        low, high, first, scale = self._low, self._high, self._first, self._scale
        x = v / scale
        x = torch.where(self._below, torch.log((v - low) / (first - low)) / scale, x)
        x = torch.where(self._above, torch.log((high - v) / (high - first)) / scale, x)
        x = torch.where(self._below & self._above, torch.log((v - low) / (high - v)) / scale, x)
        if not torch.isfinite(x).all():
            raise InputError(f"{self.label}: {given.tolist()} lies outside the bounds")
        return x.reshape(-1)


def _numbers(variable: Variable, what: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    numbers = np.asarray(value.detach().cpu() if isinstance(value, torch.Tensor) else value, dtype=np.float64)
    if np.isnan(numbers).any():
        raise InputError(f"{variable.label}: {what} is NaN")
    try:
        return np.broadcast_to(numbers, shape).copy()
    except ValueError:
        raise InputError(f"{variable.label}: {what} has shape {numbers.shape}; give one number, or {shape}") from None


class Variables:
    """Several variables as one flat vector x of float64.

    Attributes:
        variables: In the order of x.
        lower: (n,) bounds of x for methods that project; −inf where the change of variable keeps them.
        upper: (n,) likewise.
    """

    def __init__(self, variables: Sequence[Variable]) -> None:
        self.variables = tuple(variables)
        if not self.variables:
            raise InputError("nothing may vary: give at least one variable")
        seen: set[Attribute] = set()
        for attribute in (a for variable in self.variables for a in variable.attributes):
            if attribute in seen:
                raise InputError(f"{attribute.path} belongs to two variables; join them, or take it out of one")
            seen.add(attribute)
        self._sizes = [variable.size for variable in self.variables]
        self.lower = torch.cat([variable.lower.repeat(variable.worlds or 1) for variable in self.variables])
        self.upper = torch.cat([variable.upper.repeat(variable.worlds or 1) for variable in self.variables])

    @property
    def size(self) -> int:
        """n, numbers of x."""
        return sum(self._sizes)

    @property
    def names(self) -> list[str]:
        """One name per number of x."""
        return [name for variable in self.variables for name in variable.names]

    def start(self) -> torch.Tensor:
        """(n,) x of the start."""
        return torch.cat([variable.start() for variable in self.variables])

    def values(self, x: torch.Tensor) -> dict[Attribute, torch.Tensor]:
        """Values by attribute in USD units, differentiable; ready to be `parameters=`.

        Args:
            x: (n,), or (W, n): one candidate per world.
        """
        if x.shape[-1:] != (self.size,) or x.ndim not in (1, 2):
            raise InputError(f"x has shape {tuple(x.shape)}; needed: ({self.size},), or (worlds, {self.size})")
        parts = torch.split(x, self._sizes, dim=-1)
        found = {}
        for variable, part in zip(self.variables, parts, strict=True):
            if x.ndim == 2 and variable.worlds is not None:
                raise InputError(f"{variable.label} has a value per world already; give x of shape ({self.size},)")
            value = variable.value(part)
            found.update(dict.fromkeys(variable.attributes, value))
        return found

    @property
    def plain(self) -> PlainVariables:
        """As in `HasPlainVariables`."""
        parts = [variable.plain for variable in self.variables]

        def of(x: torch.Tensor) -> torch.Tensor:
            return torch.cat([p.of(v) for p, v in zip(parts, torch.split(x, self._sizes, dim=-1), strict=True)], -1)

        def back(plain: torch.Tensor) -> torch.Tensor:
            return torch.cat([p.x(v) for p, v in zip(parts, torch.split(plain, self._sizes, dim=-1), strict=True)], -1)

        return PlainVariables(torch.cat([p.lower for p in parts]), torch.cat([p.upper for p in parts]), of, back)

    def rounded(self, x: torch.Tensor) -> dict[Attribute, torch.Tensor]:
        """As `values`, rounded to what the attributes' types store: what a file written from x would hold."""
        with torch.no_grad():
            return {a: torch.as_tensor(a.rounded(value), device=value.device) for a, value in self.values(x).items()}

    def optimized(
        self, x: torch.Tensor, gradients: Mapping[Attribute, Any] | None = None, *, world: int = 0
    ) -> list[OptimizedValue]:
        """What `write_result` puts into the result's layer.

        Args:
            x: (n,).
            gradients: d loss / d value by attribute, kept beside the value.
            world: Whose value is written where each world has its own.
        """
        found = []
        for attribute, value in self.rounded(x).items():
            numbers = value.cpu().numpy()
            numbers = numbers[world] if numbers.ndim > len(attribute.shape) else numbers
            slope = None if gradients is None else gradients.get(attribute)
            found.append(
                OptimizedValue(
                    attribute.prim_path,
                    attribute.name,
                    attribute.kind.stored(numbers),
                    initial=attribute.kind.stored(attribute.numbers),
                    gradient=None if slope is None else np.asarray(torch.as_tensor(slope).detach().cpu()),
                )
            )
        return found
