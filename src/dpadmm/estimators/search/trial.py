"""One trial: a candidate's private fit on the training part, and its private score on the validation part."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

from sklearn.base import clone

from dpadmm.declare.remarks import unannounced
from dpadmm.declare.target import Target
from dpadmm.errors import PromiseBroken
from dpadmm.estimators.base import PrivateLinearModel
from dpadmm.estimators.search.candidates import Candidate
from dpadmm.estimators.search.row_split import RowPart
from dpadmm.privacy.questions import SCORE
from dpadmm.privacy.selection import SearchPlan
from dpadmm.problem.scores import Score
from dpadmm.rows.packed import PackedRows
from dpadmm.rows.scored import ScoredRows
from dpadmm.sessions import Work


@dataclass(frozen=True, eq=False)
class Trial:
    """What is released of a trial, if it wins; `model` is None where there was none."""

    score: float
    model: PrivateLinearModel | None
    candidate: Candidate | None


class Runs(Protocol):
    """Whatever makes trials."""

    def run(self, candidate: Candidate, seed: int | None) -> Trial: ...


@dataclass(frozen=True, eq=False)
class Bench:
    """Everything a trial needs; the two parts are private."""

    estimator: PrivateLinearModel
    target: Target
    plan: SearchPlan
    work: Work
    training: RowPart
    validation: RowPart
    score: Score
    overrides: dict[str, Any]

    def run(self, candidate: Candidate, seed: int | None) -> Trial:
        """One run of the base mechanism.

        A fit that fails is an outcome like any other: it scores below every other, so that the search neither stops nor
        tells. Every candidate was planned before, so that what is left to fail is decided by released numbers alone.
        """
        model = clone(self.estimator).set_params(**{**candidate, **self.overrides, "random_state": seed})
        try:
            with unannounced():
                model.fit(self.training.X, self.training.y, self.training.weights)
        except PromiseBroken:
            raise
        except Exception:
            return Trial(-math.inf, None, candidate)
        if not any(model.plan_.queries == base.queries for base in self.plan.bases):
            raise PromiseBroken("a trial asked other queries than the search planned, so nothing is released")
        return Trial(self._scored(model, seed), model, candidate)

    def _scored(self, model: PrivateLinearModel, seed: int | None) -> float:
        encoded, valid = self.target.encode(self.validation.y)
        weights = self.validation.weights
        if self.target.weigh is not None:
            weights = self.target.weigh(encoded) * (1.0 if weights is None else weights)
        table = PackedRows.of(model.row_map_, self.validation.X, valid)
        rows = ScoredRows(table, encoded, self.target.loss, self.score, weights)
        # Another seed than the fit's: one noise must never be drawn twice, not even in a test.
        oracle = self.work.trial(self.plan.score, rows, None if seed is None else seed + 1)
        answer = oracle.ask(SCORE, model.weights_)
        oracle.require_promise_kept()
        return answer + 0.5
