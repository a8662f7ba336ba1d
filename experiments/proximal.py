"""How the defaults of `dp-sgd` were chosen: clip, longest step and share of averaged iterates, beside their neighbours.

The score is the mean training loss on training rows of adult, a9a, mushrooms and ipums_br, with Poisson batches of 512
for ten epochs under add-remove (what Opacus is given in `benchmarks`) and with the defaults of a fit. w8a, covtype and
mnist were looked at once, afterwards. Run `python -m experiments.proximal`.
"""

from __future__ import annotations

import argparse
import math
from typing import Any

import numpy as np

from dpadmm import DPLogisticRegression
from dpadmm.solvers.baselines import proximal
from experiments.common import print_table, train_test
from experiments.peers.run import classes_as_numbers, mapped, score

DEVELOPMENT = ("adult", "a9a", "mushrooms", "ipums_br")
VARIANTS: dict[str, dict[str, Any]] = {
    "rule": {},
    "clip 1, step 2, last": {"clip_norm": 1.0, "solver_options": {"step_size": 2.0, "averaging": "last"}},
    "clip 0.5": {"clip_norm": 0.5},
    "clip 1": {"clip_norm": 1.0},
    "last": {"solver_options": {"averaging": "last"}},
    "tail": {"solver_options": {"averaging": "tail"}},
}
LONGEST_STEPS = (0.5, 1.0)
"""Limits of the step, in units of 1/g, that are compared with that of the rule."""


def batches_of_512(n_rows: int) -> dict[str, Any]:
    steps = 10 * math.ceil(n_rows / 512)
    return {"delta": 1e-6, "relation": "add-remove", "sampler": "poisson", "batch_size": 512, "steps": steps}


def defaults(n_rows: int) -> dict[str, Any]:
    return {"delta": 1 / n_rows**2}


SETTINGS = {"ten epochs of 512, add-remove": batches_of_512, "defaults, replace-one": defaults}


def mean_loss(data: tuple[Any, ...], epsilon: float, seeds: int, **parameters: Any) -> float:
    X, y, rows, targets = data
    losses = []
    for seed in range(seeds):
        model = DPLogisticRegression(epsilon, solver="dp-sgd", classes=np.unique(y), random_state=seed, **parameters)
        found = score(model.fit(X, y).weights_, rows, targets, rows[:1000], targets[:1000])
        losses.append(found["objective"])
    return float(np.mean(losses))


def mean_loss_with_longest(longest: float, *arguments: Any, **parameters: Any) -> float:
    original = proximal.LONGEST_STEP
    proximal.LONGEST_STEP = longest
    try:
        return mean_loss(*arguments, **parameters)
    finally:
        proximal.LONGEST_STEP = original


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--datasets", nargs="+", default=list(DEVELOPMENT))
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.05, 0.1, 0.4, 1.0])
    options = parser.parse_args()
    header = ["ε", *VARIANTS, *(f"step ≤ {longest:g}/g" for longest in LONGEST_STEPS)]
    for name in options.datasets:
        X, y, _, _ = train_test(name)
        data = (X, y, mapped(X), classes_as_numbers(y))
        for title, setting in SETTINGS.items():
            common = setting(len(y))
            rows = []
            for epsilon in options.epsilons:
                losses = [mean_loss(data, epsilon, options.seeds, **common, **chosen) for chosen in VARIANTS.values()]
                losses += [
                    mean_loss_with_longest(longest, data, epsilon, options.seeds, **common) for longest in LONGEST_STEPS
                ]
                rows.append([f"{epsilon:g}", *(f"{loss:.4f}" for loss in losses)])
            print_table(f"{name}, {title}", header, rows)


if __name__ == "__main__":
    main()
