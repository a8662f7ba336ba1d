"""The two loops over the stored entries of sparse rows, written out: eight entries at a time, the last ones masked.

Rows of text or clicks are short and all of different lengths, so that a loop over single entries spends its time on
guessing where it ends. Eight at a time there are fewer ends to guess, and eight sums to wait for instead of one. Rows
that follow each other have better loops (`runs`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from dpadmm.kernels.vectors.instructions import (
    INDEX,
    ZERO,
    Matrix,
    counted,
    fetch,
    first_lanes,
    given_bounds,
    index_at,
    load,
    require_rows_in_order,
    splat,
    sum_of_lanes,
    widened,
)

TOGETHER = 8
"""Entries handled at once."""
FETCH_AHEAD = 2048
"""Entries before its turn that an entry is asked for where rows follow each other: the processor loses the sequence
between two blocks."""
AHEAD = 32
"""Entries before its turn that the place of an entry is asked for: what lies anywhere takes long to arrive."""


@intrinsic
def dot_entries(
    typing: Any, stored: Any, bounds: Any, index: Any, first: Any, at: Any, count: Any, point: Any, out: Any
) -> Any:
    """out[0, r] = ⟨row index[r], point⟩ over the stored entries, for count rows r from `at` on.

    Rows are first, first + 1, … instead if `first` is not negative. `stored` are data, indices and indptr, `bounds` are
    upper and inverse, each None if there are none; `point` is (features + 1, 1), and sums have its precision. Entry
    number i of a row goes to sum i mod 8, wherever the row lies.
    """
    require_rows_in_order(*stored, *bounds, point, out)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        rows = NumberedRows.of(context, builder, signature.args[0:3], arguments[0:5])
        at, count = arguments[4:6]
        given, results = (Matrix.of(context, builder, signature.args[k], arguments[k]) for k in (6, 7))
        nothing = ir.Constant(ir.VectorType(given.data.type.pointee, TOGETHER), None)
        total = cgutils.alloca_once(builder, nothing.type)

        def multiply(group: Group) -> None:
            rows.fetch_after(group.position)
            # Rounded twice, as in `runs`.
            before = builder.load(total)
            after = builder.fadd(before, group.times(given))
            builder.store(builder.select(group.mask, after, before), total)

        with counted(builder, builder.add(at, count), 1, at) as r:
            builder.store(nothing, total)
            rows.stored.over_groups(rows.span(r), multiply)
            result = widened(builder, sum_of_lanes(builder, builder.load(total)))
            builder.store(result, results.element(ZERO, r))
        return context.get_dummy_value()

    return types.void(stored, bounds, index, types.intp, types.uintp, types.uintp, point, out), generate


@intrinsic
def add_entries(
    typing: Any, stored: Any, bounds: Any, index: Any, first: Any, at: Any, count: Any, coefficients: Any, out: Any
) -> Any:
    """out[:, 0] += Σ coefficients[0, r] · row index[r], for count rows r from `at` on; coefficients are finite."""
    require_rows_in_order(*stored, *bounds, coefficients, out)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        rows = NumberedRows.of(context, builder, signature.args[0:3], arguments[0:5])
        at, count = arguments[4:6]
        factors, sums = (Matrix.of(context, builder, signature.args[k], arguments[k]) for k in (6, 7))
        with counted(builder, builder.add(at, count), 1, at) as r:
            factor = splat(builder, builder.load(factors.element(ZERO, r)), TOGETHER)
            rows.stored.over_groups(rows.span(r), partial(Group.add, factors=factor, sums=sums))
        return context.get_dummy_value()

    return types.void(stored, bounds, index, types.intp, types.uintp, types.uintp, coefficients, out), generate


@dataclass(frozen=True)
class Group:
    """Eight entries as the loops see them; those beyond the last are not in the mask."""

    builder: Any
    position: Any
    columns: list[Any]
    values: Any
    mask: Any

    def gathered(self, column: Matrix) -> Any:
        """The entries of a matrix of one column at these places."""
        return _joined(self.builder, [self.builder.load(column.element(ZERO, j)) for j in self.columns])

    def times(self, column: Matrix) -> Any:
        """The values times the entries of a matrix of one column at these places, in its precision."""
        factors = self.gathered(column)
        values = self.values if self.values.type == factors.type else widened(self.builder, self.values)
        return self.builder.fmul(values, factors)

    def add(self, factors: Any, sums: Matrix) -> None:
        """Add the values times eight factors, or all the same, to the entries of a matrix of one column."""
        builder = self.builder
        products = builder.fmul(widened(builder, self.values), factors)
        # What lies beyond the last adds zero somewhere, which is sooner done than avoided.
        products = builder.select(self.mask, products, ir.Constant(products.type, None))
        for lane, column in enumerate(self.columns):
            place = sums.element(ZERO, column)
            part = builder.extract_element(products, ir.IntType(32)(lane))
            builder.store(builder.fadd(builder.load(place), part), place)


@dataclass(frozen=True)
class Stored:
    """Data, indices and indptr of a sparse table, mapped by the bounds where there are any."""

    builder: Any
    data: Matrix
    indices: Matrix
    indptr: Matrix
    bounds: list[Matrix]

    @classmethod
    def of(cls, context: Any, builder: Any, kinds: Any, values: Any) -> Stored:
        """Of the two tuples `stored` and `bounds`."""
        arrays = cgutils.unpack_tuple(builder, values[0], 3)
        data, indices, indptr = (
            Matrix.of(context, builder, kind, value) for kind, value in zip(kinds[0], arrays, strict=True)
        )
        return cls(builder, data, indices, indptr, given_bounds(context, builder, kinds[1], values[1]))

    def span(self, row: Any) -> tuple[Any, Any]:
        """Positions of the first entry of a row, and after its last."""
        first, last = (index_at(self.builder, self.indptr, self.builder.add(row, INDEX(k))) for k in (0, 1))
        return first, last

    def over_entries(
        self, span: tuple[Any, Any], visit: Callable[[Any, Any], None], ask: Callable[[Any], None]
    ) -> None:
        """Visit column and value of each entry of a span; `ask` hears of columns some entries before."""
        builder, (first, last) = self.builder, span
        with counted(builder, last, 1, first) as position:
            ask(index_at(builder, self.indices, self._ahead(position)))
            column = index_at(builder, self.indices, position)
            value = widened(builder, builder.load(self.data.element(ZERO, position)))
            if self.bounds:
                upper, inverse = (builder.load(each.element(ZERO, column)) for each in self.bounds)
                value = self._within(value, upper, inverse)
            visit(column, value)

    def _ahead(self, position: Any) -> Any:
        """Some entries on, of this row or the next; at the end of the table, its last."""
        builder = self.builder
        later, final = builder.add(position, INDEX(AHEAD)), builder.sub(self.data.columns, INDEX(1))
        return builder.select(builder.icmp_unsigned("<", later, final), later, final)

    def fetch(self, position: Any) -> None:
        """Ask for the entries at a position, which may lie beyond the last."""
        for each in (self.data, self.indices):
            fetch(self.builder, each.element(ZERO, position))

    def over_groups(self, span: tuple[Any, Any], visit: Callable[[Group], None]) -> None:
        """Visit the entries of a span, eight at a time."""
        builder, (first, last) = self.builder, span
        inside = builder.icmp_unsigned("<=", builder.add(last, INDEX(TOGETHER - 1)), self.data.columns)
        with builder.if_else(inside) as (usual, at_the_end):
            with usual, counted(builder, last, TOGETHER, first) as position:
                visit(self._group(position, last, False))
            # The last rows of a table: nothing beyond them may be read, so their own last entry stands in.
            with at_the_end, counted(builder, last, TOGETHER, first) as position:
                visit(self._group(position, last, True))

    def _group(self, position: Any, last: Any, at_the_end: bool) -> Group:
        builder = self.builder
        places = [builder.add(position, INDEX(lane)) for lane in range(TOGETHER)]
        if at_the_end:
            final = builder.sub(last, INDEX(1))
            places = [builder.select(builder.icmp_unsigned("<", each, final), each, final) for each in places]
            values = _joined(builder, [builder.load(self.data.element(ZERO, each)) for each in places])
        else:
            values = load(builder, self.data.element(ZERO, position), TOGETHER, None)
        mask = first_lanes(builder, builder.sub(last, position), TOGETHER)
        columns = [index_at(builder, self.indices, each) for each in places]
        group = Group(builder, position, columns, values, mask)
        return self._mapped(group) if self.bounds else group

    def _mapped(self, group: Group) -> Group:
        upper, inverse = (group.gathered(each) for each in self.bounds)
        return replace(group, values=self._within(widened(self.builder, group.values), upper, inverse))

    def _within(self, values: Any, upper: Any, inverse: Any) -> Any:
        """Values within [0, upper], times inverse; sparse rows have lower bounds of zero."""
        builder, zero = self.builder, ir.Constant(values.type, None)
        values = builder.select(builder.fcmp_ordered("<", values, zero), zero, values)
        values = builder.select(builder.fcmp_ordered(">", values, upper), upper, values)
        return builder.fmul(values, inverse)


@dataclass(frozen=True)
class NumberedRows:
    """Some sparse rows by number."""

    stored: Stored
    index: Matrix
    first: Any
    at: Any

    @classmethod
    def of(cls, context: Any, builder: Any, kinds: Any, values: Any) -> NumberedRows:
        index = Matrix.of(context, builder, kinds[2], values[2])
        return cls(Stored.of(context, builder, kinds, values), index, values[3], values[4])

    def span(self, r: Any) -> tuple[Any, Any]:
        """Of the row in place r."""
        builder = self.stored.builder
        following = builder.add(self.first, builder.sub(r, self.at))
        return self.stored.span(builder.select(self._follow, following, builder.load(self.index.element(ZERO, r))))

    def fetch_after(self, position: Any) -> None:
        """Ask for entries that come later, if rows follow each other; else for those that are read anyhow."""
        builder = self.stored.builder
        self.stored.fetch(builder.add(position, builder.select(self._follow, INDEX(FETCH_AHEAD), ZERO)))

    @property
    def _follow(self) -> Any:
        return self.stored.builder.icmp_signed(">=", self.first, ZERO)


def _joined(builder: Any, scalars: list[Any]) -> Any:
    vector = ir.Constant(ir.VectorType(scalars[0].type, len(scalars)), ir.Undefined)
    for lane, scalar in enumerate(scalars):
        vector = builder.insert_element(vector, scalar, ir.IntType(32)(lane))
    return vector
