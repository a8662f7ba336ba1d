"""Audits of every solver, every estimator and every mutant: claimed, proven and audited ε.

Run `python -m experiments.audit` (cached and resumable: results/audit.json), or `--quick` for a tenth of the
runs of solvers and estimators.
`--write` renders docs/audit.md and docs/audit.svg from the full audits.
Needs no data. Seeded: the audits, not the library, are repeatable.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable
from dataclasses import asdict
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from dpadmm import DPLinearRegression, DPLinearSVC, DPLogisticRegression, DPSearchCV
from dpadmm.audit import (
    audit_fit,
    audit_model,
    audit_solver,
    power_of_guesses,
    power_of_pairs,
    power_of_threshold,
    worst_tables,
)
from dpadmm.files import replacing
from dpadmm.preparation import PrivateGraph, PrivateQuantileClipper
from dpadmm.report.audits import Audited, audit_picture
from dpadmm.solvers.base import SOLVERS
from experiments.common import markdown_table, print_table
from experiments.mutants import MUTANTS

EPSILONS = (0.2, 1.0)
RUNS, QUICK_RUNS = 5000, 500
ROWS, DELTA = 8, 0.1
PAGE, PICTURE, RESULTS = Path("docs/audit.md"), Path("docs/audit.svg"), Path("results/audit.json")
SAVED_ROWS, SAVED_DELTA = 2000, 1e-5
SIZES = (400, 2000, 10_000, 100_000)

LABELS = {"classes": (0, 1)}, (0, 1)
ESTIMATORS: dict[str, tuple[type[Any], dict[str, Any], tuple[Any, Any]]] = {
    "logistic regression": (DPLogisticRegression, *LABELS),
    "logistic regression, exact": (DPLogisticRegression, {"classes": (0, 1), "arithmetic": "exact"}, (0, 1)),
    "softmax regression": (DPLogisticRegression, {"classes": (0, 1, 2)}, (0, 0)),
    "support vector machine": (DPLinearSVC, *LABELS),
    "least squares": (DPLinearRegression, {"target_bounds": (-1.0, 1.0)}, (-1.0, 1.0)),
    "Huber regression": (DPLinearRegression, {"loss": "huber", "target_bounds": (-1.0, 1.0)}, (-1.0, 1.0)),
}


def estimator_audit(name: str, epsilon: float, runs: int, **more: Any) -> Any:
    """One estimator on its worst pair, two rounds of its default solver unless more is said."""
    kind, declared, labels = ESTIMATORS[name]
    model = kind(epsilon, DELTA, **{"steps": 2, "fit_intercept": False, "random_state": 0, **declared, **more})
    return audit_fit(model, *worst_tables(labels, ROWS), runs=runs)


class Cache:
    """Results by name; every new one is written at once."""

    def __init__(self, quick: bool) -> None:
        self._results: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        self.runs = QUICK_RUNS if quick else RUNS

    def __call__(self, key: str, runs: int, compute: Callable[[int], Any]) -> dict[str, Any]:
        key = f"{key} | {runs}"
        if key not in self._results:
            self._results[key] = asdict(compute(runs))
            RESULTS.parent.mkdir(exist_ok=True)
            with replacing(RESULTS) as stream:
                stream.write(json.dumps(self._results, indent=0, sort_keys=True).encode())
        found: dict[str, Any] = self._results[key]
        return found


Audits = list[tuple[str, dict[str, Any]]]


def at_both_budgets(cached: Cache, names: Iterable[str], audit: Callable[..., Any]) -> Audits:
    return [
        (name, cached(f"{name} {epsilon}", cached.runs, partial(audit, name, epsilon)))
        for name, epsilon in product(names, EPSILONS)
    ]


def solver_audits(cached: Cache) -> Audits:
    return at_both_budgets(
        cached, SOLVERS, lambda name, epsilon, n: audit_solver(name, epsilon, runs=n, random_state=0)
    )


def estimator_audits(cached: Cache) -> Audits:
    return at_both_budgets(cached, ESTIMATORS, estimator_audit)


def audit_lines(audits: Audits) -> list[list[str]]:
    return [
        [
            name,
            f"{found['claimed']:g}",
            f"{found['proven']:.4f}",
            f"{found['lower_bound']:.3f}",
            f"{found['power']:.3f}",
            found["method"],
            "REFUTED" if found["lower_bound"] > found["claimed"] else "stands",
        ]
        for name, found in audits
    ]


def saved_model(**options: Any) -> Any:
    X = np.random.default_rng(0).normal(size=(SAVED_ROWS, 5))
    settings = {"classes": (0, 1), **options}
    return DPLogisticRegression(1.0, SAVED_DELTA, **settings).fit(X, (X[:, 0] > 0).astype(int))


def saved_search() -> Any:
    X = np.random.default_rng(0).normal(size=(SAVED_ROWS, 5))
    search = DPSearchCV(DPLogisticRegression(1.0, SAVED_DELTA, classes=(0, 1), penalty="l1"), {"alpha": [1e-4, 1e-3]})
    return search.fit(X, (X[:, 0] > 0).astype(int)).best_estimator_


SAVED: dict[str, tuple[Callable[[], Any], int]] = {
    "auto": (saved_model, 2000),
    "auto, private bounds": (partial(saved_model, bounds=PrivateQuantileClipper((-50.0, 50.0))), 500),
    "auto, private graph": (partial(saved_model, penalty="graph", graph=PrivateGraph()), 500),
    "auto, exact arithmetic": (partial(saved_model, arithmetic="exact"), 200),
    "noisy-admm": (partial(saved_model, solver="noisy-admm"), 200),
    "search over auto": (saved_search, 200),
}
"""Sorts of models, with as many runs as take seconds, or a minute."""


def saved_lines(cached: Cache) -> list[list[str]]:
    lines = []
    for name, (make, runs) in SAVED.items():
        found = cached(f"saved {name}", runs, lambda n, make=make: audit_model(make(), n, random_state=0))
        (line,) = audit_lines([(name, found)])
        noise = f"{found['detectable_noise']:.2g}"
        lines.append([*line[:5], noise, str(len(found["attacks"])), str(found["runs"]), *line[5:]])
    return lines


def mutant_lines(cached: Cache) -> list[list[str]]:
    lines = []
    for name, mutant in MUTANTS.items():
        found = cached(f"mutant {name}", mutant.runs, mutant.audit)
        honest = "" if found["honest"] is None else f"{found['honest']:.2f}"
        caught = "yes" if found["audited"] > found["claimed"] else "NO"
        lines.append(
            [
                name,
                mutant.broken,
                f"{found['claimed']:g}",
                f"{found['audited']:.2f}",
                caught,
                honest,
                str(found["runs"]),
            ]
        )
    return lines


def power_lines() -> list[list[str]]:
    lines = []
    for epsilon, delta in ((1.0, 0.05), (0.2, 0.05), (1.0, 1e-5)):
        for runs in SIZES:
            pairs, threshold = power_of_pairs(epsilon, delta, runs), power_of_threshold(epsilon, delta, runs)
            lines.append(
                [
                    f"{epsilon:g}",
                    f"{delta:g}",
                    str(runs),
                    *(f"{power.expected:.3f}" for power in (pairs, threshold)),
                    *(f"{power.noise:.2f}" for power in (pairs, threshold)),
                ]
            )
    return lines


def one_run_power_lines() -> list[list[str]]:
    lines = []
    for epsilon in (1.0, 3.0):
        for coins in (100, 500, 2000, 10_000):
            guesses = round(0.54 * coins)
            power = power_of_guesses(epsilon, 1e-5, coins, guesses - guesses % 2)
            lines.append([f"{epsilon:g}", str(coins), f"{power.expected:.3f}", f"{power.noise:.2f}"])
    return lines


INTRODUCTION = """# Audits

