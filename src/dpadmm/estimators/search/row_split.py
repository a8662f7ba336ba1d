"""Which rows train and which judge: decided by coins that know nothing of the rows, so that each row is in one part.

Where rows have persons, the coins are those of the persons, so that all rows of a person are in one part.

That is what makes the two parts cost the larger of their prices and not the sum (docs/proofs/tuning.md, Claim 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dpadmm.cells.person_ids import PersonNumbers
from dpadmm.errors import InvalidParameter
from dpadmm.privacy.unit import Unit
from dpadmm.problem.checks import number
from dpadmm.randomness import SelectionStream

FEWEST_NOMINAL = 50
AT_MOST_TWICE = {Unit.ROW: "at-most-twice-the-rows", Unit.PERSON: "at-most-twice-the-persons"}


@dataclass(frozen=True)
class Sizes:
    """Public numbers of rows, or persons, of the two parts; under a declared number of them they are nominal.

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


def require_room(sizes: Sizes, n_rows: int, unit: Unit = Unit.ROW) -> None:
    """Refuse what an oracle might refuse later by the fall of the coins, and so tell how many rows there are.

    An oracle takes four times as many rows as declared. From at most twice as many in all, a part of nominal size s
    gets so many with probability below exp(−0.77 s).
    """
    if min(sizes.training, sizes.validation) < FEWEST_NOMINAL:
        raise InvalidParameter(
            f"a declared n_rows that leaves {min(sizes.training, sizes.validation)} {unit.plural} in a part",
            f"at least {FEWEST_NOMINAL} {unit.plural} in each part, where the number of {unit.plural} is private",
            f"declare more {unit.plural} if there are more, choose another validation share, or leave n_rows out",
        )
    if n_rows > 2 * (sizes.training + sizes.validation):
        raise InvalidParameter(
            f"a table of far more {unit.plural} than declared",
            "at most twice as many",
            f"declare a public number nearer to the number of {unit.plural}",
        )


def check_share(share: Any) -> float:
    """A share of the rows, neither none nor all."""
    found = number("validation", share, strict=True)
    if not found < 1:
        raise InvalidParameter(f"validation={found:g}", "a share between 0 and 1", "choose about 0.2")
    return found


@dataclass(frozen=True, eq=False)
class RowPart:
    """Private rows of one part, with their public weights, or with the numbers of their persons."""

    X: Any
    y: NDArray[Any]
    weights: NDArray[np.float64] | None
    person: NDArray[np.intp] | None = None


def divide(
    X: Any,
    y: NDArray[Any],
    weights: NDArray[np.float64] | None,
    sizes: Sizes,
    declared: bool,
    stream: SelectionStream,
    persons: PersonNumbers | None = None,
) -> tuple[RowPart, RowPart]:
    """Training and validation rows. Rows without a person count for nothing, and are in neither part.

    Parameters
    ----------
    declared : bool
        True if the real number of rows is private. Then each row tosses its own coin, so that one row more or less
        moves no other, and a row that counts as zero joins each part, so that none is empty.
    """
    total = sizes.training + sizes.validation
    number = len(y) if persons is None else persons.count
    judges = stream.coins(number, sizes.validation / total) if declared else stream.subset(number, sizes.validation)
    training, judging = (~judges, judges) if persons is None else _of_their_persons(judges, persons.of_row)
    parts = [
        RowPart(X[rows], y[rows], _those(weights, rows), None if persons is None else persons.of_row[rows])
        for rows in (np.flatnonzero(training), np.flatnonzero(judging))
    ]
    if declared:
        parts = [_with_empty_row(part, y[:1]) for part in parts]
    return parts[0], parts[1]


def _of_their_persons(judges: NDArray[np.bool_], person: NDArray[np.intp]) -> tuple[NDArray[np.bool_], ...]:
    """Rows of the persons who train, and of those who judge."""
    known = person >= 0
    judging = known & judges[np.maximum(person, 0)]
    return known & ~judging, judging


def _those(values: NDArray[Any] | None, rows: NDArray[np.intp]) -> NDArray[Any] | None:
    return None if values is None else values[rows]


def _with_empty_row(part: RowPart, label: NDArray[Any]) -> RowPart:
    """One more row, of a person of its own, that counts as zero."""
    X, empty = part.X, np.full((1, part.X.shape[1]), np.nan, dtype=part.X.dtype)
    longer = sparse.vstack([X, sparse.csr_matrix(empty)], format="csr") if sparse.issparse(X) else np.vstack([X, empty])
    person = None if part.person is None else np.append(part.person, part.person.max(initial=-1) + 1)
    return RowPart(longer, np.append(part.y, label), None, person)
