"""Test accuracy over many splits: every seed draws its own rows to train and to test on, and its own noise.

Run `python -m experiments.splits` (cached and resumable: results/splits.json); `--write` renders docs/splits.md from
what is cached. One test half decides some cells of docs/accuracy.md by a few rows, which no number of noise seeds can
tell: here both are drawn. All methods see the same splits, so that a lead is a mean of differences.
"""

from __future__ import annotations

import argparse
import functools
import json
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import track
from scipy import sparse

from dpadmm.files import replacing
from experiments.accuracy import METHODS, ORACLE, SOLVERS, Rows
from experiments.common import markdown_table, mean_and_error, train_test

CELLS = {
    "adult": (0.05,),
    "a9a": (0.05, 0.1, 0.4, 0.8, 1.0),
    "mushrooms": (0.1, 0.2),
    "ipums_br": (0.05, 0.1, 0.2),
    "w8a": (0.05,),
    "bio_train": (0.05, 0.1, 0.2, 0.4),
}
"""Where docs/accuracy.md has `auto` less than two standard errors ahead of another solver or the oracle, or behind."""
SEEDS, SEEDS_OF_SETTINGS, SEEDS_IF_CLOSE = 40, 8, 120
BEST_SETTINGS = 4
"""Of the oracle: so many of its settings are tried with more seeds."""
RESULTS = Path("results/splits.json")
PAGE = Path("docs/splits.md")
HEADER = ["data", "ε", "auto", "best other solver", "lead", "oracle dp-gd", "lead", "splits"]

Fit = tuple[str, float, str, int]
Results = dict[str, float]


@functools.lru_cache(maxsize=1)
def all_rows(name: str) -> tuple[Any, np.ndarray, int]:
    """Rows of both parts, their labels, and how many are trained on."""
    X, y, X_test, y_test = train_test(name)
    rows = sparse.vstack([X, X_test], format="csr") if sparse.issparse(X) else np.concatenate([X, X_test])
    return rows, np.concatenate([y, y_test]), len(y)


def split(name: str, seed: int) -> Rows:
    rows, labels, n_train = all_rows(name)
    order = np.random.default_rng(seed).permutation(len(labels))
    train, test = np.sort(order[:n_train]), np.sort(order[n_train:])
    return rows[train], labels[train], rows[test], labels[test]


def test_accuracy(fit: Fit) -> float:
    name, epsilon, method, seed = fit
    return METHODS[method](name, epsilon, seed, rows=split(name, seed))[0]


def key(fit: Fit) -> str:
    return "|".join(map(str, fit))


def compute(fits: list[Fit], results: Results, jobs: int) -> None:
    """What is not cached yet, a few hundred fits at a time."""
    missing = [fit for fit in fits if key(fit) not in results]
    with ProcessPoolExecutor(jobs) as workers:
        for first in track(range(0, len(missing), 400), description=f"{fits[0][0]} ε={fits[0][1]}", transient=True):
            some = missing[first : first + 400]
            results.update(zip(map(key, some), workers.map(test_accuracy, some, chunksize=4), strict=True))
            RESULTS.parent.mkdir(exist_ok=True)
            with replacing(RESULTS) as stream:
                stream.write(json.dumps(results, indent=0, sort_keys=True).encode())


def scores(results: Results, name: str, epsilon: float, method: str) -> dict[int, float]:
    """By seed."""
    found = ((seed, results.get(key((name, epsilon, method, seed)))) for seed in range(SEEDS_IF_CLOSE))
    return {seed: score for seed, score in found if score is not None}


def best(results: Results, name: str, epsilon: float, methods: list[str], n_seeds: int) -> list[str]:
    """Methods that have so many seeds, by their mean accuracy over these, best first."""
    means = {}
    for method in methods:
        found = scores(results, name, epsilon, method)
        if len(found) >= n_seeds:
            means[method] = float(np.mean([found[seed] for seed in range(n_seeds)]))
    return sorted(means, key=lambda method: -means[method])


