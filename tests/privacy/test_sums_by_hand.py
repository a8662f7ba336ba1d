"""Sums over rows, computed again row by row in plain NumPy: every sign, every block, every clip."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from dpadmm.oracles.gate import Gate
from dpadmm.oracles.private import PrivateOracle
from dpadmm.privacy.budget import Budget
from dpadmm.privacy.calibration import calibrate
from dpadmm.privacy.plan import Request
from dpadmm.privacy.questions import DIFFERENCE, CentredScore, ClippedGradient, GradientDifference, RowMoments
from dpadmm.privacy.sampling import Batch, Everything
from dpadmm.problem.losses import Logistic, Softmax, Squared
from dpadmm.problem.rowmap import RowMap
from dpadmm.problem.scores import Accuracy, ClippedLoss
from dpadmm.randomness import make_streams
from dpadmm.rows import scored, threshold_counts, wide
from dpadmm.rows.local import LocalRows
from dpadmm.rows.packed import PackedRows
from dpadmm.rows.scored import ScoredRows
from tests.asking import EVERY_ROW, below_sums, row_moment_sums

FORMS = pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix], ids=["dense", "csr"])
ALL = Batch(None)


# --- moments --------------------------------------------------------------------------------------------------------


@FORMS
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_row_moments_are_those_of_each_row_added_up(form, classes, weighted, monkeypatch):
    """Means that are not zero, rows of several lengths, weights, and several blocks."""
    monkeypatch.setattr(wide, "BLOCK_ENTRIES", 64)
    monkeypatch.setattr(wide, "shortest_run", lambda features: 1)
    rng, n, d, row_norm = np.random.default_rng(0), 101, 6, 2.0
    X = rng.uniform(0.1, 0.5, (n, d)) * (rng.random((n, d)) < 0.7)
    target = rng.integers(0, classes, n)
    weights = rng.uniform(0.2, 1.0, n) if weighted else None
    statistic = RowMoments(0.3, 0.2, 0.1, 1 if classes == 2 else classes, 0.5)
    signs = 2.0 * target - 1.0
    loss, label = (Logistic(), signs) if classes == 2 else (Softmax(classes), target)
    rows = LocalRows(PackedRows.of(RowMap(row_norm, True), form(X)), label, loss, row_norm, weights)
    assert len(list(wide.scaled_blocks(rows._table))) > 3

    mapped = np.column_stack([X, np.ones(n)])
    mapped *= np.minimum(1.0, row_norm / np.linalg.norm(mapped, axis=1))[:, None]
    correlation = np.zeros(d + 1 if classes == 2 else (d + 1, classes))
    total, squares, length = np.zeros(d + 1), np.zeros(d + 1), 0.0
    for i in range(n):
        # Logistic: minus the slope at zero, y/2, in units of 1/2. Softmax: the label less the even guess.
        score = signs[i] if classes == 2 else np.eye(classes)[target[i]] - 1 / classes
        a, weight = mapped[i] / row_norm, 1.0 if weights is None else weights[i]
        correlation += weight * np.multiply.outer(a, score)
        total += weight * a
        squares += weight * a * a
        length += weight * float(a @ a)
    expected = (correlation, np.sqrt(0.3) * total, np.sqrt(0.2) * squares, np.sqrt(0.1) * np.array([length]))
    for found, wanted in zip(row_moment_sums(rows, statistic), expected, strict=True):
        assert np.abs(wanted).min() > 0
        np.testing.assert_allclose(found, wanted, rtol=1e-10)


@FORMS
def test_counts_are_those_of_all_blocks(form, monkeypatch):
    """Seven rows a block, the last one shorter; rows that count for nothing in every block."""
    monkeypatch.setattr(threshold_counts, "BLOCK_ENTRIES", 30)
    rng = np.random.default_rng(1)
    X = rng.integers(-2, 3, (52, 4)).astype(float)
    X[[3, 20, 51]] = np.nan
    with np.errstate(all="ignore"):
        rows = LocalRows(PackedRows.of(RowMap(1.0, False), form(X)), np.zeros(52), Squared())
    clean = [row for row in X if np.isfinite(row).all()]
    for thresholds in ([-1.0, 0.0, 0.5, 2.0], [0.0, -1.5, 1.0, -3.0]):
        expected = [sum(row[j] <= limit for row in clean) - len(clean) / 2 for j, limit in enumerate(thresholds)]
        np.testing.assert_array_equal(below_sums(rows, np.array([thresholds]))[0], expected)


@FORMS
@pytest.mark.parametrize("score", [Accuracy(), ClippedLoss(0.8), ClippedLoss()], ids=["accuracy", "loss", "2"])
@pytest.mark.parametrize("weighted", [False, True])
def test_scores_are_those_of_each_row_less_one_half(form, score, weighted, monkeypatch):
    """Margins on both sides of zero and of one, rows that count for nothing, and several blocks."""
    monkeypatch.setattr(scored, "BLOCK_ROWS", 20)
    rng, n, clip = np.random.default_rng(4), 75, 0.45
    X, y, x = rng.uniform(-0.5, 0.5, (n, 3)), rng.choice([-1.0, 1.0], n), np.array([1.0, -3.0, 2.0])
    X[[5, 30]] = np.nan
    weights = rng.uniform(0.2, 1.0, n) if weighted else None
    with np.errstate(all="ignore"):
        rows = ScoredRows(PackedRows.of(RowMap(5.0, False), form(X)), y, Logistic(), score, weights)
    expected = 0.0
    for i in range(n):
        margin = float(X[i] @ x)
        if np.isnan(margin):
            continue
        bound = 2.0 if score == ClippedLoss() else 0.8
        value = 1 - min(np.log1p(np.exp(-y[i] * margin)), bound) / bound
        value = float(margin * y[i] > 0) if isinstance(score, Accuracy) else value
        expected += np.clip(value - 0.5, -clip, clip) * (1.0 if weights is None else weights[i])
    # Each contribution is cut off to a multiple of 2⁻²⁰, towards zero.
    assert rows.ask(CentredScore(clip), (x,), EVERY_ROW) == pytest.approx([expected], abs=n * 2.0**-20)


# --- clips ----------------------------------------------------------------------------------------------------------


def clipped(vector, clip):
    norm = np.linalg.norm(vector)
    return vector * min(1.0, clip / norm) if norm > 0 else vector


@FORMS
def test_differences_are_of_gradients_clipped_to_half_of_what_the_plan_allows(form):
    """Rows whose gradient is cut at one point and whole at the other, so that another clip shows."""
    rng, n, d, clip = np.random.default_rng(2), 40, 3, 0.2
    X, y = rng.normal(size=(n, d)), rng.choice([-1.0, 1.0], n)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    x, anchor = 0.5 * np.ones(d), 6.0 * np.ones(d)

    def slope(row, sign, at):
        return -sign * row / (1.0 + np.exp(sign * (row @ at)))

    plan = calibrate(Budget(1e4, 1e-5), [Request("difference", 3, GradientDifference(2 * clip))], Everything(), n)
    oracle = PrivateOracle(LocalRows(form(X), y, Logistic()), Gate(plan), make_streams(0))
    noise = plan.queries[0].noise_multiplier
    for cap in (2 * clip, 0.3, 0.05):
        pairs = [(slope(row, sign, x), slope(row, sign, anchor)) for row, sign in zip(X, y, strict=True)]
        exact = sum(clipped(clipped(a, clip) - clipped(b, clip), cap) for a, b in pairs) / n
        cut = sum(clipped(a - b, cap) for a, b in pairs) / n
        assert np.abs(exact - cut).max() > 12 * noise * cap / n
        # Six standard deviations of the noise each way, twice that between the two answers.
        np.testing.assert_allclose(oracle.ask(DIFFERENCE, x, anchor, cap), exact, atol=6 * noise * cap / n)


@pytest.mark.parametrize("row_norm", [1.0, 1e-14, 1e-30])
@FORMS
def test_rows_near_the_largest_numbers_never_exceed_the_clip(row_norm, form):
    """Their factor would be a number of few digits, off by a tenth: such rows count as zero, others as they are."""
    rng, clip = np.random.default_rng(3), 0.25
    directions = rng.uniform(0.2, 1.0, (200, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    sizes = 10.0 ** rng.uniform(290, 308, 200)
    with np.errstate(all="ignore"):
        giant = PackedRows.of(RowMap(row_norm, False), form(directions * sizes[:, None]))
        large = PackedRows.of(RowMap(row_norm, False), form(directions * row_norm * 1e140))
        for i in range(200):
            one = PackedRows.of(RowMap(row_norm, False), form(directions[i : i + 1] * sizes[i]))
            rows = LocalRows(one, np.ones(1), Squared())
            assert np.linalg.norm(rows.ask(ClippedGradient(clip), (np.zeros(3),), ALL)) <= clip
    assert not giant.factors.any()
    np.testing.assert_allclose(large.factors, 1e-140, rtol=1e-12)
    np.testing.assert_allclose(large.block(slice(0, 200)), row_norm * directions, rtol=1e-12)
