"""How curved the logistic loss is along each feature: all rows answer alike, and what cannot be answered is refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from dpadmm.errors import QueryRefused
from dpadmm.kernels.clipping import SAFETY
from dpadmm.oracles.noiseless import NoiselessOracle
from dpadmm.privacy.budget import Relation
from dpadmm.privacy.questions import CURVATURE, QUESTIONS, FeatureCurvature
from dpadmm.privacy.questions.stored import question_from_dict, question_to_dict
from dpadmm.problem.losses import HuberisedHinge, Logistic, Softmax, Squared
from dpadmm.problem.rowmap import RowMap
from dpadmm.problem.scores import Accuracy
from dpadmm.rows.curvature_sums import curved
from dpadmm.rows.lattice_rows import LatticeRows
from dpadmm.rows.lattice_sum import as_numbers
from dpadmm.rows.local import LocalRows
from dpadmm.rows.packed import PackedRows
from dpadmm.rows.partitioned import LocalParts, PartitionedRows
from dpadmm.rows.scored import ScoredRows
from tests.asking import EVERY_ROW
from tests.unit.rows.questions import MATRIX, RAW, SPIKED, D, N

RNG = np.random.default_rng(7)
TARGET = RNG.choice([-1.0, 1.0], N)
SHARES = RNG.uniform(size=N)
MAPS = {
    "plain": RowMap(2.0, False),
    "intercept": RowMap(2.0, True),
    "bounds": RowMap.declare(2.0, True, (0.0, 1.0), D),
}
SCALES = [0.0, 1.0, 30.0, 1e6]


def partitioned(rowmap, X, weights):
    cuts = [slice(0, 1), slice(1, 60), slice(60, N)]
    sizes = [len(range(*cut.indices(N))) for cut in cuts]
    parts = [local(rowmap, X[cut], None if weights is None else weights[cut], TARGET[cut]) for cut in cuts]
    return PartitionedRows(LocalParts(parts), sizes, X.shape[1] + rowmap.intercept, 1)


def local(rowmap, X, weights, target=TARGET):
    return LocalRows(PackedRows.of(rowmap, X), target, Logistic(), rowmap.row_norm, weights)


def on_tensor(rowmap, X, weights):
    torch = pytest.importorskip("torch")
    from dpadmm.rows.torch_rows import TorchRows
    from dpadmm.rows.torch_table import pack_tensor

    return TorchRows(pack_tensor(rowmap, torch.tensor(X)), TARGET, Logistic(), rowmap.row_norm, weights)


PLACES = {
    "dense": local,
    "csr": lambda rowmap, X, weights: local(rowmap, sparse.csr_matrix(X), weights),
    "float32": lambda rowmap, X, weights: local(rowmap, X.astype(np.float32), weights),
    "csr-float32": lambda rowmap, X, weights: local(rowmap, sparse.csr_matrix(X.astype(np.float32)), weights),
    "mapped": lambda rowmap, X, weights: LocalRows(
        rowmap.apply(X), TARGET, Logistic(), rowmap.row_norm, weights=weights
    ),
    "scored": lambda rowmap, X, weights: ScoredRows(PackedRows.of(rowmap, X), TARGET, Logistic(), Accuracy(), weights),
    "parts": partitioned,
    "tensor": on_tensor,
}


def formula(rows, x, weights, shares):
    """As it is written, row by row."""
    total = np.zeros(rows.shape[1])
    for row, share in zip(rows, shares, strict=True):
        slope = 1.0 / (1.0 + np.exp(np.abs(row @ x)))
        vector = slope * (1.0 - slope) * weights * row * row
        total += share * vector * min(1.0, SAFETY / max(np.linalg.norm(vector), 1e-300))
    return total


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rowmap", MAPS)
@pytest.mark.parametrize("place", PLACES)
def test_every_place_sums_as_the_formula_says(place, rowmap, weighted):
    rowmap, shares = MAPS[rowmap], SHARES if weighted else None
    rows, mapped = PLACES[place](rowmap, RAW, shares), rowmap.apply(RAW)
    for scale in SCALES:
        x, weights = RNG.standard_normal(rows.space.n_features), scale * RNG.uniform(size=rows.space.n_features)
        expected = formula(mapped, x, weights, np.ones(N) if shares is None else shares)
        loose = 1e-4 if "float32" in place else 1e-11
        with np.errstate(over="ignore"):
            np.testing.assert_allclose(
                rows.ask(FeatureCurvature(), (x, weights), EVERY_ROW), expected, rtol=loose, atol=loose / 10
            )


@pytest.mark.parametrize("rowmap", MAPS)
def test_exact_sums_are_those_of_the_fast_rows(rowmap):
    rowmap = MAPS[rowmap]
    exact = LatticeRows(PackedRows.of(rowmap, RAW), TARGET, Logistic(), rowmap.row_norm, N)
    for scale in SCALES[:3]:
        x, weights = RNG.standard_normal(exact.space.n_features), scale * RNG.uniform(size=exact.space.n_features)
        found = as_numbers(exact.ask(FeatureCurvature(), (x, weights), EVERY_ROW))
        np.testing.assert_allclose(
            found, local(rowmap, RAW, None).ask(FeatureCurvature(), (x, weights), EVERY_ROW), atol=1e-3
        )


def test_blocks_of_rows_add_up(monkeypatch):
    from dpadmm.rows import wide

    rows, x, weights = local(MAPS["intercept"], RAW, None), np.ones(D + 1), np.full(D + 1, 3.0)
    whole = rows.ask(FeatureCurvature(), (x, weights), EVERY_ROW)
    monkeypatch.setattr(wide, "BLOCK_ENTRIES", 60)
    monkeypatch.setattr(wide, "shortest_run", lambda features: 1)
    np.testing.assert_allclose(rows.ask(FeatureCurvature(), (x, weights), EVERY_ROW), whole, rtol=1e-13)


@pytest.mark.parametrize("place", PLACES)
def test_rows_that_count_as_zero_contribute_nothing(place):
    rowmap = MAPS["intercept"]
    spoiled, x, weights = RAW.copy(), np.ones(D + 1), np.full(D + 1, 100.0)
    spoiled[3, 1], spoiled[4], spoiled[5, 0] = np.nan, np.inf, -np.inf
    kept = np.setdiff1d(np.arange(N), [3, 4, 5])
    with np.errstate(all="ignore"):
        found = PLACES[place](rowmap, spoiled, None).ask(FeatureCurvature(), (x, weights), EVERY_ROW)
    loose = 1e-4 if "float32" in place else 1e-11
    np.testing.assert_allclose(found, formula(rowmap.apply(RAW[kept]), x, weights, np.ones(len(kept))), rtol=loose)


@pytest.mark.parametrize("form", [np.array, sparse.csr_array], ids=["dense", "csr"])
def test_a_contribution_is_a_number_in_the_unit_ball_whatever_the_row_holds(form):
    """Tables bring such rows as zeros; the sensitivity does not rest on it."""
    rows = form([[0.6, 0.8], [50.0, 0.0], [np.nan, 1.0], [np.inf, 1.0], [1e200, 1.0]])
    with np.errstate(all="ignore"):
        vectors, numbers = curved(rows, np.array([0.1, 0.0]), np.array([1.0, 3.0]), Logistic())
    vectors = vectors.toarray() if sparse.issparse(vectors) else vectors
    found = vectors * numbers[:, None]
    assert np.all(np.linalg.norm(found, axis=1) <= 1)
    assert np.all(found[:2].sum(axis=1) > 0)
    assert not found[2:].any()


def test_the_exact_oracle_answers_the_mean_whatever_the_coordinates():
    rows, x, weights = local(MAPS["intercept"], RAW, None), np.ones(D + 1), np.full(D + 1, 3.0)
    oracle = NoiselessOracle(rows)
    oracle.change_coordinates(MATRIX)
    np.testing.assert_array_equal(
        oracle.ask(CURVATURE, x, weights), rows.ask(FeatureCurvature(), (x, weights), EVERY_ROW) / N
    )


@pytest.mark.parametrize("loss", [Squared(), HuberisedHinge(), Softmax(3)], ids=lambda loss: loss.name)
def test_other_losses_are_refused(loss):
    packed, target = PackedRows.of(MAPS["plain"], RAW), np.ones(N, dtype=int)
    x = weights = np.ones(D)
    torch = pytest.importorskip("torch")
    from dpadmm.rows.torch_rows import TorchRows
    from dpadmm.rows.torch_table import pack_tensor

    for rows in (
        LocalRows(packed, target, loss, 2.0),
        LatticeRows(packed, target, loss, 2.0, N),
        PartitionedRows(LocalParts([LocalRows(packed, target, loss, 2.0)]), [N], D, loss.outputs),
        TorchRows(pack_tensor(MAPS["plain"], torch.tensor(RAW)), target, loss, 2.0),
    ):
        with pytest.raises(QueryRefused, match="logistic"):
            rows.ask(FeatureCurvature(), (x, weights), EVERY_ROW)


@pytest.mark.parametrize("place", ["dense", "tensor", "parts"])
@pytest.mark.parametrize("change", [MATRIX, SPIKED], ids=["matrix", "spiked"])
def test_rows_in_other_coordinates_refuse(place, change):
    seen = PLACES[place](MAPS["intercept"], RAW, None).transformed(change)
    with pytest.raises(QueryRefused, match=r"(coordinates|features) of the table"):
        seen.ask(FeatureCurvature(), (np.ones(D + 1), np.ones(D + 1)), EVERY_ROW)


def test_exact_rows_in_other_coordinates_refuse():
    rows = LatticeRows(PackedRows.of(MAPS["intercept"], RAW), TARGET, Logistic(), 2.0, N)
    with pytest.raises(QueryRefused, match="features of the table"):
        rows.transformed(MATRIX).ask(FeatureCurvature(), (np.ones(D + 1), np.ones(D + 1)), EVERY_ROW)


@pytest.mark.parametrize("largest", [1e100, 1e308, np.inf])
def test_weights_that_stretch_rows_too_far_are_refused(largest):
    rows = local(MAPS["plain"], RAW, None)
    weights = np.array([largest, 0.0, 0.0, 0.0])
    with pytest.raises(QueryRefused, match="too far"):
        rows.ask(FeatureCurvature(), (np.zeros(D), weights), EVERY_ROW)


def test_dask_partitions_answer_as_the_whole():
    dask = pytest.importorskip("dask")
    from dpadmm.rows.dask_parts import DaskParts, Reading

    rowmap, cuts = MAPS["intercept"], [slice(0, 40), slice(40, N)]
    reading = Reading(np.asarray, lambda y: (y, np.ones(len(y), dtype=bool)), None, rowmap, Logistic(), D)
    delayed = [[dask.delayed(values[cut]) for cut in cuts] for values in (RAW, TARGET)]
    sizes = [40, N - 40]
    parts, _ = DaskParts.measured(*delayed, [None, None], sizes, reading)
    x, weights = np.ones(D + 1), np.full(D + 1, 30.0)
    found = PartitionedRows(parts, sizes, D + 1, 1).ask(FeatureCurvature(), (x, weights), EVERY_ROW)
    np.testing.assert_allclose(
        found, local(rowmap, RAW, None).ask(FeatureCurvature(), (x, weights), EVERY_ROW), rtol=1e-13
    )


def test_the_question_is_stored_and_read_again():
    question = FeatureCurvature()
    assert QUESTIONS["feature-curvature"] is FeatureCurvature
    assert question_from_dict(question_to_dict(question)) == question
    assert question.reach(Relation.ADD_REMOVE) == 1.0
    assert question.reach(Relation.REPLACE_ONE) == pytest.approx(np.sqrt(2) / 2)
