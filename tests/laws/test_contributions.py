"""Every question says by `contributions` what its fast ways add up: engine by engine, and row by row."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import sparse

from dpadmm.errors import QueryRefused
from dpadmm.privacy.questions import (
    QUESTIONS,
    CentredScore,
    ClippedGradient,
    CountsBelow,
    FeatureCurvature,
    FeatureMoment,
    GradientDifference,
    JointMoments,
    LocalMinimum,
    RowMoments,
    SecondMoment,
)
from dpadmm.privacy.questions.base import clip_there
from dpadmm.privacy.sampling import Batch
from dpadmm.problem import HuberisedHinge, Logistic, Softmax, Squared
from dpadmm.problem.rowmap import RowMap
from dpadmm.problem.scores import Accuracy
from dpadmm.problem.spiked_map import SpikedMap
from dpadmm.rows.lattice_rows import LatticeRows
from dpadmm.rows.lattice_sum import as_numbers
from dpadmm.rows.local import LocalRows
from dpadmm.rows.packed import PackedRows
from dpadmm.rows.scored import ScoredRows
from tests.asking import EVERY_ROW

N, D = 40, 3
RNG = np.random.default_rng(0)
RAW = RNG.normal(size=(N, D)) * 10.0 ** RNG.uniform(-2, 2, (N, 1))
ROWMAP = RowMap(2.0)
KEPT = np.arange(N) % 9 != 0
WEIGHTS = RNG.uniform(size=N)
LOSSES = {"logistic": Logistic(), "hinge": HuberisedHinge(), "squared": Squared(), "softmax": Softmax(3)}
WIDTH = D + 1


def target_of(loss):
    return RNG.integers(0, 3, N) if loss.outputs > 1 else RNG.choice([-1.0, 1.0], N)


def dense(loss, target, weights=None):
    return LocalRows(PackedRows.of(ROWMAP, RAW, KEPT), target, loss, ROWMAP.row_norm, weights)


def csr(loss, target, weights=None):
    return LocalRows(PackedRows.of(ROWMAP, sparse.csr_matrix(RAW), KEPT), target, loss, ROWMAP.row_norm, weights)


def device(loss, target, weights=None):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    from dpadmm.rows.torch_rows import TorchRows
    from dpadmm.rows.torch_table import pack_tensor

    return TorchRows(pack_tensor(ROWMAP, torch.tensor(RAW), torch.tensor(KEPT)), target, loss, 2.0, weights)


def scored(loss, target, weights=None):
    return ScoredRows(PackedRows.of(ROWMAP, RAW, KEPT), target, loss, Accuracy(), weights)


def asks(loss):
    """Each question with places at which it is asked, and the rows, in whose coordinates."""
    shape = (WIDTH, loss.outputs) if loss.outputs > 1 else (WIDTH,)
    x, anchor = RNG.normal(size=shape), RNG.normal(size=shape)
    yield ClippedGradient(0.4), (x,)
    yield ClippedGradient(np.inf), (x,)
    yield GradientDifference(0.6), (x, anchor, 0.1)
    yield GradientDifference(0.6), (x, anchor, 0.6)
    yield JointMoments(0.3, loss.outputs, 0.5), ()
    yield JointMoments(0.3, loss.outputs, 0.5, non_negative=True), ()
    yield RowMoments(1.0, 0.1, 0.1, loss.outputs, 0.5), ()
    yield RowMoments(0.5, 0.0, 0.2, loss.outputs, 0.5), ()
    yield SecondMoment(), ()
    yield FeatureMoment(), ()
    yield CountsBelow(D, 2), (RNG.normal(size=(2, D)),)
    if type(loss) is Logistic:
        yield FeatureCurvature(), (x, RNG.uniform(0, 30, WIDTH))


def named(case):
    return case if isinstance(case, str) else getattr(case, "__name__", None)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("engine", [dense, csr, device], ids=named)
@pytest.mark.parametrize("loss", LOSSES)
def test_the_fast_way_is_the_sum_of_contributions(engine, loss, weights):
    loss = LOSSES[loss]
    rows = engine(loss, target_of(loss), weights)
    for question, at in asks(loss):
        if weights is not None and isinstance(question, CountsBelow):
            continue  # counts are of rows, whatever the weights that a loss gives them
        fast, general = rows.ask(question, at, EVERY_ROW), rows._row_by_row(question, at, EVERY_ROW)
        np.testing.assert_allclose(general.ravel(), np.ravel(fast), rtol=1e-5, atol=1e-5, err_msg=repr(question))


@pytest.mark.parametrize("engine", [dense, csr, device], ids=named)
@pytest.mark.parametrize("loss", LOSSES)
def test_so_it_is_of_a_batch_and_in_other_coordinates(engine, loss):
    loss = LOSSES[loss]
    rows = engine(loss, target_of(loss), WEIGHTS)
    batch = Batch(RNG.permutation(N)[:15], RNG.integers(0, 2, 15).astype(float))
    matrix = RNG.normal(size=(WIDTH, WIDTH))
    spiked = SpikedMap(RNG.uniform(0.5, 2, WIDTH), RNG.normal(size=WIDTH), 3.0)
    for question, at in list(asks(loss))[:4]:
        for seen in (rows, rows.transformed(matrix)):
            general = seen._row_by_row(question, at, batch)
            np.testing.assert_allclose(general, seen.ask(question, at, batch), rtol=1e-5, atol=1e-5)
        seen = rows.transformed(spiked)
        general = seen._rows._row_by_row(question, at, batch)
        np.testing.assert_allclose(general, seen.ask(question, at, batch), rtol=1e-5, atol=1e-5)
    turned = rows.transformed(matrix)
    general = turned._row_by_row(SecondMoment(), (), EVERY_ROW)
    np.testing.assert_allclose(general, turned.ask(SecondMoment(), (), EVERY_ROW), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
def test_on_the_lattice_too(loss):
    loss = LOSSES[loss]
    rows = LatticeRows(PackedRows.of(ROWMAP, RAW, KEPT), target_of(loss), loss, ROWMAP.row_norm, N)
    for question, at in asks(loss):
        if question.may_be_cut and not isinstance(question, CountsBelow) and question.size < np.inf:
            fast, general = (as_numbers(way(question, at, EVERY_ROW)) for way in (rows.ask, rows._row_by_row))
            np.testing.assert_allclose(general, fast, atol=1e-4, err_msg=repr(question))


def test_scores_are_those_of_the_rule():
    rows = scored(Logistic(), RNG.choice([-1.0, 1.0], N), WEIGHTS)
    x = RNG.normal(size=WIDTH)
    for question in (CentredScore(0.5), CentredScore(0.2)):
        fast, general = rows.ask(question, (x,), EVERY_ROW), rows._row_by_row(question, (x,), EVERY_ROW)
        np.testing.assert_allclose(general, fast, atol=1e-4)


@pytest.mark.parametrize("engine", [dense, csr, device], ids=named)
@pytest.mark.parametrize("loss", LOSSES)
def test_a_row_contributes_the_same_wherever_it_stands(engine, loss):
    """To the last bit: else taking a row out would move what others contribute."""
    loss = LOSSES[loss]
    rows = engine(loss, target_of(loss))
    places = np.arange(N)
    for seen in (rows, rows.transformed(RNG.normal(size=(WIDTH, WIDTH)))):
        for question, at in asks(loss):
            if question.frame == "table" and seen is not rows:
                continue
            whole, _ = seen._shown(places)
            found = question.contributions(whole, at)
            for first, second in itertools.pairwise(RNG.permutation(N)[:6]):
                some, _ = seen._shown(np.array([second, first]))
                alone, _ = seen._shown(np.array([first]))
                for view, place in ((some, 1), (alone, 0)):
                    np.testing.assert_array_equal(question.contributions(view, at)[place], found[first])


@pytest.mark.parametrize("engine", [dense, csr, device], ids=named)
def test_no_contribution_is_longer_than_its_clip(engine):
    for loss in LOSSES.values():
        rows = engine(loss, target_of(loss))
        for question, at in asks(loss):
            clip = clip_there(question, at, rows.space)
            for row in range(0, N, 5):
                alone = rows._row_by_row(question, at, Batch(np.array([row])))
                assert np.linalg.norm(alone) <= clip


def test_every_question_but_hidden_passes_and_local_minima_has_contributions():
    known = {type(question) for loss in LOSSES.values() for question, _ in asks(loss)} | {CentredScore}
    library = {QUESTIONS[name] for name in QUESTIONS if QUESTIONS[name].__module__.startswith("dpadmm.")}
    assert {question for question in library if not question.walks} == known | {LocalMinimum}


@pytest.mark.parametrize("engine", [dense, csr, device], ids=named)
def test_a_local_minimum_is_no_sum_and_rows_that_only_sum_refuse_it(engine):
    rows = engine(Logistic(), target_of(Logistic()))
    with pytest.raises(QueryRefused, match="do not answer 'local-minimum'"):
        rows.ask(LocalMinimum(0.5), (np.zeros(WIDTH), 1.0), EVERY_ROW)
