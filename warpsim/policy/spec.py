"""What a policy in kernels is made of: which features of the state it sees, its layers, and when it is asked."""

from __future__ import annotations

from dataclasses import dataclass

from warpsim.core.errors import InputError, unknown_name

ACTIVATIONS = {"identity": 0, "tanh": 1, "relu": 2, "elu": 3}
"""Name → code in kernels."""

COORDINATE, SINE, COSINE, VELOCITY, ROTATION, LOCAL_VELOCITY = 0, 1, 2, 3, 4, 5
"""Kinds of feature: q, sin q, cos q, qd, an entry of a rotation matrix, a component of a velocity in a body's axes."""


@dataclass(frozen=True)
class Feature:
    """One number that a policy sees: scale · (kind(q or qd)[index] − offset).

    Attributes:
        kind: One of the kinds above.
        index: Into q or, for velocities, qd; of a local velocity its first component, of a rotation its quaternion.
        scale: Factor.
        offset: Subtracted before.
        entry: ROTATION: 3·row + column of the matrix that turns body into world axes; LOCAL_VELOCITY: the component.
        quaternion: LOCAL_VELOCITY: where in q the body's quaternion begins.
    """

    kind: int
    index: int
    scale: float = 1.0
    offset: float = 0.0
    entry: int = 0
    quaternion: int = 0


@dataclass(frozen=True)
class PolicySpec:
    """A multi-layer perceptron from features to controls; equal ones share their kernels' memory.

    Attributes:
        features: What it sees.
        widths: Outputs of each layer; the last is the number of controls.
        activations: Of each layer, from `ACTIVATIONS`.
        center: (controls,): what is added to the last layer's outputs …
        reach: (controls,): … after they are multiplied by this.
        controls: Names of the controls it gives, in order.
        sizes: How many numbers each of them has.
        hold: Steps for which a control is held.
        delay: Steps after which a control acts; until then it is zero.
    """

    features: tuple[Feature, ...]
    widths: tuple[int, ...]
    activations: tuple[str, ...]
    center: tuple[float, ...]
    reach: tuple[float, ...]
    controls: tuple[str, ...]
    sizes: tuple[int, ...]
    hold: int = 1
    delay: int = 0

    def __post_init__(self) -> None:
        for name in self.activations:
            if name not in ACTIVATIONS:
                raise unknown_name("activation", name, ACTIVATIONS)
        if len(self.widths) != len(self.activations):
            raise InputError(f"{len(self.widths)} layers have {len(self.activations)} activations; give one each")
        if not self.features:
            raise InputError("the policy sees nothing; give it features of the state")

    @property
    def pending(self) -> int:
        """Controls that must be remembered: the newest and those not yet replaced by it."""
        return -(-self.delay // self.hold) + 1

    @property
    def weight_count(self) -> int:
        """Weights and biases of all layers."""
        inputs = (len(self.features), *self.widths[:-1])
        return sum((before + 1) * width for before, width in zip(inputs, self.widths, strict=True))
