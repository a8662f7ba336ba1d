"""What a command says of the model it trained: the promise in short, any warning, and where the statement is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpadmm.privacy.statement import PrivacyStatement

WHAT_IS_SPENT = "`dpadmm ledger show LEDGER` says what is spent, and the limit"


def promise_pairs(statement: PrivacyStatement, folder: Path, charged: str | None = None) -> list[tuple[str, str]]:
    """At most six lines on the model that was written into a folder, and charged to a data set of a ledger."""
    from dpadmm.privacy.facts import Facts
    from dpadmm.privacy.wording import sentence, short

    facts = statement.facts
    assert isinstance(facts, Facts), "a model that was trained now is stated in facts"
    return [
        ("promise", short.promise(facts)),
        ("unit", short.unit(facts)),
        ("assumes", short.assumes(facts)),
        *([("warning", sentence.outlook(facts.outlook, facts.unit.kind))] if facts.outlook else []),
        # The place of a ledger is not repeated: its address may hold a password.
        *([("charged to", f"{charged}; {WHAT_IS_SPENT}")] if charged else []),
        ("statement", f"`dpadmm statement {folder}`: every query, proof and assumption"),
    ]
