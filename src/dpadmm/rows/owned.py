"""Which rows are whose: the rows of each person together, in the order they have in the table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpadmm.privacy.arithmetic import PIECE_ROWS

Places = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class PieceOfPersons:
    """The rows of some persons.

    Attributes
    ----------
    persons : slice
        Which of those asked for.
    rows : (m,)
        Their rows, person after person.
    ends : (persons + 1,)
        Where the rows of each person begin and end among them.
    continued : bool
        Whether more rows of the same person follow in the next piece.
    """

    persons: slice
    rows: Places
    ends: Places
    continued: bool


class Owned:
    """The rows of each person.

    Parameters
    ----------
    person : (n,)
        The number of the person whose row it is; −1 for rows that are nobody's or count as zero.
    count : int
        How many persons there are; some may have no row that counts.
    """

    def __init__(self, person: Places, count: int) -> None:
        order = np.argsort(person, kind="stable")
        self._rows = order[np.searchsorted(person[order], 0) :]
        self.count = count
        self._sizes = np.bincount(person[self._rows], minlength=count)
        self._starts = np.concatenate([[0], np.cumsum(self._sizes)])[:-1]

    def shares(self, n_rows: int) -> NDArray[np.float64]:
        """What each row counts for: 1/r for each of the r rows of a person, 0 for other rows.

        Formal guarantees
        -----------------
        The exact sum over the rows of a person is at most one: 1/r is taken one double lower where it was rounded.
        """
        each = np.ones(self.count)
        several = self._sizes > 1
        each[several] = np.nextafter(1.0 / self._sizes[several], 0.0)
        found = np.zeros(n_rows)
        found[self._rows] = np.repeat(each, self._sizes)
        return found

    def gathered(self, persons: Places | None, most_rows: int, most_persons: int) -> Iterator[PieceOfPersons]:
        """The rows of these persons, or of all, some persons at a time.

        Formal guarantees
        -----------------
        A person's rows come in pieces that depend on their own number alone, so that a sum over them is a function of
        these rows.
        """
        starts = self._starts if persons is None else self._starts[persons]
        sizes = self._sizes if persons is None else self._sizes[persons]
        after = np.cumsum(sizes)
        first = 0
        while first < len(sizes):
            before = int(after[first - 1]) if first else 0
            fitting = int(np.searchsorted(after, before + most_rows, side="right"))
            last = min(max(fitting, first + 1), first + most_persons)
            if sizes[first] > PIECE_ROWS:
                yield from self._alone(first, int(starts[first]), int(sizes[first]))
                first += 1
                continue
            long = np.flatnonzero(sizes[first:last] > PIECE_ROWS)
            last = first + int(long[0]) if len(long) else last
            yield self._together(slice(first, last), starts[first:last], sizes[first:last])
            first = last

    def _together(self, persons: slice, starts: Places, sizes: Places) -> PieceOfPersons:
        ends = np.concatenate([[0], np.cumsum(sizes)])
        places = np.arange(ends[-1]) + np.repeat(starts - ends[:-1], sizes)
        return PieceOfPersons(persons, self._rows[places], ends, continued=False)

    def _alone(self, person: int, start: int, size: int) -> Iterator[PieceOfPersons]:
        for begin in range(0, size, PIECE_ROWS):
            length = min(PIECE_ROWS, size - begin)
            rows = self._rows[start + begin : start + begin + length]
            yield PieceOfPersons(slice(person, person + 1), rows, np.array([0, length]), begin + length < size)
