"""The best of the trials: what is drawn before a row is read, and the only result that is kept."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.base import clone

from dpadmm import kernels
from dpadmm.estimators.base import PrivateLinearModel
from dpadmm.estimators.fit_size import work_of
from dpadmm.estimators.search.candidates import Candidate
from dpadmm.estimators.search.trial import Bench, Runs, Trial
from dpadmm.privacy.selection import SearchPlan
from dpadmm.randomness import SelectionStream


def draw_lots(
    candidates: tuple[Candidate, ...], trials: int, stream: SelectionStream, seeded: bool
) -> list[tuple[Candidate, int | None]]:
    """What each trial tries, and its seed if it has one: all that is drawn, before a row is."""
    return [(candidates[stream.below(len(candidates))], stream.below(2**31) if seeded else None) for _ in range(trials)]


def engine_of(plan: SearchPlan, table: Any) -> kernels.Name:
    """Kernels for as many trials as are expected: how many there are is secret, and must not decide what is loaded."""
    times = plan.repetitions.mean / len(plan.bases)
    asked = (query for base in plan.bases for query in base.queries)
    work = [work_of(query, table.shape[1], table, times, plan.unit) for query in asked]
    engine = kernels.choose(*work)
    kernels.announce(engine, *work)
    return engine


def best_of(bench: Runs, lots: Iterable[tuple[Candidate, int | None]]) -> Trial:
    """The best of the trials. Only the best so far is ever kept; the first of equals wins, which is a fair draw."""
    best = Trial(-np.inf, None, None)
    for candidate, seed in lots:
        trial = bench.run(candidate, seed)
        if trial.score > best.score:
            best = trial
    return best


def model_of_zeros(bench: Bench, n_features: int) -> PrivateLinearModel:
    """The model of all zeros, for a search without a trial: the same whatever the data."""
    model: PrivateLinearModel = clone(bench.estimator).set_params(**bench.overrides)
    declared = model.declaration(bench.plan.bases[0].n_rows, n_features, bench.target)
    return model.become_zero(declared, bench.target)
