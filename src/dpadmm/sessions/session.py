"""check → reserve → ask → keep → commit → state: the order in which every promise is kept, written down once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Protocol, runtime_checkable

from numpy.typing import ArrayLike

from dpadmm import kernels
from dpadmm.errors import PromiseBroken
from dpadmm.oracles.gate import Gate
from dpadmm.oracles.mechanisms import Mechanism
from dpadmm.oracles.private import AnswerStore, PrivateOracle
from dpadmm.privacy.assumptions import Assumption
from dpadmm.privacy.budget import Budget
from dpadmm.privacy.ledger import Payment
from dpadmm.privacy.plan import Plan
from dpadmm.privacy.selection import SearchPlan
from dpadmm.privacy.statement import PrivacyStatement
from dpadmm.randomness import Streams, make_streams
from dpadmm.rows.protocol import Rows

Promise = Plan | SearchPlan


@runtime_checkable
class AnsweredElsewhere(Protocol):
    """What stands for rows that are never here: it brings an oracle that asks their owners."""

    @property
    def seeded(self) -> bool:
        """Whether their noise can be repeated."""
        ...

    def open(self, plan: Plan) -> PrivateOracle:
        """The oracle, once all owners have paid for the plan."""
        ...

    def close(self) -> None:
        """All was asked."""
        ...


class Session:
    """One promise on one data set: who pays, and whose noise hides the rows.

    Estimators, transformers and searches go through their promise here; so can whatever else asks rows by a plan.

    Parameters
    ----------
    ledger : None, Ledger, str or Path
        Who keeps the record of what is spent.
    dataset : str or None
        Whose budget is charged.
    seed : int or None
        None takes the noise from the operating system; an int makes it repeatable, and the release NOT private.

    Notes
    -----
    *Formal guarantees.* Nothing is asked before the whole plan is charged. Nothing is stated unless the answered
    queries are those of the plan. Whatever ends the work early leaves the plan charged.

    Examples
    --------
    >>> import numpy as np
    >>> from dpadmm.declare.declaration import Declaration
    >>> from dpadmm.privacy.budget import Budget
    >>> from dpadmm.problem import Logistic
    >>> from dpadmm.rows.local import LocalRows
    >>> from dpadmm.solvers.base import run
    >>> made = Declaration(budget=Budget(1.0, 1e-3), loss=Logistic(), n_rows=100, n_features=1).recipe
    >>> session = Session(seed=0)
    >>> session.afford(made.plan)
    >>> rows = LocalRows(np.full((100, 2), 0.5), np.ones(100), Logistic())  # a feature and the intercept
    >>> with session.carrying_out(made.plan) as work:
    ...     solution = run(made.solver, made.problem, work.oracle(rows))
    ...     work.release(solution.coefficients)
    >>> work.statement(made.solver.name, ()).epsilon
    1.0
    """

    def __init__(self, ledger: object = None, dataset: str | None = None, seed: int | None = None) -> None:
        self.streams = make_streams(seed)
        self._payment = Payment(ledger, dataset, seeded=self.seeded)

    @property
    def seeded(self) -> bool:
        """Whether the noise can be repeated: then nothing is private."""
        return not self.streams.secret

    def afford(self, wanted: Budget | Promise) -> None:
        """Refuse, before a row is read, what the ledger would refuse to pay for. Charges nothing."""
        self._payment.check(wanted)

    @contextmanager
    def carrying_out(
        self, promise: Promise, engine: kernels.Name | None = None, receipt: str | None = None
    ) -> Iterator[Work]:
        """Charge the whole promise for the work within, which must end with `Work.release`.

        `engine` names the kernels for the work; without one those in use stay. `receipt` is that of work which was
        interrupted and goes on, charged before: its oracle needs the state of the gate.
        """
        with ExitStack() as held:
            held.enter_context(self._payment.reserving(promise, receipt))
            if engine is not None:
                held.enter_context(kernels.use(engine))
            work = Work(promise, self._payment, self.streams, goes_on=receipt is not None)
            yield work
            work.require_released()


class Work:
    """What may be done under a promise that was charged."""

    def __init__(self, promise: Promise, payment: Payment, streams: Streams, goes_on: bool = False) -> None:
        self._promise, self._payment, self._streams = promise, payment, streams
        self._goes_on = goes_on
        self._oracle: PrivateOracle | None = None
        self._released, self._seeded = False, not streams.secret
        self._elsewhere: AnsweredElsewhere | None = None

    def oracle(
        self,
        rows: Rows,
        mechanism: Mechanism | None = None,
        store: AnswerStore | None = None,
        asked: dict[str, Any] | None = None,
    ) -> PrivateOracle:
        """The one oracle that answers the plan of a fit.

        `mechanism` adds the noise where that of the plan's arithmetic does not, on a device for example; `store` keeps
        each answer before it leaves; `asked` is the state of the gate of work that goes on. Owners who answer elsewhere
        bring their own.
        """
        if self._oracle is not None or not isinstance(self._promise, Plan):
            raise PromiseBroken("Got a second oracle for one plan. Expected one: a plan is carried out once.")
        if self._goes_on and (asked is None or isinstance(rows, AnsweredElsewhere)):
            raise PromiseBroken(
                "Got work that goes on, charged before, without the state of its gate. Expected what was asked so far."
            )
        if isinstance(rows, AnsweredElsewhere):
            self._elsewhere, self._seeded = rows, self._seeded or rows.seeded
            self._oracle = rows.open(self._promise)
        else:
            gate = Gate(self._promise) if asked is None else Gate.restored(self._promise, asked)
            self._oracle = PrivateOracle(rows, gate, self._streams, mechanism, store)
        return self._oracle

    @property
    def receipt(self) -> str:
        """By which the ledger knows this work, to go on with it after an interruption; empty without a ledger."""
        return self._payment.receipt

    def trial(self, part: Plan, rows: Rows, seed: int | None) -> PrivateOracle:
        """An oracle for one run within a search, with noise of its own. How many runs there are stays secret."""
        if isinstance(self._promise, Plan) or part not in self._promise.runs:
            raise PromiseBroken("Got a run of another plan than the search was certified for. Expected one of its own.")
        return PrivateOracle(rows, Gate(part), make_streams(seed))

    def release(self, numbers: ArrayLike) -> None:
        """Note in the ledger that the promise was carried out, and what was released; refuse if it was not."""
        spent: Any = self._promise.event
        if isinstance(self._promise, Plan):
            if self._oracle is None:
                raise PromiseBroken("Got a release before anything was asked. Expected the queries of the plan.")
            self._oracle.require_promise_kept()
            spent = self._oracle.spent
        self._payment.commit(spent, numbers)
        self._released = True
        if self._elsewhere is not None:
            self._elsewhere.close()

    def require_released(self) -> None:
        """Refuse to end as if all were well when nothing was released: the charge stays."""
        if not self._released:
            raise PromiseBroken("Got work that ended without a release. Expected one. The reserved budget is spent.")

    def statement(
        self,
        solver: str,
        assumptions: Iterable[str | Assumption],
        subject: str = "model",
        candidates: int = 0,
    ) -> PrivacyStatement:
        """What was promised, once it was kept."""
        self.require_released()
        return PrivacyStatement.of(self._promise, solver, assumptions, self._seeded, subject, candidates)
