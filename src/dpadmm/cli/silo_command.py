"""`dpadmm silo`: an owner's side of a federation: make it, look, approve, serve."""

from __future__ import annotations

import json as json_text
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpadmm.cli import failures
from dpadmm.cli.early_end import Stopped
from dpadmm.cli.options import Json
from dpadmm.cli.screen import print_json, print_line, print_pairs, working
from dpadmm.errors import FileProblem, InvalidParameter
from dpadmm.files import why
from dpadmm.privacy.wording import rounded_up

if TYPE_CHECKING:
    from dpadmm.network.proposal import Proposal
    from dpadmm.network.silo_home import SiloHome

HELP = """\
Let your rows take part in a model of many owners. They never leave your machine.

You make a silo once, and send its card to the coordinator. For each model you get a proposal: look at it, compare the \
roster with the other owners over the telephone, and approve it. Your ledger is charged when all owners have \
approved and all silos have said hello. See docs/deployment.md.

\b
Examples
  dpadmm silo init north --name north --table patients.csv --address north.example:8443 \\
      --ledger north.db --dataset patients
  dpadmm silo approve north proposal.json
  dpadmm silo serve north --coordinator coordinator.json
  dpadmm silo status north
"""
STEPS = {
    "charging": "all owners approved and all silos said hello; the ledger is being charged",
    "charged": "the ledger is charged",
    "drawn": "a sum was computed, noised and masked",
    "kept": "it is on the disk",
    "sent": "answered",
    "closed": "the epoch is over; its secrets are erased",
}
"""What a silo does, in words for its owner."""
EPILOG = f"Exit codes: {failures.EXIT_CODES}."

app = typer.Typer(help=HELP, epilog=EPILOG, no_args_is_help=True, rich_markup_mode="rich")

