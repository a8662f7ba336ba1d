"""What doubt costs where one class is rare: accuracy of `auto` with the rarer class thinned, on training rows only.

Run `python -m experiments.imbalance`. Seven tenths of the training rows are fitted and the rest are scored, as they are
and with labels in random order, where the commonest class is best. "unheard" is `auto` whose doubt, raised by the first
release, the gradients cannot lift.
"""

from __future__ import annotations

import argparse
from contextlib import nullcontext
from typing import Any
from unittest import mock

import numpy as np

from dpadmm import DPLogisticRegression
from experiments.common import markdown_table, mean_and_error, train_test

CASES = (("mushrooms", 0.1), ("ipums_br", 0.2), ("ipums_br", 0.05), ("adult", 0.05), ("adult", None), ("a9a", None))
EPSILONS = (0.1, 0.2, 0.4, 1.0)
LIFTED = "dpadmm.solvers.auto.label_signal.lifted"
HEADER = ["data", "share", "ε", "commonest class", "auto", "unheard", "random order", "random order, unheard"]

Split = tuple[Any, np.ndarray, Any, np.ndarray]


def thinned(name: str, share: float | None) -> Split:
    """Training rows with so many of the second class that it has `share` of all; every row where it is None."""
    X, y, _, _ = train_test(name)
    rng = np.random.default_rng(0)
    common, rare = (np.flatnonzero(y == label) for label in np.unique(y))
    if share is not None:
        rare = rng.permutation(rare)[: int(len(common) * share / (1 - share))]
    order = rng.permutation(np.concatenate([common, rare]))
    split = int(0.7 * len(order))
    train, held_out = order[:split], order[split:]
    return X[train], y[train], X[held_out], y[held_out]


def accuracy(split: Split, epsilon: float, seed: int, shuffle: bool, listening: bool) -> float:
    X, y, X_new, y_new = split
    if shuffle:
        rng = np.random.default_rng(seed)
        y, y_new = rng.permutation(y), rng.permutation(y_new)
    model = DPLogisticRegression(epsilon, 1 / len(y) ** 2, classes=np.unique(y), random_state=seed)
    with nullcontext() if listening else mock.patch(LIFTED, return_value=0.0):
        return float(model.fit(X, y).score(X_new, y_new))


def row(name: str, share: float | None, epsilon: float, seeds: int) -> list[str]:
    split = thinned(name, share)
    cells = []
    for shuffle in (False, True):
        for listening in (True, False):
            found = [accuracy(split, epsilon, seed, shuffle, listening) for seed in range(seeds)]
            cells.append("{:.4f} ± {:.4f}".format(*mean_and_error(found)))
    commonest = np.unique(split[3], return_counts=True)[1].max() / len(split[3])
    return [name, "–" if share is None else str(share), str(epsilon), f"{commonest:.4f}", *cells]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=16)
    seeds = parser.parse_args().seeds
    rows = [row(name, share, epsilon, seeds) for name, share in CASES for epsilon in EPSILONS]
    print(markdown_table("Rare classes", HEADER, rows))


if __name__ == "__main__":
    main()
