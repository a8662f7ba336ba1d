"""The door to private rows: charge at the gate, draw a batch, sum, add noise, store, answer. Nothing else leaves."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from dpadmm import kernels
from dpadmm.errors import QueryRefused
from dpadmm.kernels import numpy_kernels
from dpadmm.kernels.clipping import SMALLEST_CLIP
from dpadmm.oracles.gate import Gate, Line
from dpadmm.oracles.hidden_walk import Walk
from dpadmm.oracles.mechanisms import Exact, Granular, Mechanism
from dpadmm.privacy import arithmetic
from dpadmm.privacy.arithmetic import Arithmetic
from dpadmm.privacy.events import Event
from dpadmm.privacy.passage import NOISY_PASS
from dpadmm.privacy.questions import At, Kind, Question
from dpadmm.privacy.sampling import Batch
from dpadmm.privacy.unit import Unit
from dpadmm.problem.hidden_pass_program import Program
from dpadmm.problem.rowmap import RowMap
from dpadmm.problem.spiked_map import SpikedMap
from dpadmm.randomness import Streams
from dpadmm.rows.protocol import Rows, State

A = TypeVar("A")
Array = NDArray[np.float64]

LARGEST_CONDITION = 1e6
"""Of a change of coordinates P: sums are formed before Pᵀ, whose rounding then stays far below a clip after it."""

LARGEST_STRETCH = 1e60
"""Coordinates that stretch a row further are refused: products with a sum would overflow."""

SMALLEST_STRETCH = 1e-60
"""Coordinates that shrink rows further are refused: their entries would lose digits, and then vanish."""

NOBODY = Batch(np.zeros(0, dtype=np.intp))
"""Who takes part in a question that is answered without reading a row."""


class AnswerStore(Protocol):
    """Where the state of a gate goes, and an answer that may be given again, before the answer leaves."""

    def keep(self, gate_state: dict[str, Any], kind: str, answer: Any) -> None:
        """Return when both are durable."""
        ...


class Ticket:
    """One charged question, good for one answer: who takes part, and the clip that the sum must keep.

    Attributes
    ----------
    line : Line
        The planned query.
    at : tuple
        Where it is asked.
    batch : Batch
        The rows that were drawn. Secret: it may decide the sum, and nothing else.
    clip : float
        Largest norm of one record's contribution.
    """

    __slots__ = ("at", "batch", "clip", "line")

    def __init__(self, line: Line, at: At, batch: Batch, clip: float) -> None:
        self.line, self.at, self.batch, self.clip = line, at, batch, clip


class PrivateOracle:
    """Answers the queries of one plan, each with fresh noise, and refuses every other.

    Parameters
    ----------
    rows : Rows
        Private.
    gate : Gate
        What may still be asked. It belongs to this oracle alone.
    streams : Streams
        Secret draws of batches and of noise.
    mechanism : Mechanism or None
        How noise is added; None for the one that the arithmetic of the plan names.
    store : AnswerStore or None
        Where each answer is kept before it leaves.

    Notes
    -----
    *Formal guarantees.* Let the rows report sums of per-record contributions of norm at most the clip they are given
    (docs/proofs/sensitivity.md, Claim 1). Then the transcript of all answers is an adaptive composition of exactly the
    Gaussian sums in the plan's event, and so has the (ε, δ) the accountant certified for that event. The raw sums reach
    no attribute, log or exception; the only path from a sum to a caller is the mechanism. What finite arithmetic adds
    to this is charged or named in `docs/proofs/float.md`.

    Hidden passes are the exception to the transcript: `walk` makes them all, and hands out the last state. Accounting
    by iteration rests on nobody having seen another.
    """

    def __init__(
        self,
        rows: Rows,
        gate: Gate,
        streams: Streams,
        mechanism: Mechanism | None = None,
        store: AnswerStore | None = None,
    ) -> None:
        plan = gate.plan
        if getattr(rows, "unit", Unit.ROW) is not plan.unit:
            raise QueryRefused(f"a plan that protects {plan.unit.plural}, and rows that are not held so")
        if rows.n_rows < 1:
            raise QueryRefused("an empty table has nothing to ask")
        if rows.n_rows > arithmetic.most_rows(plan.n_rows, plan.budget.relation):
            raise QueryRefused("a table of far more rows than declared; declare a public number nearer to theirs")
        self._rows = self._seen = rows
        self._gate, self._streams, self._store = gate, streams, store
        self._mechanism = mechanism_of(gate, rows, streams) if mechanism is None else mechanism
        # Whoever hears of a pass may ask again: the gate refuses it, and no thread waits for itself.
        self._lock = threading.RLock()
        self._tickets: set[Ticket] = set()

    def ask(self, kind: Kind[A], *at: Any) -> A:
        """The noisy answer to a planned query at released points."""
        line = self._gate.line(kind)
        question, query = line.question, line.query
        rows = self._seen if question.frame == "seen" else self._rows
        with self._turn(question, rows):
            clip = self._charged(line, at, rows)
            if clip < SMALLEST_CLIP:
                mean = np.zeros(rows.space.point_shape)
            else:
                batch = query.sampler.draw(rows.n_rows, self._streams.sampling)
                mean = self._mechanism.release(rows.ask(question, at, batch), query, clip, self._gate)
            return cast(A, self._answered(line, rows, mean))

    def begin(self, kind: Kind[A], *at: Any) -> Ticket:
        """Charge a query and draw who takes part, for whoever forms the sum elsewhere, as an optimiser does."""
        line = self._gate.line(kind)
        rows = self._frame(line)
        with _Silently(self._lock):
            clip = self._charged(line, at, rows)
            draws = clip >= SMALLEST_CLIP
            batch = line.query.sampler.draw(rows.n_rows, self._streams.sampling) if draws else NOBODY
            ticket = Ticket(line, at, batch, clip)
            self._tickets.add(ticket)
            return ticket

    def end(self, ticket: Ticket, total: Any) -> Any:
        """The answer to a begun query, from the sum over its batch. Each contribution must keep to `ticket.clip`."""
        rows = self._frame(self._gate.line(ticket.line.kind))
        with _Silently(self._lock):
            if ticket not in self._tickets:
                raise QueryRefused("Got a ticket that is not open. Expected one begun here and not yet ended.")
            self._tickets.remove(ticket)
            if ticket.clip < SMALLEST_CLIP:
                return self._answered(ticket.line, rows, np.zeros(rows.space.point_shape))
            mean = self._mechanism.release(total, ticket.line.query, ticket.clip, self._gate)
            return self._answered(ticket.line, rows, mean)

    def walk(self, program: Program, tick: Callable[[int], None] | None = None) -> State:
        """(x, λ) after all planned hidden passes; `tick` hears how many are made.

        No state between them outlives the call.
        """
        line = self._gate.line(NOISY_PASS)
        with _Silently(self._lock):
            walk = Walk(self._rows, line.query, program)
            self._gate.admit(line, line.query.count)
            state = walk.last_state(self._streams, tick)
            self._gate.record(line, line.query.count)
            if self._store is not None:
                self._store.keep(self._gate.to_dict(), line.kind, state)
            return state

    def change_map(self, rowmap: RowMap) -> None:
        """Rows are mapped anew by a public rule; every row keeps to the declared norm, so nothing is charged."""
        if self._seen is not self._rows:
            raise QueryRefused("rows are mapped anew before coordinates change")
        with np.errstate(all="ignore"):
            self._rows = self._seen = self._rows.remapped(rowmap)

    def change_coordinates(self, matrix: Array | SpikedMap) -> None:
        """Later questions in the frame that is seen are of Pᵀ row; the clip holds for every P, so nothing is charged.

        Sums are formed before Pᵀ, so an oblique P would enlarge their rounding, and is refused. Where rows refuse P
        themselves, because it stretches them too far, their coordinates are those of the table again.
        """
        size, condition = _size_and_condition(matrix)
        features = self._rows.space.n_features
        if matrix.shape != (features, features) or not SMALLEST_STRETCH <= size <= LARGEST_STRETCH:
            raise QueryRefused("coordinates must be a finite square matrix of moderate size with one row a feature")
        if not condition <= LARGEST_CONDITION:
            raise QueryRefused("coordinates so oblique that rounding a sum in the old ones shows in the new ones")
        self._seen = self._rows  # lets go of the norms in the last coordinates before new ones are found
        with np.errstate(all="ignore"):
            self._seen = self._rows.transformed(matrix)
        self._mechanism.turn(condition)

    def noise_std(self, kind: str) -> float:
        """Public: standard deviation of the noise on each entry of an answer, but for the small slack of rounding."""
        query = self._gate.plan.query(kind)
        if query is None:
            raise QueryRefused(f"the plan contains no {kind!r} query")
        return query.noise_std

    @property
    def public_rows(self) -> int:
        """Public: the number of rows the plan was made for."""
        return self._gate.plan.n_rows

    @property
    def spent(self) -> Event:
        """What was performed so far, in the order of the plan."""
        return self._gate.spent

    def require_promise_kept(self) -> None:
        """Raise unless exactly the planned event was performed."""
        self._gate.require_kept()

    def _frame(self, line: Line) -> Rows:
        return self._seen if line.question.frame == "seen" else self._rows

    def _turn(self, question: Question[Any], rows: Rows) -> AbstractContextManager[object]:
        """One query at a time.

        NumPy is silent meanwhile, as its warnings could tell of rows; not where compiled kernels do without it, because
        to silence it takes longer than to add a batch.
        """
        alone = type(question) in getattr(rows, "silent", ()) and kernels.active() is not numpy_kernels
        return self._lock if alone else _Silently(self._lock)

    def _charged(self, line: Line, at: At, rows: Rows) -> float:
        """Refuse a place that is not public and finite, charge the query, and say the clip there."""
        clip = line.question.accept(at, rows.space)
        self._gate.admit(line)
        return min(clip, line.query.clip_norm)

    def _answered(self, line: Line, rows: Rows, mean: Array) -> Any:
        self._gate.record(line)
        answer = line.question.answer(mean, rows.space)
        if self._store is not None:
            self._store.keep(self._gate.to_dict(), line.kind, answer)
        return answer

    def __reduce__(self) -> Any:
        raise TypeError("an oracle holds private rows and is never copied or stored")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._gate!r})"


class _Silently:
    """Holds a lock and silences the arithmetic of NumPy."""

    __slots__ = ("_lock", "_silence")

    def __init__(self, lock: AbstractContextManager[object]) -> None:
        self._lock, self._silence = lock, np.errstate(all="ignore")

    def __enter__(self) -> None:
        self._lock.__enter__()
        self._silence.__enter__()

    def __exit__(self, *failure: object) -> None:
        self._silence.__exit__(None, None, None)
        self._lock.__exit__(None, None, None)


def mechanism_of(gate: Gate, rows: Rows, streams: Streams) -> Mechanism:
    """The one that the arithmetic of the plan names."""
    if gate.plan.arithmetic is Arithmetic.EXACT:
        return Exact(streams.noise)
    return Granular(gate.plan, rows.space.n_features, streams.noise)


def _size_and_condition(matrix: Array | SpikedMap) -> tuple[float, float]:
    """Largest entry, or a bound on it, and the ratio of the extreme singular values, infinite without full rank."""
    if isinstance(matrix, SpikedMap):
        return matrix.norm_bound, matrix.condition
    size = float(np.abs(matrix).max(initial=0.0))
    if not 0 < size < math.inf:
        return size, math.inf
    squares = np.linalg.eigvalsh((matrix / size).T @ (matrix / size))
    return size, math.sqrt(float(squares[-1] / squares[0])) if squares[0] > 0 else math.inf
