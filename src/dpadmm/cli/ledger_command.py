"""`dpadmm ledger`: make, show, limit, verify and export the record of what data sets have spent."""

from __future__ import annotations

import json as json_text
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpadmm.cli import failures
from dpadmm.cli.options import Force, Json
from dpadmm.cli.outputs import check_new_file, write_new_file
from dpadmm.cli.screen import print_json, print_line, print_pairs, print_table, print_text, working
from dpadmm.errors import DpadmmError, FileProblem, InvalidParameter
from dpadmm.privacy.wording import SPENT, pair, rounded_up

if TYPE_CHECKING:
    from dpadmm.privacy.ledger import Ledger
    from dpadmm.privacy.ledger.book import Account
    from dpadmm.report import Spending

HELP = """\
Keep a record of what every data set has spent, over all fits.

A ledger is a file, or a PostgreSQL database for a team. Name it in `dpadmm fit --ledger PATH --dataset NAME` or give \
it to an estimator. Every fit is then charged before it trains. It is refused if it would exceed the limit of its \
data set. A fit that ends early stays charged.

\b
Examples
  dpadmm ledger init team.db --dataset census --epsilon 2 --delta 1e-6
  dpadmm fit census.csv --schema census.toml --target income --epsilon 0.5 \\
      --delta 1e-7 --ledger team.db --dataset census --out model
  dpadmm ledger show team.db --picture spending.png
  dpadmm ledger verify team.db --model model
"""
# So many fits are printed; a picture has so many steps.
LAST, STEPS = 100, 500
EPILOG = f"Exit codes: {failures.EXIT_CODES}."

app = typer.Typer(help=HELP, epilog=EPILOG, no_args_is_help=True, rich_markup_mode="rich")

Place = Annotated[str, typer.Argument(metavar="PATH", help="The ledger: a file, or postgresql://user@host/database.")]
Dataset = Annotated[str | None, typer.Option("--dataset", metavar="NAME", help="The owner's name for the data.")]
Epsilon = Annotated[float | None, typer.Option("--epsilon", "-e", metavar="X", help="ε that all fits may spend.")]
Delta = Annotated[float | None, typer.Option("--delta", "-d", metavar="X", help="δ that all fits may spend.")]
Relation = Annotated[str, typer.Option("--relation", metavar="NAME", help="Neighbours: replace-one or add-remove.")]
UnitName = Annotated[
    str | None,
    typer.Option("--unit", metavar="NAME", help="Whose data the limit protects: row (the default), person or owner."),
]
Owner = Annotated[
    str | None, typer.Option("--owner", metavar="NAME", help="Who is responsible for the data; you, if left out.")
]
Test = Annotated[bool, typer.Option("--test", help="The data are not private, so that seeded fits are accepted.")]
Picture = Annotated[Path | None, typer.Option("--picture", metavar="FILE", help="Write a PNG of spending over time.")]
Witness = Annotated[
    str | None, typer.Option("--head", metavar="N:HASH", help="A head that was noted earlier. The ledger must hold it.")
]
Models = Annotated[
    list[Path] | None, typer.Option("--model", metavar="DIR", help="A model folder. The ledger must hold its charge.")
]
Out = Annotated[
    Path | None, typer.Option("--out", "-o", metavar="FILE", help="File to write; standard output if left out.")
]


@app.command(epilog=EPILOG)
def init(
    path: Place,
    dataset: Dataset = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    relation: Relation = "replace-one",
    unit: UnitName = None,
    owner: Owner = None,
    test: Test = False,
    json: Json = False,
) -> None:
    """Make a ledger and, if you like, declare its first data set."""
    from dpadmm.privacy.ledger import Ledger

    limit_given = _limit(dataset, epsilon, delta, relation)
    try:
        ledger = Ledger.create(path)
    except FileProblem:
        earlier = _made_before(path)
        if earlier is None:
            raise
        raise FileProblem(
            f"{earlier.place}, which holds a ledger already",
            "a new place",
            "declare its data sets with `dpadmm ledger limit PATH --dataset NAME --epsilon X --delta X`, or choose "
            "another place",
        ) from None
    if limit_given is not None and dataset is not None:
        ledger.set_limit(dataset, limit_given, owner, test or None, unit)
    _tell(ledger, f"Made the ledger {ledger.place}.", json)


