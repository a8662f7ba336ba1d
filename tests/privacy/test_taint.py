"""T5: with every answer replaced by data-independent numbers, nothing visible depends on the data any more."""

from __future__ import annotations

import warnings
from functools import partial
from unittest import mock

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from dpadmm import (
    DPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    PrivateGraph,
    PrivateQuantileClipper,
    PrivateSecondMoment,
)
from dpadmm.declare.penalties import PENALTIES
from dpadmm.oracles.gate import Gate
from dpadmm.oracles.hidden_walk import Walk
from dpadmm.oracles.private import PrivateOracle
from dpadmm.privacy.budget import Budget
from dpadmm.privacy.calibration import calibrate
from dpadmm.privacy.plan import Request
from dpadmm.privacy.questions import CURVATURE, ClippedGradient, FeatureCurvature, GradientDifference
from dpadmm.privacy.sampling import SAMPLERS, make_sampler
from dpadmm.problem import L1, Constraint, Logistic, Problem
from dpadmm.problem.rowmap import RowMap
from dpadmm.randomness import make_streams
from dpadmm.rows.local import LocalRows
from dpadmm.rows.packed import PackedRows
from dpadmm.solvers import SOLVERS, Setting, run

from .taint import Stub, differences, fingerprint, observe, settings_of

N, D = 60, 4
ROWS = np.random.default_rng(0)
TAME = ROWS.uniform(-1, 1, (N, D)), (ROWS.uniform(size=N) < 0.5).astype(int)
WILD = ROWS.normal(size=(N, D)) * 10.0 ** ROWS.integers(-300, 300, (N, 1)), np.zeros(N, dtype=int)
WILD[0][:5] = 0.0

COMMON = {"row_norm": 1.0, "delta": 1e-3, "steps": 6, "batch_size": 10, "verbose": 1}
MODELS = {
    "logistic": lambda **more: DPLogisticRegression(classes=[0, 1], **settings_of(COMMON, **more)),
    "softmax": lambda **more: DPLogisticRegression(classes=[0, 1, 2], **settings_of(COMMON, **more)),
    "svm": lambda **more: DPLinearSVC(classes=[0, 1], **settings_of(COMMON, **more)),
    "squared": lambda **more: DPLinearRegression(target_bounds=(0, 1), **settings_of(COMMON, **more)),
    "huber": lambda **more: DPLinearRegression(loss="huber", target_bounds=(0, 1), **settings_of(COMMON, **more)),
}
# Two inner steps and more, or the difference queries would all be asked at the snapshot itself.
VR = {"epochs": 2, "inner_steps": 3}
STRONG = {"penalty": "l2", "alpha": 0.1, "solver_options": {"convexity": "strong"}}
STRONG_VR = STRONG | {"solver_options": {"convexity": "strong", **VR}}
GRAPH = {"penalty": "graph", "graph": [(0, 1), (1, 2)]}
EXTRA = {"group": {"groups": [0, 0, 1, 1]}, "graph": {"graph": [(0, 1), (1, 2)]}}


def pairs_of_settings():
    for solver in SOLVERS:
        for name in MODELS:
            if (solver, name) != ("noisy-admm", "softmax"):  # refused: tests/privacy/test_iteration.py
                yield f"{solver}-{name}", name, {"solver": solver}
    for penalty in PENALTIES:
        yield f"penalty-{penalty}", "softmax", {"penalty": penalty, **EXTRA.get(penalty, {})}
    for sampler in SAMPLERS:
        for solver in ("dp-sadmm", "dp-vradmm"):
            yield f"{sampler}-{solver}", "logistic", {"sampler": sampler, "solver": solver}
    for solver in ("dp-sadmm", "dp-vradmm", "full-admm", "dp-gd"):
        more = {"relation": "add-remove", "solver": solver}
        yield f"add-remove-{solver}", "svm", more
        yield f"add-remove-declared-{solver}", "svm", more | {"n_rows": 70}
    yield "strong-sadmm", "logistic", {"solver": "dp-sadmm", **STRONG}
    yield "strong-vradmm", "logistic", {"solver": "dp-vradmm", **STRONG_VR}
    yield "graph-vradmm", "huber", {"solver": "dp-vradmm", **GRAPH}
    yield "graph-mpadmm", "squared", {"solver": "mpadmm", **GRAPH}
    yield "fused-noisy-admm", "squared", {"solver": "noisy-admm", "penalty": "fused"}
    yield "group-noisy-admm", "svm", {"solver": "noisy-admm", "penalty": "group", **EXTRA["group"]}
    yield "smoothing", "logistic", {"solver": "dp-sadmm", "smoothing": 3.0}
    yield "bounds", "squared", {"bounds": (-2.0, 2.0)}
    yield "no-intercept", "logistic", {"fit_intercept": False, "row_norm": 10.0}
    for solver in ("auto", "full-admm", "dp-sadmm", "dp-vradmm"):
        more = {"solver": solver, "penalty": "graph", "graph": PrivateGraph(share=0.3)}
        yield f"private-graph-{solver}", "logistic", more
        yield f"private-bounds-{solver}", "squared", {"solver": solver, "bounds": PrivateQuantileClipper((-2.0, 2.0))}
        yield f"exact-{solver}", "logistic", {"arithmetic": "exact", "solver": solver}
        yield f"exact-softmax-{solver}", "softmax", {"arithmetic": "exact", "solver": solver}
    both = {"bounds": PrivateQuantileClipper((-2.0, 2.0), (0, 0.9)), "penalty": "graph", "graph": PrivateGraph()}
    yield "private-steps", "softmax", both
    yield "private-steps-add-remove", "svm", {"relation": "add-remove", "n_rows": 70, "solver": "dp-sadmm", **both}
    yield "exact-declared", "svm", {"arithmetic": "exact", "relation": "add-remove", "n_rows": 70}
    yield "fixed-rdp", "logistic", {"solver": "ssadmm", "sampler": "fixed", "accountant": "rdp"}


