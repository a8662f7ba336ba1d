"""Regularisers by name; importing this package fills the registry."""

from dpadmm.problem.regularizers.base import REGULARIZERS, Regularizer
from dpadmm.problem.regularizers.group import GroupL2
from dpadmm.problem.regularizers.indicators import Ball, Box, Simplex
from dpadmm.problem.regularizers.nonconvex import MCP, SCAD
from dpadmm.problem.regularizers.nuclear import Nuclear
from dpadmm.problem.regularizers.separable import L1, ElasticNet, SquaredL2, Zero, entrywise, soft_threshold

__all__ = [
    "L1",
    "MCP",
    "REGULARIZERS",
    "SCAD",
    "Ball",
    "Box",
    "ElasticNet",
    "GroupL2",
    "Nuclear",
    "Regularizer",
    "Simplex",
    "SquaredL2",
    "Zero",
    "entrywise",
    "soft_threshold",
]
