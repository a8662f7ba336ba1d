"""From a budget and a list of requests to a certified plan: the least noise an accountant accepts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import singledispatch

import numpy as np

from dpadmm.errors import CannotCertify, InvalidParameter, SchemeMismatch
from dpadmm.kernels.clipping import SMALLEST_CLIP
from dpadmm.privacy import plan_cache
from dpadmm.privacy.accountants import Accountant, default_accountant, make_accountant
from dpadmm.privacy.accountants.base import Estimating
from dpadmm.privacy.accountants.gaussian import gaussian_epsilon, gaussian_shift
from dpadmm.privacy.arithmetic import Arithmetic
from dpadmm.privacy.budget import Budget, Relation
from dpadmm.privacy.events import Event
from dpadmm.privacy.plan import Plan, Query, Request
from dpadmm.privacy.plan_agreement import MOST_RELEASES, require_agreement, require_cost, require_proved
from dpadmm.privacy.proofs import cited, claims_for, status
from dpadmm.privacy.questions import HiddenWalk
from dpadmm.privacy.sampling import Sampler
from dpadmm.privacy.unit import Unit
from dpadmm.privacy.wording import rounded_up

# The search stops inside this band of ε and would rather use a little too much noise than too little.
LOWEST, AIM = 0.997, 0.9985
MAX_EVALUATIONS = 60
# Rényi bounds for fixed-size batches ask for about 2.2 times the noise of the tight ones: start the search there.
RENYI_HEAD_START = {("rdp", "fixed"): math.log(2.2)}
# Factors on the noise tried when the second computation asks for more; beyond them ε would end below 0.99 of it.
GROWTH = (1.001, 1.002, 1.004, 1.007)


def calibrate(
    budget: Budget,
    requests: Sequence[Request],
    sampler: Sampler,
    n_rows: int,
    accountant: str | None = None,
    cache: bool = True,
    arithmetic: Arithmetic = Arithmetic.GRANULAR,
    unit: Unit = Unit.ROW,
) -> Plan:
    """The plan with the least noise that keeps the promise.

    Parameters
    ----------
    budget : Budget
        What is promised.
    requests : sequence of Request
        What will be asked; the noise multiplier of request k is `scale · relative_noise_k`, unless it is fixed.
    sampler : Sampler
        Draws the batch of every request that is not `full_data`.
    n_rows : int
        Public number of rows (under add-remove: a public number standing for it).
    accountant : str, optional
        A name among `ACCOUNTANTS`; by default the exact one if every request reads all rows, "iteration" for hidden
        passes, else "pld".
    cache : bool
        Remember the result of a costly search in the user's cache directory (see `plan_cache` for the trust in it).
    arithmetic : Arithmetic
        How sums and noise will be computed; exact noise costs a millionth of δ.
    unit : Unit
        Whose data is protected; `n_rows` is then the number of these, and batches are drawn among them.

    Returns
    -------
    Plan
        With `epsilon_achieved` in [0.99 ε, ε].

    Formal guarantees
    -----------------
    The accountant certified the plan's own event at δ with `epsilon_achieved` ≤ ε, the pld accountant by two
    independent computations. A mismatch of sampler, accountant and relation is refused before any search. All inputs
    are public and no row is read.

    Examples
    --------
    >>> from dpadmm.privacy.plan import Request
    >>> from dpadmm.privacy.questions import ClippedGradient
    >>> from dpadmm.privacy.sampling import Everything
    >>> plan = calibrate(Budget(1.0, 1e-5), [Request("gradient", 10, ClippedGradient(1.0))], Everything(), 48842)
    >>> f"{plan.queries[0].noise_std:.5f}"
    '0.00048'
    """
    budget.require_meaningful(n_rows, unit)
    _require_usable(budget.relation, requests, sampler, n_rows)
    require_proved(unit, [request.question for request in requests], arithmetic)
    arithmetic = _arithmetic_of(requests, arithmetic)
    name = default_accountant(_event(requests, sampler, 1.0)) if accountant is None else accountant
    judge = make_accountant(name)
    _refuse_mismatch(judge, requests, sampler, budget.relation)
    # The exact accountant is faster than a file, and then needs no trust in one.
    remember = cache and name != "gaussian"
    spendable = replace(budget, delta=arithmetic.delta_for_noise(budget.delta))
    key = plan_cache.key(spendable, requests, sampler, n_rows, name) if remember else ""
    hit = plan_cache.read(key, budget.epsilon) if remember else None
    scale, achieved = hit if hit is not None else _search(judge, spendable, requests, sampler)
    if remember and hit is None:
        plan_cache.write(key, scale, achieved)
    claims = (*judge.claims(_event(requests, sampler, scale), budget.relation), *claims_for(unit))
    proofs = status(cited(claims, (request.question for request in requests)))
    queries = _queries(budget.relation, requests, sampler, n_rows, scale)
    return Plan(budget, n_rows, queries, name, achieved, proofs, arithmetic, unit)


@singledispatch
def verify_plan(plan: Plan) -> float:
    """Re-run the accountant of a plan, of one fit or of a search, from scratch and return its ε.

    Formal guarantees
    -----------------
    Raises `PromiseBroken` if two numbers of the plan contradict each other, or if the certified ε exceeds the budget or
    what the plan says about itself. No cache is read.
    """
    require_agreement(plan)
    delta = plan.arithmetic.delta_for_noise(plan.budget.delta)
    try:
        with np.errstate(all="ignore"):  # a number that overflows on the way is refused below, or fits no budget
            epsilon = make_accountant(plan.accountant).certify(plan.event, delta, plan.budget.relation)
    except ArithmeticError:
        raise CannotCertify(
            "Got a plan with numbers too large or too small to compute with. Expected numbers made by `calibrate`. "
            "Discard the plan and calibrate again."
        ) from None
    require_cost(min(plan.budget.epsilon, plan.epsilon_achieved * (1.0 + 1e-6)), epsilon)
    return epsilon


def _require_usable(relation: Relation, requests: Sequence[Request], sampler: Sampler, n_rows: int) -> None:
    if not requests:
        raise InvalidParameter("no request", "at least one request", "let the solver ask for something")
    for request in requests:
        whole = (
            isinstance(request.count, int)
            and not isinstance(request.count, bool)
            and 1 <= request.count <= MOST_RELEASES
        )
        reach = request.question.reach(relation)
        good = whole and SMALLEST_CLIP <= reach < math.inf and _positive(request.relative_noise)
        if not (good and _positive(request.noise(1.0))):
            raise InvalidParameter(
                f"request {request.kind!r} with count {request.count}, clip {reach} and relative noise "
                f"{request.relative_noise}",
                f"a whole count from 1 to {MOST_RELEASES:,}, a finite clip of at least 1e-100 and positive noise",
                "correct the request",
            )
    if all(request.noise_multiplier is not None for request in requests):
        raise InvalidParameter("nothing but requests of fixed noise", "one to calibrate", "leave the noise of one open")
    planned = {getattr(each, "n_rows", n_rows) for each in (sampler, *(r.question.sampler(sampler) for r in requests))}
    if planned != {n_rows}:
        raise SchemeMismatch(
            f"Got a sampler made for another number of rows than {n_rows}. Expected the same number. "
            "Make the sampler from the table's public number of rows."
        )


def _arithmetic_of(requests: Sequence[Request], wanted: Arithmetic) -> Arithmetic:
    """Hidden passes have no integers to sum, and come by themselves."""
    hidden = [request.question for request in requests if isinstance(request.question, HiddenWalk)]
    if not hidden:
        return wanted
    if len(hidden) != len(requests):
        raise InvalidParameter(
            "solver='noisy-admm' with private preparation",
            "one of the two",
            "choose another solver, or declare what would be learned before training",
        )
    if wanted is Arithmetic.EXACT:
        raise InvalidParameter(
            "solver='noisy-admm' in exact arithmetic",
            "granular arithmetic",
            "choose another solver, or leave arithmetic out",
        )
    # A plan for real numbers, whose rounding is not charged, is for comparison, and never carried out.
    return Arithmetic.GRANULAR if all(walk.passage.rounding > 0 for walk in hidden) else Arithmetic.FLOATING


def _positive(value: float) -> bool:
    return math.isfinite(value) and value > 0


def _refuse_mismatch(judge: Accountant, requests: Sequence[Request], sampler: Sampler, relation: Relation) -> None:
    # Noise large enough that only the scheme, never the amount of noise, can be refused.
    quietest = min(request.relative_noise for request in requests if request.noise_multiplier is None)
    judge.check(_event(requests, sampler, 10.0 / quietest), relation)


def _queries(
    relation: Relation, requests: Sequence[Request], sampler: Sampler, n_rows: int, scale: float
) -> tuple[Query, ...]:
    def query(r: Request) -> Query:
        drawn_by, reach = r.drawn_by(sampler), r.question.reach(relation)
        return Query(r.kind, r.count, reach, drawn_by, drawn_by.denominator(n_rows), r.noise(scale), r.question)

    return tuple(map(query, requests))


def _event(requests: Sequence[Request], sampler: Sampler, scale: float) -> Event:
    return Event(tuple(r.question.part(r.drawn_by(sampler), r.noise(scale), r.count) for r in requests))


def _search(judge: Accountant, budget: Budget, requests: Sequence[Request], sampler: Sampler) -> tuple[float, float]:
    """(scale, ε) with ε in [0.997, 1]·budget.epsilon, by a bracketed secant on log ε against log scale."""
    refusal: CannotCertify | None = None
    bound = judge.estimate if isinstance(judge, Estimating) else judge.epsilon

    def excess(log_scale: float) -> float:
        nonlocal refusal
        event = _event(requests, sampler, math.exp(log_scale))
        try:
            epsilon = bound(event, budget.delta, budget.relation)
        except CannotCertify as error:
            refusal = error
            return math.inf
        return math.log(max(epsilon, 1e-12) / budget.epsilon)

    guess, slope = _first_guess(budget, requests, sampler)
    start = guess + RENYI_HEAD_START.get((judge.name, sampler.name), 0.0)
    found = bracketed_secant(excess, start, math.log(LOWEST), math.log(AIM), slope)
    if found is None:
        if refusal is not None:
            raise refusal
        raise CannotCertify(
            f"Got epsilon={rounded_up(budget.epsilon)}, delta={rounded_up(budget.delta)} for "
            f"{sum(r.count for r in requests)} releases. "
            f"Expected a budget for which accountant {judge.name!r} finds a noise level. "
            "Use fewer steps, a larger batch or a larger epsilon."
        )
    return _confirmed(judge, budget, requests, sampler, math.exp(found[0]))


def _confirmed(
    judge: Accountant, budget: Budget, requests: Sequence[Request], sampler: Sampler, scale: float
) -> tuple[float, float]:
    """The least noise, to a thousandth, at which the certificate for the record holds too."""

    def certificate(scale: float) -> float:
        return judge.certify(_event(requests, sampler, scale), budget.delta, budget.relation)

    low, achieved = scale, certificate(scale)
    if achieved <= budget.epsilon:
        return scale, achieved
    for growth in GROWTH:
        scale = low * growth
        achieved = certificate(scale)
        if achieved <= budget.epsilon:
            return scale, achieved
    raise CannotCertify(
        f"Got a plan on which the two computations of accountant {judge.name!r} disagree by more than a percent. "
        "Expected agreement. Use fewer steps, a larger batch or another epsilon or delta."
    )


def bracketed_secant(
    excess: Callable[[float], float], start: float, lowest: float, aim: float, slope: float = -1.2
) -> tuple[float, float] | None:
    """A point x of a decreasing function with lowest ≤ excess(x) ≤ 0, or None; `slope` is what is known of it."""
    low, high, narrow = -math.inf, math.inf, 1e-9
    last: tuple[float, float] | None = None
    x = start
    for _ in range(MAX_EVALUATIONS):
        value = excess(x)
        if lowest <= value <= 0:
            return x, value
        low, high = (x, high) if value > 0 else (low, x)
        if math.isinf(value):
            # Below a refusal there is nothing to find, so the gap above it need not be searched to the last digit.
            narrow = 1e-3
            x = x + 0.3 if math.isinf(high) else 0.5 * (low + high)
        else:
            if last is not None and abs(x - last[0]) > 1e-12:
                slope = min(max((value - last[1]) / (x - last[0]), -20.0), -0.2)
            last = (x, value)
            x += min(max((aim - value) / slope, -1.5), 1.5)
        if not low < x < high:
            x = 0.5 * (low + high)
        if high - low < narrow:
            return None
    return None


def _first_guess(budget: Budget, requests: Sequence[Request], sampler: Sampler) -> tuple[float, float]:
    """log scale at which the central limit theorem for composition meets the budget, and d log ε / d log scale."""
    from scipy.optimize import brentq

    target = gaussian_shift(budget.epsilon, budget.delta)
    distance = budget.relation.record_distance

    def surplus(log_scale: float) -> float:
        total = 0.0
        for r in requests:
            mu = distance / r.noise(math.exp(log_scale))
            rate = 1.0 if r.full_data or r.question.reads_all else float(getattr(sampler, "rate", 1.0))
            squared = mu * mu if rate == 1.0 else rate**2 * math.expm1(min(mu * mu, 50.0))
            if sampler.name in ("poisson", "truncated-poisson") and distance == 2.0 and rate < 1.0:
                squared = 4.0 * rate**2 * math.sinh(min(mu * mu / 4.0, 50.0))
            total += r.count * squared
        return math.log(total) - 2.0 * math.log(target)

    if surplus(-15.0) <= 0:
        raise CannotCertify(
            f"Got epsilon={rounded_up(budget.epsilon)}, delta={rounded_up(budget.delta)}, for which hardly any "
            "noise is needed. Expected a budget that protects. Choose epsilon, usually between 0.1 and 3."
        )
    if surplus(35.0) >= 0:
        raise CannotCertify(
            f"Got requests whose fixed noise costs all of epsilon={rounded_up(budget.epsilon)}, "
            f"delta={rounded_up(budget.delta)}. "
            "Expected something left for the other requests. Fix more noise, or raise epsilon."
        )
    guess = float(brentq(surplus, -15.0, 35.0, xtol=1e-3))
    step = 0.01
    shift_per_scale = (surplus(guess + step) - surplus(guess)) / (2.0 * step)
    dearer = gaussian_epsilon(target * math.exp(step), budget.delta)
    return guess, shift_per_scale * math.log(dearer / budget.epsilon) / step
