"""Audit of a fitted or loaded model: does its statement fit its plan, and does its plan keep the statement?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from time import perf_counter
from typing import Any

import numpy as np

from dpadmm import kernels
from dpadmm.audit.attacks_on_plan import Attack, attacks_on
from dpadmm.audit.end_to_end import FEWEST_RUNS, AuditResult, score
from dpadmm.audit.lower_bound import require_probabilities
from dpadmm.audit.neighbours import Forgery, declared_target
from dpadmm.declare.recipe import Recipe
from dpadmm.errors import DpadmmError, FileProblem, InvalidParameter, PrivacyError, QueryRefused
from dpadmm.estimators.base import PrivateLinearModel
from dpadmm.kernels import FitSize
from dpadmm.kernels.kernel_choice import Name
from dpadmm.privacy.plan import Plan
from dpadmm.privacy.questions import HiddenWalk, Question
from dpadmm.privacy.selection import SearchPlan, require_any_agreement, verify_any_plan
from dpadmm.privacy.statement import PrivacyStatement
from dpadmm.problem.checks import count
from dpadmm.randomness import Streams, make_selection_stream, make_streams

BEARABLE, MOST_RUNS = 80.0, 20_000
PILOTS, PILOT_SECONDS = 50, 3.0
"""Runs timed to know how many are bearable."""


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
    """Statement and plan of a model hold together, but the plan cannot be carried out, so that nothing was attacked.

    Attributes
    ----------
    checked : CheckedModel
        What was verified before.
    """

    checked: CheckedModel


@dataclass(frozen=True)
class ModelAudit(AuditResult):
    """What attacks on the plan of a model found, with what its statement says.

    Attributes
    ----------
    solver, relation, proof : str
        As stated.
    proven : float
        ε of the recorded plan by its accountant, computed again.
    attacks : tuple of str
        What each of them looks at, and in what its two tables differ. `runs` is for each, `confidence` for all.
    rehearsed : bool
        Whether the solver was made again from what the model stores, and asked what was planned and nothing else. Not
        so for searches, private preparation, and smoothers that were given as objects and are not stored.
    """

    solver: str = ""
    relation: str = ""
    proof: str = ""
    attacks: tuple[str, ...] = ()
    rehearsed: bool = False


def audit_model(
    model: PrivateLinearModel, runs: int | None = None, confidence: float = 0.999, random_state: int | None = None
) -> ModelAudit:
    """Check the statement of a fitted model, and attack the plan it records on its worst neighbouring tables.

    1. The statement must be unseeded and speak of the model's own plan, in every number derived from it.
    2. The accountant is run again on the plan (`check_model` stops here).
    3. The solver, where it can be made again from the model's parameters, goes through the plan once, and must ask
       what was planned.
    4. The recorded plan is attacked, `runs` times on each of two made-up tables of the recorded length: all rows count
       as zero but one, which is turned, moved or gone. The library's own oracle answers; the attacker asks, at the
       points where the row shows most, because that is what a plan is certified for.

    Of hidden passes (noisy-admm) the attacker sees the last state; of a search the winner, with a secret number of
    trials and noisy scores. No row of the training table is needed, or kept anywhere.

    Parameters
    ----------
    model : estimator
        Fitted, or read by `dpadmm.load_model`.
    runs : int, optional
        Runs of each attack on each of its two tables. If left out, as many as take about a minute and a half, between
        200 and 20,000.
    confidence : float
        Of the lower bound, over all attacks together.
    random_state : int or None
        An int makes the audit repeatable.

    Returns
    -------
    ModelAudit

    Raises
    ------
    NoAttack
        After step 2, with what was found, for a plan that this version's oracle does not carry out: one of an earlier
        version, whose noise was floating-point, or with queries that no attack is known for.
    """
    checked = check_model(model)
    try:
        attacks = attacks_on(model, model.plan_, make_selection_stream(random_state))
    except QueryRefused as refusal:
        raise _no_attack(checked, refusal) from None
    streams = make_streams(random_state)
    with np.errstate(all="ignore"), kernels.use(_engine(model, runs)):
        rehearsed = rehearse(model)
        runs = bearable_runs(attacks, streams) if runs is None else runs
        found = attack_all(model.plan_, attacks, streams, runs, confidence)
    shared = {field.name: getattr(found, field.name) for field in fields(found)}
    names = tuple(attack.name for attack in attacks)
    return ModelAudit(**{**shared, **asdict(checked)}, attacks=names, rehearsed=rehearsed)


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


def attack_all(
    plan: Plan | SearchPlan, attacks: Sequence[Attack], streams: Streams, runs: int, confidence: float = 0.999
) -> AuditResult:
    """Carry out every attack `runs` times on each of its tables; the best of their bounds holds at the confidence.

    Each attack alone may be wrong with its part of what is left to chance (docs/proofs/audit.md, Claim 3). The power
    is that of the first.
    """
    count("runs", runs, minimum=FEWEST_RUNS)
    require_probabilities(plan.budget.delta, confidence)
    found = []
    for attack, chance in zip(attacks, _chances(len(attacks)), strict=True):
        scores = np.array([[attack(truth, streams) for truth in (0, 1)] for _ in range(runs)])
        found.append(attack.judge(plan, scores, 1.0 - (1.0 - confidence) * chance))
    first, best = found[0], max(found, key=lambda result: result.lower_bound)
    return replace(best, confidence=confidence, power=first.power, detectable_noise=first.detectable_noise)


def _chances(attacks: int) -> list[float]:
    """Of being wrong: half to the attack on the whole plan, the rest to the others alike."""
    return [1.0] if attacks == 1 else [0.5, *[0.5 / (attacks - 1)] * (attacks - 1)]


def bearable_runs(attacks: Sequence[Attack], streams: Streams) -> int:
    """As many runs as take about `BEARABLE` seconds, by the time of a few of them; nothing private is timed."""
    once = sum(_seconds(attack, streams) for attack in attacks)
    return max(FEWEST_RUNS, min(MOST_RUNS, int(BEARABLE / (2 * once))))


def _engine(model: PrivateLinearModel, runs: int | None) -> Name:
    """By how often one row will be read."""
    plan = model.plan_
    trials = plan.repetitions.mean if isinstance(plan, SearchPlan) else 1.0
    readings = trials * sum(query.readings for query in plan.queries)
    return kernels.choose(FitSize(2 * round((runs or MOST_RUNS) * readings), 1, model.n_features_in_))


def _seconds(attack: Attack, streams: Streams) -> float:
    """Of one run, on average: searches take as long as they have trials. The first run warms up."""
    attack(0, streams)
    start, done = perf_counter(), 0
    while done < PILOTS and perf_counter() - start < PILOT_SECONDS:
        attack(done % 2, streams)
        done += 1
    return (perf_counter() - start) / done


def rehearse(model: PrivateLinearModel) -> bool:
    """Let the solver go through the recorded plan once, if it can be made again: it may ask nothing else."""
    plan = model.plan_
    if isinstance(plan, SearchPlan) or plan.event.hidden:
        return False
    recipe = remade(model, plan)
    if recipe is None:
        return False
    score(recipe, Forgery(model, plan).pairs()[0].tables, 0, make_streams())
    return True


def check_statement(statement: PrivacyStatement, plan: Plan | SearchPlan) -> None:
    """Refuse a seeded statement, one about another plan, and one that says other things than its plan."""
    if statement.seeded:
        raise PrivacyError(
            "Got a seeded model, which is NOT private: whoever knows the seed can subtract the noise. Expected a model "
            "trained without a seed. Train it again without one, or audit its solver with `dpadmm audit --solver`."
        )
    if statement.plan_digest != plan.digest:
        raise _mismatch("speaks of another plan")
    require_any_agreement(plan)
    if wrong := statement.contradictions(plan):
        raise _mismatch(f"contradicts its plan in {', '.join(wrong)}")


def remade(model: PrivateLinearModel, plan: Plan) -> Recipe | None:
    """The solver of a fitted model, made again from its parameters, with the recorded plan; None if they do not do.

    Weights of rows or classes are not stored; they change what a solver may assume, so both readings are tried.
    """
    target, rowmap = declared_target(model), model.row_map_
    mapped: dict[str, Any] = {
        "row_norm": rowmap.row_norm,
        "fit_intercept": rowmap.intercept,
        "bounds": None if rowmap.lower is None else (rowmap.lower, rowmap.upper),
    }
    for weighted in (False, True):
        try:
            declared = model.declaration(plan.n_rows, model.n_features_in_, target, weighted, plan.unit)
            declared = replace(declared, budget=plan.budget, **mapped)
            if declared.budgeted.all:
                return None
            recipe = declared.recipe
        except DpadmmError:
            continue
        if (recipe.solver.name,) == model.privacy_.solvers and _asked(recipe.plan) == _asked(plan):
            return replace(recipe, plan=plan)
    return None


def _asked(plan: Plan) -> list[tuple[Any, ...]]:
    """What a plan asks for, whatever the noise."""
    return [
        (query.kind, query.count, query.clip_norm, query.sampler, _whatever_the_passage(query.question))
        for query in plan.queries
    ]


def _whatever_the_passage(question: Question[Any]) -> Question[Any] | str:
    return question.name if isinstance(question, HiddenWalk) else question


def _no_attack(checked: CheckedModel, refusal: QueryRefused) -> NoAttack:
    found = NoAttack(
        f"a model whose plan is not carried out any more ({refusal})",
        "a plan of this version",
        "train the model again, or attack its solver by `dpadmm audit --solver`",
    )
    found.checked = checked
    return found


def _mismatch(how: str) -> FileProblem:
    return FileProblem(
        f"a model whose privacy statement {how}",
        "a statement and a plan written together",
        "trust neither; train the model again, and do not edit its files",
    )
