"""No person moves a sum further than a row may, however many rows they have; and mistakes in this are noticed."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from dpadmm import DPLinearRegression, DPLogisticRegression, DPSearchCV, kernels
from dpadmm.cells.pandas_cells import cells_of
from dpadmm.cells.person_ids import PersonNumbers, numbered
from dpadmm.errors import InvalidData, InvalidParameter, PromiseBroken, QueryRefused, UnsupportedProblem
from dpadmm.kernels.clipping import squared_lengths
from dpadmm.kernels.numpy_kernels import products
from dpadmm.oracles.gate import Gate
from dpadmm.oracles.private import PrivateOracle
from dpadmm.preparation import PrivateQuantileClipper
from dpadmm.privacy import arithmetic
from dpadmm.privacy.arithmetic import Arithmetic
from dpadmm.privacy.budget import Budget, Relation
from dpadmm.privacy.calibration import calibrate, verify_plan
from dpadmm.privacy.plan import Request
from dpadmm.privacy.questions import (
    QUESTIONS,
    ClippedGradient,
    CountsBelow,
    GradientDifference,
    HiddenWalk,
    SecondMoment,
)
from dpadmm.privacy.sampling import Batch, Everything, Poisson
from dpadmm.privacy.unit import Unit
from dpadmm.problem import Huber, HuberisedHinge, Logistic, Softmax, Squared
from dpadmm.problem.rowmap import RowMap
from dpadmm.problem.spiked_map import SpikedMap
from dpadmm.randomness import make_streams
from dpadmm.rows.local import LocalRows
from dpadmm.rows.owned import PIECE_ROWS, Owned
from dpadmm.rows.packed import PackedRows
from dpadmm.rows.person_vectors import PersonVectors

from .persons import CLIP, SCORE, asked, one_person, rows_of, table_of

ALL = Batch(None)
LOSSES = [Logistic(), Squared(), Huber(0.5), Softmax(3)]
SLACK = 1 + 1e-9
FIFTY = 50


def moved(first, second):
    return float(np.linalg.norm(np.ravel(first) - np.ravel(second)))


def turn(rng, width):
    """Coordinates of every kind: those of the table, a dense map, a spiked one."""
    kind = rng.integers(0, 3)
    if kind == 0:
        return None
    if kind == 1:
        return np.linalg.qr(rng.normal(size=(width, width)))[0] * rng.uniform(0.1, 10.0, width)
    return SpikedMap(rng.uniform(0.1, 10.0, width), rng.normal(size=width), float(rng.choice([0.01, 1.0, 100.0])))


def furthest(rng, loss, d=3, wild=True, tables=3, to_csr=lambda X: X):
    """For every question, how far the worst of a few persons moved it, over what is charged: (replaced, added)."""
    worst = {}
    others = [one_person(loss, rng, int(rng.integers(1, 9)), d, wild) for _ in range(3)]
    rowmap = RowMap(float(rng.choice([0.3, 1.0, 5.0])), True)
    matrix = turn(rng, d + 1)
    for _ in range(tables):
        sizes = rng.choice([1, 2, 7, FIFTY], 2)
        pair = [one_person(loss, rng, int(size), d, wild) for size in sizes]
        rows = [rows_of(*table_of([*others, each]), 4, loss, rowmap, score=SCORE, to_csr=to_csr) for each in pair]
        rows.append(rows_of(*table_of(others), 3, loss, rowmap, score=SCORE, to_csr=to_csr))
        seen = rows if matrix is None else [each.transformed(matrix) for each in rows]
        for question, at in asked(rng, loss, d, d + 1):
            if isinstance(matrix, SpikedMap) and type(question) is SecondMoment:
                continue
            held = seen if question.frame == "seen" else rows
            first, second, without = (each.ask(question, at, ALL) for each in held)
            clip = min(question.accept(at, held[0].space), question.size)
            share = clip / question.size
            replaced = moved(first, second) / (2 * question.reach(Relation.REPLACE_ONE) * share)
            added = max(moved(first, without), moved(second, without)) / (question.reach(Relation.ADD_REMOVE) * share)
            worst[question.name] = max(worst.get(question.name, 0.0), replaced, added)
    return worst


@pytest.fixture(params=["numpy", "compiled"], scope="module")
def engine(request):
    """For what has to hold for the kernels of both engines."""
    with kernels.use(request.param):
        yield


@pytest.mark.usefixtures("engine")
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), loss=st.sampled_from(LOSSES), csr=st.booleans(), wild=st.booleans())
def test_no_person_moves_a_sum_further_than_a_row_may(seed, loss, csr, wild):
    with np.errstate(all="ignore"):
        worst = furthest(
            np.random.default_rng(seed), loss, wild=wild, to_csr=sparse.csr_matrix if csr else (lambda X: X)
        )
    assert max(worst.values()) <= SLACK, worst


def test_every_question_that_persons_may_be_asked_is_tried_here():
    names = {question.name for question, _ in asked(np.random.default_rng(0), Logistic(), 3, 4)}
    assert names == {name for name in QUESTIONS if QUESTIONS[name].persons}
    assert not HiddenWalk.persons


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_nothing_is_no_further_from_a_contribution_than_two_contributions_may_lie_apart(loss):
    """What the theorem needs to fill up weights with zeros."""
    for question, _ in asked(np.random.default_rng(0), loss, 3, 4):
        assert question.reach(Relation.ADD_REMOVE) <= 2 * question.reach(Relation.REPLACE_ONE)


class Planted:
    """A mistake, planted for one test."""

    def __init__(self, name, plant):
        self.name, self.plant = name, plant

    def __repr__(self):
        return self.name


def _weights_forgotten(monkeypatch):
    monkeypatch.setattr(Owned, "shares", lambda self, n_rows: np.ones(n_rows))


def _weights_rescaled(monkeypatch):
    """As public weights are: divided by the largest."""
    honest = Owned.shares

    def rescaled(self, n_rows):
        found = honest(self, n_rows)
        return found / found.max(initial=1e-9)

    monkeypatch.setattr(Owned, "shares", rescaled)


def _shares_of_the_table(monkeypatch):
    """The mean number of rows of all persons, in place of each person's own."""

    def shares(self, n_rows):
        return np.full(n_rows, self.count / max(1, n_rows))

    monkeypatch.setattr(Owned, "shares", shares)


