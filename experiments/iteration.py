"""Amplification by iteration: exact divergences beside the bounds, the noise it needs, and a general lasso.

1. Linear-Gaussian ADMM, where the divergence of the last state is known exactly: convex, strongly convex, tall A.
2. Noise over sensitivity for one promise: hidden passes, the paper's constants, composition, subsampling; and what
   rounding adds.
3. The general lasso min (1/2n)‖Zx − b‖² + α‖Ax‖₁ of Chan, Xie & Zhao 2024, A the differences along a chain, simulated:
   how strong convexity and noise change the way to the minimum, and what is left of it at an ε, beside other solvers;
   then accuracy on adult.
Run `python -m experiments.iteration`; `--write` renders docs/iteration.md, `--quick` takes fewer seeds and rows.
Data: `$DPADMM_DATA` or the cache of `dpadmm.datasets`.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np

from dpadmm import DPLinearRegression, DPLogisticRegression, kernels
from dpadmm.privacy.accountants import make_accountant
from dpadmm.privacy.budget import Budget, Relation
from dpadmm.privacy.comparison import compare
from dpadmm.privacy.events import Event, HiddenPasses
from dpadmm.privacy.passage import Passage
from dpadmm.privacy.state_grid import Footing
from dpadmm.problem import L1, Constraint, Logistic, Problem, Squared
from dpadmm.problem.hidden_pass_program import FINEST_GRID, Program
from dpadmm.problem.rowmap import RowMap
from dpadmm.reproduce.contenders.gaussian_amplification import bound, gaussian_settings, is_refused
from dpadmm.reproduce.contenders.general_lasso import FEATURES, STRENGTH, lasso_rows
from dpadmm.reproduce.contenders.linear_gaussian import Linear
from dpadmm.rows.local import LocalRows
from dpadmm.solvers.exact_minimiser import objective, solve_exactly
from experiments.common import markdown_table, mean_and_error, print_table, train_test

PAGE = Path("docs/iteration.md")
ADULT_ROWS, DELTA = 48842, 1e-5
LATER = (0, 1, 2, 4, 10, 30, 100, 1000)
EPSILONS = (0.1, 0.5, 1.0, 2.0)
Block = tuple[str, list[str], list[list[str]]]


# -- exact divergences ---------------------------------------------------------------------------------------------


def exact_lines(linear: Linear, convexity: float) -> list[list[str]]:
    refused = is_refused(linear)
    lines = []
    for later in LATER:
        later_noise = f"{linear.divergence(later, own_noise=False):.2e}" if later else "inf"
        row = [str(later), f"{linear.divergence(later):.2e}", later_noise]
        for accountant in ("iteration", "iteration-paper"):
            row.append("refused" if refused else f"{bound(accountant, linear, convexity, later):.2e}")
        lines.append(row)
    return lines


def exact_tables() -> list[Block]:
    head = ["later iterations", "exact", "exact, later noise only", "ours", "paper"]
    return [(f"Exact divergence: {name}", head, exact_lines(*setting)) for name, setting in gaussian_settings().items()]


# -- noise ---------------------------------------------------------------------------------------------------------


def noise_tables(quick: bool) -> list[Block]:
    head = ["ε", "passes", "paper", "ours", "no amplification", "subsampling, one row a step"]
    lines = []
    for epsilon, passes in product(EPSILONS, (1,) if quick else (1, 10, 30)):
        found = compare(Budget(epsilon, DELTA), Passage(ADULT_ROWS, 1.0, 1.0, 1.0), passes)
        cells = (found.paper, found.iteration, found.composition, found.subsampling)
        lines.append([f"{epsilon:g}", str(passes), *(f"{cell:.3g}" for cell in cells)])
    return [(f"Noise over sensitivity, {ADULT_ROWS} rows, δ = 1e-5", head, lines)]


# -- rounding ------------------------------------------------------------------------------------------------------

TABLES: dict[str, tuple[int, int, Constraint, float]] = {
    "adult": (30_162, 17, Constraint.identity(105), 9.5),
    "adult, little noise": (30_162, 17, Constraint.identity(105), 3.0),
    "adult, much noise": (30_162, 17, Constraint.identity(105), 100.0),
    "general lasso": (20_000, 25, Constraint.chain(FEATURES), 54.0),
    "3000 features": (50_000, 10, Constraint.identity(3000), 9.5),
    "ten million rows": (10_000_000, 1, Constraint.identity(55), 9.5),
}
"""Rows, passes, A, and σ/(ηC)."""


def rounding_table() -> Block:
    """What rounding adds to a visit, and to ε, at ηβ‖A‖² = 0.2 as by default."""
    head = ["table", "visits", "σ/(ηC)", "grid over σ", "r over σ", "ε without rounding", "growth of ε"]
    lines = []
    for name, (rows, passes, constraint, z) in TABLES.items():
        step = 1e-3
        program = Program(Problem(Logistic(), L1(1e-3), constraint), step, 0.2 / (step * constraint.norm_squared))
        footing = Footing.of(program, rows, passes, 0.5)
        noise, passage = footing.noise(z), Passage.of(footing)
        charged, bare = (
            make_accountant("iteration").epsilon(Event((HiddenPasses(p, z, passes),)), DELTA, Relation.REPLACE_ONE)
            for p in (passage, replace(passage, rounding=0.0, clip_rounding=0.0))
        )
        sizes = f"{noise.grid / noise.deviation:.1e}", f"{passage.rounding_of(z):.1e}"
        lines.append([name, f"{rows * passes:.1e}", f"{z:g}", *sizes, f"{bare:.3g}", f"{charged / bare - 1:.0e}"])
    return "What rounding costs", head, lines


# -- the general lasso ---------------------------------------------------------------------------------------------


def convergence(n_rows: int, seeds: int) -> Block:
    """Distance to the minimiser by passes, for several strong convexities and noises on one row's gradient."""
    Z, b = lasso_rows(n_rows)
    lines = []
    for ridge, noise in product((0.0, 0.05, 0.5), (0.0, 1.0, 4.0)):
        problem = Problem(Squared(), L1(STRENGTH), Constraint.chain(FEATURES), ridge=ridge)
        best = solve_exactly(problem, Z, b, 1e-8)
        distances = np.mean([path(problem, Z, b, best, noise, seed) for seed in range(seeds)], axis=0)
        lines.append([f"{ridge:g}", f"{noise:g}", *(f"{distance:.3f}" for distance in distances)])
    return f"General lasso: ‖x − x*‖ after passes over {n_rows} rows", ["ridge", "noise", "1", "3", "10"], lines


