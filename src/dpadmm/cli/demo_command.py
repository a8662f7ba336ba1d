"""`dpadmm demo`: a private sparse model on simulated data, from training to report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpadmm.cells.holders import NamedArray
from dpadmm.cli import options
from dpadmm.cli.coefficient_effects import axis_label, coefficients_of, score_words
from dpadmm.cli.model_folder import MODEL_FILES, write_model_folder
from dpadmm.cli.outputs import new_folder, told
from dpadmm.cli.promise_in_short import promise_pairs
from dpadmm.cli.screen import print_json, print_pairs, working
from dpadmm.datasets import Dataset, make_demo
from dpadmm.report import Coefficients, Report
from dpadmm.scoring.raw_inputs import plain_inputs

HELP = """\
Train a private sparse model on simulated data and write a report.

The table is drawn by the library: 40,000 rows, 100 correlated features, 20 of them relevant. It is public, so the \
accuracy of a model trained without privacy can be shown next to the private one. An earlier report is replaced.

\b
Examples
  dpadmm demo
  dpadmm demo --epsilon 0.5 --solver mpadmm --out report --json
"""

TEST_ROWS, TEST_SEED = 10_000, 1
ALPHA = 5e-3
ROW_NORM = 10.0
"""√100, the typical length of a row of 100 standard normal features: public, as the design is."""


@dataclass(frozen=True)
class DemoOutcome:
    """What the demo shows."""

    model: Any
    accuracy: float
    accuracy_without_privacy: float
    recovered: int
    relevant: int

    def results(self) -> list[tuple[str, str]]:
        coefficients = np.count_nonzero(self.model.coef_)
        return [
            (f"accuracy on {TEST_ROWS:,} test rows, private", f"{self.accuracy:.1%}"),
            ("accuracy without privacy (same penalty, exact solution)", f"{self.accuracy_without_privacy:.1%}"),
            (f"relevant features among the {self.relevant} largest", f"{self.recovered} of {self.relevant}"),
            ("coefficients that are not zero", f"{coefficients} of {self.model.coef_.size}"),
        ]


def demo(
    epsilon: options.Epsilon = 1.0,
    delta: options.Delta = 1e-5,
    solver: options.SolverName = "auto",
    out: options.OutFolder = Path("dpadmm-report"),
    json: options.Json = False,
) -> None:
    with new_folder(out, MODEL_FILES, force=True) as folder:
        with working("drawing the simulated table", visible=not json):
            train, test = make_demo(), make_demo(n_rows=TEST_ROWS, random_state=TEST_SEED)
        with working("training with differential privacy", visible=not json):
            model = _declared(epsilon, delta, solver).fit(_named(train), train.y)
        with working("solving without privacy, for comparison", visible=not json):
            outcome = _outcome(model, train, test)
        with told(out):
            write_model_folder(folder, model, _report(outcome, train), None)
    _tell(outcome, out, json)


def _declared(epsilon: float, delta: float, solver: str) -> Any:
    from dpadmm.estimators import DPLogisticRegression

    return DPLogisticRegression(
        epsilon,
        delta,
        penalty="l1",
        alpha=ALPHA,
        solver=solver,
        row_norm=ROW_NORM,
        fit_intercept=False,
        classes=[-1, 1],
    )


def _named(data: Dataset) -> NamedArray:
    """The rows with the names of their features, which all files of the model then share."""
    return NamedArray(data.X, tuple(data.feature_names or ()))


def _outcome(model: Any, train: Dataset, test: Dataset) -> DemoOutcome:
    relevant = {int(i) for i in train.extras["relevant"]}
    largest = _coefficients(model, train).largest(len(relevant))
    return DemoOutcome(
        model,
        accuracy=float(np.mean(model.predict(_named(test)) == test.y)),
        accuracy_without_privacy=_accuracy_without_privacy(model, train, test),
        recovered=len(relevant.intersection(largest.tolist())),
        relevant=len(relevant),
    )


def _accuracy_without_privacy(model: Any, train: Dataset, test: Dataset) -> float:
    """Of the exact minimiser of the same problem. Only because the table is simulated may it be shown."""
    from dpadmm.problem import L1, Constraint, Logistic
    from dpadmm.problem.problem import Problem
    from dpadmm.solvers.exact_minimiser import solve_exactly

    problem = Problem(Logistic(), L1(ALPHA), Constraint.identity(train.X.shape[1]), row_norm=ROW_NORM)
    exact = solve_exactly(problem, model.row_map_.apply(train.X), train.y.astype(float), tolerance=1e-5)
    return float(np.mean(np.where(model.row_map_.apply(test.X) @ exact > 0, 1, -1) == test.y))


def _coefficients(model: Any, train: Dataset) -> Coefficients:
    names = tuple(train.feature_names or ())
    return coefficients_of(model, names, plain_inputs(names, None, None), encoded=False)


def _report(outcome: DemoOutcome, train: Dataset) -> Report:
    coefficients = _coefficients(outcome.model, train)
    return Report(
        title="A private sparse model of simulated data",
        subtitle=f"{train.X.shape[0]:,} rows, {train.X.shape[1]} correlated features, {outcome.relevant} relevant "
        "(the design of Chen and Lee, 2020, §5.3)",
        results=outcome.results(),
        statement=outcome.model.privacy_,
        plan=outcome.model.plan_,
        coefficients=coefficients,
        axis_label=axis_label(outcome.model, coefficients),
        score=score_words(outcome.model),
        relevant={int(i) for i in train.extras["relevant"]},
    )


def _tell(outcome: DemoOutcome, out: Path, json: bool) -> None:
    statement = outcome.model.privacy_
    if json:
        print_json(
            {
                "accuracy": outcome.accuracy,
                "accuracy_without_privacy": outcome.accuracy_without_privacy,
                "relevant_recovered": outcome.recovered,
                "relevant": outcome.relevant,
                "nonzero": int(np.count_nonzero(outcome.model.coef_)),
                "out": str(out),
                "privacy": statement.to_dict(),
            }
        )
        return
    print_pairs(
        "A private sparse model of simulated data",
        [
            *outcome.results(),
            *promise_pairs(statement, out),
            ("report", str(out / "report.html")),
        ],
    )
