"""Rows in a torch tensor: on the CPU they are arrays, elsewhere all work is done where they are.

Where there is no accelerator, the code for one runs on the CPU's own tensors, so that it is tested everywhere torch is.
"""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest

from dpadmm import (
    DPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPSearchCV,
    PrivateGraph,
    PrivateQuantileClipper,
)
from dpadmm.errors import InvalidData, UnsupportedProblem
from dpadmm.estimators import fit_table
from dpadmm.privacy.arithmetic import summation_error
from dpadmm.privacy.questions import ClippedGradient, GradientDifference
from dpadmm.privacy.sampling import Batch
from dpadmm.problem.losses import Huber, HuberisedHinge, Logistic, Softmax, Squared
from dpadmm.problem.rowmap import RowMap
from dpadmm.rows.local import LocalRows
from dpadmm.rows.protocol import Visited
from tests.unit.rows.questions import RAW, RNG, D, N, questions, same

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'dpadmm[torch]'")

from dpadmm.estimators.device_table import DeviceTable  # noqa: E402
from dpadmm.rows import torch_table  # noqa: E402
from dpadmm.rows.packed import PackedRows  # noqa: E402
from dpadmm.rows.tensor_view import clip_slopes, margins  # noqa: E402
from dpadmm.rows.torch_rows import TorchRows  # noqa: E402
from dpadmm.rows.torch_table import folded, pack_tensor, require_double_precision, to_host  # noqa: E402

NO_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
DEVICES = ["cpu", pytest.param("cuda", marks=[pytest.mark.gpu, NO_GPU])]
LOSSES = [Logistic(), HuberisedHinge(), Squared(), Huber(0.5), Softmax(3), Squared(n_tasks=2)]
MAPS = {
    "plain": RowMap(2.0, False),
    "intercept": RowMap(2.0, True),
    "bounds": RowMap.declare(2.0, True, (-1.0, 1.0), D),
}


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param


@pytest.fixture(params=["one-block", "many-blocks"])
def blocks(request, monkeypatch):
    if request.param == "many-blocks":
        monkeypatch.setattr(torch_table, "BLOCK_ENTRIES", 60)


def targets(loss):
    if isinstance(loss, Softmax):
        return RNG.integers(0, loss.n_classes, N)
    if isinstance(loss, (Logistic, HuberisedHinge)):
        return RNG.choice([-1.0, 1.0], N)
    return RNG.standard_normal((N, loss.outputs) if loss.outputs > 1 else N)


def both(loss, rowmap, device, raw=RAW, keep=None, weighted=False):
    target, weights = targets(loss), RNG.uniform(size=len(raw)) if weighted else None
    alive = None if keep is None else torch.tensor(keep, device=device)
    table = pack_tensor(rowmap, torch.tensor(raw, device=device), alive)
    return (
        LocalRows(PackedRows.of(rowmap, raw, keep), target, loss, rowmap.row_norm, weights),
        TorchRows(table, target, loss, rowmap.row_norm, weights),
    )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("outputs", [1, 3])
def test_every_question_has_the_same_answer(outputs, weighted, blocks, device):
    here, there = both(Logistic() if outputs == 1 else Softmax(3), MAPS["intercept"], device, weighted=weighted)
    assert (there.n_rows, there.space.n_features, there.space.point_shape) == (
        here.n_rows,
        here.space.n_features,
        here.space.point_shape,
    )
    for _, ask in questions(outputs):
        same(ask(here), ask(there), 1e-11)


@pytest.mark.parametrize("rowmap", MAPS)
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_every_loss_and_map(loss, rowmap, blocks, device):
    here, there = both(loss, MAPS[rowmap], device)
    for scale in (0.0, 1.0, 1e3):
        x, anchor = (scale * RNG.standard_normal(here.space.point_shape) for _ in range(2))
        for clip in (1e-3, 0.5, np.inf):
            same(
                here.ask(ClippedGradient(clip), (x,), Batch(None)),
                there.ask(ClippedGradient(clip), (x,), Batch(None)),
                1e-9,
            )
            gap, at = GradientDifference(2 * clip), (x, anchor, clip)
            same(here.ask(gap, at, Batch(None)), there.ask(gap, at, Batch(None)), 1e-9)


