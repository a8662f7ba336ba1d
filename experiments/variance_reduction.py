"""What DP-VRADMM's rules gain over dp-sadmm, on training rows beside their neighbours, and once on test rows.

`python -m experiments.variance_reduction [DATA …] [--epsilon 0.2 …] [--seeds 20]` splits the training rows at random
into four fifths to train on and one fifth to score, anew for each seed, and prints accuracy, mean logistic loss and
objective gap of dp-sadmm, and how far each setting of dp-vradmm is from it on the same split and seed. L1 penalty 1e-4,
δ = 1/n², replace-one, at most 40,000 rows (`--rows`). No test rows are read.

`--test` compares the finished rule alone, on the split of docs/accuracy.md and, as there, without a penalty. It goes on
where it stopped: results/variance_reduction.json. With `--write` the table in docs/algorithms.md is replaced.
"""

from __future__ import annotations

import argparse
import functools
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from dpadmm import DPLogisticRegression
from dpadmm.files import replacing
from dpadmm.solvers import vradmm
from experiments.accuracy import EPSILONS, Rows, delta_for
from experiments.common import mean_and_error, print_table, train_test

DATASETS = ("mushrooms", "ipums_br", "adult", "a9a", "w8a", "covtype")
MOST_ROWS = 40_000
SOLVERS = ("dp-sadmm", "dp-vradmm")
RESULTS = Path("results/variance_reduction.json")
PAGE = Path("docs/algorithms.md")
MEASURES = ("accuracy", "AUC", "loss on new rows", "objective gap")

Chosen = tuple[dict[str, Any], dict[str, Any]]
"""Options of the solver, and constants of its rules."""
SETTINGS: dict[str, Chosen] = {
    "the rule": ({}, {}),
    "as printed, 10 epochs": (
        {"clip_fraction": 1.0, "expected_clip": 1.0, "averaging": "tail", "snapshots": "mean"},
        {"EPOCHS": 10},
    ),
    "worst-case clip": ({"clip_fraction": 1.0, "expected_clip": 1.0}, {}),
    "clip always a twentieth": ({"clip_fraction": 0.05, "expected_clip": 0.05}, {}),
    "clip grows twice as fast": ({}, {"SNAPSHOT_REACH": 50.0}),
    "clip grows half as fast": ({}, {"SNAPSHOT_REACH": 200.0}),
    "the way of dp-sadmm": ({}, {"TRAVEL": 1.0}),
    "a longer way": ({}, {"TRAVEL": 1.3}),
    "snapshots at means": ({"snapshots": "mean"}, {}),
    "average half": ({}, {"AVERAGED": 0.5}),
    "average a tenth": ({}, {"AVERAGED": 0.1}),
    "50 epochs": ({}, {"EPOCHS": 50}),
    "200 epochs": ({}, {"EPOCHS": 200}),
}


@functools.lru_cache(maxsize=32)
def split(name: str, seed: int, most_rows: int) -> Rows:
    """Training rows to fit on and training rows to score."""
    X, y, _, _ = train_test(name)
    order = np.random.default_rng(1000 + seed).permutation(len(y))[:most_rows]
    cut = int(0.8 * len(order))
    fitted, scored = np.sort(order[:cut]), np.sort(order[cut:])
    return X[fitted], y[fitted], X[scored], y[scored]


@contextmanager
def rules(constants: dict[str, Any]) -> Iterator[None]:
    """With other constants of dp-vradmm."""
    before = {name: getattr(vradmm, name) for name in constants}
    try:
        for name, value in constants.items():
            setattr(vradmm, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(vradmm, name, value)


def measured(
    rows: Rows, name: str, epsilon: float, seed: int, solver: str, penalty: str, chosen: Chosen
) -> list[float]:
    """The measures, the objective gap as mean logistic loss of the training rows: the optimum is the same for all."""
    X, y, X_new, y_new = rows
    options, constants = chosen
    with rules(constants):
        model = DPLogisticRegression(
            epsilon,
            delta_for(name, len(y)),
            penalty=penalty,
            classes=np.unique(y),
            row_norm=1.0,
            solver=solver,
            solver_options=options or None,
            random_state=seed,
        ).fit(X, y)
    margins = model.decision_function(X_new)
    auc = float(roc_auc_score(y_new, margins))
    return [model.score(X_new, y_new), auc, _loss(model, y_new, margins), _loss(model, y, model.decision_function(X))]


def _loss(model: DPLogisticRegression, y: np.ndarray, margins: np.ndarray) -> float:
    return float(np.mean(np.logaddexp(0.0, -np.where(y == model.classes_[1], 1.0, -1.0) * margins)))


def line(label: str, found: list[list[float]], base: list[list[float]]) -> list[str]:
    """Differences from dp-sadmm with their standard errors, but for the AUC."""
    gains = np.array(found) - np.array(base)
    return [label, *("{:+.4f} ± {:.4f}".format(*mean_and_error(gains[:, column].tolist())) for column in (0, 2, 3))]


def compare(name: str, epsilon: float, seeds: int, most_rows: int) -> None:
    """On splits of the training rows."""

    def all_seeds(solver: str, chosen: Chosen) -> list[list[float]]:
        splits = [split(name, seed, most_rows) for seed in range(seeds)]
        return [measured(rows, name, epsilon, seed, solver, "l1", chosen) for seed, rows in enumerate(splits)]

    base = all_seeds("dp-sadmm", ({}, {}))
    means = np.mean(base, axis=0)
    lines = [["dp-sadmm", *(f"{means[column]:.4f}" for column in (0, 2, 3))]]
    lines += [line(label, all_seeds("dp-vradmm", chosen), base) for label, chosen in SETTINGS.items()]
    print_table(f"{name}, ε = {epsilon:g}", ["dp-vradmm against dp-sadmm", "accuracy", *MEASURES[2:]], lines)


def stored() -> dict[str, list[float]]:
    """What was measured on test rows: data|ε|seed|solver."""
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}


