"""An attack on a private search: a secret number of trials, each scored with noise, of which the best one is seen.

A row trains or scores, never both, and each is attacked by itself. The number of trials, their scores and the choice of
the best are the library's own; what a trial asks is asked by the attacker, because the selection is certified for
whatever a trial does within its plan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from dpadmm.audit.end_to_end import AuditResult, judge_threshold
from dpadmm.audit.neighbours import OneAmongZeros
from dpadmm.audit.power import power_of_threshold
from dpadmm.estimators.search.best_trial import best_of
from dpadmm.estimators.search.candidates import Candidate
from dpadmm.estimators.search.trial import Trial
from dpadmm.oracles.gate import Gate
from dpadmm.oracles.private import PrivateOracle
from dpadmm.privacy.budget import Relation
from dpadmm.privacy.plan import Plan
from dpadmm.privacy.questions import SCORE
from dpadmm.privacy.selection import SearchPlan
from dpadmm.problem.losses import Squared
from dpadmm.problem.losses.base import Loss
from dpadmm.problem.scores import Accuracy, Score
from dpadmm.randomness import SelectionStream, Streams
from dpadmm.rows.packed import PackedRows
from dpadmm.rows.protocol import Rows
from dpadmm.rows.scored import ScoredRows

Array = NDArray[np.float64]

EVIDENCE = "evidence"


class FitRun(Protocol):
    """One run of an attack on the plan of a fit."""

    @property
    def spread(self) -> float:
        """Standard deviation to expect of the evidence."""
        ...

    def __call__(self, truth: int, streams: Streams) -> float: ...


@dataclass(frozen=True)
class Rising:
    """The attacker's rule of scoring: a smooth, increasing function of the margin."""

    name: ClassVar[str] = "rising"

    def values(self, margin: Array, target: Array, loss: Loss) -> Array:
        return np.asarray(expit(margin))


@dataclass(frozen=True, eq=False)
class _Trials:
    """What a search runs, with nothing to choose from."""

    make: Callable[[], Trial]

    def run(self, candidate: Candidate, seed: int | None) -> Trial:
        return self.make()


class SearchRun:
    """What both attacks on a search share: the noise of the score, and how many trials there are, are the library's.

    Parameters
    ----------
    plan : SearchPlan
        Law of the trials, and noise of the score.
    stream : SelectionStream
        Decides how many trials there are, and what each tries.
    """

    def __init__(self, plan: SearchPlan, stream: SelectionStream) -> None:
        self._plan, self._stream = plan, stream

    def best(self, make: Callable[[], Trial]) -> Trial:
        """The best of as many trials as a search of this plan makes."""
        return best_of(_Trials(make), [({}, None)] * self._plan.repetitions.draw(self._stream))

    def score(self, rows: Rows, margin: float, streams: Streams) -> float:
        """The noisy score of a model with this margin on a row of one."""
        oracle = PrivateOracle(rows, Gate(self._plan.score), streams)
        answer = oracle.ask(SCORE, np.array([margin]))
        oracle.require_promise_kept()
        return answer

    def judge(self, plan: Plan | SearchPlan, scores: Array, confidence: float) -> AuditResult:
        """What many searches refute of the total; the power is that of the best of noisy scores that one row moves."""
        total, (query,) = plan.budget, self._plan.score.queries
        power = power_of_threshold(
            total.epsilon,
            total.delta,
            len(scores),
            confidence,
            shift=total.relation.record_distance / query.noise_multiplier,
            repetitions=self._plan.repetitions,
        )
        return judge_threshold(plan, scores, confidence, power)


class RowTrains(SearchRun):
    """One search whose two tables differ in a training row.

    A trial is one run of an attack on the plan of a fit. Its model is the evidence found; all validation rows are alike
    and score a model by it, so that of all trials the loudest tends to win. Its evidence is what the attacker sees.

    Parameters
    ----------
    plan, stream
        As in `SearchRun`.
    fits : sequence of FitRun
        One for each plan of a fit; a trial draws one.
    """

    name = "winner of the search (a training row is turned, moved or gone)"

    def __init__(self, plan: SearchPlan, fits: Sequence[FitRun], stream: SelectionStream) -> None:
        super().__init__(plan, stream)
        self._fits = fits
        ones = np.ones(plan.score.n_rows)
        self._judges = ScoredRows(PackedRows.of_mapped(ones[:, None]), ones, Squared(), Rising())

    def __call__(self, truth: int, streams: Streams) -> float:
        """The winner's evidence for the second table; none where there was no trial."""

        def trial() -> Trial:
            fit = self._fits[self._stream.below(len(self._fits))]
            evidence = fit(truth, streams)
            score = self.score(self._judges, 2.0 * evidence / fit.spread, streams)
            return Trial(score, None, {EVIDENCE: evidence})

        winner = self.best(trial)
        return float(winner.candidate[EVIDENCE]) if winner.candidate is not None else 0.0


class RowScores(SearchRun):
    """One search whose two tables differ in a validation row, which every model scores right, or wrong, or not at all.

    Parameters
    ----------
    plan, stream
        As in `SearchRun`.
    """

    name = "its score (a scoring row is turned or gone)"

    def __init__(self, plan: SearchPlan, stream: SelectionStream) -> None:
        super().__init__(plan, stream)
        missing = plan.budget.relation is not Relation.REPLACE_ONE
        self._tables = tuple(
            OneAmongZeros(_judge(row, target, Accuracy()), plan.score.n_rows)
            for row, target in ((1.0, -1.0), (np.nan if missing else 1.0, 1.0))
        )

    def __call__(self, truth: int, streams: Streams) -> float:
        """The winner's score."""

        def trial() -> Trial:
            return Trial(self.score(self._tables[truth], 1.0, streams), None, None)

        return self.best(trial).score


def _judge(row: float, target: float, score: Score) -> ScoredRows:
    return ScoredRows(PackedRows.of_mapped(np.array([[row]])), np.array([target]), Squared(), score)
