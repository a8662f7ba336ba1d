"""One label that is no label: the sums of neighbouring tables differ by no more than one row can move them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpadmm import DPLogisticRegression
from dpadmm.privacy.sampling import Batch

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
    prepared = model._prepared(table, labels)
    return prepared.rows, prepared.recipe.plan.queries[0]


@pytest.mark.parametrize("holder", HOLDERS)
def test_one_label_moves_a_sum_by_no_more_than_its_row(holder):
    """With all labels read as text the clean sums differed by the contributions of all 2000 rows."""
    one, query = rows_of(HOLDERS[holder](LABELS))
    two, _ = rows_of(HOLDERS[holder](["oops", *LABELS[1:]]))
    for point in (np.zeros(4), np.array([1.0, -2.0, 0.5, 3.0])):
        sums = [rows.gradient_sum(point, query.clip_norm, Batch(None)) for rows in (one, two)]
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
        sums = [rows.gradient_sum(point, query.clip_norm, Batch(None)) for rows in (one, two)]
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
        found = model._prepared(X, held).rows._columns[0]
        np.testing.assert_array_equal(found[1:], 2 * np.array(LABELS[1:]) - 1)


@pytest.mark.parametrize("classes", [[0, "a"], [2**53 + 1, 0.5], ["a", "a\x00"], [0, None], [0, np.nan], [[0], [1]]])
def test_classes_that_one_array_cannot_hold_are_refused(classes):
    with pytest.raises(ValueError, match="class"):
        DPLogisticRegression(1.0, 1e-6, classes=classes).fit(X, LABELS)
