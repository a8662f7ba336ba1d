"""An attack on the library: how often it was tried, what it found once, and what it finds now."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

RESULTS = Path("results/attacks")
FULL = os.environ.get("DPADMM_ATTACKS") == "full"


@dataclass(frozen=True)
class Campaign:
    """One row of docs/security-tests.md.

    Attributes
    ----------
    room : str
        What is attacked: "input", "printed numbers", "ledger", "faults", "loading", "parameters", "outputs".
    attack : str
        What is tried, as a sentence a reader of the table understands.
    before : str
        What this attack found in earlier versions: "none", or what went wrong.
    sample, full : int
        Tries in `make test`, and in `make attack`.
    """

    room: str
    attack: str
    before: str
    sample: int
    full: int

    @property
    def tries(self) -> int:
        """How many tries to make now."""
        return self.full if FULL else self.sample

    def begin(self) -> Tally:
        """Start counting tries and defects."""
        return Tally(self)


@dataclass
class Tally:
    """Counts tries and defects; on leaving, records them if the campaign was run in full, and fails on any defect."""

    campaign: Campaign
    tried: int = 0
    defects: list[str] = field(default_factory=list)
    _began: float = field(default_factory=time.monotonic)

    def __enter__(self) -> Tally:
        return self

    def each(self) -> Iterator[int]:
        """The numbers of the tries, counted as they are made."""
        for number in range(self.campaign.tries):
            self.tried += 1
            yield number

    def defect(self, what: str) -> None:
        """Write down one defect; the attack goes on."""
        self.defects.append(what)

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: object) -> None:
        if problem is not None:
            self.defects.append(f"the attack itself ended with {kind.__name__ if kind else 'an error'}")
        if FULL:
            self._write()
        if problem is None:
            assert not self.defects, f"{len(self.defects)} of {self.tried} tries: {self.defects[:5]}"

    def _write(self) -> None:
        RESULTS.mkdir(parents=True, exist_ok=True)
        name = re.sub(r"[^a-z0-9]+", "-", f"{self.campaign.room} {self.campaign.attack}".lower())[:100].strip("-")
        found = {
            "room": self.campaign.room,
            "attack": self.campaign.attack,
            "before": self.campaign.before,
            "tries": self.tried,
            "defects": len(self.defects),
            "first defects": self.defects[:5],
            "seconds": round(time.monotonic() - self._began, 1),
        }
        (RESULTS / f"{name}.json").write_text(json.dumps(found, indent=2) + "\n")
