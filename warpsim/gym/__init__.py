"""Scenes with a training as Gymnasium environments, one world or many at once."""

from warpsim.gym.environment import Env, VectorEnv

__all__ = ["Env", "VectorEnv"]