def lead(results: Results, name: str, epsilon: float, method: str) -> tuple[float, float]:
    """Of `auto`, with its standard error, over the seeds that both have."""
    own, other = (scores(results, name, epsilon, each) for each in ("auto", method))
    return mean_and_error([own[seed] - other[seed] for seed in own.keys() & other.keys()])


def collect(name: str, epsilon: float, results: Results, jobs: int) -> None:
    """Few seeds for all settings of the oracle, more for the best and for solvers, most where a lead is in doubt."""
    compute([(name, epsilon, method, seed) for method in ORACLE for seed in range(SEEDS_OF_SETTINGS)], results, jobs)
    settings = best(results, name, epsilon, ORACLE, SEEDS_OF_SETTINGS)[:BEST_SETTINGS]
    rivals = list(dict.fromkeys((*SOLVERS, *settings)))
    compute([(name, epsilon, method, seed) for method in ("auto", *rivals) for seed in range(SEEDS)], results, jobs)
    leads = {method: lead(results, name, epsilon, method) for method in rivals}
    close = [method for method, (gain, error) in leads.items() if gain < 2 * error]
    if close:
        fits = [(name, epsilon, method, seed) for method in ("auto", *close) for seed in range(SEEDS_IF_CLOSE)]
        compute(fits, results, jobs)


def row(results: Results, name: str, epsilon: float) -> list[str]:
    cells = [name, str(epsilon), shown(results, name, epsilon, "auto")]
    splits = len(scores(results, name, epsilon, "auto"))
    for rivals, label in ((list(SOLVERS), True), (ORACLE, False)):
        rival = min(
            best(results, name, epsilon, rivals, SEEDS), key=lambda method: lead(results, name, epsilon, method)[0]
        )
        gain, error = lead(results, name, epsilon, rival)
        found = shown(results, name, epsilon, rival)
        cells += [f"{rival} {found}" if label else found, f"{gain:+.4f} ± {error:.4f}"]
    return [*cells, str(splits)]


def shown(results: Results, name: str, epsilon: float, method: str) -> str:
    mean, error = mean_and_error(list(scores(results, name, epsilon, method).values()))
    return f"{mean:.4f} ± {error:.4f}"


def done(results: Results, name: str, epsilon: float) -> bool:
    return all(len(scores(results, name, epsilon, method)) >= SEEDS for method in ("auto", *SOLVERS))


INTRODUCTION = f"""# Accuracy over many splits

Generated by `python -m experiments.splits --write`; do not edit. [Accuracy](accuracy.md) has one test set for each
table, and in some cells `auto` is behind another solver or the oracle there, or less than two standard errors ahead.
For these cells every seed here draws its own split, as large as the usual one, and its own noise. Budgets, defaults and
methods are the same. There are {SEEDS} splits, and
{SEEDS_IF_CLOSE} for `auto` and whoever it does not lead by two standard errors after {SEEDS}. "Lead" is the mean
difference over the splits that both have seen. The oracle is DP-GD with the best of {len(ORACLE)} settings by mean
accuracy on these very test rows, which no user can pick: the best {BEST_SETTINGS} by {SEEDS_OF_SETTINGS} splits got the
others as well. Where several rivals are possible, the row shows the one with the smallest lead. No rule was chosen by
these numbers.
"""


def page(results: Results) -> str:
    cells = [(name, epsilon) for name in CELLS for epsilon in CELLS[name]]
    rows = [row(results, *cell) for cell in cells if done(results, *cell)]
    return INTRODUCTION + "\n" + markdown_table("Cells that one test set does not decide", HEADER, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", nargs="+", default=list(CELLS), choices=list(CELLS))
    parser.add_argument("--epsilons", nargs="+", type=float, help="some of the cells")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--write", action="store_true", help="render docs/splits.md from the cache")
    options = parser.parse_args()
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in options.datasets:
        for epsilon in CELLS[name]:
            if options.epsilons is None or epsilon in options.epsilons:
                collect(name, epsilon, results, options.jobs)
    text = page(results)
    print(text)
    if options.write:
        PAGE.write_text(text)


if __name__ == "__main__":
    main()