@pytest.mark.parametrize(
    "mistake",
    [Planted(plant.__name__, plant) for plant in (_weights_forgotten, _weights_rescaled, _shares_of_the_table)],
    ids=repr,
)
def test_a_mistake_in_the_weights_is_noticed(mistake, monkeypatch):
    """With one or two rows elsewhere, a person of fifty moves moments and counts too far."""
    mistake.plant(monkeypatch)
    rng = np.random.default_rng(0)
    noticed = {}
    for _ in range(10):
        for name, ratio in furthest(rng, Logistic(), wild=False).items():
            noticed[name] = max(noticed.get(name, 0.0), ratio)
    # A gradient is clipped after the mean: no weight of its own person makes it too long.
    clipped = {"clipped-gradient", "gradient-difference"}
    assert all(noticed[name] > 1.05 for name in noticed.keys() - clipped), noticed


def test_counts_without_weights_move_by_the_number_of_rows():
    """The counts of single rows, asked of the same table, count fifty rows of a person fifty times."""
    question, d = CountsBelow(2, 1), 2
    rows = [
        LocalRows(PackedRows.of(RowMap(1.0, False), np.full((FIFTY, d), value)), np.ones(FIFTY), Logistic())
        for value in (0.0, 1.0)
    ]
    first, second = (each.ask(question, (np.full((1, d), 0.5),), ALL) for each in rows)
    assert moved(first, second) == pytest.approx(FIFTY * 2 * question.reach(Relation.REPLACE_ONE))
    persons = [
        rows_of(np.full((FIFTY, d), value), np.ones(FIFTY), np.zeros(FIFTY, dtype=int), 1, Logistic())
        for value in (0.0, 1.0)
    ]
    first, second = (each.ask(question, (np.full((1, d), 0.5),), ALL) for each in persons)
    assert moved(first, second) <= 2 * question.reach(Relation.REPLACE_ONE) * SLACK


