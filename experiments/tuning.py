"""Is a private search worth its price? Accuracy of `DPSearchCV` and of `auto` without a search, at equal total ε.

Searches: over penalties and their strength, with three laws of the number of trials, and over the step number and clip
of full-admm; ten trials in the mean, a fifth of the rows scores. Beside them: what a search that cost nothing would
have found, that is the candidate with the best mean accuracy on the test rows, each fitted with the whole budget (not
private).
Run `python -m experiments.tuning` (cached and resumable: results/tuning.json), `--quick` for one seed and one ε;
`--write` renders the tables of docs/tuning.md. δ = 1/n², replace-one. Data: `$DPADMM_DATA` or the cache of the library.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import ParameterGrid

from dpadmm import DPLogisticRegression, DPSearchCV
from dpadmm.privacy.accountants.gaussian import gaussian_epsilon, gaussian_shift
from dpadmm.privacy.budget import Budget
from dpadmm.privacy.calibration import calibrate
from dpadmm.privacy.ledger.charge import charge, next_slack, total_epsilon
from dpadmm.privacy.plan import Plan, Request
from dpadmm.privacy.questions import ClippedGradient
from dpadmm.privacy.sampling import Everything
from dpadmm.privacy.selection import Repetitions, calibrate_search
from dpadmm.privacy.selection.bounds import FINE_ORDERS, GaussianBase, profile_epsilon, renyi_epsilon
from experiments.common import markdown_table, mean_and_error, print_table, train_test

SETS = ("adult", "mushrooms")
EPSILONS = (0.2, 1.0, 3.0)
SEEDS = 5
SPACES: dict[str, list[dict[str, list[Any]]]] = {
    "penalties": [{"penalty": ["none"]}, {"penalty": ["l1", "l2"], "alpha": [1e-4, 1e-3, 1e-2]}],
    "full-admm": [{"solver": ["full-admm"], "steps": [10, 30, 100], "clip_norm": [0.1, 0.3, 1.0]}],
}
SEARCHES = (
    ("penalties", "logarithmic"),
    ("penalties", "geometric"),
    ("penalties", "poisson"),
    ("full-admm", "poisson"),
)
LAWS, TRIALS = ("geometric", "logarithmic", "poisson"), 10.0
RESULTS, PAGE = Path("results/tuning.json"), Path("docs/tuning.md")


@cache
def table(name: str) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    return train_test(name)


def model(name: str, epsilon: float, seed: int, **chosen: Any) -> DPLogisticRegression:
    _, y, _, _ = table(name)
    classes = np.unique(y)
    return DPLogisticRegression(epsilon, 1 / len(y) ** 2, classes=classes, random_state=seed, **chosen)


def plain(name: str, epsilon: float, seed: int, **chosen: Any) -> float:
    X, y, X_test, y_test = table(name)
    return float(model(name, epsilon, seed, **chosen).fit(X, y).score(X_test, y_test))


def searched(name: str, epsilon: float, seed: int, space: str, law: str) -> float:
    X, y, X_test, y_test = table(name)
    search = DPSearchCV(model(name, epsilon, seed), SPACES[space], trials=law, mean_trials=TRIALS)
    return float(search.fit(X, y).score(X_test, y_test))


class Cache:
    """Scores by key, written after each new one."""

    def __init__(self) -> None:
        self._scores: dict[str, float] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}

    def get(self, key: str, compute: Callable[[], float]) -> float:
        if key not in self._scores:
            self._scores[key] = compute()
            RESULTS.parent.mkdir(exist_ok=True)
            RESULTS.write_text(json.dumps(self._scores, indent=1))
        return self._scores[key]


def compared(name: str, epsilon: float, seeds: int, scores: Cache) -> list[str]:
    """One line: auto, the two searches, and the candidate a free search would find."""

    def over(label: str, score: Callable[[int], float]) -> list[float]:
        return [scores.get(f"{name}/{epsilon:g}/{label}/{seed}", lambda s=seed: score(s)) for seed in range(seeds)]

    columns = [over("auto", lambda seed: plain(name, epsilon, seed))]
    for space, law in SEARCHES:
        columns.append(
            over(f"search {space} {law}", lambda seed, space=space, law=law: searched(name, epsilon, seed, space, law))
        )
    free: dict[str, list[float]] = {}
    for space in SPACES:
        for one in ParameterGrid(SPACES[space]):
            label = ", ".join(f"{key}={value}" for key, value in sorted(one.items()))
            free[label] = over(label, lambda seed, one=one: plain(name, epsilon, seed, **one))
    best = max(free, key=lambda label: float(np.mean(free[label])))
    columns.append(free[best])
    return [name, f"{epsilon:g}", *("{:.4f} ± {:.4f}".format(*mean_and_error(column)) for column in columns), best]


def prices() -> list[list[str]]:
    """Total ε at δ = 1e-5 of the best of ten runs in the mean, each (base, 1e-5)-private by one Gaussian."""
    rows = []
    for law in LAWS:
        repetitions, cells = Repetitions(law, TRIALS), [law]
        for base in (0.5, 1.0):
            shift = gaussian_shift(base, 1e-5)
            curve = FINE_ORDERS * shift**2 / 2
            by_profile = profile_epsilon(GaussianBase(shift), repetitions, 1e-5)
            cells += [f"{by_profile:.2f}", f"{renyi_epsilon(FINE_ORDERS, curve, repetitions, 1e-5):.2f}"]
        rows.append(cells)
    ten = [f"{gaussian_epsilon(np.sqrt(10) * gaussian_shift(base, 1e-5), 1e-5):.2f}" for base in (0.5, 1.0)]
    return [*rows, ["ten runs, all released", ten[0], "", ten[1], ""]]


def charges() -> list[list[str]]:
    """What a trial may spend in a search of total ε = 1, δ = 1e-6, and what a ledger counts for it at δ = 1e-5."""
    rows = []
    for law in LAWS:
        plan = calibrate_search(Budget(1.0, 1e-6), Repetitions(law, TRIALS), one_gaussian, 10_000, 2000)
        cost = charge(plan.event, plan.budget.relation, next_slack(Budget(10.0, 1e-5), 0))
        rows.append([law, f"{plan.base_budget.epsilon:.3f}", f"{total_epsilon([cost], 1e-5):.2f}"])
    return rows


def one_gaussian(single: Budget) -> tuple[Plan, ...]:
    return (calibrate(single, [Request("gradient", 1, ClippedGradient(1.0))], Everything(), 8000),)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    scores, seeds = Cache(), 1 if options.quick else SEEDS
    epsilons = EPSILONS[1:2] if options.quick else EPSILONS
    price = ("Price of the best of ten trials", ["trials", "ε .5: profile", "rdp", "ε 1: profile", "rdp"], prices())
    ledger = ("A search of total ε = 1", ["trials", "ε of a trial", "ε in a ledger"], charges())
    print_table(*price)
    print_table(*ledger)
    lines = [compared(name, epsilon, seeds, scores) for name in SETS for epsilon in epsilons]
    head = ["table", "ε", "auto", *(f"{space}, {law}" for space, law in SEARCHES), "free search", "found"]
    gain = (f"Accuracy on test rows, {seeds} seeds", head, lines)
    print_table(*gain)
    if options.write:
        text = "\n".join(markdown_table(*part) for part in (price, ledger, gain))
        marks = re.compile(r"(<!-- generated -->\n).*(<!-- end -->)", re.DOTALL)
        PAGE.write_text(marks.sub(lambda match: f"{match[1]}\n{text}\n{match[2]}", PAGE.read_text()))


if __name__ == "__main__":
    main()
