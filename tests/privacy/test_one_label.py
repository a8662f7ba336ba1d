"""One label that is no label: the sums of neighbouring tables differ by no more than one row can move them."""

from __future__ import annotations

import sys
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from dpadmm import DPLogisticRegression
from dpadmm.cells.one_cell import label, number_or_nan
from dpadmm.cells.pandas_cells import UNREADABLE, objects_of
from dpadmm.privacy.questions import ClippedGradient
from dpadmm.privacy.sampling import Batch
from dpadmm.tables.encode import read_codes, read_numbers
from tests.attacks.nasty import LateBytes, LateDecimal, LateFraction, LateReal, OddFraction, SaysTorch, Untyped

N = 2000
X = np.random.default_rng(0).uniform(-1, 1, (N, 3))
LABELS = [int(each) for each in X[:, 0] > 0]
HOLDERS = {
    "list": list,
    "tuple": tuple,
    "object array": lambda labels: np.array(labels, dtype=object),
    "Series": lambda labels: pd.Series(labels, dtype=object if "oops" in labels else "int64"),
    "category": lambda labels: pd.Series(labels, dtype="category"),
}


def rows_of(labels, table=X):
    model = DPLogisticRegression(
        1.0, 1e-6, classes=[0, 1], invalid_rows="zero", random_state=0, solver="dp-gd", steps=2
    )
    prepared, rows = model.prepare(table, labels)
    return rows, prepared.recipe.plan.queries[0]


@pytest.mark.parametrize("holder", HOLDERS)
def test_one_label_moves_a_sum_by_no_more_than_its_row(holder):
    """With all labels read as text the clean sums differed by the contributions of all 2000 rows."""
    one, query = rows_of(HOLDERS[holder](LABELS))
    two, _ = rows_of(HOLDERS[holder](["oops", *LABELS[1:]]))
    for point in (np.zeros(4), np.array([1.0, -2.0, 0.5, 3.0])):
        sums = [rows.ask(ClippedGradient(query.clip_norm), (point,), Batch(None)) for rows in (one, two)]
        assert np.linalg.norm(sums[0] - sums[1]) <= query.clip_norm * (1 + 1e-9)
        assert np.linalg.norm(sums[0]) > 10 * query.clip_norm


@pytest.mark.parametrize("cell", ["oops", None, 1e300, [1, 2], 1j])
def test_one_cell_of_a_frame_in_single_precision_moves_no_margin(cell):
    """Where features are near 1000 and cancel, margins in single precision are off by a third of a clip."""
    near = (1000 + X).astype(np.float32)
    whole = pd.DataFrame(near, columns=list("abc"))
    other = whole.astype({"b": object})
    other.loc[0, "b"] = cell
    point = np.array([9.0, -18.0, 9.0, 0.1])
    for changed in (other, other.astype(object)):
        (one, query), (two, _) = rows_of(LABELS, whole), rows_of(LABELS, changed)
        sums = [rows.ask(ClippedGradient(query.clip_norm), (point,), Batch(None)) for rows in (one, two)]
        assert np.linalg.norm(sums[0] - sums[1]) <= 2 * query.clip_norm * (1 + 1e-9)
        assert one._X[1:].tobytes() == two._X[1:].tobytes()


def test_one_masked_cell_changes_no_precision():
    whole = np.arange(N * 3, dtype=np.int16).reshape(N, 3) % 1000
    masked = np.ma.masked_array(whole, mask=np.arange(N * 3).reshape(N, 3) == 0)
    (one, _), (two, _) = rows_of(LABELS, np.ma.masked_array(whole)), rows_of(LABELS, masked)
    assert one._X.dtype == two._X.dtype == np.float64
    assert one._X[1:].tobytes() == two._X[1:].tobytes()