# -- the traps ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("csr", [False, True])
def test_persons_of_one_row_are_rows(loss, csr):
    rng = np.random.default_rng(1)
    X, y, who = table_of([one_person(loss, rng, 1, 3) for _ in range(40)])
    rowmap, to_csr = RowMap(1.0, True), sparse.csr_matrix if csr else (lambda X: X)
    persons = rows_of(X, y, who, 40, loss, rowmap, to_csr=to_csr)
    plain = LocalRows(PackedRows.of(rowmap, to_csr(X)), y, loss, 1.0)
    for matrix in (None, rng.normal(size=(4, 4))):
        mine, its = (each if matrix is None else each.transformed(matrix) for each in (persons, plain))
        for question, at in asked(rng, loss, 3, 4):
            if question.name == "centred-score" or (matrix is not None and question.frame == "table"):
                continue
            np.testing.assert_allclose(
                np.ravel(mine.ask(question, at, ALL)),
                np.ravel(its.ask(question, at, ALL)),
                rtol=2e-6,
                atol=1e-9,
                err_msg=question.name,
            )


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_fast_ways_are_the_means_of_the_contributions(loss):
    """Every way but that of gradients answers what the general way does."""
    rng = np.random.default_rng(2)
    persons = [one_person(loss, rng, int(rng.integers(1, 9)), 3, wild=True) for _ in range(30)]
    with np.errstate(all="ignore"):
        rows = rows_of(*table_of(persons), 30, loss, score=SCORE)
        for question, at in asked(rng, loss, 3, 4):
            if question.name in ("clipped-gradient", "gradient-difference"):
                continue
            general = rows._means_of_contributions(question, at, ALL)
            np.testing.assert_allclose(
                np.ravel(rows.ask(question, at, ALL)), np.ravel(general), rtol=2e-6, atol=1e-9, err_msg=question.name
            )


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("loss", [*LOSSES, HuberisedHinge()], ids=str)
def test_a_gradient_is_the_mean_over_a_persons_rows_and_clipped_once(loss):
    rng = np.random.default_rng(3)
    persons = [one_person(loss, rng, int(rng.integers(1, 9)), 3) for _ in range(30)]
    X, y, who = table_of(persons)
    y = np.where(y > 0, 1.0, -1.0) if isinstance(loss, HuberisedHinge) else y
    rowmap = RowMap.declare(1.0, True, (-5.0, 9.0), 3)
    rows, mapped = rows_of(X, y, who, 30, loss, rowmap), PackedRows.of(rowmap, X).block(slice(None))
    for matrix in (np.eye(4), rng.normal(size=(4, 4))):
        x = rng.normal(size=(4,) if loss.outputs == 1 else (4, loss.outputs))
        slopes = np.reshape(loss.slope(mapped @ (matrix @ x), y), (len(y), -1))
        expected = 0.0
        for person in range(30):
            own = who == person
            mean = matrix.T @ (mapped[own].T @ slopes[own]) / own.sum()
            expected = expected + mean * min(1.0, CLIP / np.linalg.norm(mean))
        found = rows.transformed(matrix).ask(ClippedGradient(CLIP), (x,), ALL)
        np.testing.assert_allclose(found.reshape(4, -1), expected, rtol=1e-5, atol=1e-6)


def test_means_concentrate_where_clipped_rows_do_not():
    """Opposite gradients of one person cancel before the clip, and not after it."""
    X, y = np.array([[1.0], [1.0], [1.0]]), np.array([1e6, -1e6, 0.3])
    together = rows_of(X, y, np.zeros(3, dtype=int), 1, Squared(), RowMap(1.0, False))
    found = together.ask(ClippedGradient(1.0), (np.zeros(1),), ALL)
    assert found == pytest.approx([-0.1])


