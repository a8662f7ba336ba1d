"""The two loops over the stored entries of sparse rows, written out: four entries at a time, the last ones masked.

Rows of text or clicks are short and all of different lengths, so that a loop over single entries spends its time on
guessing where it ends. Four at a time there are fewer ends to guess, and four sums to wait for instead of one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from dpadmm.kernels.pieces import (
    DOUBLE,
    INDEX,
    Matrix,
    as_vector,
    counted,
    first_lanes,
    fma,
    given_bounds,
    require_rows_in_order,
    splat,
    sum_of_lanes,
)

TOGETHER = 4
"""Entries handled at once."""
AHEAD = 32
"""Entries before its turn that the place of an entry is asked for: what lies anywhere takes long to arrive."""
DOUBLES = ir.VectorType(DOUBLE, TOGETHER)


@intrinsic
def dot_entries(
    typing: Any, stored: Any, bounds: Any, index: Any, first: Any, at: Any, count: Any, point: Any, out: Any
) -> Any:
    """out[0, r] = ⟨row index[r], point⟩ over the stored entries, for count rows r from `at` on.

    Rows are first, first + 1, … instead if `first` is not negative. `stored` are data, indices and indptr, `bounds` are
    upper and inverse, each None if there are none; `point` is (features + 1, 1). Entry number i of a row goes to sum
    i mod 4, wherever the row lies.
    """
    require_rows_in_order(*stored, *bounds, point, out)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        rows = Rows.of(context, builder, signature.args[0:3], arguments[0:5])
        at, count = arguments[4:6]
        given, results = (Matrix.of(context, builder, signature.args[k], arguments[k]) for k in (6, 7))
        total = cgutils.alloca_once(builder, DOUBLES)

        def multiply(group: _Group) -> None:
            parts = _widened(builder, group.gathered(given))
            before = builder.load(total)
            after = fma(builder, group.values, parts, before)
            builder.store(builder.select(group.mask, after, before), total)

        with counted(builder, builder.add(at, count), 1, at) as r:
            builder.store(ir.Constant(DOUBLES, None), total)
            rows.over_groups(r, multiply)
            builder.store(sum_of_lanes(builder, builder.load(total)), results.element(INDEX(0), r))
        return context.get_dummy_value()

    return types.void(stored, bounds, index, types.intp, types.uintp, types.uintp, point, out), generate


@intrinsic
def add_entries(
    typing: Any, stored: Any, bounds: Any, index: Any, first: Any, at: Any, count: Any, coefficients: Any, out: Any
) -> Any:
    """out[:, 0] += Σ coefficients[0, r] · row index[r], for count rows r from `at` on; coefficients are finite."""
    require_rows_in_order(*stored, *bounds, coefficients, out)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        rows = Rows.of(context, builder, signature.args[0:3], arguments[0:5])
        at, count = arguments[4:6]
        factors, sums = (Matrix.of(context, builder, signature.args[k], arguments[k]) for k in (6, 7))
        with counted(builder, builder.add(at, count), 1, at) as r:
            factor = splat(builder, builder.load(factors.element(INDEX(0), r)), TOGETHER)

            def add(group: _Group) -> None:
                products = builder.fmul(group.values, factor)
                # What lies beyond the row adds zero somewhere, which is sooner done than avoided.
                products = builder.select(group.mask, products, ir.Constant(DOUBLES, None))
                for lane, column in enumerate(group.columns):
                    place = sums.element(INDEX(0), column)
                    part = builder.extract_element(products, ir.IntType(32)(lane))
                    builder.store(builder.fadd(builder.load(place), part), place)

            rows.over_groups(r, add)
        return context.get_dummy_value()

    return types.void(stored, bounds, index, types.intp, types.uintp, types.uintp, coefficients, out), generate


@dataclass(frozen=True)
class _Group:
    """Four entries of a row as the loops see them; those beyond its end are not in the mask."""

    builder: Any
    columns: list[Any]
    values: Any
    mask: Any

    def gathered(self, column: Matrix) -> Any:
        """The entries of a matrix of one column at these places."""
        return _joined(self.builder, [self.builder.load(column.element(INDEX(0), j)) for j in self.columns])


@dataclass(frozen=True)
class Rows:
    """Sparse rows by number, mapped by the bounds where there are any."""

    builder: Any
    data: Matrix
    indices: Matrix
    indptr: Matrix
    index: Matrix
    first: Any
    at: Any
    bounds: list[Matrix]

    @classmethod
    def of(cls, context: Any, builder: Any, kinds: Any, values: Any) -> Rows:
        stored = cgutils.unpack_tuple(builder, values[0], 3)
        data, indices, indptr = (
            Matrix.of(context, builder, kind, value) for kind, value in zip(kinds[0], stored, strict=True)
        )
        index = Matrix.of(context, builder, kinds[2], values[2])
        bounds = given_bounds(context, builder, kinds[1], values[1])
        return cls(builder, data, indices, indptr, index, values[3], values[4], bounds)

    def over_entries(self, r: Any, visit: Callable[[Any, Any], None], ask: Callable[[Any], None]) -> None:
        """Visit column and value of each entry of the row in place r; `ask` hears of columns some entries before."""
        builder = self.builder
        first, last = self._span(r)
        with counted(builder, last, 1, first) as position:
            ask(self._whole(self.indices, self._ahead(position)))
            column = self._whole(self.indices, position)
            value = builder.load(self.data.element(INDEX(0), position))
            value = value if value.type == DOUBLE else builder.fpext(value, DOUBLE)
            if self.bounds:
                upper, inverse = (builder.load(each.element(INDEX(0), column)) for each in self.bounds)
                value = self._within(value, upper, inverse)
            visit(column, value)

    def _ahead(self, position: Any) -> Any:
        """Some entries on, of this row or the next; at the end of the table, its last."""
        builder = self.builder
        later, final = builder.add(position, INDEX(AHEAD)), builder.sub(self.data.columns, INDEX(1))
        return builder.select(builder.icmp_unsigned("<", later, final), later, final)

    def over_groups(self, r: Any, visit: Callable[[_Group], None]) -> None:
        """Visit the entries of the row in place r, four at a time."""
        builder = self.builder
        first, last = self._span(r)
        inside = builder.icmp_unsigned("<=", builder.add(last, INDEX(TOGETHER - 1)), self.data.columns)
        with builder.if_else(inside) as (usual, at_the_end):
            with usual, counted(builder, last, TOGETHER, first) as position:
                visit(self._group(position, last, False))
            # The last rows of a table: nothing beyond them may be read, so their own last entry stands in.
            with at_the_end, counted(builder, last, TOGETHER, first) as position:
                visit(self._group(position, last, True))

    def _group(self, position: Any, last: Any, at_the_end: bool) -> _Group:
        builder = self.builder
        places = [builder.add(position, INDEX(lane)) for lane in range(TOGETHER)]
        if at_the_end:
            final = builder.sub(last, INDEX(1))
            places = [builder.select(builder.icmp_unsigned("<", each, final), each, final) for each in places]
            values = _joined(builder, [builder.load(self.data.element(INDEX(0), each)) for each in places])
        else:
            values = builder.load(as_vector(builder, self.data.element(INDEX(0), position), TOGETHER), align=4)
        values = _widened(builder, values)
        mask = first_lanes(builder, builder.sub(last, position), TOGETHER)
        group = _Group(builder, [self._whole(self.indices, each) for each in places], values, mask)
        return self._mapped(group) if self.bounds else group

    def _mapped(self, group: _Group) -> _Group:
        upper, inverse = (group.gathered(each) for each in self.bounds)
        return _Group(self.builder, group.columns, self._within(group.values, upper, inverse), group.mask)

    def _within(self, values: Any, upper: Any, inverse: Any) -> Any:
        """Values within [0, upper], times inverse; sparse rows have lower bounds of zero."""
        builder, zero = self.builder, ir.Constant(values.type, None)
        values = builder.select(builder.fcmp_ordered("<", values, zero), zero, values)
        values = builder.select(builder.fcmp_ordered(">", values, upper), upper, values)
        return builder.fmul(values, inverse)

    def _span(self, r: Any) -> tuple[Any, Any]:
        """Positions of the first entry of the row in place r, and after its last."""
        builder = self.builder
        in_order = builder.icmp_signed(">=", self.first, INDEX(0))
        following = builder.add(self.first, builder.sub(r, self.at))
        number = builder.select(in_order, following, builder.load(self.index.element(INDEX(0), r)))
        first, last = (self._whole(self.indptr, builder.add(number, INDEX(k))) for k in (0, 1))
        return first, last

    def _whole(self, numbers: Matrix, place: Any) -> Any:
        """A number that is never negative, as an index."""
        number = self.builder.load(numbers.element(INDEX(0), place))
        return number if number.type == INDEX else self.builder.zext(number, INDEX)


def _joined(builder: Any, scalars: list[Any]) -> Any:
    vector = ir.Constant(ir.VectorType(scalars[0].type, len(scalars)), ir.Undefined)
    for lane, scalar in enumerate(scalars):
        vector = builder.insert_element(vector, scalar, ir.IntType(32)(lane))
    return vector


def _widened(builder: Any, vector: Any) -> Any:
    return vector if vector.type.element == DOUBLE else builder.fpext(vector, DOUBLES)
