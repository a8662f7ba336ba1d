"""`dpadmm network`: one model of many owners, from a proposal to a report of who sent what."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpadmm.cli import failures, network_simulation, options
from dpadmm.cli.coefficient_effects import axis_label, coefficients_of, score_words
from dpadmm.cli.declaration_from_options import MODELS, OF_NUMBERS, model_of, model_parameters
from dpadmm.cli.model_folder import MODEL_FILES, write_model_folder
from dpadmm.cli.network_requests import NetworkRunRequest, ProposalRequest
from dpadmm.cli.outputs import new_folder, told
from dpadmm.cli.promise_in_short import promise_pairs
from dpadmm.cli.raw_columns import raw_columns
from dpadmm.cli.requests import taking
from dpadmm.cli.screen import print_json, print_line, print_pairs
from dpadmm.errors import InvalidParameter
from dpadmm.privacy.wording import rounded_down, rounded_up
from dpadmm.report import Report
from dpadmm.scoring.raw_inputs import plain_inputs
from dpadmm.tables import Schema

if TYPE_CHECKING:
    from dpadmm.network.coordinator import Exchanged
    from dpadmm.network.proposal import Proposal
    from dpadmm.network.run_folder import RunFolder

HELP = """\
Train one model on the rows of many owners, none of whom sees a row of another.

Each owner runs `dpadmm silo`. You, the coordinator, make a proposal, wait until all owners have approved it, and run \
it. You see noisy sums of all owners' rows and nothing else. See docs/network.md and docs/deployment.md.

\b
Examples
  dpadmm network demo                                # four hospitals in four processes on this machine
  dpadmm network plan --silos 4 --colluding 1 --rows 45222 --features 105 --epsilon 1 --delta 1e-5
  dpadmm network plan --card north.json --card south.json --card east.json --rows 45222 \\
      --schema people.toml --target income --epsilon 1 --delta 1e-5 --out run
  dpadmm network run run --out model                 # goes on where it stopped, if run again
  dpadmm network run --data adult --silos 4 --epsilon 1 --delta 1e-5 --json   # a simulation
