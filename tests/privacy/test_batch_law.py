"""The law of the batches: sizes, marginal and joint inclusion, independence, tested at a false alarm of 1e-9."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from dpadmm.privacy.sampling import Batch, Everything, Poisson, TruncatedPoisson, WithoutReplacement
from dpadmm.randomness import make_streams

from .alarms import Law, require

N, DRAWS = 12, 6_000


def memberships(sampler, seed=0):
    """(DRAWS, N) booleans: who took part in each draw."""
    stream = make_streams(seed).sampling
    taken = np.zeros((DRAWS, N), dtype=int)
    for draw in taken:
        batch = sampler.draw(N, stream)
        rows = np.arange(N) if batch.rows is None else batch.rows
        weights = np.ones(len(rows)) if batch.weights is None else batch.weights
        if set(np.unique(weights)) - {0.0, 1.0} or len(set(rows.tolist())) != len(rows):
            raise Law("a row twice in one batch, or a weight that is not 0 or 1")
        draw[rows[weights == 1]] = 1
    return taken


def check_batches(taken, sizes):
    """`sizes[k]` = P[batch size = k]; given its size, every set must be equally likely, and draws independent."""
    counts = np.bincount(taken.sum(axis=1), minlength=N + 1)
    # The χ² approximation is good far out in the tail only where many draws are expected.
    possible = sizes * DRAWS >= 50
    if counts[sizes == 0].any():
        raise Law("an impossible batch size")
    expected = sizes[possible] / sizes[possible].sum() * counts[possible].sum()
    if possible.sum() > 1:
        require(stats.chisquare(counts[possible], expected).pvalue, "batch sizes")
    k = np.arange(N + 1)
    single = float(sizes @ k) / N
    pair = float(sizes @ (k * (k - 1))) / (N * (N - 1))
    for i in range(N):
        require(N * N * 2 * stats.binomtest(int(taken[:, i].sum()), DRAWS, single).pvalue, f"row {i}")
        # Pairs of draws that do not overlap are independent trials.
        again = int((taken[1::2, i] & taken[::2, i]).sum())
        require(N * N * 2 * stats.binomtest(again, DRAWS // 2, single**2).pvalue, f"row {i} in successive draws")
        for j in range(i):
            hits = int((taken[:, i] & taken[:, j]).sum())
            require(N * N * 2 * stats.binomtest(hits, DRAWS, pair).pvalue, f"rows {i} and {j}")


def binomial_sizes(rate):
    return stats.binom.pmf(np.arange(N + 1), N, rate)


def truncated_sizes(rate, cap):
    sizes = binomial_sizes(rate)
    sizes[cap] = sizes[cap:].sum()
    sizes[cap + 1 :] = 0
    return sizes


LAWS = {
    "poisson": (Poisson(0.3), binomial_sizes(0.3)),
    "poisson-everyone": (Poisson(1.0), np.eye(N + 1)[N]),
    "truncated-often": (TruncatedPoisson(0.4, 4, N), truncated_sizes(0.4, 4)),
    "truncated-never": (TruncatedPoisson(0.2, 12, N), binomial_sizes(0.2)),
    "truncated-short": (TruncatedPoisson(0.2, 3, N), truncated_sizes(0.2, 3)),
    "fixed": (WithoutReplacement(5, N), np.eye(N + 1)[5]),
    "fixed-few": (WithoutReplacement(3, N), np.eye(N + 1)[3]),
    "full": (Everything(), np.eye(N + 1)[N]),
}


class TestBatches:
    @pytest.mark.parametrize("name", LAWS)
    def test_law(self, name):
        sampler, sizes = LAWS[name]
        check_batches(memberships(sampler), sizes)

    def test_coins_of_a_long_table(self):
        """Thousands of rows to a head, and blocks that end within a batch: sizes, places and gaps."""
        n, rate, draws = 100_000, 3e-4, 2_000
        stream = make_streams(0).sampling
        batches = [Poisson(rate).draw(n, stream).rows for _ in range(draws)]
        assert all((np.diff(rows) > 0).all() for rows in batches)
        rows = np.concatenate(batches)
        assert rows.min() >= 0
        assert rows.max() < n
        require(stats.binomtest(len(rows), n * draws, rate).pvalue, "heads in all")
        sizes = np.array([len(each) for each in batches])
        dispersion = float(((sizes - n * rate) ** 2).sum() / (n * rate * (1 - rate)))
        require(2 * min(stats.chi2.cdf(dispersion, draws), stats.chi2.sf(dispersion, draws)), "spread of sizes")
        require(stats.chisquare(np.bincount(rows * 50 // n, minlength=50)).pvalue, "places")
        gaps = np.concatenate([np.diff(each) for each in batches])
        for k in (1, 10, 100):
            width = np.arange(1, k + 1)
            expected = draws * float(((n - width) * rate**2 * (1 - rate) ** (width - 1)).sum())
            # Pairs of heads that share one are not independent: at most 2k·rate others for each.
            deviation = np.sqrt(expected * (1 + 4 * k * rate))
            require(2 * stats.norm.sf(abs((gaps <= k).sum() - expected) / deviation), f"gaps up to {k}")

    def test_law_with_operating_system_entropy(self):
        sampler, sizes = LAWS["truncated-often"]
        check_batches(memberships(sampler, seed=None), sizes)

    def test_a_truncated_batch_always_has_the_same_shape(self):
        stream = make_streams(0).sampling
        batches = [TruncatedPoisson(0.3, 5, N).draw(N, stream) for _ in range(200)]
        assert {(len(batch.rows), len(batch.weights)) for batch in batches} == {(5, 5)}
        assert len({float(batch.weights.sum()) for batch in batches}) > 1

    def test_no_sampler_divides_by_the_realised_size(self):
        for sampler, expected in (
            (Poisson(0.3), 3.6),
            (TruncatedPoisson(0.3, 5, N), 3.6),
            (WithoutReplacement(5, N), 5),
        ):
            assert sampler.denominator(N) == pytest.approx(expected)

    @pytest.mark.parametrize(
        ("mutant", "law"),
        [
            (Poisson(0.6), "poisson"),
            (Poisson(0.33), "poisson"),
            (Poisson(5 / N), "fixed"),
            (WithoutReplacement(4, N), "fixed"),
            (Poisson(0.4), "truncated-often"),
            (
                SimpleNamespace(draw=lambda n, s: Batch(np.arange(5), np.ones(5))),
                "fixed",
            ),
            (
                # Truncation that keeps the first rows instead of a uniform subset.
                SimpleNamespace(draw=lambda n, s: Batch(np.sort(s.distinct(n, s.binomial(n, 0.4)))[:4])),
                "truncated-often",
            ),
            (
                # The padding of a sorted set thinned from its end.
                SimpleNamespace(
                    draw=lambda n, s: Batch(
                        np.sort(s.distinct(n, 4)), (np.arange(4) < min(s.binomial(n, 0.4), 4)).astype(float)
                    )
                ),
                "truncated-often",
            ),
            (SimpleNamespace(draw=lambda n, s: Batch(np.zeros(5, dtype=int))), "fixed"),
        ],
        ids=[
            "double-rate",
            "rate-up-10%",
            "poisson-for-fixed",
            "size-4",
            "no-cap",
            "same-batch",
            "head",
            "tail",
            "twice",
        ],
    )
    def test_mutants(self, mutant, law):
        with pytest.raises(Law):
            check_batches(memberships(mutant), LAWS[law][1])

    def test_mutant_shuffled_epochs(self):
        """Fixed-size batches cut from one permutation have the right marginals, but successive batches are disjoint."""

        class Epochs:
            def __init__(self):
                self._left = np.array([], dtype=np.intp)

            def draw(self, n, stream):
                if len(self._left) < 4:
                    self._left = np.random.default_rng(stream.binomial(2**31, 0.5)).permutation(n)
                batch, self._left = self._left[:4], self._left[4:]
                return Batch(batch)

        with pytest.raises(Law, match="successive"):
            check_batches(memberships(Epochs()), np.eye(N + 1)[4])
