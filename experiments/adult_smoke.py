"""Adult, L1 logistic regression, δ = 1e-5, replace-one: test accuracy of the solvers with their public defaults.

Run `python -m experiments.adult_smoke` (needs the adult data, see `dpadmm.datasets`); exits 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import sys

from dpadmm import DPLogisticRegression
from experiments.common import mean_and_error, print_table, train_test

EPSILONS = (0.1, 0.5, 1.0)
GOALS = {"dp-sadmm": (0.80, 0.825, 0.83), "full-admm": (0.805, 0.828, 0.832)}
OTHERS = ("auto", "ssadmm", "mpadmm", "dp-vradmm", "dp-sgd", "dp-gd")


def accuracy(solver: str, epsilon: float, seeds: int) -> list[float]:
    X, y, X_test, y_test = train_test("adult")
    scores = []
    for seed in range(seeds):
        model = DPLogisticRegression(
            epsilon, 1e-5, solver=solver, penalty="l1", alpha=1e-4, classes=[-1, 1], random_state=seed
        ).fit(X, y)
        scores.append(float(model.score(X_test, y_test)))
    return scores


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--all", action="store_true", help="also the solvers without a goal")
    options = parser.parse_args()
    rows, missed = [], 0
    for solver in (*GOALS, *(OTHERS if options.all else ())):
        row = [solver]
        for position, epsilon in enumerate(EPSILONS):
            mean, error = mean_and_error(accuracy(solver, epsilon, options.seeds))
            goal = GOALS.get(solver, (0.0,) * 3)[position]
            missed += mean < goal
            row.append(f"{mean:.4f} ± {error:.4f}" + (f" (goal {goal})" if goal else ""))
        rows.append(row)
    print_table(f"Adult test accuracy, {options.seeds} seeds", ["solver", *(f"ε = {e}" for e in EPSILONS)], rows)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
