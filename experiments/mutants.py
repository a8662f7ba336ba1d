"""Broken versions of the library that an audit must refute: each breaks one thing, inside a `with` and nowhere else.

`MUTANTS` maps a name to a function of the number of runs that carries out the audit of one mutant. The same numbers of
runs are used by `python -m experiments.audit` and by `tests/privacy/test_mutants.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np

from dpadmm import DPLogisticRegression, DPSearchCV
from dpadmm.audit import audit_fit, audit_model, audit_one_run, audit_solver, epsilon_lower_bound, worst_pair
from dpadmm.audit.end_to_end import SMALL_CLIP
from dpadmm.audit.leaky_algorithms import PrintedMPADMM, PrintedSADMM, PrintedVRADMM
from dpadmm.audit.neighbours import Table
from dpadmm.audit.saved_model import attack_all
from dpadmm.audit.search_attack import RowScores
from dpadmm.estimators.search.row_split import RowPart
from dpadmm.estimators.search.trial import Bench
from dpadmm.oracles.gate import Gate
from dpadmm.oracles.mechanisms import Exact, Granular
from dpadmm.oracles.private import PrivateOracle
from dpadmm.preparation import PrivateQuantileClipper
from dpadmm.privacy import arithmetic, plan_cache
from dpadmm.privacy.accountants import iteration
from dpadmm.privacy.accountants.gaussian import gaussian_shift
from dpadmm.privacy.budget import Budget
from dpadmm.privacy.calibration import calibrate
from dpadmm.privacy.ledger.payment import Payment
from dpadmm.privacy.plan import Plan, Request
from dpadmm.privacy.questions import (
    CURVATURE,
    FEATURE_MOMENT,
    GRADIENT,
    QUANTILE_COUNTS,
    ClippedGradient,
    CountsBelow,
    FeatureCurvature,
    FeatureMoment,
    JointMoments,
)
from dpadmm.privacy.sampling import Everything, Poisson, Sampler, TruncatedPoisson, WithoutReplacement
from dpadmm.privacy.selection import Repetitions
from dpadmm.problem import Logistic, Squared
from dpadmm.problem.scores import Accuracy
from dpadmm.randomness import Streams, make_selection_stream, make_streams
from dpadmm.rows import curvature_sums
from dpadmm.rows.local import LocalRows
from dpadmm.rows.packed import PackedRows
from dpadmm.sessions import Work

ROWS, DELTA = 8, 0.1
FAR = 1e3
"""Targets so far from every margin that squared-loss gradients are clipped."""


@dataclass(frozen=True)
class Verdict:
    """What was claimed, and what the audit of the mutant and of the honest library under the same attack found."""

    claimed: float
    audited: float
    honest: float | None
    runs: int

    @property
    def caught(self) -> bool:
        return self.audited > self.claimed


@dataclass(frozen=True)
class Mutant:
    """What is broken, how it is audited, and with how many runs."""

    broken: str
    audit: Callable[[int], Verdict]
    runs: int


# -- broken parts ------------------------------------------------------------------------------------------------------


@contextmanager
def no_clip() -> Iterator[None]:
    honest = LocalRows.WAYS[ClippedGradient]

    def unclipped(rows: Any, question: Any, at: Any, batch: Any) -> Any:
        return honest(rows, replace(question, clip=np.inf), at, batch)

    with patch.dict(LocalRows.WAYS, {ClippedGradient: unclipped}):
        yield


@contextmanager
def no_curvature_clip() -> Iterator[None]:
    with patch.object(curvature_sums, "clip_slopes", lambda bends, lengths, clip: bends):
        yield


@contextmanager
def less_noise(factor: float) -> Iterator[None]:
    """On every release, and on every visit of a hidden pass."""
    honest_pass = LocalRows.noisy_pass

    def noisy_pass(rows: Any, program: Any, state: Any, clip_norm: float, order: Any, noise: Any, grid: float) -> Any:
        return honest_pass(rows, program, state, clip_norm, order, lambda visits: factor * noise(visits), grid)

    with (
        patch.object(Granular, "release", scaled_noise(Granular, factor)),
        patch.object(Exact, "release", scaled_noise(Exact, factor)),
        patch.object(LocalRows, "noisy_pass", noisy_pass),
    ):
        yield


def scaled_noise(mechanism: type[Any], factor: float, kind: str | None = None) -> Callable[..., Any]:
    """The release of a mechanism with so many times its noise, on queries of one kind or on all."""
    honest = mechanism.release

    def release(made: Any, total: Any, query: Any, clip: float, gate: Any) -> Any:
        scaled = query.noise_multiplier * (factor if kind in (None, query.kind) else 1.0)
        return honest(made, total, replace(query, noise_multiplier=scaled), clip, gate)

    return release


@contextmanager
def less_noise_on(kind: str, factor: float) -> Iterator[None]:
    """On the releases of one kind of query."""
    with (
        patch.object(Granular, "release", scaled_noise(Granular, factor, kind)),
        patch.object(Exact, "release", scaled_noise(Exact, factor, kind)),
    ):
        yield


@contextmanager
def many_trials(number: int) -> Iterator[None]:
    """Always the same number, whatever the law that was stated."""
    with patch.object(Repetitions, "draw", lambda law, stream: number):
        yield


@contextmanager
def twice_the_rate() -> Iterator[None]:
    honest = TruncatedPoisson.draw

    def draw(sampler: Any, n_rows: int, stream: Any) -> Any:
        return honest(replace(sampler, rate=2 * sampler.rate, cap=n_rows), n_rows, stream)

    with patch.object(TruncatedPoisson, "draw", draw):
        yield


@contextmanager
def range_from_the_data() -> Iterator[None]:
    honest = PackedRows.of

    def pack(rowmap: Any, X: Any, keep: Any = None) -> Any:
        low, high = X.min(axis=0), X.max(axis=0)
        return honest(rowmap, (X - low) / (high - low), keep)

    with patch.object(PackedRows, "of", pack):
        yield


@contextmanager
def norm_from_the_data() -> Iterator[None]:
    honest = PackedRows.of
    with patch.object(PackedRows, "of", lambda m, X, keep=None: honest(m, X / np.linalg.norm(X, axis=1).max(), keep)):
        yield


@contextmanager
def half_the_reach(kind: type[Any]) -> Iterator[None]:
    honest = kind.reach
    with patch.object(kind, "reach", lambda statistic, relation: honest(statistic, relation) / 2):
        yield


@contextmanager
def bare_second_moment() -> Iterator[None]:
    honest = Granular.release

    def release(mechanism: Any, total: Any, query: Any, clip: float, gate: Any) -> Any:
        noisy = honest(mechanism, total, query, clip, gate)
        return noisy if query.kind != "moments" else np.concatenate([noisy[:1], total[1:] / query.denominator])

    with patch.object(Granular, "release", release):
        yield


@contextmanager
def half_the_exact_deviation() -> Iterator[None]:
    honest = arithmetic.exact_deviations
    with patch.object(arithmetic, "exact_deviations", lambda noise, unit: honest(noise / 2, unit)):
        yield


@contextmanager
def no_clip_in_passes() -> Iterator[None]:
    honest = LocalRows.noisy_pass

    def noisy_pass(rows: Any, program: Any, state: Any, clip_norm: float, *rest: Any) -> Any:
        return honest(rows, program, state, np.inf, *rest)

    with patch.object(LocalRows, "noisy_pass", noisy_pass):
        yield


@contextmanager
def every_row_hidden() -> Iterator[None]:
    """The accountant takes every row for one whose visit was long ago; what it finds is not remembered."""
    with (
        patch.object(iteration, "positions", lambda n, blow_up, contraction: (np.array([0.05]), np.ones(1))),
        patch.object(plan_cache, "read", lambda name, epsilon: None),
        patch.object(plan_cache, "write", lambda name, scale, achieved: None),
    ):
        yield


# -- audits of whole fits ----------------------------------------------------------------------------------------------


def of_solver(name: str, broken: Callable[[], Any], epsilon: float = 1.0) -> Callable[[int], Verdict]:
    def audit(runs: int) -> Verdict:
        with broken():
            found = audit_solver(name, epsilon, runs=runs, random_state=0)
        honest = audit_solver(name, epsilon, runs=runs, random_state=0)
        return Verdict(epsilon, found.lower_bound, honest.lower_bound, runs)

    return audit


def of_fit(
    broken: Callable[[], Any],
    tables: Callable[[], tuple[Table, Table]],
    delta: float = DELTA,
    parts: Any = None,
    **more: Any,
) -> Callable[[int], Verdict]:
    def audit(runs: int) -> Verdict:
        options = {"steps": 2, "fit_intercept": False, "classes": (0, 1), "random_state": 0, **more}
        model = DPLogisticRegression(1.0, delta, **options)
        with broken():
            found = audit_fit(model, *tables(), runs=runs, parts=parts)
        honest = audit_fit(model, *tables(), runs=runs, parts=parts)
        return Verdict(1.0, found.lower_bound, honest.lower_bound, runs)

    return audit


def one_long_row() -> tuple[Table, Table]:
    """Short rows, of which one is long in the first table."""
    short, y = np.tile([[0.0], [0.02]], (ROWS // 2, 1)), np.zeros(ROWS, dtype=int)
    long = np.concatenate([short[:-1], np.ones((1, 1))])
    return (long, y), (short, y)


def appeared() -> tuple[Table, Table]:
    """Replace-one neighbours with another second moment: a unit row, or a zero row with the other label."""
    (X, y), _ = worst_pair(ROWS)
    return (X, y), (np.zeros_like(X), np.concatenate([[1], y[1:]]))


def one_run_without_noise(runs: int) -> Verdict:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 5))
    y = (X[:, 0] > 0).astype(int)
    model = DPLogisticRegression(1.0, 1e-5, classes=(0, 1), random_state=0)
    with less_noise(1e-3):
        found = audit_one_run(model, X, y, canaries=100)
    return Verdict(1.0, found.lower_bound, audit_one_run(model, X, y, canaries=100).lower_bound, runs)


# -- audits of the oracle on a table of one column ---------------------------------------------------------------------


def contributions(*signs: float) -> LocalRows:
    """A record with sign +1, −1 or 0 contributes +clip, −clip or nothing at the origin."""
    column = np.asarray(signs, dtype=float)
    return LocalRows(np.abs(column)[:, None], -FAR * column, Squared())


def gradient_plan(sampler: Sampler, n_rows: int, count: int = 1, delta: float = 0.05) -> Plan:
    return calibrate(
        Budget(1.0, delta), [Request("gradient", count, ClippedGradient(1.0))], sampler, n_rows, cache=False
    )


def of_oracle(
    plan: Plan,
    tables: tuple[LocalRows, LocalRows],
    score: Callable[[Any], float],
    mutant: Callable[[LocalRows, Streams], Any],
) -> Callable[[int], Verdict]:
    """Scores of `runs` oracles on each of two tables, mutant and honest."""

    def bound(make: Callable[[LocalRows, Streams], Any], runs: int) -> float:
        return bound_of_oracles(make, tables, score, plan.budget.delta, runs)

    return lambda runs: Verdict(1.0, bound(mutant, runs), bound(with_plan(plan), runs), runs)


def bound_of_oracles(
    make: Callable[[LocalRows, Streams], Any],
    tables: tuple[LocalRows, LocalRows],
    score: Callable[[Any], float],
    delta: float,
    runs: int,
) -> float:
    streams = make_streams(0)
    scores = [[score(make(rows, streams)) for _ in range(runs)] for rows in tables]
    return epsilon_lower_bound(*scores, delta).epsilon


def with_plan(plan: Plan) -> Callable[[LocalRows, Streams], PrivateOracle]:
    return lambda rows, streams: PrivateOracle(rows, Gate(plan), streams)


def first_answer(oracle: PrivateOracle) -> float:
    return float(oracle.ask(GRADIENT, np.zeros(1))[0])


def gap_of_answers(oracle: PrivateOracle) -> float:
    """At the second point no gradient depends on the target: noise used twice cancels."""
    there = float(oracle.ask(GRADIENT, np.full(1, 1e6))[0])
    return first_answer(oracle) - there


class RepeatedNoise:
    """Draws once and says it again."""

    def __init__(self, honest: Streams) -> None:
        self._drawn = honest.noise.standard_normal((1,))

    def standard_normal(self, shape: tuple[int, ...]) -> Any:
        return self._drawn.copy()


def with_reused_noise(plan: Plan) -> Callable[[LocalRows, Streams], PrivateOracle]:
    def make(rows: LocalRows, streams: Streams) -> PrivateOracle:
        repeating: Any = SimpleNamespace(noise=RepeatedNoise(streams), sampling=streams.sampling)
        return PrivateOracle(rows, Gate(plan), repeating)

    return make


class Realised:
    """Rows whose sum is divided by the size of the batch that was drawn."""

    def __init__(self, rows: LocalRows, query: Any) -> None:
        self._rows, self._query = rows, query
        self.n_rows, self.space = rows.n_rows, rows.space

    def ask(self, question: Any, at: Any, batch: Any) -> Any:
        total, drawn = self._rows.ask(question, at, batch), len(batch.rows)
        # Every batch of equal records has the same mean, whatever its size: no row hides behind the others.
        mean = total / drawn if drawn else total - self._query.clip_norm
        return mean * self._query.denominator


def with_other_sampler(plan: Plan, sampler: Sampler) -> Callable[[LocalRows, Streams], PrivateOracle]:
    other = replace(plan, queries=tuple(replace(query, sampler=sampler) for query in plan.queries))
    return with_plan(other)


def reused_noise(runs: int) -> Verdict:
    plan = gradient_plan(Everything(), ROWS, count=2)
    tables = contributions(1, *[0] * (ROWS - 1)), contributions(-1, *[0] * (ROWS - 1))
    return of_oracle(plan, tables, gap_of_answers, with_reused_noise(plan))(runs)


def realised_batch(runs: int) -> Verdict:
    plan = gradient_plan(Poisson(0.1), 20, delta=0.01)
    tables = contributions(1, *[-1] * 19), contributions(-1, *[-1] * 19)
    make = with_plan(plan)
    realised = lambda rows, streams: make(Realised(rows, plan.queries[0]), streams)  # type: ignore[arg-type]  # noqa: E731
    return of_oracle(plan, tables, first_answer, realised)(runs)


def fixed_size_as_poisson(runs: int) -> Verdict:
    plan = gradient_plan(Poisson(0.1), 20, delta=0.01)
    tables = contributions(1, *[-1] * 19), contributions(-1, *[-1] * 19)
    return of_oracle(plan, tables, first_answer, with_other_sampler(plan, WithoutReplacement(2, 20)))(runs)


def curvature_without_clip(runs: int) -> Verdict:
    """Two rows in different features, among zero rows, and weights under which both are scaled down."""
    request = Request("curvature", 1, FeatureCurvature())
    plan = calibrate(Budget(1.0, 0.05), [request], Everything(), ROWS, cache=False)
    tables = [LocalRows(np.vstack([row, np.zeros((ROWS - 1, 2))]), np.ones(ROWS), Logistic()) for row in np.eye(2)]

    def balance(oracle: PrivateOracle) -> float:
        first, second = oracle.ask(CURVATURE, np.zeros(2), np.full(2, 16.0))
        return float(first - second)

    def bound() -> float:
        return bound_of_oracles(with_plan(plan), (tables[0], tables[1]), balance, plan.budget.delta, runs)

    with no_curvature_clip():
        found = bound()
    return Verdict(1.0, found, bound(), runs)


# -- audits of preparation and of tuning -------------------------------------------------------------------------------


def of_step(
    request: Request, opposite: Sequence[tuple[float, float]], score: Callable[[PrivateOracle], float]
) -> Callable[[int], Verdict]:
    """A step of preparation that halves its reach, and hence its noise; two opposite rows among zero rows."""

    def rows(differing: tuple[float, float]) -> LocalRows:
        return LocalRows(np.concatenate([[differing], np.zeros((ROWS - 1, 2))]), np.zeros(ROWS), Squared())

    def bound(runs: int) -> float:
        plan = calibrate(Budget(1.0, 0.05), [request], Everything(), ROWS)
        first, second = opposite
        return bound_of_oracles(with_plan(plan), (rows(first), rows(second)), score, plan.budget.delta, runs)

    def audit(runs: int) -> Verdict:
        with half_the_reach(type(request.question)):
            found = bound(runs)
        return Verdict(1.0, found, bound(runs), runs)

    return audit


def balance_of_moments(oracle: PrivateOracle) -> float:
    moment = oracle.ask(FEATURE_MOMENT)
    return float(moment[0, 0] - moment[1, 1])


def sum_of_shares(oracle: PrivateOracle) -> float:
    return float(oracle.ask(QUANTILE_COUNTS, np.zeros((1, 2))).sum())


def best_scores(label: int, noise: float, runs: int) -> list[float]:
    """What searches release as their best score if the last validation row has this label."""
    X = np.random.default_rng(0).uniform(-1, 1, (40, 4))
    y = np.append((X[:-1, 0] > 0).astype(int), label)
    model = DPLogisticRegression(1.0, 1e-4, classes=[0, 1], penalty="l1", solver="dp-gd", steps=5, random_state=0)
    plan = DPSearchCV(model, {"alpha": [1e-4, 1e-2]}, mean_trials=3.0, validation=0.25).plan(len(X), 4)
    query = plan.score.queries[0]
    drawn = replace(query, noise_multiplier=noise * query.noise_multiplier)
    parts = RowPart(X[:30], y[:30], None), RowPart(X[30:], y[30:], None)
    performed = replace(plan, score=replace(plan.score, queries=(drawn,)))
    unpaid = Work(performed, Payment(None, None, seeded=True), make_streams(0))
    bench = Bench(model, model.declare_target(y), performed, unpaid, *parts, Accuracy(), {})
    fitted, numbers, seeds = model.fit(X[:30], y[:30]), make_selection_stream(label), np.random.default_rng(1 + label)
    trials = [plan.repetitions.draw(numbers) for _ in range(runs)]
    return [max(bench._scored(fitted, int(seed)) for seed in seeds.integers(2**31, size=count)) for count in trials]


def score_almost_without_noise(runs: int) -> Verdict:
    def bound(noise: float) -> float:
        return epsilon_lower_bound(*(best_scores(label, noise, runs) for label in (0, 1)), delta=1e-4).epsilon

    return Verdict(1.0, bound(0.02), bound(1.0), runs)


# -- audits of saved models --------------------------------------------------------------------------------------------


def of_model(make: Callable[[], Any], broken: Callable[[], Any]) -> Callable[[int], Verdict]:
    """The honest model, audited by a broken library."""

    def audit(runs: int) -> Verdict:
        model = make()
        with broken():
            found = audit_model(model, runs, random_state=0)
        return Verdict(found.claimed, found.lower_bound, audit_model(model, runs, random_state=0).lower_bound, runs)

    return audit


def of_scores(make: Callable[[], Any], broken: Callable[[], Any]) -> Callable[[int], Verdict]:
    """The score of a search alone, which takes no fit."""

    def bound(plan: Any, runs: int) -> float:
        attacks = [RowScores(plan, make_selection_stream(0))]
        return attack_all(plan, attacks, make_streams(0), runs).lower_bound

    def audit(runs: int) -> Verdict:
        plan = make().plan_
        with broken():
            found = bound(plan, runs)
        return Verdict(plan.budget.epsilon, found, bound(plan, runs), runs)

    return audit


def fitted(rows: int = 400, delta: float = 1e-3, **options: Any) -> Any:
    X = np.random.default_rng(0).normal(size=(rows, 3))
    return DPLogisticRegression(1.0, delta, classes=(0, 1), **options).fit(X, (X[:, 0] > 0).astype(int))


def searched(rows: int, delta: float, **options: Any) -> Any:
    X = np.random.default_rng(0).normal(size=(rows, 3))
    model = DPLogisticRegression(1.0, delta, classes=(0, 1), penalty="l1", solver="dp-gd", steps=2)
    search = DPSearchCV(model, {"alpha": [1e-4, 1e-2]}, validation=0.5, **options)
    return search.fit(X, (X[:, 0] > 0).astype(int)).best_estimator_


# -- the algorithms as printed -----------------------------------------------------------------------------------------


def of_printed(algorithm: Any, claimed: float, delta: float, score: Callable[[Any], Any]) -> Callable[[int], Verdict]:
    def audit(runs: int) -> Verdict:
        scores = [score(algorithm.release(flipped, runs, np.random.default_rng(flipped))) for flipped in (0, 1)]
        return Verdict(claimed, epsilon_lower_bound(*scores, delta).epsilon, None, runs)

    return audit


def printed_vradmm() -> PrintedVRADMM:
    """Noise enough for (0.5, 1e-5) of the gradients of 3 epochs of 2 steps on 20 rows."""
    return PrintedVRADMM(np.sqrt(6) / gaussian_shift(0.5, 1e-5) * 2 / 20, epochs=3, inner_steps=2)


MUTANTS: dict[str, Mutant] = {
    "no clip": Mutant("gradients of any length are summed (dp-gd)", of_solver("dp-gd", no_clip), 500),
    "half the noise": Mutant("σ × 0.5 (full-admm)", of_solver("full-admm", lambda: less_noise(0.5)), 600),
    "half the noise, mini-batches": Mutant("σ × 0.5 (dp-sgd)", of_solver("dp-sgd", lambda: less_noise(0.5)), 4000),
    "twice the rate": Mutant("batches twice as large as accounted (dp-sgd)", of_solver("dp-sgd", twice_the_rate), 2500),
    "reused noise": Mutant("the same noise on two releases", reused_noise, 1000),
    "realised batch size": Mutant("mean over the batch drawn, not its expectation", realised_batch, 10_000),
    "fixed size as Poisson": Mutant("batches of fixed size, accounted as Poisson", fixed_size_as_poisson, 10_000),
    "range from the data": Mutant(
        "features scaled by their observed minimum and maximum", of_fit(range_from_the_data, one_long_row), 1000
    ),
    "norm from the data": Mutant("rows scaled by the longest one", of_fit(norm_from_the_data, one_long_row), 1000),
    "joint sensitivity halved": Mutant(
        "`auto`: moments charged for half their reach",
        of_fit(lambda: half_the_reach(JointMoments), lambda: worst_pair(ROWS)),
        1500,
    ),
    "cap ignored": Mutant(
        "`auto`: whitened gradients of any length", of_fit(no_clip, lambda: worst_pair(200), delta=0.004), 600
    ),
    "bare second moment": Mutant(
        "`auto`: second moment without noise", of_fit(bare_second_moment, appeared, parts=["moments"]), 300
    ),
    "no clip, curvatures": Mutant("curvatures along features of any length are summed", curvature_without_clip, 600),
    "half the exact deviation": Mutant(
        '`arithmetic="exact"`: discrete Gaussian of half the deviation (full-admm)',
        of_fit(
            half_the_exact_deviation,
            lambda: worst_pair(ROWS),
            solver="full-admm",
            arithmetic="exact",
            clip_norm=SMALL_CLIP,
        ),
        600,
    ),
    "half the second moment's noise": Mutant(
        "`PrivateSecondMoment`: charged for half its reach",
        of_step(Request("feature moment", 1, FeatureMoment()), [(1.0, 0.0), (0.0, 1.0)], balance_of_moments),
        4000,
    ),
    "half the counts' noise": Mutant(
        "`PrivateQuantileClipper`: charged for half its reach",
        of_step(Request("quantile counts", 1, CountsBelow(2, 1)), [(1.0, 1.0), (-1.0, -1.0)], sum_of_shares),
        4000,
    ),
    "score almost without noise": Mutant("`DPSearchCV`: scores with σ × 0.02", score_almost_without_noise, 500),
    "no clip, hidden passes": Mutant(
        "gradients of any length are added (noisy-admm)", of_solver("noisy-admm", no_clip_in_passes), 500
    ),
    "every row hidden": Mutant(
        "amplification counted for the row that comes last, too (noisy-admm)",
        of_fit(
            every_row_hidden,
            lambda: worst_pair(3),
            delta=0.05,
            solver="noisy-admm",
            steps=1,
            clip_norm=SMALL_CLIP,
            solver_options={"step_size": 2.0, "beta": 0.01},
        ),
        1500,
    ),
    "un-noised dual": Mutant(
        "DP-VRADMM as printed: exact dual reset", of_printed(printed_vradmm(), 0.5, 1e-5, lambda out: out[1]), 200_000
    ),
    "missing η": Mutant(
        "mpADMM as printed, η = 5: sensitivity without η",
        of_printed(PrintedMPADMM(1 / gaussian_shift(1.0, 1e-5)), 1.0, 1e-5, lambda out: out[0] + out[1]),
        200_000,
    ),
    "σ of Theorem 2": Mutant(
        "DP-SADMM as printed, where its theorem does not hold",
        of_printed(PrintedSADMM(), 1.0, 5e-4, lambda out: out),
        200_000,
    ),
    "quiet counts, saved model": Mutant(
        "`PrivateQuantileClipper` in a model: counts with σ × 0.02",
        of_model(
            lambda: fitted(bounds=PrivateQuantileClipper((-50.0, 50.0)), steps=3),
            lambda: less_noise_on("quantile counts", 0.02),
        ),
        300,
    ),
    "quiet passes, saved model": Mutant(
        "visits of hidden passes over 3 rows with σ × 0.1 (noisy-admm)",
        of_model(lambda: fitted(3, 0.05, solver="noisy-admm", steps=1), lambda: less_noise(0.1)),
        1500,
    ),
    "quiet score, saved search": Mutant(
        "`DPSearchCV`: scores with σ × 0.01",
        of_model(lambda: searched(400, 1e-3, mean_trials=3.0), lambda: less_noise_on("score", 0.01)),
        300,
    ),
    "many trials, saved search": Mutant(
        "`DPSearchCV`: always 60 trials, where 1.5 on average are stated",
        of_scores(lambda: searched(18, 0.05, trials="logarithmic", mean_trials=1.5), lambda: many_trials(60)),
        1000,
    ),
    "no noise, one run": Mutant("σ × 0.001, found by one fit with 100 canaries", one_run_without_noise, 1),
}