Generated by `python -m experiments.audit --write`; do not edit. Everything here is seeded and about made-up tables.

A proof gives an upper bound on ε. An audit finds the smallest ε that is consistent with an attack: a **lower
bound**. The attack runs the library as it is. An attacker who knows everything except one record, and sees every
noisy answer, guesses which of two tables was used. If the guesses are right more often than the claimed ε allows,
the claim is false, and the lower bound exceeds it.

![claimed, proven and audited ε of every solver](audit.svg)

## How to read an audit

| key | meaning |
|---|---|
| `claimed` | the ε that was promised, at `delta` and `relation` |
| `proven` | what the accountant proves of the plan that was run; at most `claimed` |
| `lower_bound` | the true ε is at least this, with probability `confidence`; above `claimed` the claim is **refuted** |
| `confidence` | at 0.999, one audit in 1000 of a true claim may refute it by bad luck |
| `runs` | fits on each of two tables; 1 for a one-run audit |
| `power` | the lower bound to expect of a mechanism that spends exactly its claim on these tables |
| `detectable_noise` | if the noise is at most this multiple of what is needed, 95 of 100 such audits notice |
| `refuted` | `lower_bound > claimed` |
| `attacks` | of a saved model: the queries that were attacked, each with as many runs; `confidence` is for all |
| `rehearsed` | of a saved model: whether its solver could be run again, and then asked exactly what was planned |

