"""The queries of a plan, each asked where two tables answer most differently, and what an answer is evidence of."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dpadmm.audit.neighbours import OneAmongZeros, Pair
from dpadmm.audit.witness import ALL, log_density
from dpadmm.errors import QueryRefused
from dpadmm.oracles.base import PrivateOracle
from dpadmm.privacy.plan import Plan, Query
from dpadmm.privacy.questions import (
    ClippedGradient,
    CountsBelow,
    FeatureCurvature,
    FeatureMoment,
    GradientDifference,
    JointMoments,
    RowMoments,
    SecondMoment,
)
from dpadmm.rows.lattice_sum import as_numbers, joined

Array = NDArray[np.float64]
Answers = tuple[Array, Array]
Ask = Callable[[PrivateOracle], Array]

SATURATED = 1e3
"""Margin of a row at the points asked: as far as a slope goes."""


@dataclass(frozen=True, eq=False)
class PlacedQuery:
    """A query at a fixed place, with what the two tables would answer without noise.

    Parameters
    ----------
    query : Query
        Of the plan.
    ask : callable
        Asks an oracle, and gives the answer as one vector in the weights under which it was noised.
    sums : (Array, Array)
        Of the first and the second table.
    rate : float
        Probability that a record takes part.
    clip_norm : float
        Largest norm of one record's contribution here.
    """

    query: Query
    ask: Ask
    sums: Answers
    rate: float
    clip_norm: float

    def evidence(self, oracle: PrivateOracle) -> float:
        """log of the density of an answer under the second table over that under the first."""
        seen = self.ask(oracle) * (self.query.denominator / self._noise)
        if self.rate >= 1:
            return float(np.vdot(seen, self._shift)) - self._middle
        first, second = self._means
        return log_density(seen, second, self.rate) - log_density(seen, first, self.rate)

    def reach(self, record_distance: float) -> float:
        """How far the tables lie apart, as a share of what the plan lets one record move the sum."""
        return float(np.linalg.norm(self._shift)) * self.query.noise_multiplier / record_distance

    @property
    def _noise(self) -> float:
        return self.query.noise_multiplier * self.clip_norm

    @cached_property
    def _means(self) -> Answers:
        return self.sums[0] / self._noise, self.sums[1] / self._noise

    @cached_property
    def _shift(self) -> Array:
        return self._means[1] - self._means[0]

    @cached_property
    def _middle(self) -> float:
        first, second = self._means
        return float(np.vdot(second, second) - np.vdot(first, first)) / 2


class Questioner:
    """Makes the questions of a plan about a pair of tables.

    Parameters
    ----------
    plan : Plan
        What may be asked.
    pair : Pair
        The suspects.
    """

    def __init__(self, plan: Plan, pair: Pair) -> None:
        self._plan, self._pair = plan, pair

    def about(self, query: Query, tables: tuple[OneAmongZeros, OneAmongZeros]) -> PlacedQuery:
        """The query where the two tables, in the coordinates they are seen in, lie furthest apart."""
        statistic = query.question
        if isinstance(statistic, CountsBelow):
            return self._counts(query, statistic)
        if isinstance(statistic, FeatureMoment):
            return self._sums(query, lambda rows: rows.feature_moment_sum(), lambda oracle: oracle.feature_moment())
        if isinstance(statistic, SecondMoment):
            return self._sums(
                query, lambda rows: as_numbers(rows.second_moment_sum()), lambda oracle: oracle.second_moment()
            )
        if isinstance(statistic, FeatureCurvature):
            return self._curvatures(query)
        if isinstance(statistic, JointMoments | RowMoments):
            return self._moments(query, statistic)
        if not isinstance(statistic, (ClippedGradient, GradientDifference)):
            raise QueryRefused(f"no question is known for {query.kind!r} queries")
        return (
            self._differences(query, tables)
            if isinstance(statistic, GradientDifference)
            else self._gradients(query, tables)
        )

    # -- statistics --------------------------------------------------------------------------------------------------

    def _sums(self, query: Query, total: Callable[[OneAmongZeros], Array], ask: Ask) -> PlacedQuery:
        first, second = (total(rows).ravel() for rows in self._pair.tables)
        return self._question(query, lambda oracle: ask(oracle).ravel(), (first, second), query.clip_norm)

    def _counts(self, query: Query, statistic: CountsBelow) -> PlacedQuery:
        """Thresholds between the two rows, and anywhere where they agree."""
        raw = self._pair.raw
        middle = np.tile((raw[0] + raw[1]) / 2, (statistic.levels, 1))
        # Shares are answered with the half put back that was taken off before the noise.
        return self._sums(query, lambda rows: rows.below_sums(middle), lambda oracle: oracle.shares_below(middle) - 0.5)

    def _curvatures(self, query: Query) -> PlacedQuery:
        """Weights so large that both rows are scaled down, on features in which they differ, or one is longer."""

        def at(x: Array, weights: Array) -> PlacedQuery:
            return self._sums(
                query,
                lambda rows: as_numbers(rows.curvature_sum(x, weights)),
                lambda oracle: oracle.feature_curvature(x, weights),
            )

        first, second = (row**2 for row in self._pair.mapped)
        large = SATURATED / max(float(np.linalg.norm(first)), float(np.linalg.norm(second)))
        chosen = [large * longer.astype(float) for longer in (first != second, first > second, second > first)]
        points = self._points(self._pair.tables[0].point_shape)
        return self._furthest(at(x, weights) for x, weights in product(points, chosen))

    def _moments(self, query: Query, statistic: JointMoments | RowMoments) -> PlacedQuery:
        if isinstance(statistic, JointMoments):
            weights: tuple[float, ...] = (1.0, statistic.balance)
            return self._sums(
                query,
                lambda rows: as_numbers(joined(rows.moment_sums(statistic))),
                lambda oracle: _weighed(oracle.moments(), weights),
            )
        weights = (1.0, statistic.mean, statistic.diagonal, statistic.length)
        return self._sums(
            query,
            lambda rows: as_numbers(joined(rows.row_moment_sums(statistic))),
            lambda oracle: _weighed(oracle.row_moments(), weights),
        )

    # -- gradients ---------------------------------------------------------------------------------------------------

    def _gradients(self, query: Query, tables: tuple[OneAmongZeros, OneAmongZeros]) -> PlacedQuery:
        def at(x: Array) -> PlacedQuery:
            first, second = (as_numbers(rows.gradient_sum(x, query.clip_norm, ALL)) for rows in tables)
            return self._question(
                query, lambda oracle: oracle.gradient(x, query.kind), (first, second), query.clip_norm
            )

        return self._furthest(at(x) for x in self._points(tables[0].point_shape))

    def _differences(self, query: Query, tables: tuple[OneAmongZeros, OneAmongZeros]) -> PlacedQuery:
        """A difference is half as long as its clip where slopes keep their sign: smaller clips are tried too."""

        def at(x: Array, anchor: Array, clip: float) -> PlacedQuery:
            half = query.clip_norm / 2
            first, second = (as_numbers(rows.difference_sum(x, anchor, half, clip, ALL)) for rows in tables)
            return self._question(
                query, lambda oracle: oracle.difference(x, anchor, clip, query.kind), (first, second), clip
            )

        points = self._points(tables[0].point_shape)
        clips = query.clip_norm * np.array([1.0, 0.5, 0.1])
        return self._furthest(at(x, anchor, float(clip)) for x, anchor, clip in product(points, points, clips))

    def _points(self, shape: tuple[int, ...]) -> list[Array]:
        """The origin, and points far along the two rows, their middle and their difference, either way."""
        first, second = self._pair.mapped
        directions = [row for row in (first, second, first + second, first - second) if row.any()]
        points = [np.zeros(shape)]
        for row, sign in product(directions, (1.0, -1.0)):
            far = sign * SATURATED * row / float(np.vdot(row, row))
            if len(shape) == 1:
                points.append(far)
            else:
                points.extend(far[:, None] * np.eye(shape[1])[output] for output in {0, shape[1] - 1})
        return points

    def _question(self, query: Query, ask: Ask, sums: Answers, clip_norm: float) -> PlacedQuery:
        rate = query.sampler.denominator(self._plan.n_rows) / self._plan.n_rows
        return PlacedQuery(query, ask, sums, rate, clip_norm)

    def _furthest(self, questions: Iterable[PlacedQuery]) -> PlacedQuery:
        return max(questions, key=lambda question: question.reach(1.0))


def _weighed(answers: Sequence[Array], weights: Sequence[float]) -> Array:
    """Several answers as the one vector that was noised."""
    return np.concatenate([math.sqrt(weight) * answer.ravel() for answer, weight in zip(answers, weights, strict=True)])


def in_turn(questions: Sequence[PlacedQuery]) -> Iterator[PlacedQuery]:
    """Each question as often as the plan has it."""
    for question in questions:
        for _ in range(question.query.count):
            yield question
