"""Policies trained by gradients through physics."""

from warpsim.learn.critic import Critic
from warpsim.learn.iteration import Iteration
from warpsim.learn.judge import Judge, Score
from warpsim.learn.log import TrainingLog, read_log
from warpsim.learn.normalizer import Normalizer
from warpsim.learn.onnx_file import write_onnx
from warpsim.learn.saved_policy import SavedPolicy, load_policy, save_policy
from warpsim.learn.shac import SHAC

__all__ = [
    "Critic",
    "Iteration",
    "Judge",
    "Normalizer",
    "SHAC",
    "SavedPolicy",
    "Score",
    "TrainingLog",
    "load_policy",
    "read_log",
    "save_policy",
    "write_onnx",
]