@app.command(epilog=EPILOG)
def limit(
    path: Place,
    dataset: Dataset = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    relation: Relation = "replace-one",
    unit: UnitName = None,
    owner: Owner = None,
    test: Test = False,
    json: Json = False,
) -> None:
    """Declare a data set with its limit, change the limit, or list all limits."""
    from dpadmm.privacy.ledger import Ledger

    wanted = _limit(dataset, epsilon, delta, relation)
    ledger = Ledger(path)
    if wanted is None or dataset is None:
        _tell(ledger, f"Limits in {ledger.place}", json)
        return
    ledger.set_limit(dataset, wanted, owner, test or None, unit)
    _tell(ledger, f"All fits on {dataset} together may spend {pair(wanted.epsilon, wanted.delta)}.", json)


@app.command(epilog=EPILOG)
def show(path: Place, picture: Picture = None, force: Force = False, json: Json = False) -> None:
    """Show what was spent, fit by fit, as a table and, if you like, as a picture."""
    from dpadmm.privacy.ledger import Ledger

    if picture is not None:
        check_new_file(picture, force)
    ledger = Ledger(path)
    if picture is not None:
        write_new_file(picture, _picture(ledger))
    if json:
        print_json({**_summary(ledger), "entries": _entries(ledger)})
        return
    if picture is not None:
        print_line(f"Wrote {picture}.")
    _print_accounts(ledger, f"Ledger {ledger.place}")
    fits = [cells for account in ledger.accounts for cells in _fit_rows(account)]
    if fits:
        print_table(("charged", "data set", "fit", "ε, δ alone", "noise", "state", "ε in all"), fits)
    for account in ledger.accounts:
        if len(account.fits) > LAST:
            print_line(f"{account.dataset}: the last {LAST} of {len(account.fits)} fits are shown; --json has all.")
    print_line(f"Head: {ledger.head}", style="dim")


@app.command(epilog=EPILOG)
def verify(path: Place, head: Witness = None, model: Models = None, json: Json = False) -> None:
    """Check every hash, charge and total of a ledger; with --head or --model, also that its end was not cut off."""
    from dpadmm.cli.model_folder import read_model
    from dpadmm.privacy.ledger import release_digest
    from dpadmm.privacy.ledger import verify as check

    models = [read_model(folder) for folder in model or ()]
    releases = [(trained.plan_.digest, release_digest(trained.weights_)) for trained in models]
    with working("computing every charge again", visible=not json):
        found = check(path, head, releases)
    if json:
        print_json(found.to_dict())
    elif found.ok:
        print_line(f"{found.place}: {found.entries} entries, all as they were written. Head: {found.head}")
        for folder in model or ():
            print_line(f"{folder}: this ledger holds its finished charge.")
    else:
        for problem in found.problems:
            print_line(f"{found.place}: {problem}", style="bold red")
    if not found.ok:
        raise typer.Exit(failures.FILE_PROBLEM)


@app.command(epilog=EPILOG)
def export(path: Place, out: Out = None, force: Force = False, json: Json = False) -> None:
    """Write the record as text, one entry a line, or as one JSON document."""
    from dpadmm.privacy.ledger import Ledger

    if out is not None:
        check_new_file(out, force)
    ledger = Ledger(path)
    entries = _entries(ledger)
    document = {**_summary(ledger), "entries": entries}
    text = json_text.dumps(document, indent=2) if json else "\n".join(map(json_text.dumps, entries))
    if out is None:
        print_text(text)
    else:
        write_new_file(out, f"{text}\n".encode())
        if not json:
            print_line(f"Wrote {out}.")


def _made_before(path: str) -> Ledger | None:
    """The ledger that is at a place already, if one is."""
    from dpadmm.privacy.ledger import Ledger

    try:
        return Ledger(path)
    except DpadmmError:
        return None


