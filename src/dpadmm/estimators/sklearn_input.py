"""X and y as scikit-learn's tools expect them, without a message that quotes a value, as theirs would."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpadmm.cells.feature_tables import numeric_table
from dpadmm.cells.holders import held_by, on_accelerator
from dpadmm.cells.target_columns import one_column
from dpadmm.declare.callers import callers_line
from dpadmm.errors import InvalidData, InvalidDataType


def feature_table(X: Any, tolerant: bool, estimator: Any, fewest_rows: int = 1) -> Any:
    """`X` as a numeric array or CSR matrix; whether its entries are finite is not looked at."""
    from sklearn.utils.validation import check_array

    if held_by(X, "dask") or on_accelerator(X):
        raise InvalidDataType(
            "a table held by Dask or on a device",
            "rows in memory: models are trained where the rows are, searches and transformers are not",
            "fit a model by itself, or pass X.compute() or X.cpu()",
        )
    if hasattr(X, "for_model"):
        raise InvalidDataType(
            "rows of many owners",
            "rows in one place: owners fit a model together, but no search, transformer or audit",
            "fit a model by itself",
        )
    table = numeric_table(X, tolerant)
    _require_entries(table.shape, fewest_rows)
    return check_array(
        table,
        accept_sparse="csr",
        dtype=[np.float64, np.float32],
        ensure_all_finite=False,
        ensure_min_samples=0,
        estimator=estimator,
    )


def _require_entries(shape: tuple[int, int], fewest_rows: int) -> None:
    """Refuse a table without rows or columns; the words are those that scikit-learn's tools look for.

    The number of rows is left out of them: under add-remove it is secret.
    """
    rows, features = shape
    if rows < fewest_rows:
        raise InvalidData("X with 0 sample(s)", "at least one row", "pass a table with rows")
    if not features:
        given = "X with 0 feature(s) (shape=(, 0)) while a minimum of 1 is required"
        raise InvalidData(given, "at least one column", "pass a table with columns")


def label_column(y: Any) -> NDArray[Any]:
    """`y` as a column (`cells.target_columns.one_column`); one that comes as a matrix is taken with a warning."""
    if getattr(y, "ndim", 1) == 2 and y.shape[1] == 1:
        from sklearn.exceptions import DataConversionWarning

        message = "A column-vector y was passed when a 1d array was expected"
        warnings.warn(message, DataConversionWarning, stacklevel=callers_line())
    return one_column(y)