Home = Annotated[Path, typer.Argument(metavar="HOME", help="Folder of the silo.")]
ProposalFile = Annotated[Path, typer.Argument(metavar="PROPOSAL", help="proposal.json from the coordinator.")]
Name = Annotated[str, typer.Option("--name", metavar="NAME", help="Letters, digits and hyphens, as others know you.")]
Table = Annotated[
    Path, typer.Option("--table", metavar="FILE", help="Your rows: .csv, .parquet, or .npz with X and y.")
]
Address = Annotated[
    str, typer.Option("--address", metavar="HOST:PORT", help="Where the coordinator calls you; or unix:PATH.")
]
LedgerPlace = Annotated[str | None, typer.Option("--ledger", metavar="PATH", help="Ledger that pays for your rows.")]
Dataset = Annotated[str | None, typer.Option("--dataset", metavar="NAME", help="Name of the table in the ledger.")]
Seed = Annotated[
    int | None, typer.Option("--seed", metavar="N", min=1, help="For tests only: repeatable noise is NOT private.")
]
EpochNumber = Annotated[
    int, typer.Option("--epoch", metavar="N", min=1, help="Which attempt: 1, and one more after each failed one.")
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask; you have compared the roster with the other owners.")]
CoordinatorCard = Annotated[
    Path, typer.Option("--coordinator", metavar="FILE", help="card.json of the coordinator: nobody else is answered.")
]
Listen = Annotated[
    str | None, typer.Option("--listen", metavar="HOST:PORT", help="Where to listen, if not at your address.")
]
ReplyEvery = Annotated[
    float,
    typer.Option("--reply-every", metavar="S", min=0.0, help="Replies leave in whole steps of so many seconds."),
]


@app.command(epilog=EPILOG)
def init(
    home: Home,
    name: Name,
    table: Table,
    address: Address,
    ledger: LedgerPlace = None,
    dataset: Dataset = None,
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Make the keys of a silo, and its card for the coordinator."""
    from dpadmm.network.silo_home import SiloHome, SiloSettings

    if not table.is_file():
        raise FileProblem(f"the table {table}, which is not there", "a file", "correct the path")
    place = ledger if ledger is None or "://" in ledger else str(Path(ledger).absolute())
    made = SiloHome.make(home, SiloSettings(name, str(table.absolute()), place, dataset, seed), address)
    if json:
        print_json({"home": str(home), "name": name, "key": made.card.key, "card": str(home / "card.json")})
        return
    print_pairs(
        f"Made silo {name} in {home}",
        [
            ("key", made.card.key),
            ("send to the coordinator", str(home / "card.json")),
            ("keep out of backups", str(home / "state" / "epoch.secret")),
        ],
    )


@app.command(epilog=EPILOG)
def status(home: Home, json: Json = False) -> None:
    """Show the key, what was approved and answered, and what the ledger holds."""
    from dpadmm.network.silo_home import SiloHome

    found = SiloHome(home)
    facts = _status(found)
    if json:
        print_json(facts)
        return
    print_pairs(f"Silo {found.settings.silo}", [(name, str(value)) for name, value in facts.items()])


@app.command(epilog=EPILOG)
def approve(home: Home, proposal: ProposalFile, epoch: EpochNumber = 1, yes: Yes = False, json: Json = False) -> None:
    """Look at a proposal and, if you agree, let one epoch of it begin. Charges nothing yet."""
    from dpadmm.network.silo_home import SiloHome

    found, wanted = SiloHome(home), _read(proposal)
    owner, state = found.owner, found.state
    with working("reading your table by the proposal", visible=not json):
        owner.examine(wanted, state)
    facts = _facts(found, wanted, epoch)
    if not json:
        print_pairs("What you are asked to approve", [(name, str(value)) for name, value in facts.items()])
        print_line(
            "Compare the roster digest with every other owner, by telephone or in person. Each member must be a person "
            f"or company that you know. At most {wanted.roster.colluding} of the {wanted.roster.size} may collude.",
            style="bold",
        )
    if not yes and not typer.confirm("Approve?", err=json):
        raise InvalidParameter("no approval", "yes, or --yes", "nothing was approved or charged")
    found.approvals.grant(wanted, epoch)
    if json:
        print_json({**facts, "approved": True})
    else:
        print_line(f"Approved epoch {epoch}. Your ledger is charged when every owner has approved and it begins.")


@app.command(epilog=EPILOG)
def serve(
    home: Home,
    coordinator: CoordinatorCard,
    listen: Listen = None,
    reply_every: ReplyEvery = 0.25,
) -> None:
    """Answer the coordinator, by what you approved, until you press Ctrl-C."""
    from dpadmm.network.cards import Card
    from dpadmm.network.silo_home import SiloHome
    from dpadmm.network.transports.sockets import SiloServer

    found, caller = SiloHome(home), Card.read(coordinator)
    silo, vault = found.silo(lambda step: print_line(f"{found.settings.silo}: {STEPS.get(step, step)}"))
    try:
        place = found.card.address if listen is None else listen
        server = SiloServer(place, found.tls, caller.certificate, silo.answer, reply_every)
        print_line(f"{found.settings.silo}: listening at {server.address}; Ctrl-C stops, and nothing is lost")
        try:
            server.serve()
        except (KeyboardInterrupt, Stopped):
            print_line(f"{found.settings.silo}: stopped; start it again when you like, it goes on where it was")
        finally:
            server.close()
    finally:
        vault.release()


def _read(place: Path) -> Proposal:
    from dpadmm.network.proposal import Proposal
    from dpadmm.stored_json import parse, read_words

    try:
        return Proposal.from_dict(parse(read_words(place), "a proposal"))
    except OSError as problem:
        raise FileProblem(
            f"the proposal {place}, which cannot be read ({why(problem)})", "a file", "correct the path"
        ) from None


def _facts(home: SiloHome, proposal: Proposal, epoch: int) -> dict[str, Any]:
    """Everything that an owner should look at."""
    roster, plan = proposal.roster, proposal.plan
    standing = home.budget.standing(plan)
    chosen = {name: value for name, value in json_text.loads(proposal.parameters).items() if value is not None}
    return {
        "model": proposal.model,
        "parameters": ", ".join(f"{name} {value}" for name, value in chosen.items()),
        "silos (S)": roster.size,
        "may collude (c)": roster.colluding,
        "members": ", ".join(roster.names),
        "roster digest": roster.digest.hex(),
        "proposal digest": proposal.digest.hex(),
        "epsilon, delta": f"{rounded_up(plan.budget.epsilon)}, {rounded_up(plan.budget.delta)}",
        "epsilon if all others collude": rounded_up(proposal.epsilon_if_all_collude),
        "rows of all owners together": proposal.n_rows,
        "questions": ", ".join(f"{query.count} {query.kind}" for query in plan.queries),
        "of these spare": proposal.spares,
        "epoch": epoch,
        "ledger now": "no ledger" if standing is None else f"epsilon {rounded_up(standing[0])}",
        "ledger with this": "no ledger" if standing is None else f"epsilon {rounded_up(standing[1])}",
    }


def _status(home: SiloHome) -> dict[str, Any]:
    state, budget = home.state, home.budget
    epoch = state.epoch
    facts: dict[str, Any] = {
        "key": home.card.key,
        "address": home.card.address,
        "runs": len(state.runs),
        "steps": state.history.count,
    }
    if epoch is not None:
        stage = "closed" if epoch.closed else "open" if epoch.session else "beginning"
        facts |= {"epoch": f"{epoch.number}, {stage}", "questions answered in it": epoch.answered}
    if budget.ledger is not None and budget.dataset is not None:
        facts["ledger"] = f"epsilon {rounded_up(budget.ledger.spent(budget.dataset)[0])} spent"
    return facts
