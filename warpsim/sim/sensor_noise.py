"""Noise of sensors, added to what simulators show: a constant in torch's graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch

from warpsim.rigid.model.model import Model
from warpsim.rigid.sensors.layout import noise_levels
from warpsim.rigid.sensors.noise import normal_numbers

OUTPUT = "sensors"


class SensorNoise:
    """Adds normal noise of the scene's standard deviations to measurements.

    Attributes:
        seed: None: measurements are exact.
    """

    def __init__(self, model: Model, seed: int | None) -> None:
        self._model = model
        self.seed = seed

    def add(self, outputs: Mapping[str, torch.Tensor], steps: Sequence[int]) -> dict[str, torch.Tensor]:
        """The outputs, measurements with their noise.

        Args:
            outputs: (n, W, …) each.
            steps: (n,) during which steps they were measured, counted from 0; what is below was not measured.
        """
        result = dict(outputs)
        if self.seed is None or OUTPUT not in outputs:
            return result
        exact = outputs[OUTPUT]
        made = np.array(steps, np.int64)
        noise = noise_levels(self._model.sensors) * normal_numbers(self.seed, made, *exact.shape[1:])
        noise[made < 0] = 0.0
        result[OUTPUT] = exact + torch.as_tensor(noise, dtype=exact.dtype, device=exact.device)
        return result

    def add_one(self, outputs: Mapping[str, torch.Tensor], step: int) -> dict[str, torch.Tensor]:
        """The same for the outputs of one step, (W, …) each."""
        noisy = self.add({name: value.unsqueeze(0) for name, value in outputs.items() if name == OUTPUT}, [step])
        return {**outputs, **{name: value[0] for name, value in noisy.items()}}
