"""How the default clip and total step length were chosen: a grid on a9a, ipums_br, mushrooms and w8a.

The score is accuracy on the second half or official test part of these four development sets, so those numbers are
optimistic there; Adult, covtype, mnist and the simulated data were not used. Run `python -m experiments.travel`.
"""

from __future__ import annotations

import argparse

import numpy as np

from dpadmm import DPLogisticRegression
from dpadmm.solvers.base import Setting
from experiments.common import print_table, train_test

DEVELOPMENT = ("a9a", "ipums_br", "mushrooms", "w8a")
FACTORS = (3.0, 6.0, 12.0, 16.0, 24.0)
CLIPS = (0.25, 0.5, 1.0)


def mean_accuracy(name: str, epsilon: float, clip: float, factor: float, seeds: int) -> float:
    X, y, X_test, y_test = train_test(name)
    original = Setting.travel
    Setting.travel = lambda self, problem: original(self, problem) * factor / 16.0  # type: ignore[method-assign]
    try:
        scores = [
            DPLogisticRegression(epsilon, 1e-5, solver="full-admm", clip_norm=clip, classes=[-1, 1], random_state=seed)
            .fit(X, y)
            .score(X_test, y_test)
            for seed in range(seeds)
        ]
    finally:
        Setting.travel = original  # type: ignore[method-assign]
    return float(np.mean(scores))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.1, 0.5, 1.0])
    options = parser.parse_args()
    for name in DEVELOPMENT:
        for epsilon in options.epsilons:
            rows = [
                [f"clip {clip}", *(f"{mean_accuracy(name, epsilon, clip, f, options.seeds):.4f}" for f in FACTORS)]
                for clip in CLIPS
            ]
            print_table(f"{name}, ε = {epsilon}", ["", *(f"factor {factor:g}" for factor in FACTORS)], rows)


if __name__ == "__main__":
    main()
