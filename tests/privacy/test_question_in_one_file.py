"""A new question is one file: every engine answers it, plans, statements, audits and the taint test know it."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from scipy import sparse

from dpadmm import DPLogisticRegression
from dpadmm.audit.neighbours import Forgery
from dpadmm.audit.query_attack import loudest
from dpadmm.audit.saved_model import attack_all
from dpadmm.errors import QueryRefused
from dpadmm.oracles.gate import Gate
from dpadmm.oracles.mechanisms import Granular
from dpadmm.oracles.private import PrivateOracle
from dpadmm.privacy.arithmetic import Arithmetic
from dpadmm.privacy.budget import Budget, Relation
from dpadmm.privacy.calibration import calibrate, verify_plan
from dpadmm.privacy.plan import Plan, Request
from dpadmm.privacy.sampling import Batch, Everything, Poisson
from dpadmm.privacy.statement import PrivacyStatement
from dpadmm.problem import Logistic
from dpadmm.problem.rowmap import RowMap
from dpadmm.problem.spiked_map import SpikedMap
from dpadmm.randomness import make_streams
from dpadmm.rows import array_view
from dpadmm.rows.lattice_rows import LatticeRows
from dpadmm.rows.lattice_sum import as_numbers
from dpadmm.rows.local import LocalRows
from dpadmm.rows.packed import PackedRows
from dpadmm.rows.partitioned import LocalParts, PartitionedRows
from tests.asking import EVERY_ROW, less_noise, private
from tests.privacy.margin_histogram import MARGINS, MarginHistogram
from tests.privacy.taint import Stub, fingerprint

N, D = 60, 3
RNG = np.random.default_rng(0)
RAW, Y = RNG.normal(size=(N, D)), RNG.choice([-1.0, 1.0], N)
ROWMAP = RowMap(2.0)
QUESTION = MarginHistogram(bins=5, width=0.5)
POINT = RNG.normal(size=D + 1)
KEPT = np.arange(N) % 7 != 0


def packed(X=RAW, kept=KEPT):
    return PackedRows.of(ROWMAP, X, kept)


def in_memory(weights=None):
    return LocalRows(packed(), Y, Logistic(), ROWMAP.row_norm, weights)


def on_lattice():
    return LatticeRows(packed(), Y, Logistic(), ROWMAP.row_norm, N)


def sparse_rows():
    return LocalRows(packed(sparse.csr_matrix(RAW)), Y, Logistic(), ROWMAP.row_norm)


def in_parts():
    cuts = (slice(0, 20), slice(20, 21), slice(21, N))
    parts = [LocalRows(packed(RAW[cut], KEPT[cut]), Y[cut], Logistic(), ROWMAP.row_norm) for cut in cuts]
    return PartitionedRows(LocalParts(parts), [20, 1, N - 21], D + 1, 1)


def in_dask():
    dask_array = pytest.importorskip("dask.array")
    from dpadmm.rows import dask_parts

    chunks = dask_array.from_array(RAW, chunks=(25, D)).to_delayed().ravel()
    labels = dask_array.from_array(np.where(KEPT, Y, np.nan), chunks=25).to_delayed().ravel()
    reading = dask_parts.Reading(np.asarray, lambda y: (y, np.isfinite(y)), None, ROWMAP, Logistic(), D)
    parts, _ = dask_parts.DaskParts.measured(chunks, labels, [None] * 3, [25, 25, 10], reading)
    return PartitionedRows(parts, [25, 25, 10], D + 1, 1)


def on_device():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    from dpadmm.rows.torch_rows import TorchRows
    from dpadmm.rows.torch_table import pack_tensor

    table = pack_tensor(ROWMAP, torch.tensor(RAW), torch.tensor(KEPT))
    return TorchRows(table, Y, Logistic(), ROWMAP.row_norm)


ENGINES = [in_memory, sparse_rows, on_lattice, in_parts, in_dask, on_device]
every_engine = pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.__name__)


def expected(batch=EVERY_ROW, point=POINT):
    chosen = np.arange(N) if batch.rows is None else batch.rows
    weights = KEPT[chosen] * (1.0 if batch.weights is None else batch.weights)
    margins = ROWMAP.apply(RAW)[chosen] @ point
    return np.histogram(margins, QUESTION.edges, weights=weights)[0]


@every_engine
@pytest.mark.parametrize(
    "batch",
    [
        EVERY_ROW,
        Batch(np.array([3, 59, 7, 22])),
        Batch(np.array([3, 5]), np.array([1.0, 0.0])),
        Batch(np.array([], int)),
    ],
    ids=["all", "some", "padded", "none"],
)
def test_every_engine_answers_it(engine, batch):
    found = as_numbers(engine().ask(QUESTION, (POINT,), batch))
    np.testing.assert_allclose(found, expected(batch), atol=1e-4)


@pytest.mark.parametrize("engine", [in_memory, in_parts, on_device], ids=lambda engine: engine.__name__)
def test_a_question_of_turned_rows_sees_turned_rows(engine):
    class Turned(MarginHistogram):
        frame = "seen"

    matrix = RNG.normal(size=(D + 1, D + 1))
    spiked = SpikedMap(RNG.uniform(0.5, 2, D + 1), RNG.normal(size=D + 1), 3.0)
    for P in (matrix, spiked):
        seen, question = engine().transformed(P), Turned(5, 0.5)
        np.testing.assert_allclose(seen.ask(question, (POINT,), EVERY_ROW), expected(point=P @ POINT), atol=1e-4)
        with pytest.raises(QueryRefused, match="coordinates of the table"):
            seen.ask(QUESTION, (POINT,), EVERY_ROW)


def test_weights_count_and_never_for_more_than_one():
    weights = RNG.uniform(0, 2, N)
    found = in_memory(weights).ask(QUESTION, (POINT,), EVERY_ROW)
    margins = ROWMAP.apply(RAW) @ POINT
    wanted = np.histogram(margins, QUESTION.edges, weights=KEPT * np.minimum(weights, 1))[0]
    np.testing.assert_allclose(found, wanted, atol=1e-4)


@pytest.mark.parametrize("engine", [in_memory, on_lattice, on_device], ids=lambda engine: engine.__name__)
def test_contributions_are_clipped_and_dropped_where_they_are_not_finite(engine):
    class Loud(MarginHistogram):
        def contributions(self, view, at):
            with np.errstate(all="ignore"):
                return super().contributions(view, at) / view.numbers(
                    np.zeros(1) if self.bins == 4 else np.full(1, 1e-3)
                )

    loud = as_numbers(engine().ask(Loud(5, 0.5), (POINT,), EVERY_ROW))
    np.testing.assert_allclose(loud, expected(), atol=1e-4)
    assert not as_numbers(engine().ask(Loud(4, 0.5), (POINT,), EVERY_ROW)).any()


def test_exact_arithmetic_refuses_contributions_that_have_no_proof_when_cut():
    class Whole(MarginHistogram):
        may_be_cut = False

    with pytest.raises(QueryRefused, match="cuts off"):
        on_lattice().ask(Whole(5, 0.5), (POINT,), EVERY_ROW)


def plan_of(relation=Relation.REPLACE_ONE, arithmetic=Arithmetic.GRANULAR, count=1):
    request = Request(MARGINS, count, QUESTION)
    return calibrate(Budget(1.0, 1e-3, relation), [request], Everything(), N, arithmetic=arithmetic, cache=False)


class TestPlan:
    @pytest.mark.parametrize("relation", list(Relation))
    def test_it_is_planned_verified_stored_and_read_back(self, relation):
        plan = plan_of(relation)
        assert verify_plan(plan) <= 1.0
        assert plan.queries[0].clip_norm == QUESTION.reach(relation)
        again = Plan.from_dict(json.loads(json.dumps(plan.to_dict())))
        assert again == plan
        assert again.digest == plan.digest

    def test_it_is_stated(self):
        statement = PrivacyStatement.of(plan_of(), "a test", (), False)
        assert QUESTION.words in statement.text

    def test_what_is_paid_for_is_answered_and_no_more(self):
        plan = plan_of()
        oracle = PrivateOracle(in_memory(), Gate(plan), make_streams(0))
        shares = oracle.ask(MARGINS, POINT)
        assert np.abs(shares - expected() / N).max() < 6 * oracle.noise_std(MARGINS)
        oracle.require_promise_kept()
        with pytest.raises(QueryRefused, match="all 1 planned"):
            oracle.ask(MARGINS, POINT)

    def test_a_sample_of_rows_is_refused_where_every_row_is_counted_on(self):
        plan = plan_of()
        sampled = replace(plan, queries=(replace(plan.queries[0], sampler=Poisson(0.5)),))
        with pytest.raises(QueryRefused, match="sample"):
            PrivateOracle(in_memory(), Gate(sampled), make_streams(0)).ask(MARGINS, POINT)


def test_nothing_but_what_the_mechanism_releases_depends_on_the_rows():
    def seen(X, stub):
        rows = LocalRows(PackedRows.of(ROWMAP, X), Y, Logistic(), ROWMAP.row_norm)
        with stub.installed(), warnings.catch_warnings():
            warnings.simplefilter("error")
            answer = PrivateOracle(rows, Gate(plan_of()), make_streams(None)).ask(MARGINS, POINT)
        return fingerprint((answer, stub.queries))

    class Leaky(Stub):
        def release(self, mechanism, total, query, clip, gate):
            return super().release(mechanism, total, query, clip, gate) + 1e-15 * total

    wild = RAW * 10.0 ** RNG.integers(-200, 200, (N, 1))
    wild[3] = np.nan
    assert seen(RAW, Stub()) == seen(wild, Stub())
    assert seen(RAW, Leaky()) != seen(wild, Leaky())


@pytest.fixture(scope="module")
def model():
    options = {"classes": (0, 1), "steps": 2, "random_state": 0, "fit_intercept": False}
    return DPLogisticRegression(1.0, 1e-3, **options).fit(RAW, (Y > 0).astype(int))


class TestAudit:
    def attack(self, model, plan):
        return loudest(plan, Forgery(model, plan).pairs(), model.row_map_)

    @pytest.mark.parametrize("arithmetic", [Arithmetic.GRANULAR, Arithmetic.EXACT])
    @pytest.mark.parametrize("relation", list(Relation))
    def test_some_pair_of_tables_lies_as_far_apart_as_declared(self, model, relation, arithmetic):
        (reach,) = self.attack(model, plan_of(relation, arithmetic)).reaches
        assert 0.99 <= reach <= 1.0

    def test_it_is_kept_and_a_broken_one_is_refuted(self, model):
        plan = plan_of()
        attack = self.attack(model, plan)
        honest = attack_all(plan, [attack], make_streams(0), 600)
        assert 0.2 < honest.lower_bound <= 1.0
        with mock.patch("dpadmm.oracles.private.Granular", less_noise(3.0)):
            assert attack_all(plan, [attack], make_streams(0), 600).refuted

    def test_without_the_engine_s_clip_a_lie_about_contributions_shows(self):
        class Long(MarginHistogram):
            def contributions(self, view, at):
                return 3.0 * super().contributions(view, at)

        with mock.patch.object(array_view, "clip_vectors", lambda vectors, size: vectors):
            assert as_numbers(in_memory().ask(Long(5, 0.5), (POINT,), EVERY_ROW)).sum() > 2.9 * KEPT.sum()
        assert as_numbers(in_memory().ask(Long(5, 0.5), (POINT,), EVERY_ROW)).sum() <= KEPT.sum()


def test_the_mechanism_of_tests_is_that_of_the_library():
    oracle = private(in_memory(), plan_of(), make_streams(0), Granular)
    usual = PrivateOracle(in_memory(), Gate(plan_of()), make_streams(0))
    np.testing.assert_array_equal(oracle.ask(MARGINS, POINT), usual.ask(MARGINS, POINT))
