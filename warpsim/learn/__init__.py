"""Policies trained by gradients through physics."""

from warpsim.learn.critic import Critic
from warpsim.learn.short_horizon import Iteration, ShortHorizon

__all__ = ["Critic", "Iteration", "ShortHorizon"]
