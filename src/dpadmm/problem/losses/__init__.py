"""Losses by name; importing this package fills the registry."""

from dpadmm.problem.losses.base import LOSSES, Loss
from dpadmm.problem.losses.binary import HuberisedHinge, Logistic
from dpadmm.problem.losses.regression import Huber, Squared
from dpadmm.problem.losses.softmax import Softmax

__all__ = ["LOSSES", "Huber", "HuberisedHinge", "Logistic", "Loss", "Softmax", "Squared"]