SETTINGS = {key: (name, more) for key, name, more in pairs_of_settings()}


def make(name, **more):
    if more.get("solver") == "dp-vradmm":
        more.setdefault("solver_options", VR)
    return MODELS[name](**more)


def compare(model, tmp_path, one=TAME, two=WILD, stub=Stub):
    first = observe(clone(model), *one, tmp_path / "one", stub())
    second = observe(clone(model), *two, tmp_path / "two", stub())
    return differences(first, second), first


@pytest.mark.parametrize("key", SETTINGS)
def test_nothing_depends_on_the_data(key, tmp_path):
    name, more = SETTINGS[key]
    different, seen = compare(make(name, **more), tmp_path)
    assert different == []
    assert seen["failure"] is None
    assert seen["warnings"] == []
    assert {"model.json", "model.npz", "score.py", "score.sql"} == set(seen["files"])
    hidden = more.get("solver") == "noisy-admm"
    assert len([query for query in seen["queries"] if query[0] == "released"]) >= (1 if hidden else 3)


FORMS = {
    "float32": lambda X: np.clip(X, -3e38, 3e38).astype(np.float32),
    "csr": sparse.csr_matrix,
    "csr-float32": lambda X: sparse.csr_matrix(np.clip(X, -3e38, 3e38).astype(np.float32)),
    "csc": sparse.csc_matrix,
    "lists": lambda X: X.tolist(),
    "objects": lambda X: X.astype(object),
}


@pytest.mark.parametrize("solver", ["full-admm", "dp-vradmm"])
@pytest.mark.parametrize("form", FORMS)
def test_nothing_depends_on_the_data_in_any_format(form, solver, tmp_path):
    one, two = ((FORMS[form](X), y) for X, y in (TAME, WILD))
    different, seen = compare(make("logistic", solver=solver), tmp_path, one, two)
    assert different == []
    assert seen["failure"] is None


@pytest.mark.parametrize("form", ["float32", "csr", "csr-float32", "lists"])
def test_nothing_but_the_release_of_a_curvature_depends_on_the_data(form):
    request = Request("curvature", 1, FeatureCurvature())
    plan = calibrate(Budget(1.0, 1e-3), [request], make_sampler("full", N, N), N)

    def seen(X, y, stub):
        with np.errstate(all="ignore"):
            rows = LocalRows(PackedRows.of(RowMap(1.0, intercept=False), FORMS[form](X)), 2.0 * y - 1, Logistic())
        with stub.installed(), warnings.catch_warnings():
            warnings.simplefilter("error")
            answer = PrivateOracle(rows, Gate(plan), make_streams(None)).ask(CURVATURE, np.ones(D), np.full(D, 9.0))
        return fingerprint((answer, stub.queries))

    class Leaky(Stub):
        def release(self, mechanism, total, query, clip, gate):
            return super().release(mechanism, total, query, clip, gate) + 1e-15 * np.sign(total.sum() - N / 2)

    assert seen(*TAME, Stub()) == seen(*WILD, Stub())
    assert seen(*TAME, Leaky()) != seen(np.zeros((N, D)), TAME[1], Leaky())