def measure_on_test_rows(names: list[str], epsilons: list[float], seeds: int) -> None:
    """Seed by seed, so that all cells have about as many when it is stopped."""
    results = stored()
    for seed in range(seeds):
        for name in names:
            for epsilon in epsilons:
                for solver in SOLVERS:
                    key = f"{name}|{epsilon}|{seed}|{solver}"
                    if key not in results:
                        results[key] = measured(train_test(name), name, epsilon, seed, solver, "none", ({}, {}))
                        RESULTS.parent.mkdir(exist_ok=True)
                        with replacing(RESULTS) as stream:
                            stream.write(json.dumps(results, indent=0, sort_keys=True).encode())


def pairs(results: dict[str, list[float]], name: str, epsilon: float) -> list[tuple[list[float], list[float]]]:
    """dp-sadmm and dp-vradmm with the same seed."""
    found = []
    for key, base in results.items():
        if key.startswith(f"{name}|{epsilon}|") and key.endswith(f"|{SOLVERS[0]}"):
            other = results.get(key.replace(*SOLVERS))
            found += [] if other is None else [(base, other)]
    return found


def gain_cell(gains: list[float]) -> str:
    """Mean, standard error where it can be known, and number of seeds."""
    if not gains:
        return "–"
    mean, error = mean_and_error(gains)
    spread = f" ± {error:.4f}" if len(gains) > 1 else ""
    return f"{mean:+.4f}{spread} ({len(gains)})".replace("-", "−")


def table(results: dict[str, list[float]], measure: int) -> str:
    """Mean gains, in Markdown."""
    lines = ["| ε | " + " | ".join(DATASETS) + " |", "|---" * (1 + len(DATASETS)) + "|"]
    for epsilon in EPSILONS:
        cells = []
        for name in DATASETS:
            gains = [other[measure] - base[measure] for base, other in pairs(results, name, epsilon)]
            cells.append(gain_cell(gains))
        lines.append(f"| {epsilon:g} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def replace_tables(text: str, results: dict[str, list[float]]) -> str:
    """The page with the two tables that follow its markers made anew."""
    for measure in (0, 3):
        marker = f"<!-- {MEASURES[measure]} -->\n\n"
        before, after = text.split(marker)
        text = before + marker + table(results, measure) + "\n\n" + after.split("\n\n", 1)[1]
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="*", default=DATASETS)
    parser.add_argument("--epsilon", nargs="+", type=float, default=None)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--rows", type=int, default=MOST_ROWS, help="at most so many training rows")
    parser.add_argument("--test", action="store_true", help="the rule alone, on test rows")
    parser.add_argument("--write", action="store_true", help="put what is stored of test rows into docs/algorithms.md")
    given = parser.parse_args()
    if given.test:
        measure_on_test_rows(given.data, given.epsilon or list(EPSILONS), given.seeds)
    elif not given.write:
        for name in given.data:
            for epsilon in given.epsilon or (0.05, 0.2, 1.0):
                compare(name, epsilon, given.seeds, given.rows)
    if given.test or given.write:
        print("\n\n".join(f"{MEASURES[measure]}\n\n{table(stored(), measure)}" for measure in (0, 1, 2, 3)))
    if given.write:
        PAGE.write_text(replace_tables(PAGE.read_text(), stored()))


if __name__ == "__main__":
    main()