def _limit(dataset: str | None, epsilon: float | None, delta: float | None, relation: str) -> Any:
    """A whole limit, or none of its parts."""
    from dpadmm.privacy.budget import Budget
    from dpadmm.privacy.budget import Relation as Neighbours

    given = [value is not None for value in (dataset, epsilon, delta)]
    if not any(given):
        return None
    if not all(given) or epsilon is None or delta is None:
        raise InvalidParameter(
            "only part of a limit", "--dataset NAME, --epsilon X and --delta X together", "give all three, or none"
        )
    return Budget(epsilon, delta, Neighbours.parse(relation))


def _tell(ledger: Ledger, title: str, as_json: bool) -> None:
    if as_json:
        print_json(_summary(ledger))
    else:
        _print_accounts(ledger, title)


def _summary(ledger: Ledger) -> dict[str, Any]:
    return {
        "place": ledger.place,
        "head": str(ledger.head),
        "datasets": [_account_fields(account) for account in ledger.accounts],
        "spent_means": SPENT,
    }


def _account_fields(account: Account) -> dict[str, Any]:
    epsilon, delta = account.spent
    return {
        "dataset": account.dataset,
        "owner": account.owner,
        "test": account.test,
        "relation": str(account.limit.relation),
        "unit": str(account.unit),
        "limit": {"epsilon": account.limit.epsilon, "delta": account.limit.delta},
        "spent": {"epsilon": epsilon, "delta": delta},
        "fits": len(account.fits),
        "committed": sum(fit.committed for fit in account.fits),
    }


def _entries(ledger: Ledger) -> list[dict[str, Any]]:
    return [{**entry.content, "hash": entry.hash} for entry in ledger.entries]


def _print_accounts(ledger: Ledger, title: str) -> None:
    accounts = ledger.accounts
    if not accounts:
        print_pairs(title, [("data sets", "none yet: dpadmm ledger limit PATH --dataset NAME --epsilon X --delta X")])
        return
    print_line(title, style="bold")
    head = ("data set", "owner", "neighbours", "fits", "spent ε", "limit ε", "at δ", "")
    print_table(head, [_account_cells(account) for account in accounts])
    print_line(SPENT, style="dim")


def _account_cells(account: Account) -> tuple[str, ...]:
    return (
        account.dataset,
        account.owner,
        _neighbours(account),
        str(len(account.fits)),
        rounded_up(account.spent[0]),
        rounded_up(account.limit.epsilon),
        rounded_up(account.limit.delta),
        "test data" if account.test else "",
    )


def _neighbours(account: Account) -> str:
    """The relation, and the unit where that is not a single row."""
    from dpadmm.privacy.unit import Unit

    relation = str(account.limit.relation)
    return relation if account.unit is Unit.ROW else f"{relation}, {account.unit.plural}"


def _fit_rows(account: Account) -> list[tuple[str, ...]]:
    return [
        (
            fit.time[:19].replace("T", " "),
            account.dataset,
            fit.receipt[:8],
            f"{rounded_up(fit.plan_fields['epsilon'])}, {rounded_up(fit.plan_fields['delta'])}",
            "seeded" if fit.seeded else "secret",
            "committed" if fit.committed else "reserved only",
            rounded_up(account.spent_after(number)),
        )
        for number, fit in list(enumerate(account.fits, start=1))[-LAST:]
    ]


def _picture(ledger: Ledger) -> bytes:
    from dpadmm.report import spending_picture

    return spending_picture([_spending(account) for account in ledger.accounts], datetime.now(UTC))


def _spending(account: Account) -> Spending:
    """The curve of one data set, through every fit or, of many, through as many as can be told apart."""
    from dpadmm.privacy.ledger.entries import moment
    from dpadmm.report import Spending

    count = len(account.fits)
    numbers = sorted({1 + round(step * (count - 1) / STEPS) for step in range(STEPS + 1)}) if count else []
    times = [moment(account.fits[number - 1].time) for number in numbers]
    return Spending(account.dataset, account.limit.epsilon, times, [account.spent_after(number) for number in numbers])
