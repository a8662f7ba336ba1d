"""The tuning-free solver: one idea a file, `solver.py` puts them together."""

from dpadmm.solvers.auto.solver import Auto

__all__ = ["Auto"]
