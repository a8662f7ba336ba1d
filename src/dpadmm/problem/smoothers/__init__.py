"""Smoothers by name; importing this package fills the registry."""

from dpadmm.problem.smoothers.base import SMOOTHERS, Identity, Smoother
from dpadmm.problem.smoothers.graph import GraphLaplacian
from dpadmm.problem.smoothers.grid import GridLaplacian
from dpadmm.problem.smoothers.ring import RingLaplacian, optimal_nu, ring_response

__all__ = [
    "SMOOTHERS",
    "GraphLaplacian",
    "GridLaplacian",
    "Identity",
    "RingLaplacian",
    "Smoother",
    "optimal_nu",
    "ring_response",
]