def test_what_is_refused_all_the_same_is_stated():
    def assumptions(table, **more):
        model = DPLogisticRegression(1.0, 1e-6, classes=[0, 1], random_state=0, solver="dp-gd", steps=1, **more)
        return " ".join(model.fit(table, LABELS).privacy_.assumptions)

    assert "as many cells" in assumptions(X.tolist(), invalid_rows="zero")
    assert "as many cells" not in assumptions(X, invalid_rows="zero")
    assert "single precision" in assumptions(X.astype(np.float32))
    assert "single precision" not in assumptions(pd.DataFrame(X.astype(np.float32), columns=list("abc")))
    assert "at least one row" in assumptions(X, invalid_rows="zero", relation="add-remove", n_rows=N)


@pytest.mark.parametrize("label", [np.ma.masked, [1, 2], 1j, {}, np.datetime64("2020")])
def test_odd_labels_count_as_zero(label):
    cells = [label, *LABELS[1:]]
    rows, _ = rows_of(cells)
    assert rows._table.factors[0] == 0
    assert (rows._table.factors[1:] != 0).all()


def test_large_whole_numbers_are_told_apart():
    """In one array with a real number, 2^53 and 2^53 + 1 would be the same."""
    classes = [2**53, 2**53 + 1]
    labels = [2**53 + each for each in LABELS]
    model = DPLogisticRegression(
        1.0, 1e-6, classes=classes, invalid_rows="zero", random_state=0, solver="dp-gd", steps=1
    )
    for held in (labels, np.array(labels), pd.Series(labels, dtype="Int64"), [0.5, *labels[1:]], [2**64, *labels[1:]]):
        found = model.prepare(X, held)[1]._columns[0]
        np.testing.assert_array_equal(found[1:], 2 * np.array(LABELS[1:]) - 1)


@pytest.mark.parametrize("classes", [[0, "a"], [2**53 + 1, 0.5], ["a", "a\x00"], [0, None], [0, np.nan], [[0], [1]]])
def test_classes_that_one_array_cannot_hold_are_refused(classes):
    with pytest.raises(ValueError, match="class"):
        DPLogisticRegression(1.0, 1e-6, classes=classes).fit(X, LABELS)


@pytest.mark.parametrize("kind", ["complex64", "complex128", "Sparse[complex]", object])
def test_one_complex_cell_of_a_column_takes_no_other_row_with_it(kind):
    """pandas writes 0.5 as 0.5+0j beside it; without a number in it all rows vanished."""
    whole = pd.DataFrame(X.astype(np.float32).astype(float), columns=list("abc"))
    other = whole.assign(b=pd.Series([1j, *whole["b"][1:]]).astype(kind))
    labels = pd.Series([1j, *LABELS[1:]], dtype=kind)
    for table, y in ((other, LABELS), (whole, labels)):
        (one, _), (two, _) = rows_of(LABELS, whole), rows_of(y, table)
        assert two._table.factors[0] == 0
        np.testing.assert_array_equal(one._table.factors[1:], two._table.factors[1:])
        np.testing.assert_array_equal(one._columns[:, 1:], two._columns[:, 1:])
        assert one._X[1:].tobytes() == two._X[1:].tobytes()


def test_a_complex_or_short_real_category_is_what_the_number_is():
    plain = pd.Series([0.0, 1.0, 2.0])
    for kind in ("complex128", "float32", "float16", "longdouble", "Sparse[complex]"):
        typed = plain.astype(kind)
        for series in (typed, typed.astype(object), pd.Series([*typed, "oops", 1j], dtype=object)):
            for declared in (("0", "1", "2"), (0, 1, 2)):
                assert read_codes(series, declared)[:3].tolist() == [0, 1, 2]
            assert read_numbers(series)[:3].tolist() == [0, 1, 2]
    missing = pd.Series([1, np.nan, 1j], dtype="complex128")
    assert read_codes(missing, ("0", "1"), "0").tolist() == [1, 0, -1]


