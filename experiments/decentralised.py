"""Figures 1 to 3 of Huang and Gong (2020) on adult: decentralised ADMM with several noisy local steps, and its rivals.

100 nodes, everybody connected with everybody, all 45,222 rows dealt evenly, logistic loss, ρ = 0.001, ridge 1e-4,
δ = 1e-5, 100 rounds, ten simulations. The paper leaves the diameter D open: it is tuned on the outcome, with seeds of
its own, in favour of the algorithms that have it. A risk is that of nodes' own models (the mean of five nodes) on all
rows. Every trial is kept under `results/decentralised/`, so that an interrupted run goes on where it stopped.
Run `python -m experiments.decentralised`; `--write` renders docs/decentralised.md and its pictures.
Data: `$DPADMM_DATA` or the cache of `dpadmm.datasets`.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
import math
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.progress import track

from dpadmm.datasets import load
from dpadmm.network.decentralised import NetworkRounds, deal, train_decentralised
from experiments.common import markdown_table, mean_and_error, print_table

PAGE = Path("docs/decentralised.md")
CACHE = Path("results/decentralised")
DELTA, NODES, WATCHED, EVERY = 1e-5, 100, 5, 5
DIAMETERS = (100.0, 300.0, 1000.0)
SHORTER_DIAMETERS = (10.0, 30.0, 100.0, 300.0)
"""For large nodes, and for last models, which keep the noise of the last steps."""
TOO_SMALL = 3.0
TUNING_SEED = 1000
STORED_ONLY = False
"""Whether trials that are not stored are left out instead of run."""
EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
LOCAL_STEPS = (1, 5, 10, 25)
COMPARED = (0.5, 1.0)


@dataclass(frozen=True)
class NetworkTrial:
    """One run of one algorithm on adult."""

    algorithm: str
    epsilon: float
    seed: int
    options: tuple[tuple[str, float], ...] = ()
    price: str = "as-published"
    nodes: int = NODES
    held_out: bool = False

    @property
    def path(self) -> Path:
        """Where its outcome is kept."""
        name = json.dumps(asdict(self), sort_keys=True)
        return CACHE / f"{hashlib.sha256(name.encode()).hexdigest()[:24]}.json"


@dataclass
class Watch:
    """Risks of some nodes' models after every few rounds."""

    rows: np.ndarray
    labels: np.ndarray
    rounds: list[int] = field(default_factory=list)
    last: list[float] = field(default_factory=list)
    average: list[float] = field(default_factory=list)

    def __call__(self, run: NetworkRounds) -> None:
        if run.done % EVERY == 0 or run.done in (1, 2, 3) or run.finished:
            self.rounds.append(run.done)
            self.last.append(self.risk(run.exchange.sent))
            self.average.append(self.risk(run.exchange.average))

    def risk(self, models: np.ndarray) -> float:
        chosen = models[:: max(1, len(models) // WATCHED)]
        margins = (self.rows @ chosen.T.astype(np.float32)) * self.labels[:, None]
        ridge = 0.5e-4 * np.mean(np.sum(chosen**2, axis=1)) / len(models)
        return float(np.logaddexp(0, -margins).mean() + ridge)


@functools.lru_cache(maxsize=1)
def adult() -> tuple[np.ndarray, ...]:
    """Training rows, labels, test rows, labels; rows scaled down to norm 1, each by itself."""
    data = load("adult")

    def unit(X: Any) -> np.ndarray:
        rows = np.asarray(X, dtype=np.float32)
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1.0)

    return unit(data.X), data.y, unit(data.X_test), data.y_test


def outcome(trial: NetworkTrial) -> dict[str, Any]:
    """Risks by round, and the accuracy on held-out rows where there are some; from the cache if it was run before."""
    if trial.path.exists():
        kept: dict[str, Any] = json.loads(trial.path.read_text())["outcome"]
        return kept
    X, y, X_test, y_test = adult()
    rows, labels = (X, y) if trial.held_out else (np.vstack([X, X_test]), np.concatenate([y, y_test]))
    watch, start = Watch(rows, labels.astype(np.float32)), time.perf_counter()
    model = train_decentralised(
        deal(rows, labels, trial.nodes),
        trial.epsilon,
        DELTA,
        algorithm=trial.algorithm,
        options=dict(trial.options),
        classes=[-1, 1],
        price=trial.price,
        random_state=trial.seed,
        observers=[watch],
    )
    found = {
        "rounds": watch.rounds,
        "last": watch.last,
        "average": watch.average,
        "seconds": time.perf_counter() - start,
        "heuristic_epsilon": getattr(model.promises[0], "epsilon", 0.0),
        "accuracy": {kind: _accuracy(getattr(model, kind), X_test, y_test) for kind in ("last", "average")},
    }
    CACHE.mkdir(parents=True, exist_ok=True)
    trial.path.write_text(json.dumps({"trial": asdict(trial), "outcome": found}))
    return found


def _accuracy(models: np.ndarray, rows: np.ndarray, labels: np.ndarray) -> float:
    """Mean accuracy of some nodes' own models; of use only where the rows were held out."""
    chosen = models[:: max(1, len(models) // WATCHED)]
    return float(np.mean((rows @ chosen.T) * labels[:, None] > 0))


# -- trials --------------------------------------------------------------------------------------------------------


def ipadmm(epsilon: float, local_steps: int, diameter: float, seed: int, **more: Any) -> NetworkTrial:
    """The paper's algorithm."""
    rounds, radius = more.pop("rounds", 100), more.pop("radius", None)
    options = (("diameter", diameter), ("local_steps", local_steps), ("rounds", rounds))
    options += () if radius is None else (("radius", radius),)
    return NetworkTrial("ipadmm", epsilon, seed, options, **more)


def tuned(epsilon: float, local_steps: int, among: tuple[float, ...] = DIAMETERS, **more: Any) -> float:
    """The diameter with the least risk of the average, by a seed that no figure uses."""

    def risk(diameter: float) -> float:
        return float(outcome(ipadmm(epsilon, local_steps, diameter, TUNING_SEED, **more))["average"][-1])

    return min(among, key=risk)


def tuned_dp_admm(epsilon: float) -> float:
    """The same for DP-ADMM, by its last model."""
    return min(SHORTER_DIAMETERS, key=lambda d: float(outcome(dp_admm(epsilon, d, TUNING_SEED))["last"][-1]))


def dp_admm(epsilon: float, diameter: float, seed: int) -> NetworkTrial:
    return NetworkTrial("dp-admm", epsilon, seed, (("diameter", diameter),))


def many(trials: Iterable[NetworkTrial], stored_only: bool | None = None) -> list[dict[str, Any]]:
    """All outcomes, or those that are stored."""
    only = STORED_ONLY if stored_only is None else stored_only
    return [outcome(trial) for trial in trials if not only or trial.path.exists()]


class RiskOf(NamedTuple):
    """Mean risk, its standard error, and of how many simulations."""

    mean: float
    error: float
    runs: int

    def __str__(self) -> str:
        return f"{self.mean:.4f} ± {self.error:.4f} ({self.runs})" if self.runs > 1 else f"{self.mean:.4f}"


def risks(found: list[dict[str, Any]], kind: str) -> RiskOf:
    """Of the models after the last round."""
    return RiskOf(*mean_and_error([each[kind][-1] for each in found]), len(found))


def curve(found: list[dict[str, Any]], kind: str) -> tuple[list[int], np.ndarray, np.ndarray]:
    """Rounds, mean risk and standard error."""
    values = np.array([each[kind] for each in found])
    spread = values.std(axis=0, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.zeros(values.shape[1])
    return found[0]["rounds"], values.mean(axis=0), spread


# -- figures -------------------------------------------------------------------------------------------------------


def figure_one(seeds: int) -> list[tuple[float, float, RiskOf]]:
    """ε, tuned D and risk of IPADMM with ten local steps."""
    found = []
    for epsilon in EPSILONS:
        diameter = tuned(epsilon, 10)
        trials = (ipadmm(epsilon, 10, diameter, s) for s in range(seeds))
        found.append((epsilon, diameter, risks(many(trials), "average")))
    return found


class LocalSteps(NamedTuple):
    """Risks of the average at one number of local steps: at a tuned D, at one that is too small, and at that one
    without the projection, which the theory of the paper needs and its algorithm lacks."""

    steps: int
    diameter: float
    tuned: RiskOf
    small: RiskOf
    unprojected: RiskOf


def figure_two(seeds: int, epsilon: float = 1.0) -> list[LocalSteps]:
    """One entry for each number of local steps."""

    def at(local_steps: int, diameter: float, **more: Any) -> RiskOf:
        return risks(many(ipadmm(epsilon, local_steps, diameter, s, **more) for s in range(seeds)), "average")

    return [
        LocalSteps(steps, best, at(steps, best), at(steps, TOO_SMALL), at(steps, TOO_SMALL, radius=math.inf))
        for steps in LOCAL_STEPS
        for best in [tuned(epsilon, steps)]
    ]


def scarce_rounds(seeds: int, epsilon: float = 1.0) -> list[tuple[int, float, RiskOf]]:
    """Local steps, tuned D and risk with 4 nodes and 10 rounds."""
    found = []
    for local_steps in LOCAL_STEPS:
        few: dict[str, Any] = {"nodes": 4, "rounds": 10}
        best = tuned(epsilon, local_steps, SHORTER_DIAMETERS, **few)
        trials = (ipadmm(epsilon, local_steps, best, s, **few) for s in range(seeds))
        found.append((local_steps, best, risks(many(trials), "average")))
    return found


def rivals(epsilon: float, seeds: int) -> dict[str, list[dict[str, Any]]]:
    """All algorithms at one ε: name → outcomes."""
    numbers = range(seeds)
    best, own = tuned(epsilon, 10), tuned_dp_admm(epsilon)
    return {
        "ipadmm": many(ipadmm(epsilon, 10, best, s) for s in numbers),
        "dp-admm": many(dp_admm(epsilon, own, s) for s in numbers),
        "pvp": many(NetworkTrial("pvp", epsilon, s) for s in numbers),
        "dvp": many(NetworkTrial("dvp", epsilon, s) for s in numbers),
        "radmm": many(NetworkTrial("radmm", epsilon, s) for s in numbers),
        "dvp, bound for exact minima": many(NetworkTrial("dvp", epsilon, s, (), "proved-if-exact") for s in numbers),
        "radmm, bound for exact minima": many(
            NetworkTrial("radmm", epsilon, s, (), "proved-if-exact") for s in numbers
        ),
        "admm": [outcome(NetworkTrial("admm", 1.0, 0))],
    }


def accuracies(seeds: int) -> list[list[str]]:
    """Test accuracy of models trained on the training rows alone."""
    lines = []
    for epsilon in COMPARED:
        best = tuned(epsilon, 10)
        trained = {
            "IPADMM, 10 local steps, average": [ipadmm(epsilon, 10, best, s, held_out=True) for s in range(seeds)],
            "IPADMM, 1 local step, average": [
                ipadmm(epsilon, 1, tuned(epsilon, 1), s, held_out=True) for s in range(seeds)
            ],
            "PVP, average": [NetworkTrial("pvp", epsilon, s, held_out=True) for s in range(seeds)],
        }
        for name, trials in trained.items():
            found = [each["accuracy"]["average"] for each in many(trials)]
            lines.append([f"{epsilon:g}", name, str(RiskOf(*mean_and_error(found), len(found)))])
    return lines


def speed(runs: int) -> None:
    """Seconds of 100 nodes, 100 rounds and 10 local steps, calibration and the loading of kernels included."""
    X, y, X_test, y_test = adult()
    tables = deal(np.vstack([X, X_test]), np.concatenate([y, y_test]), NODES)
    for _ in range(runs):
        start, worked = time.perf_counter(), time.process_time()
        train_decentralised(tables, 1.0, DELTA, classes=[-1, 1])
        print(f"{time.perf_counter() - start:.1f} s, {time.process_time() - worked:.1f} s of one processor")


# -- page ----------------------------------------------------------------------------------------------------------


def tables(seeds: int) -> list[tuple[str, list[str], list[list[str]]]]:
    """Everything the page shows as numbers."""
    one = [[f"{e:g}", f"{d:g}", str(risk)] for e, d, risk in figure_one(seeds)]
    two = [[str(each.steps), f"{each.diameter:g}", *map(str, each[2:])] for each in figure_two(seeds)]
    few = [[str(steps), f"{best:g}", str(risk)] for steps, best, risk in scarce_rounds(seeds)]
    three = [
        [f"{epsilon:g}", name, str(risks(found, "last")), str(risks(found, "average")), _true(found)]
        for epsilon in COMPARED
        for name, found in rivals(epsilon, seeds).items()
    ]
    last = ["claimed ε", "algorithm", "last", "average", "ε proved, or for exact minima"]
    return [
        ("Figure 1: risk against ε, IPADMM with ten local steps", ["ε", "tuned D", "risk of the average"], one),
        ("Figure 2: local steps at ε = 1", ["local steps", "tuned D", "at tuned D", "at D = 3", "not projected"], two),
        ("Scarce rounds: 4 nodes, 10 rounds, ε = 1", ["local steps", "tuned D", "risk of the average"], few),
        ("Figure 3: all algorithms after 100 rounds", last, three),
        ("Accuracy on test rows, trained on the 30,162 others", ["ε", "algorithm", "accuracy"], accuracies(seeds)),
    ]


def _true(found: list[dict[str, Any]]) -> str:
    """ε by the proof, or by the bound that assumes exact minima."""
    return f"{found[0]['heuristic_epsilon']:.3g}" if found[0]["heuristic_epsilon"] else "not private"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--stored", action="store_true", help="show the trials that are stored, and run no other")
    parser.add_argument("--write", action="store_true", help="render docs/decentralised.md and its pictures")
    parser.add_argument(
        "--only", choices=["one", "two", "few", "three", "accuracy", "speed"], help="run one part, print nothing"
    )
    options = parser.parse_args()
    global STORED_ONLY
    STORED_ONLY = options.stored
    parts = {
        "one": figure_one,
        "two": figure_two,
        "few": scarce_rounds,
        "three": lambda seeds: [rivals(epsilon, seeds) for epsilon in track(COMPARED)],
        "accuracy": accuracies,
        "speed": speed,
    }
    if options.only:
        parts[options.only](options.seeds)  # type: ignore[operator]
        return
    found = tables(options.seeds)
    for table in found:
        print_table(*table)
    if options.write:
        write_page(found, options.seeds)


def write_page(found: list[tuple[str, list[str], list[list[str]]]], seeds: int) -> None:
    """docs/decentralised.md and its pictures."""
    from experiments.decentralised_pictures import INTRODUCTION, draw, verdicts

    draw(seeds)
    PAGE.write_text(
        "\n".join(
            [
                INTRODUCTION,
                verdicts(seeds),
                *(markdown_table(*table) for table in found),
            ]
        )
    )


if __name__ == "__main__":
    # The pictures import this module by its name: only one of the two copies is to run.
    from experiments.decentralised import main as named_main

    named_main()
