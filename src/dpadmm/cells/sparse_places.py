"""Whether the index arrays of a sparse table fit its shape. Nothing else looks before it reads there."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from scipy import sparse

from dpadmm.errors import InvalidData


def require_places_inside(X: Any) -> None:
    """Kernels do not look where they read and write, nor do conversions between sparse formats."""
    if sparse.issparse(X) and not _places_are_inside(X):
        raise InvalidData(
            "a sparse table whose index arrays do not fit its shape", "a valid sparse matrix", "build the matrix again"
        )


def _places_are_inside(X: Any) -> bool:
    if X.format == "coo":
        return all(
            each.dtype.kind in "iu" and len(each) == X.nnz and (X.nnz == 0 or (each.min() >= 0 and each.max() < size))
            for each, size in ((X.row, X.shape[0]), (X.col, X.shape[1]))
        )
    if X.format not in ("csr", "csc", "bsr"):
        return True
    if X.indices.dtype.kind not in "iu" or X.indptr.dtype.kind not in "iu":
        return False
    frame = copy.copy(with_signed_places(X))  # the check may put other arrays into it
    try:
        frame.check_format(full_check=False)
    except ValueError:
        return False
    return _runs_are_inside(frame)


def with_signed_places(X: Any) -> Any:
    """SciPy has no code for places of 64 bits without a sign, and warns of shorter ones; those that do not fit come out
    negative."""
    if X.format not in ("csr", "csc", "bsr") or "u" not in (X.indices.dtype.kind, X.indptr.dtype.kind):
        return X
    signed = copy.copy(X)
    signed.indices, signed.indptr = (places.astype(np.int64) for places in (X.indices, X.indptr))
    return signed


def _runs_are_inside(X: Any) -> bool:
    """Whether the runs of a CSR, CSC or BSR matrix follow each other, with all places inside.

    SciPy's own full check takes the differences of all rows, looks at none if the last row ends at zero, and never
    finds an unsigned one negative.
    """
    starts, places, width = X.indptr, X.indices, X.shape[0 if X.format == "csc" else 1]
    if X.format == "bsr":
        width //= X.blocksize[1]
    if not bool((starts[:-1] <= starts[1:]).all()):
        return False
    return not places.size or bool(places.min() >= 0 and places.max() < width)
