"""An attack that asks a plan's queries itself: no solver comes between, and no point is better than the worst one.

A plan is certified for whatever is asked within it: at any points, in any coordinates, by any solver. So the attacker
need not wait until a solver comes near the points where a record shows most.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpadmm.audit.end_to_end import AuditResult, judge
from dpadmm.audit.neighbours import OneAmongZeros, Pair
from dpadmm.audit.placed_query import PlacedQuery, in_turn, placed
from dpadmm.oracles.gate import Gate
from dpadmm.oracles.private import PrivateOracle
from dpadmm.privacy.arithmetic import Arithmetic
from dpadmm.privacy.plan import Plan, Query
from dpadmm.privacy.selection import SearchPlan
from dpadmm.problem.rowmap import RowMap
from dpadmm.problem.spiked_map import SpikedMap
from dpadmm.randomness import Streams, make_streams

Array = NDArray[np.float64]

STRETCH = 100.0
"""Factor on rows whose gradients do not come up to the clip: clipped they are as long in any coordinates."""
WIDEST_DENSE = 300
"""Features up to which exact arithmetic, which knows dense coordinates only, changes them in every run."""
LOUD = 0.99
"""Nearly all of what one record may move a sum."""


class Interrogation:
    """One run: all queries of a plan, at fixed places, of a table that is one of two.

    Parameters
    ----------
    plan : Plan
        What may be asked, and with how much noise it is answered.
    pair : Pair
        The suspects.
    rowmap : RowMap
        Asked for again after private preparation, as a fit does.

    Attributes
    ----------
    name : str
        What is asked, and in what the tables differ.
    reaches : tuple of float
        For each query of the plan how far the tables lie apart, as a share of what one record may move it.
    """

    def __init__(self, plan: Plan, pair: Pair, rowmap: RowMap) -> None:
        self.name = f"{', '.join(query.kind for query in plan.queries)} ({pair.name})"
        self._plan, self._tables, self._rowmap = plan, pair.tables, rowmap
        PrivateOracle(pair.tables[0], Gate(plan), make_streams())  # refuses what would be refused in every run
        statistics = [query for query in plan.queries if query.question.proof is not None]
        sums = [query for query in plan.queries if query.question.proof is None]
        self._before = [placed(plan, query, pair, pair.tables) for query in statistics]
        self._coordinates: Array | SpikedMap | None = None
        self._after = [placed(plan, query, pair, pair.tables) for query in sums]
        stretched = self._stretch() if min(map(self._reach, self._after), default=1.0) < LOUD else None
        if stretched is not None:
            first, second = (rows.transformed(stretched) for rows in pair.tables)
            after = [placed(plan, query, pair, (first, second)) for query in sums]
            if sum(map(self._reach, after)) > sum(map(self._reach, self._after)):
                self._coordinates, self._after = stretched, after
        self.reaches = tuple(map(self._reach, (*self._before, *self._after)))

    @property
    def spread(self) -> float:
        """μ of the one Gaussian that a run amounts to where all rows are read at each query: the standard deviation of
        its evidence. A sampled query counts for as much as its mean moves."""
        distance = self._plan.budget.relation.record_distance
        asked = (*self._before, *self._after)
        return math.sqrt(
            sum(
                question.query.count * (question.rate * reach * distance / question.query.noise_multiplier) ** 2
                for question, reach in zip(asked, self.reaches, strict=True)
            )
        )

    @property
    def order(self) -> tuple[Query, ...]:
        """The queries, in the order of `reaches`."""
        return tuple(question.query for question in (*self._before, *self._after))

    def __call__(self, truth: int, streams: Streams) -> float:
        """Evidence for the second table from one run on the table numbered `truth`."""
        rows: OneAmongZeros = self._tables[truth]
        oracle = PrivateOracle(rows, Gate(self._plan), streams)
        evidence = math.fsum(question.evidence(oracle) for question in in_turn(self._before))
        if self._plan.arithmetic is not Arithmetic.EXACT:
            oracle.change_map(self._rowmap)
        if self._coordinates is not None:
            oracle.change_coordinates(self._coordinates)
        evidence += math.fsum(question.evidence(oracle) for question in in_turn(self._after))
        oracle.require_promise_kept()
        return evidence

    def judge(self, plan: Plan | SearchPlan, scores: Array, confidence: float) -> AuditResult:
        """What the scores of many runs refute of the promise of the whole plan."""
        assert isinstance(plan, Plan), "a search is judged by its own attacks"
        return judge(plan, scores, confidence)

    def _reach(self, question: PlacedQuery) -> float:
        return question.reach(self._plan.budget.relation.record_distance)

    def _stretch(self) -> Array | SpikedMap | None:
        features = self._tables[0].space.n_features
        if self._plan.arithmetic is not Arithmetic.EXACT:
            return SpikedMap(np.full(features, STRETCH), np.zeros(features), 1.0)
        return STRETCH * np.eye(features) if features <= WIDEST_DENSE else None


def loudest(plan: Plan, pairs: Sequence[Pair], rowmap: RowMap) -> Interrogation:
    """With the pair of tables that moves the answers most, in terms of their noise."""
    return max((Interrogation(plan, pair, rowmap) for pair in pairs), key=lambda run: run.spread)
