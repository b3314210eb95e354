"""Derived parameters as a function of authored ones, and the gradient of a random linear loss of them."""

from __future__ import annotations

import numpy as np

from finite_differences import central_difference, relative_error
from warpsim.core.precision import numpy_real
from warpsim.rigid.compile.compile import compile_model
from warpsim.rigid.compile.derive import Derivation
from warpsim.scene import Scene


class DerivedLoss:
    """Σ weights · outputs of the derive stage."""

    def __init__(self, scene: Scene, parameters: list[str], outputs: list[str], *, worlds: int = 1):
        self.model = compile_model(scene, worlds=worlds)
        self.model.require_gradients(parameters)
        self.derivation = Derivation(self.model)
        self.derivation.run(record=True)
        rng = np.random.default_rng(7)
        # large outputs weigh less: the differences of the loss would drown the small ones in round-off
        values = {name: self.model.physical[name].numpy() for name in outputs}
        self.weights = {name: rng.normal(size=v.shape) / np.maximum(1.0, np.abs(v)) for name, v in values.items()}

    def loss(self, name: str, value: np.ndarray) -> float:
        """Loss with one authored parameter changed; it is put back."""
        array = self.model.authored[name]
        old = array.numpy().copy()
        array.assign(np.ascontiguousarray(value, numpy_real))
        self.derivation.run()
        result = sum(float((w * self.model.physical[n].numpy()).sum()) for n, w in self.weights.items())
        array.assign(old)
        return result

    def gradients(self, parameters: list[str]) -> dict[str, np.ndarray]:
        """Reverse-mode gradients; `run(record=True)` is called first."""
        self.derivation.run(record=True)
        return self.backward(parameters)

    def backward(self, parameters: list[str]) -> dict[str, np.ndarray]:
        """The same from the tape that is there."""
        for array in (*self.model.authored.values(), *self.model.physical.values()):
            if array.grad is not None:
                array.grad.zero_()
        for name, weight in self.weights.items():
            if self.model.physical[name].grad is not None:
                self.model.physical[name].grad.assign(np.ascontiguousarray(weight, numpy_real))
        self.derivation.backward()
        return {name: self.model.authored[name].grad.numpy().copy() for name in parameters}

    def error(self, name: str, gradient: np.ndarray, scale: float) -> float:
        """Relative error of a gradient against central differences."""
        value = self.model.authored[name].numpy()
        expected = central_difference(lambda v: self.loss(name, v), value, scale=scale)
        assert np.abs(expected).max() > 0, f"{name} has no effect"
        return relative_error(gradient, expected)
