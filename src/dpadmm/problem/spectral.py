"""Upper bounds on spectral norms, on which step sizes may safely rest."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from dpadmm.problem.checks import Array

DENSE_UP_TO = 400
ROUNDING = 1e-12
LANCZOS_SAFETY = 1e-6
LANCZOS_RESTARTS = 200


def squared_norm_bound(matrix: Any) -> float:
    """Return an upper bound on ‖matrix‖₂², tight to a relative 1e-6 wherever Lanczos converges.

    Small matrices are decomposed; large ones go through Lanczos, whose value is raised by a safety factor. The bound
    ‖M‖₂² ≤ ‖M‖₁‖M‖_∞, which needs no iteration, is taken where it is the smaller of the two or Lanczos fails.

    Parameters
    ----------
    matrix : ndarray or sparse array
        Any real matrix, possibly without rows.

    Examples
    --------
    >>> import numpy as np
    >>> round(squared_norm_bound(np.diag([1.0, 3.0])), 9)
    9.0
    """
    if min(matrix.shape) == 0:
        return 0.0
    size = abs(matrix)
    simple = float(np.max(size.sum(axis=0)) * np.max(size.sum(axis=1)))
    if simple == 0.0:
        return 0.0
    if min(matrix.shape) <= DENSE_UP_TO:
        gram = matrix @ matrix.T if matrix.shape[0] <= matrix.shape[1] else matrix.T @ matrix
        dense = gram.toarray() if sparse.issparse(gram) else gram
        return min(simple, float(np.linalg.eigvalsh(dense)[-1]) * (1 + ROUNDING))
    return min(simple, _lanczos(matrix, simple) * (1 + LANCZOS_SAFETY))


def _lanczos(matrix: Any, otherwise: float) -> float:
    size = matrix.shape[1]
    # Irrational steps around the circle: no symmetry of a public graph makes this start orthogonal to the answer.
    start: Array = np.modf(np.arange(1, size + 1) * 0.6180339887498949)[0] - 0.5
    gram = LinearOperator((size, size), matvec=lambda v: matrix.T @ (matrix @ v), dtype=float)
    try:
        values = eigsh(
            gram,
            k=1,
            which="LA",
            v0=start,
            tol=LANCZOS_SAFETY / 100,
            maxiter=LANCZOS_RESTARTS,
            return_eigenvectors=False,
        )
    except ArpackError:
        return otherwise
    return float(values[0])
