"""What a shorter prior and doubt gain for `DPLinearSVC`, on training rows only.

Run `python -m experiments.hinge`. Seven tenths of the training rows are fitted, with their labels and with labels in
random order, and the rest are scored, by accuracy beyond the commonest class of the fitted ones. "before" has the prior
of the logistic loss and no doubt. Data: `$DPADMM_DATA` or the cache of `dpadmm.datasets`.
"""

from __future__ import annotations

import argparse
from contextlib import nullcontext
from dataclasses import replace
from unittest import mock

import numpy as np

from dpadmm import DPLinearSVC
from dpadmm.problem.losses.base import Loss
from dpadmm.solvers.auto import solver
from dpadmm.solvers.auto.rules import LossModel
from experiments.common import commonest, markdown_table, mean_and_error
from experiments.imbalance import Split, thinned

CASES = {"adult": 20, "a9a": 20, "mushrooms": 20, "ipums_br": 20, "w8a": 10}
"""Tables and how many seeds each gets, at most."""
EPSILONS = (0.05, 0.1, 0.2, 1.0)
HEADER = ["data", "ε", "accuracy", "before", "random order", "random order, before"]


UNCHANGED = solver.loss_model


def as_before(loss: Loss) -> LossModel:
    model = UNCHANGED(loss)
    assert model is not None
    return replace(model, two_classes=False, prior_factor=1.0, alike_prior_factor=1.0)


def beyond_commonest(split: Split, epsilon: float, seed: int, shuffle: bool, before: bool) -> float:
    X, y, X_new, y_new = split
    if shuffle:
        rng = np.random.default_rng(seed)
        y, y_new = rng.permutation(y), rng.permutation(y_new)
    model = DPLinearSVC(epsilon, 1 / len(y) ** 2, classes=np.unique(y), random_state=seed)
    with mock.patch.object(solver, "loss_model", as_before) if before else nullcontext():
        accuracy = float(model.fit(X, y).score(X_new, y_new))
    return accuracy - float(np.mean(y_new == commonest(y)))


def row(name: str, epsilon: float, seeds: int) -> list[str]:
    split, cells = thinned(name, None), []
    for shuffle in (False, True):
        for before in (False, True):
            found = [beyond_commonest(split, epsilon, seed, shuffle, before) for seed in range(seeds)]
            cells.append("{:+.4f} ± {:.4f}".format(*mean_and_error(found)))
    return [name, str(epsilon), *cells]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20, help="at most so many of a table")
    most = parser.parse_args().seeds
    rows = [row(name, epsilon, min(most, seeds)) for name, seeds in CASES.items() for epsilon in EPSILONS]
    print(markdown_table("A hinge's prior and doubt, beyond the commonest class", HEADER, rows))


if __name__ == "__main__":
    main()