STEPS = {
    "quantiles": PrivateQuantileClipper((0.0, 2.0), (0, 0.9), epsilon=50.0, delta=1e-3),
    "second-moment": PrivateSecondMoment(epsilon=1.0, delta=1e-3),
    "graph": PrivateGraph(epsilon=1.0, delta=1e-3, strictness=0.1),
}


@pytest.mark.parametrize("form", ["float32", "csr", "lists"])
@pytest.mark.parametrize("name", STEPS)
def test_nothing_depends_on_the_data_in_a_step_by_itself(name, form):
    seen = [observe(clone(STEPS[name]), FORMS[form](X), None) for X, _ in (TAME, WILD)]
    assert differences(*seen) == []
    assert seen[0]["failure"] is None
    assert seen[0]["warnings"] == []
    assert any(query[0] == "released" for query in seen[0]["queries"])


@pytest.mark.parametrize("name", STEPS)
def test_a_step_that_looks_past_its_noise_is_caught(name):
    class Leaky(Stub):
        def release(self, mechanism, total, query, clip, gate):
            return super().release(mechanism, total, query, clip, gate) + total / query.denominator

    seen = [observe(clone(STEPS[name]), X, None, stub=Leaky()) for X, _ in (TAME, WILD)]
    assert "attributes" in differences(*seen)


@pytest.mark.parametrize("csr", [False, True])
@pytest.mark.parametrize("name", ["logistic", "softmax", "squared"])
def test_bad_rows_that_count_as_zero_leave_no_trace(name, csr, tmp_path):
    X, y = TAME[0].copy(), TAME[1].astype(float)
    bad, bad_y = X.copy(), y.copy()
    bad[3, 1], bad[4], bad[5, 0], bad_y[6], bad_y[7] = np.nan, np.inf, -np.inf, np.nan, 77.0
    form = sparse.csr_matrix if csr else np.asarray
    different, seen = compare(
        make(name, invalid_rows="zero", solver="dp-sadmm"), tmp_path, (form(X), y), (form(bad), bad_y)
    )
    assert different == []
    assert seen["failure"] is None


@pytest.mark.parametrize("name", tuple(SOLVERS))
def test_the_whole_solution_of_every_solver(name):
    """Also the blocks an estimator does not keep."""
    problem = Problem(Logistic(), L1(0.01), Constraint.identity(D))
    solver = SOLVERS[name].default(problem, Setting(N, 0.5, 2.0, 0.5), 10, steps=6)
    plan = calibrate(Budget(1.0, 1e-3), solver.requests(problem, 0.5), make_sampler("poisson", N, 10), N)
    seen = []
    for X, y in (TAME, WILD):
        rows = LocalRows(RowMap(1.0, intercept=False).apply(X), 2.0 * y - 1, Logistic())
        with Stub().installed():
            seen.append(fingerprint(run(solver, problem, PrivateOracle(rows, Gate(plan), make_streams(None)))))
    assert seen[0] == seen[1]


@pytest.mark.parametrize("form", ["float32", "csr-float32", "lists"])
@pytest.mark.parametrize("solver", ["full-admm", "dp-sadmm", "dp-vradmm"])
def test_diverging_runs_fail_alike(solver, form, tmp_path):
    """Answers so large that iterates or margins leave the finite numbers: same exception, at the same moment."""
    one, two = ((FORMS[form](X), y) for X, y in (TAME, WILD))
    for name in ("squared", "softmax", "logistic"):
        for scale in (1e30, 1e60, 1e200):
            model = make(name, solver=solver, steps=6)
            different, _ = compare(model, tmp_path, one, two, partial(Stub, scale=scale))
            assert different == [], (name, scale)