def test_samplers_draw_persons():
    """A batch of person 1 holds all rows of person 1 and no other."""
    rng = np.random.default_rng(4)
    persons = [one_person(Logistic(), rng, size, 3) for size in (3, FIFTY, 5)]
    order = rng.permutation(58)
    rows = rows_of(*table_of(persons, order), 3, Logistic())
    assert rows.n_rows == 3
    x, question = rng.normal(size=4), ClippedGradient(CLIP)
    alone = rows_of(*table_of([persons[1]]), 1, Logistic()).ask(question, (x,), ALL)
    found = rows.ask(question, (x,), Batch(np.array([1])))
    np.testing.assert_allclose(found, alone, rtol=1e-12)
    padded = rows.ask(question, (x,), Batch(np.array([1, 0]), np.array([1.0, 0.0])))
    np.testing.assert_allclose(padded, alone, rtol=1e-12)
    nobody = rows.ask(question, (x,), Batch(np.zeros(0, dtype=np.intp)))
    assert not nobody.any()
    with pytest.raises(QueryRefused, match="sample of persons"):
        rows.ask(SecondMoment(), (), Batch(np.array([1])))


@pytest.mark.usefixtures("engine")
def test_places_and_other_persons_do_not_move_a_persons_vector():
    """The vector of one person has the same bits whoever stands before it, and however many."""
    rng = np.random.default_rng(5)
    one = one_person(Logistic(), rng, FIFTY, 6)
    x, batch = rng.normal(size=7), Batch(np.array([0]))
    spiked = SpikedMap(rng.uniform(0.1, 10.0, 7), rng.normal(size=7), 0.01)
    dense, difference = rng.normal(size=(7, 7)), (GradientDifference(0.02), (x, -x, 0.001))
    gradient = ClippedGradient(0.01), (x,)
    tried = [(None, *gradient), (spiked, *gradient), (dense, *difference)]
    for csr, (matrix, question, at) in product((False, True), tried):
        answers = set()
        for before in (0, 1, 3, 17, 300):
            others = [one_person(Logistic(), rng, before, 6)] if before else []
            X, y, who = table_of([*others, one])
            mine = np.where(who == len(others), 0, 1)
            rows = rows_of(X, y, mine, len(others) + 1, Logistic(), to_csr=sparse.csr_matrix if csr else (lambda X: X))
            seen = rows if matrix is None else rows.transformed(matrix)
            answers.add(seen.ask(question, at, batch).tobytes())
        assert len(answers) == 1


def test_a_person_of_more_rows_than_fit_together_is_one_person(monkeypatch):
    monkeypatch.setattr("dpadmm.rows.owned.PIECE_ROWS", 7)
    monkeypatch.setattr("dpadmm.rows.person_rows.HELD_ENTRIES", 20)
    rng = np.random.default_rng(6)
    persons = [one_person(Logistic(), rng, size, 3) for size in (2, FIFTY, 1, 8, 7, 30, 3)]
    pieces = rows_of(*table_of(persons), 7, Logistic(), score=SCORE)
    questions = asked(rng, Logistic(), 3, 4)
    found = [pieces.ask(question, at, ALL) for question, at in questions]
    monkeypatch.undo()
    assert PIECE_ROWS > FIFTY
    whole = rows_of(*table_of(persons), 7, Logistic(), score=SCORE)
    for (question, at), answer in zip(questions, found, strict=True):
        np.testing.assert_allclose(np.ravel(answer), np.ravel(whole.ask(question, at, ALL)), rtol=1e-9, atol=1e-12)


def test_tables_of_many_parts_have_the_sums_of_one(monkeypatch):
    rng = np.random.default_rng(7)
    persons = [one_person(Logistic(), rng, int(rng.integers(1, 9)), 3) for _ in range(30)]
    table = table_of(persons)
    whole = rows_of(*table, 30, Logistic())
    monkeypatch.setattr("dpadmm.rows.person_rows.PART_ROWS", 11)
    parts = rows_of(*table, 30, Logistic())
    for question, at in asked(rng, Logistic(), 3, 4):
        if question.name != "centred-score":
            first, second = (np.ravel(each.ask(question, at, ALL)) for each in (whole, parts))
            np.testing.assert_allclose(first, second, rtol=1e-9, atol=1e-12)


@settings(max_examples=100, deadline=None)
@given(sizes=st.lists(st.integers(0, 2000), min_size=1, max_size=8))
def test_the_shares_of_a_person_never_add_up_to_more_than_one(sizes):
    from fractions import Fraction

    who = np.repeat(np.arange(len(sizes)), sizes)
    shares = Owned(who, len(sizes)).shares(len(who))
    for person, size in enumerate(sizes):
        total = sum(map(Fraction, shares[who == person].tolist()))
        assert total <= 1
        assert size == 0 or total > Fraction(999_999, 1_000_000)


