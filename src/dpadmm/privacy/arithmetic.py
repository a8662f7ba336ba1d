"""Finite arithmetic: what rounding adds to a sensitivity, the grid of a release, and what exact noise costs.

| arithmetic | sums | noise |
|---|---|---|
| granular | float64, rounded to a public grid; rounding charged | normals in float64, rounded to the same grid |
| exact | integers on a public lattice, no rounding error | discrete Gaussian, sampled exactly |
| floating | float64 as it comes | normals in float64; models of earlier versions, never carried out again |

docs/proofs/float.md has the proofs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from enum import StrEnum
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpadmm.errors import InvalidParameter, shown
from dpadmm.kernels.threads import CHUNK_ENTRIES, LONGEST_RUN
from dpadmm.privacy.budget import Relation
from dpadmm.privacy.unit import Unit

UNIT_ROUNDOFF = 2.0**-53
GRID_BITS = 24
"""A grid is this many powers of two below the noise: a cell holds 2²⁵ values of each layer of the sampler, or more."""
MANTISSA_BITS = 51
"""A sum measured in its grid stays below this power of two, so that rounding and adding are exact in float64."""
BLOCK_ENTRIES = CHUNK_ENTRIES >> 2
"""There are at most as many blocks of rows, each summed by itself, as blocks of this many entries would be."""
NOMINAL_MARGIN = 4
"""How many times more rows than declared a table may have where their number is secret."""
PART_ROWS = 1 << 22
"""Rows of a table of persons whose sums are added up as rows are, at most; sums of such parts are added in a tree."""
PIECE_ROWS = 1 << 16
"""Rows of one person that are added up one after another, at most; sums of such pieces are added in a tree."""
TREE_DEPTH = 48
"""Additions on the way through a tree, at most."""
RESERVED_SHARE = 1e-6
"""Part of δ set aside for the distance between discrete and rounded Gaussian noise."""
LARGEST_EXACT_WIDTH = 2048
LARGEST_EXACT_MULTIPLIER = 2.0**12


class Arithmetic(StrEnum):
    """How sums and noise are computed."""

    GRANULAR = "granular"
    EXACT = "exact"
    FLOATING = "floating"

    @classmethod
    def parse(cls, value: object) -> Arithmetic:
        """What a user may ask for."""
        if str(value) in (cls.GRANULAR, cls.EXACT):
            return cls(str(value))
        raise InvalidParameter(f"arithmetic {shown(value)}", "'granular' or 'exact'", "choose one of these")

    def delta_for_noise(self, delta: float) -> float:
        """What the accountant may spend of δ."""
        return delta * (1.0 - RESERVED_SHARE) if self is Arithmetic.EXACT else delta


def weakest(found: Iterable[Arithmetic]) -> Arithmetic:
    """The one of which no more is proved than of any: floating before granular before exact."""
    order = (Arithmetic.EXACT, Arithmetic.GRANULAR, Arithmetic.FLOATING)
    return max(found, key=order.index)


def most_rows(n_rows: int, relation: Relation) -> int:
    """Public bound on the rows of a table planned for `n_rows`."""
    return n_rows if relation is Relation.REPLACE_ONE else NOMINAL_MARGIN * n_rows


def summation_error(rows: int, features: int, condition: float = 1.0, unit: Unit = Unit.ROW) -> float:
    """Largest ‖computed sum − sum of the computed contributions‖ in units of the largest contribution.

    Parameters
    ----------
    rows : int
        Public bound on the number of rows, or of whatever unit is protected.
    features : int
        Entries of a row.
    condition : float
        Of the change of coordinates applied to the finished sum.
    unit : Unit
        Whose contributions are added up. Where a person may have any number of rows, no bound rests on that number.

    Formal guarantees
    -----------------
    Holds for every order of summation in which rows are first summed in blocks of at most `LONGEST_RUN`, no more of
    them than blocks of `BLOCK_ENTRIES` entries would be (docs/proofs/float.md, Lemma 1). For persons it holds as
    docs/proofs/persons.md says (Lemma 3).
    """
    if unit is not Unit.ROW:
        most = max(rows, PART_ROWS)
        runs = PIECE_ROWS + LONGEST_RUN + math.ceil(most / shortest_run(features))
        depth = runs + 2 * TREE_DEPTH + 16.0 * (features + 8.0) ** 1.5
        return float(1.01 * depth * UNIT_ROUNDOFF * 2.0 * condition * rows)
    depth = min(rows, LONGEST_RUN) + math.ceil(rows / shortest_run(features)) + 8.0 * (features + 8.0) ** 1.5
    return float(1.01 * depth * UNIT_ROUNDOFF * 2.0 * condition * rows)


def shortest_run(features: int) -> int:
    """Rows of a block, at least, but for the last one: shorter blocks would be more of them than are charged."""
    return max(1, min(LONGEST_RUN, BLOCK_ENTRIES // (features + 1)))


def grid_exponent(clip_norm: float, noise_multiplier: float, rows: int) -> int:
    """g of the grid 2^g: `GRID_BITS` below the noise, higher only where float64 could not hold a sum on it."""
    size = max(math.ldexp(noise_multiplier, -GRID_BITS), math.ldexp(2.0 * rows, -MANTISSA_BITS))
    return math.frexp(clip_norm * size)[1] - 1


def slack(rounding: float, grid: float, entries: int, clip_norm: float) -> float:
    """Share of the clip that rounding can add to what one record moves: twice the sum's error and one grid cell.

    2⁻⁴⁰ covers the rounding of the noise scale itself.
    """
    return 2.0 * rounding + grid * math.sqrt(entries) / clip_norm + 2.0**-40


@lru_cache(maxsize=1024)
def granularity(
    clip_norm: float, noise_multiplier: float, rows: int, rounding: float, entries: int
) -> tuple[float, float]:
    """(grid, noise deviation) of one release of `entries` numbers; the same for every release of a query."""
    grid = math.ldexp(1.0, grid_exponent(clip_norm, noise_multiplier, rows))
    return grid, noise_multiplier * clip_norm * (1.0 + slack(rounding, grid, entries, clip_norm))


def exact_deviations(noise: float, unit: float | NDArray[np.float64]) -> NDArray[np.int64]:
    """Standard deviations in whole lattice units, never below `noise`."""
    return np.ceil(noise * (1.0 + 2.0**-40) / np.asarray(unit)).astype(np.int64)


def variation(deviations: NDArray[np.int64]) -> float:
    """Total variation between discrete and rounded Gaussian noise with these deviations, at most (Lemma 3)."""
    return float(np.sum(1.0 / (24.0 * deviations.astype(np.float64) ** 2)))


def require_exact_fits(width: int, multipliers: list[float], weighted: bool) -> None:
    """Refuse what exact arithmetic has no proof for, by public sizes."""
    problems: list[tuple[bool, tuple[Any, str, str]]] = [
        (
            width > LARGEST_EXACT_WIDTH,
            (f"{width} mapped features", f"at most {LARGEST_EXACT_WIDTH}", "use arithmetic='granular'"),
        ),
        (weighted, ("weights", "none", "drop the weights, or use arithmetic='granular'")),
        (
            max(multipliers) > LARGEST_EXACT_MULTIPLIER,
            (
                "noise of more than 4096 times a contribution",
                "less",
                "use fewer steps or a larger epsilon, or arithmetic='granular'",
            ),
        ),
    ]
    for found, (given, expected, remedy) in problems:
        if found:
            raise InvalidParameter(f"arithmetic='exact' with {given}", expected, remedy)
