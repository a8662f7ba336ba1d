"""An eavesdropper on one run: knows both tables and every line of code, sees the noisy answers, and not the noise."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpadmm.oracles.base import PrivateOracle
from dpadmm.privacy.passage import NOISY_PASS
from dpadmm.privacy.plan import Plan, Query
from dpadmm.privacy.questions import JointMoments, RowMoments
from dpadmm.privacy.sampling import Batch
from dpadmm.problem.hidden_pass_program import Program
from dpadmm.problem.spiked_map import SpikedMap
from dpadmm.rows.lattice_sum import Sum, as_numbers
from dpadmm.rows.protocol import Rows

Array = NDArray[np.float64]

ALL = Batch(None)


class Witness:
    """Passes every question on to the oracle, and asks itself which of two tables the answer speaks for.

    Parameters
    ----------
    oracle : PrivateOracle
        Holds one of the two tables.
    plan : Plan
        Says how much noise to expect.
    tables : (Rows, Rows)
        The suspects, as the oracle would hold them.

    Attributes
    ----------
    log_ratios : dict of str to float
        log of the density of the answers under the second table over that under the first, by kind of query; the two
        halves of joint moments apart.

    Notes
    -----
    For full-data queries the sum over `log_ratios` is the exact log-likelihood ratio of the transcript: by Neyman and
    Pearson no attacker has a better score. For sampled queries it is exact, but for truncation, if all records other
    than the differing one contribute zero; otherwise, and of hidden passes, it is a score like any other.
    """

    def __init__(self, oracle: PrivateOracle, plan: Plan, tables: tuple[Rows, Rows]) -> None:
        self._oracle, self._plan = oracle, plan
        self._tables = self._seen = tables
        self.log_ratios: dict[str, float] = defaultdict(float)

    @property
    def log_ratio(self) -> float:
        """Evidence of the whole transcript for the second table."""
        return math.fsum(self.log_ratios.values())

    def gradient(self, x: Array, kind: str = "gradient") -> Array:
        answer, query = self._oracle.gradient(x, kind), self._query(kind)
        sums = [rows.gradient_sum(x, query.clip_norm, ALL) for rows in self._seen]
        self._weigh(kind, query, query.clip_norm, answer, sums)
        return answer

    def difference(self, x: Array, anchor: Array, clip_norm: float, kind: str = "difference") -> Array:
        answer, query = self._oracle.difference(x, anchor, clip_norm, kind), self._query(kind)
        if clip_norm > 0:
            sums = [rows.difference_sum(x, anchor, query.clip_norm / 2, clip_norm, ALL) for rows in self._seen]
            self._weigh(kind, query, clip_norm, answer, sums)
        return answer

    def moments(self) -> tuple[Array, Array]:
        (correlation, second), query = self._oracle.moments(), self._query("moments")
        statistic = query.question
        assert isinstance(statistic, JointMoments), "the oracle answered what the plan does not contain"
        sums = [rows.moment_sums(statistic) for rows in self._tables]
        self._weigh("correlation", query, query.clip_norm, correlation, [first for first, _ in sums])
        weighed = math.sqrt(statistic.balance) * second
        self._weigh("moments", query, query.clip_norm, weighed, [gram for _, gram in sums])
        return correlation, second

    def row_moments(self) -> tuple[Array, ...]:
        answers, query = self._oracle.row_moments(), self._query("moments")
        statistic = query.question
        assert isinstance(statistic, RowMoments), "the oracle answered what the plan does not contain"
        weights = (1.0, statistic.mean, statistic.diagonal, statistic.length)
        for answer, weight, *sums in zip(
            answers, weights, *(rows.row_moment_sums(statistic) for rows in self._tables), strict=True
        ):
            self._weigh("moments", query, query.clip_norm, math.sqrt(weight) * answer, sums)
        return answers

    def second_moment(self) -> Array:
        answer, query = self._oracle.second_moment(), self._query("second moment")
        self._weigh("second moment", query, query.clip_norm, answer, [rows.second_moment_sum() for rows in self._seen])
        return answer

    def feature_curvature(self, x: Array, weights: Array) -> Array:
        answer, query = self._oracle.feature_curvature(x, weights), self._query("curvature")
        sums = [rows.curvature_sum(x, weights) for rows in self._tables]
        self._weigh("curvature", query, query.clip_norm, answer, sums)
        return answer

    def noisy_pass(self, program: Program) -> None:
        self._oracle.noisy_pass(program)

    def last_state(self) -> tuple[Array, Array]:
        """All there is to see of hidden passes: how far x went the way the two tables would have pulled it apart."""
        x, dual = self._oracle.last_state()
        query = self._query(NOISY_PASS)
        first, second = (as_numbers(rows.gradient_sum(np.zeros_like(x), query.clip_norm, ALL)) for rows in self._tables)
        self.log_ratios[NOISY_PASS] += float(np.sum(x * (first - second)))
        return x, dual

    def change_coordinates(self, matrix: Array | SpikedMap) -> None:
        self._oracle.change_coordinates(matrix)
        first, second = self._tables
        self._seen = first.transformed(matrix), second.transformed(matrix)

    def noise_std(self, kind: str) -> float:
        return self._oracle.noise_std(kind)

    def _query(self, kind: str) -> Query:
        query = self._plan.query(kind)
        assert query is not None, "the oracle answered what the plan does not contain"
        return query

    def _weigh(self, part: str, query: Query, clip_norm: float, answer: Array, sums: Sequence[Sum]) -> None:
        """Add log p(answer | second) − log p(answer | first); a record takes part with the sampler's probability."""
        scale = query.noise_multiplier * clip_norm
        seen = answer * (query.denominator / scale)
        rate = query.sampler.denominator(self._plan.n_rows) / self._plan.n_rows
        first, second = (log_density(seen, as_numbers(total) / scale, rate) for total in sums)
        self.log_ratios[part] += second - first


def log_density(seen: Array, mean: Array, rate: float) -> float:
    """log of (1 − q)N(0, I) + q N(mean, I) at `seen`, up to what does not depend on `mean`."""
    here = float(np.vdot(mean, seen) - np.vdot(mean, mean) / 2)
    return here if rate >= 1 else _log_sum(math.log1p(-rate), math.log(rate) + here)


def _log_sum(a: float, b: float) -> float:
    """log(eᵃ + eᵇ)."""
    high, low = max(a, b), min(a, b)
    return high + math.log1p(math.exp(low - high))
