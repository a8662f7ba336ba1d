"""Tables and penalties with something wrong or extreme in them: a finite model or a clear refusal, never a crash."""

from __future__ import annotations

import tracemalloc
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from scipy import sparse

from dpadmm import DPLinearRegression, DPLinearSVC, DPLogisticRegression, Ledger
from dpadmm.declare import resources
from dpadmm.declare.penalties import PENALTIES
from dpadmm.errors import DpadmmError, InvalidData, InvalidParameter
from dpadmm.privacy.budget import Budget
from dpadmm.problem import Constraint
from dpadmm.solvers.base import SOLVERS

ESTIMATORS = {
    "logistic": lambda **more: DPLogisticRegression(1.0, 1e-6, **{"classes": [0, 1], **more}),
    "softmax": lambda **more: DPLogisticRegression(1.0, 1e-6, **{"classes": [0, 1, 2], **more}),
    "svm": lambda **more: DPLinearSVC(1.0, 1e-6, **{"classes": [0, 1], **more}),
    "regression": lambda **more: DPLinearRegression(1.0, 1e-6, target_bounds=(-1, 1), **more),
}
EVERY = pytest.mark.parametrize("make", ESTIMATORS.values(), ids=list(ESTIMATORS))
N = 1000


def gaussians(*shape):
    return np.random.default_rng(0).standard_normal(shape)


def fit(make, X, **more):
    model = make(random_state=0, **more).fit(X, np.arange(X.shape[0]) % 2)
    assert np.isfinite(model.weights_).all()
    assert np.isfinite(np.asarray(model.predict(X), dtype=float)).all()
    return model


@EVERY
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("table", [np.zeros, sparse.csr_matrix, sparse.coo_matrix, sparse.csc_matrix])
def test_rows_of_zeros(make, intercept, table):
    fit(make, table((N, 4)), fit_intercept=intercept)


@EVERY
def test_some_rows_of_zeros(make):
    X = gaussians(N, 3)
    X[::2] = 0
    fit(make, X, fit_intercept=False)


@EVERY
@pytest.mark.parametrize(("shape", "what"), [((0, 4), "0 sample"), ((N, 0), "0 feature")])
def test_empty_tables_are_refused(make, shape, what):
    for table in (np.zeros, sparse.csr_matrix):
        with pytest.raises(InvalidData, match=what) as refusal:
            make().fit(table(shape), np.zeros(shape[0]))
        assert str(N) not in str(refusal.value), "the number of rows, which add-remove keeps secret"


@EVERY
@pytest.mark.parametrize("penalty", ["none", "l1", "fused"])
def test_dependent_and_constant_columns(make, penalty):
    X = gaussians(N, 3)
    fit(make, np.column_stack([X, 2 * X, np.ones(N), np.zeros(N)]), penalty=penalty)


@EVERY
def test_only_constant_columns(make):
    fit(make, np.full((N, 3), 7.0))


@EVERY
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("penalty", ["none", "l1", "fused", "nuclear"])
def test_one_feature(make, intercept, penalty):
    fit(make, gaussians(N, 1), fit_intercept=intercept, penalty=penalty, steps=3)


@EVERY
@pytest.mark.parametrize("n_rows", [1, 2, 20])
def test_fewer_rows_than_features(make, n_rows):
    fit(make, gaussians(n_rows, 60))


@EVERY
@pytest.mark.parametrize("row_norm", [1e-30, 1e-8, 1e8, 1e30])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_extreme_row_norms(make, row_norm, dtype):
    fit(make, gaussians(N, 3).astype(dtype), row_norm=row_norm)


@EVERY
@pytest.mark.parametrize(
    ("row_norm", "said"), [(0, "> 0"), (-1, "> 0"), (np.nan, "> 0"), (np.inf, "finite"), (1e31, "1e-30 to 1e30")]
)
def test_impossible_row_norms_are_refused(make, row_norm, said):
    with pytest.raises(InvalidParameter, match=said):
        fit(make, gaussians(N, 3), row_norm=row_norm)