def test_rows_that_count_as_zero_are_no_rows_of_a_person():
    """One valid row among invalid ones counts like one row alone."""
    rng = np.random.default_rng(8)
    X, y = one_person(Logistic(), rng, 4, 3)
    X[1:] = np.nan
    x, question = rng.normal(size=4), ClippedGradient(1e3)
    mixed = rows_of(X, y, np.zeros(4, dtype=int), 1, Logistic()).ask(question, (x,), ALL)
    alone = rows_of(X[:1], y[:1], np.zeros(1, dtype=int), 1, Logistic()).ask(question, (x,), ALL)
    np.testing.assert_allclose(mixed, alone, rtol=1e-12)


def test_rows_of_nobody_count_for_nothing():
    rng = np.random.default_rng(9)
    X, y, who = table_of([one_person(Logistic(), rng, 5, 3), one_person(Logistic(), rng, 5, 3)])
    some = rows_of(X, y, np.where(who == 1, -1, 0), 1, Logistic(), score=SCORE)
    alone = rows_of(X[who == 0], y[who == 0], who[who == 0], 1, Logistic(), score=SCORE)
    for question, at in asked(rng, Logistic(), 3, 4):
        np.testing.assert_allclose(
            np.ravel(some.ask(question, at, ALL)), np.ravel(alone.ask(question, at, ALL)), rtol=1e-9, atol=1e-12
        )


@pytest.mark.parametrize("features", [1, 5, 50, 2000])
def test_the_rounding_that_is_charged_knows_no_number_of_rows(features):
    """It is a function of the number of persons, and more than that of as many rows."""
    of_rows = arithmetic.summation_error(1000, features)
    of_persons = arithmetic.summation_error(1000, features, unit=Unit.PERSON)
    assert of_rows < of_persons < 1e-6


def test_rounding_of_long_tables_stays_within_what_is_charged():
    """Two thousand persons of a thousand rows that cancel: the error of the sum, in exact arithmetic."""
    from fractions import Fraction

    rng = np.random.default_rng(10)
    persons, size = 3, 4000
    X = rng.normal(size=(persons * size, 1)) * 10.0 ** rng.integers(-6, 1, (persons * size, 1))
    who = np.repeat(np.arange(persons), size)
    rows = rows_of(X, np.ones(len(X)), who, persons, Logistic(), RowMap(1.0, False))
    found = float(rows.ask(SecondMoment(), (), ALL)[0, 0])
    shares = Owned(who, persons).shares(len(who))
    unit = PackedRows.of(RowMap(1.0, False), X).block(slice(None))[:, 0] * (1 - 1e-6)
    exact = sum(Fraction(s) * Fraction(a) ** 2 for s, a in zip(shares.tolist(), unit.tolist(), strict=True))
    # The rows are scaled by 1 − 10⁻⁶ where they leave the unit ball; that is within the tolerance here.
    assert abs(Fraction(found) - exact) <= Fraction(3, 10**6) * exact
    assert arithmetic.summation_error(persons, 1, unit=Unit.PERSON) >= 1e-12


# -- plans and oracles -------------------------------------------------------------------------------------------------


def plan_for(unit, n=4, count=1, question=None, sampler=None):
    question = ClippedGradient(CLIP) if question is None else question
    request = Request("gradient", count, question)
    return calibrate(Budget(1.0, 0.05), [request], sampler or Everything(), n, unit=unit)


def test_an_oracle_refuses_rows_that_are_not_held_as_planned():
    rng = np.random.default_rng(11)
    X, y, who = table_of([one_person(Logistic(), rng, 1, 3) for _ in range(4)])
    persons = rows_of(X, y, who, 4, Logistic())
    plain = LocalRows(PackedRows.of(RowMap(1.0, True), X), y, Logistic())
    for unit, wrong, right in ((Unit.PERSON, plain, persons), (Unit.ROW, persons, plain)):
        PrivateOracle(right, Gate(plan_for(unit)), make_streams(0))
        with pytest.raises(QueryRefused, match="protects"):
            PrivateOracle(wrong, Gate(plan_for(unit)), make_streams(0))


