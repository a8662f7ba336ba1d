"""Per-example clipping of linear models without forming a gradient: a row's gradient is slope ⊗ row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

SAFETY = 1.0 - 1e-6
"""Contributions are clipped to C·SAFETY, so that rounding to float32 (relative error 6e-8) cannot exceed C."""


SMALLEST_CLIP = 1e-100
"""Below this, products of clip and row reach the subnormal numbers, where rounding is no longer relative."""

SMALLEST_SCALE = 1e-305
"""A slope so large that it would be scaled by less counts as zero: the subnormal numbers begin there, too."""


def clip_slopes(slopes: NDArray[Any], row_norms: NDArray[np.float64], clip_norm: float) -> NDArray[np.float64]:
    """Scale each slope so that ‖slope ⊗ row‖ = ‖slope‖·‖row‖ ≤ clip_norm.

    Parameters
    ----------
    slopes : (m,) or (m, K)
        Derivative of the loss in the margin, one a row.
    row_norms : (m,)
        Euclidean norms of the rows, accumulated in float64.
    clip_norm : float
        The bound C on one record's contribution.

    Notes
    -----
    *Formal guarantees.* For clips of at least `SMALLEST_CLIP`, each returned slope times its row has norm at most
    `clip_norm`; a slope becomes zero if it, or the norm of its row, is not finite, or if their product exceeds the clip
    by a factor of 1/`SMALLEST_SCALE`. `LocalRows` holds finite rows only.
    """
    usable = np.isfinite(slopes) & _per_row(np.isfinite(row_norms), slopes)
    slopes = np.where(usable, slopes, 0.0).astype(np.float64, copy=False)
    sizes = np.abs(slopes) if slopes.ndim == 1 else _vector_norms(slopes)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        # A slope of zero times an infinite norm is no number, which the minimum leaves out.
        factors = np.fmin(1.0, clip_norm * SAFETY / (sizes * row_norms))
    factors = np.where(factors < SMALLEST_SCALE, 0.0, factors)
    return np.asarray(slopes * _per_row(factors, slopes))


def _per_row(values: NDArray[Any], slopes: NDArray[Any]) -> NDArray[Any]:
    return values if slopes.ndim == 1 else values[:, None]


def _vector_norms(slopes: NDArray[np.float64]) -> NDArray[np.float64]:
    peak = np.abs(slopes).max(axis=1, initial=0.0)
    safe = np.where(peak > 0, peak, 1.0)
    scaled = slopes / safe[:, None]
    norms: NDArray[np.float64] = safe * np.sqrt(squared_lengths(scaled))
    return np.where(peak > 0, norms, 0.0)


def squared_lengths(rows: NDArray[Any]) -> NDArray[Any]:
    """‖row‖² of each row, to the same last bit wherever the row stands.

    NumPy adds the entries of a long row in another order where the row is alone.
    """
    shown = np.concatenate([rows, rows]) if len(rows) == 1 else rows
    found: NDArray[Any] = np.einsum("ij,ij->i", shown, shown)
    return found[: len(rows)]