@pytest.mark.parametrize("estimator", [DPLogisticRegression, DPLinearSVC])
@pytest.mark.parametrize("classes", [[1], [], [1, 1]])
def test_fewer_than_two_declared_classes_are_refused(estimator, classes):
    with pytest.raises(InvalidParameter, match="class"):
        estimator(1.0, 1e-6, classes=classes).fit(gaussians(N, 3), np.ones(N))


def test_classes_that_no_file_can_hold_are_refused():
    for classes in (["a", "\ud800"], ["\ud83d\ude00", "b"], np.array(["0.1", "0.2"], dtype=np.longdouble)):
        with pytest.raises(InvalidParameter, match="classes"):
            DPLogisticRegression(1.0, 1e-6, classes=classes).fit(gaussians(4, 2), [0, 1, 0, 1])


@pytest.mark.parametrize("labels", [[0.5, 1.0, 0.0, 0.25], np.array([b"a", b"b", b"a", b"b"])])
def test_observed_labels_that_are_no_classes_are_refused_in_own_words(labels):
    with pytest.raises(InvalidData, match="Unknown label type"):
        DPLogisticRegression(1.0, 1e-6, classes=None).fit(gaussians(4, 2), labels)


def test_a_declared_class_that_no_row_has_is_fine():
    model = DPLogisticRegression(1.0, 1e-6, classes=[0, 1], random_state=0).fit(gaussians(N, 3), np.ones(N))
    assert list(model.classes_) == [0, 1]


@EVERY
@pytest.mark.parametrize("penalty", ["none", "l1"])
def test_more_features_than_a_square_matrix_fits_in_memory(make, penalty):
    """d × d would be 320 GB: auto sees the mean row instead, and nothing of that size is made."""
    rows, columns = np.repeat(np.arange(500), 20), np.random.default_rng(0).integers(0, 200_000, 10_000)
    X = sparse.csr_matrix((np.ones(10_000), (rows, columns)), shape=(500, 200_000))
    model = fit(make, X, penalty=penalty, steps=5)
    assert model.privacy_.solver == "auto"
    assert model.plan_.query("moments").question.name == "row-moments"


class TestRoom:
    """A model that this machine cannot hold is refused while that costs nothing."""

    @EVERY
    @pytest.mark.parametrize("more", [{}, {"penalty": "fused"}, {"bounds": (0, 1)}, {"solver": "dp-sadmm"}])
    def test_more_features_than_a_vector_fits_in_memory(self, make, more, tmp_path):
        ledger = Ledger.create(tmp_path / "ledger.db")
        ledger.set_limit("table", Budget(2.0, 1e-5), owner="Ada")
        X = sparse.csr_matrix((np.ones(N), np.arange(N), np.arange(N + 1)), shape=(N, 2**40))
        with pytest.raises(InvalidParameter, match=r"weights, whose training needs .* GiB\. .* of this machine"):
            make(ledger=ledger, dataset="table", **more).fit(X, np.arange(N) % 2)
        assert [entry.content["kind"] for entry in ledger.entries] == ["create", "limit"]

    @pytest.mark.parametrize("solver", [name for name in SOLVERS if name != "noisy-admm"])
    def test_no_more_is_asked_for_than_training_takes(self, solver, monkeypatch):
        d = 2**18
        X = sparse.csr_matrix((np.ones(100), np.arange(100), np.arange(101)), shape=(100, d))
        model = DPLogisticRegression(1.0, 1e-6, classes=[0, 1], solver=solver, steps=2)
        tracemalloc.start()
        model.fit(X, np.arange(100) % 2)
        taken = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        asked = 8 * (d + 1) * SOLVERS[solver].numbers_per_weight
        assert asked <= taken
        monkeypatch.setattr(resources, "memory", lambda: asked)
        model.fit(X, np.arange(100) % 2)
        monkeypatch.setattr(resources, "memory", lambda: asked - 1)
        with pytest.raises(InvalidParameter, match="of this machine"):
            model.fit(X, np.arange(100) % 2)

    @pytest.mark.parametrize(("said", "limit"), [("4096\n", 4096.0), ("max\n", None), (None, None)])
    def test_the_limit_of_a_container_counts(self, said, limit, tmp_path, monkeypatch):
        monkeypatch.setattr(resources, "GROUP_LIMIT", tmp_path / "memory.max")
        if said is not None:
            (tmp_path / "memory.max").write_text(said)
        assert resources.memory() == limit or (limit is None and resources.memory() > 2**28)


