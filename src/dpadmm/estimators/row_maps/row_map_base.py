"""What all public maps of single rows have in common: a rule fixed before the data, from a row to a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from dpadmm.cells.feature_tables import numeric_table, with_names
from dpadmm.errors import InvalidData


class PublicRowMap(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the transformers that look at each row by itself and learn nothing from rows.

    A subclass says in `_prepare` what it needs for a number of features, and in `_map` what becomes of a block of rows.

    Formal guarantees
    -----------------
    What a row is mapped to is a function of this row, the parameters and the number of features. So two tables that
    differ in one row are mapped to two tables that differ in one row, and training on mapped rows keeps every promise
    made for them (docs/proofs/rows.md).
    """

    precisions: ClassVar[Sequence[type[np.floating[Any]]]] = (np.float64, np.float32)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Prepare the map for this number of features; nothing is learned from the rows."""
        self._rows(X, reset=True)
        self._prepare(int(self.n_features_in_))
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """Mapped rows, dense."""
        check_is_fitted(self)
        rows = self._rows(X, reset=False)
        with np.errstate(all="ignore"):  # a warning about a row would be a message about it
            return self._map(rows)

    def described(self) -> str:
        """The map in one line, with all its parameters."""
        parameters = self.get_params(deep=False).items()
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in parameters)})"

    def _prepare(self, n_features: int) -> None:
        """Refuse what cannot be mapped, and compute what all rows share."""
        raise NotImplementedError

    def _map(self, rows: NDArray[Any]) -> NDArray[Any]:
        raise NotImplementedError

    def _rows(self, X: Any, reset: bool) -> NDArray[Any]:
        if sparse.issparse(X):
            raise InvalidData(
                f"sparse rows, which {type(self).__name__} makes dense", "a dense table", "pass X.toarray()"
            )
        rows = validate_data(
            self, with_names(numeric_table(X), X), reset=reset, dtype=list(self.precisions), ensure_all_finite=False
        )
        return np.asarray(rows)
