"""One iteration of DP-SADMM as users run it: solver, plan, barrier, secret batch, cryptographic noise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.measure import Work, alternate
from benchmarks.paths import COMPILED, NUMPY, on_path
from benchmarks.report import Row
from benchmarks.tables import Table, held, table
from dpadmm.declare.declaration import Declaration
from dpadmm.declare.recipe import Recipe
from dpadmm.oracles.gate import Gate
from dpadmm.oracles.private import PrivateOracle
from dpadmm.privacy.budget import Budget, Relation
from dpadmm.problem.losses import Logistic
from dpadmm.randomness import Streams, make_streams
from dpadmm.rows.local import LocalRows
from dpadmm.solvers.base import run as solve

STEPS = 1000
BUDGET = Budget(1.0, 1e-6, Relation.REPLACE_ONE)


def run(quick: bool) -> Iterator[Row]:
    yield compare("covtype, batches of 50", table("covtype"), 50, at_least=6.0)
    yield compare("w8a dense, batches of 20", table("w8a").dense(), 20, at_least=4.0)
    yield compare("w8a CSR, batches of 20", table("w8a"), 20, at_least=8.0)


def compare(case: str, rows: Table, batch_size: int, at_least: float, rounds: int = 7) -> Row:
    times = alternate({path: on_path(path, lambda: fit(rows, batch_size)) for path in (COMPILED, NUMPY)}, rounds)
    raw = {f"{path}_us": 1e6 * spent / STEPS for path, spent in times.items()}
    gain = times[NUMPY] / times[COMPILED]
    return Row("iteration", case, "speed-up over NumPy", gain, target=at_least, note=rows.note, raw=raw)


def fit(rows: Table, batch_size: int, smoothing: Any = None, streams: Streams | None = None) -> Work:
    """`STEPS` iterations with a fresh oracle each time, as an oracle answers each planned query once."""
    private, streams = held(rows), streams or make_streams()
    recipe = planned(private, batch_size, smoothing)
    return lambda: solve(recipe.solver, recipe.problem, PrivateOracle(private, Gate(recipe.plan), streams))


def planned(private: LocalRows, batch_size: int, smoothing: Any = None) -> Recipe:
    # Rényi accounting covers rates as small as 50 of 581,012 rows; how much noise it asks for costs no time.
    return Declaration(
        budget=BUDGET,
        loss=Logistic(),
        n_rows=private.n_rows,
        n_features=private.space.n_features - 1,
        penalty="l1",
        solver="dp-sadmm",
        sampler="fixed",
        batch_size=batch_size,
        steps=STEPS,
        accountant="rdp",
        smoothing=smoothing,
    ).recipe
