"""What a table has paid so far: an append-only file, charged before training, that refuses when the limit is hit."""

from __future__ import annotations

import json
import math
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal, Self

from dpadmm.errors import BudgetExceeded, FileProblem, InvalidParameter, PromiseBroken
from dpadmm.privacy.accountants.gaussian import GaussianAccountant
from dpadmm.privacy.budget import Budget
from dpadmm.privacy.events import Event
from dpadmm.privacy.plan import Plan


class Ledger:
    """The privacy account of one table.

    Parameters
    ----------
    path : str or Path
        The file. It is created with `limit` on first use; later the limit in the file stands.
    limit : Budget
        What all fits together may spend, and the relation they must be certified for.

    composition : {"gaussian", "basic"}
        How fits add up; fixed when the file is created. "gaussian" takes plans that read all rows at each query, and is
        exact: one Gaussian with μ² = Σμᵢ². "basic" takes every plan: (Σεᵢ, Σδᵢ).

    Notes
    -----
    *Formal guarantees.* A plan is charged in full by `reserve`, before training; a crash leaves it charged. Both rules
    hold when each plan is chosen after seeing the earlier models: "gaussian" by fully adaptive composition of Gaussian
    mechanisms (Smith & Thakurta 2022; Koskela, Tobaben & Honkela 2023), "basic" as a privacy filter (Rogers, Roth,
    Ullman & Vadhan 2016). Neither is proved for switching between them half-way, so the rule never changes. Fits on
    parts of the table, as in cross-validation, are charged as if on all of it.

    `copy.deepcopy` and pickling give the same account, so that scikit-learn's `clone` and worker processes cannot spend
    outside it.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "ledger.jsonl"
    >>> Ledger(path, Budget(1.0, 1e-5)).spent
    (0.0, 0.0)
    """

    def __init__(self, path: str | Path, limit: Budget, composition: Literal["gaussian", "basic"] = "gaussian") -> None:
        if composition not in ("gaussian", "basic"):
            raise InvalidParameter(f"composition={composition!r}", "'gaussian' or 'basic'", "choose one of these")
        self.path, self.limit, self.composition = Path(path).resolve(), limit, composition
        with self._locked() as stream:
            if not _read(stream):
                _append(stream, self._header)
            self._entries(stream)

    def reserve(self, plan: Plan) -> str:
        """Charge `plan` and return the receipt for `commit`, or raise `BudgetExceeded` and charge nothing."""
        if plan.budget.relation is not self.limit.relation:
            raise BudgetExceeded(
                f"given a plan for {plan.budget.relation}; expected {self.limit.relation}, the ledger's relation; "
                "train under the ledger's relation"
            )
        if self.composition == "gaussian" and not plan.event.full_batch:
            raise BudgetExceeded(
                "given a plan on mini-batches; expected full-data queries, which this ledger composes as Gaussians; "
                "use a full-data solver, or a ledger with composition='basic'"
            )
        with self._locked() as stream:
            epsilon, delta = self._total([*_plans(self._entries(stream)), plan])
            if epsilon > self.limit.epsilon or delta > self.limit.delta:
                raise BudgetExceeded(
                    f"given a fit after which ({epsilon:.4g}, {delta:.4g}) would be spent; expected at most "
                    f"({self.limit.epsilon:g}, {self.limit.delta:g}); use a smaller epsilon or delta, or fewer fits"
                )
            receipt = uuid.uuid4().hex
            _append(stream, {"receipt": receipt, "plan": plan.to_dict()})
        return receipt

    def commit(self, receipt: str, spent: Event) -> None:
        """Note that a reserved plan was carried out exactly."""
        with self._locked() as stream:
            lines = self._entries(stream)
            plans = {line["receipt"]: Plan.from_dict(line["plan"]) for line in lines if "plan" in line}
            if receipt not in plans or plans[receipt].event != spent:
                raise PromiseBroken("the ledger holds no such plan, or another event was performed than reserved")
            _append(stream, {"receipt": receipt, "committed": True})

    @property
    def plans(self) -> tuple[Plan, ...]:
        """Every plan charged, carried out or not."""
        with self._locked() as stream:
            return tuple(_plans(self._entries(stream)))

    @property
    def spent(self) -> tuple[float, float]:
        """(ε, δ) of everything charged so far; (0, 0) for an empty account."""
        return self._total(list(self.plans))

    def _total(self, plans: list[Plan]) -> tuple[float, float]:
        if not plans:
            return 0.0, 0.0
        if self.composition == "basic":
            return math.fsum(p.epsilon_achieved for p in plans), math.fsum(p.budget.delta for p in plans)
        event = Event(tuple(part for p in plans for part in p.event.parts))
        return GaussianAccountant().epsilon(event, self.limit.delta, self.limit.relation), self.limit.delta

    @property
    def _header(self) -> dict[str, Any]:
        limit = [self.limit.epsilon, self.limit.delta, str(self.limit.relation)]
        return {"limit": limit, "composition": self.composition}

    def _entries(self, stream: IO[str]) -> list[dict[str, Any]]:
        """What the file holds after its header; a file that was emptied or exchanged is refused."""
        lines = _read(stream)
        if not lines or lines[0] != self._header:
            raise InvalidParameter(
                "a ledger file with another limit or composition, or none",
                "the file as it was created",
                "pass the limit and composition of the file, or start a new file for another table",
            )
        return lines[1:]

    @contextmanager
    def _locked(self) -> Iterator[IO[str]]:
        try:
            import fcntl

            self.path.parent.mkdir(parents=True, exist_ok=True)
            stream = self.path.open("a+", encoding="utf-8")
        except (OSError, ImportError):
            raise FileProblem(
                f"{self.path}, which cannot be opened and locked", "a writable local file", "choose another ledger path"
            ) from None
        with stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            yield stream

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __repr__(self) -> str:
        return f"Ledger({str(self.path)!r}, {self.limit})"


def _read(stream: IO[str]) -> list[dict[str, Any]]:
    stream.seek(0)
    try:
        return [json.loads(line) for line in stream if line.strip()]
    except ValueError:
        raise FileProblem("a ledger file that is corrupt", "lines of JSON", "restore it from a backup") from None


def _plans(lines: list[dict[str, Any]]) -> list[Plan]:
    return [Plan.from_dict(line["plan"]) for line in lines if "plan" in line]


def _append(stream: IO[str], entry: dict[str, Any]) -> None:
    stream.seek(0, os.SEEK_END)
    stream.write(json.dumps(entry) + "\n")
    stream.flush()
    os.fsync(stream.fileno())
