"""Whether `auto` should expect larger margins where a table has few features: a prior of another width, on splits.

`python -m experiments.prior_width FILE.npz … [--epsilon 0.05 …] [--seeds 8]` reads X and y (−1 or +1) of each file,
splits the rows at random into four fifths to train on and one fifth to score, anew for each seed, and prints by how
much accuracy, AUC and mean loss change if the variance of the margins under the prior is multiplied. Split, plan and
noise are the same for every width. δ = 1/n², replace-one, defaults.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from unittest import mock

import numpy as np
from sklearn.metrics import roc_auc_score

from dpadmm import DPLogisticRegression
from dpadmm.solvers.auto import solver as auto
from experiments.common import mean_and_error, print_table

WIDTHS = (0.4, 0.7, 1.5, 2.0)


def scores(X: np.ndarray, y: np.ndarray, epsilon: float, seed: int, width: float) -> list[float]:
    """Accuracy, AUC and mean logistic loss on the rows held out."""
    order = np.random.default_rng(1000 + seed).permutation(len(y))
    fitted, held_out = order[: int(0.8 * len(y))], order[int(0.8 * len(y)) :]
    usual = auto.usual_prior
    with mock.patch.object(auto, "usual_prior", lambda *given: width * usual(*given)):
        model = DPLogisticRegression(
            epsilon, 1 / len(fitted) ** 2, classes=[-1, 1], row_norm=1.0, random_state=seed
        ).fit(X[fitted], y[fitted])
    margins, labels = model.decision_function(X[held_out]), y[held_out]
    loss = float(np.mean(np.logaddexp(0.0, -labels * margins)))
    return [model.score(X[held_out], labels), float(roc_auc_score(labels, margins)), loss]


def compare(file: Path, epsilon: float, seeds: int) -> None:
    with np.load(file) as arrays:
        X, y = arrays["X"], arrays["y"]
    base = np.array([scores(X, y, epsilon, seed, 1.0) for seed in range(seeds)])
    lines = [["as it is", *(f"{value:.4f}" for value in base.mean(axis=0))]]
    for width in WIDTHS:
        gains = np.array([scores(X, y, epsilon, seed, width) for seed in range(seeds)]) - base
        lines.append([f"× {width:g}", *("{:+.4f} ± {:.4f}".format(*mean_and_error(list(each))) for each in gains.T)])
    print_table(f"{file.stem}, {X.shape[1]} features, ε = {epsilon:g}", ["variance", "accuracy", "AUC", "loss"], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--epsilon", nargs="+", type=float, default=[0.05, 0.2, 1.0])
    parser.add_argument("--seeds", type=int, default=8)
    given = parser.parse_args()
    for file in given.files:
        for epsilon in given.epsilon:
            compare(file, epsilon, given.seeds)


if __name__ == "__main__":
    main()
