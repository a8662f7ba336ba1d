"""Test accuracy and AUC of `DPLogisticRegression()` with default parameters, beside other solvers, an oracle and peers.

Run `python -m experiments.accuracy` (cached and resumable: results/accuracy.json), or `--quick` for three seeds and ε.
`python -m experiments.accuracy_pages --write` then makes docs/accuracy.md and docs/accuracy-details.md of it. Data:
`$DPADMM_DATA` or the cache of `dpadmm.datasets`.
Protocol: δ = 1/n² (mnist: 1e-5), replace-one, seeds 0, 1, …; official test split, or a random half (seed 0).
The oracle settings here are those of docs/splits.md: DP-GD, clip, travel and longest step picked by TEST accuracy. The
stronger oracles of docs/accuracy.md are in `experiments.whitened`.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from dpadmm import DPLogisticRegression, LaplacianBlur
from dpadmm.files import replacing
from dpadmm.problem.smoothers import GridLaplacian
from dpadmm.solvers.base import Setting
from dpadmm.solvers.baselines import proximal
from experiments.common import commonest, train_test

EPSILONS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.0)
QUICK = (0.05, 0.2, 1.0)
DATASETS = ("adult", "a9a", "mushrooms", "ipums_br", "w8a", "covtype", "mnist", "bio_train")
ORACLE_GRID = tuple(itertools.product((0.25, 0.5, 1.0), (0.25, 0.5, 1.0, 2.0, 4.0), (0.5, 1.5)))
SOLVERS = ("full-admm", "dp-sadmm", "dp-vradmm", "ssadmm", "mpadmm", "dp-sgd", "dp-gd")
IMAGES = ("mnist",)
SIGNAL_FREE = "auto, labels in random order"
VERSIONS = {
    **dict.fromkeys(SOLVERS, 2),
    "dp-vradmm": 3,
    **dict.fromkeys(("auto", "auto, add-remove"), 5),
    SIGNAL_FREE: 6,
}
"""Raised whenever default rules or random streams of a method change: results of earlier versions are not shown."""
SHUFFLED = ("adult", "a9a", "mushrooms", "ipums_br", "w8a", "covtype", "bio_train")
RESULTS = Path("results/accuracy.json")

Score = tuple[float, float | None]
Rows = tuple[Any, np.ndarray, Any, np.ndarray]


def delta_for(name: str, n_rows: int) -> float:
    return 1e-5 if name == "mnist" else 1 / n_rows**2


def score(model: Any, X: Any, y: np.ndarray) -> Score:
    auc = float(roc_auc_score(y, model.decision_function(X))) if len(model.classes_) == 2 else None
    return float(model.score(X, y)), auc


def private(name: str, epsilon: float, seed: int, rows: Rows | None = None, **parameters: Any) -> Score:
    """On the usual split, or on the rows given: to train on and to test on."""
    X, y, X_test, y_test = train_test(name) if rows is None else rows
    model = DPLogisticRegression(
        epsilon, delta_for(name, len(y)), classes=np.unique(y_test), random_state=seed, **parameters
    ).fit(X, y)
    return score(model, X_test, y_test)


def blurred(name: str, epsilon: float, seed: int) -> Score:
    """`auto` on images whose pixels were declared to form a grid."""
    X, y, X_test, y_test = train_test(name)
    blur = LaplacianBlur(GridLaplacian(1.0, 28, 28)).fit(X)
    model = DPLogisticRegression(epsilon, delta_for(name, len(y)), classes=np.unique(y_test), random_state=seed)
    return score(model.fit(blur.transform(X), y), blur.transform(X_test), y_test)


def without_signal(name: str, epsilon: float, seed: int) -> Score:
    """`auto` on labels in random order, beyond the commonest class of the training rows.

    Labels of training and test rows are mixed first, so that the classes have like shares among both.
    """
    X, y, X_test, y_test = train_test(name)
    labels = np.random.default_rng(seed).permutation(np.concatenate([y, y_test]))
    labels, new_labels = labels[: len(y)], labels[len(y) :]
    model = DPLogisticRegression(epsilon, delta_for(name, len(y)), classes=np.unique(y_test), random_state=seed)
    accuracy, auc = score(model.fit(X, labels), X_test, new_labels)
    return accuracy - float(np.mean(new_labels == commonest(labels))), auc


def oracle_setting(clip: float, factor: float, longest: float) -> Callable[..., Score]:
    """DP-GD with this clip, travel and longest step; short steps average the second half, as they move to the end."""
    options = {"averaging": "tail"} if longest < 1 else None

    def compute(name: str, epsilon: float, seed: int, rows: Rows | None = None) -> Score:
        with travelling(factor, longest):
            return private(name, epsilon, seed, rows, solver="dp-gd", clip_norm=clip, solver_options=options)

    return compute


@contextmanager
def travelling(factor: float, longest: float) -> Iterator[None]:
    travel, longest_step = Setting.travel, proximal.LONGEST_STEP
    Setting.travel = lambda self, problem: factor * travel(self, problem)  # type: ignore[method-assign]
    proximal.LONGEST_STEP = longest
    try:
        yield
    finally:
        Setting.travel = travel  # type: ignore[method-assign]
        proximal.LONGEST_STEP = longest_step


def without_privacy(name: str) -> Score:
    X, y, X_test, y_test = train_test(name)
    model = LogisticRegression(C=1e3, max_iter=300).fit(X[:60_000], y[:60_000])
    return score(model, X_test, y_test)


METHODS: dict[str, Callable[..., Score]] = {
    "auto": private,
    "auto, blurred": blurred,
    "auto, add-remove": functools.partial(private, relation="add-remove"),
    SIGNAL_FREE: without_signal,
    **{solver: functools.partial(private, solver=solver) for solver in SOLVERS},
    **{f"oracle {clip:g} {factor:g} {cap:g}": oracle_setting(clip, factor, cap) for clip, factor, cap in ORACLE_GRID},
}
ORACLE = [*(method for method in METHODS if method.startswith("oracle")), "dp-gd"]
SEEDS, SEEDS_OF_OTHERS = 10, 3
CONTESTED = {
    **{("mushrooms", epsilon): 100 for epsilon in EPSILONS},
    ("mushrooms", 0.1): 1000,
    ("a9a", 0.8): 20,
    ("a9a", 1.0): 100,
    ("w8a", 0.05): 10,
    ("w8a", 0.1): 10,
    **{("bio_train", epsilon): 10 for epsilon in EPSILONS if epsilon >= 0.1},
}
"""Cells that three seeds cannot decide: all methods get at least so many."""
SEEDS_OF_AUTO = dict.fromkeys(("adult", "a9a", "mushrooms", "ipums_br", "w8a", "bio_train"), 100)
"""Where a fit is short: ten scatter by as much as the goals leave room for."""


def cached(results: dict[str, Any], key: str, compute: Callable[[], Score]) -> Score:
    if key not in results:
        results[key] = compute()
        RESULTS.parent.mkdir(exist_ok=True)
        with replacing(RESULTS) as stream:
            stream.write(json.dumps(results, indent=0, sort_keys=True).encode())
    return results[key]


def stored_as(method: str) -> str:
    """The method's name among the cached results: with its version, if it has had more than one."""
    version = VERSIONS.get(method, 1)
    return method if version == 1 else f"{method}@{version}"


