"""Which rows train and which judge: decided by coins that know nothing of the rows, so that each row is in one part.

That is what makes the two parts cost the larger of their prices and not the sum (docs/proofs/tuning.md, Claim 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dpadmm.errors import InvalidParameter
from dpadmm.problem.checks import number
from dpadmm.randomness import SelectionStream

FEWEST_NOMINAL = 50
AT_MOST_TWICE = "at-most-twice-the-rows"


@dataclass(frozen=True)
class Sizes:
    """Public numbers of rows of the two parts; under a declared row count they are nominal.

    Examples
    --------
    >>> Sizes.of(1000, 0.25)
    Sizes(training=750, validation=250)
    """

    training: int
    validation: int

    @classmethod
    def of(cls, n_rows: int, share: Any) -> Sizes:
        share = check_share(share)
        validation = round(share * n_rows)
        if not 1 <= validation < n_rows:
            raise InvalidParameter(
                f"validation={share:g} of {n_rows} rows", "at least one row in each part", "choose another share"
            )
        return cls(n_rows - validation, validation)


def require_room(sizes: Sizes, n_rows: int) -> None:
    """Refuse what an oracle might refuse later by the fall of the coins, and so tell how many rows there are.

    An oracle takes four times as many rows as declared. From at most twice as many in all, a part of nominal size s
    gets so many with probability below exp(−0.77 s).
    """
    if min(sizes.training, sizes.validation) < FEWEST_NOMINAL:
        raise InvalidParameter(
            f"a declared n_rows that leaves {min(sizes.training, sizes.validation)} rows in a part",
            f"at least {FEWEST_NOMINAL} rows in each part, where the number of rows is private",
            "declare more rows if there are more, choose another validation share, or leave n_rows out",
        )
    if n_rows > 2 * (sizes.training + sizes.validation):
        raise InvalidParameter(
            "a table of far more rows than declared",
            "at most twice as many",
            "declare a public number nearer to the number of rows",
        )


def check_share(share: Any) -> float:
    """A share of the rows, neither none nor all."""
    found = number("validation", share, strict=True)
    if not found < 1:
        raise InvalidParameter(f"validation={found:g}", "a share between 0 and 1", "choose about 0.2")
    return found


@dataclass(frozen=True, eq=False)
class RowPart:
    """Private rows of one part, with their public weights."""

    X: Any
    y: NDArray[Any]
    weights: NDArray[np.float64] | None


def divide(
    X: Any, y: NDArray[Any], weights: NDArray[np.float64] | None, sizes: Sizes, declared: bool, stream: SelectionStream
) -> tuple[RowPart, RowPart]:
    """Training and validation rows.

    Parameters
    ----------
    declared : bool
        True if the real number of rows is private. Then each row tosses its own coin, so that one row more or less
        moves no other, and a row that counts as zero joins each part, so that none is empty.
    """
    total = sizes.training + sizes.validation
    judges = stream.coins(len(y), sizes.validation / total) if declared else stream.subset(len(y), sizes.validation)
    parts = [
        RowPart(X[rows], y[rows], None if weights is None else weights[rows])
        for rows in (np.flatnonzero(~judges), np.flatnonzero(judges))
    ]
    if declared:
        parts = [RowPart(_with_empty_row(part.X), np.append(part.y, y[:1]), None) for part in parts]
    return parts[0], parts[1]


def _with_empty_row(X: Any) -> Any:
    empty = np.full((1, X.shape[1]), np.nan, dtype=X.dtype)
    return sparse.vstack([X, sparse.csr_matrix(empty)], format="csr") if sparse.issparse(X) else np.vstack([X, empty])
