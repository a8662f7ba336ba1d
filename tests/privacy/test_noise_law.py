"""The law of the noise, tested at a false alarm of 1e-9 by a function that every mutant must fail.

The noise-law and taint tests are the proof; the audits are the smoke alarm.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from dpadmm.oracles.mechanisms import Granular
from dpadmm.privacy.arithmetic import Arithmetic
from dpadmm.privacy.budget import Budget
from dpadmm.privacy.plan import Query
from dpadmm.privacy.questions import DIFFERENCE, GRADIENT, ClippedGradient, GradientDifference
from dpadmm.privacy.sampling import Batch, Everything, Poisson, TruncatedPoisson, WithoutReplacement
from dpadmm.privacy.unit import Unit
from dpadmm.problem import Logistic, Softmax
from dpadmm.randomness import make_streams
from dpadmm.rows.local import LocalRows
from tests.asking import answering, less_noise, private, private_with

from . import toys
from .alarms import Law, require, two_sided

QUERIES, D = 40, 500


def plan_with(sampler, n, kind="gradient", scalable=False):
    question = GradientDifference(1.5) if scalable else ClippedGradient(1.5)
    query = Query(kind, QUERIES, 1.5, sampler, sampler.denominator(n), 2.0, question)
    plan = SimpleNamespace(
        query=lambda name: query,
        queries=(query,),
        n_rows=n,
        budget=Budget(1.0, 1e-3),
        arithmetic=Arithmetic.GRANULAR,
        unit=Unit.ROW,
    )
    return plan, query


def residuals(rows, plan, query, streams, outputs=1, oracle=private):
    """(QUERIES, D·outputs) differences between answers and the exact means of the same batches, in noise deviations."""
    seen = []

    class Watched:
        n_rows, space = rows.n_rows, rows.space

        def ask(self, question, at, batch):
            seen.append(rows.ask(question, at, batch))
            return seen[-1]

    asked = oracle(Watched(), plan, streams)
    x = np.zeros((D, outputs) if outputs > 1 else D)
    answers = np.array([asked.ask(GRADIENT, x).ravel() for _ in range(QUERIES)])
    exact = np.array([total.ravel() for total in seen]) / query.denominator
    return (answers - exact) / (query.noise_multiplier * query.clip_norm / query.denominator)


def check_noise(residual):
    """Standard normal: variance, mean, shape, and no correlation between queries or between neighbouring entries."""
    size = residual.size
    require(two_sided((residual**2).sum(), stats.chi2(size)), "variance")
    require(two_sided(residual.sum() / np.sqrt(size), stats.norm()), "mean")
    require(stats.kstest(residual.ravel(), "norm").pvalue, "shape")
    for lag in range(1, len(residual)):
        require_uncorrelated(residual[lag:], residual[:-lag], f"queries {lag} apart")
    require_uncorrelated(residual[:, 1:], residual[:, :-1], "neighbouring entries")
    # Noise lies on a grid of some 10⁷ likely values, so single ones repeat by chance; three in a row do not.
    runs = np.round(np.lib.stride_tricks.sliding_window_view(residual, 3, axis=1).reshape(-1, 3) * 2.0**20)
    if len(np.unique(runs, axis=0)) < len(runs):
        raise Law("noise values appear twice")


def require_uncorrelated(a, b, what):
    # The products of independent standard normals have variance 1; 40 tests share the alarm.
    z = (a * b).sum() / np.sqrt(a.size)
    require(40 * two_sided(z, stats.norm()), what)


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    return LocalRows(rng.normal(size=(12, D)) / np.sqrt(D), rng.choice([-1.0, 1.0], 12), Logistic())


SAMPLERS = [Everything(), Poisson(0.3), TruncatedPoisson(0.3, 6, 12), WithoutReplacement(4, 12)]


class TestNoise:
    @pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda s: s.name)
    @pytest.mark.parametrize("seed", [0, None])
    def test_law(self, rows, sampler, seed):
        plan, query = plan_with(sampler, 12)
        check_noise(residuals(rows, plan, query, make_streams(seed)))

    def test_law_of_matrix_answers(self):
        rng = np.random.default_rng(1)
        rows = LocalRows(rng.normal(size=(12, D)), rng.integers(0, 3, 12), Softmax(3))
        plan, query = plan_with(Everything(), 12)
        check_noise(residuals(rows, plan, query, make_streams(None), outputs=3))

    def test_law_of_float32_rows(self, rows):
        single = LocalRows(rows._X.astype(np.float32), rows._target, Logistic())
        plan, query = plan_with(Everything(), 12)
        check_noise(residuals(single, plan, query, make_streams(None)))

    @pytest.mark.parametrize("clip_norm", [1.5, 0.2, 1e-6])
    def test_differences_carry_noise_in_proportion_to_their_clip(self, rows, clip_norm):
        plan, query = plan_with(Poisson(0.3), 12, "difference", scalable=True)
        oracle = private(answering(np.zeros(D), 12), plan, make_streams(None))
        answers = np.array([oracle.ask(DIFFERENCE, np.ones(D), np.zeros(D), clip_norm) for _ in range(QUERIES)])
        check_noise(answers * query.denominator / (query.noise_multiplier * clip_norm))

    def test_an_empty_batch_is_noised_like_any_other(self, rows):
        @dataclass(frozen=True)
        class Nobody(Poisson):
            def draw(self, n_rows, stream):
                return Batch(np.array([], dtype=np.intp))

        plan, query = plan_with(Nobody(0.3), 12)
        check_noise(residuals(rows, plan, query, make_streams(None)))

    @pytest.mark.parametrize("scale", [0.95, 1.05, 0.5])
    def test_mutant_wrong_scale(self, rows, scale):
        plan, query = plan_with(Everything(), 12)
        with pytest.raises(Law, match="variance"):
            check_noise(residuals(rows, plan, query, make_streams(0), oracle=private_with(less_noise(1 / scale))))

    def test_mutant_noise_scaled_by_the_realised_batch(self, rows):
        sizes = []

        def counted(rows, plan, streams):
            def ask(question, at, batch):
                sizes.append(len(batch.rows))
                return rows.ask(question, at, batch)

            return private(
                SimpleNamespace(n_rows=rows.n_rows, space=rows.space, ask=ask), plan, streams, mechanism=Realised
            )

        class Realised(Granular):
            def release(self, total, query, clip, gate):
                return super().release(total, query, clip, gate) * query.denominator / max(1, sizes[-1])

        plan, query = plan_with(Poisson(0.3), 12)
        with pytest.raises(Law):
            check_noise(residuals(rows, plan, query, make_streams(0), oracle=counted))

    @pytest.mark.parametrize("period", [1, 2, 7])
    def test_mutant_reused_noise(self, rows, period):
        class Repeating:
            def __init__(self):
                self._blocks, self._next = [make_streams(0).noise.standard_normal((period, D))], 0

            def standard_normal(self, shape):
                self._next += 1
                return self._blocks[0][self._next % period].reshape(shape)

        plan, query = plan_with(Everything(), 12)
        streams = SimpleNamespace(noise=Repeating(), sampling=make_streams(0).sampling)
        with pytest.raises(Law):
            check_noise(residuals(rows, plan, query, streams))

    @pytest.mark.parametrize(
        "noise",
        [
            lambda rng, shape: rng.laplace(size=shape) / np.sqrt(2),
            lambda rng, shape: np.repeat(rng.standard_normal(shape[0] // 2), 2),
            lambda rng, shape: rng.standard_normal(shape) + 0.05,
        ],
        ids=["laplace", "repeated-in-pairs", "biased"],
    )
    def test_mutant_wrong_law(self, rows, noise):
        rng = np.random.default_rng(0)
        plan, query = plan_with(Everything(), 12)
        streams = SimpleNamespace(
            noise=SimpleNamespace(standard_normal=lambda shape: noise(rng, shape)), sampling=make_streams(0).sampling
        )
        with pytest.raises(Law):
            check_noise(residuals(rows, plan, query, streams))


def test_answers_of_a_certified_plan_have_the_planned_noise():
    """Denominator, clip and multiplier of a real plan, not of a hand-made query."""
    plan = toys.make_plan("poisson", 12, 4, count=QUERIES)
    query = plan.queries[0]
    rng = np.random.default_rng(0)
    rows = LocalRows(rng.normal(size=(12, D)), rng.choice([-1.0, 1.0], 12), Logistic())
    check_noise(residuals(rows, plan, query, make_streams(None)))
    assert query.denominator == pytest.approx(4)
    assert query.noise_std == pytest.approx(query.noise_multiplier / 4)