"""
EPILOG = f"Exit codes: {failures.EXIT_CODES}."

app = typer.Typer(help=HELP, epilog=EPILOG, no_args_is_help=True, rich_markup_mode="rich")

Gone = Annotated[list[str], typer.Option("--silo", metavar="NAME", help="Who has left; once for each of them.")]
Run = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of `dpadmm network plan --out`.")]


@app.command(epilog=EPILOG)
@taking(ProposalRequest)
def plan(request: ProposalRequest) -> None:
    """What would be asked of all owners, and both ε; with --card and --out, a proposal for them to approve."""
    schema = _schema(request.schema, request.target)
    if request.rows is None:
        raise InvalidParameter("no --rows", "--rows N, the declared total of all owners", "add --rows")
    estimator, features = _estimator(request, schema)
    if request.card is None:
        _tell_plan(_outline(request, estimator, features), request.json)
        return
    _tell_plan(_proposed(request, estimator, features, schema).proposal, request.json, request.out)


@app.command(epilog=EPILOG)
@taking(NetworkRunRequest)
def run(request: NetworkRunRequest) -> None:
    """Ask all owners until the model is there; or simulate owners with --data."""
    if (request.run is None) == (request.data is None):
        raise InvalidParameter(
            "RUN and --data, or neither", "one of them", "give the folder of a run, or data to divide"
        )
    if request.run is not None:
        _carry_out(request, request.run)
    else:
        network_simulation.simulate(request)


@app.command(epilog=EPILOG)
def status(run: Run, json: options.Json = False) -> None:
    """Show the proposal of a run, and how far it is."""
    from dpadmm.network.run_folder import RunFolder

    found = RunFolder(run)
    facts = {
        **proposal_facts(found.proposal),
        "answered": f"{found.answered} of {found.proposal.asked_plan.steps} questions",
    }
    if json:
        print_json(facts)
    else:
        print_pairs(f"Run {run}", [(name, str(value)) for name, value in facts.items()])


@app.command(epilog=EPILOG)
def drop(run: Run, silo: Gone, json: options.Json = False) -> None:
    """Propose to go on without silos that have left for good; the owners of the others approve it anew."""
    from dpadmm.network.run_folder import RunFolder

    found = RunFolder(run)
    found.drop(silo)
    facts = proposal_facts(found.proposal)
    if json:
        print_json(facts)
        return
    print_pairs(f"Run {run} without {', '.join(silo)}", [(name, str(value)) for name, value in facts.items()])
    print_line(
        f"Send {run / 'proposal.json'} to the remaining owners. They approve the next epoch of it (`dpadmm silo "
        "approve HOME proposal.json --epoch N`), and you run with the same --epoch."
    )


@app.command(epilog=EPILOG)
def demo(
    epsilon: options.Epsilon = 1.0,
    delta: options.Delta = 1e-5,
    out: options.OutFolder = Path("dpadmm-network"),
    json: options.Json = False,
) -> None:
    """Four hospitals in four processes, keys and TLS made on the fly: a model, and a picture of who sent what."""
    network_simulation.demonstrate(epsilon, delta, out, json)


def proposal_facts(proposal: Proposal) -> dict[str, Any]:
    """The numbers of a proposal by the names that JSON has too."""
    plan = proposal.plan
    return {
        "silos": proposal.roster.size,
        "colluding": proposal.roster.colluding,
        "epsilon": plan.budget.epsilon,
        "delta": plan.budget.delta,
        "epsilon_if_all_collude": proposal.epsilon_if_all_collude,
        "rounds": proposal.asked_plan.steps,
        "roster_digest": proposal.roster.digest.hex(),
        "proposal_digest": proposal.digest.hex(),
        "plan_digest": plan.digest,
    }


def _carry_out(request: NetworkRunRequest, folder: Path) -> None:
    """The real thing: silos at their addresses, each serving what its owner approved."""
    from dpadmm.network.run_folder import RunFolder

    if request.out is None:
        raise InvalidParameter("no --out", "--out DIR, the folder for the model", "add --out")
    found = RunFolder(folder)
    with new_folder(request.out, MODEL_FILES, request.force) as model_folder:
        with _progress(found.proposal, visible=not (request.quiet or request.json)) as observe:
            federation = found.federation(request.epoch, request.patience, observe)
            model = found.proposal.estimator.fit(federation)
        with told(request.out):
            write_model_folder(model_folder, model, _report(found, model), _schema_of(found.proposal))
    if request.json:
        print_json({**proposal_facts(found.proposal), "out": str(request.out), "privacy": model.privacy_.to_dict()})
    elif not request.quiet:
        print_pairs(f"Model written to {request.out}", promise_pairs(model.privacy_, request.out))


@contextmanager
def _progress(proposal: Proposal, visible: bool) -> Iterator[Any]:
    """A line on standard error for each question, in place where it is a terminal."""
    total, live = proposal.asked_plan.steps, sys.stderr.isatty()

    def observe(exchanged: Exchanged) -> None:
        if visible and exchanged.name == "ask":
            end = "\r" if live and exchanged.number < total else "\n"
            print(f"question {exchanged.number} of {total}, {exchanged.seconds:.1f} s", end=end, file=sys.stderr)

    yield observe


def _report(found: RunFolder, model: Any) -> Report:
    schema, roster = _schema_of(found.proposal), found.proposal.roster
    if schema is None:
        names = tuple(f"x{place + 1}" for place in range(found.proposal.n_features))
        coefficients = coefficients_of(model, names, plain_inputs(names, None, None))
    else:
        coefficients = coefficients_of(model, schema.feature_names, raw_columns(schema))
    return Report(
        title=f"A private model of the rows of {roster.size} owners",
        subtitle=f"{type(model).__name__}, solver {model.privacy_.solver}, {', '.join(roster.names)}",
        results=(),
        statement=model.privacy_,
        plan=model.plan_,
        coefficients=coefficients,
        axis_label=axis_label(model, coefficients),
        score=score_words(model),
    )


def _schema_of(proposal: Proposal) -> Schema | None:
    return proposal.table_schema if proposal.schema else None


def _schema(path: Path | None, target: str | None) -> Schema | None:
    if path is None:
        return None
    schema = Schema.read(path)
    if schema.person is not None:
        raise InvalidParameter(
            "a schema that names a column of persons",
            "one without: owners protect single rows, as a person's rows may lie with several of them",
            "remove the line that begins with person",
        )
    return schema if target is None else schema.with_target(target)


def _estimator(request: ProposalRequest, schema: Schema | None) -> tuple[Any, int]:
    """The model, and its number of features."""
    if request.model not in MODELS:
        raise InvalidParameter(f"--model {request.model}", "one of " + ", ".join(MODELS), "choose a known model")
    if schema is not None:
        if schema.target is None:
            raise InvalidParameter("a schema without a target", "--target COLUMN", "say which column to predict")
        return model_of(request, schema), schema.n_features
    if request.features is None:
        raise InvalidParameter("neither --features nor --schema", "one of them", "give the number of features")
    return plain_model(request, 2 if request.classes is None else request.classes), request.features


def plain_model(request: Any, classes: int | list[Any]) -> Any:
    """An estimator for arrays, without a schema."""
    from dpadmm.estimators import DPLinearRegression, DPLinearSVC, DPLogisticRegression

    shared = {**model_parameters(request, None), "relation": request.relation}
    if request.model in OF_NUMBERS:
        return DPLinearRegression(request.epsilon, request.delta, loss=OF_NUMBERS[request.model], **shared)
    kind = DPLogisticRegression if request.model == "logistic" else DPLinearSVC
    labels = list(range(classes)) if isinstance(classes, int) else classes
    return kind(request.epsilon, request.delta, classes=labels, **shared)


def _outline(request: ProposalRequest, estimator: Any, features: int) -> Proposal:
    """A proposal for owners who have no keys yet: its numbers are right, its digests are of made-up keys."""
    from dpadmm.network.proposal import Proposal
    from dpadmm.network.roster import Roster

    if request.silos is None:
        raise InvalidParameter("neither --silos nor --card", "one of them", "say how many owners there are")
    if request.out is not None:
        raise InvalidParameter("--out without --card", "the card of each silo", "collect the cards of the owners")
    keys = {f"silo-{place + 1}": bytes([*place.to_bytes(2, "big"), *bytes(30)]) for place in range(request.silos)}
    roster = Roster(keys, request.colluding, bytes([255] * 32))
    return Proposal.of(estimator, roster, int(request.rows or 0), features, request.spares)


def _proposed(request: ProposalRequest, estimator: Any, features: int, schema: Schema | None) -> RunFolder:
    from dpadmm.network.cards import Card
    from dpadmm.network.run_folder import RunFolder

    if request.out is None:
        raise InvalidParameter("--card without --out", "--out DIR, the folder of the run", "add --out")
    cards = [Card.read(place) for place in request.card or ()]
    if request.silos not in (None, len(cards)):
        raise InvalidParameter("another --silos than cards", "one card of each silo", "drop --silos, or add the cards")
    rows = int(request.rows or 0)
    return RunFolder.make(request.out, estimator, cards, request.colluding, rows, features, request.spares, schema)


def _tell_plan(proposal: Proposal, json: bool, out: Path | None = None) -> None:
    facts = proposal_facts(proposal)
    if json:
        print_json({**facts, "out": None if out is None else str(out), "plan": proposal.plan.to_dict()})
        return
    queries = [
        (query.kind, f"{query.count}, noise {rounded_down(query.noise_std, 2)} on the mean")
        for query in proposal.plan.queries
    ]
    print_pairs(
        f"One model of {proposal.roster.size} owners",
        [
            ("ε towards the coordinator and colluding owners", rounded_up(proposal.plan.budget.epsilon)),
            ("ε if all other owners collude", rounded_up(proposal.epsilon_if_all_collude)),
            ("noise of all shares together", f"{proposal.roster.surplus:.3f} times what one owner would add"),
            *queries,
            *([] if out is None else [("roster digest", proposal.roster.digest.hex())]),
        ],
    )
    if out is not None:
        print_line(f"Send {out / 'proposal.json'} and {out / 'card.json'} to every owner. When all have approved and")
        print_line(f"serve: dpadmm network run {out} --out model")