def path(problem: Problem, Z: np.ndarray, b: np.ndarray, best: np.ndarray, noise: float, seed: int) -> list[float]:
    rng, step = np.random.default_rng(seed), 20.0 / len(b)
    program, rows = Program(problem, step, 0.2 / (step * problem.constraint.norm_squared)), LocalRows(Z, b, Squared())
    state, distances = program.start(), []

    def draw(visits: int) -> np.ndarray:
        return step * noise * rng.normal(size=(visits, FEATURES))

    with kernels.use("compiled"):
        for done in range(1, 11):
            state = rows.noisy_pass(program, state, np.inf, rng.permutation(len(b)), draw, FINEST_GRID)
            if done in (1, 3, 10):
                distances.append(float(np.linalg.norm(state[0] - best)))
    return distances


def privately(n_rows: int, seeds: int) -> Block:
    """Objective gap at one promise."""
    Z, b = lasso_rows(n_rows)
    mapped = RowMap(1.0, intercept=False).apply(Z)
    problem = Problem(Squared(), L1(STRENGTH), Constraint.chain(FEATURES))
    lowest = objective(problem, mapped, b, solve_exactly(problem, mapped, b, 1e-8))
    start = objective(problem, mapped, b, np.zeros(FEATURES)) - lowest
    lines = [["∞", f"F* = {lowest:.4f}", f"gap of zero {start:.4f}", ""]]
    for epsilon in (0.5, 1.0, 2.0, 8.0):
        cells = []
        for solver in ("noisy-admm", "full-admm", "auto"):
            models = (
                DPLinearRegression(
                    epsilon,
                    DELTA,
                    penalty="fused",
                    alpha=STRENGTH,
                    solver=solver,
                    fit_intercept=False,
                    target_bounds=(-1, 1),
                    random_state=seed,
                ).fit(Z, b)
                for seed in range(seeds)
            )
            gaps = [objective(problem, mapped, b, model.weights_) - lowest for model in models]
            cells.append("{:.4f} ± {:.4f}".format(*mean_and_error(gaps)))
        lines.append([f"{epsilon:g}", *cells])
    return f"General lasso: objective gap, {n_rows} rows", ["ε", "noisy-admm", "full-admm", "auto"], lines