@pytest.mark.parametrize("rowmap", MAPS)
def test_rows_are_measured_alike(rowmap, blocks, device):
    """Rows of every size, also such as are not finite, not kept, or so long or short that their squares are none."""
    raw = np.concatenate([RAW, RAW * 1e-170, RAW * 1e160, RAW * 1e-320, np.zeros((1, D))])
    raw[3, 1], raw[4, 0], raw[5] = np.nan, np.inf, -np.inf
    keep = np.arange(len(raw)) % 7 > 0
    with np.errstate(all="ignore"):
        local = PackedRows.of(MAPS[rowmap], raw, keep)
    found = pack_tensor(MAPS[rowmap], torch.tensor(raw, device=device), torch.tensor(keep, device=device))
    np.testing.assert_allclose(to_host(found.factors), local.factors, rtol=1e-13)
    np.testing.assert_allclose(to_host(found.norms), local.norms, rtol=1e-13)
    np.testing.assert_allclose(to_host(found.block(slice(None))), local.block(slice(None)), rtol=1e-13, atol=0)


def test_single_precision_is_summed_in_double(device):
    """Summed in float32 one replaced row would move this sum by 1.03 times the allowed distance."""
    n = 1_000_000
    X, target = torch.ones((n, 1), dtype=torch.float32, device=device), np.ones(n)
    neighbour = target.copy()
    neighbour[0] = -1.0
    table = pack_tensor(RowMap(1.0, False), X)
    sums = [
        TorchRows(table, y, Logistic()).ask(ClippedGradient(0.3), (np.zeros(1),), Batch(None))
        for y in (target, neighbour)
    ]
    assert abs(sums[0] - sums[1])[0] <= 2 * 0.3
    alone = TorchRows(table, target, Logistic()).ask(ClippedGradient(0.3), (np.zeros(1),), Batch(np.array([0])))
    assert abs(sums[0] - n * alone)[0] <= 0.3 * summation_error(n, 1)


def test_a_slope_beyond_any_scale_counts_as_zero():
    """The scale that would shorten it is subnormal, and its rounding could pass the clip."""
    slopes = torch.tensor([[1.2e308], [1.0]], dtype=torch.float64)
    clipped = clip_slopes(slopes, torch.ones(2, dtype=torch.float64), 1e-15)
    assert clipped[0, 0] == 0
    assert 0 < clipped[1, 0] <= 1e-15


@pytest.mark.parametrize("norm", [np.nan, np.inf])
@pytest.mark.parametrize("outputs", [1, 3])
def test_a_row_of_no_finite_norm_contributes_nothing(norm, outputs, device):
    slopes = torch.ones((2, outputs), dtype=torch.float64, device=device)
    clipped = clip_slopes(slopes, torch.tensor([norm, 1.0], dtype=torch.float64, device=device), 0.5)
    assert not clipped[0].any()
    assert clipped[1].any()