def test_exact_arithmetic_and_hidden_passes_are_refused_by_name():
    with pytest.raises(UnsupportedProblem, match="exact"):
        calibrate(
            Budget(1.0, 0.05),
            [Request("gradient", 1, ClippedGradient(CLIP))],
            Everything(),
            4,
            arithmetic=Arithmetic.EXACT,
            unit=Unit.PERSON,
        )
    X, y, ids = np.ones((20, 2)), np.tile([0, 1], 10), np.repeat(np.arange(5), 4)
    for change, word in (({"solver": "noisy-admm"}, "hidden-passes"), ({"arithmetic": "exact"}, "exact")):
        model = DPLogisticRegression(1.0, 1e-3, classes=[0, 1], row_norm=2.0, random_state=0, **change)
        with pytest.raises(UnsupportedProblem, match=word):
            model.fit(X, y, person=ids)


def test_a_forged_plan_for_persons_is_noticed():
    from dataclasses import replace

    plan = plan_for(Unit.PERSON)
    verify_plan(plan)
    with pytest.raises(PromiseBroken, match="no proof for persons"):
        verify_plan(replace(plan, arithmetic=Arithmetic.EXACT))


# -- estimators --------------------------------------------------------------------------------------------------------


def many(seed=0, persons=300):
    rng = np.random.default_rng(seed)
    sizes = 1 + rng.poisson(2, persons)
    ids = rng.permutation(np.repeat([f"id {number}" for number in range(persons)], sizes))
    X = rng.uniform(-1, 1, (len(ids), 3))
    return X, (X[:, 0] > 0).astype(int), ids


MODEL = {"epsilon": 1.0, "delta": 1e-4, "classes": [0, 1], "row_norm": 2.0, "random_state": 0}


def test_the_plan_without_data_is_that_of_the_fit():
    X, y, ids = many()
    model = DPLogisticRegression(**MODEL).fit(X, y, person=ids)
    assert model.plan_ == model.plan(n_rows=300, n_features=3, unit="person")
    assert model.plan_.unit is Unit.PERSON
    assert model.plan_ != model.plan(n_rows=300, n_features=3)
    assert "one person with all their rows" in model.privacy_.text


def test_shuffled_ids_of_any_type_give_the_same_model():
    """Ids are names: what they are called, and in which order persons come, changes nothing but roundings."""
    X, y, ids = many()
    numbers = np.unique(ids, return_inverse=True)[1]
    forms = [ids, ids.astype(object), list(ids), numbers, numbers.astype(float), [int(each) for each in numbers]]
    found = [DPLogisticRegression(**MODEL).fit(X, y, person=form).coef_ for form in forms]
    for each in found[1:]:
        np.testing.assert_allclose(each, found[0], rtol=1e-7)


def test_missing_ids_are_refused_or_count_for_nothing():
    X, y, ids = many()
    gap = ids.astype(object)
    gap[7] = None
    with pytest.raises(InvalidData, match="missing id") as refusal:
        DPLogisticRegression(**MODEL).fit(X, y, person=gap)
    assert "id 7" not in str(refusal.value)
    model = DPLogisticRegression(**MODEL, invalid_rows="zero").fit(X, y, person=gap)
    kept = np.arange(len(y)) != 7
    same = DPLogisticRegression(**MODEL, invalid_rows="zero").fit(X[kept], y[kept], person=gap[kept])
    np.testing.assert_allclose(model.coef_, same.coef_, rtol=1e-9)


def test_what_cannot_be_an_id_is_refused_without_a_quotation():
    X, y, ids = many()
    for wrong in (ids[:-1], np.stack([ids, ids], axis=1), np.ones(len(y)) * 1j, [None] * len(y)):
        with pytest.raises(InvalidData, match="person") as refusal:
            DPLogisticRegression(**MODEL).fit(X, y, person=wrong)
        assert "id " not in str(refusal.value).replace("id a row", "").replace("single id", "")


