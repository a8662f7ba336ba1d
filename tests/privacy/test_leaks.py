"""The side channels of theory §6: messages, labels, counts, warnings, files and row numbers say nothing of the data."""

from __future__ import annotations

import decimal
import json
import traceback
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

from dpadmm import DPLinearRegression, DPLinearSVC, DPLogisticRegression
from dpadmm.errors import DpadmmError
from dpadmm.privacy.budget import Budget
from dpadmm.privacy.ledger import Ledger

from .taint import Stub, differences, observe, settings_of

N, D = 60, 4
ROWS = np.random.default_rng(0)
X, Y = ROWS.uniform(-1, 1, (N, D)), (ROWS.uniform(size=N) < 0.5).astype(int)
COMMON = {"row_norm": 1.0, "delta": 1e-3, "steps": 4, "batch_size": 10}
SECRET = 731.90625
"""Planted in the data, exact in float32; its digits occur in no message of the library's own."""
TEXT = "Zaphod"


def logistic(**more):
    return DPLogisticRegression(**settings_of(COMMON | {"classes": [0, 1]}, **more))


def squared(**more):
    return DPLinearRegression(**settings_of(COMMON | {"target_bounds": (0, 1)}, **more))


def planted(value, dtype=object):
    table = X.astype(dtype)
    table[3, 1] = value
    return table


def labels(value, dtype=object):
    y = Y.astype(dtype)
    y[3] = value
    return y


def frame(value):
    table = pd.DataFrame(X, columns=list("abcd")).astype(object)
    table.iloc[3, 1] = value
    return table