class TestMutantsAreCaught:
    """The harness finds each way around `release`."""

    @staticmethod
    def found(tmp_path, stub=Stub, one=TAME, two=WILD, **more):
        return compare(make("logistic", **more), tmp_path, one, two, stub)[0]

    @pytest.mark.parametrize("strong", [False, True])
    def test_exact_snapshot_gradient(self, tmp_path, strong):
        class Leaky(Stub):
            def release(self, mechanism, total, query, clip, gate):
                answer = super().release(mechanism, total, query, clip, gate)
                return total / query.denominator if query.kind == "snapshot" else answer

        more = STRONG_VR if strong else {}
        assert {"attributes", "queries", "files"} <= set(self.found(tmp_path, Leaky, solver="dp-vradmm", **more))

    def test_an_earlier_state_of_hidden_passes(self, tmp_path):
        honest = Walk._passed

        def leaky(walk, state, streams):
            state = honest(walk, state, streams)
            print(state[0][0])
            return state

        with mock.patch.object(Walk, "_passed", leaky):
            assert "stdout" in self.found(tmp_path, solver="noisy-admm")

    def test_the_order_of_hidden_passes(self, tmp_path):
        """Under one seed the order is the same for both tables; sorted by label it tells of them."""
        honest = LocalRows.noisy_pass

        def leaky(rows, program, state, clip_norm, order, *rest):
            print(rows._columns[0, order[:20]])
            return honest(rows, program, state, clip_norm, order, *rest)

        with mock.patch.object(LocalRows, "noisy_pass", leaky):
            assert "stdout" in self.found(tmp_path, solver="noisy-admm")

    def test_a_last_bit_of_the_data(self, tmp_path):
        class Leaky(Stub):
            def release(self, mechanism, total, query, clip, gate):
                return super().release(mechanism, total, query, clip, gate) + 1e-15 * np.sign(total)

        assert "attributes" in self.found(tmp_path, Leaky)

    def test_noise_skipped_for_an_empty_batch(self, tmp_path):
        class Leaky(Stub):
            def release(self, mechanism, total, query, clip, gate):
                return super().release(mechanism, total, query, clip, gate) if total.any() else total

        empty = np.zeros((N, D)), np.zeros(N, dtype=int)
        assert self.found(tmp_path, Leaky, two=empty, fit_intercept=False)

    def test_clip_measured_on_the_data(self, tmp_path):
        honest = GradientDifference.accept

        def leaky(question, at, space):
            return min(honest(question, at, space), longest[-1])

        longest, measure = [], LocalRows._measure

        def measured(rows, norms):
            longest.append(float(norms.max()))
            measure(rows, norms)

        with (
            mock.patch.object(GradientDifference, "accept", leaky),
            mock.patch.object(LocalRows, "_measure", measured),
        ):
            tiny = TAME[0] * 1e-9, TAME[1]
            assert "queries" in self.found(tmp_path, solver="dp-vradmm", fit_intercept=False, two=tiny)

    def test_bounds_measured_on_the_data(self, tmp_path):
        honest = PackedRows.of

        def leaky(mapping, X, keep):
            object.__setattr__(mapping, "row_norm", min(max(float(np.abs(X).max()), 1e-30), 1e30))
            return honest(mapping, X, keep)

        with mock.patch.object(PackedRows, "of", leaky):
            assert {"attributes", "files"} <= set(self.found(tmp_path, fit_intercept=False))

    def test_classes_read_from_the_labels(self, tmp_path):
        """What `classes=` is for: without it the set of labels is taken as public."""
        other = TAME[0], np.where(TAME[1] == 0, 5, 6)
        assert "attributes" in compare(DPLogisticRegression(**settings_of(COMMON)), tmp_path, TAME, other)[0]

    @pytest.mark.parametrize("where", ["stdout", "warnings", "failure"])
    def test_words_about_the_data(self, tmp_path, where):
        honest = LocalRows.__init__

        def leaky(rows, X, target, *rest):
            honest(rows, X, target, *rest)
            if target.min() == target.max():
                if where == "failure":
                    raise ValueError("only one class")
                print("only one class") if where == "stdout" else warnings.warn("only one class", stacklevel=1)

        with mock.patch.object(LocalRows, "__init__", leaky):
            assert where in self.found(tmp_path)

    def test_one_query_less(self, tmp_path):
        honest = LocalRows.WAYS[ClippedGradient]

        def leaky(rows, question, at, batch):
            if not rows._X[:5].any():
                raise RuntimeError("skipped")
            return honest(rows, question, at, batch)

        with mock.patch.dict(LocalRows.WAYS, {ClippedGradient: leaky}):
            assert {"queries", "failure"} <= set(self.found(tmp_path, fit_intercept=False))


@pytest.mark.parametrize("solver", ["auto", "full-admm", "dp-sadmm", "dp-vradmm", "noisy-admm"])
@pytest.mark.parametrize("name", ["logistic", "softmax"])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix], ids=["dense", "csr"])
def test_nothing_depends_on_the_data_with_compiled_kernels(form, name, solver, tmp_path, monkeypatch):
    monkeypatch.setenv("DPADMM_KERNELS", "compiled")
    name = "svm" if (name, solver) == ("softmax", "noisy-admm") else name
    one, two = ((form(X), y) for X, y in (TAME, WILD))
    different, seen = compare(make(name, solver=solver), tmp_path, one, two)
    assert different == []
    assert seen["failure"] is None
    assert seen["warnings"] == []