def test_public_weights_are_refused_beside_ids():
    """They are divided by the largest, which may be that of the person in question."""
    X, y, ids = many()
    with pytest.raises(InvalidParameter, match="public_weight with ids"):
        DPLogisticRegression(**MODEL).fit(X, y, np.ones(len(y)), ids)
    weighted = DPLogisticRegression(**MODEL, class_weight={0: 1.0, 1: 3.0}).fit(X, y, person=ids)
    assert weighted.plan_.unit is Unit.PERSON


def test_a_person_with_fifty_rows_weighs_what_a_person_with_one_does():
    """Class weights, too: a person never weighs more than one."""
    X, y, ids = many()
    model = DPLogisticRegression(**MODEL, class_weight={0: 1.0, 1: 3.0})
    _, rows = model.prepare(X, y, person=np.where(np.arange(len(y)) < 50, "id 0", ids))
    assert max(np.bincount(rows._persons.of_row, weights=rows._share)) <= 1.0


def test_searches_split_persons_and_not_rows():
    from dpadmm.estimators.search.row_split import Sizes, divide
    from dpadmm.randomness import make_selection_stream

    X, y, ids = many()
    persons = numbered(ids, len(ids))
    for declared in (False, True):
        stream = make_selection_stream(0)
        parts = divide(X, y, None, Sizes.of(300, 0.25), declared, stream, persons)
        known = [set(part.person[: None if not declared else -1].tolist()) for part in parts]
        assert not known[0] & known[1]
        assert known[0] | known[1] == set(range(300))
        assert sum(len(part.y) for part in parts) == len(y) + 2 * declared


def test_a_search_protects_persons():
    X, y, ids = many(persons=600)
    search = DPSearchCV(DPLogisticRegression(**MODEL, penalty="l1"), {"alpha": [1e-4, 1e-3]}, mean_trials=3)
    search.fit(X, y, person=ids)
    assert search.plan_.unit is Unit.PERSON
    assert search.plan_ == search.plan(n_rows=600, n_features=3, unit="person")
    assert "other persons" in search.privacy_.text


def test_a_search_with_a_private_number_of_persons_takes_one_more_of_each_part():
    X, y, ids = many(persons=600)
    chosen = {**MODEL, "relation": "add-remove", "n_rows": 600}
    search = DPSearchCV(DPLogisticRegression(**chosen, penalty="l1"), {"alpha": [1e-4, 1e-3]}, mean_trials=3)
    assert "persons" in search.fit(X, y, person=ids).privacy_.text


def test_transformers_and_steps_protect_persons():
    X, y, ids = many()
    shared = {"delta": 1e-4, "random_state": 0}
    alone = PrivateQuantileClipper(bounds=(-4, 4), epsilon=1.0, **shared).fit(X, person=ids)
    assert alone.plan_.unit is Unit.PERSON
    within = DPLogisticRegression(
        **{**MODEL, "row_norm": None}, bounds=PrivateQuantileClipper(bounds=(-4, 4), share=0.2)
    )
    assert within.fit(X, y, person=ids).plan_.unit is Unit.PERSON


def test_regressions_take_ids():
    X, _, ids = many()
    model = DPLinearRegression(1.0, 1e-4, target_bounds=(-1, 1), row_norm=2.0, random_state=0)
    assert model.fit(X, X[:, 0], person=ids).privacy_.facts.unit.number == 300


def test_delta_is_compared_with_the_number_of_persons():
    X, y, ids = many()
    with pytest.raises(InvalidParameter, match="number of persons"):
        DPLogisticRegression(**{**MODEL, "delta": 1 / 300}).fit(X, y, person=ids)


@pytest.mark.parametrize("solver", ["dp-sadmm", "dp-vradmm", "dp-sgd"])
def test_solvers_with_samplers_count_on_persons(solver):
    X, y, ids = many()
    plan = DPLogisticRegression(**MODEL, solver=solver).fit(X, y, person=ids).plan_
    sampled = [query.sampler for query in plan.queries if query.sampler.name != "full"]
    assert sampled
    assert all(sampler.n_rows == 300 for sampler in sampled)


