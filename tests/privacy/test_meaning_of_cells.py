"""What one cell means, written out: the number it is, the label it is, or neither (docs/proofs/rows.md)."""

from __future__ import annotations

import math
from datetime import date
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from dpadmm.cells import one_cell
from dpadmm.cells.one_cell import all_plain, label, number_or_nan, numbers
from dpadmm.cells.target_columns import distinct, one_column

NEITHER = None
# A cell, its number, and its label.
MEANINGS = [
    (3, 3.0, 3),
    (True, 1.0, True),
    (-0.5, -0.5, -0.5),
    (2**53 + 1, float(2**53), 2**53 + 1),
    ("3", 3.0, "3"),
    (" 2e1 ", 20.0, " 2e1 "),
    ("oops", NEITHER, "oops"),
    (b"4", 4.0, b"4"),
    (Decimal("0.1"), 0.1, Decimal("0.1")),
    (Fraction(1, 4), 0.25, Fraction(1, 4)),
    (2 + 0j, 2.0, 2.0),
    (2 + 1j, NEITHER, NEITHER),
    (np.float32(0.1), float(np.float32(0.1)), float(np.float32(0.1))),
    (np.longdouble(0.5), 0.5, Fraction(1, 2)),
    (np.uint64(2**63), float(2**63), 2**63),
    (np.bool_(True), 1.0, True),
    (np.complex64(3), 3.0, 3.0),
    (np.array(3.0), 3.0, 3.0),
    (np.array(7), 7.0, 7),
    (np.array("5"), 5.0, "5"),
    (np.array([3.0]), NEITHER, NEITHER),
    (np.ma.array(3.0), NEITHER, NEITHER),
    (np.datetime64("2020", "ns"), NEITHER, NEITHER),
    (np.timedelta64(1, "s"), NEITHER, NEITHER),
    (np.array(np.datetime64("2020", "ns")), NEITHER, NEITHER),
    (date(2020, 1, 1), NEITHER, NEITHER),
    (None, NEITHER, NEITHER),
    (math.nan, NEITHER, NEITHER),
    (math.inf, math.inf, NEITHER),
    (10**400, NEITHER, 10**400),
    ([3.0], NEITHER, NEITHER),
    (object(), NEITHER, NEITHER),
]


@pytest.mark.parametrize(("cell", "as_number", "as_label"), MEANINGS, ids=range(len(MEANINGS)))
def test_a_cell_means_what_is_written(cell, as_number, as_label):
    expected = math.nan if as_number is NEITHER else as_number
    for found in (number_or_nan(cell), numbers([cell])[0], numbers([cell, object()])[0]):
        np.testing.assert_equal(found, expected)
    assert label(cell) == as_label
    assert (label(cell) is None) == (as_label is None)


def test_a_tensor_without_dimensions_is_its_only_entry():
    torch = pytest.importorskip("torch")
    assert (number_or_nan(torch.tensor(3)), label(torch.tensor(3))) == (3.0, 3)
    for other in (torch.tensor([3.0]), torch.tensor([[3.0]]), torch.tensor([3.0, 4.0])):
        assert math.isnan(number_or_nan(other))
        assert label(other) is None


def unhashable_type(problem):
    class Kind(type):
        def __hash__(cls):
            raise problem

    return Kind("Odd", (), {})


def test_a_type_that_cannot_be_looked_up_is_not_plain():
    assert all_plain([1, 0.5, "a", True])
    assert not all_plain([1, Decimal(1)])
    assert not all_plain([1, unhashable_type(ValueError())()])
    with pytest.raises(KeyboardInterrupt):
        all_plain([1, unhashable_type(KeyboardInterrupt())()])


def test_the_user_can_stop_the_reading_and_no_cell_can(monkeypatch):
    def ending(problem):
        def read(*ignored):
            raise problem

        return read

    for problem in (SystemExit(), MemoryError(), RecursionError(), type("Own", (KeyboardInterrupt,), {})()):
        monkeypatch.setattr(one_cell, "number", ending(problem))
        monkeypatch.setattr(one_cell, "_reader", ending(problem))
        assert math.isnan(number_or_nan(object()))
        assert label(object()) is None
    monkeypatch.setattr(one_cell, "number", ending(KeyboardInterrupt()))
    monkeypatch.setattr(one_cell, "_reader", ending(KeyboardInterrupt()))
    for read in (number_or_nan, label):
        with pytest.raises(KeyboardInterrupt):
            read(object())


@pytest.mark.parametrize(
    ("cells", "labels"),
    [
        ([0.5, 1.0, 1, True, None], {0.5, 1}),
        ([2.0, 3, None], {2, 3}),
        ([2.0**70, 1], {2.0**70, 1}),
        ([True, False], {True, False}),
    ],
)
def test_labels_that_occur_are_known_by_their_values(cells, labels):
    found = distinct(one_column(cells)).tolist()
    assert set(found) == labels
    assert len(found) == len(labels)
    assert {type(each) for each in found if each in (1, 2, 3)} <= {int, bool}
    assert all(type(each) is float for each in found if each == 2.0**70)
