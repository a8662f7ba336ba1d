"""The queries of a plan, each asked where two tables answer most differently, and what an answer is evidence of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpadmm.audit.neighbours import OneAmongZeros, Pair
from dpadmm.audit.witness import ALL, log_density
from dpadmm.oracles.private import PrivateOracle
from dpadmm.privacy.plan import Plan, Query
from dpadmm.privacy.questions import At, Kind
from dpadmm.rows.lattice_sum import as_numbers

Array = NDArray[np.float64]
Answers = tuple[Array, Array]


@dataclass(frozen=True, eq=False)
class PlacedQuery:
    """A query at a fixed place, with what the two tables would answer without noise.

    Parameters
    ----------
    query : Query
        Of the plan.
    at : tuple
        Where it is asked.
    sums : (Array, Array)
        Of the first and the second table.
    rate : float
        Probability that a record takes part.
    clip_norm : float
        Largest norm of one record's contribution here.
    """

    query: Query
    at: At
    sums: Answers
    rate: float
    clip_norm: float

    def evidence(self, oracle: PrivateOracle) -> float:
        """log of the density of an answer under the second table over that under the first."""
        answer = oracle.ask(Kind[Any](self.query.kind), *self.at)
        seen = self.query.question.noised(answer) * (self.query.denominator / self._noise)
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


def placed(plan: Plan, query: Query, pair: Pair, tables: tuple[OneAmongZeros, OneAmongZeros]) -> PlacedQuery:
    """The query where the two tables, in the coordinates they are seen in, lie furthest apart."""
    question, space = query.question, tables[0].space
    rate = query.sampler.denominator(plan.n_rows) / plan.n_rows

    def at(place: At) -> PlacedQuery:
        first, second = (as_numbers(rows.ask(question, place, ALL)).ravel() for rows in tables)
        return PlacedQuery(query, place, (first, second), rate, min(query.clip_norm, question.accept(place, space)))

    places = question.probes(pair, space)
    return max(map(at, places), key=lambda found: found.reach(1.0))


def in_turn(questions: Sequence[PlacedQuery]) -> Iterator[PlacedQuery]:
    """Each question as often as the plan has it."""
    for question in questions:
        for _ in range(question.query.count):
            yield question
