"""Neighbouring tables made up for audits: one record that moves every sum as far as the claim allows for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpadmm.declare.target import Target
from dpadmm.estimators.base import PrivateLinearModel
from dpadmm.privacy.arithmetic import Arithmetic, most_rows
from dpadmm.privacy.budget import Relation
from dpadmm.privacy.plan import Plan
from dpadmm.privacy.questions import At, Question
from dpadmm.privacy.sampling import Batch
from dpadmm.problem.rowmap import RowMap
from dpadmm.problem.spiked_map import SpikedMap
from dpadmm.rows.lattice_rows import LatticeRows
from dpadmm.rows.lattice_sum import Sum
from dpadmm.rows.local import LocalRows
from dpadmm.rows.packed import PackedRows
from dpadmm.rows.protocol import Rows

Array = NDArray[np.float64]
Table = tuple[NDArray[np.float64], NDArray[Any]]

FAR = 1e3
"""Length of a raw row in units of `row_norm`: scaled down, its intercept is a thousandth of it."""

SHARED = 0.1
"""What two mirrored rows have in common, as a share of their length."""

FIRST = Batch(np.zeros(1, dtype=np.intp))


def worst_pair(n_rows: int, relation: Relation = Relation.REPLACE_ONE, n_features: int = 1) -> tuple[Table, Table]:
    """Neighbours for classes 0 and 1: one unit row with either label, or there and gone, among zero rows."""
    return worst_tables((0, 1), n_rows, relation, n_features)


def worst_tables(
    labels: tuple[Any, Any], n_rows: int, relation: Relation = Relation.REPLACE_ONE, n_features: int = 1
) -> tuple[Table, Table]:
    """Neighbours for any two labels or targets: one unit row with either of them, or there and gone, among zero rows.

    If both labels are the same, the row itself is turned round: of more than two classes that moves sums further than
    another label does, by 2√(1 − 1/K) instead of √2.

    Examples
    --------
    >>> (X, y), (_, turned) = worst_tables(("no", "yes"), 3)
    >>> X.tolist(), y.tolist(), turned.tolist()
    ([[1.0], [0.0], [0.0]], ['no', 'no', 'no'], ['yes', 'no', 'no'])
    """
    X, y = np.zeros((n_rows, n_features)), np.repeat(np.asarray(labels), [n_rows, 0])
    X[0, 0] = 1.0
    if relation is not Relation.REPLACE_ONE:
        return (X, y), (np.zeros_like(X), y)
    turned = np.concatenate([np.asarray(labels)[1:], y[1:]])
    return (X, y), (-X if labels[0] == labels[1] else X, turned)


def declared_target(model: PrivateLinearModel) -> Target:
    """What a fitted or loaded model knows to be public about its target."""
    return model.declare_target(np.asarray(getattr(model, "classes_", ())))


def long_row(rowmap: RowMap, n_features: int, feature: int = 0) -> Array:
    """A raw row that is mapped to full length, nearly all of it in one feature."""
    if rowmap.lower is None or rowmap.upper is None:
        lower, upper = np.zeros(n_features), np.full(n_features, FAR * rowmap.row_norm)
    else:
        lower, upper = np.array(rowmap.lower), np.array(rowmap.upper)
    row: Array = np.where(np.arange(n_features) == feature, upper, lower)
    return row


class OneAmongZeros:
    """A table of any length whose rows all count as zero but the first: no other row is ever looked at.

    Parameters
    ----------
    row : Rows
        The one row that is not zero.
    n_rows : int
        Length of the table.
    """

    def __init__(self, row: Rows, n_rows: int) -> None:
        self._row = row
        self.n_rows, self.space = n_rows, row.space

    def ask(self, question: Question[Any], at: At, batch: Batch) -> Sum:
        # A question that reads all rows is asked of all one of them.
        return self._row.ask(question, at, batch if question.reads_all else _first_of(batch))

    def transformed(self, matrix: Array | SpikedMap) -> OneAmongZeros:
        return OneAmongZeros(self._row.transformed(matrix), self.n_rows)

    def remapped(self, rowmap: RowMap) -> OneAmongZeros:
        return OneAmongZeros(self._row.remapped(rowmap), self.n_rows)


def _first_of(batch: Batch) -> Batch:
    """What the batch holds of the first row, with its weight."""
    if batch.rows is None:
        return FIRST
    drawn = batch.rows == 0
    share = float(np.sum(drawn if batch.weights is None else drawn * batch.weights))
    return Batch(FIRST.rows, np.array([share]))


@dataclass(frozen=True, eq=False)
class Pair:
    """Two neighbouring tables, in what they differ, and the two rows as they were given and as the model sees them."""

    name: str
    tables: tuple[OneAmongZeros, OneAmongZeros]
    raw: tuple[Array, Array]
    mapped: tuple[Array, Array]


@dataclass(frozen=True, eq=False)
class Forgery:
    """Makes tables of the recorded length with one row of any content.

    Parameters
    ----------
    model : estimator
        Fitted or loaded: what is public about its target and its rows.
    plan : Plan
        Length of the table, relation and arithmetic.
    """

    model: PrivateLinearModel
    plan: Plan

    def pairs(self) -> tuple[Pair, ...]:
        """Neighbours under the relation of the plan: no pair moves every sum as far as it goes, so there are several.

        The label of a long row is turned, or the row itself, which moves gradients most; a row is moved to another
        feature, or to the other end of every feature, which moves second moments and counts; two rows share a little
        of one feature, so that one point pulls both gradients along opposite ways, as differences of gradients need.
        """
        target = declared_target(self.model)
        low, high = target.opposites
        ends = long_row(self.rowmap, self.width)
        if self.plan.budget.relation is not Relation.REPLACE_ONE:
            return (self._pair("a long row is there, or gone", (ends, high), (ends, high), kept=False),)
        found = [
            self._pair("the target of a long row is turned", (ends, low), (ends, high)),
            self._pair("a long row lies in another feature", (ends, low), (self._elsewhere, high)),
        ]
        if self.rowmap.lower is not None and self.rowmap.upper is not None:
            top, bottom = np.array(self.rowmap.upper), np.array(self.rowmap.lower)
            found.append(self._pair("all features of a row are turned", (top, low), (bottom, high)))
        else:
            found.append(self._pair("a long row is turned round", (ends, high), (-ends, high)))
            if self.width > 1:
                tilted = SHARED * ends + np.sqrt(1 - SHARED**2) * self._elsewhere
                mirrored = 2 * SHARED * ends - tilted
                found.append(self._pair("a row is mirrored", (tilted, high), (mirrored, high)))
        return tuple(found)

    @property
    def rowmap(self) -> RowMap:
        return self.model.row_map_

    @property
    def width(self) -> int:
        return int(self.model.n_features_in_)

    @property
    def _elsewhere(self) -> Array:
        """A long row in another feature; for a single one, nothing of it."""
        if self.width > 1:
            return long_row(self.rowmap, self.width, feature=1)
        return np.zeros(1) if self.rowmap.lower is None else np.array(self.rowmap.lower)

    def _pair(self, name: str, first: tuple[Array, Any], second: tuple[Array, Any], kept: bool = True) -> Pair:
        tables = self.table(*first), self.table(*second, kept=kept)
        seen = [np.asarray(self.rowmap.apply(raw[None])[0]) for raw, _ in (first, second)]
        return Pair(name, tables, (first[0], second[0]), (seen[0], seen[1] if kept else np.zeros_like(seen[1])))

    def table(self, raw: Array, label: Any, kept: bool = True) -> OneAmongZeros:
        """One row among rows that count as zero; a row that is not kept counts as zero too."""
        target, plan = declared_target(self.model), self.plan
        encoded, _ = target.encode(np.asarray([label]))
        packed, norm = PackedRows.of(self.rowmap, raw[None], np.array([kept])), self.rowmap.row_norm
        if plan.arithmetic is Arithmetic.EXACT:
            limit = most_rows(plan.n_rows, plan.budget.relation)
            return OneAmongZeros(LatticeRows(packed, encoded, target.loss, norm, limit), plan.n_rows)
        return OneAmongZeros(LocalRows(packed, encoded, target.loss, norm), plan.n_rows)