def applies(method: str, name: str) -> bool:
    if method == "auto, blurred":
        return name in IMAGES
    return method != SIGNAL_FREE or name in SHUFFLED


def seeds_for(method: str, name: str, epsilon: float, most: int) -> int:
    usual = SEEDS_OF_AUTO.get(name, SEEDS) if method in ("auto", SIGNAL_FREE) else SEEDS_OF_OTHERS
    contested = 0 if method == SIGNAL_FREE else CONTESTED.get((name, epsilon), 0)
    return min(most, max(usual, contested))


def collect(datasets: list[str], methods: list[str], epsilons: tuple[float, ...], seeds: int) -> dict[str, Any]:
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    console = Console(stderr=True)
    for name in datasets:
        cached(results, f"{name}|none", lambda name=name: without_privacy(name))
        for method in methods:
            if not applies(method, name):
                continue
            for epsilon in epsilons:
                for seed in range(seeds_for(method, name, epsilon, seeds)):
                    console.print(f"{name} {method} ε={epsilon} seed {seed}", end="\r")
                    key = f"{name}|{stored_as(method)}|{epsilon}|{seed}"
                    cached(results, key, lambda: METHODS[method](name, epsilon, seed))  # noqa: B023
    return results


def scores(results: dict[str, Any], name: str, method: str, epsilon: float) -> list[Score]:
    return [value for key, value in results.items() if key.startswith(f"{name}|{stored_as(method)}|{epsilon}|")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="three seeds, three ε")
    parser.add_argument("--seeds", type=int, default=1000, help="at most so many a cell")
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS))
    parser.add_argument("--methods", nargs="+", default=[each for each in METHODS if each not in ORACLE[:-1]])
    options = parser.parse_args()
    seeds, epsilons = (3, QUICK) if options.quick else (options.seeds, EPSILONS)
    collect(options.datasets, options.methods, epsilons, seeds)


if __name__ == "__main__":
    main()
