"""Audit of a whole fit: estimator, row map, plan, oracle and solver as users run them, attacked by the best score.

`audit_fit` takes any estimator and any two neighbouring tables; `audit_solver` takes the pair that hurts a solver most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpadmm import kernels
from dpadmm.audit.lower_bound import epsilon_lower_bound, gaussian_lower_bound, require_probabilities
from dpadmm.audit.neighbours import Table, worst_pair
from dpadmm.audit.power import Power, power_of_pairs, power_of_threshold
from dpadmm.audit.witness import Witness
from dpadmm.declare.recipe import Recipe
from dpadmm.errors import InvalidParameter
from dpadmm.estimators.base import PrivateLinearModel
from dpadmm.estimators.linear import DPLogisticRegression
from dpadmm.kernels import FitSize
from dpadmm.oracles.gate import Gate
from dpadmm.oracles.private import PrivateOracle
from dpadmm.privacy.budget import Budget, Relation
from dpadmm.privacy.plan import Plan
from dpadmm.privacy.selection import SearchPlan
from dpadmm.problem.checks import count
from dpadmm.randomness import Streams, make_streams
from dpadmm.rows.protocol import Rows
from dpadmm.solvers.base import SOLVERS, run

AUDIT_ROWS = 10
AUDIT_DELTA = 0.05
"""Few rows and a large δ: what the budget allows is then large enough to be seen in a few thousand runs."""
AUDIT_STEPS = 2
FEWEST_RUNS = 200
SMALL_CLIP = 0.1
"""So small that the worst pair's gradients meet it with either label, wherever the solver has got to."""


@dataclass(frozen=True)
class AuditResult:
    """What an attack on many fits can and cannot refute.

    Attributes
    ----------
    claimed, delta : float
        The promise under attack.
    proven : float
        What the accountant proves of the plan that was run; at most `claimed`.
    lower_bound : float
        With probability at least `confidence` no smaller ε is true at `delta`. Above `claimed`: the claim is refuted.
    confidence : float
        Over the runs of the audit.
    runs : int
        Fits on each of the two tables.
    method : {"gaussian", "threshold"}
        "gaussian" tests the claim that a full-data plan makes, that its transcript is one Gaussian of known μ;
        "threshold" tests (ε, δ) itself, needs no such form, and more runs.
    power : float
        Lower bound to expect of one Gaussian that spends all it claims on these two tables: how near the claim an audit
        of this size can get.
    detectable_noise : float
        Of one Gaussian with at most this multiple of the noise it needs, an audit of this size says so with probability
        0.95 (`dpadmm.audit.Power`). For "threshold" both numbers are of a full-data mechanism with the same claim, but
        for hidden passes and searches of saved models: there they are of the attack itself, which sees less.
    """

    claimed: float
    delta: float
    proven: float
    lower_bound: float
    confidence: float
    runs: int
    method: Literal["gaussian", "threshold"]
    power: float
    detectable_noise: float

    @property
    def refuted(self) -> bool:
        return self.lower_bound > self.claimed


def audit_fit(
    model: PrivateLinearModel,
    table: Table,
    neighbour: Table,
    runs: int = 2000,
    confidence: float = 0.999,
    parts: Sequence[str] | None = None,
) -> AuditResult:
    """Attack `runs` fits of `model` on each of two neighbouring tables.

    The attacker sees every noisy answer, more than is ever released, and scores it by its likelihood ratio (`Witness`).

    Parameters
    ----------
    model : estimator
        Unfitted; it stays so. An int `random_state` makes the audit repeatable.
    table, neighbour : (X, y)
        Neighbours under the relation of `model`. Not private: they are made up for the audit.
    runs : int
        Fits on each table.
    parts : sequence of str or None
        Kinds of queries the attacker looks at ("correlation" and "moments" for the halves of joint moments); None
        looks at all of them.

    Examples
    --------
    >>> result = audit_solver("auto", epsilon=1.0, runs=300, random_state=0)
    >>> result.claimed, result.refuted
    (1.0, False)
    """
    (first, rows), (second, other_rows) = model.prepare(*table), model.prepare(*neighbour)
    if first.declaration.budgeted.all:
        raise InvalidParameter("a model with budgeted steps", "one without", "audit the model and its steps apart")
    if first.recipe.plan != second.recipe.plan:
        raise InvalidParameter("tables with different plans", "neighbours", "give both tables the same public numbers")
    streams = make_streams(model.random_state)
    return attack(first.recipe, (rows, other_rows), streams, runs, confidence, parts)