def accuracy(seeds: int) -> Block:
    """Accuracy on the test rows of adult with the defaults of each solver."""
    X, y, X_test, y_test = train_test("adult")
    lines = []
    for epsilon in (0.5, 1.0, 2.0):
        cells = []
        for solver in ("noisy-admm", "full-admm", "auto"):
            scores = [
                DPLogisticRegression(epsilon, DELTA, solver=solver, classes=np.unique(y_test), random_state=seed)
                .fit(X, y)
                .score(X_test, y_test)
                for seed in range(seeds)
            ]
            cells.append("{:.4f} ± {:.4f}".format(*mean_and_error(scores)))
        lines.append([f"{epsilon:g}", *cells])
    return "Accuracy on adult, defaults", ["ε", "noisy-admm", "full-admm", "auto"], lines


INTRODUCTION = """# Amplification by iteration

Generated by `python -m experiments.iteration --write`; do not edit. Proofs: [proofs/iteration.md](proofs/iteration.md).

The first tables show divergences ρ (zero-concentrated), in units of (ηΔ)²/σ², by the number of iterations that follow
the visit of a row, for η = β = 1 and the worst direction of the change. "Exact" is the law of the last state. "Later
noise only" leaves out the noise of the row's own visit, which the amplification does not use. The bounds include the
local one, 0.5. A matrix A with more rows than columns is refused: two later iterations then show with certainty which
of two states came before, so that only the noise of the row's own visit protects it.

Noise over sensitivity is σ/(ηΔ) for ηβ = 1 (κ = 1), A = I, as in the paper. The solver's default is ηβ‖A‖² = 0.2: a
weaker coupling hides less. So `dpadmm plan --solver noisy-admm`, which prints its ηβ, states 3.06 and not 2.7 for ten
passes at ε = 1. All four ways visit every row equally often; the first two cover the last state only. Each of many
hidden passes needs little more noise than a single one, because a row rarely comes last. But they need several times
the noise of subsampling. As in the paper, this is the noise of exact real numbers.

A computer rounds. r is how far a visit on the grid may be from one of real numbers, and the accountant charges it at
every visit ([proof](proofs/float.md#hidden-passes)). Only the sizes of the tables are used here; no row is read.

The general lasso is (1/2n)‖Zx − b‖² + α‖Ax‖₁, A the differences of neighbouring coefficients, 20 features, simulated;
noise is on one row's gradient. Under the same promise hidden passes are far less accurate than solvers
that read all rows at each step.
Means ± standard errors over noise seeds.
"""


def all_tables(quick: bool) -> list[Block]:
    rows, seeds = (4000, 2) if quick else (20_000, 6)
    lasso = convergence(rows, seeds), privately(rows, seeds)
    return [*exact_tables(), *noise_tables(quick), rounding_table(), *lasso, accuracy(min(seeds, 3))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer seeds, rows and passes")
    parser.add_argument("--write", action="store_true", help="render docs/iteration.md")
    options = parser.parse_args()
    found = all_tables(options.quick)
    for table in found:
        print_table(*table)
    if options.write:
        PAGE.write_text("\n".join([INTRODUCTION, *(markdown_table(*table) for table in found)]), encoding="utf-8")


if __name__ == "__main__":
    main()
