"""A solver at the best of several step sizes, chosen on the training rows: an oracle, NOT private as a whole."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dpadmm.reproduce.contenders.valid_solver import ValidSolver
from dpadmm.reproduce.exhibit import Case, Numbers

STEPS = (0.005, 0.015, 0.05, 0.15, 0.5, 2.0)


@dataclass(frozen=True)
class BestStep:
    """Every step is tried with the same seed; that with the smallest objective on the training rows is taken."""

    solver: ValidSolver
    steps: tuple[float, ...] = STEPS

    def __call__(self, case: Case) -> Numbers:
        tried = [
            {**replace(self.solver, options=(*self.solver.options, ("step_size", step)))(case), "step": step}
            for step in self.steps
        ]
        return min(tried, key=lambda numbers: float(numbers["objective"]))
