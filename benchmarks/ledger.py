"""What a ledger of many fits costs to open, to charge, to show and to verify: python -m benchmarks.ledger."""

from __future__ import annotations

import argparse
import contextlib
import io
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path

from dpadmm import Budget, Ledger
from dpadmm.cli.app import run
from dpadmm.privacy.calibration import calibrate
from dpadmm.privacy.ledger import verify
from dpadmm.privacy.ledger.charge import charge
from dpadmm.privacy.ledger.ledger import _fit_fields
from dpadmm.privacy.plan import Plan, Request
from dpadmm.privacy.questions import ClippedGradient
from dpadmm.privacy.sampling import Everything

REPEATS = 9


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ledger", description=__doc__)
    parser.add_argument("--fits", type=int, default=10_000)
    parser.add_argument(
        "--folder", type=Path, default=None, help="where to make the ledger; a temporary one if left out"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        place, plan = Path(folder) / "ledger.db", small_plan()
        filled(place, plan, options.fits)
        print(f"{options.fits:,} fits, {place.stat().st_size / 1e6:.1f} MB")
        for what, seconds in measured(place, plan):
            print(f"{what:<36} {1000 * seconds[0]:9.1f} ms, of which computing {1000 * seconds[1]:9.1f} ms")


def small_plan() -> Plan:
    return calibrate(Budget(0.01, 1e-6), [Request("gradient", 10, ClippedGradient(1.0))], Everything(), 1000)


def filled(place: Path, plan: Plan, fits: int) -> None:
    """A ledger of committed fits, all written in one transaction."""
    ledger = Ledger.create(place)
    ledger.set_limit("census", Budget(1000.0, 1e-5), owner="Ada")
    cost = charge(plan.event, plan.budget.relation, 0.0)
    with ledger._page(ledger._store.writing) as page:
        for _ in range(fits):
            receipt = uuid.uuid4().hex
            page.append("reserve", {"dataset": "census", **_fit_fields(receipt, plan, cost, False)})
            page.append("commit", {"dataset": "census", "receipt": receipt, "release": "0" * 64})


def measured(place: Path, plan: Plan) -> list[tuple[str, tuple[float, float]]]:
    ledger = Ledger(place)

    def pay(ledger: Ledger) -> None:
        ledger.commit(ledger.reserve("census", plan), plan.event, release="0" * 64)

    return [
        ("open", median(lambda: Ledger(place))),
        ("reserve and commit, ledger open", median(lambda: pay(ledger))),
        ("open, reserve and commit", median(lambda: pay(Ledger(place)))),
        ("show", median(lambda: quietly("show", str(place)), 3)),
        ("show --json", median(lambda: quietly("show", str(place), "--json"), 1)),
        ("verify", median(lambda: verify(place), 1)),
    ]


def quietly(*command: str) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        assert run(["ledger", *command]) == 0


def median(work: Callable[[], object], repeats: int = REPEATS) -> tuple[float, float]:
    """Seconds by the clock, and seconds of this process: the rest is waiting for the disk, or for other processes."""
    clock, process = [], []
    for _ in range(repeats):
        began, computed = time.perf_counter(), time.process_time()
        work()
        clock.append(time.perf_counter() - began)
        process.append(time.process_time() - computed)
    return sorted(clock)[repeats // 2], sorted(process)[repeats // 2]


if __name__ == "__main__":
    main()
