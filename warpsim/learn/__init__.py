"""Policies trained by gradients through physics."""

from warpsim.learn.critic import Critic
from warpsim.learn.shac import SHAC, Iteration

__all__ = ["Critic", "Iteration", "SHAC"]
