"""The minimum of the problem without privacy, by the exact solver."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpadmm.reproduce.contenders.linear_panel import LinearPanel
from dpadmm.reproduce.contenders.public_splits import mapped_rows, signs
from dpadmm.reproduce.contenders.valid_solver import coverage
from dpadmm.reproduce.exhibit import Case, Numbers
from dpadmm.solvers.exact_minimiser import solve_exactly


@dataclass(frozen=True)
class ExactMinimum:
    """F* and what its minimiser scores; `tolerance` is on the objective."""

    tolerance: float = 1e-7

    def __call__(self, case: Case) -> Numbers:
        panel: LinearPanel = case.panel
        rows = panel.rows(case)
        weights = solve_exactly(panel.problem(rows), mapped_rows(rows)[0], signs(rows.y), self.tolerance)
        found = panel.judged(weights, case)
        if panel.split != "simulated":
            return found
        return {**found, **coverage(np.argsort(-np.abs(weights[:-1])))}
