"""What a command says of the model it trained: the promise in short, any warning, and where the statement is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from dpadmm.privacy.wording import rounded_up

if TYPE_CHECKING:
    from dpadmm.privacy.statement import PrivacyStatement

SEEDED = "seeded: NOT private. Trained without a seed it would be "
AGAIN = "a person with several rows is protected less, and every further fit on these rows costs again"
WHAT_IS_SPENT = "`dpadmm ledger show LEDGER` says what is spent, and the limit"

EXPLANATION = re.compile(r"[:;].*|, (?:as in|so that)\b.*")
"""What an assumption says beyond itself: reasons, examples and advice."""


def promise_pairs(statement: PrivacyStatement, folder: Path, charged: str | None = None) -> list[tuple[str, str]]:
    """At most six lines on the model that was written into a folder, and charged to a data set of a ledger."""
    pair = f"({rounded_up(statement.epsilon)}, {rounded_up(statement.delta)})"
    private = f"{pair}-differentially private under {statement.relation} neighbours"
    certified = f"ε = {rounded_up(statement.epsilon_achieved)} certified by the {statement.accountant} accountant"
    return [
        ("promise", f"{SEEDED if statement.seeded else ''}{private}; {certified}"),
        ("unit", f"{statement.unit}: {AGAIN}"),
        ("assumes", "; ".join(map(_in_short, statement.assumptions))),
        *([("warning", statement.outlook)] if statement.outlook else []),
        # The place of a ledger is not repeated: its address may hold a password.
        *([("charged to", f"{charged}; {WHAT_IS_SPENT}")] if charged else []),
        ("statement", f"`dpadmm statement {folder}`: every query, proof and assumption"),
    ]


def _in_short(assumption: str) -> str:
    return EXPLANATION.sub("", assumption).replace("the queries above", "its queries")
