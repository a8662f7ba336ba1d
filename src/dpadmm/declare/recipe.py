"""From public choices to problem, solver and plan: everything that happens before a row is read."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from dpadmm.declare.resources import require_room
from dpadmm.errors import InvalidParameter, shown
from dpadmm.kernels.clipping import SMALLEST_CLIP
from dpadmm.privacy.accountants.gaussian import gaussian_shift
from dpadmm.privacy.arithmetic import Arithmetic, require_exact_fits
from dpadmm.privacy.budget import Relation
from dpadmm.privacy.budget_split import remaining, with_share
from dpadmm.privacy.calibration import calibrate
from dpadmm.privacy.plan import Plan, Request
from dpadmm.privacy.sampling import Everything, Sampler, make_sampler
from dpadmm.problem.checks import count, number
from dpadmm.problem.losses.base import Loss
from dpadmm.problem.problem import Problem
from dpadmm.problem.regularizers import L1, ElasticNet, SquaredL2, Zero
from dpadmm.problem.smoothers import Identity, RingLaplacian, Smoother
from dpadmm.solvers.base import SOLVERS, Setting, Solver, signal_to_noise

if TYPE_CHECKING:
    from dpadmm.declare.declaration import Declaration

LEAST_CLIP, MOST_CLIP = 0.5, 1.0
"""Default clip of classifiers: half the logistic slope bound, for less noise at a small bias, and all of it where noise
is small (ADR 0004)."""
UNCLIPPED_FROM = 512.0
"""Signal to noise from which the default clip is MOST_CLIP."""


@dataclass(frozen=True)
class Recipe:
    """A certified plan with the solver that will carry it out."""

    problem: Problem
    solver: Solver[Any]
    plan: Plan
    make_solver: Callable[[Problem], Solver[Any]]

    def for_problem(self, problem: Problem) -> Recipe:
        """The same plan for a problem that released answers completed: all that changes is post-processing.

        A solver that would ask of such a problem for other releases than were planned stays as it was: a learned graph
        without edges, say, leaves a lasso.
        """
        solver = self.make_solver(problem)
        as_planned = solver.requests(problem, 1.0) == self.solver.requests(self.problem, 1.0)
        return replace(self, problem=problem, solver=solver if as_planned else self.solver)


def make_recipe(declared: Declaration) -> Recipe:
    """Choose what was left open, then certify."""
    budget, n_rows, problem = declared.budget, declared.n_rows, declared.problem
    arithmetic = Arithmetic.parse(declared.arithmetic)
    kind = declared.solver_class
    require_room(math.prod(problem.shape), kind.numbers_per_weight)
    budget.require_meaningful(n_rows, declared.unit)
    batch_size = _batch_size(declared.batch_size, n_rows)
    sampler = _sampler(declared.sampler, kind, budget.relation, n_rows, batch_size)
    before = declared.budgeted.requests
    left = remaining([share for _, share in before])
    gaussian_mu = math.sqrt(left) * gaussian_shift(budget.epsilon, budget.delta) / declared.surplus
    distance = budget.relation.record_distance
    reach = signal_to_noise(n_rows, gaussian_mu, distance, problem)
    clip_norm = _clip_norm(declared.clip_norm, problem, kind, reach)
    setting = Setting(n_rows, gaussian_mu, distance, clip_norm, sampler.denominator(n_rows) / n_rows)

    def make_solver(problem: Problem) -> Solver[Any]:
        return _solver(kind, problem, setting, batch_size, declared)

    solver = make_solver(problem)
    problem = _with_ridge(problem, solver)
    solver.init(problem)  # refuses what the solver cannot take before anything is charged or asked
    asked = [with_share(request, share, budget) for request, share in before]
    if asked and arithmetic is Arithmetic.EXACT:
        raise InvalidParameter(
            "arithmetic='exact' with private preparation", "one of them", "declare bounds and graph, or use 'granular'"
        )
    requests = [*asked, *(_with_spares(each, declared.spares) for each in solver.requests(problem, clip_norm))]
    accountant, unit = declared.accountant, declared.unit
    plan = calibrate(budget, requests, sampler, n_rows, accountant, arithmetic=arithmetic, unit=unit)
    if arithmetic is Arithmetic.EXACT:
        multipliers = [query.noise_multiplier for query in plan.queries]
        require_exact_fits(problem.shape[0], multipliers, declared.weighted)
    return Recipe(problem, solver, plan, make_solver)


def _with_spares(request: Request, spares: int) -> Request:
    return replace(request, count=request.count + spares) if request.count > 1 else request


def solver_class(
    name: str, problem: Problem, smoothing: Any = None, clip_norm: float | None = None
) -> type[Solver[Any]]:
    """The class called `name`, or the one that stands in for it where it does not take what is asked."""
    kind = SOLVERS[name]
    smoothed, clipped = smoothing is None or kind.takes_smoother, clip_norm is None or kind.takes_clip
    if kind.stand_in is None or (kind.fits(problem) and smoothed and clipped):
        return kind
    return SOLVERS[kind.stand_in]


def make_smoother(smoothing: Any, free: int) -> Smoother:
    """None, ν of a ring Laplacian, or a smoother; the last `free` coordinates are not smoothed."""
    if smoothing is None:
        return Identity()
    if isinstance(smoothing, (int, float)) and not isinstance(smoothing, bool):
        return RingLaplacian(number("smoothing", smoothing), free=free)
    if callable(smoothing) and hasattr(smoothing, "norm_inverse"):
        made: Smoother = smoothing
        return made
    raise InvalidParameter(
        f"smoothing of type {type(smoothing).__name__}",
        "None, a number (ν of the ring Laplacian) or a smoother from dpadmm.problem.smoothers",
        "choose one of these",
    )


def _solver(
    kind: type[Solver[Any]], problem: Problem, setting: Setting, batch_size: int, declared: Declaration
) -> Solver[Any]:
    chosen = dict(declared.solver_options or {})
    if "smoother" in chosen:
        raise InvalidParameter("a smoother among solver_options", "smoothing=...", "pass it as smoothing")
    if declared.steps is not None:
        chosen["steps"] = count("steps", declared.steps, minimum=1)
    chosen["smoother"] = make_smoother(declared.smoothing, problem.constraint.free)
    try:
        return kind.default(problem, setting, batch_size, **chosen)
    except TypeError:
        known = [field.name for field in fields(kind) if field.name not in ("smoother", "gradient_clip")]  # type: ignore[arg-type]
        raise InvalidParameter(
            f"solver_options {sorted(declared.solver_options or {})} for solver {kind.name!r}",
            f"options among {', '.join(known)}",
            "remove or rename the unknown option",
        ) from None


def _with_ridge(problem: Problem, solver: Solver[Any]) -> Problem:
    """The strongly convex schedules need the quadratic part of the penalty in the smooth term, not in the prox."""
    if getattr(solver, "convexity", "general") != "strong" or problem.ridge > 0:
        return problem
    penalty = problem.regularizer
    if isinstance(penalty, SquaredL2) and penalty.strength > 0:
        return replace(problem, regularizer=Zero(), ridge=penalty.strength)
    if isinstance(penalty, ElasticNet) and penalty.l1_ratio < 1 and penalty.strength > 0:
        ridge = penalty.strength * (1 - penalty.l1_ratio)
        return replace(problem, regularizer=L1(penalty.strength * penalty.l1_ratio), ridge=ridge)
    raise InvalidParameter(
        f"convexity='strong' with penalty {penalty.name!r}",
        "penalty 'l2', or 'elasticnet' with l1_ratio < 1, and alpha > 0",
        "choose a penalty with a quadratic part, or convexity='general'",
    )


def _clip_norm(clip_norm: float | None, problem: Problem, kind: type[Solver[Any]], reach: float) -> float:
    if clip_norm is None:
        return default_clip(problem.loss, 0.0 if kind.hidden else reach) * problem.row_norm
    return number("clip_norm", clip_norm, minimum=SMALLEST_CLIP, strict=True)


def default_clip(loss: Loss, reach: float) -> float:
    """Clip in units of `row_norm` at a public signal to noise (`signal_to_noise`; 0 for one with more noise than that).

    Examples
    --------
    >>> from dpadmm.problem import Logistic, Squared
    >>> default_clip(Logistic(), 100.0), default_clip(Logistic(), 288.0), default_clip(Logistic(), 1000.0)
    (0.5, 0.75, 1.0)
    >>> default_clip(Squared(), 100.0)
    2.0
    """
    if loss.usual_clip is not None:
        return loss.usual_clip
    return min(MOST_CLIP, max(LEAST_CLIP, math.sqrt(reach / UNCLIPPED_FROM)))


def _batch_size(batch_size: int | None, n_rows: int) -> int:
    if batch_size is not None:
        size = count("batch_size", batch_size, minimum=1)
        if size > n_rows:
            raise InvalidParameter(
                f"batch_size={size}, more than the rows", "batch_size <= number of rows", "choose a smaller batch"
            )
        return size
    return max(1, round(math.sqrt(n_rows)))


def _sampler(name: str | None, kind: type[Solver[Any]], relation: Relation, n_rows: int, batch_size: int) -> Sampler:
    if not kind.samples:
        if name in (None, "full"):
            return Everything()
        make_sampler(name, n_rows, batch_size)
        raise InvalidParameter(
            f"sampler={shown(name)} with solver {kind.name!r}, which reads all rows at each step",
            "sampler=None or 'full'",
            "drop the sampler, or choose a mini-batch solver such as 'dp-sadmm'",
        )
    if name is None:
        name = "truncated-poisson" if relation is Relation.REPLACE_ONE else "poisson"
    return make_sampler(name, n_rows, batch_size)
