"""What a loader returns: one public reference data set with its split, names, licence and provenance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Features: TypeAlias = NDArray[Any] | sp.csr_matrix


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A public data set, ready for an estimator.

    Attributes
    ----------
    name : str
    X : ndarray or csr_matrix of shape (n_rows, n_features)
    y : ndarray of shape (n_rows,)
        -1 and +1 for the two-class sets, the digit for mnist.
    X_test, y_test : like X and y, or None where the home of the data has no split
    feature_names : tuple of str or None
    extras : mapping
        Whatever else the file holds (original ranges, source attribute of each column, …).
    description, licence : str
    verified : bool
        Whether the arrays have the checksum of the catalogue. False for a file of your own in `$DPADMM_DATA`.
    """

    name: str
    X: Features
    y: NDArray[Any]
    X_test: Features | None = None
    y_test: NDArray[Any] | None = None
    feature_names: tuple[str, ...] | None = None
    extras: Mapping[str, Any] = field(default_factory=dict)
    description: str = ""
    licence: str = ""
    verified: bool = False

    def __repr__(self) -> str:
        kind = "dense" if isinstance(self.X, np.ndarray) else "CSR"
        test = "no test split" if self.X_test is None else f"test {self.X_test.shape[0]} rows"
        return f"Dataset({self.name!r}, {self.X.shape[0]} × {self.X.shape[1]} {kind}, {test})"
