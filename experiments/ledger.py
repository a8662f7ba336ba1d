"""What several fits cost together, the numbers that docs/ledger.md quotes: `python -m experiments.ledger`.

Twenty fits at ε = 0.1, δ = 1e-6 each, at δ = 1e-5 in all: as a ledger charges them, as the accountant composes them
when all of them are fixed in advance, and as a sum.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from dpadmm import Budget, Ledger
from dpadmm.privacy.accountants.pld import PldAccountant
from dpadmm.privacy.budget import Relation
from dpadmm.privacy.calibration import calibrate
from dpadmm.privacy.events import Event, GaussianSums
from dpadmm.privacy.plan import Plan, Request
from dpadmm.privacy.questions import ClippedGradient
from dpadmm.privacy.sampling import make_sampler

FITS, EPSILON, DELTA, TOTAL_DELTA = 20, 0.1, 1e-6, 1e-5
SETTINGS = [
    # (sampler, rows, batch, steps)
    ("full", 48_842, 48_842, 30),
    ("truncated-poisson", 48_842, 221, 2_210),
    ("fixed", 48_842, 221, 2_210),
    ("poisson", 1_000, 50, 100),
    ("poisson", 1_000, 10, 30),
]


def main() -> None:
    print("sampler            rows  batch steps | ledger  accountant  ratio | sum | seconds of the first reserve")
    for name, rows, batch, steps in SETTINGS:
        sampler = make_sampler(name, rows, batch)
        plan = calibrate(Budget(EPSILON, DELTA), [Request("gradient", steps, ClippedGradient(1.0))], sampler, rows)
        charged, seconds = _charged(plan)
        composed = _composed(plan)
        print(
            f"{name:17} {rows:6} {batch:6} {steps:5} | {charged:.4f}  {composed:.4f}      {charged / composed:.4f} "
            f"| {FITS * EPSILON:.1f} | {seconds:.2f}"
        )


def _charged(plan: Plan) -> tuple[float, float]:
    ledger = Ledger.create(Path(tempfile.mkdtemp()) / "ledger.db")
    ledger.set_limit("table", Budget(5.0, TOTAL_DELTA), owner="experiment")
    started = time.perf_counter()
    ledger.reserve("table", plan)
    seconds = time.perf_counter() - started
    for _ in range(FITS - 1):
        ledger.reserve("table", plan)
    return ledger.spent("table")[0], seconds


def _composed(plan: Plan) -> float:
    parts = tuple(GaussianSums(p.sampler, p.noise_multiplier, FITS * p.count) for p in plan.event.parts)
    return PldAccountant().epsilon(Event(parts), TOTAL_DELTA, Relation.REPLACE_ONE)


if __name__ == "__main__":
    main()