def attack(
    recipe: Recipe,
    suspects: tuple[Rows, Rows],
    streams: Streams,
    runs: int,
    confidence: float = 0.999,
    parts: Sequence[str] | None = None,
) -> AuditResult:
    """Carry out a recipe `runs` times on the rows of each of two neighbouring tables, and judge the scores."""
    count("runs", runs, minimum=FEWEST_RUNS)
    require_probabilities(recipe.plan.budget.delta, confidence)
    asked = sum(query.count for query in recipe.plan.queries)
    # The oracle and the attacker's two suspects read rows at every query of every run.
    engine = kernels.choose(FitSize(6 * runs * asked, suspects[0].n_rows, suspects[0].space.n_features))
    with np.errstate(all="ignore"), kernels.use(engine):
        scores = np.array([[score(recipe, suspects, truth, streams, parts) for truth in (0, 1)] for _ in range(runs)])
    return judge(recipe.plan, scores, confidence)


def audit_solver(
    name: str,
    epsilon: float,
    delta: float = AUDIT_DELTA,
    runs: int = 2000,
    confidence: float = 0.999,
    relation: str = "replace-one",
    steps: int | None = AUDIT_STEPS,
    random_state: int | None = None,
) -> AuditResult:
    """Attack logistic regression by the solver called `name` on its worst pair of neighbouring tables.

    All rows but one are zero. That one has full length; its label is turned, or, under add-remove, it is taken out.
    For hidden passes there is no other row, because the noise of its visits would hide this one.
    """
    budget = Budget(epsilon, delta, Relation.parse(relation))
    kind = SOLVERS[name]
    n_rows = 1 if kind.hidden else max(2, min(AUDIT_ROWS, int(0.9 / budget.delta)))
    model = DPLogisticRegression(
        epsilon,
        delta,
        relation=relation,
        solver=name,
        steps=steps,
        clip_norm=SMALL_CLIP if kind.takes_clip else None,
        fit_intercept=False,
        classes=(0, 1),
        random_state=random_state,
    )
    return audit_fit(model, *worst_pair(n_rows, budget.relation), runs, confidence)


def judge(plan: Plan, scores: NDArray[np.float64], confidence: float) -> AuditResult:
    """Full-data plans claim to be one Gaussian and are tested as such, others against (ε, δ)."""
    if not plan.event.full_batch:
        power = power_of_threshold(plan.budget.epsilon, plan.budget.delta, len(scores), confidence)
        return judge_threshold(plan, scores, confidence, power)
    (first, second), budget, runs = scores.T, plan.budget, len(scores)
    bound = gaussian_lower_bound(first, second, budget.delta, confidence).epsilon
    power = power_of_pairs(budget.epsilon, budget.delta, runs, confidence)
    return _result(plan, bound, confidence, runs, "gaussian", power)


def judge_threshold(
    plan: Plan | SearchPlan, scores: NDArray[np.float64], confidence: float, power: Power
) -> AuditResult:
    """Against (ε, δ) itself, for whatever claims no more."""
    first, second = scores.T
    bound = epsilon_lower_bound(first, second, plan.budget.delta, confidence).epsilon
    return _result(plan, bound, confidence, len(scores), "threshold", power)


def _result(
    plan: Plan | SearchPlan,
    bound: float,
    confidence: float,
    runs: int,
    method: Literal["gaussian", "threshold"],
    power: Power,
) -> AuditResult:
    budget = plan.budget
    return AuditResult(
        budget.epsilon,
        budget.delta,
        plan.epsilon_achieved,
        bound,
        confidence,
        runs,
        method,
        power.expected,
        power.noise,
    )


def score(
    recipe: Recipe, suspects: tuple[Rows, Rows], truth: int, streams: Streams, parts: Sequence[str] | None = None
) -> float:
    """Evidence for the second table from one run on the table numbered `truth`."""
    oracle = PrivateOracle(suspects[truth], Gate(recipe.plan), streams)
    witness = Witness(oracle, recipe.plan, suspects)
    run(recipe.solver, recipe.problem, witness)
    oracle.require_promise_kept()
    if parts is None:
        return witness.log_ratio
    return sum(witness.log_ratios[part] for part in parts)
