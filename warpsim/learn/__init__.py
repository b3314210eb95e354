"""Policies trained by gradients through physics."""

from warpsim.learn.critic import Critic
from warpsim.learn.judge import Judge, Score
from warpsim.learn.normalizer import Normalizer
from warpsim.learn.shac import SHAC, Iteration

__all__ = ["Critic", "Iteration", "Judge", "Normalizer", "SHAC", "Score"]
