"""What longer margins and the usual prior gain where one class is rare: `auto` with and without, on training rows only.

Run `python -m experiments.rare`. Seven tenths of the training rows are fitted and the rest are scored, by accuracy and
log-loss; "not longer" leaves the margins as long as they are, and "wide prior" widens the prior under strong noise
whatever the labels. Classes of adult, a9a, mushrooms and covtype are thinned to a share, "digit 0" is one digit of
mnist against all others, and "simulated" has 50 features and 1.5 % positive. "signal" is the standard deviation of
`auto`'s margins. Data: `$DPADMM_DATA` or the cache of `dpadmm.datasets`.
"""

from __future__ import annotations

import argparse
from functools import cache
from unittest import mock

import numpy as np

from dpadmm import DPLogisticRegression
from dpadmm.solvers.auto import rare_class, solver
from experiments.common import markdown_table, mean_and_error, train_test
from experiments.imbalance import Split, thinned

CASES = {
    "bio_train": None,
    "w8a": None,
    "digit 0": None,
    "simulated": None,
    "adult": 0.04,
    "a9a": 0.05,
    "mushrooms": 0.06,
    "covtype": 0.03,
}
EPSILONS = (0.05, 0.1, 0.2, 0.4, 1.0)
VARIANTS = {
    "auto": {},
    "not longer": {"lengthening": lambda likeness, z, coordinates: np.ones(len(z))},
    "wide prior": {"usual_prior": lambda prior_scale, alike_prior_scale, likeness: prior_scale},
}
"""What replaces functions of the solver."""
HEADER = ["data", "share", "ε", *VARIANTS, *(f"log-loss, {variant}" for variant in VARIANTS), "signal"]


@cache
def split_of(name: str) -> Split:
    if name == "simulated":
        return simulated()
    if name == "digit 0":
        X, y, _, _ = train_test("mnist")
        return _in_two(X.astype(float), np.where(y == 0, 1, -1))
    return thinned(name, CASES[name])


def simulated(rows: int = 60_000, features: int = 50) -> Split:
    """Rows of a rare class lie further out, each along some of the features."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(rows) < 0.015, 1, -1)
    shift = np.where(rng.random((rows, features)) < 0.2, 2.0, 0.0) * (y > 0)[:, None]
    return _in_two(rng.exponential(size=(rows, features)) + shift, y)


def _in_two(X: np.ndarray, y: np.ndarray) -> Split:
    split = 7 * len(y) // 10
    return X[:split], y[:split], X[split:], y[split:]


def scores(split: Split, epsilon: float, seed: int) -> tuple[float, float]:
    X, y, X_new, y_new = split
    model = DPLogisticRegression(epsilon, 1 / len(y) ** 2, classes=np.unique(y), random_state=seed).fit(X, y)
    margins = np.where(y_new == model.classes_[1], 1, -1) * model.decision_function(X_new)
    return float(np.mean(margins > 0)), float(np.mean(np.logaddexp(0, -margins)))


def row(name: str, epsilon: float, seeds: int) -> list[str]:
    signals = []

    def noted(likeness, z, coordinates):
        signals.append(float(np.sqrt(coordinates.energy[:-1] @ z[:-1] ** 2)))
        return rare_class.lengthening(likeness, z, coordinates)

    found = []
    for replaced in VARIANTS.values():
        with mock.patch.multiple(solver, **(replaced or {"lengthening": noted})):
            found.append([scores(split_of(name), epsilon, seed) for seed in range(seeds)])
    cells = [mean_and_error([each[kind] for each in variant]) for kind in (0, 1) for variant in found]
    shown = ["{:.4f} ± {:.4f}".format(*cell) for cell in cells]
    return [name, str(CASES[name] or "–"), str(epsilon), *shown, f"{np.mean(signals):.2f}" if signals else "–"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--only", nargs="+", default=list(CASES), choices=CASES, help="some tables")
    options = parser.parse_args()
    rows = [row(name, epsilon, options.seeds) for name in options.only for epsilon in EPSILONS]
    print(markdown_table("Rare classes", HEADER, rows))


if __name__ == "__main__":
    main()