The true ε lies between `lower_bound` and `proven`. If the lower bound is near `power`, the attack is as strong as
it can be and the accounting is tight. If it is far below, the attack is weak. If nothing was refuted, read
`detectable_noise`: it says how much noise could be missing without being noticed.

There are three kinds of audit, in the command line and in `dpadmm.audit`:

- `dpadmm audit --solver NAME --epsilon E` (`audit_solver`; `audit_fit` for any estimator and any two tables) runs
  whole fits on the worst neighbouring tables. The attacker sees every noisy answer, which is more than a model
  releases, and scores the answers by their likelihood. Of hidden passes (`noisy-admm`) it sees the last state,
  because nothing else is ever shown. Full-data plans are tested against the one Gaussian that they amount to
  (`gaussian_lower_bound`: the order of pairs of scores). Other plans are tested by the best threshold, chosen on
  one half of the runs and tested on the other (`epsilon_lower_bound`). `--solver all --picture FILE` draws the
  picture above.
- `dpadmm audit MODEL_DIR` (`audit_model`) needs no rows. It checks that the statement of a saved model is unseeded
  and agrees with the plan beside it, runs the accountant again, and runs the solver once where its options are
  stored. Then it attacks the recorded plan on made-up tables of the recorded length. A plan is certified for all
  questions that it allows, so the attacker asks its queries itself, at the points where one row shows most. That is
  faster than fits, and no solver asks at a worse point. The whole plan is attacked, and then each kind of query
  alone, private bounds and graphs included: so a single kind that lacks its noise is found. For hidden passes the
  attacker runs the smallest program with the recorded numbers and sees its last state. For a search it runs whole
  searches, with secret numbers of trials and noisy scores, and sees the winner. By default an audit takes about a
  minute and a half.
- `dpadmm audit --one-run TABLE` (`audit_one_run`) trains once on a private table with canaries in it. A canary is a
  made-up row; a coin decides its target, or under add-remove whether it is there. The attacker sees only the
  released model and guesses each coin, or abstains. **The fit spends its whole budget**; give it `ledger` and
  `dataset`. Its model is thrown away. The result may be published, because it is made from a private model and from
  coins. One run is weaker than many, but it attacks your table, your options and your machine.

The theorems are in [proofs/audit.md](proofs/audit.md).

## What an audit cannot show

- **That a claim is true.** An attack that fails proves nothing. Only the proofs, and the code that follows them,
  do.
- Leaks that the attack does not look at: timing, memory, files, the low bits of the noise (which
  `tests/privacy/test_float_attacks.py` attacks), a bad generator of the operating system, and rows that were used
  to choose parameters.
- Leaks on other tables than those tried. The pair is the worst for clipped gradients and moments, by the proofs of
  sensitivity; a bug that only shows on other rows would pass. The sensitivity search of the test-suite looks for
  those.
- All that `dp-vradmm` may leak. The worst tables for its difference queries need two dimensions
  (`tests/privacy/test_audit.py`), so its bound here is lower than that of the others.
- All that `noisy-admm` may leak. Its accountant is a Rényi bound whose conversion to ε is not tight, and the
  attacker scores x alone. At ε = 0.2 this audit finds nothing. For a saved model on many rows it notices only a
  gross lack of noise, because the noise of all visits adds up before the one state that is shown.
- All that a search may leak. Its accounting holds for the worst way to select, which the attacker does not know. It
  notices scores or fits that lack their noise, and far too many trials, but not twice as many as stated.
