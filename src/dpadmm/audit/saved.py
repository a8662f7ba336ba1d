"""Audit of a fitted or loaded model: does its statement fit its plan, and does its plan keep the statement?"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from time import perf_counter
from typing import Any

from dpadmm.audit.end_to_end import FEWEST_RUNS, AuditResult, attack, score
from dpadmm.audit.neighbours import declared_target, worst_rows
from dpadmm.errors import DpadmmError, FileProblem, InvalidParameter, PrivacyError
from dpadmm.estimators.base import PrivateLinearModel
from dpadmm.estimators.recipe import Recipe, make_recipe
from dpadmm.oracles.rows import Rows
from dpadmm.privacy.arithmetic import Arithmetic
from dpadmm.privacy.plan import Plan
from dpadmm.privacy.selection import SearchPlan, verify_any_plan
from dpadmm.privacy.selection.statement import search_statement, stated_candidates
from dpadmm.privacy.split import split_of
from dpadmm.privacy.statement import PrivacyStatement
from dpadmm.randomness import Streams, make_streams

DERIVED = (
    *("epsilon", "delta", "relation", "epsilon_achieved", "unit", "mechanisms", "accountant", "proof_status"),
    *("arithmetic_name", "budget_split"),
)
"""What a statement says because its plan does."""

BEARABLE, MOST_RUNS = 90.0, 2000


@dataclass(frozen=True)
class CheckedModel:
    """What was found without an attack: the statement agrees with the plan, and the accountant with both.

    Attributes
    ----------
    claimed, delta : float
        As stated.
    proven : float
        ε of the recorded plan by its accountant, computed again.
    solver, relation, proof : str
        As stated.
    """

    claimed: float
    delta: float
    proven: float
    solver: str
    relation: str
    proof: str


class NoAttack(InvalidParameter):
    """Statement and plan of a model hold together, but the plan cannot be run again, so that nothing was attacked.

    Attributes
    ----------
    checked : CheckedModel
        What was verified before.
    """

    checked: CheckedModel


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
    2. The accountant is run again on the plan (`check_model` stops here).
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

    Raises
    ------
    NoAttack
        After steps 1 and 2, with what they found, for models that step 3 cannot make again: of a search, of noisy-admm,
        of exact arithmetic, with private bounds or a private graph, and with a graph or smoother given as an object.
    """
    checked = check_model(model)
    try:
        plan = single_fit(model)
        recipe = remade(model, plan)
    except NoAttack as refusal:
        refusal.checked = checked
        raise
    suspects = worst_rows(model, model.row_map_, plan.n_rows)
    streams = make_streams(random_state)
    found = attack(
        recipe, suspects, streams, bearable_runs(recipe, suspects, streams) if runs is None else runs, confidence
    )
    shared = {field.name: getattr(found, field.name) for field in fields(found)}
    return ModelAudit(**{**shared, **asdict(checked)})


def check_model(model: PrivateLinearModel) -> CheckedModel:
    """Check the statement of a fitted model against its plan, and run the accountant on the plan again.

    For every model, also of a search. `PrivacyError` or `FileProblem` if a promise does not hold.
    """
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    stated = model.privacy_
    check_statement(stated, model.plan_)
    proven = verify_any_plan(model.plan_)
    return CheckedModel(stated.epsilon, stated.delta, proven, stated.solver, stated.relation, stated.proof_status)


def bearable_runs(recipe: Recipe, suspects: tuple[Rows, Rows], streams: Streams) -> int:
    """As many runs as take about `BEARABLE` seconds, by the time of the fastest of three; nothing private is timed."""
    times = []
    for _ in range(3):
        start = perf_counter()
        score(recipe, suspects, 0, streams)
        times.append(perf_counter() - start)
    return max(FEWEST_RUNS, min(MOST_RUNS, int(BEARABLE / (2 * min(times)))))


def single_fit(model: PrivateLinearModel) -> Plan:
    """Refuse what cannot be run again: searches, of which one trial is but a part, private preparation, which is not
    stored, and other arithmetic than granular."""
    plan: Plan | SearchPlan = model.plan_
    if isinstance(plan, SearchPlan):
        raise NoAttack(
            "a model chosen by a search",
            "a model of a single fit",
            "attack the solver of its trials by `dpadmm audit --solver`; their selection is proved, not audited",
        )
    if split_of(plan):
        raise NoAttack(
            "a model with private bounds or a private graph",
            "a model all of whose queries train it",
            "attack its solver by `dpadmm audit --solver`; the queries before training are proved, and audited apart",
        )
    if plan.event.hidden or plan.arithmetic is not Arithmetic.GRANULAR:
        kind = f"by {model.privacy_.solver}" if plan.event.hidden else f"of {plan.arithmetic} arithmetic"
        raise NoAttack(
            f"a model {kind}",
            "one of noisy sums in granular arithmetic",
            "attack an estimator like it by `dpadmm.audit.audit_fit`, or its solver by `dpadmm audit --solver`",
        )
    return plan


def check_statement(statement: PrivacyStatement, plan: Plan | SearchPlan) -> None:
    """Refuse a seeded statement, one about another plan, and one whose numbers are not those of its plan."""
    if statement.seeded:
        raise PrivacyError(
            "given a seeded model, which is NOT private: whoever knows the seed can subtract the noise; expected a "
            "model trained without a seed; train it again without one, or audit its solver by `dpadmm audit --solver`"
        )
    if statement.plan_digest != plan.digest:
        raise _mismatch("speaks of another plan")
    honest = restated(statement, plan)
    wrong = [name for name in DERIVED if getattr(statement, name) != getattr(honest, name)]
    if wrong:
        raise _mismatch(f"contradicts its plan in {', '.join(wrong)}")


def restated(statement: PrivacyStatement, plan: Plan | SearchPlan) -> PrivacyStatement:
    """What the library says about a plan; how many candidates a search had is no part of it, and is taken as stated."""
    if isinstance(plan, SearchPlan):
        return search_statement(plan, statement.solver, stated_candidates(statement), (), seeded=False)
    return PrivacyStatement.of(plan, statement.solver, (), seeded=False)


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
    raise NoAttack(
        "a model whose plan cannot be run again from its stored parameters" + (f" ({reasons[0]})" if reasons else ""),
        "options that are all stored, no graph or smoother as an object, no private preparation, this version",
        "attack its solver by `dpadmm audit --solver`, or an estimator like it by `dpadmm.audit.audit_fit`",
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
