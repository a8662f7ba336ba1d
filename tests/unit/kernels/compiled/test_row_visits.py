"""Hidden passes: the compiled kernel against its NumPy twin, on every kind of table, and everything around a fit."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pytest
from scipy import sparse

from dpadmm import DPLinearRegression, DPLogisticRegression, kernels, load_model
from dpadmm.cli.app import run as command
from dpadmm.privacy.budget import Budget, Relation
from dpadmm.privacy.ledger import Ledger
from dpadmm.privacy.ledger.charge import charge, total_epsilon
from dpadmm.problem import (
    L1,
    Constraint,
    ElasticNet,
    GroupL2,
    Huber,
    HuberisedHinge,
    Logistic,
    Problem,
    Squared,
    SquaredL2,
    Zero,
)
from dpadmm.problem.hidden_pass_program import Program
from dpadmm.problem.rowmap import RowMap
from dpadmm.rows.local import LocalRows
from dpadmm.rows.packed import PackedRows

D, N = 5, 60
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, D)) * (RNG.uniform(size=(N, D)) < 0.6)
LABELS = RNG.choice([-1.0, 1.0], N)
LOSSES = [Logistic(), HuberisedHinge(0.4), Squared(), Huber(0.3)]
CONSTRAINTS = {
    "identity": Constraint.identity(D),
    "free": Constraint.identity(D, free=1),
    "chain": Constraint.chain(D, free=1),
    "tree": Constraint.graph([(0, 4), (1, 4, 2.0)], D),
    "dense": Constraint.general(RNG.normal(size=(3, D)), c=np.array([0.1, 0.0, -0.2])),
}


GRID = 2.0**-30


def passed(rows, program, engine, clip=0.4, seed=1):
    rng = np.random.default_rng(seed)

    def noise(visits):
        return np.rint(0.1 / GRID * rng.normal(size=(visits, D))) * GRID

    with kernels.use(engine):
        return rows.noisy_pass(program, program.start(), clip, rng.permutation(N), noise, GRID)


@pytest.mark.parametrize("name", CONSTRAINTS)
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("penalty", [Zero(), L1(0.05), SquaredL2(0.3), ElasticNet(0.2, 0.5)], ids=lambda p: p.name)
def test_twins_agree(name, loss, penalty):
    problem = Problem(loss, penalty, CONSTRAINTS[name], ridge=0.1)
    program = Program(problem, 0.9 / problem.smoothness, 0.7)
    rows = LocalRows(PackedRows.of(RowMap(1.0, intercept=False), X), LABELS, loss)
    one, two = (passed(rows, program, engine) for engine in ("numpy", "compiled"))
    # What differs in the last bits is rounded away after every visit.
    np.testing.assert_array_equal(one[0], two[0])
    np.testing.assert_allclose(one[1], two[1], rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("engine", ["numpy", "compiled"])
def test_every_form_of_a_table_gives_the_same_state(engine, monkeypatch):
    """Dense, sparse, float32, with weights of one, and in blocks of a few rows."""
    problem = Problem(Logistic(), L1(0.02), Constraint.chain(D))
    program = Program(problem, 1.0, 0.7)
    pack = partial(PackedRows.of, RowMap(1.0, intercept=False))
    expected = passed(LocalRows(pack(X), LABELS, Logistic()), program, engine)
    forms = [
        LocalRows(pack(sparse.csr_matrix(X)), LABELS, Logistic()),
        LocalRows(pack(X), LABELS, Logistic(), weights=np.ones(N)),
        LocalRows(pack(X.astype(np.float32)), LABELS, Logistic()),
    ]
    for rows, close in zip(forms, (1e-9, 1e-12, 1e-5), strict=True):
        np.testing.assert_allclose(passed(rows, program, engine)[0], expected[0], rtol=close, atol=close)
    monkeypatch.setattr("dpadmm.rows.local.MOMENT_ENTRIES", 7 * D)
    np.testing.assert_allclose(passed(forms[1], program, engine)[0].shape, expected[0].shape)


@pytest.mark.parametrize("engine", ["numpy", "compiled"])
def test_rows_and_targets_that_are_not_finite_count_as_zero(engine):
    program = Program(Problem(Squared(), Zero(), Constraint.identity(D)), 0.5, 1.0)
    bad, targets = X.copy(), LABELS.copy()
    bad[3, 1], bad[5], targets[7] = np.nan, np.inf, np.nan
    zeroed, known = X.copy(), LABELS.copy()
    zeroed[[3, 5, 7]], known[7] = 0.0, 0.0
    with np.errstate(all="ignore"):  # as in `fit`
        packed = PackedRows.of(RowMap(1.0, intercept=False), bad, np.isfinite(targets))
    one = passed(LocalRows(packed, targets, Squared()), program, engine)
    two = passed(LocalRows(PackedRows.of(RowMap(1.0, intercept=False), zeroed), known, Squared()), program, engine)
    np.testing.assert_array_equal(one[0], two[0])


def test_a_group_penalty_goes_through_its_own_prox():
    program = Program(Problem(Logistic(), GroupL2(3.0, ((0, 1), (2, 3, 4))), Constraint.identity(D)), 1.0, 1.0)
    x, dual = passed(LocalRows(X / 10, LABELS, Logistic()), program, "compiled")
    y = program.auxiliary(x, dual)
    assert (y[:2] == 0).all()
    assert (y[2:] == 0).all()


def test_plan_compares_with_other_ways(capsys):
    asked = ["plan", "--rows", "3000", "--features", "9", "--epsilon", "1", "--delta", "1e-5", "--solver", "noisy-admm"]
    assert command([*asked, "--steps", "1", "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    comparison = summary["comparison"]
    assert comparison["subsampling"] < comparison["iteration"] < comparison["paper"] < comparison["composition"]
    assert comparison["iteration"] == pytest.approx(summary["noise_multiplier"] / 2)
    assert summary["sampler"] == "permutation"
    assert command([*asked, "--steps", "1"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    for words in ("the last state only", "no amplification", "subsampling", "one row's gradient"):
        assert words in shown
    assert command(["plan", *asked[1:-2], "--json"]) == 0
    assert "comparison" not in json.loads(capsys.readouterr().out)


def test_plan_refuses_what_a_fit_would_refuse(capsys):
    asked = ["plan", "--rows", "3000", "--features", "9", "--epsilon", "1", "--delta", "1e-5", "--solver", "noisy-admm"]
    assert command([*asked, "--relation", "add-remove"]) != 0
    assert "replace-one" in "".join(capsys.readouterr())
    assert command([*asked, "--classes", "3"]) != 0
    assert "one margin" in "".join(capsys.readouterr())


def table():
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, (60, 3))
    return rows, (rows[:, 0] > 0).astype(int)


def test_models_and_statements_are_stored_with_their_passage(tmp_path):
    model = DPLogisticRegression(1.0, 1e-3, solver="noisy-admm", steps=2, classes=[0, 1]).fit(*table())
    again = load_model(model.save(tmp_path / "model"))
    assert again.plan_ == model.plan_
    assert again.plan_.queries[0].question.passage is not None
    assert again.privacy_ == model.privacy_
    np.testing.assert_array_equal(again.predict(table()[0]), model.predict(table()[0]))


def test_a_ledger_charges_the_gaussian_that_dominates(tmp_path):
    ledger = Ledger.create(tmp_path / "ledger.db")
    ledger.set_limit("table", Budget(4.0, 1e-3), owner="Ada")
    model = DPLinearRegression(
        0.5, 1e-4, solver="noisy-admm", steps=2, target_bounds=(0, 1), ledger=ledger, dataset="table"
    )
    model.fit(*table())
    assert [entry.content["kind"] for entry in ledger.entries] == ["create", "limit", "reserve", "commit"]
    cost = charge(model.plan_.event, Relation.REPLACE_ONE, 1e-6)
    assert 0 < cost.shift < np.inf
    assert total_epsilon([cost], 1e-4 + 1e-6) >= 0.9 * model.plan_.epsilon_achieved
    assert ledger.spent("table")[0] > 0
