"""A table in a torch tensor, with what has to be done to each row, measured and done on the tensor's own device.

Additions along a row fold it in halves, operation by operation. Each operation rounds by IEEE 754 alone, so that what
is computed for a row depends neither on its place nor on the rows beside it: a reduction of torch, or a product of its
linear algebra, would promise neither (docs/proofs/float.md, "The place of a row").
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpadmm.errors import UnsupportedProblem
from dpadmm.kernels.threads import LONGEST_RUN
from dpadmm.problem.rowmap import RowMap
from dpadmm.rows.packed import SMALLEST_FACTOR, SMALLEST_NORM

Tensor = Any

BLOCK_ENTRIES = 1 << 24
"""Entries of a block of rows in double precision: many, because starting an operation costs as much as a million."""

EMULATION = "CUBLAS_EMULATE_DOUBLE_PRECISION"
"""With it the vendor's library puts products of doubles together from shorter numbers; no bound here is for that."""

EPSILON = 2.0**-52
"""The distance from one to the next double."""


@dataclass(frozen=True, eq=False)
class PackedTensor:
    """`PackedRows` on a device.

    Attributes
    ----------
    X : (n, d) tensor
        The rows as they were given.
    factors, norms : (n,) tensors, float64
        Scale and norm of each mapped row.
    """

    X: Tensor
    factors: Tensor
    norms: Tensor
    intercept: bool = False
    lower: Tensor | None = None
    upper: Tensor | None = None
    inverse: Tensor | None = None

    @property
    def n_rows(self) -> int:
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        """Of a mapped row."""
        return int(self.X.shape[1]) + int(self.intercept)

    def block(self, rows: slice | Tensor) -> Tensor:
        """Mapped rows, by a slice or by their numbers, in float64."""
        import torch

        factors = self.factors[rows]
        raw = self.X[rows].to(torch.float64)
        raw = torch.where((factors == 0)[:, None], 0.0, raw)
        if self.lower is not None and self.upper is not None and self.inverse is not None:
            raw = (raw.clamp(self.lower, self.upper) - self.lower) * self.inverse
        if self.intercept:
            raw = torch.cat([raw, torch.ones_like(raw[:, :1])], dim=1)
        return raw * factors[:, None]

    def blocks(self) -> Iterator[slice]:
        return row_blocks(self.n_rows, self.n_features)


def require_double_precision(device: Any) -> None:
    """Refuse a device, or a setting of it, on which sums would not have the rounding that is charged."""

    if os.environ.get(EMULATION, "0") not in ("", "0"):
        raise UnsupportedProblem(f"{EMULATION} in the environment", "double precision as it is", "unset it")
    if not _adds_in_double_precision(device):
        raise UnsupportedProblem(
            f"rows on a device of type {device.type!r}, which has no double precision",
            "a device with it: sums in single precision can move further than their noise covers",
            "pass X.cpu()",
        )


def pack_tensor(rowmap: RowMap, X: Tensor, keep: Tensor | None = None) -> PackedTensor:
    """`PackedRows.of` where the rows are."""
    import torch

    lower = upper = inverse = None
    if rowmap.lower is not None and rowmap.upper is not None:
        low, high = np.asarray(rowmap.lower), np.asarray(rowmap.upper)
        lower, upper, inverse = (to_device(values, X.device) for values in (low, high, 1 / (high - low)))
    factors, norms = (torch.empty(X.shape[0], dtype=torch.float64, device=X.device) for _ in range(2))
    for block in row_blocks(X.shape[0], X.shape[1] + 1):
        peak, ratio, finite = _measured(X[block], lower, upper, inverse, rowmap.intercept)
        shrink = ((rowmap.row_norm / peak) / torch.where(ratio > 0, ratio, 1.0)).clamp(max=1.0)
        norm = (shrink * peak * ratio).clamp(min=SMALLEST_NORM)
        alive = finite & (shrink >= SMALLEST_FACTOR) & torch.isfinite(norm)
        if keep is not None:
            alive &= keep[block]
        factors[block], norms[block] = torch.where(alive, shrink, 0.0), torch.where(alive, norm, 0.0)
    return PackedTensor(X, factors, norms, rowmap.intercept, lower, upper, inverse)


def all_finite(X: Tensor) -> bool:
    """Whether every entry is a finite number, found block by block."""
    import torch

    return all(bool(torch.isfinite(X[block]).all()) for block in row_blocks(*X.shape))


def folded(terms: Tensor) -> Tensor:
    """Σ along each row; `terms` is written over."""
    while terms.shape[1] > 1:
        half = (terms.shape[1] + 1) // 2
        terms[:, : terms.shape[1] - half] += terms[:, half:]
        terms = terms[:, :half]
    return terms[:, 0]


def lengths(rows: Tensor) -> Tensor:
    """‖row‖ for rows of any size but those whose length leaves the numbers."""
    import torch

    peak = rows.abs().amax(dim=1)
    safe = torch.where(peak > 0, peak, 1.0)
    return safe * folded((rows / safe[:, None]) ** 2).sqrt()


def summed(left: Tensor, right: Tensor) -> Tensor:
    """Σ leftᵢ ⊗ rightᵢ over the rows of a block, first in runs of at most LONGEST_RUN, as charged."""
    import torch

    runs = len(left) // LONGEST_RUN
    cut = runs * LONGEST_RUN
    total = left[cut:].T @ right[cut:]
    if runs:
        ours, theirs = (part[:cut].reshape(runs, LONGEST_RUN, -1) for part in (left, right))
        total = total + torch.bmm(ours.transpose(1, 2), theirs).sum(dim=0)
    return total


def row_blocks(n_rows: int, width: int) -> Iterator[slice]:
    """Blocks of whole runs, or shorter than one where rows are wide."""
    length = max(1, BLOCK_ENTRIES // max(1, width))
    length -= length % LONGEST_RUN if length > LONGEST_RUN else 0
    for start in range(0, n_rows, length):
        yield slice(start, min(start + length, n_rows))


def to_device(values: NDArray[Any], device: Any) -> Tensor:
    """A copy on the device, in the precision it has here."""
    import torch

    return torch.tensor(np.ascontiguousarray(values), device=device)


def to_host(values: Tensor) -> NDArray[np.float64]:
    return np.asarray(values.cpu().numpy(), dtype=np.float64)


def _adds_in_double_precision(device: Any) -> bool:
    """Computed there, because a backend may take the type and silently use a shorter one."""
    import torch

    try:
        found = (torch.zeros(1, dtype=torch.float64, device=device) + 1.0 + EPSILON) - 1.0
        return bool(found.item() == EPSILON)
    except (TypeError, RuntimeError):
        return False


def _measured(part: Tensor, lower: Any, upper: Any, inverse: Any, intercept: bool) -> tuple[Tensor, Tensor, Tensor]:
    """(peak, ratio, finite): ‖row‖ = peak · ratio after bounds and intercept, and whether the raw row is finite."""
    import torch

    rows = part.to(torch.float64)
    finite = torch.isfinite(rows).all(dim=1)
    rows = torch.where(finite[:, None], rows, 0.0)
    if lower is not None:
        rows = (rows.clamp(lower, upper) - lower) * inverse
    peak = rows.abs().amax(dim=1)
    # With an intercept no row is shorter than one.
    peak = peak.clamp(min=1.0) if intercept else torch.where(peak > 0, peak, 1.0)
    squares = folded((rows / peak[:, None]) ** 2)
    return peak, (squares + 1.0 / (peak * peak) if intercept else squares).sqrt(), finite
