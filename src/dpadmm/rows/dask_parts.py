"""Parts held by Dask, read where Dask keeps them: in threads, processes or a cluster, and larger than any memory.

A task never raises. A scheduler would log its arguments, and so private rows: what went wrong comes back as a value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce, wraps
from hashlib import sha256, shake_256
from operator import and_
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dpadmm import kernels
from dpadmm.errors import DpadmmError, InvalidData, QueryRefused
from dpadmm.kernels.threads import at_most_threads
from dpadmm.privacy.questions import At, Question
from dpadmm.privacy.sampling import Batch
from dpadmm.problem.losses.base import Loss
from dpadmm.problem.rowmap import RowMap
from dpadmm.rows.lattice_sum import as_numbers
from dpadmm.rows.local import LocalRows
from dpadmm.rows.norms import finite_rows
from dpadmm.rows.packed import PackedRows
from dpadmm.rows.partitioned import FAN_IN, added

Array = NDArray[np.float64]

KEYS = np.frombuffer(shake_256(b"the words of a table").digest(512), dtype="<u8").astype(np.uint64)
"""Fixed, because a partition may be read in several processes."""

RUNS_TOGETHER = 1 << 10


@dataclass(frozen=True, eq=False)
class Reading:
    """The public rules by which a partition becomes rows.

    Attributes
    ----------
    table : callable
        From what Dask holds to a numeric array or CSR matrix.
    encode : callable
        From labels to targets, and which of them are valid.
    weigh : callable or None
        From targets to weights within [0, 1].
    """

    table: Callable[[Any], Any]
    encode: Callable[[Any], tuple[NDArray[Any], NDArray[np.bool_]]]
    weigh: Callable[[NDArray[Any]], Array] | None
    rowmap: RowMap
    loss: Loss
    n_features: int


@dataclass(frozen=True)
class Condition:
    """Of all rows of a partition, or of several."""

    finite: bool
    valid: bool
    sparse: bool

    def __and__(self, other: Condition) -> Condition:
        return Condition(self.finite and other.finite, self.valid and other.valid, self.sparse or other.sparse)


@dataclass(frozen=True, eq=False)
class Kept:
    """What is kept of a partition between two sums: a few numbers a row, and a digest that shows a changed table."""

    rows: LocalRows
    mark: bytes
    condition: Condition
    table: Callable[[Any], Any]

    def read(self, chunk: Any) -> LocalRows:
        """The rows again; clipping by norms measured before is right for the same rows only."""
        X = self.table(chunk)
        if fingerprint(X) != self.mark:
            raise QueryRefused("a partition that was read twice and differed; persist the table, or make it repeatable")
        return self.rows.holding(X)


@dataclass(frozen=True, eq=False)
class Asked:
    """A question, where it is asked, and the kernels that answer it."""

    question: Question[Any]
    at: At
    engine: kernels.Name

    def of(self, rows: LocalRows, batch: Batch) -> Array:
        with kernels.use(self.engine):
            return as_numbers(rows.ask(self.question, self.at, batch))


@dataclass(frozen=True, eq=False)
class Change:
    """A method of rows that gives other rows, what it is given, and the kernels that measure them."""

    name: str
    argument: Any
    engine: kernels.Name

    def of(self, rows: LocalRows) -> LocalRows:
        with kernels.use(self.engine):
            return cast(LocalRows, getattr(rows, self.name)(self.argument))


@dataclass(frozen=True, eq=False)
class Failure:
    """What a task returns in place of an exception."""

    error: DpadmmError


def quiet(task: Callable[..., Any]) -> Callable[..., Any]:
    """A task that neither raises nor warns, and hands on the failures of others."""

    @wraps(task)
    def guarded(*arguments: Any) -> Any:
        failed = next((given for given in arguments if isinstance(given, Failure)), None)
        if failed is not None:
            return failed
        try:
            # One thread: Dask runs as many tasks beside this one as there are processors.
            with np.errstate(all="ignore"), at_most_threads(1):
                return task(*arguments)
        except DpadmmError as error:
            return Failure(error)
        except Exception:
            return Failure(_unreadable())

    return guarded


@quiet
def measure(chunk: Any, labels: Any, weights: Array | None, size: int, reading: Reading) -> Kept:
    """A partition's rows without the table; `size` and the features of the first partition hold for it."""
    X = reading.table(chunk)
    target, valid = reading.encode(labels)
    if X.shape != (size, reading.n_features) or len(target) != size:
        raise InvalidData(
            "partitions of X and y of inconsistent lengths or widths",
            "as many labels as rows in each partition, and the same columns in all",
            "partition X and y alike",
        )
    condition = Condition(bool(finite_rows(X).all()), bool(valid.all()), bool(sparse.issparse(X)))
    if reading.weigh is not None:
        weights = reading.weigh(target) * (1.0 if weights is None else weights)
    packed = PackedRows.of(reading.rowmap, X, valid)
    rows = LocalRows(packed, target, reading.loss, reading.rowmap.row_norm, weights)
    return Kept(rows.bare(), fingerprint(X), condition, reading.table)


@quiet
def condition_of(kept: Kept) -> Condition:
    return kept.condition