def test_poisson_batches_of_persons_hold_whole_persons():
    sampler, stream = Poisson(0.5), make_streams(0).sampling
    rng = np.random.default_rng(12)
    rows = rows_of(*table_of([one_person(Logistic(), rng, 5, 3) for _ in range(40)]), 40, Logistic())
    drawn = sampler.draw(rows.n_rows, stream).rows
    assert drawn.max() < 40


def test_tables_of_dask_are_refused_by_name():
    da = pytest.importorskip("dask.array")
    X, y, ids = many()
    with pytest.raises(UnsupportedProblem, match="ids of persons for a table held by Dask"):
        DPLogisticRegression(**MODEL).fit(da.from_array(X, chunks=(200, 3)), y, person=ids)


@pytest.mark.parametrize("odd", [None, "x", 7.5, float("nan"), True, b"7", [1, 2], object(), 2**70, 1 + 0j])
def test_one_cell_does_not_decide_who_the_others_are(odd):
    """In every container one id more or less leaves the rows of the others together, and apart from each other."""
    import pandas as pd

    plain: list[object] = [7, 8, 7, 9, 8, 7]
    expected = [[0, 2, 5], [1, 4], [3]]
    for place in range(7):
        cells = [*plain[:place], odd, *plain[place:]]
        others = [row for row in range(7) if row != place]
        for held in (cells, cells_of(cells), pd.Series(cells), pd.Series(cells, dtype=object)):
            numbers = numbered(held, 7).of_row[others].tolist()
            rows = [[row for row, each in enumerate(numbers) if each == one] for one in dict.fromkeys(numbers)]
            assert rows == expected


def test_numbers_of_persons_are_those_of_their_labels():
    found = numbered([1, 1.0, True, "1", None, float("nan"), b"1", [2, 3], np.float32(1)], 9)
    assert found.of_row.tolist() == [0, 0, 0, 1, -1, -1, 2, -1, 0]
    assert found.count == 3
    floats = numbered(np.array([0.0, -0.0, np.nan, np.inf, 2.0]), 5)
    assert floats.of_row.tolist() == [0, 0, -1, -1, 1]
    assert isinstance(floats, PersonNumbers)


def test_the_order_of_entries_of_one_person_does_not_round_those_of_another():
    """SciPy adds the squares of all rows in another order where entries of one row are out of order."""
    rng, columns, squares = np.random.default_rng(0), 12, set()
    values = rng.normal(size=10) * 10 ** rng.uniform(-1, 1, size=10)
    mine = [sparse.csr_matrix(([values[k]], [9 - k], [0, 1]), shape=(1, columns)) for k in range(10)]
    for entries in (1, 2):
        its = sparse.csr_matrix((np.ones(entries), np.arange(entries), [0, entries]), shape=(1, columns))
        table = sparse.vstack([*mine, its], format="csr")
        vectors = PersonVectors.weighed(table, np.full((11, 1), 0.1), np.array([0, 10, 11]))
        squares.add(vectors.clipped(0.01, None).parts[0][0].toarray().tobytes())
    assert len(squares) == 1


@pytest.mark.parametrize("columns", [100, 9000, 20000])
def test_a_long_row_alone_has_the_length_that_it_has_among_others(columns):
    row = np.random.default_rng(1).normal(size=columns)
    point = np.random.default_rng(2).normal(size=(1, columns))
    for rows in (2, 3, 17):
        together = np.tile(row, (rows, 1))
        assert squared_lengths(row[None])[0] == squared_lengths(together)[-1]
        assert products(row[None], point)[0, 0] == products(together, point)[-1, 0]


@pytest.mark.parametrize(("kind", "first"), [(np.float64, 2.0**53), (np.float32, 2.0**24)])
def test_ids_that_may_have_been_rounded_are_none(kind, first):
    """pandas makes real numbers of a column of whole ones for a single missing id: then several ids become one."""
    column = np.array([first - 1, first, first + 4, np.nan, np.inf], dtype=kind)
    # Python's own numbers are doubles, whatever they came from.
    for ids in (column, *([column.astype(object)] if kind is np.float64 else [])):
        assert numbered(ids, 5).of_row.tolist() == [0, -1, -1, -1, -1]
    assert numbered([2**53, 2**53 + 1], 2).count == 2
