"""An attack on hidden passes: the last state of the smallest program that a plan is certified for.

A plan of hidden passes is certified by its passage, a few public numbers, whatever the program behind them. So the
attacker runs one of a single feature: the noise of the others would tell him nothing.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dpadmm.audit.end_to_end import AuditResult, judge_threshold
from dpadmm.audit.power import power_of_threshold
from dpadmm.oracles.gate import Gate
from dpadmm.oracles.private import PrivateOracle
from dpadmm.privacy.calibration import verify_plan
from dpadmm.privacy.passage import Passage
from dpadmm.privacy.plan import Plan, Query
from dpadmm.privacy.questions import HiddenWalk
from dpadmm.privacy.selection import SearchPlan
from dpadmm.privacy.state_grid import Footing
from dpadmm.problem.constraints import Constraint
from dpadmm.problem.hidden_pass_program import Program
from dpadmm.problem.losses import Squared
from dpadmm.problem.problem import Problem
from dpadmm.problem.regularizers import Zero
from dpadmm.randomness import Streams
from dpadmm.rows.local import LocalRows

FAR = 1e6
"""Target, in units of the clip: so far away that gradients are clipped wherever the state wanders to."""
NEARLY = 1e-9
"""By how much the one singular value exceeds the smallest one recorded, which is known from below only."""


class HiddenRun:
    """One run: all passes over a table whose rows are zero but one, whose target is turned.

    Nothing but the last state is seen, as in a fit. The row is visited at a secret place of each pass, and the noise of
    all visits adds up on x: x is all there is to score.

    Parameters
    ----------
    plan : Plan
        Of hidden passes. Whatever else it asks is left out: less is certified to cost no more.
    """

    name = "last state of the hidden passes (the target of a row is turned)"
    spread = 1.0

    def __init__(self, plan: Plan) -> None:
        ((query, recorded),) = (
            (query, query.question.passage) for query in plan.queries if isinstance(query.question, HiddenWalk)
        )
        self._program = smallest_program(recorded)
        passage = Passage.of(Footing.of(self._program, recorded.n_rows, query.count, query.clip_norm))
        self._plan = replace(plan, queries=(replace(query, question=HiddenWalk(query.clip_norm, passage)),))
        # The passage of the small program is no worse than the recorded one; the accountant is asked all the same.
        verify_plan(self._plan)
        self._tables = tuple(_one_pulled(query, passage.n_rows, sign) for sign in (1.0, -1.0))
        self._strength = self._program.beta * self._program.problem.constraint.norm_squared
        visits = query.count * passage.n_rows
        self._wandering = self._program.step * query.noise_multiplier * query.clip_norm * math.sqrt(visits)

    def __call__(self, truth: int, streams: Streams) -> float:
        """Evidence for the second table from one run on the table numbered `truth`: how far x went its way."""
        oracle = PrivateOracle(self._tables[truth], Gate(self._plan), streams)
        x, _ = oracle.walk(self._program)
        oracle.require_promise_kept()
        return -float(x[0]) / self._wandering

    def judge(self, plan: Plan | SearchPlan, scores: NDArray[np.float64], confidence: float) -> AuditResult:
        """What the scores of many runs refute; the power is that of this attack, which sees little."""
        budget, query = plan.budget, self._plan.queries[0]
        # Each pass moves x by two clipped gradients, which the metric shortens, and all visits make it wander.
        pulled = query.count * 2.0 * query.clip_norm * self._program.step / (1.0 + self._program.step * self._strength)
        power = power_of_threshold(
            budget.epsilon, budget.delta, len(scores), confidence, shift=pulled / self._wandering
        )
        return judge_threshold(plan, scores, confidence, power)


def smallest_program(passage: Passage) -> Program:
    """A program of one feature whose passage is the given one, or certified to cost no more.

    Without a penalty y follows x and λ is its own noise alone: x adds up what the visits bring, and forgets as much as
    the strong convexity makes it.
    """
    plain = passage.weakest == passage.strongest == 1.0
    scale = math.sqrt(passage.weakest * (1 + NEARLY))
    constraint = Constraint.identity(1) if plain else Constraint.general([[scale]])
    # A passage knows the step by its products with β and the ridge only; a power of two keeps both exact.
    step = 2.0 ** math.floor(math.log2((1.0 - passage.convexity) / 2))
    problem = Problem(Squared(), Zero(), constraint, ridge=passage.convexity / step)
    return Program(problem, step, passage.coupling / step)


def _one_pulled(query: Query, n_rows: int, sign: float) -> LocalRows:
    X, target = np.zeros((n_rows, 1)), np.zeros(n_rows)
    X[0], target[0] = 1.0, sign * FAR * query.clip_norm
    return LocalRows(X, target, Squared())
