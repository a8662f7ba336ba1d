"""`make mutants`: tries the mutants, prints who survived and the score, and fails below the threshold.

Run by itself: python -m tests.mutants [--count 330] [--seed 24] [--workers 2] [--quick]
    [--only privacy/budget_split.py]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from .places import Mutant
from .record import Record
from .sample import all_mutants, by_hand, guard_of, harmless, sampled
from .trial import Copy

THRESHOLD = 0.97
NOTICED = ("caught", "timeout")
RESULTS = Path("results/mutants")


def main() -> int:
    """Exit status: 0 if enough mistakes are noticed."""
    asked = _arguments()
    written, drawn = _wanted(asked)
    reasons = harmless()
    matter = [mutant for mutant in (*written, *drawn) if mutant.name not in reasons]
    outcomes = _try(matter, asked.workers, Record(RESULTS / "verdicts.jsonl"), RESULTS / "copies")
    part = "quick" if asked.quick else "part" if asked.only or asked.hand else "score"
    return _report(written, drawn, outcomes, RESULTS / f"{part}.json")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description="One-line mistakes against the tests")
    parser.add_argument("--count", type=int, help="mistakes in the sample: 330, or 20 with --quick")
    parser.add_argument("--seed", type=int, default=24, help="which sample")
    parser.add_argument("--workers", type=int, default=2, help="test runs at a time")
    parser.add_argument("--quick", action="store_true", help="only files with quick tests, and none written by hand")
    parser.add_argument("--only", metavar="FILE", help="every mistake of one file below src/dpadmm, not a sample")
    parser.add_argument("--hand", action="store_true", help="only the mistakes written by hand")
    return parser.parse_args()


def _wanted(asked: argparse.Namespace) -> tuple[list[Mutant], list[Mutant]]:
    if asked.only:
        return [], [mutant for mutant in all_mutants() if mutant.file == asked.only and mutant.is_another_program]
    if asked.hand:
        return by_hand(), []
    count = asked.count or (20 if asked.quick else 330)
    return ([] if asked.quick else by_hand()), sampled(count, asked.seed, asked.quick)


def _try(mutants: list[Mutant], workers: int, record: Record, home: Path) -> dict[Mutant, str]:
    """The outcome of each, from the record or from a trial."""
    found: dict[Mutant, str] = {}
    os.environ["NUMBA_CACHE_DIR"] = str((home.parent / "kernels").resolve())
    copies: SimpleQueue[Copy] = SimpleQueue()
    usual: dict[str, float] = {}
    open_ones = [m for m in mutants if record.known(m, guard_of(m.file)) is None]
    for worker in range(min(workers, len(open_ones))):
        copies.put(Copy((home / str(worker)).resolve(), usual))

    def one(mutant: Mutant) -> None:
        guard = guard_of(mutant.file)
        copy = copies.get()
        try:
            verdict = copy.judge(mutant, guard)
        finally:
            copies.put(copy)
        record.add(mutant, guard, verdict)
        print(f"{verdict.outcome:8} {verdict.seconds:6.1f} s {verdict.by}  {mutant}", flush=True)

    with ThreadPoolExecutor(workers) as pool:
        for _ in pool.map(one, open_ones):
            pass
    for mutant in mutants:
        known = record.known(mutant, guard_of(mutant.file))
        assert known is not None
        found[mutant] = known["outcome"]
    return found


def _report(written: list[Mutant], drawn: list[Mutant], outcomes: dict[Mutant, str], target: Path) -> int:
    """Print and store the score; the exit status says whether it is enough."""
    survivors = [mutant for mutant in outcomes if outcomes[mutant] not in NOTICED]
    matter = [mutant for mutant in drawn if mutant in outcomes]
    noticed = len(set(matter) - set(survivors))
    share, missed = noticed / max(1, len(matter)), len(set(written) & set(survivors))
    enough = (not matter or share >= THRESHOLD) and not missed
    for mutant in survivors:
        print(f"SURVIVED {mutant}")
    if written:
        print(f"written by hand: {len(written) - missed} of {len(written)} noticed; all expected")
    if drawn:
        print(
            f"drawn: {len(drawn)}, {len(drawn) - len(matter)} of them harmless; of the others "
            f"{noticed} of {len(matter)} noticed ({share:.1%}); {THRESHOLD:.0%} expected"
        )
    print(f"noticed by a hang: {Counter(outcomes.values())['timeout']}")
    found = {
        "enough": enough,
        "drawn": len(drawn),
        "harmless": len(drawn) - len(matter),
        "noticed": noticed,
        "share": share,
        "written by hand": len(written),
        "outcomes": Counter(outcomes.values()),
        "survived": [dict(zip(("file", "function", "before", "after"), m.name, strict=True)) for m in survivors],
    }
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    return 0 if enough else 1


if __name__ == "__main__":
    sys.exit(main())
