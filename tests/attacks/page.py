"""`python -m tests.attacks.page --write` writes docs/security-tests.md from what `make attack` found."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from .campaign import RESULTS

PAGE = Path("docs/security-tests.md")
HEAD = """# Security tests

`make attack` runs every attack of this page in full and writes the page; `make test` runs a sample of each.
"Defects before" is what the attack found in earlier versions; each has a test that fails when the defect comes back.

"""


def page() -> str:
    """The page, from the results of the last full run."""
    results = [json.loads(path.read_text()) for path in RESULTS.glob("*.json")]
    found = sorted(results, key=lambda row: (row["room"], row["attack"]))
    minutes = sum(row["seconds"] for row in found) / 60
    table = ["| what | attack | tries | defects before | defects now |", "|---|---|---|---|---|", *map(_line, found)]
    total = f"Together {sum(row['tries'] for row in found):,} tries in {minutes:.0f} minutes of computing."
    return HEAD + "\n".join(table) + "\n\n" + total + "\n"


def _line(row: dict[str, Any]) -> str:
    cells = (row["room"], row["attack"], f"{row['tries']:,}", row["before"], str(row["defects"] or "none"))
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    if "--write" in sys.argv:
        PAGE.write_text(page())
    else:
        print(page())