def unreadable(kind):
    """Columns of three good cells, and one that pandas cannot make an object, with what the good ones are."""
    pa = pytest.importorskip("pyarrow")
    if kind == "text":
        buffers = pa.array([b"0", b"1", b"1", b"\xff my SECRET"]).buffers()[1:]
        array = pa.Array.from_buffers(pa.string(), 4, [None, *buffers])
    elif kind == "date":
        array = pa.array([1, 2, 3, 2**31 - 1], type=pa.int32()).cast(pa.date32())
    else:
        far = pd.Series(np.array([0, 1, 2, 2**62], dtype="M8[us]")).dt.tz_localize("UTC")
        return far
    return pd.Series(pd.arrays.ArrowExtensionArray(array))


@pytest.mark.parametrize("kind", ["text", "date", "instant"])
def test_a_cell_that_cannot_be_made_an_object_harms_no_other(kind):
    series = unreadable(kind)
    cells = objects_of(series)
    assert cells[:3].tolist() == objects_of(series[:3]).tolist()
    assert np.isnan(number_or_nan(cells[3]))
    assert label(cells[3]) is None
    numbers = [0.0, 1.0, 1.0] if kind == "text" else [np.nan] * 3
    np.testing.assert_array_equal(read_numbers(series, 7.0), [*numbers, np.nan])
    assert read_codes(series, ("0", "1"), "0").tolist() == ([0, 1, 1, -1] if kind == "text" else [-1] * 4)
    table = np.arange(8).reshape(4, 2) / 9
    model = DPLogisticRegression(
        1.0, 1e-3, classes=["0", "1"], invalid_rows="zero", random_state=0, solver="dp-gd", steps=1
    )
    holders = [series, series.to_frame(), series.array]
    if kind == "text":
        holders.append(series.array.__arrow_array__())
    for y in holders:
        rows = model.prepare(table, y)[1]
        assert (rows._table.factors != 0).tolist() == [kind == "text"] * 3 + [False]
    frame = pd.DataFrame({"a": series, "b": [1.0, 2.0, 3.0, 4.0]})
    rows = model.prepare(frame, ["0", "1", "0", "1"])[1]
    assert (rows._table.factors != 0).tolist() == [kind == "text"] * 3 + [False]
    with pytest.raises(ValueError, match="not numbers") as refusal:
        model.set_params(invalid_rows="error").fit(frame, ["0", "1", "0", "1"])
    assert "SECRET" not in str(refusal.value)


def test_an_unreadable_cell_is_of_no_text_and_not_missing():
    series = pd.Series([UNREADABLE, None], dtype=object)
    assert read_codes(series, ("0", "1"), "0").tolist() == [-1, 0]


def test_large_labels_stay_what_they_are_beside_a_missing_one():
    pa = pytest.importorskip("pyarrow")
    classes = [2**53, 2**53 + 1]
    labels = [None, *[2**53 + each for each in LABELS[1:]]]
    codes = np.array([-1, *LABELS[1:]])
    long = np.array([0, *labels[1:]], dtype="longdouble")
    holders = (
        pd.Series(pd.Categorical.from_codes(codes, categories=classes)),
        pd.Categorical.from_codes(codes, categories=classes),
        pa.array(labels),
        pa.chunked_array([labels[:9], labels[9:]]),
        long,
        pd.Series(long),
        long.astype(object),
        np.ma.masked_array(long, mask=np.arange(N) == 0),
    )
    model = DPLogisticRegression(
        1.0, 1e-6, classes=classes, invalid_rows="zero", random_state=0, solver="dp-gd", steps=1
    )
    for held in holders:
        rows = model.prepare(X, held)[1]
        np.testing.assert_array_equal(rows._columns[0][1:], 2 * np.array(LABELS[1:]) - 1)
        assert rows._table.factors[0] == 0
    assert label(np.longdouble(2**63 + 1)) == 2**63 + 1
    assert label(np.longdouble("0.1")) == Fraction(*np.longdouble("0.1").as_integer_ratio())
    assert label(np.longdouble("nan")) is None


