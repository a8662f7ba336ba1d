"""What is minimised: losses, regularisers, constraints, smoothers and the problem they make together."""

from dpadmm.problem.constraints import Constraint
from dpadmm.problem.losses import LOSSES, Huber, HuberisedHinge, Logistic, Loss, Softmax, Squared
from dpadmm.problem.problem import Problem
from dpadmm.problem.regularizers import (
    L1,
    MCP,
    REGULARIZERS,
    SCAD,
    Ball,
    Box,
    ElasticNet,
    GroupL2,
    Nuclear,
    Regularizer,
    Simplex,
    SquaredL2,
    Zero,
)
from dpadmm.problem.smoothers import SMOOTHERS, GraphLaplacian, GridLaplacian, Identity, RingLaplacian, Smoother

__all__ = [
    "L1",
    "LOSSES",
    "MCP",
    "REGULARIZERS",
    "SCAD",
    "SMOOTHERS",
    "Ball",
    "Box",
    "Constraint",
    "ElasticNet",
    "GraphLaplacian",
    "GridLaplacian",
    "GroupL2",
    "Huber",
    "HuberisedHinge",
    "Identity",
    "Logistic",
    "Loss",
    "Nuclear",
    "Problem",
    "Regularizer",
    "RingLaplacian",
    "Simplex",
    "Smoother",
    "Softmax",
    "Squared",
    "SquaredL2",
    "Zero",
]