@pytest.mark.parametrize(("n", "d"), [(52, 40), (37, 5), (9, 130), (70, 1), (1030, 785)])
def test_margins_and_sums_along_rows_do_not_depend_on_neighbours(n, d, device):
    """Rows whose margin is nothing but rounding: a product of linear algebra would move others when one goes."""
    rows = RNG.standard_normal((n, d))
    rows[:, -1] -= rows.sum(axis=1)
    rows = torch.tensor(rows, device=device)
    point = torch.full((d, 3), 1 / 3, dtype=torch.float64, device=device)
    whole, squares = margins(rows, point), folded(rows**2)
    for gone in range(0, n, max(1, n // 20)):
        rest = torch.cat([rows[:gone], rows[gone + 1 :]])
        assert torch.equal(margins(rest, point), torch.cat([whole[:gone], whole[gone + 1 :]]))
        assert torch.equal(folded(rest**2), torch.cat([squares[:gone], squares[gone + 1 :]]))


def test_rows_can_be_prepared_but_not_visited():
    rows = both(Logistic(), MAPS["plain"], "cpu")[1]
    assert not isinstance(rows, Visited)


# -- whole fits ------------------------------------------------------------------------------------------------------

X = RNG.uniform(-1, 1, (600, 4))
Y = (X[:, 0] > 0).astype(int)
COMMON = {"delta": 1e-6, "random_state": 0}


@pytest.fixture
def on_device(device):
    """Tensors of the CPU are taken for those of an accelerator where there is none."""

    def elsewhere(table, labels, tolerant):
        return DeviceTable(table, labels) if isinstance(table, torch.Tensor) else None

    with mock.patch("dpadmm.estimators.base.held_elsewhere", elsewhere):
        yield lambda values: torch.as_tensor(values, device=device)


@pytest.mark.parametrize("solver", ["auto", "full-admm", "dp-sadmm", "dp-vradmm", "ssadmm", "mpadmm", "dp-gd"])
def test_fits_agree_with_every_solver(solver, on_device):
    more = {**COMMON, "solver": solver, "classes": [0, 1], "steps": 4}
    if solver == "dp-vradmm":
        more |= {"steps": None, "solver_options": {"epochs": 2, "inner_steps": 3}}
    expected, found = (
        DPLogisticRegression(**more).fit(X, Y),
        DPLogisticRegression(**more).fit(on_device(X), on_device(Y)),
    )
    np.testing.assert_allclose(found.weights_, expected.weights_, rtol=1e-8, atol=1e-10)
    assert str(found.privacy_) == str(expected.privacy_)
    assert (found.predict(on_device(X)) == expected.predict(X)).all()


MODELS = {
    "softmax": (DPLogisticRegression(**COMMON), np.digitize(X[:, 1], [-0.3, 0.3])),
    "weights": (DPLogisticRegression(class_weight={0: 2.0}, bounds=(-2.0, 2.0), **COMMON), Y),
    "svm": (DPLinearSVC(fit_intercept=False, row_norm=3.0, **COMMON), Y),
    "squared": (DPLinearRegression(**COMMON), X[:, 0]),
    "huber": (DPLinearRegression(loss="huber", **COMMON), X[:, 0]),
    "steps": (
        DPLogisticRegression(
            bounds=PrivateQuantileClipper((-2, 2), share=0.2), penalty="graph", graph=PrivateGraph(share=0.2), **COMMON
        ),
        Y,
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_fits_agree_for_every_model(name, on_device):
    model, labels = MODELS[name]
    expected = model.fit(X, labels).weights_
    np.testing.assert_allclose(model.fit(on_device(X), on_device(labels)).weights_, expected, rtol=1e-8, atol=1e-10)


def test_wide_rows(on_device):
    wide, labels = RNG.standard_normal((200, 3100)) * (RNG.uniform(size=(200, 3100)) < 0.01), Y[:200]
    model = DPLogisticRegression(steps=2, classes=[0, 1], **COMMON)
    expected = model.fit(wide, labels).weights_
    np.testing.assert_allclose(model.fit(on_device(wide), labels).weights_, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int64"])
def test_other_precisions(dtype, on_device):
    table = torch.tensor(np.round(4 * X)).to(getattr(torch, dtype))
    model = DPLogisticRegression(classes=[0, 1], **COMMON)
    expected = model.fit(np.round(4 * X), Y).weights_
    np.testing.assert_allclose(model.fit(on_device(table), Y).weights_, expected, rtol=1e-5, atol=1e-8)


class TestRefusals:
    @pytest.mark.parametrize("more", [{"arithmetic": "exact"}, {"solver": "noisy-admm"}], ids=str)
    def test_what_needs_rows_in_memory(self, on_device, more):
        with pytest.raises(UnsupportedProblem, match="on a device"):
            DPLogisticRegression(classes=[0, 1], **COMMON, **more).fit(on_device(X), on_device(Y))

    def test_tables(self, on_device):
        broken = X.copy()
        broken[3, 1] = np.nan
        table = on_device(X)
        for bad in (table.to_sparse(), table.to(torch.complex64), table[0], table[:0], table[:, :0], table[:5]):
            with pytest.raises(InvalidData):
                DPLogisticRegression(classes=[0, 1], **COMMON).fit(bad, on_device(Y))
        for bad, labels in ((on_device(broken), Y), (table, np.where(Y == 1, 7, 0))):
            with pytest.raises(InvalidData):
                DPLogisticRegression(classes=[0, 1], **COMMON).fit(bad, labels)

    def test_a_device_without_double_precision(self):
        lacking = mock.patch.object(torch, "zeros", side_effect=TypeError)
        with lacking, pytest.raises(UnsupportedProblem, match="double precision"):
            require_double_precision(torch.device("cpu"))

    def test_a_device_that_silently_takes_single_precision(self):
        require_double_precision(torch.device("cpu"))
        shorter = mock.patch.object(torch, "zeros", return_value=torch.zeros(1, dtype=torch.float32))
        with shorter, pytest.raises(UnsupportedProblem, match="double precision"):
            require_double_precision(torch.device("cpu"))

    def test_emulated_double_precision(self, monkeypatch):
        monkeypatch.setenv(torch_table.EMULATION, "1")
        with pytest.raises(UnsupportedProblem, match="EMULATE"):
            require_double_precision(torch.device("cpu"))

    def test_a_loss_of_ones_own(self):
        class Own(Logistic):
            pass

        with pytest.raises(UnsupportedProblem, match="loss"):
            both(Own(), MAPS["plain"], "cpu")


def test_bad_rows_count_as_zero(on_device):
    broken, labels = X.copy(), Y.astype(float)
    broken[3, 1], labels[4] = np.nan, 77.0
    model = DPLogisticRegression(classes=[0, 1], invalid_rows="zero", **COMMON)
    expected = model.fit(broken, labels).weights_
    np.testing.assert_allclose(model.fit(on_device(broken), on_device(labels)).weights_, expected, rtol=1e-9)


class TestTensorsOfTheCpu:
    """They are arrays: nothing is copied, and everything works that works with arrays."""

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    def test_no_copy(self, dtype):
        table = torch.tensor(X, dtype=dtype)
        model = DPLogisticRegression(classes=[0, 1], **COMMON)
        held = model.prepare(table, torch.tensor(Y))[1]
        assert isinstance(held, LocalRows)
        assert np.shares_memory(held._X, table.numpy())
        assert fit_table.held_elsewhere(table, Y, False) is None

    @pytest.mark.parametrize("more", [{}, {"arithmetic": "exact"}, {"solver": "noisy-admm"}], ids=str)
    def test_fits(self, more):
        model = DPLogisticRegression(classes=[0, 1], **COMMON, **more)
        expected = model.fit(X, Y).weights_
        table = torch.tensor(X, requires_grad=True)
        np.testing.assert_array_equal(model.fit(table, torch.tensor(Y)).weights_, expected)

    def test_searches_and_transformers(self):
        PrivateQuantileClipper((-2, 2), epsilon=1.0, delta=1e-6).fit(torch.tensor(X))
        search = DPSearchCV(DPLogisticRegression(classes=[0, 1], **COMMON), {"penalty": ["none", "l2"]}, mean_trials=2)
        search.fit(torch.tensor(X), torch.tensor(Y))

    def test_other_kinds(self):
        model = DPLogisticRegression(classes=[0, 1], **COMMON)
        expected = model.fit(np.round(4 * X), Y).weights_
        for dtype in (torch.bfloat16, torch.float16, torch.int32):
            found = model.fit(torch.tensor(np.round(4 * X)).to(dtype), Y).weights_
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-8)
        with pytest.raises(InvalidData, match="dense"):
            model.fit(torch.tensor(X).to_sparse(), Y)
