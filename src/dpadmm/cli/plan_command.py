"""`dpadmm plan`: what noise a promise will cost, before any data is touched."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from dpadmm.cli.declaration_from_options import declaration_of
from dpadmm.cli.remarks_on_screen import worded
from dpadmm.cli.requests import PlanRequest, taking
from dpadmm.cli.screen import print_json, print_line, print_pairs, print_table
from dpadmm.privacy.wording import pair, rounded_down, rounded_up

if TYPE_CHECKING:
    from dpadmm.declare.recipe import Recipe
    from dpadmm.privacy.facts import QueryFacts
    from dpadmm.privacy.unit import Unit

HELP = """\
Show how much noise a promise costs. Reads no data.

The plan is the one that `dpadmm fit` certifies with the same options; both have one digest. Give --features, or the \
--schema of the table; --rows is its public number of rows. With --persons N instead, persons are protected with all \
their rows.

`noise_std` is the standard deviation of the noise on each entry of a released mean gradient, at clip norm 1. It is \
proportional to the clip norm, which the list of queries shows. Solvers that ask several kinds of queries (auto, \
dp-vradmm) have a noise level for each kind: --json lists them under `queries`, and `noise_std` is that of the \
gradients (dp-vradmm: of the snapshots). noisy-admm adds its noise to the gradient of one row. For it, `comparison` \
shows what the same promise costs in three other ways. Read it before you choose that solver.

\b
Examples
  dpadmm plan --rows 48842 --features 105 --epsilon 1 --delta 1e-5
  dpadmm plan --rows 48842 --features 105 --epsilon 1 --delta 1e-5 \\
      --solver dp-sadmm --sampler fixed --batch-size 221 --steps 2210 --json
  dpadmm plan --rows 48842 --schema people.toml --target income --epsilon 1 --delta 1e-5 --penalty l1
  dpadmm plan --rows 48842 --features 105 --epsilon 1 --delta 1e-5 --solver dp-vradmm \\
      --penalty graph --private-graph 0.2
"""


@taking(PlanRequest)
def plan(request: PlanRequest) -> None:
    """Read the command line."""
    recipe = make_plan(request)
    summary = summarise(recipe) | compared(recipe)
    if request.json:
        print_json(summary)
    else:
        from dpadmm.privacy.plan_facts import queries_of

        _print(summary, queries_of(recipe.plan), recipe.plan.unit)


def make_plan(request: PlanRequest) -> Recipe:
    """The plan that `dpadmm fit` with the same options certifies for a table of so many rows."""
    declared = declaration_of(request)
    declared.budgeted.require_usable(sparse_rows=False)
    return declared.recipe


def summarise(recipe: Recipe) -> dict[str, Any]:
    """The plan as the flat dictionary that `--json` prints."""
    from dpadmm.declare.remarks import remarks_on
    from dpadmm.privacy.budget_split import split_of
    from dpadmm.privacy.unit import Unit

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
        **({} if plan.unit is Unit.ROW else {"unit": str(plan.unit)}),
        plan.unit.plural: plan.n_rows,
        "releases": 1 if plan.event.hidden else plan.steps,
        "queries": described["queries"],
        "budget_split": {part.name: part.share for part in split_of(plan)},
        "digest": plan.digest,
        "warnings": worded(remarks_on(plan.budget, plan.n_rows, unit=plan.unit)),
    }


def compared(recipe: Recipe) -> dict[str, Any]:
    """For hidden passes, what the same promise costs in other ways, under `comparison`."""
    from dataclasses import asdict

    from dpadmm.privacy.comparison import compare_plan

    return {"comparison": asdict(compare_plan(recipe.plan))} if recipe.plan.event.hidden else {}


def _print(summary: dict[str, Any], queries: Iterable[QueryFacts], unit: Unit) -> None:
    from dpadmm.privacy.wording import sentence, short

    hidden = "comparison" in summary
    what = "one row's gradient" if hidden else "the mean gradient"
    work = "passes, one release" if hidden else f"steps, {summary['releases']:,} noisy releases"
    print_pairs(
        "What this promise costs",
        [
            ("promise", f"{pair(summary['epsilon'], summary['delta'])}, {summary['relation']}"),
            *([("protects", sentence.UNITS[unit])] if "unit" in summary else []),
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
    print_table(short.head(unit), (short.cells(query, unit) for query in queries))
    if hidden:
        _print_comparison(summary["comparison"])
    else:
        print_line(f"{short.RELEASED} It is proportional to the clip norm.", style="dim")


def _coupling(passage: dict[str, float]) -> str:
    return f"{passage['coupling']:.3g}; step size times penalty parameter: the larger it is, the less noise is needed"


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
        "If one party holds all rows, subsampling needs less noise and covers more, and full data (solver auto) is "
        "better still. Hidden passes are for data visited row after row, where only the last state is published."
    )
