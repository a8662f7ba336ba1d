"""One algorithm a file. A solver never sees a row: it is handed an oracle, and all it does is post-processing."""

from dpadmm.solvers.base import SOLVERS, Oracle, Setting, Solution, Solver, run

__all__ = ["SOLVERS", "Oracle", "Setting", "Solution", "Solver", "run"]