- With a saved model, what its solver made of the answers. This is post-processing and costs no privacy, because a
  solver sees nothing but these answers.
- Small shortfalls: see the tables of power below.
- Anything about a model trained by another version, other code or another machine than the one that is audited.
"""

NOTES = {
    "Every solver": f"Logistic regression on 10 rows, δ = 0.05, two steps, {RUNS} runs a table, confidence 0.999,\n"
    "replace-one (`dpadmm audit --solver all`). All share one seed: solvers with equal plans show equal bounds.\n"
    "Noise is granular. `noisy-admm` has one row, which no other row's noise hides.",
    "Every estimator": f'`solver="auto"`, two rounds, {ROWS} rows, δ = {DELTA:g}, {RUNS} runs a table,\n'
    'confidence 0.999, replace-one, granular noise; *exact* is `arithmetic="exact"`.',
    "Every sort of saved model": f"`audit_model` of logistic regression on {SAVED_ROWS} rows and 5 features, ε = 1,\n"
    f"δ = {SAVED_DELTA:g}, default options, confidence 0.999 over all attacks. *Noise seen* is the multiple of the\n"
    "noise below which 95 of 100 such audits refute the claim: of the whole plan, of the last state of hidden passes,\n"
    "of the best score of a search; for mini-batches of one Gaussian with the same claim.",
    "Mutants": "Each breaks one thing (`experiments/mutants.py`) and is a test (`tests/privacy/test_mutants.py`).\n"
    "*Honest library* is the same attack on unbroken code; the algorithms as printed have none.",
    "Power of two-table audits": "Confidence 0.999. *Power* is the lower bound to expect of one Gaussian that spends\n"
    "(ε, δ); *noise seen* is the multiple of its noise below which 95 of 100 audits refute it. Computed, not\n"
    "simulated (`power_of_pairs`, `power_of_threshold`).",
    "Power of one-run audits": "δ = 10⁻⁵, confidence 0.99, each canary in a column of its own, 54 % of them guessed\n"
    "(`power_of_guesses`). Noise seen 0: so few guesses cannot refute so large a claim.",
}


def all_tables(cached: Cache) -> list[tuple[str, list[str], list[list[str]]]]:
    head = ["claimed ε", "proven", "lower bound", "power", "test", "verdict"]
    return [
        ("Every solver", ["solver", *head], audit_lines(solver_audits(cached))),
        ("Every estimator", ["estimator", *head], audit_lines(estimator_audits(cached))),
        (
            "Every sort of saved model",
            ["model", *head[:4], "noise seen", "attacks", "runs", *head[4:]],
            saved_lines(cached),
        ),
        (
            "Mutants",
            ["mutant", "what is broken", "claimed ε", "audited", "caught", "honest library", "runs"],
            mutant_lines(cached),
        ),
        (
            "Power of two-table audits",
            ["ε", "δ", "runs", "power, pairs", "power, threshold", "noise seen, pairs", "noise seen, threshold"],
            power_lines(),
        ),
        ("Power of one-run audits", ["ε", "canaries", "power", "noise seen"], one_run_power_lines()),
    ]


def write_page(tables: list[tuple[str, list[str], list[list[str]]]], audits: Audits) -> None:
    parts = [INTRODUCTION]
    for title, header, rows in tables:
        heading, table = markdown_table(title, header, rows).split("\n", 1)
        parts.append(f"{heading}\n\n{NOTES[title]}\n{table}")
    PAGE.write_text("\n".join(parts), encoding="utf-8")
    shown = [
        Audited(name, found["claimed"], found["proven"], found["lower_bound"], found["power"]) for name, found in audits
    ]
    PICTURE.write_bytes(audit_picture(shown, "svg"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="a tenth of the runs of solvers and estimators; renders nothing"
    )
    parser.add_argument("--write", action="store_true", help="render docs/audit.md and docs/audit.svg")
    options = parser.parse_args()
    if options.quick and options.write:
        parser.error("--write renders the full audits: drop --quick")
    cached = Cache(options.quick)
    tables = all_tables(cached)
    for title, header, rows in tables:
        print_table(title, header, rows)
    if options.write:
        write_page(tables, solver_audits(cached))


if __name__ == "__main__":
    main()
