"""Audit of a fitted or loaded model: does its statement fit its plan, and does its plan keep the statement?"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from time import perf_counter
from typing import Any

from dpadmm.audit.end_to_end import FEWEST_RUNS, AuditResult, attack, score
from dpadmm.audit.neighbours import declared_target, worst_rows
from dpadmm.errors import DpadmmError, FileProblem, InvalidParameter, PrivacyError
from dpadmm.estimators.base import PrivateLinearModel
from dpadmm.estimators.recipe import Recipe, make_recipe
from dpadmm.oracles.base import Rows
from dpadmm.privacy.arithmetic import Arithmetic
from dpadmm.privacy.calibration import verify_plan
from dpadmm.privacy.plan import Plan
from dpadmm.privacy.selection import SearchPlan
from dpadmm.privacy.statement import PrivacyStatement
from dpadmm.randomness import Streams, make_streams

DERIVED = ("epsilon", "delta", "relation", "epsilon_achieved", "mechanisms", "accountant", "proof_status")
"""What a statement says because its plan does."""

BEARABLE, MOST_RUNS = 90.0, 2000


@dataclass(frozen=True)
class ModelAudit(AuditResult):
    """What an attack on the plan of a model found, with what its statement says.

    Attributes
    ----------
    solver, relation, proof : str
        As stated.
    proven : float
        ε of the recorded plan by its accountant, computed again.
    """

    solver: str = ""
    relation: str = ""
    proof: str = ""


def audit_model(
    model: PrivateLinearModel, runs: int | None = None, confidence: float = 0.999, random_state: int | None = None
) -> ModelAudit:
    """Check the statement of a fitted model, and attack the plan it records on its worst neighbouring tables.

    1. The statement must be unseeded and speak of the model's own plan, in every number derived from it.
    2. The accountant is run again on the plan.
    3. The solver is made again from the model's parameters and carries out the recorded plan, `runs` times on each of
       two made-up tables of the recorded length: all rows zero but one, as long as the model takes them, whose target
       is one end of the range or the other, or which is there or gone.

    No row of the training table is needed, or kept anywhere.

    Parameters
    ----------
    model : estimator
        Fitted, or read by `dpadmm.load_model`.
    runs : int, optional
        Runs on each of the two tables. If left out, as many as take about a minute and a half, between 200 and 2000.
        200 runs of a mini-batch plan of thousands of steps, or of a penalty under "auto", take several minutes.
    confidence : float
        Of the lower bound.
    random_state : int or None
        An int makes the audit repeatable.

    Returns
    -------
    ModelAudit
    """
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    plan = single_fit(model.plan_)
    check_statement(model.privacy_, plan)
    proven = verify_plan(plan)
    recipe = remade(model, plan)
    suspects = worst_rows(model, model.row_map_, plan.n_rows)
    streams = make_streams(random_state)
    found = attack(
        recipe, suspects, streams, bearable_runs(recipe, suspects, streams) if runs is None else runs, confidence
    )
    shared = {field.name: getattr(found, field.name) for field in fields(found)}
    stated = model.privacy_
    return ModelAudit(
        **{**shared, "proven": proven}, solver=stated.solver, relation=stated.relation, proof=stated.proof_status
    )


def bearable_runs(recipe: Recipe, suspects: tuple[Rows, Rows], streams: Streams) -> int:
    """As many runs as take about `BEARABLE` seconds, by the time of the fastest of three; nothing private is timed."""
    times = []
    for _ in range(3):
        start = perf_counter()
        score(recipe, suspects, 0, streams)
        times.append(perf_counter() - start)
    return max(FEWEST_RUNS, min(MOST_RUNS, int(BEARABLE / (2 * min(times)))))


def single_fit(plan: Plan | SearchPlan) -> Plan:
    """Refuse what cannot be run again: searches, of which one trial is but a part, and other arithmetic than ours."""
    if isinstance(plan, Plan):
        if plan.arithmetic is Arithmetic.GRANULAR:
            return plan
        raise InvalidParameter(
            f"a model of {plan.arithmetic} arithmetic",
            "one of granular arithmetic",
            "audit a fitted estimator by `dpadmm.audit.audit_fit`",
        )
    raise InvalidParameter(
        "a model chosen by a search",
        "a model of a single fit",
        "audit the solver of its trials by `dpadmm audit --solver`; their selection is proved, not audited",
    )


def check_statement(statement: PrivacyStatement, plan: Plan) -> None:
    """Refuse a seeded statement, one about another plan, and one whose numbers are not those of its plan."""
    if statement.seeded:
        raise PrivacyError(
            "given a seeded model, which is NOT private: whoever knows the seed can subtract the noise; expected a "
            "model trained without a seed; train it again without one, or audit its solver by `dpadmm audit --solver`"
        )
    if statement.plan_digest != plan.digest:
        raise _mismatch("speaks of another plan")
    honest = PrivacyStatement.of(plan, statement.solver, (), seeded=False)
    wrong = [name for name in DERIVED if getattr(statement, name) != getattr(honest, name)]
    if wrong:
        raise _mismatch(f"contradicts its plan in {', '.join(wrong)}")


def remade(model: PrivateLinearModel, plan: Plan) -> Recipe:
    """The solver of a fitted model, made again from its parameters, with the recorded plan.

    Weights of rows or classes are not stored; they change what a solver may assume, so both readings are tried.
    """
    reasons: list[str] = []
    target = declared_target(model)
    for weighted in (False, True):
        try:
            problem = model._problem(target.loss, model.row_map_, model.n_features_in_, weighted, model.graph)
            recipe = make_recipe(problem, plan.budget, plan.n_rows, model._choices(weighted))
        except DpadmmError as refusal:
            reasons.append(str(refusal))
            continue
        if recipe.solver.name == model.privacy_.solver and _asked(recipe.plan) == _asked(plan):
            return replace(recipe, plan=plan)
    raise InvalidParameter(
        "a model whose plan cannot be run again from its stored parameters" + (f" ({reasons[0]})" if reasons else ""),
        "options that are all stored, no graph or smoother as an object, no private preparation, this version",
        "audit its solver by `dpadmm audit --solver`, or a fitted estimator by `dpadmm.audit.audit_fit`",
    )


def _asked(plan: Plan) -> list[tuple[Any, ...]]:
    """What a plan asks for, whatever the noise."""
    return [
        (query.kind, query.count, query.clip_norm, query.sampler, query.scalable, query.statistic)
        for query in plan.queries
    ]


def _mismatch(how: str) -> FileProblem:
    return FileProblem(
        f"a model whose privacy statement {how}",
        "a statement and a plan written together",
        "trust neither; train the model again, and do not edit its files",
    )
