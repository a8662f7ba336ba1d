"""X and y held by Dask, partition by partition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dpadmm.cells.feature_tables import SINGLE_PRECISION, precision_of
from dpadmm.cells.holders import held_by
from dpadmm.cells.pandas_cells import cells_of
from dpadmm.cells.target_columns import distinct, one_column
from dpadmm.declare.target import Target
from dpadmm.errors import InvalidData, InvalidDataType
from dpadmm.estimators.declared_rows import require_valid
from dpadmm.estimators.sklearn_input import feature_table
from dpadmm.problem.rowmap import RowMap
from dpadmm.rows.dask_parts import DaskParts, Reading, each
from dpadmm.rows.partitioned import PartitionedRows

Array = NDArray[np.float64]


class DaskTable:
    """Partitions of rows with their labels.

    Parameters
    ----------
    X : dask array or dask DataFrame
        Partitioned by rows; blocks of columns are joined. Partitions may be NumPy arrays, CSR matrices or DataFrames.
    y : dask array, dask Series or array
        Partitioned like X. With known partition sizes of both, y is partitioned anew where it is not; an array
        in memory needs those of X.
    tolerant : bool
        Whether cells that are no numbers make a row invalid instead of refusing the table.
    """

    place = "held by Dask"
    assumptions: tuple[str, ...] = ("dask-trusted",)

    def __init__(self, X: Any, y: Any, tolerant: bool) -> None:
        chunks, sizes, self.n_features, self.is_sparse = _table(X)
        # Partitions may be of any type: what was declared of all of them decides, and no cell of one.
        precision = precision_of(X.dtype) if hasattr(X, "chunks") else np.float64
        labels, sizes = _labels(y, len(chunks), sizes)
        full = [place for place, size in enumerate(sizes) if size > 0]
        if not full:
            raise InvalidData("a Dask table without rows", "at least one row", "pass a table that is not empty")
        self._chunks, self._labels = [chunks[place] for place in full], [labels[place] for place in full]
        self._sizes = [int(sizes[place]) for place in full]
        self.n_rows = sum(self._sizes)
        self._read = partial(_read, tolerant, precision)
        if precision is np.float32:
            self.assumptions = (SINGLE_PRECISION, *self.assumptions)

    def labels(self, needed: bool) -> NDArray[Any]:
        """Each label once, as it is: joined in one array, those of one partition could change the type of all."""
        found = each(_distinct, self._labels) if needed else []
        return cells_of([label for labels in found for label in labels])

    def rows(self, rowmap: RowMap, target: Target, weights: Array | None, strict: bool) -> PartitionedRows:
        cuts = np.cumsum(self._sizes)[:-1]
        pieces: Sequence[Array | None] = [None] * len(cuts) + [None] if weights is None else np.split(weights, cuts)
        encode = partial(_encode, target.encode)
        reading = Reading(self._read, encode, target.weigh, rowmap, target.loss, self.n_features)
        parts, condition = DaskParts.measured(self._chunks, self._labels, pieces, self._sizes, reading)
        if condition.sparse and not self.is_sparse:
            raise InvalidData(
                "sparse partitions of a dask array declared dense",
                "a meta of the type of the partitions",
                "pass meta=scipy.sparse.csr_matrix((0, 0)) to map_blocks",
            )
        if strict:
            require_valid(condition.finite, condition.valid)
        return PartitionedRows(parts, self._sizes, self.n_features + int(rowmap.intercept), target.loss.outputs)


def _table(X: Any) -> tuple[list[Any], list[float], int, bool]:
    """Partitions, their numbers of rows (NaN where Dask does not know), features, and whether rows are sparse."""
    if getattr(X, "ndim", 0) != 2 or not hasattr(X, "to_delayed"):
        raise InvalidDataType("a Dask object that is no table", "a 2d dask array or a dask DataFrame", "convert it")
    if not hasattr(X, "chunks"):
        return list(X.to_delayed()), [np.nan] * X.npartitions, len(X.columns), False
    if np.isnan(X.shape[1]):
        raise InvalidData("a dask array with an unknown number of columns", "a known one", "X.compute_chunk_sizes()")
    if X.numblocks[1] != 1:
        X = X.rechunk({1: -1})
    # Dask has no public name for the empty twin of its tables.
    empty = X._meta  # noqa: SLF001
    return X.to_delayed().ravel().tolist(), list(X.chunks[0]), int(X.shape[1]), sparse.issparse(empty)


def _labels(y: Any, partitions: int, sizes: list[float]) -> tuple[list[Any], list[float]]:
    """Labels of each partition, and numbers of rows."""
    known = not np.isnan(sizes).any()
    if not held_by(y, "dask"):
        if not known:
            raise _differ("y in memory, for partitions of X whose sizes Dask does not know")
        y = one_column(y)
        if len(y) != sum(sizes):
            raise _inconsistent()
        return np.split(y, np.cumsum(sizes).astype(int)[:-1]), sizes
    if getattr(y, "ndim", 0) != 1 or not hasattr(y, "to_delayed"):
        raise InvalidData("y that is not one column (bad input shape)", "a 1d dask array or Series", "pass one column")
    found = list(y.chunks[0]) if hasattr(y, "chunks") else [np.nan] * y.npartitions
    if known and not np.isnan(found).any() and found != sizes:
        if sum(found) != sum(sizes):
            raise _inconsistent()
        y, found = y.rechunk((tuple(sizes),)), sizes
    labels = np.asarray(y.to_delayed(), dtype=object).ravel().tolist()
    if len(labels) != partitions:
        raise _differ("X and y in different numbers of partitions")
    if known:
        return labels, sizes
    return labels, (each(len, labels) if np.isnan(found).any() else found)


def _read(tolerant: bool, precision: type[np.floating[Any]], chunk: Any) -> Any:
    return feature_table(_cell_by_cell(chunk), tolerant, None, fewest_rows=0).astype(precision, copy=False)


def _encode(
    encode: Callable[[NDArray[Any]], tuple[NDArray[Any], NDArray[np.bool_]]], chunk: Any
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    return encode(one_column(_cell_by_cell(chunk)))


def _distinct(chunk: Any) -> NDArray[Any]:
    """Labels as objects of Python, exactly."""
    return distinct(one_column(_cell_by_cell(chunk)).astype(object))


def _cell_by_cell(chunk: Any) -> Any:
    """A partition that is complex as objects: its own type is not declared, and one cell may have made it so."""
    return chunk.astype(object) if isinstance(chunk, np.ndarray) and chunk.dtype.kind == "c" else chunk


def _inconsistent() -> InvalidData:
    return InvalidData("X and y of inconsistent lengths", "one label a row", "pass matching X and y")


def _differ(given: str) -> InvalidData:
    return InvalidData(
        given,
        "y partitioned like X, or known partition sizes of both",
        "take both from one DataFrame, or call compute_chunk_sizes() on dask arrays first",
    )
