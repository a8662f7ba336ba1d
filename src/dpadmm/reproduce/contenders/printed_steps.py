"""DP-SADMM with the batches, steps and averages that its paper prints, and with noise that keeps the stated ε."""

from __future__ import annotations

from dataclasses import dataclass

from dpadmm.reproduce.contenders.linear_panel import LinearPanel
from dpadmm.reproduce.contenders.valid_solver import ValidSolver
from dpadmm.reproduce.exhibit import Case, Numbers


@dataclass(frozen=True)
class PrintedSteps:
    """The algorithm of `PrintedStochasticADMM`, valid: one pass, η_t = 1/√t, averages of all iterates, ν = 2."""

    passes: float = 1.0
    smoothing: float = 2.0

    def __call__(self, case: Case) -> Numbers:
        panel: LinearPanel = case.panel
        rows = panel.rows(case)
        batch = panel.batch(rows)
        strong = panel.ridge > 0
        solver = ValidSolver(
            "dp-sadmm",
            smoothing=self.smoothing,
            options=(
                ("step_size", 1.0),
                ("averaging", "linear" if strong else "all"),
                ("convexity", "strong" if strong else "general"),
            ),
            parameters=(("batch_size", batch), ("steps", max(1, round(self.passes * rows.n_rows / batch)))),
        )
        return solver(case)
