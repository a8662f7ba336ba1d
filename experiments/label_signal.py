"""Whether what `auto` is told sets labels with signal apart from labels in random order, on training rows only.

Run `python -m experiments.label_signal`. Seven tenths of the training rows are fitted, with their labels and with
labels in random order, and the rest are scored. A referee sees, of every fit, how far the first release and the
gradients lie beyond their noise, how far they agree, and the length of the margins; it learns from other fits of the
same table, of which it was told which is which, so it knows more than any rule can. "told apart" is its AUC: 0.5 is
guessing.

"gained" is accuracy beyond that of the commonest class with the true labels, "lost" what falls short of it in random
order. Let a rule call a share s of the rows rare, where the rare class has a share p of all rows and q of those. It
gains s(2q - 1) and loses s(1 - 2p). Where answers with and without signal have the same law, s has the same law, too,
so what is lost is at least (1 - 2p) times what is gained: "least loss", if nothing told them apart. Only giving up the
gain avoids it.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import QuantileTransformer

from dpadmm import DPLogisticRegression
from dpadmm.solvers.auto.gradient_evidence import Evidence
from dpadmm.solvers.auto.solver import Auto, AutoState
from experiments.common import commonest, markdown_table, mean_and_error
from experiments.imbalance import Split, thinned

DATASETS = ("adult", "a9a", "w8a")
EPSILONS = (0.05, 0.1, 0.2, 0.4, 1.0)
HEADER = ["data", "ε", "told apart", "gained", "lost", "least loss"]


def statistics(state: AutoState, newest: Evidence) -> list[float]:
    """Of the answers beyond the top direction: their sizes in units of noise, their agreement, and the margins."""
    values = state.coordinates.eigenvalues[:-1]
    first, later = (
        each.mean[:-1] / np.sqrt(np.broadcast_to(each.variance, each.mean.shape)[:-1])
        for each in (state.older[0], newest)
    )
    weights = (values**1.5, values**0.75, values**0.5)
    sizes = (first**2 - 1, later**2 - 1, first * later)
    found = [float(weight @ size / np.linalg.norm(weight)) for weight, size in zip(weights, sizes, strict=True)]
    return [*found, float(state.coordinates.energy[:-1] @ state.z[:-1] ** 2)]


@contextmanager
def noting(heard: list[list[float]]) -> Iterator[None]:
    """Keep the statistics of every fit inside."""
    confidence = Auto._confidence

    def noted(self: Auto, state: AutoState, newest: Evidence):
        heard.append(statistics(state, newest))
        return confidence(self, state, newest)

    with mock.patch.object(Auto, "_confidence", noted):
        yield


def beyond_commonest(split: Split, epsilon: float, seed: int, shuffle: bool) -> float:
    X, y, X_new, y_new = split
    if shuffle:
        rng = np.random.default_rng(seed)
        y, y_new = rng.permutation(y), rng.permutation(y_new)
    model = DPLogisticRegression(epsilon, 1 / len(y) ** 2, classes=np.unique(y), random_state=seed).fit(X, y)
    return float(model.score(X_new, y_new)) - share_of_commonest(y_new)


def share_of_commonest(y: np.ndarray) -> float:
    return float(np.mean(y == commonest(y)))


def referee(heard: list[list[float]], shuffled: np.ndarray) -> float:
    judge = make_pipeline(QuantileTransformer(n_quantiles=50, output_distribution="normal"), LogisticRegression())
    guess = cross_val_predict(judge, np.array(heard), ~shuffled, cv=10, method="decision_function")
    return float(roc_auc_score(~shuffled, guess))


def row(name: str, epsilon: float, seeds: int) -> list[str]:
    split, heard = thinned(name, None), list[list[float]]()
    shuffled = np.repeat([False, True], seeds)
    with noting(heard):
        found = np.array([beyond_commonest(split, epsilon, k % seeds, bool(shuffled[k])) for k in range(2 * seeds)])
    gained, lost = mean_and_error(list(found[~shuffled])), mean_and_error(list(-found[shuffled]))
    least = (2 * share_of_commonest(split[3]) - 1) * max(gained[0], 0.0)
    shown = ["{:.4f} ± {:.4f}".format(*each) for each in (gained, lost)]
    return [name, str(epsilon), f"{referee(heard, shuffled):.2f}", *shown, f"{least:.4f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=100)
    seeds = parser.parse_args().seeds
    rows = [row(name, epsilon, seeds) for name in DATASETS for epsilon in EPSILONS]
    print(markdown_table("Labels with signal and labels in random order", HEADER, rows))


if __name__ == "__main__":
    main()
