"""What doubt costs and spares where classes are nearly even, on training rows whose labels are partly replaced.

Run `python -m experiments.mixed`. Seven tenths of the training rows are fitted and the rest are scored, by accuracy
beyond the commonest class of the fitted ones. A share of the labels ("signal") stays, the others are drawn from all;
the second class of some tables is thinned to a share. "undoubted" is `auto` that never doubts a signal of nearly even
classes. Data: `$DPADMM_DATA` or the cache of `dpadmm.datasets`.
"""

from __future__ import annotations

import argparse
from contextlib import nullcontext
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np

from dpadmm import DPLogisticRegression
from dpadmm.solvers.auto import solver
from experiments.common import commonest, markdown_table, mean_and_error
from experiments.imbalance import Split, thinned

CASES = (("mushrooms", None), ("mushrooms", 0.45), ("ipums_br", None), ("ipums_br", 0.45), ("ipums_br", 0.35))
EPSILONS = (0.1, 0.2, 0.4, 1.0)
SIGNALS = (1.0, 0.5, 0.25, 0.15, 0.0)
TITLES = [f"{100 * signal:.0f} % signal" for signal in SIGNALS]
HEADER = ["data", "share", "ε", *TITLES, *(f"{title}, undoubted" for title in TITLES)]


def partly_replaced(y: np.ndarray, signal: float, rng: np.random.Generator) -> np.ndarray:
    return np.where(rng.random(len(y)) < signal, y, rng.permutation(y))


UNCHANGED = solver.doubted


def only_uneven(*released: Any) -> solver.Doubt:
    return replace(UNCHANGED(*released), even=0.0)


def beyond_commonest(split: Split, epsilon: float, signal: float, seed: int, doubting: bool) -> float:
    X, y, X_new, y_new = split
    rng = np.random.default_rng(seed)
    y, y_new = partly_replaced(y, signal, rng), partly_replaced(y_new, signal, rng)
    model = DPLogisticRegression(epsilon, 1 / len(y) ** 2, classes=np.unique(y), random_state=seed)
    with nullcontext() if doubting else mock.patch.object(solver, "doubted", only_uneven):
        accuracy = float(model.fit(X, y).score(X_new, y_new))
    return accuracy - float(np.mean(y_new == commonest(y)))


def row(name: str, share: float | None, epsilon: float, seeds: int) -> list[str]:
    split, cells = thinned(name, share), []
    for doubting in (True, False):
        for signal in SIGNALS:
            found = [beyond_commonest(split, epsilon, signal, seed, doubting) for seed in range(seeds)]
            cells.append("{:+.4f} ± {:.4f}".format(*mean_and_error(found)))
    return [name, "–" if share is None else str(share), str(epsilon), *cells]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=24)
    seeds = parser.parse_args().seeds
    rows = [row(name, share, epsilon, seeds) for name, share in CASES for epsilon in EPSILONS]
    print(markdown_table("Labels partly replaced", HEADER, rows))


if __name__ == "__main__":
    main()
