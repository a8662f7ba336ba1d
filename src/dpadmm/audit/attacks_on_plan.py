"""Which attacks a plan is open to: one sort for noisy sums, one for hidden passes, two for a search."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpadmm.audit.end_to_end import AuditResult
from dpadmm.audit.hidden_pass_attack import HiddenRun
from dpadmm.audit.neighbours import Forgery
from dpadmm.audit.query_attack import Interrogation, loudest
from dpadmm.audit.search_attack import RowScores, RowTrains
from dpadmm.estimators.base import PrivateLinearModel
from dpadmm.privacy.plan import Plan
from dpadmm.privacy.questions import HiddenWalk
from dpadmm.privacy.selection import SearchPlan
from dpadmm.randomness import SelectionStream, Streams


class Attack(Protocol):
    """Makes one run on one of two neighbouring tables, and says how much it speaks for the second."""

    @property
    def name(self) -> str:
        """What is looked at, and in what the tables differ."""
        ...

    def __call__(self, truth: int, streams: Streams) -> float: ...

    def judge(self, plan: Plan | SearchPlan, scores: NDArray[np.float64], confidence: float) -> AuditResult:
        """What the scores of many runs, a column a table, refute of the promise of the whole plan."""
        ...


def attacks_on(model: PrivateLinearModel, plan: Plan | SearchPlan, stream: SelectionStream) -> list[Attack]:
    """All that is tried on the plan of a fitted or loaded model, the one that looks at most of it first.

    The whole plan is attacked at once, and so is every kind of its queries alone: the evidence of a query that lacks
    its noise drowns among others that have theirs. To see less is certified to cost no more.
    """
    if isinstance(plan, SearchPlan):
        fits = [_of_a_fit(model, base)[0] for base in plan.bases]
        return [RowTrains(plan, fits, stream), RowScores(plan, stream)]
    return list(_of_a_fit(model, plan))


def _of_a_fit(model: PrivateLinearModel, plan: Plan) -> list[HiddenRun | Interrogation]:
    shown = tuple(query for query in plan.queries if not isinstance(query.question, HiddenWalk))
    hidden = [HiddenRun(plan)] if len(shown) < len(plan.queries) else []
    groups = [shown, *((query,) for query in shown)] if len(shown) > 1 else [shown] if shown else []
    pairs = Forgery(model, plan).pairs()
    return [*hidden, *(loudest(replace(plan, queries=group), pairs, model.row_map_) for group in groups)]