BAD_X = {
    "text": (planted(TEXT), Y),
    "text-frame": (frame(TEXT), Y),
    "text-lists": (planted(TEXT).tolist(), Y),
    "text-array": (planted(TEXT).astype(str), Y),
    "bytes": (planted(TEXT.encode()), Y),
    "whole-text": (TEXT, Y),
    "nan": (np.where(np.arange(N * D).reshape(N, D) == 7, np.nan, X + SECRET), Y),
    "inf": (np.where(np.arange(N * D).reshape(N, D) == 7, np.inf, X + SECRET), Y),
    "huge-int": (planted(10**400 + 73190625), Y),
    "dict": (planted({TEXT: SECRET}), Y),
    "list": (planted([SECRET, TEXT]), Y),
    "missing": (frame(pd.NA), Y),
    "date": (planted(pd.Timestamp("2073-06-25")), Y),
    "decimal": (planted(decimal.Decimal("NaN")), Y),
    "none": (planted(None), Y),
    "complex": (np.full((N, D), SECRET + 1j), Y),
    "complex-object": (planted(complex(SECRET, 1)), Y),
    "one-dimensional": (np.full(N, SECRET), Y),
    "one-dimensional-list": ([SECRET] * N, Y),
    "scalar": (SECRET, Y),
    "three-dimensional": (X[None] + SECRET, Y),
    "ragged": ([[SECRET], [SECRET, 1.0]] * (N // 2), Y),
    "category": (pd.DataFrame({"a": pd.Categorical([TEXT] * N)}), Y),
    "sparse-nan": (sparse.csr_matrix(planted(np.nan, float) * SECRET), Y),
    "wrong-length": (np.full((N - 1, D), SECRET), Y),
    "empty": (np.empty((0, D)), Y[:0]),
    "no-features": (np.empty((N, 0)), Y),
}
BAD_Y = {
    "text": labels(TEXT),
    "nan": labels(np.nan, float) * SECRET,
    "inf": labels(np.inf, float) * SECRET,
    "undeclared": labels(SECRET, float),
    "undeclared-int": labels(73190625),
    "huge-int": labels(10**400 + 73190625),
    "list": labels([SECRET]),
    "array": labels(np.array([SECRET, 1.0])),
    "dict": labels({TEXT: SECRET}),
    "missing": pd.Series(Y).astype("Int64").mask(np.arange(N) == 3),
    "bytes": labels(TEXT.encode()),
    "two-columns": np.column_stack([Y, Y]) * SECRET,
    "complex": Y * SECRET + 1j * SECRET,
    "date": labels(pd.Timestamp("2073-06-25")),
    "short": np.full(N - 1, SECRET),
    "scalar": SECRET,
    "none": None,
}


def everything_said(model, X, y):
    """All text that leaves `fit`: the traceback with the exceptions it chains, and the warnings."""
    said = ""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model.fit(X, y)
        except Exception as error:
            said = "".join(traceback.format_exception(error))
    return said + "".join(str(warning.message) for warning in caught)


def assert_silent_about_the_data(said):
    for secret in ("73190625", "731.9", "7.319", "Zaphod", "2073", "06-25"):
        assert secret not in said, said


class TestMessages:
    @pytest.mark.parametrize("invalid_rows", ["error", "zero"])
    @pytest.mark.parametrize("make", [logistic, squared])
    @pytest.mark.parametrize("case", BAD_X)
    def test_bad_features(self, case, make, invalid_rows):
        assert_silent_about_the_data(everything_said(make(invalid_rows=invalid_rows), *BAD_X[case]))

    @pytest.mark.parametrize("invalid_rows", ["error", "zero"])
    @pytest.mark.parametrize("classes", [[0, 1], None])
    @pytest.mark.parametrize("case", BAD_Y)
    def test_bad_labels(self, case, classes, invalid_rows):
        said = everything_said(logistic(classes=classes, invalid_rows=invalid_rows), X, BAD_Y[case])
        assert_silent_about_the_data(said)

    @pytest.mark.parametrize("invalid_rows", ["error", "zero"])
    @pytest.mark.parametrize("case", BAD_Y)
    def test_bad_targets(self, case, invalid_rows):
        assert_silent_about_the_data(everything_said(squared(invalid_rows=invalid_rows), X, BAD_Y[case]))

    def test_the_harness_hears_scikit_learn_quote_a_value(self):
        from sklearn.linear_model import LogisticRegression

        with pytest.raises(AssertionError):
            assert_silent_about_the_data(everything_said(LogisticRegression(), *BAD_X["one-dimensional"]))
        with pytest.raises(AssertionError):
            assert_silent_about_the_data(everything_said(LogisticRegression(), planted(TEXT), Y))

    @pytest.mark.parametrize(
        "case", ["text", "nan", "inf", "text-frame", "sparse-nan", "dict", "list", "complex-object"]
    )
    def test_refused_tables_raise_the_librarys_own_errors(self, case):
        with pytest.raises(DpadmmError):
            logistic().fit(*BAD_X[case])

    def test_bad_rows_raise_the_same_words_wherever_and_however_many(self):
        said = set()
        for rows in ([0], [59], list(range(30))):
            table = X.copy()
            table[rows, 1] = np.nan
            said.add(everything_said(logistic(), table, Y))
        assert len(said) == 1


class TestBadRowsThatCountAsZero:
    """`invalid_rows="zero"`: no exception or warning tells of a missing, infinite or undeclared value in a row."""

    @pytest.mark.parametrize("case", ["nan", "inf", "none", "missing", "decimal", "huge-int", "sparse-nan"])
    def test_features(self, case):
        assert everything_said(logistic(invalid_rows="zero"), *BAD_X[case]) == ""

    @pytest.mark.parametrize(
        "case", ["nan", "inf", "undeclared", "undeclared-int", "huge-int", "missing", "text", "date"]
    )
    def test_labels(self, case):
        assert everything_said(logistic(invalid_rows="zero"), X, BAD_Y[case]) == ""

    @pytest.mark.parametrize("case", ["list", "array", "dict"])
    def test_objects_as_labels(self, case):
        assert everything_said(logistic(invalid_rows="zero"), X, BAD_Y[case]) == ""

    @pytest.mark.parametrize("case", ["nan", "inf", "huge-int", "missing"])
    def test_targets(self, case):
        assert everything_said(squared(invalid_rows="zero"), X, BAD_Y[case]) == ""


def same(model, one, two, tmp_path):
    first = observe(clone(model), *one, tmp_path / "one", Stub())
    second = observe(clone(model), *two, tmp_path / "two", Stub())
    assert first["failure"] is None
    assert differences(first, second) == []
    return first


class TestLabels:
    @pytest.mark.parametrize("present", [[0, 1, 2], [0], [2], [1, 2]])
    def test_declared_classes_hide_which_labels_occur(self, present, tmp_path):
        y = np.resize(present, N)
        model = logistic(classes=[0, 1, 2], verbose=1)
        same(model, (X, np.resize([0, 1, 2], N)), (X, y), tmp_path)
        assert clone(model).fit(X, y).classes_.tolist() == [0, 1, 2]

    def test_class_balance_changes_nothing(self, tmp_path):
        rare = np.zeros(N, dtype=int)
        rare[0] = 1
        for model in (logistic(verbose=1), DPLinearSVC(classes=[0, 1], verbose=1, **settings_of(COMMON))):
            same(model, (X, Y), (X, rare), tmp_path)

    def test_text_labels(self, tmp_path):
        names = np.array(["no", "yes"], dtype=object)
        same(logistic(classes=["no", "yes"]), (X, names[Y]), (X, np.full(N, "no", dtype=object)), tmp_path)

    def test_classes_read_from_the_table_are_confessed(self):
        model = logistic(classes=None).fit(X, Y)
        assert any("class labels was read from the table" in line for line in model.privacy_.assumptions)

    def test_the_intercept_does_not_start_at_the_label_mean(self, tmp_path):
        same(squared(), (X, np.zeros(N)), (X, np.ones(N)), tmp_path)
        seen = same(squared(solver="full-admm"), (X, np.zeros(N)), (X, np.ones(N)), tmp_path)
        assert seen["queries"][0][:2] == ("asked", "gradient")
        assert not np.frombuffer(seen["queries"][0][2]).any()


class TestCounts:
    @pytest.mark.parametrize("solver", ["auto", "dp-sadmm", "dp-vradmm", "dp-gd"])
    def test_n_iter_is_a_public_constant(self, solver):
        tables = [(X, Y), (np.zeros((N, D)), np.zeros(N, int)), (1e6 * X, 1 - Y)]
        assert len({logistic(solver=solver).fit(*table).n_iter_ for table in tables}) == 1

    @pytest.mark.parametrize("solver", ["auto", "dp-sadmm", "dp-vradmm"])
    def test_a_declared_row_count_hides_the_real_one(self, solver, tmp_path):
        model = logistic(solver=solver, relation="add-remove", n_rows=65, verbose=1)
        seen = same(model, (X, Y), (X[:-1], Y[:-1]), tmp_path)
        same(model, (X, Y), (np.vstack([X] * 3), np.tile(Y, 3)), tmp_path)
        words = json.loads(seen["files"]["model.json"])
        assert words["plan"]["n_rows"] == 65
        assert '"n_rows": 60' not in seen["files"]["model.json"].decode()

    def test_a_ledger_writes_down_nothing_but_plans(self, tmp_path):
        accounts = []
        for i, table in enumerate(((X, Y), (1e6 * X[:-7], np.zeros(N - 7, int)))):
            ledger = Ledger.create(tmp_path / f"{i}.db")
            ledger.set_limit("toy", Budget(3.0, 1e-3, "add-remove"), owner="Ada", test=True)
            logistic(relation="add-remove", n_rows=65, ledger=ledger, dataset="toy").fit(*table)
            # Random names, the clock, and the digest of the noisy release.
            chance = ("receipt", "ledger", "time", "release")
            entries = [entry.content for entry in ledger.entries]
            accounts.append([{key: value for key, value in entry.items() if key not in chance} for entry in entries])
        assert accounts[0] == accounts[1]
        assert len(accounts[0]) == 4

    def test_an_undeclared_row_count_is_confessed(self):
        model = logistic(relation="add-remove").fit(X, Y)
        assert any("number of rows was treated as public" in line for line in model.privacy_.assumptions)

    def test_sparsity_pattern_changes_nothing(self, tmp_path):
        sparse_table = X.copy()
        sparse_table[:, 2] = 0.0
        sparse_table[5:] = 0.0
        same(logistic(), (sparse.csr_matrix(X), Y), (sparse.csr_matrix(sparse_table), Y), tmp_path)


class TestExtremes:
    @pytest.mark.parametrize("more", [{}, {"bounds": (-1e308, 1e308)}, {"row_norm": 1e300}, {"row_norm": 1e-300}])
    def test_extreme_rows_cause_no_warning(self, more, tmp_path):
        wild = X * 10.0 ** ROWS.integers(-300, 300, (N, 1))
        wild[7], wild[8] = 1.7e308, -1.7e308
        first = observe(logistic(**more), X, Y, tmp_path / "one", Stub())
        second = observe(logistic(**more), wild, Y, tmp_path / "two", Stub())
        assert differences(first, second) == []

    @pytest.mark.parametrize("bounds", [(-1e308, 1e308), (-1e-308, 1e-308), (-1.0, 1.0)])
    def test_extreme_targets_cause_no_warning(self, bounds, tmp_path):
        extreme = np.where(Y, 1.7e308, -1.7e308)
        first = observe(squared(target_bounds=bounds), X, Y, tmp_path / "one", Stub())
        second = observe(squared(target_bounds=bounds), X, extreme, tmp_path / "two", Stub())
        assert differences(first, second) == []


def test_saved_files_hold_no_row(tmp_path):
    """Neither as text nor as bytes: coefficients are the only numbers of the data's kind."""
    table = X.copy()
    table[:, 1] = SECRET
    model = squared(row_norm=1e4, target_bounds=(0, 1000)).fit(table, np.full(N, SECRET))
    model.save(tmp_path)
    for path in tmp_path.iterdir():
        content = path.read_bytes()
        assert str(SECRET).encode() not in content
        assert np.float64(SECRET).tobytes() not in content
        assert np.float32(SECRET).tobytes() not in content
    assert {path.name for path in tmp_path.iterdir()} == {"model.json", "model.npz", "score.py", "score.sql"}
    assert not any(isinstance(value, np.ndarray) and N in value.shape for value in vars(model).values())


@pytest.mark.parametrize("tiny", [1e-310, 5e-324, 1e308, -0.0])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("solver", ["auto", "dp-sadmm", "dp-gd"])
def test_no_warning_speaks_of_a_row(tiny, make, solver):
    X = np.ones((60, 2))
    X[7] = [tiny, 0.0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DPLogisticRegression(
            1.0, 1e-4, solver=solver, steps=4, fit_intercept=False, row_norm=1.0, classes=[0, 1], random_state=0
        ).fit(make(X), np.arange(60) % 2)


def test_rows_wider_than_a_double_are_zero_without_a_word():
    X = np.ones((60, 2), dtype=np.longdouble)
    X[7, 0] = np.longdouble("1e4000")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DPLogisticRegression(1.0, 1e-4, invalid_rows="zero", row_norm=1.0, classes=[0, 1], random_state=0).fit(
            X, np.arange(60) % 2
        )


def test_a_failed_refit_leaves_every_attribute_as_it_was():
    model = DPLogisticRegression(1.0, 1e-4, classes=[0, 1], random_state=0).fit(np.ones((60, 2)), np.arange(60) % 2)
    before = {name: id(value) for name, value in vars(model).items()}
    with pytest.raises(DpadmmError):
        model.fit(np.full((60, 5), np.nan), np.arange(60) % 2)
    assert {name: id(value) for name, value in vars(model).items()} == before
