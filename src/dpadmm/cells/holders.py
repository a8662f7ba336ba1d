"""Who holds a table: this process, Dask or torch; found out without importing them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpadmm.errors import InvalidDataType


@dataclass(frozen=True, eq=False)
class NamedArray:
    """An array of one fixed type with names for its columns, for which a DataFrame would be read as double precision.

    Attributes
    ----------
    X : (n, d) array
        Private, and never copied.
    columns : tuple of str
        Public.
    """

    X: NDArray[Any]
    columns: tuple[str, ...]


def held_by(X: Any, package: str) -> bool:
    """Whether `X` is an object of this package."""
    return is_of(type(X), package)


def is_of(kind: type, package: str) -> bool:
    """Whether a type, or one it is derived from, is of this package."""
    return any(base.__module__.partition(".")[0] == package for base in kind.__mro__)


def on_accelerator(X: Any) -> bool:
    """Whether `X` is a tensor of torch that is not in this machine's memory."""
    return held_by(X, "torch") and getattr(getattr(X, "device", None), "type", "cpu") != "cpu"


def brought_here(X: Any) -> Any:
    """What Dask or torch holds as an array or DataFrame in memory, without a copy where it is there already.

    A tensor of a type that NumPy does not know, such as bfloat16, becomes float32: its type alone decides.
    """
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
    """What tells names and number of the features: of what is not read here, an empty twin."""
    if isinstance(X, NamedArray):
        import pandas as pd

        return pd.DataFrame(columns=list(X.columns))
    if hasattr(X, "empty_twin"):
        return X.empty_twin
    # Dask has no public name for the empty twin of its tables.
    return X._meta if held_by(X, "dask") and hasattr(X, "columns") else X  # noqa: SLF001
