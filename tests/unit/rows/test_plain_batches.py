"""A mini-batch of the commonest table takes a shorter way to the same sum, and no warning tells of its rows."""

import warnings

import numpy as np
import pytest

from dpadmm import kernels
from dpadmm.oracles.gate import Gate
from dpadmm.oracles.private import PrivateOracle
from dpadmm.privacy.budget import Budget
from dpadmm.privacy.calibration import calibrate
from dpadmm.privacy.plan import Request
from dpadmm.privacy.questions import GRADIENT, ClippedGradient, SecondMoment
from dpadmm.privacy.sampling import Batch, make_sampler
from dpadmm.problem import HuberisedHinge, Logistic, Softmax
from dpadmm.problem.rowmap import RowMap
from dpadmm.problem.spiked_map import SpikedMap
from dpadmm.randomness import make_streams
from dpadmm.rows.local import LocalRows
from dpadmm.rows.packed import PackedRows

N, D = 200, 13
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D)) * 10.0 ** RNG.integers(-3, 4, (N, 1))
X[3], X[4], X[5], X[6] = np.nan, np.inf, 1e-320, 3e38
Y = RNG.choice([-1.0, 1.0], N)
POINT = RNG.standard_normal(D + 1)
FAR = 1e29 * POINT / np.linalg.norm(POINT)


def held(loss=None, dtype=np.float64, rowmap=None, **more):
    with np.errstate(all="ignore"):
        return LocalRows(PackedRows.of(rowmap or RowMap(), X.astype(dtype)), Y, loss or Logistic(), **more)


def oracle_over(rows, size=50):
    plan = calibrate(
        Budget(1.0, 1e-6), [Request("gradient", 1, ClippedGradient(0.5))], make_sampler("fixed", N, size), N
    )
    return PrivateOracle(rows, Gate(plan), make_streams(1))


@pytest.mark.parametrize("engine", ["numpy", "compiled"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("loss", [Logistic(), HuberisedHinge(0.5)])
@pytest.mark.parametrize("size", [0, 1, 15, 50, N])
def test_the_short_way_leads_to_the_same_sum(engine, dtype, loss, size):
    rows, batch = held(loss, dtype), Batch(RNG.permutation(N)[:size])
    assert rows._is_plain
    with kernels.use(engine), np.errstate(all="ignore"):
        for x in (POINT, np.stack([POINT, POINT], axis=1)[:, 0]):
            found = rows.ask(ClippedGradient(0.3), (x,), batch)
            np.testing.assert_array_equal(found, rows._clipped_sum(x, None, 0.3, 0.3, batch))
    assert found.shape == (D + 1,)


@pytest.mark.parametrize("engine", ["numpy", "compiled"])
def test_rows_measured_anew_are_clipped_by_their_new_norms(engine):
    """What was noted of the rows for earlier batches holds the old norms, and serves no longer."""
    rows, batch = held(), Batch(RNG.permutation(N))
    with kernels.use(engine), np.errstate(all="ignore"):
        before = rows.ask(ClippedGradient(0.3), (POINT,), batch)
        seen = rows.measured_by(SpikedMap(np.full(D + 1, 50.0), np.ones(D + 1), 0.5))
        after = seen.ask(ClippedGradient(0.3), (POINT,), batch)
        np.testing.assert_array_equal(after, seen._clipped_sum(POINT, None, 0.3, 0.3, batch))
        np.testing.assert_array_equal(before, rows.ask(ClippedGradient(0.3), (POINT,), batch))
    assert np.linalg.norm(after) < 0.5 * np.linalg.norm(before)


@pytest.mark.parametrize(
    "rows",
    [
        held(rowmap=RowMap(lower=np.zeros(D), upper=np.ones(D))),
        held(rowmap=RowMap(intercept=False)),
        held(weights=np.linspace(0, 1, N)),
        held().transformed(np.diag(np.linspace(1, 2, D + 1))),
        LocalRows(PackedRows.of(RowMap(), np.abs(np.nan_to_num(X))), RNG.integers(0, 3, N), Softmax(3)),
    ],
    ids=["bounds", "no intercept", "weights", "other coordinates", "several outputs"],
)
def test_other_tables_take_the_long_way(rows):
    assert not rows._is_plain


@pytest.mark.parametrize("engine", ["numpy", "compiled"])
@pytest.mark.parametrize("habit", ["warn", "raise"])
@pytest.mark.parametrize("x", [POINT, FAR])
@pytest.mark.parametrize("size", [150, N])
def test_no_warning_tells_of_rows(engine, habit, x, size):
    """Whatever the user wants NumPy to do with overflows: those of private rows stay where they are."""
    for rows in (held(), held().transformed(np.diag(np.geomspace(1, 1e5, D + 1)))):
        asked = oracle_over(rows, size)
        with kernels.use(engine), warnings.catch_warnings(), np.errstate(all=habit):
            warnings.simplefilter("error")
            assert np.isfinite(asked.ask(GRADIENT, x)).all()


def test_mutant_that_never_silences_numpy(monkeypatch):
    """What the silence is for: without it the NumPy path tells of infinite rows."""
    asked = oracle_over(held(), 199)
    monkeypatch.setattr(PrivateOracle, "_turn", lambda oracle, question, rows: oracle._lock)
    with kernels.use("numpy"), np.errstate(all="raise"), pytest.raises(FloatingPointError):
        asked.ask(GRADIENT, FAR)


def test_only_kernels_that_suffice_do_without_silence():
    rows, changed = held(), held().transformed(np.eye(D + 1))
    with kernels.use("compiled"):
        asked = oracle_over(rows)
        question = asked._gate.line(GRADIENT).question
        assert asked._turn(question, rows) is asked._lock
        assert asked._turn(question, changed) is not asked._lock
        assert asked._turn(SecondMoment(), rows) is not asked._lock
    with kernels.use("numpy"):
        assert asked._turn(question, rows) is not asked._lock
