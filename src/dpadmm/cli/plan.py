"""`dpadmm plan`: what noise a promise will cost, before any data is touched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpadmm.cli import options
from dpadmm.cli.remarks import worded
from dpadmm.cli.screen import print_json, print_line, print_pairs, print_table
from dpadmm.privacy.wording import pair, rounded_down, rounded_up

if TYPE_CHECKING:
    from dpadmm.estimators.recipe import Recipe
    from dpadmm.privacy.plan import Request

HELP = """\
What noise will this promise cost? Needs no data.

Everything is stated at clip norm 1: noise_std is the standard deviation of the noise on each coordinate of a released \
mean gradient, and scales with the clip norm you train with. A solver that asks several kinds of queries (auto, \
dp-vradmm) has one noise level each: noise_std and noise_multiplier are those of its gradients (dp-vradmm: of its \
snapshots), and the list is under `queries`. For noisy-admm, whose noise is on the gradient of one \
row, `comparison` shows what the same promise costs in three other ways; read it before choosing that solver.

\b
Examples
  dpadmm plan --rows 48842 --features 105 --epsilon 1 --delta 1e-5
  dpadmm plan --rows 48842 --features 105 --epsilon 1 --delta 1e-5 \\
      --solver dp-sadmm --sampler fixed --batch-size 221 --steps 2210 --json
  dpadmm plan --rows 48842 --features 105 --epsilon 1 --delta 1e-5 --solver dp-vradmm --private-graph 0.2
