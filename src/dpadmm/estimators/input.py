"""What users pass as X and y, made into arrays without a message that quotes a value (scikit-learn's would)."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpadmm.errors import InvalidData, InvalidDataType
from dpadmm.estimators.text_columns import not_numbers
from dpadmm.problem.norms import require_places_inside

TEXT_AND_OBJECTS, DATES = set("OUSTV"), set("Mm")


def held_by(X: Any, package: str) -> bool:
    """Whether `X` is an object of this package, found out without importing it."""
    return any(kind.__module__.partition(".")[0] == package for kind in type(X).__mro__)


def on_accelerator(X: Any) -> bool:
    """Whether `X` is a tensor of torch that is not in this machine's memory."""
    return held_by(X, "torch") and getattr(getattr(X, "device", None), "type", "cpu") != "cpu"


def brought_here(X: Any) -> Any:
    """What Dask or torch holds as an array or DataFrame in memory, without a copy where it is there already."""
    if held_by(X, "dask"):
        return X.compute()
    if not held_by(X, "torch"):
        return X
    try:
        tensor = X.detach().cpu()
        return (tensor if hasattr(np, str(tensor.dtype).removeprefix("torch.")) else tensor.float()).numpy()
    except (TypeError, RuntimeError, AttributeError):
        raise InvalidDataType(
            "a torch object that is no dense tensor of numbers", "a dense tensor", "pass X.to_dense(), or an array"
        ) from None


def named(X: Any) -> Any:
    """What tells names and number of the features: of a dask DataFrame, its empty twin."""
    return X._meta if held_by(X, "dask") and hasattr(X, "columns") else X


def require_usable_names(X: Any) -> None:
    """Refuse, before anything is charged, names of columns that a fitted model could not keep."""
    names = list(getattr(X, "columns", ()))
    kinds = {type(name) for name in names}
    if len(kinds) > 1 and any(issubclass(kind, str) for kind in kinds):
        raise InvalidDataType(
            "columns some of which are named by text and some not",
            "names that are all text, or none",
            "name all of them by text: X.columns = X.columns.astype(str)",
        )
    if len(set(names)) < len(names):
        raise InvalidData("two columns of the same name", "a name for each column", "rename or drop one of them")


def numeric_table(X: Any, tolerant: bool = False) -> Any:
    """`X` itself if it is numeric already, else converted to float64, else refused.

    Parameters
    ----------
    tolerant : bool
        Turn cells that are no numbers into NaN instead of refusing the table.
    """
    X = _unmasked(brought_here(X))
    if getattr(X, "format", "csr") != "csr":
        require_places_inside(X)  # before scikit-learn converts it, which does not look
    require_usable_names(X)
    if not hasattr(X, "iloc") and not hasattr(getattr(X, "dtype", None), "kind"):
        X = _array(X)
    kinds = _kinds(X)
    if "c" in kinds:
        raise InvalidData("X with complex entries. Complex data not supported", "real numbers", "pass real features")
    if X.ndim != 2:
        raise InvalidData(
            f"X with {X.ndim} dimensions. Expected 2D array, got {X.ndim}D array",
            "rows and columns",
            "Reshape your data",
        )
    if kinds & DATES:
        raise not_numbers(X)
    if not kinds & TEXT_AND_OBJECTS:
        return X
    numbers = _converted(X, tolerant)
    if not hasattr(X, "iloc"):
        return numbers
    import pandas as pd

    return pd.DataFrame(numbers, columns=X.columns, index=X.index)


def feature_table(X: Any, tolerant: bool, estimator: Any, fewest_rows: int = 1) -> Any:
    """`X` as a numeric array or CSR matrix; whether its entries are finite is not looked at."""
    from sklearn.utils.validation import check_array

    if held_by(X, "dask") or on_accelerator(X):
        raise InvalidDataType(
            "a table held by Dask or on a device",
            "rows in memory: models are trained where the rows are, searches and transformers are not",
            "fit a model by itself, or pass X.compute() or X.cpu()",
        )
    return check_array(
        numeric_table(X, tolerant),
        accept_sparse="csr",
        dtype=[np.float64, np.float32],
        ensure_all_finite=False,
        ensure_min_samples=fewest_rows,
        estimator=estimator,
    )


def one_column(y: Any) -> NDArray[Any]:
    """`y` as a one-dimensional array."""
    if isinstance(y, np.ma.MaskedArray) and y.mask is not np.ma.nomask:
        raise InvalidDataType("y with a mask", "a label for every row", "drop the rows without one")
    try:
        array = np.asarray(brought_here(y))
    except ValueError:
        array = np.empty((0, 0))
    if array.dtype.kind == "c":
        raise InvalidData("y with complex entries. Complex data not supported", "real targets", "pass real targets")
    if array.ndim == 2 and array.shape[1] == 1:
        from sklearn.exceptions import DataConversionWarning

        message = "A column-vector y was passed when a 1d array was expected"
        warnings.warn(message, DataConversionWarning, stacklevel=5)
        array = array.ravel()
    if array.ndim != 1:
        raise InvalidData("y that is not one column (bad input shape)", "a 1d array", "pass one label a row")
    return array


def numeric_column(y: NDArray[Any]) -> NDArray[np.float64]:
    """A copy of the numbers of `y`; what is no number becomes NaN."""
    if y.dtype.kind in "biuf":
        return y.astype(np.float64)
    return np.fromiter((_number(cell) for cell in y), dtype=np.float64, count=len(y))


def equals(y: NDArray[Any], label: Any) -> NDArray[np.bool_]:
    """Where `y` is `label`; a cell that cannot be compared is not."""
    if y.dtype.kind != "O":
        return np.broadcast_to(np.asarray(y == label, dtype=bool), y.shape)
    return np.fromiter((_same(cell, label) for cell in y), dtype=bool, count=len(y))


def _unmasked(X: Any) -> Any:
    """A masked cell holds no number."""
    if not isinstance(X, np.ma.MaskedArray) or X.mask is np.ma.nomask:
        return X
    kind = np.result_type(X.dtype, np.float32) if X.dtype.kind in "biuf" else np.float64
    return np.ma.filled(X.astype(kind), np.nan)


def _array(X: Any) -> NDArray[Any]:
    try:
        return np.asarray(X)
    except ValueError:
        raise InvalidData("X with rows of different lengths", "rows and columns", "pass one row a record") from None


def _kinds(X: Any) -> set[str]:
    if hasattr(X, "iloc") and hasattr(X, "dtypes") and X.ndim == 2:
        return {str(getattr(dtype, "kind", "O")) for dtype in X.dtypes}
    return {str(X.dtype.kind)}


def _converted(X: Any, tolerant: bool) -> NDArray[np.float64]:
    array = np.asarray(X)
    try:
        return array.astype(np.float64)
    except (ValueError, OverflowError, TypeError) as problem:
        wrong_type = isinstance(problem, TypeError)
    if tolerant:
        return np.array([_number(cell) for cell in array.ravel()], dtype=np.float64).reshape(array.shape)
    if wrong_type:
        raise InvalidDataType(
            "X with a cell whose type is no number: each argument must be a string or a real number",
            "numeric features",
            "encode categories first (see `dpadmm fit`)",
        )
    raise not_numbers(X)


def _number(cell: Any) -> float:
    try:
        return float(cell)
    except (TypeError, ValueError, OverflowError):
        return float("nan")


def _same(cell: Any, label: Any) -> bool:
    try:
        return bool(cell == label)
    except (TypeError, ValueError):
        return False