@quiet
def both(*conditions: Condition) -> Condition:
    return reduce(and_, conditions)


@quiet
def changed(kept: Kept, chunk: Any, change: Change) -> Kept:
    """The partition's rows in other coordinates, or under another map."""
    return replace(kept, rows=change.of(kept.read(chunk)).bare())


@quiet
def answer(kept: Kept, chunk: Any, asked: Asked, batch: Batch) -> Array:
    return asked.of(kept.read(chunk), batch)


@quiet
def gathered(*values: Any) -> list[Any]:
    return list(values)


@quiet
def add(*answers: Array) -> Array:
    return added(answers)


class DaskParts:
    """Partitions of a Dask collection.

    Parameters
    ----------
    chunks : sequence of Delayed
        The partitions.
    kept : sequence of Delayed
        `Kept` of each, in memory where Dask keeps what is persisted.
    """

    def __init__(self, chunks: Sequence[Any], kept: Sequence[Any]) -> None:
        self._chunks, self._kept = tuple(chunks), tuple(kept)

    @classmethod
    def measured(
        cls,
        chunks: Sequence[Any],
        labels: Sequence[Any],
        weights: Sequence[Array | None],
        sizes: Sequence[int],
        reading: Reading,
    ) -> tuple[DaskParts, Condition]:
        """One pass over the table, and the condition of all rows."""
        rules = _once(reading)
        kept = [_task(measure, *each, rules) for each in zip(chunks, labels, weights, sizes, strict=True)]
        parts = cls(chunks, _persisted(kept))
        return parts, cast(Condition, computed(_tree(both, [_task(condition_of, each) for each in parts._kept])))

    def total(self, question: Question[Any], at: At, batches: Sequence[Batch | None]) -> Array:
        asked = _once(Asked(question, at, kernels.active_name()))
        answers = [
            _task(answer, kept, chunk, asked, batch)
            for kept, chunk, batch in zip(self._kept, self._chunks, batches, strict=True)
            if batch is not None
        ]
        return cast(Array, computed(_tree(add, answers)))

    def changed(self, change: str, argument: Any) -> DaskParts:
        wanted = _once(Change(change, argument, kernels.active_name()))
        kept = [_task(changed, *each, wanted) for each in zip(self._kept, self._chunks, strict=True)]
        return DaskParts(self._chunks, _persisted(kept))


def each(function: Callable[[Any], Any], chunks: Sequence[Any]) -> list[Any]:
    """function(chunk) of every partition, brought here; for what is public, or never leaves."""
    return list(computed(_task(gathered, *[_task(quiet(function), chunk) for chunk in chunks])))


def computed(task: Any) -> Any:
    """The value of a task, or what went wrong, without a word of what Dask or the user's own tasks say about it."""
    import dask

    try:
        value = dask.compute(task)[0]
    except Exception:
        raise _unreadable() from None
    if isinstance(value, Failure):
        raise value.error
    return value


def fingerprint(X: Any) -> bytes:
    """A digest of every bit and its place: for accidents, which it overlooks with chance 2⁻³³, not for forgers."""
    digest = sha256(repr(X.shape).encode())
    for part in (X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,):
        digest.update(f"{part.dtype.str}{part.shape}".encode())
        for compressed in _compressed(np.ascontiguousarray(part).reshape(-1).view(np.uint8)):
            digest.update(compressed.data)
    return digest.digest()


def _compressed(stored: NDArray[np.uint8]) -> Iterator[NDArray[Any]]:
    """Σ keyⱼ·wordⱼ mod 2⁶⁴ of every few words of 32 bits, and the bytes left over: sums cost less than digests.

    Keys have 64 bits, so that no difference of two words, whatever power of two divides it, is shifted out altogether.
    """
    run = KEYS.size * np.dtype(np.uint32).itemsize
    whole = len(stored) - len(stored) % run
    words = stored[:whole].view(np.uint32).reshape(-1, KEYS.size)
    for start in range(0, len(words), RUNS_TOGETHER):
        yield np.einsum("ij,j->i", words[start : start + RUNS_TOGETHER].astype(np.uint64), KEYS)
    yield stored[whole:]


def _task(function: Callable[..., Any], *arguments: Any) -> Any:
    import dask

    return dask.delayed(function, pure=False)(*arguments)


def _once(value: Any) -> Any:
    """A value that all tasks share."""
    import dask

    return dask.delayed(value, pure=False, traverse=False)


def _persisted(tasks: Sequence[Any]) -> tuple[Any, ...]:
    import dask

    try:
        return tuple(dask.persist(*tasks))
    except Exception:
        raise _unreadable() from None


def _tree(join: Callable[..., Any], tasks: Sequence[Any]) -> Any:
    while len(tasks) > 1:
        tasks = [_task(join, *tasks[start : start + FAN_IN]) for start in range(0, len(tasks), FAN_IN)]
    return tasks[0]


def _unreadable() -> InvalidData:
    return InvalidData(
        "a Dask partition that could not be read or summed",
        "partitions that compute without an error, of numeric features",
        "compute a partition by itself to see the error: its text may quote private values, so it is not shown here",
    )
