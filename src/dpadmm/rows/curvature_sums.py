"""How curved the logistic loss is along each feature at a public point: Σ l''(⟨a, x⟩) · weights∘a∘a.

A contribution is a number times a vector, as a clipped gradient is: here l'' takes the place of the slope and
weights∘a∘a that of the row, so that the same clip keeps it in the unit ball.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dpadmm.errors import QueryRefused
from dpadmm.kernels.clipping import clip_slopes, squared_lengths
from dpadmm.problem.losses import Logistic
from dpadmm.problem.losses.base import Loss
from dpadmm.rows.wide import margins

Array = NDArray[np.float64]

LARGEST_WEIGHED = 1e100
"""Weights under which a squared entry of a row could be larger are refused: its own square must stay a number."""


def require_curvature(loss: Loss, weights: Array, row_norm: float) -> None:
    """Of public numbers alone: the loss, the weights asked for and the declared norm of a row."""
    if type(loss) is not Logistic:
        raise QueryRefused("the curvature along each feature is that of the logistic loss alone")
    if not float(weights.max(initial=0.0)) * row_norm**2 <= LARGEST_WEIGHED:
        raise QueryRefused("weights that stretch squares of rows of the declared norm too far")


def curved(rows: Any, x: Array, weights: Array, loss: Loss) -> tuple[Any, Array]:
    """Vectors weights∘a∘a, in the place of the rows, and numbers: the contribution of a row is their product.

    Formal guarantees
    -----------------
    Every product has norm at most one and no negative entry, and depends on its own row and public numbers alone. It is
    zero where it, or its norm, is not finite.
    """
    bends = loss.curvature(margins(rows, x), np.ones(rows.shape[0]))
    is_sparse = sparse.issparse(rows)
    values = rows.data if is_sparse else rows
    np.square(values, out=values)
    values *= weights[rows.indices] if is_sparse else weights
    lengths = _lengths(rows)
    # A length is finite where all entries are, and there is one a row to look at.
    values[~np.isfinite(values if is_sparse else lengths)] = 0.0
    return rows, clip_slopes(bends, lengths, 1.0)


def _lengths(rows: Any) -> Array:
    """Squares that underflow are of no account: nothing shorter than four is clipped, l'' being at most a quarter."""
    if sparse.issparse(rows):
        return np.asarray(np.sqrt(rows.power(2) @ np.ones(rows.shape[1])))
    return np.asarray(np.sqrt(squared_lengths(rows)))