"""


@dataclass(frozen=True)
class PlanRequest:
    """The options of one `dpadmm plan`."""

    rows: int
    features: int
    epsilon: float
    delta: float
    relation: str
    solver: str
    sampler: str | None
    batch_size: int | None
    steps: int | None
    accountant: str | None
    arithmetic: str
    classes: int
    private_graph: float | None


def plan(
    *,
    rows: options.Rows,
    features: options.Features,
    classes: options.ClassCount = 2,
    epsilon: options.Epsilon,
    delta: options.Delta,
    relation: options.Relation = "replace-one",
    accountant: options.Accountant = None,
    arithmetic: options.ArithmeticName = "granular",
    private_graph: options.PrivateGraphShare = None,
    solver: options.SolverName = "auto",
    sampler: options.SamplerName = None,
    batch_size: options.BatchSize = None,
    steps: options.Steps = None,
    json: options.Json = False,
) -> None:
    """Read the command line."""
    request = PlanRequest(
        rows,
        features,
        epsilon,
        delta,
        relation,
        solver,
        sampler,
        batch_size,
        steps,
        accountant,
        arithmetic,
        classes,
        private_graph,
    )
    recipe = make_plan(request)
    summary = summarise(recipe) | compared(recipe)
    if json:
        print_json(summary)
    else:
        _print(summary)


def make_plan(request: PlanRequest) -> Recipe:
    """The certified plan for rows of norm 1 with an intercept, clipped at 1 (auto: at its own cap)."""
    from dpadmm.estimators.recipe import Choices, make_recipe, solver_class
    from dpadmm.privacy.budget import Budget, Relation
    from dpadmm.problem import Constraint, Logistic, Softmax
    from dpadmm.problem.problem import Problem
    from dpadmm.problem.regularizers import Zero
    from dpadmm.solvers.auto.solver import Auto

    budget = Budget(request.epsilon, request.delta, Relation.parse(request.relation))
    loss = Logistic() if request.classes == 2 else Softmax(request.classes)
    problem = Problem(loss, Zero(), Constraint.identity(request.features + 1, 1))
    choices = Choices(
        solver=request.solver,
        sampler=request.sampler,
        batch_size=request.batch_size,
        steps=request.steps,
        clip_norm=None if solver_class(request.solver, problem) is Auto else 1.0,
        accountant=request.accountant,
        arithmetic=request.arithmetic,
    )
    return make_recipe(problem, budget, request.rows, choices, _steps(request))


def _steps(request: PlanRequest) -> tuple[tuple[Request, float], ...]:
    """What `dpadmm fit` with the same options would ask before training."""
    if request.private_graph is None:
        return ()
    from dpadmm.preparation import PrivateGraph

    graph = PrivateGraph(share=request.private_graph)
    graph.require_usable(request.features, sparse_rows=False)
    return ((graph.request(request.features), request.private_graph),)


def summarise(recipe: Recipe) -> dict[str, Any]:
    """The plan as the flat dictionary that `--json` prints."""
    from dpadmm.estimators.remarks import remarks_on
    from dpadmm.privacy.split import split_of

    plan = recipe.plan
    shown = plan.query("gradient") or next(query for query in plan.queries if query.question.proof is None)
    described = plan.to_dict()
    return {
        "epsilon": plan.budget.epsilon,
        "delta": plan.budget.delta,
        "relation": str(plan.budget.relation),
        "accountant": plan.accountant,
        "noise_std": shown.noise_multiplier / shown.denominator,
        "noise_multiplier": shown.noise_multiplier,
        "steps": recipe.solver.steps,
        "proof_status": plan.proof_status,
        "epsilon_achieved": plan.epsilon_achieved,
        "arithmetic": str(plan.arithmetic),
        "solver": recipe.solver.name,
        "sampler": shown.sampler.name,
        "batch_size": round(shown.denominator, 6),
        "clip_norm": shown.clip_norm,
        "rows": plan.n_rows,
        "releases": 1 if plan.event.hidden else plan.steps,
        "queries": described["queries"],
        "budget_split": {part.name: part.share for part in split_of(plan)},
        "digest": plan.digest,
        "warnings": worded(remarks_on(plan.budget, plan.n_rows)),
    }


def compared(recipe: Recipe) -> dict[str, Any]:
    """For hidden passes, what the same promise costs in other ways, under `comparison`."""
    from dataclasses import asdict

    from dpadmm.privacy.comparison import compare_plan

    return {"comparison": asdict(compare_plan(recipe.plan))} if recipe.plan.event.hidden else {}


def _print(summary: dict[str, Any]) -> None:
    hidden = "comparison" in summary
    what = "one row's gradient" if hidden else "the mean gradient"
    work = "passes, one release" if hidden else f"steps, {summary['releases']:,} noisy releases"
    print_pairs(
        "What this promise costs",
        [
            ("promise", f"{pair(summary['epsilon'], summary['delta'])}, {summary['relation']}"),
            ("certified", f"ε = {rounded_up(summary['epsilon_achieved'])} by the {summary['accountant']} accountant"),
            ("proof", summary["proof_status"]),
            ("arithmetic", summary["arithmetic"]),
            ("solver", f"{summary['solver']}, {summary['steps']:,} {work}"),
            (f"noise on {what}", f"{rounded_down(summary['noise_std'], 4)} a coordinate, at clip norm 1"),
            *[("coupling ηβ", _coupling(query["passage"])) for query in summary["queries"] if "passage" in query],
            *[(f"share of {name}", f"{100 * share:.3g}%") for name, share in summary["budget_split"].items()],
            *[("warning", warning["text"]) for warning in summary["warnings"]],
        ],
    )
    head = ("query", "times", "rows", "sampler", "clip", "noise / clip", "noise")
    print_table(head, [_cells(query) for query in summary["queries"]])
    if hidden:
        _print_comparison(summary["comparison"])
    else:
        print_line("Noise is the standard deviation on each released mean; it scales with the clip norm.", style="dim")


def _coupling(passage: dict[str, float]) -> str:
    return f"{passage['coupling']:.3g}; step size times penalty parameter, the more the less noise"


def _print_comparison(comparison: dict[str, float]) -> None:
    own = rounded_down(comparison["iteration"], 4)
    print_table(
        ("noise / sensitivity", "way", "covers"),
        [
            (own, "this plan: hidden passes in a secret order", "the last state only"),
            (f"{comparison['paper']:.4g}", "the same with the constants of the paper", "the last state only"),
            (f"{comparison['composition']:.4g}", "no amplification", "every state, in any order"),
            (f"{comparison['subsampling']:.4g}", "one random row a step (subsampling)", "every state"),
        ],
    )
    print_line(
        "For central training subsampling needs less noise and covers more, and full data (solver auto) is better "
        "still. Hidden passes are for data visited one row after another where only the last state is published."
    )


def _cells(query: dict[str, Any]) -> tuple[str, ...]:
    return (
        query["kind"],
        f"{query['count']:,}",
        f"{query['denominator']:,.0f}",
        query["sampler"]["name"],
        rounded_up(query["clip_norm"]),
        rounded_down(query["noise_multiplier"], 4),
        rounded_down(query["noise_std"], 4),
    )
