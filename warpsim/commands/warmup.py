"""`warpsim warmup`: compiles kernels ahead of time, so that no later run has to wait for it."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import time

import warp as wp
from tqdm import tqdm