def test_what_makes_an_array_of_itself_is_of_double_precision():
    """A table of pyarrow is of single precision unless one cell is missing."""

    class Exported:
        def __init__(self, made):
            self.made = made

        def __array__(self, dtype=None, copy=None):
            return self.made

    pa = pytest.importorskip("pyarrow")
    short = pa.array(X[:, 0].astype(np.float32))
    whole = [0] * N
    tables = [pa.table({"a": short, "b": pa.array([first, *whole[1:]], type=pa.int16())}) for first in (0, None)]
    (one, _), (two, _) = (rows_of(LABELS, table) for table in tables)
    assert one._X.dtype == two._X.dtype == np.float64
    assert one._X[1:].tobytes() == two._X[1:].tobytes()
    made = X.astype(np.float32)
    for kind in (object, complex, np.float32):
        rows, _ = rows_of(LABELS, Exported(made.astype(kind)))
        assert rows._X.dtype == np.float64
        assert (rows._table.factors != 0).all()


@pytest.mark.parametrize(
    ("given", "kind"), [([0, 1], "i"), ([False, True], "b"), (["a", "b"], "U"), ([0, 2**63 + 1], "u")]
)
def test_observed_classes_have_a_type_that_no_missing_label_changes(given, kind):
    """pandas makes whole numbers real for one missing label; `classes_` would tell that there is one."""
    labels = [given[each] for each in LABELS]
    whole = pd.Series(labels)
    other = whole.copy().astype(object)
    other[0] = None
    held = [
        whole,
        other,
        list(other),
        np.array(other, dtype=object),
        whole.astype("category"),
        other.astype("category"),
    ]
    if kind == "i":
        held += [other.astype(float), np.ma.masked_array(labels, mask=np.arange(N) == 0), np.ma.masked_array(labels)]
    model = DPLogisticRegression(1.0, 1e-6, invalid_rows="zero", random_state=0, solver="dp-gd", steps=1)
    for y in held:
        classes = model.prepare(X, y)[0].target.classes
        assert classes.dtype.kind == kind
        assert classes.tolist() == given
    if kind in "iU":
        plain = np.array(labels)
        assert model.prepare(X, plain)[0].target.classes.dtype == plain.dtype


def test_observed_classes_of_dask_are_the_union_of_those_of_the_partitions():
    dask, da = pytest.importorskip("dask"), pytest.importorskip("dask.array")
    half = N // 2
    for first in (0, np.nan):
        parts = [np.array([first, *LABELS[1:half]]), np.array(LABELS[half:])]
        y = da.concatenate([da.from_delayed(dask.delayed(part), (half,), dtype=float) for part in parts])
        model = DPLogisticRegression(1.0, 1e-6, invalid_rows="zero", random_state=0, solver="dp-gd", steps=1)
        classes = model.prepare(da.from_array(X, chunks=(half, 3)), y)[0].target.classes
        assert classes.dtype.kind == "i"
        assert classes.tolist() == [0, 1]


def test_no_class_of_a_user_is_asked_anything():
    for cell, value in (
        (OddFraction(1, 2), Fraction(1, 2)),
        (LateFraction(1), 1),
        (LateDecimal(1), 1),
        (LateReal(1), 1),
    ):
        assert label(cell) == value
        assert type(label(cell)).__module__ in ("fractions", "decimal", "builtins")
        assert number_or_nan(cell) == value
    assert label(LateBytes(b"1")) == b"1"
    assert number_or_nan(LateBytes(b"1")) == 1
    for cell in (SaysTorch(), Untyped()):
        assert label(cell) is None
        assert np.isnan(number_or_nan(cell))


def test_only_the_user_stops_a_fit():
    class Stops(metaclass=type("Meta", (type,), {"__hash__": lambda cls: sys.exit(1)})):
        pass

    assert np.isnan(number_or_nan(Stops()))
    assert label(Stops()) is None
    rows, _ = rows_of(LABELS, [[Stops(), 0, 0], *X[1:].tolist()])
    assert rows._table.factors[0] == 0
    assert (rows._table.factors[1:] != 0).all()
