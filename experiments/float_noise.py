"""What float-safe noise costs: a value drawn, a release, and whole fits, in each arithmetic.

    python -m experiments.float_noise [--quick]

The numbers of docs/adr/0017-float-safe-noise.md.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np

from dpadmm import DPLogisticRegression
from dpadmm.datasets import load
from dpadmm.oracles.gate import Gate
from dpadmm.oracles.private import mechanism_of
from dpadmm.privacy.arithmetic import Arithmetic, grid_exponent, slack, summation_error
from dpadmm.privacy.budget import Budget
from dpadmm.privacy.plan import Plan, Query
from dpadmm.privacy.questions import ClippedGradient, Space
from dpadmm.privacy.sampling import Everything
from dpadmm.randomness import make_streams
from dpadmm.rows.lattice_sum import LatticeSum

ROUNDS = 7


def fastest(action: Callable[[], object], repeats: int) -> float:
    """Processor seconds of one call: the fastest of several rounds, because others use the machine too."""
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        for _ in range(repeats):
            action()
        times.append((time.process_time() - start) / repeats)
    return min(times)


def release(arithmetic: Arithmetic, d: int) -> Callable[[], object]:
    """One release of d numbers through the barrier."""
    query = Query("gradient", 10**9, 1.0, Everything(), 1000.0, 4.0, ClippedGradient(1.0))
    plan = Plan(Budget(1.0, 1e-5), 1000, (query,), "gaussian", 1.0, "none", arithmetic)
    exact = LatticeSum(np.ones(d, dtype=np.int64), 2.0**-40)
    total = exact if arithmetic is Arithmetic.EXACT else np.ones(d)
    rows, gate = SimpleNamespace(space=Space((d,), d)), Gate(plan)
    mechanism = mechanism_of(gate, rows, make_streams())  # type: ignore[arg-type]
    return lambda: mechanism.release(total, query, 1.0, gate)


def plain(d: int) -> Callable[[], object]:
    """The textbook: noise times scale, plus the sum."""
    noise, total = make_streams().noise, np.ones(d)

    def action() -> object:
        answer = 4.0 * 1.0 * noise.standard_normal((d,))
        answer += total
        answer /= 1000.0
        return answer

    return action


def print_draws() -> None:
    noise = make_streams().noise
    print("| numbers a call | normal, ns | textbook release | granular release | exact release |")
    print("|---|---|---|---|---|")
    for d in (20, 105, 301, 10_000):
        normal = fastest(lambda d=d: noise.standard_normal((d,)), 2000 if d < 1000 else 100)
        repeats = 1000 if d < 1000 else 50
        parts = [plain(d), release(Arithmetic.GRANULAR, d)]
        textbook, granular = (fastest(action, repeats) for action in parts)
        exact = fastest(release(Arithmetic.EXACT, d), 5)
        cells = (f"{1e9 * value / d:.1f}" for value in (normal, textbook, granular, exact))
        print(f"| {d} | {' | '.join(cells)} |")


def print_slack() -> None:
    print("| table | noise multiplier | condition | slack |")
    print("|---|---|---|---|")
    for name, n, d, multiplier, condition in (
        ("adult", 30_162, 105, 17.0, 15.0),
        ("covtype", 581_012, 55, 17.0, 15.0),
        ("ten million rows", 10_000_000, 100, 17.0, 15.0),
        ("add-remove, ten million rows declared", 40_000_000, 100, 17.0, 15.0),
    ):
        grid = 2.0 ** grid_exponent(1.0, multiplier, n)
        share = slack(summation_error(n, d, condition), grid, d, 1.0)
        print(f"| {name} | {multiplier:g} | {condition:g} | {share:.1e} |")


def print_fits(quick: bool) -> None:
    names = ("adult",) if quick else ("adult", "mushrooms", "ipums_br")
    print("| table | solver | arithmetic | processor seconds | accuracy on the training rows, 5 seeds |")
    print("|---|---|---|---|---|")
    for name in names:
        table = load(name)
        for solver in ("auto",) if quick else ("auto", "full-admm"):
            for arithmetic in ("granular", "exact"):
                times, scores = [], []
                for seed in range(5):
                    model = DPLogisticRegression(1.0, 1e-6, solver=solver, arithmetic=arithmetic, random_state=seed)
                    start = time.process_time()
                    model.fit(table.X, table.y)
                    times.append(time.process_time() - start)
                    scores.append(model.score(table.X, table.y))
                print(f"| {name} | {solver} | {arithmetic} | {min(times):.2f} | {np.mean(scores):.4f} |")


if __name__ == "__main__":
    print_draws()
    print()
    print_slack()
    print()
    print_fits("--quick" in sys.argv)