@dataclass(frozen=True)
class Broken:
    """A penalty of the user's own whose prox is wrong after `good` calls."""

    wrong: float
    good: int = 0
    name: ClassVar[str] = "broken"
    convex: ClassVar[bool] = True
    separable: ClassVar[bool] = True
    calls: ClassVar[list[int]] = []

    def value(self, y):
        return 0.0

    def prox(self, v, step):
        self.calls.append(1)
        return v if len(self.calls) <= self.good else np.full_like(v, self.wrong)


class TestUserDefinedProx:
    @pytest.fixture
    def penalty(self, monkeypatch):
        def register(regularizer):
            monkeypatch.setitem(
                PENALTIES._entries,
                "broken",
                lambda choice: (regularizer, Constraint.identity(choice.size, choice.free)),
            )
            Broken.calls.clear()
            return "broken"

        return register

    @pytest.mark.parametrize("solver", [name for name in SOLVERS if name != "noisy-admm"])
    @pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
    def test_values_that_are_not_finite_are_refused_before_anything_is_released(self, penalty, solver, wrong):
        model = DPLogisticRegression(1.0, 1e-6, classes=[0, 1], penalty=penalty(Broken(wrong)), solver=solver, steps=4)
        with pytest.raises(InvalidParameter, match=r"'broken' whose prox is not finite.*Correct the prox.*spent"):
            model.fit(gaussians(200, 3), np.arange(200) % 2)
        assert not [name for name in vars(model) if name.endswith("_")]

    @pytest.mark.parametrize("good", [0, 1, 400])
    def test_the_reserved_budget_counts_as_spent(self, penalty, good, tmp_path):
        ledger = Ledger.create(tmp_path / "ledger.db")
        ledger.set_limit("table", Budget(2.0, 1e-5), owner="Ada", test=True)
        model = DPLogisticRegression(
            1.0,
            1e-6,
            classes=[0, 1],
            penalty=penalty(Broken(np.nan, good)),
            ledger=ledger,
            dataset="table",
            random_state=0,
        )
        with pytest.raises(InvalidParameter, match="prox"):
            model.fit(gaussians(200, 3), np.arange(200) % 2)
        assert ledger.spent("table")[0] > 0
        assert [entry.content["kind"] for entry in ledger.entries] == ["create", "limit", "reserve"]

    def test_another_shape_is_refused(self, penalty):
        class Flat(Broken):
            def prox(self, v, step):
                return v.sum()

        with pytest.raises(DpadmmError, match="another shape"):
            DPLogisticRegression(1.0, 1e-6, classes=[0, 1], penalty=penalty(Flat(0.0))).fit(
                gaussians(200, 3), np.arange(200) % 2
            )

    def test_a_good_one_is_used(self, penalty):
        good = Broken(np.nan, good=10**9)
        for solver in (name for name in SOLVERS if name != "noisy-admm"):
            model = DPLogisticRegression(1.0, 1e-6, classes=[0, 1], penalty=penalty(good), solver=solver, steps=4)
            model.fit(gaussians(200, 3), np.arange(200) % 2)
            assert Broken.calls

    def test_hidden_passes_take_none(self, penalty):
        """A prox that fails at a hidden state would tell of it, and a foreign one may expand."""
        name = penalty(Broken(np.nan, good=10**9))
        model = DPLogisticRegression(1.0, 1e-6, classes=[0, 1], penalty=name, solver="noisy-admm")
        with pytest.raises(DpadmmError, match="built-in convex penalty"):
            model.fit(gaussians(200, 3), np.arange(200) % 2)
        assert not Broken.calls
